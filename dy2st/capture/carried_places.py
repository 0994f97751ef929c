"""Where a model keeps what lives on from one call to the next: the attributes that hold it, and what is in them.

A *place* is an attribute of a module or of another object, a global or a variable of a closure. What it holds may be a
tensor, a number or None, or a container or dataclass of these. The *leaves* of a value are what its containers hold in
the end, each with the *steps* that lead to it: ``(0,)`` is the first element, ``("k", 1)`` the second one of ``["k"]``.

A change of a list is a change of the place that holds the list: a place is put as a whole, its containers made anew.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import dis
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from dy2st.capture.root_module import original_of
from dy2st.source.user_frames import is_own, is_users
from dy2st.staging.memory.heap import is_closed, is_filled, is_machinery, names_in, of_library, walk
from dy2st.staging.memory.shared_inputs import overlap
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import attributes_of
from dy2st.values.undefined import UNSET

Steps = tuple[Any, ...]

_REGISTRIES = ("_parameters", "_buffers", "_modules")
# What each module has.
_STANDARD = frozenset(vars(torch.nn.Module()))


@dataclass(frozen=True, eq=False)
class Place:
    """``kind`` is attribute, global or cell; ``owner`` the user's own object, ``path`` how the model names it."""

    kind: str
    owner: Any
    name: str
    path: str

    @property
    def key(self) -> tuple[str, int, str]:
        """The same for the same place, whatever its path."""
        return self.kind, id(self.owner), self.name

    def slot(self, views: Mapping[int, Any] = types.MappingProxyType({})) -> Slot:
        """The slot; ``views`` are what stands for the user's objects, by the identity of these."""
        return Slot.of(self.kind, views.get(id(self.owner), self.owner), self.name)


# ---- values


def is_structure(value: Any) -> bool:
    """Whether a value is taken apart: a container of Python's or a dataclass."""
    if isinstance(value, torch.Size):
        return False
    known = isinstance(value, (tuple, list, dict, collections.deque))
    return known or (dataclasses.is_dataclass(value) and not isinstance(value, (type, torch.nn.Module)))


def kept_kind(value: Any, before: Any) -> Any:
    """What stands in a parameter's place is one."""
    is_plain = isinstance(before, torch.nn.Parameter) and isinstance(value, torch.Tensor)
    return torch.nn.Parameter(value, requires_grad=before.requires_grad) if is_plain else value


