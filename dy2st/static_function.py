"""``to_static``: a function, method or module that runs as a program, captured wherever what it reads has changed."""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

import torch

from dy2st.conversion import STATIC_CLASS_OF, derived_class, undo
from dy2st.errors import UsageError
from dy2st.source.torch_made import in_python
from dy2st.static.function import Options, StaticFunction
from dy2st.static.other_tracers import TracedByOthers
from dy2st.static.specs import ArgumentSpecs

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
        return (
            to_static(undo(fn_or_module), input_spec=input_spec, backend=backend, freeze=freeze)
            if given
            else fn_or_module
        )
    if isinstance(fn_or_module, type) and issubclass(fn_or_module, torch.nn.Module):
        fn_or_module.forward = StaticFunction(fn_or_module.forward, options)
        return fn_or_module
    if isinstance(fn_or_module, (staticmethod, classmethod)):
        return type(fn_or_module)(StaticFunction(fn_or_module.__func__, options))
    if isinstance(fn_or_module, types.MethodType):
        return StaticFunction(fn_or_module.__func__, options).__get__(fn_or_module.__self__)
    if isinstance(fn_or_module, torch.nn.Module):
        return _static_module(fn_or_module, options)
    if inspect.iscoroutinefunction(fn_or_module) or inspect.isgeneratorfunction(fn_or_module):
        kind = "an async function" if inspect.iscoroutinefunction(fn_or_module) else "a generator"
        raise UsageError(
            f"{fn_or_module.__qualname__} is {kind}: what it does between two steps is no program's",
            hint="make static what it calls",
        )
    if not callable(fn_or_module) or isinstance(fn_or_module, type):
        raise UsageError(f"to_static takes a function, a method or a module, not {fn_or_module!r}")
    return StaticFunction(fn_or_module, options)


class _OfForward:
    """An attribute of a module that is one of its static forward; the empty name is the module as it was.

    Being no property, it gives way to an attribute of the module itself.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        if module is None:
            return self
        return getattr(module.forward, self.name) if self.name else undo(module)


class _StaticForward:
    """The forward of a static module: the class's, or the one that is set on the module itself."""

    def __init__(self, cls: type, options: Options) -> None:
        self._class, self._options = cls, options
        self._made: dict[Any, StaticFunction] = {}

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        own = None if module is None else module.__dict__.get("forward")
        function = getattr(own, "__func__", own) or self._class.forward  # type: ignore[attr-defined]
        if function not in self._made:
            self._made[function] = StaticFunction(function, self._options)
        static = self._made[function]
        # A function that is set on the module itself is called without it.
        return static if function is own else static.__get__(module, cls)

    def __set__(self, module: Any, value: Any) -> None:
        module.__dict__["forward"] = value

    def __delete__(self, module: Any) -> None:
        del module.__dict__["forward"]


def _static_module(module: torch.nn.Module, options: Options) -> torch.nn.Module:
    """Another view of the module, with the same attributes, whose class has a static forward.

    It has ``code``, ``export``, ``to_onnx`` and ``original``, too. A name that the module has itself stays its own.
    """
    cls = type(module)
    extras = {name: _OfForward(name) for name in ("code", "export", "to_onnx") if not hasattr(module, name)}
    if not hasattr(module, "original"):
        extras["original"] = _OfForward("")
    namespace: dict[str, Any] = {"forward": _StaticForward(cls, options), STATIC_CLASS_OF: cls, **extras}
    namespace["__prepare_scriptable__"] = TracedByOthers.__prepare_scriptable__
    remake = functools.partial(_static_module, options=options)
    view: torch.nn.Module = object.__new__(derived_class(cls, namespace, remake))
    view.__dict__ = module.__dict__
    return view
