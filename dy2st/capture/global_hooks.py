"""Hooks of all modules (``register_module_forward_hook``) run for the user's modules alone while one is exported.

``torch.export`` calls what it is given by modules of its own, and a function has a module of ours around it. In eager
code there are none of these, so a hook that changes results must not see them. The hooks stay where they are: other
threads may call modules meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from dy2st.operators.export_session import current

_REGISTRIES = (
    torch_module._global_forward_pre_hooks,
    torch_module._global_forward_hooks,
    torch_module._global_backward_pre_hooks,
    torch_module._global_backward_hooks,
)
# Where classes are at home of which an export makes modules.
_HOMES = ("torch.export", "torch._export", "torch._functorch", "dy2st")


@contextlib.contextmanager
def hooks_for_models() -> Iterator[None]:
    """While an export's own modules are left out."""
    before = [dict(registry) for registry in _REGISTRIES]
    for registry in _REGISTRIES:
        for key, hook in registry.items():
            registry[key] = _for_models(hook)
    try:
        yield
    finally:
        for registry, held in zip(_REGISTRIES, before, strict=True):
            for key, hook in held.items():
                if key in registry:  # else it was removed meanwhile
                    registry[key] = hook


def _for_models(hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def unless_of_an_export(module: torch.nn.Module, *args: Any) -> Any:
        home = f"{type(module).__module__}."
        if home.startswith(tuple(f"{each}." for each in _HOMES)):
            return None
        capture = current().capture  # a hook of the user's may have control flow, too
        return (hook if capture is None else capture.call(hook))(module, *args)

    return unless_of_an_export
