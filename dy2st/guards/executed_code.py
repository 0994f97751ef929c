"""Which code runs while a program is captured: no other can have told the capture anything.

By names alone code can reach far more than it does. A method of a large library's class may load files, ask what is
installed and warn; each of these leads on to others, until there is too much to be looked at before each call, or
something that can't be. Then the capture runs once more, and the functions that have run in it are noted: of all others
it counts only which ones they are.

Noting takes about as long as capturing does, so that it is done only where it is needed.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dy2st.errors import HeapSizeError, UnguardedError

# File, line and name of a code object: converted code has those of its source.
Code = tuple[str, int, str]


def key_of(code: types.CodeType) -> Code:
    """What identifies code, converted or not."""
    return code.co_filename, code.co_firstlineno, code.co_name


def run_by(observe: Callable[[], Any], capture: Callable[[], Any]) -> frozenset[Code] | None:
    """The code that ``capture()`` runs, where ``observe()`` is refused; None where all code that is found may count.

    Raises:
        Dy2stError: what the capture is refused for.
    """
    try:
        observe()
    except (HeapSizeError, UnguardedError):
        with _noting() as ran:
            capture()
        return frozenset(map(key_of, ran))
    return None


@contextmanager
def _noting() -> Iterator[set[types.CodeType]]:
    """Note the code of each function that this thread calls; who traces already (a debugger) goes on to."""
    ran: set[types.CodeType] = set()
    before = sys.gettrace()

    def note(frame: types.FrameType, event: Any, argument: Any) -> Any:
        ran.add(frame.f_code)
        return None if before is None else before(frame, event, argument)

    sys.settrace(note)
    try:
        yield ran
    finally:
        sys.settrace(before)
