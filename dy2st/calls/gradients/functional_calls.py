"""``torch.func.functional_call``: torch swaps the tensors of a module, and what is called meanwhile is converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.builtins.overloads import stands_for
from dy2st.staging.session import MODE

_NATIVE = torch.func.functional_call


@stands_for(torch.func.functional_call)
def functional_call(
    module: torch.nn.Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's call with other tensors.

    They are written back to the dict as they are after the call, as torch does.
    """
    capture = MODE.capture
    called = module if capture is None else _calling(module, capture.call(module))
    if capture is not None:
        capture.touch_content(parameter_and_buffer_dicts)
    return _NATIVE(called, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def _calling(module: torch.nn.Module, converted: Callable[..., Any]) -> torch.nn.Module:
    """Another view of a module, of the very same attributes, whose call is what stands for the module's."""
    kind: Any = type(
        type(module).__name__, (type(module),), {"__call__": lambda _, *args, **kwargs: converted(*args, **kwargs)}
    )
    made: torch.nn.Module = kind.__new__(kind)
    object.__setattr__(made, "__dict__", module.__dict__)
    return made
