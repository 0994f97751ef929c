"""The module that ``torch.export`` is given: it never is the user's own.

While ``torch.export`` traces, a module's parameters and buffers are fake tensors, its ``forward`` is the capture's, and
lists and dicts among its attributes are copies. Another thread that called the module would see that, and so would code
that holds one of these lists. So a module is captured as another view of it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from dy2st.conversion import STATIC_CLASS_OF

T = TypeVar("T")


def viewed(model: T) -> T:
    """The same tree of modules, with dicts of attributes of their own; what these hold is shared. No module: itself."""
    if not isinstance(model, torch.nn.Module):
        return model
    made: dict[int, torch.nn.Module] = {}

    def view(each: torch.nn.Module) -> torch.nn.Module:
        known = made.get(id(each.__dict__))
        if known is not None:
            return known
        cls = type(each)
        # A static module knows the class that its module has by now.
        copied: torch.nn.Module = object.__new__(each.__class__ if STATIC_CLASS_OF in vars(cls) else cls)
        made[id(each.__dict__)] = copied
        _ORIGINALS[copied] = each
        held = copied.__dict__ = dict(each.__dict__)
        parameters, buffers = held["_parameters"].items(), dict(held["_buffers"])
        # torch.func.functional_call puts plain tensors in the place of parameters.
        buffers |= {name: each for name, each in parameters if not isinstance(each, (torch.nn.Parameter, type(None)))}
        held["_parameters"] = {name: each for name, each in parameters if name not in buffers}
        held["_buffers"] = buffers
        children = held["_modules"] = held["_modules"].copy()
        for name, child in children.items():
            if isinstance(child, torch.nn.Module) and not isinstance(child, torch.jit.ScriptModule):
                children[name] = view(child)
        return copied

    return view(model)  # type: ignore[return-value]


@contextlib.contextmanager
def attributes_put_back(module: torch.nn.Module) -> Iterator[None]:
    """After an attempt that is given up: ``torch.export`` leaves copies of the lists and dicts among the attributes.

    In the next attempt, a change of such a copy would be none of the user's own list.
    """
    before = [(each.__dict__, dict(each.__dict__)) for each in module.modules()]
    try:
        yield
    except BaseException:
        for namespace, held in before:
            namespace.clear()
            namespace.update(held)
        raise


_ORIGINALS: weakref.WeakKeyDictionary[torch.nn.Module, torch.nn.Module] = weakref.WeakKeyDictionary()


def original_of(module: torch.nn.Module) -> torch.nn.Module:
    """The user's own module, of a view of it."""
    return _ORIGINALS.get(module, module)


class FunctionModule(torch.nn.Module):
    """A function, bound method or callable object as the module that ``torch.export`` wants.

    Modules that the function reaches (its ``self``, its closure) become submodules, so that their parameters are
    parameters of the program.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        for name, module in reachable_modules(function):
            if module is self._modules.get(name):
                continue
            while hasattr(self, name):  # a variable may be called as something that modules have
                name += "_"  # noqa: PLW2901
            self.add_module(name, module)


class Shell(torch.nn.Module):
    """Stands for a module whose call is more than its forward: the same parameters, buffers and children by name."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        for registry in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[registry] = model.__dict__[registry]
        self.training = model.training

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run what stands as its ``forward``: hooks, and those of all modules, are for the model itself to run."""
        return self.forward(*args, **kwargs)


def reachable_modules(function: Any) -> list[tuple[str, torch.nn.Module]]:
    """The modules that a function reaches: its owner, its closure and the globals that it names."""
    found: list[tuple[str, torch.nn.Module]] = []
    if isinstance(function, functools.partial):
        for i, value in enumerate((*function.args, *function.keywords.values())):
            if isinstance(value, torch.nn.Module):
                found.append((f"bound_{i}", value))
        return found + reachable_modules(function.func)
    owner = getattr(function, "__self__", None)
    plain = getattr(function, "__func__", function)
    if isinstance(owner, torch.nn.Module):
        found.append(("owner", owner))
    elif owner is None and not isinstance(function, types.FunctionType):
        owner = function
    if owner is not None and not isinstance(owner, torch.nn.Module):
        found += [(k, v) for k, v in getattr(owner, "__dict__", {}).items() if isinstance(v, torch.nn.Module)]
    if isinstance(plain, types.FunctionType):
        variables = inspect.getclosurevars(plain)
        for name, value in {**variables.globals, **variables.nonlocals}.items():
            if isinstance(value, torch.nn.Module):
                found.append((name, value))
    return found


def state_of(module: torch.nn.Module) -> dict[str, Any]:
    """The parameters and buffers of a module, by name; each name of one that has several."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
