"""Changes of objects other than Python's containers: no end of an arm could undo them, so they are refused."""

from __future__ import annotations

import contextlib
import io
import queue
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from dy2st.source.user_frames import module_of
from dy2st.staging.memory.heap_snapshot import Observed
from dy2st.staging.session import Session
from dy2st.values.journal import Slot

# What changes in a way that a look at the object does not show.
_CHANGING: dict[type, frozenset[str]] = {
    queue.SimpleQueue: frozenset(("put", "put_nowait", "get", "get_nowait")),
    io.IOBase: frozenset("read read1 readline readlines readinto seek truncate".split()),
}
# What changes the parts of a module of torch's, or what its call runs. (Its mode has an error of its own.)
_REGISTERING = frozenset(
    "__delitem__ add_module apply bfloat16 clear compile cpu cuda double float half insert ipu load_state_dict mtia "
    "pop popitem requires_grad_ set_extra_state set_submodule share_memory to to_empty type xpu zero_grad".split()
)
_REGISTRIES = ("_modules", "_parameters", "_buffers")


def refuse_method(capture: Session, owner: Any, name: str) -> None:
    """A method of a built-in type is called."""
    if owner is sys.stdout or owner is sys.stderr:
        return
    if any(isinstance(owner, kind) and name in names for kind, names in _CHANGING.items()):
        capture.refuse_change(owner, f"{name}()")


@contextlib.contextmanager
def watched(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """Refuse changes that code which isn't converted makes under a condition, save those that the journal knows."""
    owner = getattr(function, "__self__", None)
    library = module_of(function).split(".")[0]
    if capture.depth == 1 or isinstance(owner, torch.Tensor) or library == "torch":
        yield
        return
    scope = capture.trace_frames[-1]
    observed = Observed(each for each in (owner, *args, *kwargs.values()) if not scope.owns(id(each)))
    yield
    for each in observed.changed_unseen(scope.journal):
        capture.refuse_change(each, f"{getattr(function, '__name__', 'a call')}()")


def refuse_item(capture: Session, owner: Any) -> None:
    """An item is stored or deleted of what is no container, by code that is not the user's."""
    if type(owner).__module__.split(".")[0] != "dy2st" and not isinstance(owner, torch.Tensor):
        capture.refuse_change(owner, "a subscript")


def refuse_registering(capture: Session, owner: torch.nn.Module | RemovableHandle, name: str) -> None:
    """A method of a module or of a hook's handle is called; what it changes outside of conditions is put back."""
    if isinstance(owner, RemovableHandle):
        if name in ("remove", "__exit__"):
            capture.refuse_change(owner, f"{name}()")
            references = (owner.hooks_dict_ref, *owner.extra_dict_ref)
            _touch_hooks(capture, [reference() for reference in references])
    elif name in _REGISTERING or name.startswith("register_"):
        capture.refuse_change(owner, f"{name}()")
        _touch_registries(capture, owner)
        if name.endswith("_hook"):
            _touch_hooks(capture, [held for key, held in vars(owner).items() if "_hooks" in key])


def _touch_registries(capture: Session, owner: torch.nn.Module) -> None:
    for registry in _REGISTRIES:
        capture.touch(Slot.of("content", owner.__dict__[registry]))


def _touch_hooks(capture: Session, registries: Iterable[Any]) -> None:
    for registry in registries:
        if registry is not None:  # else what had the hooks is gone, or it has none
            capture.touch_content(registry)


def _is_part(owner: torch.nn.Module, name: str) -> bool:
    return any(name in owner.__dict__.get(registry, ()) for registry in _REGISTRIES)


def refuse_new_part(capture: Session, owner: Any, name: str, value: Any) -> None:
    """An attribute of a module is stored: a part that it has on some paths only is one that it does not list."""
    parts = (torch.nn.Module, torch.nn.Parameter)
    if isinstance(owner, torch.nn.Module) and isinstance(value, parts) and not _is_part(owner, name):
        capture.refuse_change(owner, f"a new {type(value).__name__} at .{name}")
        _touch_registries(capture, owner)


def refuse_lost_part(capture: Session, owner: Any, name: str) -> None:
    """An attribute of a module is deleted."""
    if isinstance(owner, torch.nn.Module) and _is_part(owner, name):
        capture.refuse_change(owner, f"a deletion of .{name}")
        _touch_registries(capture, owner)
