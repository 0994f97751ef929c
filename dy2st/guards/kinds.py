"""What is fixed of a value of each kind, and what it leads to."""

from __future__ import annotations

import array
import collections
import contextvars
import dataclasses
import enum
import functools
import io
import logging
import operator
import os
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from dy2st.calls.loguru_calls import is_logger
from dy2st.calls.progress_bars import is_progress_bar
from dy2st.conversion import SHOWN, STATIC_OF
from dy2st.errors import UnguardedError
from dy2st.guards.class_members import described_class
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.functions import described_function, own_attributes
from dy2st.guards.names import Names, is_users_class, is_users_module
from dy2st.guards.object_parts import is_read_by_library, own_parts
from dy2st.guards.source import Same, Source
from dy2st.values.describing import article
from dy2st.values.plain_objects import HEAP_TYPE, attributes_of, dict_of

_HOOKS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
)
_REGISTRIES = ("_parameters", "_buffers", "_modules")
_ASKING = frozenset((getattr, hasattr, vars, dir))
_STATEFUL = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


def described(names: Names, value: Any, name: str) -> tuple[Any, Iterable[Source]]:
    """What is fixed of a value, and its parts; ``name`` is its own.

    Raises:
        UnguardedError: it changes as it is read (a generator, an iterator).
    """
    if isinstance(value, types.BuiltinFunctionType) and value in _ASKING:
        return _asking(names, value)
    if isinstance(value, enum.Enum):
        return _object(names, value)
    if is_logger(value):  # of loguru's: who it tells is its own, in each run
        return _itself(names, value)
    if value is warnings.filters:
        raise UnguardedError(
            f"{name} is the list of the filters of warnings, which is another one while a program is captured",
            hint="look at it outside, and pass on what follows from it",
        )
    for kinds, describe in _KINDS:
        if isinstance(value, kinds):
            return describe(names, value)
    steps = isinstance(value, Iterator) and not is_users_class(type(value))
    if isinstance(value, _STATEFUL) or steps or is_progress_bar(type(value)):
        raise UnguardedError(
            f"{name} is {article(type(value).__name__)}, which gives something else each time that it is asked",
            hint="make it in the function that uses it, or keep what it gives in a list",
        )
    return _object(names, value)


def _cell(_: Names, cell: types.CellType) -> tuple[Any, Iterable[Source]]:
    try:
        return "cell", [Source(("get", "cell_contents"), cell.cell_contents, "")]
    except ValueError:
        return "an empty cell", ()


def _wrapped(_: Names, value: Any) -> tuple[Any, Iterable[Source]]:
    """A property, a static or class method, a cache."""
    held = ("fget",) if isinstance(value, property) else ("__func__", "func", "__wrapped__")
    parts = [Source(("get", name), getattr(value, name), "") for name in held if hasattr(value, name)]
    return ("wrapped", type(value)), parts


def _method(_: Names, method: types.MethodType) -> tuple[Any, Iterable[Source]]:
    parts = [Source(("get", name), getattr(method, name), "") for name in ("__self__", "__func__")]
    return "method", parts


def _getter(names: Names, getter: Any) -> tuple[Any, Iterable[Source]]:
    """Those of ``operator``: code that reads attributes by names of its own."""
    _, arguments = getter.__reduce__()[:2]
    if names.learning and not isinstance(getter, operator.itemgetter):
        texts = [each for each in arguments if isinstance(each, str)]
        names.attributes.update(part for text in texts for part in text.split(".") if not names.is_frozen(part))
    return ("getter", Same(getter)), ()


def _asking(names: Names, function: Any) -> tuple[Any, Iterable[Source]]:
    """``getattr`` and the like as values: they may be called with any name."""
    names.everything |= names.learning
    return Same(function), ()


def _logger(names: Names, logger: logging.Logger) -> tuple[Any, Iterable[Source]]:
    """A logger's level and the like. It leads to all others, and to handlers, of which code that logs knows nothing."""
    parts = [each for each in own_parts(names, logger) if is_constant(each.value)]
    return ("logger", Same(logger)), parts


def _itself(_: Names, value: Any) -> tuple[Any, Iterable[Source]]:
    """What is the same as long as it is there.

    Methods that are written in C are, and what ``dataclasses`` has noted of a field: the methods and defaults that it
    has made of it are the class's.
    """
    return Same(value), ()


def _builtin(names: Names, value: Any) -> tuple[Any, Iterable[Source]]:
    """A function that is written in C, of a module or a class, or a method of an object."""
    free = isinstance(value.__self__, (type, types.ModuleType, type(None)))
    return (Same(value), ()) if free else _object(names, value)


def _partial(_: Names, partial: functools.partial[Any]) -> tuple[Any, Iterable[Source]]:
    return "partial", [Source(("get", name), getattr(partial, name), "") for name in ("func", "args", "keywords")]


