"""What is fixed of a value of each kind, and what it leads to."""

from __future__ import annotations

import array
import collections
import contextvars
import enum
import functools
import io
import operator
import os
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from dy2st.conversion import STATIC_OF
from dy2st.errors import UnguardedError
from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.functions import described_function, own_attributes
from dy2st.guards.names import Names, is_users_class, is_users_module
from dy2st.guards.source import Same, Source
from dy2st.values.describing import article
from dy2st.values.plain_objects import HEAP_TYPE, attributes_of, namespace_of

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
_DERIVED = frozenset(("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__init_subclass__"))
_STATEFUL = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


def described(names: Names, value: Any, name: str) -> tuple[Any, Iterable[Source]]:
    """What is fixed of a value, and its parts; ``name`` is its own.

    Raises:
        UnguardedError: it changes as it is read (a generator, an iterator).
    """
    if isinstance(value, types.BuiltinFunctionType) and value in _ASKING:
        return _asking(names, value)
    if value is warnings.filters:
        raise UnguardedError(
            f"{name} is the list of the filters of warnings, which is another one while a program is captured",
            hint="look at it outside, and pass on what follows from it",
        )
    for kinds, describe in _KINDS:
        if isinstance(value, kinds):
            return describe(names, value)
    if isinstance(value, _STATEFUL) or (isinstance(value, Iterator) and not is_users_class(type(value))):
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


def _class(names: Names, cls: type) -> tuple[Any, Iterable[Source]]:
    parts = [*_members(names, cls)]
    if is_users_class(type(cls)):  # which has members of its classes
        parts.append(Source(("class",), type(cls), "'s class"))
    return ("class", Same(cls), tuple(map(Same, cls.__mro__))), parts


def _members(names: Names, cls: type) -> Iterator[Source]:
    """The members of a class that can be read: those that are named, and those that Python calls by itself."""
    if issubclass(cls, enum.Enum):
        return
    for base in cls.__mro__:
        users = is_users_class(base)
        for name, member in vars(base).items():
            implicit = users and name[:2] == "__" and callable(member)
            read = (implicit or names.has(name)) and name not in _DERIVED and not names.is_frozen(name)
            if read:  # also behind another one of its name, which may ask for it by super()
                opaque = not users and not is_constant(member) and name != "forward"
                yield Source(("member", base, name), member, f".{name}", opaque=opaque)


def _wrapped(_: Names, value: Any) -> tuple[Any, Iterable[Source]]:
    """A property, a static or class method, a cache."""
    held = ("fget",) if isinstance(value, property) else ("__func__", "func", "__wrapped__")
    parts = [Source(("get", name), getattr(value, name), "") for name in held if hasattr(value, name)]
    return ("wrapped", type(value)), parts


def _method(_: Names, method: types.MethodType) -> tuple[Any, Iterable[Source]]:
    parts = [Source(("get", name), getattr(method, name), "") for name in ("__self__", "__func__")]
    return "method", parts


def _getter(names: Names, getter: Any) -> tuple[Any, Iterable[Source]]:
    """``operator.attrgetter`` and ``methodcaller``: code that reads attributes by names of its own."""
    _, arguments = getter.__reduce__()[:2]
    if names.learning:
        texts = [each for each in arguments if isinstance(each, str)]
        names.attributes.update(part for text in texts for part in text.split(".") if not names.is_frozen(part))
    return ("getter", Same(getter)), ()


def _asking(names: Names, function: Any) -> tuple[Any, Iterable[Source]]:
    """``getattr`` and the like as values: they may be called with any name."""
    names.everything |= names.learning
    return Same(function), ()


def _partial(_: Names, partial: functools.partial[Any]) -> tuple[Any, Iterable[Source]]:
    return "partial", [Source(("get", name), getattr(partial, name), "") for name in ("func", "args", "keywords")]


def _python_module(names: Names, module: types.ModuleType) -> tuple[Any, Iterable[Source]]:
    if not is_users_module(module):
        return Same(module), ()
    parts = list(own_attributes(names, vars(module)))
    asked = vars(module).get("__getattr__")  # PEP 562: who has what the module lacks
    if asked is not None and not names.has("__getattr__"):
        parts.append(Source(("attribute", "__getattr__"), asked, ".__getattr__"))
    return ("module", Same(module)), parts


