"""A static function: what a call of it does, and what it can be asked."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import types
import weakref
from typing import TYPE_CHECKING, Any

import torch

from dy2st.calls.outside_world import Constants
from dy2st.capture.diagnosis import located, untraceable
from dy2st.capture.program import CAPTURING, capture_program, export
from dy2st.conversion import STATIC_OF, code, undo
from dy2st.errors import (
    BufferKindError,
    CommunicationError,
    Dy2stError,
    LostStateError,
    RaisedError,
    RaiseError,
    SpecializedError,
    UsageError,
)
from dy2st.guards.ambient import is_transformed
from dy2st.guards.names import Names
from dy2st.guards.process_answers import ANSWERS, IDENTIFIED, asked_of, implicit_questions, kept, looked_into
from dy2st.guards.source import Same
from dy2st.onnx.exporting import export as export_onnx
from dy2st.operators import call
from dy2st.operators.export_session import current
from dy2st.static.clones import Clones
from dy2st.static.executable import Executable
from dy2st.static.filled_once import refuse_unguarded
from dy2st.static.forwards import forward_of, in_the_form_for
from dy2st.static.function_attributes import AttributesOfFunction
from dy2st.static.given import without_given
from dy2st.static.onnxruntime_backend import NAME as ONNXRUNTIME
from dy2st.static.other_tracers import TracedByOthers
from dy2st.static.parameters import Parameters, called_signature_of, signatures_of
from dy2st.static.programs import CacheInfo, Call, Entry, Programs
from dy2st.static.rebinding import assigned_inputs, read_copies
from dy2st.static.sizes import open_by_themselves, rules_of, shapes_of
from dy2st.static.specs import Options, by_label, dimensions, examples
from dy2st.static.subgraphs import forget_other_users
from dy2st.static.unseen_writes import code_that_counts, keep_arrays_apart, unchanged

# Dynamo knows it by what it is called.
is_compiling = torch.compiler.is_dynamo_compiling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch.export import ExportedProgram

    from dy2st.static.sizes import Open
    from dy2st.values.journal import Store


class StaticFunction(AttributesOfFunction, TracedByOthers):
    """What ``dy2st.to_static`` makes of a function or method. As a class attribute it binds like a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        options: Options,
    ) -> None:
        """Of a function, or another callable."""
        self._function = function
        self._options = options
        self._bound: dict[int, tuple[Any, Programs]] = {}
        self.__name__ = self.__qualname__ = getattr(function, "__name__", type(function).__name__)
        functools.update_wrapper(self, function, updated=())
        self._owner: Any = None
        self._programs = Programs()
        # Whoever puts a method into torch's tensors changes what the code reads of any of them.
        self._roots: tuple[Any, ...] = (function, torch.Tensor)
        self.__signature__, self._parameters = self._of_function
        setattr(self, STATIC_OF, function)

    @functools.cached_property
    def _of_function(self) -> tuple[inspect.Signature, Parameters]:
        return signatures_of(self._function, self.__qualname__)

    @functools.cached_property
    def _of_method(self) -> tuple[inspect.Signature, Parameters]:
        return signatures_of(types.MethodType(self._function, object()), self.__qualname__)

    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        if instance is None or self._owner is not None:
            return self
        return self.bound_to(instance)

    def bound_to(self, instance: Any) -> StaticFunction:
        """As a method of an object, whose programs are dropped with it: by its identity, it may not be hashable."""
        known = self._bound.get(id(instance))
        same = known is not None and known[0]() is instance
        return self._bound_to(instance, known[1] if same else self._first_programs_of(instance))  # type: ignore[index]

    def _bound_to(self, instance: Any, programs: Programs) -> StaticFunction:
        # Made anew in each access, as a bound method is: what they share is looked up in the function.
        bound = _Bound.__new__(_Bound)
        bound._unbound, bound._owner, bound._programs = self, instance, programs
        bound._roots = (instance, self._function, torch.Tensor)
        bound._parameters = self._of_method[1]
        return bound

    def __repr__(self) -> str:
        what = "all that it reads is constant" if self._options.freeze is True else self._options.backend
        return f"<static function {self.__qualname__} ({what})>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments; capture it first if there is none. Under a capture, take part in it."""
        if is_compiling():
            return self._native()(*args, **kwargs)
        if current().capture is not None:
            return call(self._native())(*args, **kwargs)
        try:
            arguments = self._parameters.bound(args, kwargs)
        except TypeError:
            return self._taken_otherwise(args, kwargs)
        programs, roots = self._programs, self._roots
        for entry in programs.entries:
            binding = entry.binding
            tensors = binding.quick(arguments, roots)
            if tensors is not None:
                programs.hits += 1
                try:
                    return binding.take(tensors)
                except Exception as error:
                    if entry.is_final(error):
                        raise
                break
        else:
            found = None if programs.apart.holds(roots + arguments) else self._looked_for(args, kwargs)
            if found is not None:
                program, run = found
                programs.retracing.warn(self.__name__, 2)
                try:
                    return run()
                except Exception as error:
                    if program is None or program.is_final(error):
                        raise
        # What eager raises is its own to raise; and nothing has been changed yet.
        return self._native()(*args, **kwargs)

    def _taken_otherwise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose arguments the parameters do not take: those of now may, or eager says why it does not."""
        known = self._parameters
        return (self._native() if self._current_parameters() is known else self)(*args, **kwargs)

    def _looked_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Entry | None, Callable[[], Any]] | None:
        """The program of a call, found or captured, and a function that answers it; None where eager is to run.

        There is no program where eager has answered it, and has stored what it would store again.
        """
        if is_transformed():
            return None
        arguments = self._current_parameters().bound(args, kwargs)
        filled = self._programs.filled
        failed: Exception | None = None
        refused: Exception | None = None
        try:
            return self._found(arguments)
        except CommunicationError:
            return None
        except (LostStateError, BufferKindError) as error:
            if not filled.may_be_last(error):
                raise
            refused = error
        except (RaisedError, RaiseError, UsageError) as error:
            failed = located(error, self._function)
        except Dy2stError as error:
            raise located(error, self._function)  # noqa: B904  it is the same one
        except Exception as error:  # noqa: BLE001  what the libraries that trace may raise
            failed = untraceable(self.__name__, self._function, error)
        # Code that raises while it is traced: that eager raises as well is the answer. If not, it may have made what
        # the next call finds.
        answer = self._native()(*args, **kwargs)
        if failed is not None:
            return filled.instead_of(failed, lambda: self._found(arguments)[0]), lambda: answer
        assert refused is not None
        return filled.after(refused, lambda stores: self._found(arguments, stores)[0]), lambda: answer

    def _found(self, arguments: Sequence[Any], stores: Sequence[Store] = ()) -> tuple[Entry, Callable[[], Any]]:
        """A program for some arguments, whose guards see ``stores``, and a function that runs it."""
        return self._programs.found_for(self._call(arguments), lambda sizes: self._capture(arguments, sizes, stores))

    def _current_parameters(self) -> Parameters:
        """Those of the function as it is now: its defaults may have been replaced."""
        if not self._parameters.are_of(called_signature_of(self._native())):
            self._forget_parameters()
            self._set_parameters()
        return self._parameters

    def _forget_parameters(self) -> None:
        self.__dict__.pop("_of_function", None)
        self.__dict__.pop("_of_method", None)

    def _set_parameters(self) -> None:
        self.__signature__, self._parameters = self._of_function

    def _call(self, arguments: Sequence[Any]) -> Call:
        names = (self.__name__,) if self._owner is None else ("self", self.__name__)
        fixed = tuple(zip((*names, "torch.Tensor"), self._roots, strict=True))
        return Call(fixed, tuple(zip(self._parameters.names, arguments, strict=True)))

    def _capture(self, arguments: Sequence[Any], sizes: Open | None, stores: Sequence[Store]) -> Entry:
        """A program for some arguments; ``sizes`` are to be left open, beside those that specs name."""
        args, kwargs = self._parameters.parted(arguments)
        shapes = self._dynamic_shapes(args, kwargs)
        if sizes is not None:
            given = dict(zip(self._parameters.names, arguments, strict=True))
            shapes = shapes_of(given, open_by_themselves(sizes))
        made = self._call(arguments)
        with CAPTURING:  # a capture of another thread changes classes while it runs: no world to look at
            entry = self._entry(made, args, kwargs, shapes, sizes)
            if stores:
                refuse_unguarded(stores, made.world(entry.names, {}), entry.names)
            return entry

    def _entry(
        self, made: Call, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, sizes: Open | None
    ) -> Entry:
        frozen = self._options.freeze
        ran = code_that_counts(made, frozen, lambda: self._captured(args, kwargs, shapes))
        with unchanged(made, Names(ran=ran, frozen=frozen, replaced=True), self._function):
            program = self._captured(args, kwargs, shapes)
        sizes = self._parameters.placed(self._sizes_of_specs, self.__signature__, kwargs) if sizes is None else sizes
        clones = Clones(program.graph_module)
        writes = clones.changes_inputs()
        names = Names(memory=writes, ran=ran, identified=program.graph_module.meta.pop(IDENTIFIED), frozen=frozen)
        world = made.world(names, sizes, learn=True)
        keep_arrays_apart(program, world, clones)
        tensors = [source.value for source in world.tensors]
        asked = program.graph_module.meta.pop(ANSWERS)
        held = [] if self._options.backend == ONNXRUNTIME else [each.said for each in asked]
        executable = Executable(program, (args, kwargs), tensors, self.__name__, held)
        numbers = [value if is_tensor else None for is_tensor, value in executable.inputs]
        rules = rules_of(program, numbers, [source.name for source in world.tensors], sizes)
        if rules is None:
            raise SpecializedError(f"{self.__name__} is another program for some sizes of its arguments")
        read = [None if number is None else tensors[number] for number in numbers]
        assigned = assigned_inputs(program, numbers, clones, world)
        if assigned and torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            read_copies(program, numbers, assigned)
        executable.forward = forward_of(program, read, self._options.backend, writes=writes)
        executable.whole = self._options.backend == ONNXRUNTIME
        program.example_inputs = None  # the arguments are the caller's
        answers = [*looked_into(asked, names), *implicit_questions(world)]
        return Entry(program, executable, names, world, made, sizes, rules, assigned, answers)

    @functools.cached_property
    def _sizes_of_specs(self) -> dict[str, list[int | None]]:
        """The sizes that specs leave open: any."""
        specs = by_label(self._specs)
        return {name: [None if d.name is None else 0 for d in spec.dimensions] for name, spec in specs.items()}

    def cache_info(self) -> CacheInfo:
        """How often a program was found, how often captured, how many are kept, and how many there are."""
        return self._programs.info()

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name, as a function; a bound one by its object and name. Programs are captured anew."""
        return self.__qualname__ if self._owner is None else (getattr, (self._owner, self.__name__))

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """Itself if it is a function; bound to the copy if it belongs to an object that is copied."""
        if self._owner is None:
            return self
        return self._bound_to(copy.deepcopy(self._owner, memo), Programs())

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
        return [entry.program for entry in reversed(self._programs.entries)]

    def export(self, /, *args: Any, **kwargs: Any) -> ExportedProgram:
        """The program for these arguments; without any, for examples made from ``input_spec``.

        Raises:
            UsageError: there are neither arguments nor an ``input_spec``.
            Dy2stError: see ``dy2st.export``.
        """
        args, kwargs = self._arguments(args, kwargs)
        return export(self._callee(), args, kwargs, dynamic_shapes=self._dynamic_shapes(args, kwargs))

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> ExportedProgram:
        """A program to run."""
        of_module = isinstance(self._owner, torch.nn.Module)
        function, args, kwargs = without_given(self._function if of_module else self._native(), args, kwargs)
        on_torch = self._options.backend != ONNXRUNTIME
        differentiated = None if on_torch else False
        frozen = self._options.freeze is True
        constants = Constants(everything=frozen, differentiated=differentiated, speaks=on_torch)
        program = capture_program(
            self._owner if of_module else function,
            args,
            kwargs,
            dynamic_shapes=shapes,
            forward=function if of_module else None,
            constants=constants,
        )
        identified = (*constants.identified, *asked_of(constants.answers))
        program.graph_module.meta |= {ANSWERS: kept(constants.answers), IDENTIFIED: frozenset(map(Same, identified))}
        forget_other_users(program.graph_module)
        in_the_form_for(self._options.backend, program)
        self._programs.filled.refuse_lost(program, self.__name__, self._function, constants.stored)
        return program

    def to_onnx(self, f: str | Path | None = None, *args: Any, **kwargs: Any) -> torch.onnx.ONNXProgram:
        """Write the model as ONNX for these arguments, or for examples made from ``input_spec``.

        Raises:
            UsageError: there are neither arguments nor an ``input_spec``.
            Dy2stError: see ``dy2st.onnx.export``.
        """
        args, kwargs = self._arguments(args, kwargs)
        shapes = self._dynamic_shapes(args, kwargs)
        return export_onnx(self._callee(), args, f, kwargs=kwargs, dynamic_shapes=shapes)

    def _native(self) -> Callable[..., Any]:
        return self._function if self._owner is None else types.MethodType(self._function, self._owner)

    def _callee(self) -> Any:
        """What is captured: a module whose forward this is keeps the names of its parameters."""
        whole = isinstance(self._owner, torch.nn.Module) and self.__name__ == "forward"
        return self._owner if whole else self._native()

    def _first_programs_of(self, instance: Any) -> Programs:
        key, programs = id(instance), Programs()
        with contextlib.suppress(TypeError):  # no weak references to it: each access has programs of its own
            self._bound[key] = (weakref.ref(instance, lambda _: self._bound.pop(key, None)), programs)
        return programs

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if args or kwargs or not self.__signature__.parameters:
            return args, kwargs
        if not self._options.specs:
            raise UsageError(f"{self.__name__}: give example arguments, or an input_spec to make them from")
        return (), examples(self._specs)

    @property
    def _specs(self) -> dict[str, Any]:
        return self._options.specs.of(list(self.__signature__.parameters), self.__name__)

    def _dynamic_shapes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        open_dimensions = dimensions(self._specs)
        if not any(open_dimensions.values()):
            return None
        return shapes_of(dict(self.__signature__.bind(*args, **kwargs).arguments), open_dimensions)


class _Bound(StaticFunction):
    """A static function that is bound to an object."""

    _unbound: StaticFunction
    # It is made in each call of a module: Python is faster where neither is a function of ours.
    __setattr__ = object.__setattr__  # type: ignore[assignment]
    __delattr__ = object.__delattr__

    def __init__(self) -> None:
        raise NotImplementedError

    @property
    def __self__(self) -> Any:
        return self._owner

    @property
    def __signature__(self) -> inspect.Signature:  # type: ignore[override]
        signature: inspect.Signature = self._of_method[0]
        return signature

    @property
    def _of_method(self) -> Any:
        return self._unbound._of_method

    def _forget_parameters(self) -> None:
        self._unbound._forget_parameters()

    def _set_parameters(self) -> None:
        self._parameters = self._of_method[1]
