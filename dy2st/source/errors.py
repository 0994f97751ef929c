"""The kinds of ``SourceError``."""

from __future__ import annotations

from dy2st.errors import SourceError


class NoSourceError(SourceError):
    """A function has no source: it is built in, or its text was never kept."""

    code = "D2S101"


class StaleSourceError(SourceError):
    """The source found is not what the function was compiled from, or is no Python."""

    code = "D2S102"


class UnsupportedSourceError(SourceError):
    """The source holds something that can't be rewritten."""

    code = "D2S103"


__all__ = ["NoSourceError", "SourceError", "StaleSourceError", "UnsupportedSourceError"]
