"""``to_static``: a function, method or module that runs as a program, captured once for each input signature."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
import types
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.conversion import STATIC_OF, code, derived_class, shallow_copy
from dy2st.errors import InputSpecError, UsageError
from dy2st.input_spec import InputSpec, dynamic_shapes, example_tensors, parse_input_spec
from dy2st.operators import call
from dy2st.operators.mode import MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from pathlib import Path

    from torch.export import ExportedProgram

    Specs = Sequence[str | InputSpec | None] | Mapping[str, str | InputSpec | None]

_STATIC_CLASS_OF = "__dy2st_static_class_of__"


def to_static(fn_or_module: Any = None, *, input_spec: Specs | None = None, backend: str = "eager") -> Any:
    """Make calls run as an exported program that is captured on the first call with each input signature.

    A signature is the dtype and shape of every tensor, the value of every other argument, the train or eval mode of
    the module and its children, and whether gradients are recorded. What the code reads from elsewhere (attributes that
    are no tensors, globals, closures) is in the program as it was when it was captured.

    Args:
        fn_or_module: a function, a method (in a class body too), an ``nn.Module``, or an ``nn.Module`` class. Without
            it, the result is a decorator. A module comes back as a shallow copy that shares its parameters.
        input_spec: a spec for each argument, by position or by name, such as ``"x=f32[batch,3]"``: its named dimensions
            are dynamic, so that one program serves all sizes. None leaves an argument's shape fixed.
        backend: ``"eager"`` runs the program's graph op by op; any other name is one of ``torch.compile``'s backends.

    Raises:
        InputSpecError: a spec does not parse.
        UsageError: the object is not callable; or, on a call, an argument is neither hashable nor a tensor.
    """
    if fn_or_module is None:
        return functools.partial(to_static, input_spec=input_spec, backend=backend)
    specs = _parsed(input_spec)
    if isinstance(fn_or_module, StaticFunction) or hasattr(type(fn_or_module), _STATIC_CLASS_OF):
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
        programs: dict[Hashable, tuple[ExportedProgram, Callable[..., Any]]] | None = None,
    ) -> None:
        """``owner`` is the object that a method is bound to, ``programs`` are those captured for it so far."""
        self._function = function
        self._specs = dict(specs or {})
        self._backend = backend
        self._owner = owner
        self._programs = {} if programs is None else programs
        self._bound: dict[int, tuple[Any, dict[Hashable, Any]]] = {}
        self._lock = threading.RLock()
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments; capture it first if there is none. Under a capture, take part in it."""
        if MODE.capture is not None:
            return call(self._native())(*args, **kwargs)
        bound = self.__signature__.bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs  # a program takes its arguments in the form in which it was captured
        key = self._signature_key(dict(bound.arguments))
        with self._lock:
            if key not in self._programs:
                program = self._captured(args, kwargs)
                run: Callable[..., Any] = program.module()
                if self._backend != "eager":
                    run = torch.compile(run, backend=self._backend)
                self._programs[key] = (program, run)
        return self._programs[key][1](*args, **kwargs)

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
    def programs(self) -> list[ExportedProgram]:
        """The programs captured so far, oldest first."""
        return [program for program, _ in self._programs.values()]

    def export(self, *args: Any, **kwargs: Any) -> ExportedProgram:
        """The program for these arguments; without any, for examples made from ``input_spec``.

        Raises:
            UsageError: there are neither arguments nor an ``input_spec``.
            Dy2stError: see ``dy2st.export``.
        """
        from dy2st.capture import export

        args, kwargs = self._arguments(args, kwargs)
        return export(self._callee(), args, kwargs, dynamic_shapes=self._dynamic_shapes(args, kwargs))

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedProgram:
        """A program to run: other backends want torch's operators for loops; ours know their gradients better."""
        from dy2st.capture import capture_program, export

        capture = capture_program if self._backend == "eager" else export
        return capture(self._callee(), args, kwargs, dynamic_shapes=self._dynamic_shapes(args, kwargs))

    def to_onnx(self, f: str | Path | None = None, *args: Any, **kwargs: Any) -> torch.onnx.ONNXProgram:
        """Write the model as ONNX for these arguments, or for examples made from ``input_spec``.

        Raises:
            UsageError: there are neither arguments nor an ``input_spec``.
            Dy2stError: see ``dy2st.onnx.export``.
        """
        import dy2st.onnx

        args, kwargs = self._arguments(args, kwargs)
        shapes = self._dynamic_shapes(args, kwargs)
        return dy2st.onnx.export(self._callee(), args, f, kwargs=kwargs, dynamic_shapes=shapes)

    def _native(self) -> Callable[..., Any]:
        return self._function if self._owner is None else types.MethodType(self._function, self._owner)

    def _callee(self) -> Any:
        """What is captured: a module whose forward this is keeps the names of its parameters."""
        whole = isinstance(self._owner, torch.nn.Module) and self.__name__ == "forward"
        return self._owner if whole else self._native()

    def _programs_of(self, instance: Any) -> dict[Hashable, Any]:
        """The programs of one instance, dropped with it. The key is its identity: instances may not be hashable."""
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        programs: dict[Hashable, Any] = {}
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

    def _signature_key(self, bound: dict[str, Any]) -> Hashable:
        dynamic = dict(zip(self._parameter_names(), self._specs.values(), strict=True))
        leaves, structure = pytree.tree_flatten_with_path(bound)
        parts = []
        for path, leaf in leaves:
            spec = dynamic.get(getattr(path[0], "key", "")) if len(path) == 1 else None
            parts.append(_leaf_key(leaf, spec))
        owner = self._owner
        modes = tuple(m.training for m in owner.modules()) if isinstance(owner, torch.nn.Module) else ()
        return str(structure), tuple(parts), modes, torch.is_grad_enabled()


