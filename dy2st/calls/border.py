"""The border between converted code and other code, which a data-dependent value may not cross unseen.

The rule: code that is not converted gets such a value only if it is on the list of what is known to be right for it
(``known_right``). Everything else - a C function, a function of numpy, a predicate of a library - is refused at the
user's line when such a value is among its arguments, in a container or object that these lead to, or in the object
whose method it is. What Python's own operators and conversions do with the value, the classes that stand for it say
themselves: they answer as the value would, or refuse.

torch's functions are no part of this: they see what stands for a value by ``__torch_function__``.
"""

from __future__ import annotations

import array
import collections
import functools
import gc
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dy2st.calls.known_right import CHANGING, FOR_TENSORS, FUNCTIONS, METHODS, TELLING, WHOLE
from dy2st.calls.outside_world import array_of
from dy2st.errors import DynamicLengthError, GrownListError, NumpyError, SourceError, UnconvertedCallError
from dy2st.source.rewriting import rewrite
from dy2st.source.user_frames import is_users, module_of
from dy2st.staging.containers.lists import elements
from dy2st.staging.iterator_positions import Steps
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.memory.heap_snapshot import is_buffer
from dy2st.staging.session import MODE
from dy2st.staging.users_code import of_the_user
from dy2st.values.extensions import is_extension, running
from dy2st.values.number import SYMBOLS, Number
from dy2st.values.stacked_list import StackedList, has_rows
from dy2st.values.staged_text import UnknownText
from dy2st.values.tagged_union import TaggedUnion
from dy2st.values.undefined import Undefined

STAGED = (Number, TaggedUnion, StackedList, Undefined, UnknownText, StagedIterable, *SYMBOLS)
# Whose functions are no part of this.
EXEMPT = frozenset(("torch", "dy2st", "sympy"))
# Of these modules, the functions that are known to be right take a text character by character.
CHARACTERS = frozenset(("collections", "heapq", "itertools"))
# What makes objects of most classes.
_PLAIN: tuple[Any, ...] = (type.__call__, object.__new__, object.__init__)
# What leads to nothing.
_LEAVES = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type,
    torch.Tensor,
    types.ModuleType,
    types.CodeType,
    types.FrameType,
    array.array,
)
_VIEWS = {}.keys(), {}.values(), {}.items()  # type: ignore[var-annotated]
# What hands out what it holds.
_COLLECTIONS: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque, *map(type, _VIEWS))


def known_right(function: Any) -> bool:
    """Whether code that is not converted is known to be right for data-dependent values."""
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.MethodType):
        function = function.__func__
        if not isinstance(function, types.FunctionType):
            return _is_bound_native(function, owner) or known_right(function)
    module = _module(function)
    root = module.partition(".")[0]
    # What a decorator of ours or of torch's makes calls itself what it decorates.
    made_by = _module(type(function)).partition(".")[0]
    if root in EXEMPT or root in TELLING or made_by in EXEMPT or isinstance(owner, torch.Tensor):
        return True
    if _is_converted(function):
        return True
    name = getattr(function, "__name__", "")
    kind = getattr(function, "__objclass__", None)
    if _module(kind).partition(".")[0] in EXEMPT:
        return True
    if kind is None and owner is not None and not isinstance(owner, types.ModuleType) and not _is_of_pybind(owner):
        kind = owner if isinstance(owner, type) else type(owner)
    if kind is None and not isinstance(function, (type, types.FunctionType, types.BuiltinFunctionType)):
        kind, name = type(function), "__call__"
    if kind is None and isinstance(function, types.FunctionType) and "." in function.__qualname__:
        return _is_method(module, function.__qualname__)
    if kind is not None and issubclass(kind, tuple) and name in ("_replace", "_make", "_asdict"):
        return hasattr(kind, "_fields")
    if kind is None:
        return name in FUNCTIONS.get(module, ()) or (isinstance(function, type) and _is_plain_class(function))
    # ``super().append`` is Python's own method of a base, of a class that has one of its own.
    python = isinstance(function, types.FunctionType)
    bases = (base for base in kind.__mro__ if name in vars(base))
    defines = next((base for base in bases if python or not isinstance(vars(base)[name], types.FunctionType)), kind)
    return name in METHODS.get(f"{_module(defines)}.{defines.__qualname__}", ())


def leaves_arguments(function: Any) -> bool:
    """Whether a function that is known to be right leaves the containers that it is given as they are."""
    module, name = _module(function), getattr(function, "__name__", "")
    known = name in FUNCTIONS.get(module, ()) or name in FOR_TENSORS.get(module, ())
    return known and name not in CHANGING.get(module, ())


