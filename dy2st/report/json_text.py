"""JSON that every reader takes: half a surrogate pair, which a file's name may hold, is none of JSON's characters.

Source: RFC 8259, section 8.2: what a reader makes of one is not defined; some refuse the whole text.
"""

from __future__ import annotations

import json
import re
from typing import Any

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def json_text(found: Any) -> str:
    """Dicts, lists, texts and finite numbers as JSON, in ASCII, with a newline at the end.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(_whole(found), indent=2, allow_nan=False) + "\n"


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF_PAIR.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, (list, tuple)) else value
