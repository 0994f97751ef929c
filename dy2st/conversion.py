"""``convert``, ``code`` and ``not_to_static``: rewriting one function, method, module or callable, kind kept.

Only the entry is rewritten here (a module's ``forward``, an object's ``__call__``). What it calls is followed during a
capture, and outside a capture rewritten code behaves as the original, so nothing else needs to be.
Importing this module imports no torch.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import functools
import inspect
import sys
import textwrap
import types
from typing import TYPE_CHECKING, Any, TypeVar

from dy2st.errors import SourceError, UsageError
from dy2st.operators.torch_forms import use_forms
from dy2st.source.rewriting import found_definition, is_rewritten, original, rewrite, rewritten_source
from dy2st.source.torch_made import in_python, shown
from dy2st.transforms import PASSES

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# What not_to_static sets; the core looks for the same name.
SKIP = "__dy2st_skip__"
# The names of modules and packages whose code is left alone.
SKIPPED_MODULES: set[str] = set()
# Where a StaticFunction keeps the function that it was made from.
STATIC_OF = "__dy2st_static_of__"
# On the class of a module that to_static made: the module's own class.
STATIC_CLASS_OF = "__dy2st_static_class_of__"
# On such a class: the module that its instance is a view of.
SHOWN = "__dy2st_shown__"
# On a class that is derived here: the names of the members that it was made with, which are none of the user's.
MADE_WITH = "__dy2st_made_with__"
_CONVERTED_FROM = "__dy2st_converted_from__"

# The dicts in which an nn.Module keeps its parts. A converted copy gets dicts of its own with the same parameters,
# buffers and children, so that registering something on one does not change the other.
_MODULE_REGISTRIES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def not_to_static(fn: T) -> T:
    """Leave code as it is: it is never rewritten, and runs as plain Python, also while a model is captured.

    Args:
        fn: a function or method; a class or an object (an ``nn.Module`` instance, too), all of whose methods are left
            alone; or a Python module or package, or the dotted name of one, for all code that is defined in it.

    Returns:
        What it is given, so that it can be used as a decorator.

    Raises:
        UsageError: the object takes no mark (a builtin).
    """
    name = fn.__name__ if isinstance(fn, types.ModuleType) else fn
    if isinstance(name, str):
        SKIPPED_MODULES.add(name)
        return fn
    marked = fn.__func__ if isinstance(fn, (types.MethodType, staticmethod, classmethod)) else fn
    try:
        if hasattr(marked, "__dict__") and not isinstance(marked, type):
            marked.__dict__[SKIP] = True  # not through a module's own __setattr__
        else:
            setattr(marked, SKIP, True)
    except (AttributeError, TypeError) as error:
        raise UsageError(f"{_name(fn)} can't be marked: it takes no attributes") from error
    return fn


def is_left_alone(thing: Any) -> bool:
    """Whether ``not_to_static`` was said of a function or object, of its class, or of the module that defines it."""
    with contextlib.suppress(Exception):  # whatever a class's own __getattr__ raises
        if getattr(thing, SKIP, False) is True:
            return True
    home = getattr(thing, "__module__", None)
    return bool(SKIPPED_MODULES) and isinstance(home, str) and _is_skipped_module(home)


def _is_skipped_module(name: str) -> bool:
    return any(name == skipped or name.startswith(f"{skipped}.") for skipped in SKIPPED_MODULES)


def convert(fn_or_module: T) -> T:
    """The same kind of object back, rewritten; it still runs eagerly, with the same values.

    A function gives a function, a bound method a bound method, ``functools.partial`` a partial, an ``nn.Module`` (or
    another callable object) a shallow copy that shares its parameters and is an instance of the same class, a class a
    subclass whose entry is rewritten. What is marked by :func:`not_to_static` comes back as it is.

    Raises:
        SourceError: the source of the function can't be had or can't be rewritten.
        UsageError: the object is not callable.
    """
    use_forms()
    converted: T = _convert(fn_or_module)
    return converted


def undo(thing: Any) -> Any:
    """The object as it was before :func:`convert` or ``dy2st.to_static``; anything else comes back as it is.

    A function gives the user's own function, a bound method one of the same object, a module an instance of its own
    class that shares its parameters, buffers, children and attributes. A class that ``to_static`` decorated gets its
    own ``forward`` back, and is returned.
    """
    static = getattr(thing, STATIC_OF, None)
    if static is not None:
        owner = getattr(thing, "__self__", None)
        return static if owner is None else types.MethodType(static, owner)
    if isinstance(thing, types.FunctionType):
        return original(thing) if is_rewritten(thing) else thing
    if isinstance(thing, types.MethodType):
        return types.MethodType(undo(thing.__func__), thing.__self__)
    if isinstance(thing, (staticmethod, classmethod)):
        return type(thing)(undo(thing.__func__))
    if isinstance(thing, functools.partial):
        return functools.partial(undo(thing.func), *thing.args, **thing.keywords)
    if isinstance(thing, type):
        return _undone_class(thing)
    return _undone_object(thing)


def _undone_class(cls: type) -> Any:
    made_from = vars(cls).get(_CONVERTED_FROM) or vars(cls).get(STATIC_CLASS_OF)
    if made_from is not None:
        return made_from
    for name, member in list(vars(cls).items()):
        if hasattr(member, STATIC_OF):
            setattr(cls, name, getattr(member, STATIC_OF))
    return cls


def _undone_object(thing: Any) -> Any:
    cls = type(thing)
    # A static module knows the class that its module has by now.
    made_from = vars(cls).get(_CONVERTED_FROM) or (thing.__class__ if STATIC_CLASS_OF in vars(cls) else None)
    own = {k: v for k, v in getattr(thing, "__dict__", {}).items() if undo_entry(v) is not v}
    if made_from is None and not own:
        return thing
    plain = shallow_copy(thing) if made_from is None else as_instance_of(made_from, shallow_copy(thing))
    for name, value in own.items():
        plain.__dict__[name] = rebound(undo_entry(value), thing, plain)
    return plain


def undo_entry(value: Any) -> Any:
    """A function or method among an object's attributes, undone; any other attribute as it is."""
    ours = isinstance(value, (types.FunctionType, types.MethodType)) or hasattr(value, STATIC_OF)
    return undo(value) if ours else value