def _is_converted(function: Any) -> bool:
    """Whether there is nothing to convert in a function, which runs as it is for that reason."""
    if not of_the_user(function):
        return False
    try:
        rewrite(function)
    except SourceError:
        return False
    return True


def _is_bound_native(function: Any, owner: Any) -> bool:
    """Whether what is bound to an object is a known method of its class, which an extension may have made."""
    kind = type(owner)
    return getattr(function, "__name__", "") in METHODS.get(f"{_module(kind)}.{kind.__qualname__}", ())


def _is_of_pybind(owner: Any) -> bool:
    """Whether what a function is bound to is pybind11's record of it, and no object."""
    return _module(type(owner)).startswith("pybind11")


def _is_method(module: str, qualified: str) -> bool:
    kind, _, name = qualified.rpartition(".")
    return name in METHODS.get(f"{module}.{kind}", ())


def _module(function: Any) -> str:
    return module_of(function).removeprefix("_")


def _is_plain_class(cls: type) -> bool:
    """Whether each of the functions that make an object of a class is known, or was generated to store what it gets."""
    if issubclass(cls, BaseException):
        return not issubclass(cls, (OSError, UnicodeError))  # which look at their arguments
    made_by = [type(cls).__call__, cls.__new__, cls.__init__]
    return all(each in _PLAIN or _is_generated(each) or known_right(each) for each in made_by)


def _is_generated(function: Any) -> bool:
    """Whether a function is one that ``dataclasses`` or ``namedtuple`` has written."""
    return isinstance(function, types.FunctionType) and function.__code__.co_filename.startswith("<")


