"""Functions and properties with a cache: ``functools.lru_cache``, ``cache`` and ``cached_property``.

Source: Python library reference, ``functools``.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from dy2st.errors import LeakedValueError, NoValueError
from dy2st.graph.containers import changeable
from dy2st.graph.numbers import Number, number_kind
from dy2st.graph.one_of import OneOf
from dy2st.graph.poison import UNSET, Poison
from dy2st.graph.rows import Rows
from dy2st.operators.mode import MODE

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture

CACHED = type(functools.lru_cache(lambda: None))
# What holds nothing that a call could change, or is looked at for what it names.
_LEAVES = (int, float, complex, str, bytes, bool, type(None), type, types.ModuleType, types.CodeType, torch.dtype)
_MOST = 10_000


def cached(capture: Capture, function: Any) -> Callable[..., Any]:
    """A function with a cache: on Python values it is called as it is, in eager mode, and remembers what is real.

    On tensors of the graph it may remember nothing: they exist in this capture only. There, what it has given is known
    where it was called and inside of the regions that are opened there.
    """
    wrapped = function.__wrapped__

    def run(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        of_graph = any(_is_given_by_graph(value) for value in _reached(given))
        if not of_graph and not any(map(_is_of_graph, _reached((wrapped,)))):
            state = State((wrapped, *given)) if capture.depth > 1 else State(())
            with disable_proxy_modes_tracing(), unset_fake_temporarily(), torch._C.DisableTorchFunction():
                result = function(*args, **kwargs)
            state.check(wrapped, "under a tensor condition or in a staged loop")
            return result
        key = wrapped, tuple(map(_key, args)), tuple((name, _key(value)) for name, value in kwargs.items())
        for scope in capture.scopes:
            if key in scope.cached:
                return scope.cached[key][1]
        return call(key, *args, **kwargs)

    def call(key: Any, *args: Any, **kwargs: Any) -> Any:
        from dy2st.operators.following import followed

        state = State((wrapped, *args, *kwargs.values()))
        result = followed(capture, wrapped)(*args, **kwargs)
        state.check(wrapped, "when it is called with tensors")
        # With the arguments, so that their identities remain theirs.
        capture.scopes[-1].cached[key] = (args, kwargs), result
        if not all(scope.certain for scope in capture.scopes[1:]):
            _freeze(capture, result)
        return result

    return run


def _freeze(capture: Capture, result: Any) -> None:
    """Refuse changes of what was given on one path: later calls give it again, if that path was taken."""
    for part in _reached((result,)):
        if isinstance(part, torch.Tensor):
            capture.aliases.remember(part)
        elif changeable(part):
            capture.scopes[-1].born.pop(id(part), None)
            capture.aliases.object_may_be_older(part)


def _is_of_graph(value: Any) -> bool:
    """Whether only the graph knows an object."""
    return isinstance(value, (FakeTensor, Number, OneOf, Poison, Rows)) or (
        number_kind(value) is not None and type(value) not in (int, float, bool)
    )


def _is_given_by_graph(value: Any) -> bool:
    """Whether an argument is a tensor, a module (its parameters are such of the graph), or known to the graph only."""
    return isinstance(value, (torch.Tensor, torch.nn.Module)) or _is_of_graph(value)


def _key(value: Any) -> Any:
    return value if type(value) in (int, float, bool, str, type(None)) else (type(value), id(value))


class State:
    """What a function might change: what its code names, and what it is given, as it is now."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.before = [(value, _parts(value), _version(value)) for value in _reached(roots)]

    def check(self, function: Any, where: str) -> None:
        """Refuse a change."""
        for value, parts, version in self.before:
            now = _parts(value)
            same = len(now) == len(parts) and all(a is b for a, b in zip(now, parts, strict=True))
            if not same or _version(value) != version:
                raise LeakedValueError(
                    f"{function.__name__}() has a cache and changes state around it {where}: eager changes it once "
                    "for all calls that are alike",
                    hint="change the state outside of the function, or take its cache away",
                )


def _reached(roots: Iterable[Any]) -> Iterator[Any]:
    """Objects that others lead to."""
    seen: dict[int, Any] = {}
    waiting = list(roots)
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            yield value
            waiting += _parts(value)


def _parts(value: Any) -> list[Any]:
    """What an object holds; for a function what its code names."""
    if isinstance(value, (*_LEAVES, torch.Tensor)):
        return []
    if isinstance(value, types.FunctionType):
        return _named(value)
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, CACHED):
        return [value.__wrapped__]
    if hasattr(value, "__dict__"):
        vars(value)  # makes the dict, if there was none yet
    return [part for part in gc.get_referents(value) if not isinstance(part, type)]


def _named(function: types.FunctionType) -> list[Any]:
    if (function.__module__ or "").split(".")[0] in ("torch", "dy2st"):
        return []
    names: list[str] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names += code.co_names
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # it is empty
            values.append(UNSET)
    return values


def _version(value: Any) -> int | None:
    """How often a tensor has been written to."""
    written = isinstance(value, torch.Tensor) and not value.is_inference()
    return value._version if written else None


class TracedCachedProperty:
    """A ``functools.cached_property`` whose value is stored as converted code stores an attribute."""

    def __init__(self, native: functools.cached_property[Any], function: Callable[..., Any]) -> None:
        self.native = native
        self.function = function

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None or MODE.capture is None:
            return self.native.__get__(owner, kind)
        name = str(self.native.attrname)
        known = vars(owner).get(name, UNSET)
        if isinstance(known, (OneOf, Poison)):
            raise NoValueError(
                f"the cached property {name!r} is read here, but it has been computed on one path only",
                hint="read it once before the branch or loop",
            )
        if known is not UNSET:
            return known
        value = self.function(owner)
        setattr(MODE.capture.target(owner), name, value)
        return value

    def __set__(self, owner: Any, value: Any) -> None:
        """Makes Python ask this descriptor first, also where the object has a value."""
        vars(owner)[str(self.native.attrname)] = value

    def __delete__(self, owner: Any) -> None:
        del vars(owner)[str(self.native.attrname)]
