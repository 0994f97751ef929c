"""Random numbers of Python's ``random`` and of numpy: a trace draws them once, and the program would hold constants.

What a generator that the model itself makes or seeds gives is the same in every call, and may be a constant; not so in
an arm or a staged loop, whose numbers all paths and iterations would share.
"""

from __future__ import annotations

import random
from typing import Any

from dy2st.errors import LeakedValueError, SeedError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import Session

_SEEDING = frozenset("seed setstate set_state".split())
_READING = frozenset("getstate get_state".split())
_HINT = "draw them with torch.rand, or draw them outside of the model and pass them in"


def is_source(value: Any) -> bool:
    """Whether an object draws random numbers, other than torch's own."""
    return isinstance(value, random.Random) or type(value).__module__.startswith("numpy.random")


def check_drawing(capture: Session, function: Any) -> None:
    """``function`` is about to be called: it may draw random numbers, or seed what draws them."""
    source = getattr(function, "__self__", None)
    if not is_source(source) or function.__name__ in _READING:
        return
    own = any(scope.owns(id(source)) for scope in capture.trace_frames)
    if capture.depth > 1 and not capture.trace_frames[-1].owns(id(source)):
        raise LeakedValueError(
            f"random numbers are drawn by {function.__name__}() under a tensor condition or in a staged loop, unseen "
            "by dy2st",
            hint=_HINT,
            location=location_of(users_frame()),
        )
    if function.__name__ in _SEEDING:
        capture.new(source)
    elif not own:
        raise SeedError(
            f"random numbers are drawn by {function.__name__}() while the model is traced: each run of the program "
            "would see the same ones",
            hint=_HINT,
            location=location_of(users_frame()),
        )
