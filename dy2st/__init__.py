"""Eager PyTorch code with Python control flow on tensor values, as static graphs that are proved equal to eager.

The public names are looked up on first use (PEP 562), so that ``import dy2st`` imports no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dy2st import errors, onnx
    from dy2st.capture.program import export
    from dy2st.conversion import code, convert, not_to_static, undo
    from dy2st.embedded import check_embedded
    from dy2st.hints import at_most, constant, rolled, unrolled
    from dy2st.parity import check, embed_tests, refusals, shadow
    from dy2st.report import ParityReport
    from dy2st.saved import save
    from dy2st.static.loading import load
    from dy2st.static_function import to_static

__version__ = "0.1.0"

__all__ = [
    "ParityReport",
    "at_most",
    "check",
    "check_embedded",
    "code",
    "constant",
    "convert",
    "embed_tests",
    "errors",
    "export",
    "load",
    "not_to_static",
    "onnx",
    "refusals",
    "rolled",
    "save",
    "shadow",
    "to_static",
    "undo",
    "unrolled",
]

# name -> (module, attribute); an empty attribute means the module itself
_HOMES = {
    "ParityReport": ("dy2st.report", "ParityReport"),
    "at_most": ("dy2st.hints", "at_most"),
    "check": ("dy2st.parity", "check"),
    "check_embedded": ("dy2st.embedded", "check_embedded"),
    "code": ("dy2st.conversion", "code"),
    "constant": ("dy2st.hints", "constant"),
    "convert": ("dy2st.conversion", "convert"),
    "embed_tests": ("dy2st.parity", "embed_tests"),
    "errors": ("dy2st.errors", ""),
    "export": ("dy2st.capture.program", "export"),
    "load": ("dy2st.static.loading", "load"),
    "not_to_static": ("dy2st.conversion", "not_to_static"),
    "onnx": ("dy2st.onnx", ""),
    "refusals": ("dy2st.parity", "refusals"),
    "rolled": ("dy2st.hints", "rolled"),
    "save": ("dy2st.saved", "save"),
    "shadow": ("dy2st.parity", "shadow"),
    "to_static": ("dy2st.static_function", "to_static"),
    "undo": ("dy2st.conversion", "undo"),
    "unrolled": ("dy2st.hints", "unrolled"),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dy2st' has no attribute {name!r}")
    module = importlib.import_module(home[0])
    value = getattr(module, home[1]) if home[1] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
