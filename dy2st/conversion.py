"""``convert``, ``code`` and ``not_to_static``: rewriting one function, method, module or callable, kind kept.

Only the entry is rewritten here (a module's ``forward``, an object's ``__call__``). What it calls is followed during a
capture, and outside a capture rewritten code behaves as the original, so nothing else needs to be.
Importing this module imports no torch.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar

from dy2st.errors import SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# What not_to_static sets; the core looks for the same name.
SKIP = "__dy2st_skip__"
# Where a StaticFunction keeps the function that it was made from.
STATIC_OF = "__dy2st_static_of__"
_CONVERTED_FROM = "__dy2st_converted_from__"

# The dicts in which an nn.Module keeps its parts. A converted copy gets dicts of its own with the same parameters,
# buffers and children, so that registering something on one does not change the other.
_MODULE_REGISTRIES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def not_to_static(fn: T) -> T:
    """Mark a function, method or class so that it is never rewritten; it runs as plain Python. Returns it."""
    setattr(fn, SKIP, True)
    return fn


def convert(fn_or_module: T) -> T:
    """The same kind of object back, rewritten; it still runs eagerly, with the same values.

    A function gives a function, a bound method a bound method, ``functools.partial`` a partial, an ``nn.Module`` (or
    another callable object) a shallow copy that shares its parameters and is an instance of the same class, a class a
    subclass whose entry is rewritten. What is marked by :func:`not_to_static` comes back as it is.

    Raises:
        SourceError: the source of the function can't be had or can't be rewritten.
        UsageError: the object is not callable.
    """
    converted: T = _convert(fn_or_module)
    return converted


def code(fn_or_module: Any) -> str:
    """The rewritten source of a function, method, or of the entry of a module, callable object or class.

    Raises:
        SourceError: the source of the function can't be had or can't be rewritten.
        UsageError: the object is not callable.
    """
    from dy2st.source import rewritten_source

    source: str = rewritten_source(entry_function(fn_or_module))
    return source


def entry_function(thing: Any) -> types.FunctionType:
    """The user's plain Python function that a call of ``thing`` runs first.

    Raises:
        SourceError: that is no Python function (a builtin, a C function).
        UsageError: ``thing`` is not callable.
    """
    if isinstance(thing, functools.partial):
        return entry_function(thing.func)
    thing = getattr(thing, STATIC_OF, thing)
    if isinstance(thing, types.FunctionType):
        return thing
    if isinstance(thing, (types.MethodType, staticmethod, classmethod)):
        return entry_function(thing.__func__)
    if isinstance(thing, (types.BuiltinFunctionType, types.BuiltinMethodType)):
        raise SourceError(f"{_name(thing)} is written in C: it has no Python source")
    if not callable(thing):
        raise UsageError(f"{type(thing).__name__} object is neither a module nor a function", hint="pass a callable")
    cls = thing if isinstance(thing, type) else type(thing)
    name = entry_name(cls)
    own = None if cls is thing else getattr(thing, "__dict__", {}).get(name)  # forward set on the instance
    return entry_function(getattr(cls, name) if own is None else own)


def _convert(thing: Any) -> Any:
    from dy2st.source import is_rewritten, rewrite

    if getattr(thing, SKIP, False):
        return thing
    if isinstance(thing, types.FunctionType):
        return thing if is_rewritten(thing) else rewrite(thing)
    if isinstance(thing, types.MethodType):
        return types.MethodType(_convert(thing.__func__), thing.__self__)
    if isinstance(thing, (staticmethod, classmethod)):
        return type(thing)(_convert(thing.__func__))
    if isinstance(thing, functools.partial):
        return functools.partial(_convert(thing.func), *thing.args, **thing.keywords)
    if hasattr(type(thing), _CONVERTED_FROM) or (isinstance(thing, type) and hasattr(thing, _CONVERTED_FROM)):
        return thing
    if isinstance(thing, type):
        return _converted_class(thing)
    entry_function(thing)  # says what is wrong with a builtin or an object that can't be called
    return _converted_object(thing)


def _converted_object(thing: Any) -> Any:
    name = entry_name(type(thing))
    clone = shallow_copy(thing)
    own = getattr(thing, "__dict__", {}).get(name)
    if own is not None:  # forward was set on the instance: a patched module
        clone.__dict__[name] = _convert(rebound(own, thing, clone))
    else:
        clone.__class__ = _converted_class(type(thing))  # type: ignore[arg-type]  # mypy doubts that a class is hashable
    return clone


@functools.cache
def _converted_class(cls: type) -> type:
    name = entry_name(cls)
    entry = inspect.getattr_static(cls, name)
    if getattr(entry, SKIP, False):
        return cls
    if not isinstance(entry, (types.FunctionType, staticmethod, classmethod)):
        entry = entry_function(entry)
    return derived_class(cls, {name: _convert(entry), _CONVERTED_FROM: cls}, convert)


def shallow_copy(thing: Any) -> Any:
    """A copy that shares attributes; a module's copy has registries of its own with the same parameters."""
    clone = copy.copy(thing)
    for registry in _MODULE_REGISTRIES if _is_module_class(type(thing)) else ():
        if registry in clone.__dict__:
            clone.__dict__[registry] = clone.__dict__[registry].copy()
    return clone


def rebound(function: Any, old: Any, new: Any) -> Any:
    """A bound method of ``old`` as one of ``new``; anything else as it is."""
    bound = isinstance(function, types.MethodType) and function.__self__ is old
    return types.MethodType(function.__func__, new) if bound else function


def derived_class(cls: type, namespace: dict[str, Any], remake: Callable[[Any], Any]) -> type:
    """A subclass that goes by the name of ``cls``, of the same layout, with ``namespace`` added.

    It exists only in this process: instances pickle and copy as ``remake(instance of cls with the same attributes)``.
    """

    def reduce(self: Any, _protocol: int) -> tuple[Any, ...]:
        return remake, (as_instance_of(cls, self),)

    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    layout = {} if cls.__dictoffset__ else {"__slots__": ()}  # an object's class changes only to one of the same layout
    return type(cls)(cls.__name__, (cls,), {**names, **layout, "__reduce_ex__": reduce, **namespace})


def as_instance_of(cls: type, thing: Any) -> Any:
    """An instance of ``cls`` with the attributes of ``thing``, which is of a subclass with the same layout."""
    plain: Any = object.__new__(cls)
    if hasattr(thing, "__dict__"):
        plain.__dict__.update(thing.__dict__)
    for name in _slots(cls):
        if hasattr(thing, name):
            setattr(plain, name, getattr(thing, name))
    return plain


def _slots(cls: type) -> list[str]:
    names = [name for kind in cls.__mro__ for name in getattr(kind, "__slots__", ())]
    return [name for name in names if name not in {"__dict__", "__weakref__"}]


def entry_name(cls: type) -> str:
    """The method that a call of an instance runs first: ``forward`` of a module, else ``__call__``.

    Raises:
        UsageError: instances can't be called.
    """
    if _is_module_class(cls):
        return "forward"
    if any("__call__" in vars(kind) for kind in cls.__mro__):
        return "__call__"
    raise UsageError(f"class {cls.__qualname__} has neither forward nor __call__", hint="pass a module or a function")


def _is_module_class(cls: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(cls, torch.nn.Module)


def _name(thing: Any) -> str:
    return getattr(thing, "__qualname__", None) or repr(thing)
