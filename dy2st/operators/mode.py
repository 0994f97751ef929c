"""Whether a capture is running. Importing this module, and all of operators, imports no torch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dy2st.capture.capturing import Capture


class _Mode(threading.local):
    """One slot for each thread: what other threads run meanwhile is no part of a capture."""

    capture: Capture | None = None
    # The class of captures to start, if it is another one.
    kind: type[Capture] | None = None


MODE = _Mode()
