"""A static module: another view of the user's module, which has the same attributes and a static ``forward``.

A view has the namespace of its module, and so sees each change of it. A class of its own has the static forward, and
derives from that of the module. Who gives one of the two another class gives it to both: ``LazyLinear`` becomes
``Linear``, and ``torch.nn.utils.parametrize`` derives a class that has the weight as a property.

Source: Python data model 3.3.3.4 (``__class__`` assignment).
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch

from dy2st.conversion import SHOWN, STATIC_CLASS_OF, derived_class, undo
from dy2st.errors import UsageError
from dy2st.static.function import StaticFunction
from dy2st.static.other_tracers import TracedByOthers
from dy2st.static.specs import Options

_Module = torch.nn.Module
# The class of an object as Python keeps it, whatever the object says that it is.
_CLASS: Any = vars(object)["__class__"]


def static_module(module: _Module, options: Options) -> _Module:
    """Another view of the module, with the same attributes, whose class has a static forward.

    It has ``code``, ``export``, ``to_onnx`` and ``original``, too. A name that the module has itself stays its own.
    """
    shown = _Shown(module, options)
    view: _Module = object.__new__(shown.view_class())
    view.__dict__ = module.__dict__
    return view


def shown_by(view: _Module) -> _Module:
    """The module that a view shows; if it is gone, another one with the same attributes."""
    shown: _Shown = getattr(type(view), SHOWN)
    module = shown.module()
    if module is not None:
        return module
    like: _Module = object.__new__(shown.followed_by(view))
    like.__dict__ = view.__dict__
    return like


class _Shown:
    """The module that a view shows, and its class as far as the view knows."""

    def __init__(self, module: _Module, options: Options) -> None:
        self.module = weakref.ref(module)
        self.options = options
        self.cls = type(module)

    def view_class(self) -> type:
        """A class for a view of a module of the class that is known."""
        cls: Any = self.cls
        extras = {name: _OfForward(name) for name in ("code", "export", "to_onnx") if not self._has(name)}
        if not self._has("original"):
            extras["original"] = _OfForward("")
        namespace = {
            "forward": _StaticForward(self),
            STATIC_CLASS_OF: cls,
            SHOWN: self,
            "__class__": _OfClass(self),
            "__getattr__": _OfOthers(self),
            "__prepare_scriptable__": TracedByOthers.__prepare_scriptable__,
            **extras,
        }
        return derived_class(cls, namespace, functools.partial(static_module, options=self.options))

    def _has(self, name: str) -> bool:
        module = self.module()
        return hasattr(self.cls if module is None else module, name)

    def followed_by(self, view: _Module) -> type:
        """The class of the module, which the view has as well from now on."""
        module = self.module()
        if module is not None and type(module) is not self.cls:
            self.become(view, type(module))
        return self.cls

    def become(self, view: _Module, cls: type) -> None:
        """The module has another class."""
        self.cls = cls
        _CLASS.__set__(view, self.view_class())

    def called_as(self, view: _Module) -> type:
        """As ``followed_by``, in a call of the view.

        Raises:
            UsageError: the call would have begun in another way.
        """
        before: Any = self.cls
        now: Any = self.followed_by(view)
        if now is not before and now.__call__ is not before.__call__:
            raise UsageError(
                f"the module is of class {now.__qualname__} by now, which has a __call__ of its own",
                hint="call to_static again where the class has been replaced",
            )
        return now  # type: ignore[no-any-return]


class _OfClass:
    """``view.__class__``: the class of the module. Another one that is assigned is the module's, too."""

    def __init__(self, shown: _Shown) -> None:
        self._shown = shown

    def __get__(self, view: Any, cls: type | None = None) -> Any:
        # ``view_class.__class__`` is the class of that class.
        return type(cls) if view is None else self._shown.followed_by(view)

    def __set__(self, view: Any, cls: type) -> None:
        if issubclass(cls, type(view)):  # derived from the view's own class
            _CLASS.__set__(view, cls)
            return
        module = self._shown.module()
        if module is not None:
            module.__class__ = cls
        self._shown.become(view, cls)


class _OfOthers:
    """``view.__getattr__``: what the view's namespace and class lack is in torch's registries, or in a new class."""

    def __init__(self, shown: _Shown) -> None:
        self._shown = shown

    def __get__(self, view: Any, cls: type | None = None) -> Any:
        return self if view is None else functools.partial(self._found, view)

    def _found(self, view: Any, name: str) -> Any:
        known: Any = self._shown.cls
        try:
            return known.__getattr__(view, name)
        except AttributeError:
            if self._shown.followed_by(view) is known:
                raise
        return getattr(view, name)


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

    def __init__(self, shown: _Shown) -> None:
        self._shown, self._class, self._module = shown, shown.cls, shown.module
        self._made: dict[Any, StaticFunction] = {}

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        if type(self._module()) is not self._class and module is not None and self._is_other(module):
            return module.forward
        own = None if module is None else module.__dict__.get("forward")
        function = self._class.forward if own is None else getattr(own, "__func__", own)
        static = self._made.get(function)
        if static is None:
            static = self._made[function] = StaticFunction(function, self._shown.options)
        # A function that is set on the module itself is called without it.
        if function is own or module is None:
            return static
        return static.bound_to(module)

    def _is_other(self, module: Any) -> bool:
        """Whether the module is of another class by now."""
        return self._shown.called_as(module) is not self._class

    def __set__(self, module: Any, value: Any) -> None:
        module.__dict__["forward"] = value

    def __delete__(self, module: Any) -> None:
        del module.__dict__["forward"]
