"""``to_static``: a function, method or module that runs as a program, captured wherever what it reads has changed."""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

import torch

from dy2st.conversion import STATIC_CLASS_OF, undo
from dy2st.errors import UsageError
from dy2st.source.torch_made import in_python
from dy2st.static.function import StaticFunction
from dy2st.static.module_view import shown_by, static_module
from dy2st.static.specs import ArgumentSpecs, Options

if TYPE_CHECKING:
    from collections.abc import Collection


def to_static(
    fn_or_module: Any = None,
    *,
    input_spec: Any = None,
    backend: str = "eager",
    freeze: bool | Collection[str] = (),
) -> Any:
    """Make calls run as a program, captured on the first call and wherever something that it has read has changed.

    What the code can read is looked at before each call: the arguments (dtypes, shapes and strides of tensors, other
    values by value), torch's modes, and all that the code names: globals, variables of closures, defaults, attributes
    of ``self`` and of other objects, items of containers, members of classes, functions that are called, submodules and
    their hooks. A program runs where all of it is what it was; otherwise another one is looked for, or captured.
    Tensors that the code reads from anywhere are inputs of the program: their values, and their gradients, are always
    those of now. A function that is captured over and over warns once (``dy2st.errors.RetracingWarning``), and says
    what keeps changing.

    Where torch itself transforms the call (``torch.func``, forward-mode derivatives, ``torch.compile``), the function
    runs as it is. So does one that talks with other processes (``all_reduce``, the forward of
    ``DistributedDataParallel``), and one that reads tensors whose operators Python answers (``DTensor``): make static
    what is inside of these. Under ``DistributedDataParallel``, and where ``fully_shard`` has gathered all parameters
    that it reads, a static module runs its program.

    The backend ``"onnxruntime"`` writes each program as ONNX when it is captured and compares its first run with the
    program. Weights, like all that the code reads, are inputs of the file, bound to torch's memory in each run: a
    change of them is seen however it was done, which costs what onnxruntime would make of constants ahead of time.
    Results are not copied, and are memory of their own; what the code writes to buffers and arguments is written when
    a run is over. It does not differentiate: call it under ``torch.no_grad()``, or where nothing requires gradients.
    Threads are as many as torch has when the program is captured.

    Args:
        fn_or_module: a function, a method (in a class body too), an ``nn.Module``, or an ``nn.Module`` class. Without
            it, the result is a decorator. A module comes back as another view of the same module: what changes in one
            (a parameter, a mode, an attribute) changes in the other.
        input_spec: a spec for each argument, by position or by name, such as ``"x=f32[batch,3]"``: its named dimensions
            are dynamic, so that one program serves all sizes. Also ``((None, 3), torch.float32)``, whose sizes are
            numbers, names, ``torch.export.Dim`` or None for any; a tensor, whose sizes are fixed; lists and dicts of
            specs. Without one, sizes that are seen to change are left open from the second one on.
        backend: ``"eager"`` runs the program's graph op by op; ``"onnxruntime"`` runs it on onnxruntime, for inference
            on the CPU: see below. Any other name is one of ``torch.compile``'s backends.
        freeze: names of globals, variables and attributes that are read once, when the program is captured; True for
            all globals and variables of closures. ``dy2st.constant(value)`` says so of one value.

    Raises:
        InputSpecError: a spec does not parse.
        UsageError: the object is not callable.
        LostStateError: (on a call) the code stores what a program can't: an attribute that is no buffer, a global. What
            only a first call fills is filled by eager, which makes that call.
        UnguardedError: (on a call) the code reads what can't be compared: a clock, a file, an iterator.
        BackendError: (on a call) onnxruntime can't run it as eager does: gradients, random numbers, other devices.
        ParityError: (on the first call of a program) onnxruntime gives something else than the program.
    """
    if fn_or_module is None:
        return functools.partial(to_static, input_spec=input_spec, backend=backend, freeze=freeze)
    fn_or_module = in_python(fn_or_module)
    options = Options(ArgumentSpecs(input_spec), backend, freeze if isinstance(freeze, bool) else frozenset(freeze))
    given = input_spec is not None or backend != "eager" or bool(freeze)
    if isinstance(fn_or_module, StaticFunction) or hasattr(type(fn_or_module), STATIC_CLASS_OF):
        # Made static again, it takes the options that it is given now.
        if not given:
            return fn_or_module
        shown = shown_by(fn_or_module) if isinstance(fn_or_module, torch.nn.Module) else undo(fn_or_module)
        return to_static(shown, input_spec=input_spec, backend=backend, freeze=freeze)
    if isinstance(fn_or_module, type) and issubclass(fn_or_module, torch.nn.Module):
        fn_or_module.forward = StaticFunction(fn_or_module.forward, options)
        return fn_or_module
    if isinstance(fn_or_module, (staticmethod, classmethod)):
        return type(fn_or_module)(StaticFunction(fn_or_module.__func__, options))
    if isinstance(fn_or_module, types.MethodType):
        return StaticFunction(fn_or_module.__func__, options).__get__(fn_or_module.__self__)
    if isinstance(fn_or_module, torch.nn.Module):
        return static_module(fn_or_module, options)
    if inspect.iscoroutinefunction(fn_or_module) or inspect.isgeneratorfunction(fn_or_module):
        kind = "an async function" if inspect.iscoroutinefunction(fn_or_module) else "a generator"
        raise UsageError(
            f"{fn_or_module.__qualname__} is {kind}: what it does between two steps is no program's",
            hint="make static what it calls",
        )
    if not callable(fn_or_module) or isinstance(fn_or_module, type):
        raise UsageError(f"to_static takes a function, a method or a module, not {fn_or_module!r}")
    return StaticFunction(fn_or_module, options)
