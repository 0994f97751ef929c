"""Whether a capture is running. Importing this module, and all of operators, imports no torch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture


class _Mode:
    """One process-wide slot: tracing is single-threaded, and a plain attribute is the cheapest test there is."""

    __slots__ = ("capture", "kind")

    def __init__(self) -> None:
        self.capture: Capture | None = None
        # The class of captures to start, if it is another one.
        self.kind: type[Capture] | None = None


MODE = _Mode()


def torch_is_loaded() -> bool:
    """True once anything imported torch; before that no value can be a tensor."""
    return "torch" in sys.modules