def _parts(value: Any, before: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """What is directly in a structure, by key; ``before`` has the old values of slots that are to be looked at so."""
    if isinstance(value, dict):
        return list(before.get(Slot.of("content", value), value).items())
    if isinstance(value, (tuple, list, collections.deque)):
        return list(enumerate(before.get(Slot.of("content", value), value)))
    held = attributes_of(value)
    return [(name, before.get(Slot.of("attribute", value, name), part)) for name, part in held.items()]


def structures(value: Any) -> Iterator[Any]:
    """A container or dataclass, and those inside it."""
    if is_structure(value):
        yield value
        for _, part in _parts(value, {}):
            yield from structures(part)


def leaves(value: Any, before: Mapping[Any, Any] = types.MappingProxyType({}), at: Steps = ()) -> dict[Steps, Any]:
    """The leaves of a value by their steps. An empty container is a leaf, which is what tells it from none."""
    parts = _parts(value, before) if is_structure(value) else []
    if not parts:
        return {at: value}
    return {steps: leaf for key, part in parts for steps, leaf in leaves(part, before, (*at, key)).items()}


def rebuilt(value: Any, new: Mapping[Steps, Any], at: Steps = ()) -> Any:
    """The value with other leaves at some steps; its containers are new ones."""
    if at in new:
        return new[at]
    if not is_structure(value) or not any(steps[: len(at)] == at for steps in new):
        return value
    parts = {key: rebuilt(part, new, (*at, key)) for key, part in _parts(value, {})}
    if isinstance(value, tuple):
        made: Any = type(value)
        return made(*parts.values()) if hasattr(value, "_fields") else made(parts.values())
    made = copy.copy(value)
    if isinstance(value, dict):
        for key, part in parts.items():
            dict.__setitem__(made, key, part)
    elif isinstance(value, list):
        list.__setitem__(made, slice(None), parts.values())
    elif isinstance(value, collections.deque):
        made.clear()
        made.extend(parts.values())
    else:
        for name, part in parts.items():
            object.__setattr__(made, name, part)
    return made


# ---- where they are


class Paths:
    """What a model leads to, and how: the attribute, item or variable by which each object was found first."""

    def __init__(self, model: Any) -> None:
        self.parents: dict[int, tuple[Any, str, Any]] = {}
        # What holds an object: each namespace or container once.
        self.holders: dict[int, set[Any]] = {}
        # The model, and all that it leads to.
        self.objects = [model, *walk([model], (self._edge,), _is_end)]

    def _edge(self, value: Any) -> Iterator[Any]:
        for holder, kind, key, part in _held(value):
            self.parents.setdefault(id(part), (holder, kind, key))
            self.holders.setdefault(id(part), set()).add(_namespace(holder, kind, key))
            yield part

    def reaches(self, owner: Any) -> bool:
        """Whether the model leads to an object, or is it."""
        return owner is self.objects[0] or id(owner) in self.parents or isinstance(owner, type)

    def place_of(self, slot: Slot) -> Place | None:
        """The place that a change of a slot is one of; None if the model does not lead there."""
        owner = original_of(slot.owner) if isinstance(slot.owner, torch.nn.Module) else slot.owner
        kind, name = slot.kind, slot.name
        if kind == "context":
            return None
        if kind == "cell":
            # That of a function which the call itself has made is gone with it.
            variable = self._variable(owner)
            return None if variable is None else Place(kind, owner, name, name or variable)
        if kind == "global":
            return Place(kind, owner, name, name)
        while kind == "content" or (is_structure(owner) and self._holder(owner) is not None):
            found = self._holder(owner)
            if found is None:
                return None
            owner, kind, name = found
            if kind == "item":
                kind = "content"
            elif kind in ("global", "cell"):
                cell = owner.__globals__ if kind == "global" else _cell(owner, name)
                return Place(kind, cell, name, name)
        return Place(kind, owner, name, self.path(owner, name)) if self.reaches(owner) else None

    def place_of_tensor(self, tensor: torch.Tensor) -> tuple[Place, Steps] | None:
        """The place that holds a tensor, and the steps to it."""
        found = self.parents.get(id(tensor))
        if found is None:
            return None
        holder, kind, key = found
        slot = Slot.of("content", holder) if kind == "item" else Slot.of("attribute", holder, key)
        place = self.place_of(slot) if kind in ("item", "attribute") else None
        if place is None:
            return None
        steps = [at for at, leaf in leaves(place.slot().get()).items() if leaf is tensor]
        return (place, steps[0]) if steps else None

    def path(self, owner: Any, name: str) -> str:
        """``encoder.h``, as the model would say it."""
        words = [name] if not isinstance(owner, type) else [name, owner.__name__]
        while id(owner) in self.parents and owner is not self.objects[0]:
            owner, kind, key = self.parents[id(owner)]
            words += [str(key)] if kind != "self" else []
        return ".".join(reversed(words))

    def is_shared(self, value: Any) -> bool:
        """Whether a container in a value, or the value itself, has more than one holder."""
        if not is_structure(value):
            return False
        several = len(self.holders.get(id(value), ())) > 1
        return several or any(self.is_shared(part) for _, part in _parts(value, {}))

    def has_names(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has more than one holder, or another one lies in the same memory."""
        others = [each for each in self.objects if isinstance(each, torch.Tensor) and each is not tensor]
        return len(self.holders.get(id(tensor), ())) > 1 or any(overlap(tensor, each) for each in others)

    def is_read(self, place: Place) -> bool:
        """Whether the model's own code may read what a place holds: it names it otherwise than in an assignment.

        A class's code is that of its methods; a name among its texts may be one of ``getattr``.
        """
        named = [each for each in self.objects if isinstance(each, type)]
        classes = {cls for each in (*map(type, self.objects), *named) for cls in each.__mro__}
        members = [member for cls in classes for member in vars(cls).values()]
        functions = [each for each in (*self.objects, *members) if isinstance(each, types.FunctionType)]
        return any(_reads(each.__code__, place.name) for each in functions if not _is_end(each))

    def _variable(self, cell: Any) -> str | None:
        """The name of a closure's variable; None if no function that the model leads to has it."""
        functions = [each for each in self.objects if isinstance(each, types.FunctionType)]
        names = (
            name
            for each in functions
            for name, held in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True)
            if held is cell
        )
        return next(names, None)

    def _holder(self, owner: Any) -> tuple[Any, str, Any] | None:
        return None if owner is self.objects[0] else self.parents.get(id(owner))


def _held(value: Any) -> Iterator[tuple[Any, str, Any, Any]]:
    """What an object holds, or one that it names: the holder, how, by which key, and the object held."""
    if isinstance(value, types.FunctionType):
        yield from _held_by_function(value)
    elif isinstance(value, types.MethodType):
        yield value, "self", "", value.__self__
        yield value, "function", value.__name__, value.__func__
    elif isinstance(value, dict):
        for key, part in dict.items(value):
            yield value, "item", key, part
    elif isinstance(value, (list, tuple, collections.deque)):
        for number, part in enumerate(value):
            yield value, "item", number, part
    else:
        if isinstance(value, torch.nn.Module):
            # Its dicts of hooks are empty for the most part, and there are many.
            held = {name: part for name, part in vars(value).items() if name not in _STANDARD or part}
            for registry in _REGISTRIES:
                held |= held.pop(registry, {})
        else:
            held = attributes_of(value)
        for name, part in held.items():
            yield value, "attribute", name, part
        # The state of a model may be in its functions, too: a closure's or a global variable.
        forward = getattr(type(value), "forward" if isinstance(value, torch.nn.Module) else "__call__", None)
        if isinstance(forward, types.FunctionType) and not _is_end(forward):
            yield value, "function", forward.__name__, forward


def _held_by_function(value: Any) -> Iterator[tuple[Any, str, Any, Any]]:
    """The variables around a function, the globals that it names, and what it names of modules of the user's."""
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        if is_filled(cell):
            yield value, "cell", name, cell.cell_contents
    names = names_in(value.__code__)
    for name in names:
        if name in value.__globals__:
            part = value.__globals__[name]
            yield value, "global", name, part
            if isinstance(part, types.ModuleType) and is_own(getattr(part, "__file__", None) or "<"):
                yield from ((part, "attribute", each, vars(part)[each]) for each in names if each in vars(part))


def _is_end(value: Any) -> bool:
    if isinstance(value, types.FunctionType):
        return not is_users(value.__code__.co_filename)
    return is_closed(value) or is_machinery(value) or of_library(value)


def _namespace(holder: Any, kind: str, key: Any) -> Any:
    """What tells a holder from another one: functions of one module have the same globals."""
    if kind == "global":
        return id(holder.__globals__), key
    return id(_cell(holder, key)) if kind == "cell" else (id(holder), kind, key)


def _reads(code: types.CodeType, name: str) -> bool:
    if name in code.co_consts or any(isinstance(each, tuple) and name in each for each in code.co_consts):
        return True
    if any(each.opname.startswith("LOAD") and each.argval == name for each in dis.get_instructions(code)):
        return True
    return any(_reads(each, name) for each in code.co_consts if isinstance(each, types.CodeType))


def _cell(function: Any, name: str) -> Any:
    return function.__closure__[function.__code__.co_freevars.index(name)]


def at(value: Any, steps: Steps) -> Any:
    """What the steps lead to in a value; UNSET where they lead nowhere."""
    for step in steps:
        found = dict(_parts(value, {})) if is_structure(value) else {}
        if step not in found:
            return UNSET
        value = found[step]
    return value


def is_absent(value: Any) -> bool:
    """Whether a place holds nothing yet."""
    return value is None or value is UNSET


def fits(old: Mapping[Any, Any], after: Any) -> bool:
    """Whether a value has a place for all leaves of another one, and no more; what is None may become anything."""
    new = leaves(after)
    grown = [steps for steps in new if steps not in old]
    return all(at(after, steps) is not UNSET or leaf is UNSET for steps, leaf in old.items()) and all(
        any(steps[: len(each)] == each and is_absent(leaf) for each, leaf in old.items()) for steps in grown
    )


def is_same(old: Any, new: Any) -> bool:
    """Whether a leaf has not changed."""
    if old is new:
        return True
    plain = type(old) is type(new) and isinstance(old, (int, float, str, bytes, bool))
    return bool(plain and (old == new or (old != old and new != new)))  # noqa: PLR0124 - NaN
