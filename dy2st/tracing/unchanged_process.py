"""The process as the user's code would find it in eager mode: what ``torch.export`` changes of it while it traces.

It switches backends off, so that no operator is decomposed for one of them, and puts functions of its own in the place
of ``max``, ``min`` and ``math.pow``. Code that asks whether a backend is on, or calls a function that somebody has
put in the place of one of these three, must not see that.

The properties of ``torch.backends`` are private to torch (2.13); ``tests/static/test_changes.py``
fails where they change.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from dy2st.errors import LostStateError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import location_of, users_frame
from dy2st.tracing.grad_mode import gradient_mode
from dy2st.tracing.replaced import replaced

_BACKENDS = ("cudnn", "mkldnn", "nnpack")
_REPLACED = ((builtins, "max"), (builtins, "min"), (math, "pow"))
# Before any capture runs, and before anybody can have replaced them.
_PYTHONS: dict[tuple[ModuleType, str], Any] = {each: getattr(*each) for each in _REPLACED}


class Outside:
    """The functions that ``torch.export`` replaces, as they are outside of it; a part of the session of an export."""

    def __init__(self) -> None:
        self.functions = dict(_PYTHONS)


@contextlib.contextmanager
def unchanged_process() -> Iterator[None]:
    """Note what ``torch.export`` is going to change; while it runs, torch's flags say what they say now."""
    current().part(Outside).functions = {each: getattr(*each) for each in _REPLACED}
    changes = [change for name in _BACKENDS for change in _as_now(getattr(torch.backends, name))]
    with replaced(changes):
        yield


def replacements() -> Iterator[tuple[Callable[..., Any], Callable[..., Any], bool]]:
    """What ``torch.export`` calls now, what it stands for, and whether that is Python's own function."""
    for (module, name), function in current().part(Outside).functions.items():
        yield getattr(module, name), function, function is _PYTHONS[module, name]


def _as_now(backend: Any) -> Iterator[tuple[Any, str, Any]]:
    """For each property of a module of flags, what makes it give what it gives now, or what is set meanwhile."""
    for prop in vars(type(backend)).values():
        if not isinstance(prop, torch.backends.ContextProp):
            continue
        said = [prop.getter()]

        def get(said: list[Any] = said) -> Any:
            return said[0]

        def put(value: Any, said: list[Any] = said, setter: Any = prop.setter) -> None:
            if gradient_mode().differentiated and value != said[0]:
                raise LostStateError(
                    "a flag of torch.backends is set, which a program can't: to_static would lose it",
                    hint="set it before the call",
                    location=location_of(users_frame()),
                )
            setter(value)
            said[0] = value

        yield prop, "getter", get
        yield prop, "setter", put
