"""A mismatch as a script of its own: the user's code in one file, made as small as it stays wrong."""

from dy2st.reproducer.writing import Reproduced, reproduce

__all__ = ["Reproduced", "reproduce"]
