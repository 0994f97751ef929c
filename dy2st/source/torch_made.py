"""What torch makes of a function or module: compiled ones, and ones that run in a mode. Whose Python source is it?

Three kinds. What ``torch.compile`` and ``torch.jit.script`` make of a function still knows the function: that is what
is converted, and so is the module that a ``DataParallel`` without devices calls. What torch's decorators make
(``torch.no_grad()``) runs more than the function and is converted with it; its source is the function's. What
``torch.jit`` makes of a module, and what it loads, is TorchScript: there is no Python to convert.

This imports no torch: where it is not loaded, nothing is torch's.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from dy2st.errors import NoSourceError
from dy2st.source.user_frames import is_users

# Attributes of torch's own (2.13), private to its compilers.
_SCRIPTED_FROM = "_torchdynamo_inline"
_COMPILED_FROM = "_torchdynamo_orig_callable"


def behind_a_compiler(thing: Any) -> Any:
    """The Python function or module behind one that torch has made of it and that does the same, or None."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(thing, torch.jit.ScriptFunction):
        # A traced one knows its function, too, but does what that did once; only script gives a name.
        return getattr(thing, _SCRIPTED_FROM, None) if "__name__" in thing.__dict__ else None
    if isinstance(thing, types.FunctionType):
        return thing.__dict__.get(_COMPILED_FROM)
    if isinstance(thing, torch.nn.DataParallel) and _only_calls(thing):
        return thing.module
    optimized = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)
    return thing._orig_mod if optimized is not None and isinstance(thing, optimized) else None


def _only_calls(parallel: Any) -> bool:
    """Whether a ``DataParallel`` calls its module and does nothing else: it has one device, and no hooks of its own."""
    return not (parallel.device_ids or parallel._forward_hooks or parallel._forward_pre_hooks)


def in_python(thing: Any) -> Any:
    """What is converted in place of a model: what a compiler made it from, else the model itself.

    Raises:
        NoSourceError: it is TorchScript.
    """
    while (found := behind_a_compiler(thing)) is not None:
        thing = found
    kind = _torchscript(thing)
    if kind:
        raise NoSourceError(
            f"{kind} was made by torch.jit: TorchScript has no Python source that could be converted",
            hint="the module or function that it was made from",
        )
    return thing


def require_python(module: Any) -> None:
    """Accept a module that is called in a model, unless torch.export can't follow it.

    Raises:
        NoSourceError: it was made by ``torch.jit.script``, or loaded. (A traced one has no conditions to lose.)
    """
    torch = sys.modules["torch"]
    if isinstance(module, torch.jit.RecursiveScriptModule):
        in_python(module)


def _torchscript(thing: Any) -> str:
    """What a piece of TorchScript is called; empty for anything else."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    if isinstance(thing, torch.jit.ScriptModule):
        return f"a module ({getattr(thing, 'original_name', 'torch.jit.ScriptModule')})"
    if isinstance(thing, (torch.jit.ScriptFunction, torch._C.ScriptMethod)):
        return f"a function ({thing.name})"
    return ""


def shown(function: types.FunctionType) -> types.FunctionType:
    """The function whose source is shown for one: what torch's, or the standard library's, decorator was put around."""
    while not is_users(function.__code__.co_filename):
        wrapped = behind_a_compiler(function) or function.__dict__.get("__wrapped__")
        if not isinstance(wrapped, types.FunctionType):
            break
        function = wrapped
    return function
