"""``to_static``: a function, method or module that runs as a program, captured once for each input signature."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
import types
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

import dy2st.onnx
from dy2st.call_signature import advice, call_signature, changed, shown_value
from dy2st.capture.program import LOST, capture_program, export
from dy2st.conversion import STATIC_CLASS_OF, STATIC_OF, code, derived_class, shallow_copy, undo
from dy2st.errors import CaptureError, InputSpecError, LostStateError, RetracingWarning, UsageError
from dy2st.input_spec import InputSpec, dynamic_shapes, example_tensors, parse_input_spec
from dy2st.operators import call
from dy2st.operators.export_session import current

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from pathlib import Path

    from torch.export import ExportedProgram

    from dy2st.call_signature import Signature

    Specs = Sequence[str | InputSpec | None] | Mapping[str, str | InputSpec | None]

# After so many captures of one function it is worth a warning.
MANY_PROGRAMS = 6


def to_static(fn_or_module: Any = None, *, input_spec: Specs | None = None, backend: str = "eager") -> Any:
    """Make calls run as an exported program that is captured on the first call with each input signature.

    A signature is the dtype and shape of every tensor, the value of every other argument, the numbers and texts among
    the attributes of the object that a method belongs to (of a module's children too), the train or eval mode, and
    torch's modes (gradients, autocast, default dtype). What the code reads from elsewhere (globals, closures) is in the
    program as it was when it was captured. Another signature means another capture; a function that is captured over
    and over warns once (``dy2st.errors.RetracingWarning``), and says what keeps changing.

    Args:
        fn_or_module: a function, a method (in a class body too), an ``nn.Module``, or an ``nn.Module`` class. Without
            it, the result is a decorator. A module comes back as a shallow copy that shares its parameters.
        input_spec: a spec for each argument, by position or by name, such as ``"x=f32[batch,3]"``: its named dimensions
            are dynamic, so that one program serves all sizes. None leaves an argument's shape fixed.
        backend: ``"eager"`` runs the program's graph op by op; any other name is one of ``torch.compile``'s backends.

    Raises:
        InputSpecError: a spec does not parse.
        UsageError: the object is not callable; or, on a call, an argument is neither hashable nor a tensor.
        LostStateError: (on a call) the code stores what a program can't: an attribute that is no buffer, a global.
    """
    if fn_or_module is None:
        return functools.partial(to_static, input_spec=input_spec, backend=backend)
    specs = _parsed(input_spec)
    if isinstance(fn_or_module, StaticFunction) or hasattr(type(fn_or_module), STATIC_CLASS_OF):
        return fn_or_module
    if isinstance(fn_or_module, type) and issubclass(fn_or_module, torch.nn.Module):
        fn_or_module.forward = StaticFunction(fn_or_module.forward, specs, backend)
        return fn_or_module
    if isinstance(fn_or_module, (staticmethod, classmethod)):
        return type(fn_or_module)(StaticFunction(fn_or_module.__func__, specs, backend))
    if isinstance(fn_or_module, types.MethodType):
        return StaticFunction(fn_or_module.__func__, specs, backend).__get__(fn_or_module.__self__)
    if isinstance(fn_or_module, torch.nn.Module):
        return _static_module(fn_or_module, specs, backend)
    if not callable(fn_or_module) or isinstance(fn_or_module, type):
        raise UsageError(f"to_static takes a function, a method or a module, not {fn_or_module!r}")
    return StaticFunction(fn_or_module, specs, backend)


class StaticFunction:
    """What :func:`to_static` makes of a function or method. As a class attribute it binds like a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        specs: Mapping[int | str, InputSpec] | None = None,
        backend: str = "eager",
        *,
        owner: Any = None,
        programs: Programs | None = None,
    ) -> None:
        """``owner`` is the object that a method is bound to, ``programs`` are those captured for it so far."""
        self._function = function
        self._specs = dict(specs or {})
        self._backend = backend
        self._owner = owner
        self._programs = Programs() if programs is None else programs
        self._bound: dict[int, tuple[Any, Programs]] = {}
        setattr(self, STATIC_OF, function)
        self.__name__ = self.__qualname__ = getattr(function, "__name__", type(function).__name__)
        functools.update_wrapper(self, function)
        if owner is not None:
            self.__self__ = owner
        self.__signature__ = inspect.signature(self._native())

    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        if instance is None or self._owner is not None:
            return self
        return StaticFunction(
            self._function,
            self._specs,
            self._backend,
            owner=instance,
            programs=self._programs_of(instance),
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments; capture it first if there is none. Under a capture, take part in it."""
        if current().capture is not None:
            return call(self._native())(*args, **kwargs)
        bound = self.__signature__.bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs  # a program takes its arguments in the form in which it was captured
        signature = self._signature(dict(bound.arguments))
        key = tuple(signature.items())
        programs = self._programs
        if key not in programs.by_key:
            with programs.lock:
                if key not in programs.by_key:
                    self._capture(key, signature, args, kwargs)
            programs.warn(self.__name__, 2)
        return programs.by_key[key][1](*args, **kwargs)

    def _capture(self, key: Hashable, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        program = self._captured(args, kwargs)
        run: Callable[..., Any] = program.module()
        if self._backend != "eager":
            run = _compiled(run, self._backend)
        self._programs.add(key, signature, program, run)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name, as a function; a bound one by its object and name. Programs are captured anew."""
        return self.__qualname__ if self._owner is None else (getattr, (self._owner, self.__name__))

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """Itself if it is a function; bound to the copy if it belongs to an object that is copied."""
        if self._owner is None:
            return self
        return StaticFunction(self._function, self._specs, self._backend, owner=copy.deepcopy(self._owner, memo))

    @property
    def code(self) -> str:
        """The rewritten source."""
        return code(self._function)

    @property
    def original(self) -> Any:
        """The function or method that this was made from."""
        return undo(self)

    @property
    def programs(self) -> list[ExportedProgram]:
        """The programs captured so far, oldest first."""
        return [program for program, _ in self._programs.by_key.values()]

    def export(self, /, *args: Any, **kwargs: Any) -> ExportedProgram:
        """The program for these arguments; without any, for examples made from ``input_spec``.

        Raises:
            UsageError: there are neither arguments nor an ``input_spec``.
            Dy2stError: see ``dy2st.export``.
        """
        args, kwargs = self._arguments(args, kwargs)
        return export(self._callee(), args, kwargs, dynamic_shapes=self._dynamic_shapes(args, kwargs))

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedProgram:
        """A program to run: other backends want torch's operators for loops; ours know their gradients better."""
        capture = capture_program if self._backend == "eager" else export
        program = capture(self._callee(), args, kwargs, dynamic_shapes=self._dynamic_shapes(args, kwargs))
        lost = program.graph_module.meta.get(LOST)
        if lost:
            what, location = lost[0]
            raise LostStateError(
                f"{self.__name__} changes {what}, which a program can't: to_static would lose it",
                hint="keep tensors in a buffer (register_buffer), pass other values in and return them",
                location=location,
            )
        return program

    def to_onnx(self, f: str | Path | None = None, *args: Any, **kwargs: Any) -> torch.onnx.ONNXProgram:
        """Write the model as ONNX for these arguments, or for examples made from ``input_spec``.

        Raises:
            UsageError: there are neither arguments nor an ``input_spec``.
            Dy2stError: see ``dy2st.onnx.export``.
        """
        args, kwargs = self._arguments(args, kwargs)
        shapes = self._dynamic_shapes(args, kwargs)
        return dy2st.onnx.export(self._callee(), args, f, kwargs=kwargs, dynamic_shapes=shapes)

    def _native(self) -> Callable[..., Any]:
        return self._function if self._owner is None else types.MethodType(self._function, self._owner)

    def _callee(self) -> Any:
        """What is captured: a module whose forward this is keeps the names of its parameters."""
        whole = isinstance(self._owner, torch.nn.Module) and self.__name__ == "forward"
        return self._owner if whole else self._native()

    def _programs_of(self, instance: Any) -> Programs:
        """The programs of one instance, dropped with it. The key is its identity: instances may not be hashable."""
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        programs = Programs()
        try:
            key = id(instance)
            self._bound[key] = (weakref.ref(instance, lambda _: self._bound.pop(key, None)), programs)
        except TypeError:  # no weak references to it: each access has programs of its own
            return programs
        return programs

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args or kwargs or not self.__signature__.parameters:
            return args, kwargs
        if not self._specs:
            raise UsageError(f"{self.__name__}: give example arguments, or an input_spec to make them from")
        tensors = example_tensors(list(self._specs.values()), 0)
        named = dict(zip(self._parameter_names(), tensors, strict=True))
        return (), named

    def _parameter_names(self) -> list[str]:
        """The parameter of each spec, in the specs' order."""
        parameters = list(self.__signature__.parameters)
        names = []
        for key, spec in self._specs.items():
            name = spec.name or (key if isinstance(key, str) else parameters[key] if key < len(parameters) else None)
            if name not in parameters:
                raise InputSpecError(f"{self.__name__} has no parameter {name or key!r}", hint=f"one of {parameters}")
            names.append(name)
        return names

    def _dynamic_shapes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        shapes = dict(zip(self._parameter_names(), self._dimensions(), strict=True))
        if not any(shapes.values()):
            return None
        return {
            name: shapes.get(name) or pytree.tree_map(lambda _: None, value)
            for name, value in self.__signature__.bind(*args, **kwargs).arguments.items()
        }

    def _dimensions(self) -> list[dict[int, Any]]:
        found = dynamic_shapes(list(self._specs.values()))
        return [found.get(position, {}) for position in range(len(self._specs))]

    def _signature(self, bound: dict[str, Any]) -> Signature:
        dynamic = dict(zip(self._parameter_names(), self._specs.values(), strict=True))
        return call_signature(bound, dynamic, self._owner)


def _compiled(run: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """A program compiled on its first call."""
    compiled = torch.compile(run, backend=backend)

    @functools.wraps(run)
    def call_compiled(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except Exception as error:
            if "TorchDynamoException" not in {kind.__name__ for kind in type(error).__mro__}:
                raise
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            gradients = " with gradients" if torch.is_grad_enabled() else ""
            hint = "torch 2.13 compiles no gradients of loops: call it under no_grad, or train with the backend eager"
            raise CaptureError(
                f"{backend} can't compile the program{gradients}: {lines[0]}", hint=hint if gradients else ""
            ) from error

    return call_compiled


class Programs:
    """The programs of one function or object, by signature; what follows from there being many."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.by_key: dict[Hashable, tuple[ExportedProgram, Callable[..., Any]]] = {}
        self.signatures: list[Signature] = []
        self.changes: list[set[str]] = []
        self.warned = False

    def add(self, key: Hashable, signature: Signature, program: ExportedProgram, run: Callable[..., Any]) -> None:
        """Keep a program; count what it differs in from the one that is most like it."""
        if self.signatures:
            differences: list[list[str]] = [changed(old, signature) for old in self.signatures]
            fewest = min(len(labels) for labels in differences)
            self.changes.append(next(set(labels) for labels in differences if len(labels) == fewest))
        self.signatures.append(signature)
        self.by_key[key] = program, run

    def warn(self, name: str, depth: int) -> None:
        """Say once what makes a function be captured over and over; ``depth`` is how far up its caller is."""
        if self.warned or len(self.by_key) < MANY_PROGRAMS:
            return
        always = set.intersection(*self.changes[2 - MANY_PROGRAMS :])
        if not always:
            return
        self.warned = True
        label = min(always)
        values = [shown_value(signature.get(label)) for signature in self.signatures[-3:]]
        warnings.warn(
            f"{name} has been captured {len(self.by_key)} times, and may be again with each call: {label} keeps "
            f"changing ({', then '.join(values)}); {advice(label)}",
            RetracingWarning,
            stacklevel=depth + 1,
        )


def _parsed(input_spec: Specs | None) -> dict[int | str, InputSpec]:
    if input_spec is None:
        return {}
    if isinstance(input_spec, (str, InputSpec)):
        input_spec = [input_spec]
    pairs: Any = input_spec.items() if hasattr(input_spec, "items") else enumerate(input_spec)
    return {key: parse_input_spec(spec) if isinstance(spec, str) else spec for key, spec in pairs if spec is not None}


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


def _static_module(module: torch.nn.Module, specs: dict[int | str, InputSpec], backend: str) -> torch.nn.Module:
    """A copy whose class has a static forward, and ``code``, ``export``, ``to_onnx`` and ``original``.

    A name that the module has itself stays its own.
    """
    cls = type(module)
    extras = {name: _OfForward(name) for name in ("code", "export", "to_onnx") if not hasattr(module, name)}
    if not hasattr(module, "original"):
        extras["original"] = _OfForward("")
    namespace: dict[str, Any] = {"forward": StaticFunction(cls.forward, specs, backend), STATIC_CLASS_OF: cls, **extras}
    clone = shallow_copy(module)
    own = clone.__dict__.pop("forward", None)
    if own is not None:  # forward was set on the instance
        namespace["forward"] = StaticFunction(getattr(own, "__func__", own), specs, backend)
    remake = functools.partial(_static_module, specs=specs, backend=backend)
    clone.__class__ = derived_class(cls, namespace, remake)
    return clone  # type: ignore[no-any-return]
