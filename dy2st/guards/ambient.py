"""Torch's modes around a call: what decides, beside values, what an operator does and what a module's call runs.

Where torch itself transforms what is called (``torch.func``, forward-mode derivatives, a compiler, fake tensors),
no program stands for it: :func:`is_transformed`.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._C._dynamo.guards import GlobalStateGuard
from torch.autograd import forward_ad
from torch.nn.modules import module as torch_module
from torch.utils._device import DeviceContext

from dy2st.guards.namespaces import TORCHS
from dy2st.guards.source import Same

_HOOKS = ("_global_forward_pre_hooks", "_global_forward_hooks", "_global_backward_pre_hooks", "_global_backward_hooks")
_KINDS = ("cpu", "cuda")


def modes() -> tuple[tuple[str, Any], ...]:
    """The modes as pairs of a name in words and a hashable value."""
    return (
        ("the mode of gradients", torch.is_grad_enabled()),
        ("inference mode", torch.is_inference_mode_enabled()),
        ("the default dtype", torch.get_default_dtype()),
        ("the default device", torch.get_default_device()),
        ("autocast", tuple(torch.get_autocast_dtype(k) if torch.is_autocast_enabled(k) else None for k in _KINDS)),
        ("deterministic algorithms", torch.are_deterministic_algorithms_enabled()),
        ("torch's modes", tuple(Same(mode) for mode in _function_modes())),
        ("functions of torch's", TORCHS.number()),
        ("hooks of all modules", tuple(Same(hook) for hook in _global_hooks())),
    )


def _function_modes() -> list[Any]:
    count = torch._C._len_torch_function_stack()
    return [torch._C._get_function_stack_at(i) for i in range(count)]


def _global_hooks() -> list[Any]:
    return [hook for name in _HOOKS for hook in getattr(torch_module, name).values()]


def modes_unchanged(space: dict[str, Any]) -> str:
    """An expression that says in a microsecond whether the modes are what they are now; its names go to ``space``."""
    stack = _function_modes()
    hooks = {f"hooks_{i}": getattr(torch_module, name) for i, name in enumerate(_HOOKS)}
    held = {f"held_{i}": list(each.values()) for i, each in enumerate(hooks.values())}
    space.update(
        **hooks,
        **held,
        same_state=GlobalStateGuard().check,
        inference=torch.is_inference_mode_enabled,
        modes_now=_function_modes,
        modes_then=stack,
        stack_length=torch._C._len_torch_function_stack,
    )
    tests = [TORCHS.unchanged(space), "same_state()", f"inference() is {torch.is_inference_mode_enabled()}"]
    tests.append("all(map(is_, modes_now(), modes_then))" if stack else "stack_length() == 0")
    if stack:
        space["is_"] = operator.is_
        tests.append(f"stack_length() == {len(stack)}")
    for i, each in enumerate(held.values()):
        tests.append(f"list(hooks_{i}.values()) == held_{i}" if each else f"not hooks_{i}")
    return " and ".join(tests)


def is_transformed() -> bool:
    """Whether torch looks at what is called, or stands for a part of it."""
    return (
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
        or not all(isinstance(mode, DeviceContext) for mode in _function_modes())
        or forward_ad._current_level >= 0
        or torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
    )