def admitted(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``function``, which is not converted and about to be called.

    What a generator of the user's will give is looked at when it gives it.

    Raises:
        UnconvertedCallError: it is given what is data-dependent, and is not known to be right for that.
        NumpyError: the same of a function of numpy and a tensor.
        DynamicLengthError: the same of a range, or of rows of a tensor.
        GrownListError: the same of a list, or one by one of its elements.
    """
    if _module(function).partition(".")[0] == "numpy" or type(function).__module__ == "numpy":
        args, kwargs = pytree.tree_map_only(torch.Tensor, _array_if_known, (args, kwargs))
    owner = getattr(function, "__self__", None)
    given = (*args, *kwargs.values())
    roots = given if owner is None or isinstance(owner, types.ModuleType) else (owner, *given)
    if known_right(function):
        # Lists stay the same objects: heappush() changes the one that it is given.
        args, kwargs = tuple(map(_whole, args)), {name: _whole(value) for name, value in kwargs.items()}
        given = (*given, *(getattr(owner, "__dict__", {}).values() if isinstance(function, types.MethodType) else ()))
        if any(map(has_rows, given)) and not takes_whole(function):
            refuse(
                function,
                next(each for value in given if has_rows(value) for each in value if type(each) is StackedList),
            )
        if _module(function) in CHARACTERS:
            for text in given:
                if isinstance(text, UnknownText):
                    refuse(function, text)
        return args, kwargs
    tensors = _for_tensors(function)

    def look(values: Iterable[Any]) -> None:
        for each in staged_within(values):
            if not (tensors and isinstance(each, torch.Tensor)):
                refuse(function, each)

    def looking(values: Iterator[Any]) -> Iterator[Any]:
        for value in values:
            look((value,))
            yield value

    def admit(value: Any) -> Any:
        return looking(value) if isinstance(value, types.GeneratorType) else value

    look(roots)
    return tuple(map(admit, args)), {name: admit(value) for name, value in kwargs.items()}


def _whole(value: Any) -> Any:
    """What stands for a tuple, as a tuple for code that asks for one; all else as it is."""
    return value.kind(elements(value)) if isinstance(value, StagedIterable) and value.kind is not None else value


def _array_if_known(tensor: torch.Tensor) -> Any:
    """A tensor of constants as numpy's functions see it."""
    found = None if MODE.capture is None else array_of(MODE.capture, tensor)
    return tensor if found is None else found


def refuse(function: Any, value: Any) -> None:
    """``function`` may not be given ``value``; see ``admitted``."""
    name = called(function)
    if isinstance(value, torch.Tensor) and name.startswith("numpy."):
        raise NumpyError(f"{name}() is used on a data-dependent tensor", hint="use the torch function of the same name")
    if isinstance(value, StackedList):
        raise GrownListError(
            f"{name}() is called on a list of data-dependent length",
            hint="iterate over the list with a for loop or a comprehension, or torch.stack it",
        )
    if isinstance(value, StagedIterable):
        raise DynamicLengthError(
            f"{name}(), which dy2st does not convert, is given {value.what}, whose length is known only "
            "when the graph runs",
            hint="iterate it with a for statement in converted code",
        )
    raise UnconvertedCallError(
        f"{name}(), which dy2st does not convert, is given {described(value)}",
        hint="compute with Python's operators, with torch functions, or with code that dy2st converts",
    )


def takes_whole(function: Any) -> bool:
    """Whether a function that is known to be right is so for a list of which a part stands for many elements."""
    if isinstance(function, type) and function.__module__ not in FUNCTIONS:
        return not issubclass(function, (tuple, list, set, frozenset, dict, collections.deque))
    if isinstance(function, (type, types.FunctionType)) or _is_of_module(function):
        module = _module(function)
        exempt = module.partition(".")[0] in EXEMPT or module.partition(".")[0] in TELLING
        return exempt or getattr(function, "__name__", "") in WHOLE.get(module, ())
    if isinstance(function, types.MethodType):
        # One written in Python counts the elements of what its object holds, or takes them one by one.
        return False
    if hasattr(function, "__objclass__"):
        return function.__name__ in ("append", "clear")
    return not isinstance(getattr(function, "__self__", None), (set, frozenset))


def _is_of_module(function: Any) -> bool:
    return isinstance(function, types.BuiltinFunctionType) and isinstance(function.__self__, types.ModuleType)


def _for_tensors(function: Any) -> bool:
    """Whether tensors are no matter to a function: it knows them as objects only, or is Python code of the user's.

    That is left alone on purpose, or has no source. What it asks a tensor for is torch's to answer, or to refuse.
    So it is with C code of a package, which can't see values without asking.
    """
    if is_extension(function):
        return True
    plain = getattr(function, "__func__", function)
    if isinstance(plain, types.FunctionType):
        file = plain.__code__.co_filename
        if is_users(file) or file.startswith("<"):
            return _module(plain).partition(".")[0] != "numpy"
    return getattr(function, "__name__", "") in FOR_TENSORS.get(_module(function), ())


def checked(function: Any) -> Any:
    """``function``, which is not converted, behind the border."""
    if known_right(function):
        return function

    @functools.wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = admitted(function, args, kwargs)
        with running(function, called(function)):
            return function(*args, **kwargs)

    return run


def called(function: Any) -> str:
    """What a function is called in a message."""
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if name is None:
        return type(function).__name__
    if owner is not None and not isinstance(owner, types.ModuleType):
        return str(name)
    module = _module(function)
    return (
        f"{module}.{name}"
        if module.partition(".")[0] in {*sys.stdlib_module_names, "numpy"} - {"builtins"}
        else str(name)
    )


def described(value: Any) -> str:
    """A data-dependent value, in the user's words."""
    known = "known only when the graph runs"
    if isinstance(value, torch.Tensor):
        return "a data-dependent tensor"
    if isinstance(value, UnknownText):
        return f"a text made from a value that is {known}"
    if isinstance(value, TaggedUnion):
        return "a value that is one of several, depending on the path taken"
    return f"a number that is {known}"


def staged_within(roots: Iterable[Any]) -> Iterator[Any]:
    """What is data-dependent among some values, and in what they lead to.

    A tensor counts in containers only: the modules and objects of a model hold its parameters.
    """
    seen: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(value, True) for value in roots]
    while waiting:
        value, plain = waiting.pop()
        if isinstance(value, STAGED) or (plain and isinstance(value, FakeTensor)):
            if isinstance(value, Undefined):
                value.refuse()
            yield value
        elif not isinstance(value, _LEAVES) and id(value) not in seen:
            seen.add(id(value))
            waiting += _parts(value, plain=plain)


def _parts(value: Any, *, plain: bool) -> Iterator[tuple[Any, bool]]:
    """What an object holds, each with whether a tensor counts there."""
    if isinstance(value, dict):
        yield from ((each, plain) for each in (*value.keys(), *value.values()))
    elif isinstance(value, _COLLECTIONS):
        yield from ((each, plain) for each in value)
    elif isinstance(value, types.FunctionType):
        # What its code calls is converted or looked at where it is called; globals lead everywhere.
        yield from ((cell.cell_contents, False) for cell in value.__closure__ or () if gc.get_referents(cell))
        yield value.__defaults__, False
    elif isinstance(value, types.GeneratorType):
        yield {} if value.gi_frame is None else value.gi_frame.f_locals, plain
    elif type(value) is Steps:
        yield value.iterator, plain
    elif is_buffer(value):
        yield value.tolist() if getattr(value.dtype, "hasobject", False) else None, plain
    elif type(value).__module__.partition(".")[0] not in EXEMPT or isinstance(value, torch.nn.Module):
        counts = plain and isinstance(value, (Iterator, types.MethodType, functools.partial, slice))
        yield from ((each, counts) for each in gc.get_referents(value))
