"""Changes of objects other than Python's containers: no end of an arm could undo them, so they are refused."""

from __future__ import annotations

import contextlib
import contextvars
import io
import queue
import sys
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import LeakedValueError
from dy2st.staging.memory.heap_snapshot import Observed, content, is_buffer
from dy2st.values.describing import article
from dy2st.values.journal import Slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dy2st.capture.capturing import Capture
    from dy2st.staging.session import Session

# What changes in a way that a look at the object does not show.
_CHANGING: dict[type, frozenset[str]] = {
    contextvars.ContextVar: frozenset(("set", "reset")),
    queue.SimpleQueue: frozenset(("put", "put_nowait", "get", "get_nowait")),
    io.IOBase: frozenset("read read1 readline readlines readinto seek truncate".split()),
}
# What changes the parts of a module of torch's, or what its call runs. (Its mode has an error of its own.)
_REGISTERING = frozenset(
    "__delitem__ add_module apply bfloat16 clear compile cpu cuda double float half insert ipu load_state_dict mtia "
    "pop popitem requires_grad_ set_extra_state set_submodule share_memory to to_empty type xpu zero_grad".split()
)
_REGISTRIES = ("_modules", "_parameters", "_buffers")


def refuse_change(capture: Session, owner: Any, what: str) -> None:
    """Nothing of this kind may change under a condition, save what was made under it."""
    if capture.depth > 1 and not capture.trace_frames[-1].owns(id(owner)):
        raise LeakedValueError(
            f"{article(type(owner).__name__)} is changed by {what} under a tensor condition or in a staged loop, "
            "unseen by dy2st",
            hint="let converted code change a list, a dict, an attribute or a tensor instead, or change it outside",
        )


def refuse_method(capture: Capture, owner: Any, name: str) -> None:
    """A method of a built-in type is called."""
    if owner is sys.stdout or owner is sys.stderr:
        return
    if any(isinstance(owner, kind) and name in names for kind, names in _CHANGING.items()):
        refuse_change(capture, owner, f"{name}()")


class UnchangedBuffers:
    """The buffers among some values, which may only be read under a condition."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.before = [(value, content(value)) for value in values if is_buffer(value)]

    def check(self, capture: Session, what: str) -> None:
        """Refuse a change by ``what``."""
        for value, before in self.before:
            if content(value) != before:
                refuse_change(capture, value, what)


@contextlib.contextmanager
def watched(capture: Capture, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """Refuse changes that code which isn't converted makes under a condition, save those that the journal knows."""
    owner = getattr(function, "__self__", None)
    library = (getattr(function, "__module__", None) or "").split(".")[0]
    if capture.depth == 1 or isinstance(owner, torch.Tensor) or library == "torch":
        yield
        return
    scope = capture.trace_frames[-1]
    observed = Observed(each for each in (owner, *args, *kwargs.values()) if not scope.owns(id(each)))
    yield
    for each in observed.changed_unseen(scope.journal):
        refuse_change(capture, each, f"{getattr(function, '__name__', 'a call')}()")


def refuse_item(capture: Capture, owner: Any) -> None:
    """An item is stored or deleted of what is no container, by code that is not the user's."""
    if type(owner).__module__.split(".")[0] != "dy2st" and not isinstance(owner, torch.Tensor):
        refuse_change(capture, owner, "a subscript")


def refuse_registering(capture: Capture, owner: torch.nn.Module, name: str) -> None:
    """A method of a module is called; what it registers outside of conditions is gone after the capture."""
    if name in _REGISTERING or name.startswith("register_"):
        refuse_change(capture, owner, f"{name}()")
        _touch_registries(capture, owner)


def _touch_registries(capture: Capture, owner: torch.nn.Module) -> None:
    for registry in _REGISTRIES:
        capture.touch(Slot.of("content", owner.__dict__[registry]))


def _is_part(owner: torch.nn.Module, name: str) -> bool:
    return any(name in owner.__dict__.get(registry, ()) for registry in _REGISTRIES)


def refuse_new_part(capture: Capture, owner: Any, name: str, value: Any) -> None:
    """An attribute of a module is stored: a part that it has on some paths only is one that it does not list."""
    parts = (torch.nn.Module, torch.nn.Parameter)
    if isinstance(owner, torch.nn.Module) and isinstance(value, parts) and not _is_part(owner, name):
        refuse_change(capture, owner, f"a new {type(value).__name__} at .{name}")
        _touch_registries(capture, owner)


def refuse_lost_part(capture: Capture, owner: Any, name: str) -> None:
    """An attribute of a module is deleted."""
    if isinstance(owner, torch.nn.Module) and _is_part(owner, name):
        refuse_change(capture, owner, f"a deletion of .{name}")
        _touch_registries(capture, owner)
