"""The kinds of ``SourceError``; all errors are defined in :mod:`dy2st.errors`."""

from __future__ import annotations

from dy2st.errors import NoSourceError, SourceError, StaleSourceError, UnsupportedSourceError

__all__ = ["NoSourceError", "SourceError", "StaleSourceError", "UnsupportedSourceError"]