def _leaf_key(leaf: Any, spec: InputSpec | None) -> Hashable:
    if not isinstance(leaf, torch.Tensor):
        try:
            hash(leaf)
        except TypeError as error:
            raise UsageError(f"an argument of type {type(leaf).__name__} can't be told from others by value") from error
        return type(leaf), leaf
    names = [] if spec is None else [dimension.name for dimension in spec.dimensions]
    free = [index < len(names) and names[index] is not None for index in range(leaf.dim())]
    shape = tuple("*" if wild else size for size, wild in zip(leaf.shape, free, strict=True))
    return leaf.dtype, str(leaf.device), shape, leaf.requires_grad


def _parsed(input_spec: Specs | None) -> dict[int | str, InputSpec]:
    if input_spec is None:
        return {}
    if isinstance(input_spec, (str, InputSpec)):
        input_spec = [input_spec]
    pairs: Any = input_spec.items() if hasattr(input_spec, "items") else enumerate(input_spec)
    return {key: parse_input_spec(spec) if isinstance(spec, str) else spec for key, spec in pairs if spec is not None}


def _static_module(module: torch.nn.Module, specs: dict[int | str, InputSpec], backend: str) -> torch.nn.Module:
    """A copy whose class has a static forward, and ``code``, ``export`` and ``to_onnx`` that belong to it."""
    cls = type(module)
    namespace = {
        "forward": StaticFunction(cls.forward, specs, backend),
        "code": property(lambda self: self.forward.code),
        "export": lambda self, *args, **kwargs: self.forward.export(*args, **kwargs),
        "to_onnx": lambda self, f=None, *args, **kwargs: self.forward.to_onnx(f, *args, **kwargs),
        _STATIC_CLASS_OF: cls,
    }
    clone = shallow_copy(module)
    own = clone.__dict__.pop("forward", None)
    if own is not None:  # forward was set on the instance
        namespace["forward"] = StaticFunction(getattr(own, "__func__", own), specs, backend)
    remake = functools.partial(_static_module, specs=specs, backend=backend)
    clone.__class__ = derived_class(cls, namespace, remake)
    return clone  # type: ignore[no-any-return]
