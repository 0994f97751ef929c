"""One walk over the heap: what some values lead to, each object once, those nearest first.

Whoever asks says along which *edges* to go (attributes, elements, what a function holds, the globals that it names...)
and which objects to *stop* at: these are found, but not entered. The walk keeps what it has found alive, so that no
identity is used twice, and it is iterative: no chain of objects is too long for it.

It has one bound. Everything that asks it depends on the whole answer (who else refers to a tensor, what a call has
changed, which classes need to be converted), so a walk that comes to the bound does not stop there: it refuses, and
names the value that leads to so much.
"""

from __future__ import annotations

import functools
import gc
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from dy2st.errors import HeapSizeError
from dy2st.source.user_frames import named
from dy2st.values.describing import article
from dy2st.values.plain_objects import attributes_of
from dy2st.values.stacked_list import StackedList
from dy2st.values.tagged_union import TaggedUnion

Edge = Callable[[Any], Iterable[Any]]

# So many objects are looked at in one walk; numbers, texts and the like are none.
MOST_OBJECTS = 200_000
# What leads to nothing, and is no object of its own.
ATOMS = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range))
CACHED = type(functools.lru_cache(lambda: None))


def nowhere(_: Any) -> bool:
    """Stop at nothing."""
    return False


def walk(
    roots: Iterable[Any], edges: Iterable[Edge], stop: Callable[[Any], bool] = nowhere, *, called: str = ""
) -> Iterator[Any]:
    """The roots and what they lead to, breadth first, each once, in the order in which the edges give things.

    Raises ``HeapSizeError`` at the bound; ``called`` is the roots' name for it, where there is one.
    """
    edges = tuple(edges)
    # By identity: the object, and the number of the root that has led to it.
    seen: dict[int, tuple[Any, int]] = {}
    left: deque[tuple[Any, int]] = deque()
    starts = [root for root in roots if type(root) not in ATOMS]

    def find(value: Any, root: int) -> bool:
        if id(value) in seen:
            return False
        if len(seen) >= MOST_OBJECTS:
            number = Counter(root for _, root in seen.values()).most_common(1)[0][0]
            raise _too_many(called or named(starts[number], article(type(starts[number]).__name__)))
        seen[id(value)] = value, root
        left.append((value, root))
        return True

    for number, start in enumerate(starts):
        if find(start, number):
            yield start
    while left:
        value, number = left.popleft()
        if stop(value):
            continue
        for edge in edges:
            for part in edge(value):
                if type(part) not in ATOMS and find(part, number):
                    yield part


def _too_many(name: str) -> HeapSizeError:
    return HeapSizeError(
        f"{name} leads to more than {MOST_OBJECTS} objects: too many to look through for what the model changes, or has"
        " several names for",
        hint=f"keep what {name} holds in a tensor or an array, or where nothing that the model uses refers to it",
    )


# ---- edges


def attributes(value: Any) -> Iterable[Any]:
    """What an object holds by attribute, slots included."""
    # Those of a function lead to all of its module, and more.
    held = vars(value) if isinstance(value, types.FunctionType) else attributes_of(value)
    return held.values()


def elements(value: Any) -> Iterable[Any]:
    """The elements of a container of Python's, or of a class that derives from one; of a dict the keys too."""
    if isinstance(value, dict):
        return (*dict.keys(value), *dict.values(value))
    kind: Any = next((each for each in (list, tuple, set, frozenset, deque) if isinstance(value, each)), None)
    return () if kind is None else tuple(kind.__iter__(value))


def held_by_function(value: Any) -> Iterable[Any]:
    """The closure and the defaults of a function, the object of a method, the function behind a cache."""
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)]
        return (*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    if isinstance(value, types.MethodType):
        return (value.__self__, value.__func__)
    if isinstance(value, types.BuiltinMethodType):
        return (value.__self__,)
    return (value.__wrapped__,) if isinstance(value, CACHED) else ()


def held_by_iterator(value: Any) -> Iterable[Any]:
    """What an iterator of Python's goes over; the variables of a generator."""
    if isinstance(value, types.GeneratorType):
        return () if value.gi_frame is None else tuple(value.gi_frame.f_locals.values())
    if isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
        return gc.get_referents(value)
    return ()


def named_globals(value: Any) -> Iterable[Any]:
    """The globals that a function's code, or that of one inside of it, names."""
    if not isinstance(value, types.FunctionType):
        return ()
    known = value.__globals__
    return tuple(known[name] for name in names_in(value.__code__) if name in known)


def is_filled(cell: types.CellType) -> bool:
    """Whether a variable of a closure has a value yet."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


@functools.cache
def names_in(code: types.CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in code, and in that of the functions inside of it, each once."""
    names = dict.fromkeys(code.co_names)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            names.update(dict.fromkeys(names_in(each)))
    return tuple(names)


# ---- what walks stop at

_CLOSED = (type, types.ModuleType, types.CodeType, types.FrameType, types.TracebackType, torch.Tensor)


# What torch keeps for itself of a trace: it leads to every tensor of it.
_MACHINERY = ("torch._", "torch.fx", "torch.export")
# Ours that hold the user's values.
_HOLDERS = (TaggedUnion, StackedList)


def is_closed(value: Any) -> bool:
    """Whether something leads nowhere, as far as the user's code goes: tensors, classes, modules of Python's, code."""
    return isinstance(value, _CLOSED)


def is_machinery(value: Any) -> bool:
    """Whether an object belongs to the capture itself, and is none of the user's values."""
    return type(value).__module__.startswith(_MACHINERY) or (
        _package_of(value) == "dy2st" and type(value) not in _HOLDERS
    )


def of_library(value: Any) -> bool:
    """Whether an object is torch's own or ours; a module of torch's has the user's parts."""
    return _package_of(value) in ("torch", "dy2st") and not isinstance(value, torch.nn.Module)


def _package_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]
