"""Torch's modes around a call: what decides, beside values, what an operator does and what a module's call runs.

Where torch itself transforms what is called (``torch.func``, forward-mode derivatives, a compiler, fake tensors),
no program stands for it: :func:`is_transformed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C._dynamo.guards import GlobalStateGuard
from torch.autograd import forward_ad
from torch.nn.modules import module as torch_module

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
        ("hooks of all modules", tuple(Same(hook) for hook in _global_hooks())),
    )


def _function_modes() -> list[Any]:
    count = torch._C._len_torch_function_stack()
    return [torch._C._get_function_stack_at(i) for i in range(count)]


def _global_hooks() -> list[Any]:
    return [hook for name in _HOOKS for hook in getattr(torch_module, name).values()]


def unchanged_modes() -> Callable[[], bool]:
    """A function that says in a microsecond whether the modes are what they are now."""
    state, inference, stack = GlobalStateGuard(), torch.is_inference_mode_enabled(), _function_modes()
    hooks = [(getattr(torch_module, name), list(getattr(torch_module, name).values())) for name in _HOOKS]
    length, at = torch._C._len_torch_function_stack, torch._C._get_function_stack_at
    count, same_state, same_inference = len(stack), state.check, torch.is_inference_mode_enabled

    def unchanged() -> bool:
        if not same_state() or same_inference() is not inference or length() != count:
            return False
        if count and any(at(i) is not mode for i, mode in enumerate(stack)):
            return False
        return all(len(now) == len(before) and list(now.values()) == before for now, before in hooks)

    return unchanged


def is_transformed() -> bool:
    """Whether torch looks at what is called, or stands for a part of it."""
    return (
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
        or torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
    )