def code(fn_or_module: Any, *, after: str | None = None, diff: bool = False) -> str:
    """The rewritten source of a function, method, or of the entry of a module, callable object or class.

    Args:
        fn_or_module: what is, or could be, converted.
        after: the name of the last pass to run (``"LowerIf"``), in place of all of them.
        diff: what changed, as a unified diff from the user's source; empty if nothing did.

    Raises:
        SourceError: the source of the function can't be had or can't be rewritten.
        UsageError: the object is not callable, or there is no such pass.
    """
    function = entry_function(fn_or_module)
    if after is not None and after not in (names := [each.__name__ for each in PASSES]):
        raise UsageError(f"there is no pass {after!r}", hint=f"one of {', '.join(names)}")
    source: str = rewritten_source(function, after=after)
    if not diff:
        return source
    before = textwrap.dedent(found_definition(original(function)).text)
    lines = difflib.unified_diff(
        before.splitlines(), source.splitlines(), function.__qualname__, "rewritten", lineterm=""
    )
    return "".join(f"{line}\n" for line in lines)


def entry_function(thing: Any) -> types.FunctionType:
    """The user's plain Python function that a call of ``thing`` runs first, under the decorators that torch puts on it.

    Raises:
        SourceError: that is no Python function (a builtin, a C function, TorchScript).
        UsageError: ``thing`` is not callable.
    """
    if isinstance(thing, functools.partial):
        return entry_function(thing.func)
    thing = in_python(getattr(thing, STATIC_OF, thing))
    if isinstance(thing, types.FunctionType):
        return shown(thing)
    if isinstance(thing, (types.MethodType, staticmethod, classmethod)):
        return entry_function(thing.__func__)
    if isinstance(thing, (types.BuiltinFunctionType, types.BuiltinMethodType)):
        hint = "name a function or a module that is written in Python"
        raise SourceError(f"{_name(thing)} is written in C: it has no Python source", hint=hint)
    if not callable(thing):
        raise UsageError(f"{type(thing).__name__} object is neither a module nor a function", hint="pass a callable")
    cls = thing if isinstance(thing, type) else type(thing)
    name = entry_name(cls)
    own = None if cls is thing else getattr(thing, "__dict__", {}).get(name)  # forward set on the instance
    return entry_function(getattr(cls, name) if own is None else own)


def _convert(thing: Any) -> Any:
    if is_left_alone(thing):
        return thing
    thing = in_python(thing)
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
    members = {**names, **layout, "__reduce_ex__": reduce, **namespace}
    return type(cls)(cls.__name__, (cls,), {**members, MADE_WITH: frozenset((*members, MADE_WITH))})


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
