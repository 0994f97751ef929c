"""Calls of modules: their forward is converted, and their hooks run as ``nn.Module.__call__`` runs them."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.held_classes import convert_classes_around, convert_classes_of
from dy2st.calls.hooks import all_arguments_after, arguments_after, output_after
from dy2st.calls.torch_functions.packed_sequences import is_packed, over_packed
from dy2st.conversion import is_left_alone
from dy2st.errors import LeakedValueError, ModeSwitchError
from dy2st.operators.export_session import current
from dy2st.source.rewriting import rewrite
from dy2st.source.torch_made import require_python
from dy2st.staging.session import MODE, Session
from dy2st.staging.untracked_mutation import refuse_registering
from dy2st.staging.users_code import python_function
from dy2st.tracing.tracer import outside_the_trace

HOOKS = ("_forward_hooks", "_forward_pre_hooks")
# What gives all tensors of a module another dtype or device.
MOVING = frozenset(
    getattr(torch.nn.Module, name)
    for name in "to type float double half bfloat16 cpu cuda ipu xpu mtia".split()
    if hasattr(torch.nn.Module, name)
)


class ModelModules:
    """The modules of the model that is exported, by identity; a part of the session of an export."""

    def __init__(self) -> None:
        self.known: frozenset[int] = frozenset()


def converted_module(capture: Session, module: torch.nn.Module) -> Any:
    """What to call in place of a module."""
    if is_left_alone(module):
        return module
    require_python(module)
    convert_classes_of(capture, module)
    if isinstance(module.forward, types.MethodType) and isinstance(module.forward.__func__, types.FunctionType):
        convert_classes_around(capture, module.forward.__func__)
    own = type(module).__call__
    if own is torch.nn.Module.__call__:
        return through_module_call(module)
    return types.MethodType(python_function(own), module) if isinstance(own, types.FunctionType) else module


def through_module_call(module: torch.nn.Module) -> Any:
    """A module called through ``nn.Module.__call__``, which runs its hooks."""
    forward = module.forward
    if not isinstance(forward, types.MethodType) or not isinstance(forward.__func__, types.FunctionType):
        return module
    rewritten = python_function(forward.__func__)
    if isinstance(module, torch.nn.RNNBase) and rewritten is forward.__func__:
        rewritten = _of_packed_sequences(rewritten)
    hooked = any(module.__dict__.get(name) for name in HOOKS)
    if rewritten is forward.__func__ and not hooked:
        return functools.partial(torch.nn.Module.__call__, module)

    @functools.wraps(module.forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        # Module.__call__ calls self.forward, which an instance attribute overrides.
        namespace = module.__dict__
        had, before = "forward" in namespace, namespace.get("forward")
        after, ahead = (_HooksInForm(module, name) for name in HOOKS)

        def between_hooks(_: torch.nn.Module, *given: Any, **named: Any) -> Any:
            namespace["forward"] = types.MethodType(rewritten, module)
            ahead.leave()
            try:
                return rewritten(module, *given, **named)
            finally:
                after.enter()

        namespace["forward"] = types.MethodType(between_hooks, module)
        ahead.enter()
        try:
            return torch.nn.Module.__call__(module, *args, **kwargs)
        finally:
            ahead.leave()
            after.leave()
            if had:
                namespace["forward"] = before
            else:
                namespace.pop("forward", None)

    return run


def _of_packed_sequences(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Torch's ``forward`` of a recurrent module, or what stands for it where a packed sequence is given."""

    @functools.wraps(forward)
    def run(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        staged = MODE.capture is not None and is_packed(args, kwargs)
        return (over_packed if staged else forward)(module, *args, **kwargs)

    return run


class _HooksInForm:
    """One registry of a module's hooks, which holds what calls them as converted code while torch looks into it.

    The user's code finds the hooks themselves there: torch has looked when the first of them is called.
    """

    def __init__(self, module: torch.nn.Module, name: str) -> None:
        self._module, self._name = module, name
        self._replaced: list[tuple[int, Callable[..., Any]]] = []

    def enter(self) -> None:
        for key, hook in self._hooks.items():
            self._hooks[key] = functools.partial(self._called, _hook_form(self._module, self._name, key), hook)
            self._replaced.append((key, hook))

    def leave(self) -> None:
        for key, hook in self._replaced:
            self._hooks[key] = hook
        self._replaced = []

    @property
    def _hooks(self) -> dict[int, Any]:
        found: dict[int, Any] = self._module.__dict__.get(self._name, {})
        return found

    def _called(self, form: Callable[..., Any], hook: Callable[..., Any], *args: Any) -> Any:
        self.leave()
        return form(hook, *args)


def _hook_form(module: torch.nn.Module, group: str, key: int) -> Callable[..., Any]:
    """What calls a hook and makes of its result what the module goes on with."""
    form: Any = output_after
    if group == "_forward_pre_hooks":
        both = key in module.__dict__.get("_forward_pre_hooks_with_kwargs", ())
        form = all_arguments_after if both else arguments_after
    return rewrite(form)


def called_as_a_whole(module: torch.nn.Module) -> bool:
    """Whether a call of a module is more than its forward: there are hooks, or it has a ``__call__`` of its own."""
    own = type(module).__call__ is not torch.nn.Module.__call__ or any(module.__dict__.get(name) for name in HOOKS)
    return own or any(getattr(torch.nn.modules.module, f"_global{name}", None) for name in HOOKS)


def register_buffer(
    capture: Session, method: types.MethodType, name: str, tensor: torch.Tensor | None, persistent: bool = True
) -> None:
    """``module.register_buffer``: the store to an attribute that it is, where the module has that buffer already."""
    owner = method.__self__
    assert isinstance(owner, torch.nn.Module)
    if capture.depth > 1 and name in owner._buffers and persistent is (name not in owner._non_persistent_buffers_set):
        setattr(capture.target(owner), name, tensor)
        return
    refuse_registering(capture, owner, method.__name__)
    if name not in owner._buffers and id(owner) in current().part(ModelModules).known:
        raise LeakedValueError(
            f"the model gets a buffer {name!r} by its call: a program has those that it was exported with",
            hint="register the buffer in __init__, and assign to it here, or keep the value in a plain attribute",
        )
    method(name, tensor, persistent)


def moved(method: Callable[..., Any], module: torch.nn.Module, /, *args: Any, **kwargs: Any) -> torch.nn.Module:
    """``module.to(...)``, ``float()`` and their like: the module itself, where that changes none of its tensors.

    Raises:
        ModeSwitchError: some would have another dtype, or be on another device.
    """
    tensors = {(each.dtype, each.device) for each in (*module.parameters(), *module.buffers())}
    with outside_the_trace():
        probe = torch.nn.Module()
        for i, (dtype, device) in enumerate(tensors):
            probe.register_buffer(f"tensor{i}", torch.empty(0, dtype=dtype, device=device))
        method(probe, *args, **kwargs)
    if {(each.dtype, each.device) for each in probe.buffers()} != tensors:
        raise ModeSwitchError(
            f"{method.__name__}() gives the tensors of a module another dtype, or another device, while it is traced",
            hint="call it before the model is exported; a program has its parameters as they are then",
        )
    return module
