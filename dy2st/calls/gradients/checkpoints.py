"""``torch.utils.checkpoint``: calls whose intermediate values eager computes twice. A program needs not do so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils.checkpoint as native

from dy2st.calls.builtins.overloads import stands_for
from dy2st.calls.gradients.flags import may_want_gradients
from dy2st.calls.outside_world import Constants
from dy2st.operators.export_session import current
from dy2st.staging.session import MODE

_NATIVE = native.checkpoint
_NATIVE_SEQUENCE: Any = native.checkpoint_sequential


@stands_for(native.checkpoint)
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Any = native.noop_context_fn,
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """``function(*args)``; what warns, and what a context is made for, is torch's own.

    The reentrant variant has no gradients where none of its arguments wants one, and says so in each call.
    """
    capture = MODE.capture
    known = "preserve_rng_state", "determinism_check", "early_stop"
    options = {name: kwargs.pop(name) for name in known if name in kwargs}
    asks = context_fn is not native.noop_context_fn or debug or use_reentrant is None or (use_reentrant and kwargs)
    if capture is None or asks or not _is_its_function(use_reentrant, args):
        options |= {"use_reentrant": use_reentrant, "context_fn": context_fn, "debug": debug}
        return _NATIVE(function, *args, **options, **kwargs)
    return capture.call(function)(*args, **kwargs)


@stands_for(native.checkpoint_sequential)
def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,  # noqa: A002
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """The functions, one after the other."""
    capture = MODE.capture
    if capture is None or use_reentrant is None or not _is_its_function(use_reentrant, (input,)):
        return _NATIVE_SEQUENCE(functions, segments, input, use_reentrant=use_reentrant, **kwargs)
    for function in functions.children() if isinstance(functions, torch.nn.Sequential) else functions:
        input = capture.call(function)(input)  # noqa: A001
    return input


def _is_its_function(use_reentrant: bool | None, args: Sequence[Any]) -> bool:
    """Whether a checkpoint does what its function does, its gradients and warnings included."""
    capture = MODE.capture
    assert capture is not None
    return not use_reentrant or current().part(Constants).everything or may_want_gradients(capture, args)