def _sequence(names: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    items = list(_base(values).__iter__(values))
    parts = [Source(("item", i), each, f"[{i}]") for i, each in enumerate(items)]
    return (type(values), len(items)), [*parts, *own_parts(names, values)]


def _mapping(names: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    pairs = list((collections.OrderedDict if isinstance(values, collections.OrderedDict) else dict).items(values))
    keys = tuple(constant_key(key) if is_constant(key) else Same(key) for key, _ in pairs)
    parts = [Source(("key", key), each, f"[{_text(key)}]") for key, each in pairs]
    return (type(values), keys), [*parts, *own_parts(names, values)]


def _text(key: Any) -> str:
    """A key in the name of a part; the text of an object is the user's code."""
    return repr(key) if is_constant(key) else article(type(key).__name__)


def _context(_: Names, variable: contextvars.ContextVar[Any]) -> tuple[Any, Iterable[Source]]:
    try:
        return Same(variable), [Source(("content", "context"), variable.get(), "")]
    except LookupError:
        return ("no value", Same(variable)), ()


def _proxy(_: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    """A read-only view of a dict, the environment, a view of keys or items."""
    content = dict(values) if isinstance(values, Mapping) else list(values)
    return (type(values),), [Source(("content", type(content)), content, "")]


def _set(names: Names, values: Any) -> tuple[Any, Iterable[Source]]:
    keys = frozenset(constant_key(each) if is_constant(each) else Same(each) for each in values)
    return (type(values), keys), own_parts(names, values)


def _array(_: Names, values: np.ndarray[Any, Any]) -> tuple[Any, Iterable[Source]]:
    if values.dtype.hasobject:
        return ("array", values.shape), [Source(("content", list), values.tolist(), "")]
    return ("array", values.dtype, values.shape, values.strides, values.tobytes()), ()


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
    cls, held = type(thing), getattr(thing, "__dict__", {})
    return tuple(name for name in held if names.has(name) and hasattr(cls, name))


def _object(names: Names, thing: Any) -> tuple[Any, Iterable[Source]]:
    static = namespace_of(thing).get(STATIC_OF)
    if static is not None:
        return "static", [Source(("attribute", STATIC_OF), static, "")]
    cls = type(thing)
    if not hasattr(thing, "__dict__") and not (cls.__flags__ & HEAP_TYPE and attributes_of(thing)):
        return Same(thing), ()
    base = next((kind for kind in (int, float, str, bytes) if isinstance(thing, kind)), None)
    value = None if base is None else constant_key(base(thing))
    return ("object", Same(cls), value, _present(names, thing)), own_parts(names, thing)


def _present(names: Names, thing: Any) -> tuple[str, ...]:
    cls: Any = type(thing)
    every = _is_read_by_library(cls)
    return tuple(sorted(name for name in attributes_of(thing) if every or names.has(name)))


def own_parts(names: Names, thing: Any) -> list[Source]:
    """The attributes of an object that can be read; of one that a library's code reads, all."""
    cls: Any = type(thing)
    if cls in _BARE:
        return []
    every = _is_read_by_library(cls)
    parts = [
        Source(("attribute", name), value, f".{name}")
        for name, value in attributes_of(thing).items()
        if names.has(name) or (every and not names.is_frozen(name))
    ]
    return [Source(("class",), cls, "'s class"), *parts] if is_users_class(cls) else parts


@functools.cache
def _is_read_by_library(cls: Any) -> bool:
    """Whether code that isn't looked at for names, of Python's own library or of torch, reads the objects of a class.

    Loggers, threads and the like are left out, and what spreads modules over processes: they lead to the whole process.
    """
    if issubclass(cls, torch.Tensor):
        return False
    bases: tuple[Any, ...] = cls.__mro__
    homes = {base.__module__ for base in bases if _has_methods(base) and not is_users_class(base)}
    apart = any(home.partition(".")[0] in _OF_THE_PROCESS or home.startswith("torch.distributed.") for home in homes)
    return bool(homes) and not apart


def _has_methods(cls: Any) -> bool:
    return any(isinstance(member, (types.FunctionType, property)) for member in vars(cls).values())


_OF_THE_PROCESS = frozenset(
    "abc typing contextlib logging threading _thread concurrent multiprocessing asyncio queue socket subprocess "
    "importlib unittest".split()
)
_BARE = frozenset((list, tuple, dict, set, frozenset, collections.deque, collections.OrderedDict))


def _base(values: Any) -> Any:
    return next(kind for kind in (list, tuple, collections.deque) if isinstance(values, kind))


_KINDS: tuple[tuple[Any, Callable[[Names, Any], tuple[Any, Iterable[Source]]]], ...] = (
    (types.FunctionType, described_function),
    (types.CellType, _cell),
    (type, _class),
    ((property, staticmethod, classmethod, functools.cached_property, type(functools.cache(len))), _wrapped),
    (types.MethodType, _method),
    (functools.partial, _partial),
    ((operator.attrgetter, operator.methodcaller), _getter),
    (types.ModuleType, _python_module),
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
    ((types.MappingProxyType, type(os.environ), type({}.keys()), type({}.values()), type({}.items())), _proxy),
)
