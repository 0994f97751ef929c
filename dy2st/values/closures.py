"""Functions as containers: what a function that was made in an arm has in its closure goes on with it.

    shifted = plain
    if x.sum() > 0:
        shifted = shifted_by(x * 2)  # a function that closes over a tensor of this arm
    return shifted(x)

A closure's variables are cells. A function that alone has its cells, and writes to none, is as good as another one of
the same code with cells of its own.

Source: Python reference 4.2.2, "Resolution of names".
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.values.number import Number
from dy2st.values.tagged_union import TaggedUnion

# The tuple of the closure, and the argument of getrefcount itself.
_OWN = 2


@dataclass(frozen=True)
class Variables:
    """A function's code, and its variables without tensors: what they hold, or which they are if they are shared."""

    code: types.CodeType
    fixed: tuple[int, ...]


def opened_function(value: types.FunctionType) -> tuple[list[Any], Callable[[list[Any]], Any], Any] | None:
    """What a function closes over, how to make one like it, and its code; None without tensors, or if it shares them.

    Variables without tensors stay those of the function.
    """
    places = _places(value)
    if not places:
        return None
    closure = value.__closure__ or ()
    shared = [_is_shared(closure, place) for place in range(len(closure))]

    def build(children: list[Any]) -> types.FunctionType:
        given = dict(zip(places, children, strict=True))
        cells = [
            cell if shared[place] else types.CellType(given.get(place, _content(cell)))
            for place, cell in enumerate(closure)
        ]
        made = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, tuple(cells))
        made.__kwdefaults__, made.__qualname__ = value.__kwdefaults__, value.__qualname__
        made.__dict__.update(value.__dict__)
        return made

    fixed = tuple(
        id(cell if shared[place] else _content(cell)) for place, cell in enumerate(closure) if place not in places
    )
    held = [closure[place].cell_contents for place in places]
    return held, build, (types.FunctionType, Variables(value.__code__, fixed))


def _is_shared(closure: tuple[types.CellType, ...], place: int) -> bool:
    """Whether somebody else has a variable of a closure, who may bind it anew: nobody does so with a module."""
    held = _content(closure[place])
    return held is None or (sys.getrefcount(closure[place]) > _OWN and not isinstance(held, types.ModuleType))


def _places(function: types.FunctionType, around: frozenset[int] = frozenset()) -> list[int]:
    """The places of a function's variables that hold tensors; none if another function has one of them, too.

    ``around`` are the functions that close over this one, which may be one of them: it calls itself.
    """
    found: list[int] = []
    closure = function.__closure__ or ()
    if id(function) in around:
        return found
    around |= {id(function)}
    for place in range(len(closure)):
        if _holds_tensors(_content(closure[place]), around):
            if _is_shared(closure, place):
                return []
            found.append(place)
    return [] if found and _writes(function.__code__) else found


def _content(cell: types.CellType) -> Any:
    """What a variable holds; None if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _holds_tensors(held: Any, around: frozenset[int]) -> bool:
    if isinstance(held, types.FunctionType):
        return bool(_places(held, around))
    return any(isinstance(leaf, (torch.Tensor, Number, TaggedUnion)) for leaf in pytree.tree_leaves(held))


@functools.lru_cache(maxsize=1024)
def _writes(code: types.CodeType) -> bool:
    """Whether code binds a variable of its closure anew."""
    return any(each.opname in ("STORE_DEREF", "DELETE_DEREF") for each in dis.get_instructions(code)) or any(
        _writes(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)
    )