def _python_module(names: Names, module: types.ModuleType) -> tuple[Any, Iterable[Source]]:
    if not is_users_module(module):
        return ("module", Same(module)), _named_in_library(names, vars(module))
    parts = list(own_attributes(names, vars(module)))
    asked = vars(module).get("__getattr__")  # PEP 562: who has what the module lacks
    if asked is not None and not names.has("__getattr__"):
        parts.append(Source(("attribute", "__getattr__"), asked, ".__getattr__"))
    return ("module", Same(module)), parts


def _named_in_library(names: Names, held: Mapping[str, Any]) -> Iterator[Source]:
    """What code can read by its name in a library's module that it comes by as a value."""
    for name in sorted(names.attributes & held.keys()):
        value = held[name]
        # Much code asks something for its ``filters``; who asks warnings for theirs names the module.
        if value is not sys.modules and value is not warnings.filters and not names.is_frozen(name):
            yield Source(("attribute", name), value, f".{name}", opaque=callable(value))


def _sequence(names: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    items = list(_base(values).__iter__(values))
    parts = [Source(("item", i), each, f"[{i}]") for i, each in enumerate(items)]
    return (type(values), len(items)), [*parts, *own_parts(names, values)]


def _mapping(names: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    pairs = list((collections.OrderedDict if isinstance(values, collections.OrderedDict) else dict).items(values))
    keys = tuple(constant_key(key) if is_constant(key) else Same(key) for key, _ in pairs)
    parts = [Source(("key", key), each, f"[{_text(key)}]") for key, each in pairs]
    return (type(values), keys), [*parts, *_members_of(key for key, _ in pairs), *own_parts(names, values)]


def _members_of(values: Iterable[Any]) -> list[Source]:
    """The keys of a dict or the elements of a set that are no constants: code that goes through them comes by them."""
    return [Source(("member of",), each, f": {_text(each)}") for each in values if not is_constant(each)]


def _text(key: Any) -> str:
    """A key in the name of a part; the text of an object is the user's code."""
    return repr(key) if is_constant(key) else article(type(key).__name__)


def _context(_: Names, variable: contextvars.ContextVar[Any]) -> tuple[Any, Iterable[Source]]:
    try:
        return Same(variable), [Source(("content", "context"), variable.get(), "")]
    except LookupError:
        return ("no value", Same(variable)), ()


def _proxy(_: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    """A read-only view of a dict, the environment, a view of keys or items, a context."""
    content = dict(values.items()) if isinstance(values, (Mapping, contextvars.Context)) else list(values)
    return (type(values),), [Source(("content", type(content)), content, "")]


def _set(names: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    """In the order in which code goes through it: that of equal sets may be another one."""
    each_one = list((frozenset if isinstance(values, frozenset) else set).__iter__(values))
    keys = tuple(constant_key(each) if is_constant(each) else Same(each) for each in each_one)
    return (type(values), keys), [*_members_of(each_one), *own_parts(names, values)]


def _array(names: Names, values: np.ndarray[Any, Any]) -> tuple[Any, Iterable[Source]]:
    own = own_parts(names, values) if type(values) is not np.ndarray else []
    if values.dtype.hasobject:
        return ("array", type(values), values.shape), [Source(("content", list), values.tolist(), ""), *own]
    return array_key(values), own


def array_key(values: np.ndarray[Any, Any]) -> Any:
    """What tells an array of numbers from others."""
    plain = values.view(np.ndarray)
    return "array", type(values), plain.dtype, plain.shape, plain.strides, plain.flags.writeable, plain.tobytes()


def _buffer(_: Names, buffer: Any) -> tuple[Any, Iterable[Source]]:
    """Bytes that can be changed, numbers in memory."""
    seen = memoryview(buffer)
    return (type(buffer), seen.format, seen.shape, seen.tobytes()), ()


def _error(names: Names, error: BaseException) -> tuple[Any, Iterable[Source]]:
    key, parts = _object(names, error)
    return key, [*parts, Source(("get", "args"), error.args, ".args")]


def _stream(_: Names, stream: io.IOBase) -> tuple[Any, Iterable[Source]]:
    """A stream is itself: whoever reads from it or writes to it is refused when it is done, not when it is named."""
    if isinstance(stream, (io.StringIO, io.BytesIO)) and not stream.closed:
        return (type(stream), stream.getvalue(), stream.tell()), ()
    return Same(stream), ()


def _reference(_: Names, reference: Any) -> tuple[Any, Iterable[Source]]:
    return "reference", [Source(("call",), reference(), "()")]


def _torch_module(names: Names, module: torch.nn.Module) -> tuple[Any, Iterable[Source]]:
    names.add_call_of_module()
    if hasattr(type(module), SHOWN):
        _ = module.__class__  # a view takes the class that its module has by now
    return ("torch module", Same(type(module)), _hidden(names, module)), _module_parts(names, module)


def _module_parts(names: Names, module: torch.nn.Module) -> Iterator[Source]:
    yield Source(("class",), type(module), "'s class")
    held = vars(module)
    of_torch = not is_users_class(type(module))
    for name, value in held.items():
        public = of_torch and not name.startswith("_")
        read = name in _REGISTRIES or name in _HOOKS or name == "training" or public or names.has(name)
        if read and not names.is_frozen(name):
            yield Source(("attribute", name), value, "" if name in _REGISTRIES else f".{name}")


def _hidden(names: Names, thing: Any) -> tuple[str, ...]:
    """The attributes of an object that stand before a member of its class."""
    cls, held = type(thing), dict_of(thing) or {}
    return tuple(name for name in held if names.has(name) and hasattr(cls, name))


def _object(names: Names, thing: Any) -> tuple[Any, Iterable[Source]]:
    static = getattr(thing, STATIC_OF, None) if hasattr(type(thing), "cache_info") else None
    if static is not None:
        owner = getattr(thing, "__self__", None)
        bound = [] if owner is None else [Source(("get", "__self__"), owner, ".__self__")]
        return "static", [Source(("get", STATIC_OF), static, ""), *bound]
    cls = type(thing)
    # What it holds beside its attributes, where its class or one before it is written in C.
    base: Any = next(kind for kind in cls.__mro__ if not _is_written_in_python(kind))
    beside: Any = None if base is object else Same(thing)
    if isinstance(thing, enum.Enum):
        beside = "member", thing.name
    elif base in (int, float, str, bytes, complex):
        beside = constant_key(base(thing))
    parts: list[Source] = []
    if base is not object and not isinstance(beside, tuple):
        content = _picklable(thing)
        if content is not None:
            beside, parts = base, [Source(("content", "pickled"), content, "")] if content else []
    if dict_of(thing) is None and not (cls.__flags__ & HEAP_TYPE and attributes_of(thing)):
        return ("object of C", beside), parts
    return ("object", Same(cls), beside, _present(names, thing)), [*parts, *own_parts(names, thing)]


@functools.lru_cache(maxsize=4096)
def _is_written_in_python(cls: type) -> bool:
    """Whether objects of a class are the attributes that it gives them, and what its bases give them."""
    return bool(cls.__flags__ & HEAP_TYPE) and (
        "__dict__" in vars(cls) or "__slots__" in vars(cls) or _adds_nothing(cls)
    )


def _adds_nothing(cls: type) -> bool:
    return cls.__basicsize__ == getattr(cls.__base__, "__basicsize__", 0) and "__module__" in vars(cls)


def _picklable(thing: Any) -> Any:
    """The arguments that make an object anew, as pickling has them; None of one that can't be pickled.

    What the user writes to pickle an object may do anything, and is not asked.
    """
    of_user = any(
        is_users_class(base)
        and not {"__reduce_ex__", "__reduce__", "__getnewargs__", "__getstate__"}.isdisjoint(vars(base))
        for base in type(thing).__mro__
    )
    if of_user or (type(thing).__module__ or "").partition(".")[0] in ("torch", "numpy"):
        return None
    try:
        reduced = thing.__reduce_ex__(2)
    except Exception:  # noqa: BLE001  it may be of any kind
        return None
    if not isinstance(reduced, tuple):
        return None
    state = () if dict_of(thing) is not None else reduced[2:3]
    return [*reduced[1], *state, *(list(each) for each in reduced[3:] if each is not None)]


def _present(names: Names, thing: Any) -> tuple[str, ...]:
    cls: Any = type(thing)
    every = is_read_by_library(cls)
    return tuple(sorted(name for name in attributes_of(thing) if every or names.has(name)))


def _base(values: Any) -> Any:
    return next(kind for kind in (list, tuple, collections.deque) if isinstance(values, kind))


_KINDS: tuple[tuple[Any, Callable[[Names, Any], tuple[Any, Iterable[Source]]]], ...] = (
    (types.FunctionType, described_function),
    (types.CellType, _cell),
    (type, described_class),
    ((property, staticmethod, classmethod, functools.cached_property, type(functools.cache(len))), _wrapped),
    (types.MethodType, _method),
    (functools.partial, _partial),
    ((operator.attrgetter, operator.methodcaller, operator.itemgetter), _getter),
    (types.ModuleType, _python_module),
    (types.BuiltinFunctionType, _builtin),
    (logging.Logger, _logger),
    (
        (
            dataclasses.Field,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
        ),
        _itself,
    ),
    ((list, tuple, collections.deque), _sequence),
    (dict, _mapping),
    ((set, frozenset), _set),
    (np.ndarray, _array),
    ((bytearray, array.array, memoryview), _buffer),
    (BaseException, _error),
    (contextvars.ContextVar, _context),
    (io.IOBase, _stream),
    (torch.nn.Module, _torch_module),
    (weakref.ReferenceType, _reference),
    (
        (
            types.MappingProxyType,
            contextvars.Context,
            type(os.environ),
            type({}.keys()),
            type({}.values()),
            type({}.items()),
        ),
        _proxy,
    ),
)
