"""Source in, rewritten functions out."""

from dy2st.source.errors import NoSourceError, SourceError, StaleSourceError, UnsupportedSourceError
from dy2st.source.rewriting import is_rewritten, is_rewritten_code, original, rewrite, rewritten_source

__all__ = [
    "NoSourceError",
    "SourceError",
    "StaleSourceError",
    "UnsupportedSourceError",
    "is_rewritten",
    "is_rewritten_code",
    "original",
    "rewrite",
    "rewritten_source",
]
