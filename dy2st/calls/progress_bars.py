"""Progress bars of tqdm's around what a loop iterates over: the loop is staged as if they were not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.calls.outside_world import Constants
from dy2st.errors import UnguardedError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.loops.iterables import ProgressBar


def is_progress_bar(cls: type) -> bool:
    """Whether a class is tqdm's, of whatever look: for terminals, notebooks or asynchronous code."""
    return any((base.__module__, base.__name__) == ("tqdm.std", "tqdm") for base in cls.__mro__)


def bar_maker(cls: type) -> Callable[..., Any]:
    """What makes the stand-in for a bar of this class.

    Of what a bar is told (its title, the length, where it is shown) nothing is kept. A bar that is disabled shows
    nothing in eager either.
    """

    def make(iterable: Any = None, *_: Any, disable: Any = False, **__: Any) -> ProgressBar:
        """Make it.

        Raises:
            UnguardedError: the bar would be shown, and the program is to run again in its code's place.
        """
        if not disable and not current().part(Constants).everything:
            raise UnguardedError(
                f"{cls.__name__}() shows a bar while the function is traced: a run of the program has none",
                hint="leave it out, or pass disable=True, or say that it is shown once: to_static(..., freeze=True)",
                location=location_of(users_frame()),
            )
        return ProgressBar(iterable)

    return make
