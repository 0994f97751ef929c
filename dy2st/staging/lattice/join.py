"""Joining two values of one variable: what may differ becomes a result of the branch or a carried value of the loop.

The lattice, from below: equal Python values stay Python; numbers of one type that differ become a ``Number``; tensors
of one dtype and rank become a tensor whose sizes are joined; containers are joined leaf by leaf; a value that one side
does not need takes the other's type; values of different kinds become a ``TaggedUnion``, whose tag says which; what
is left is ``Undefined``, an error only if it is read.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.errors import (
    DifferentDtypesError,
    DifferentObjectsError,
    DifferentRanksError,
    DifferentStructureError,
    DifferentTypesError,
    KeysChangeError,
    ListChangeError,
    Location,
    NoValueError,
    StagingError,
)
from dy2st.plan import Alternative, plan
from dy2st.source.user_frames import named
from dy2st.staging.lattice.tagged_join import MISSING, same_function, sorted_out
from dy2st.values.container_structure import Keys, open_alike, open_container
from dy2st.values.describing import sides
from dy2st.values.dtype_provenance import note_lower_kinds
from dy2st.values.error_recovery import RecoveryValue
from dy2st.values.journal import DefaultDict, Slot
from dy2st.values.number import DTYPES, SYMBOLS, Number, number_kind, number_tensor, promoted_dtype
from dy2st.values.references import note_outer
from dy2st.values.sparse_tensor import SparseTensor
from dy2st.values.stacked_list import has_rows, row_places, rows_differ
from dy2st.values.staged_text import text_of
from dy2st.values.tagged_union import Retagged, TaggedUnion
from dy2st.values.undefined import UNSET, Undefined, unset

COMPARABLE = (
    *(str, bytes, complex, range, slice, type, type(None), type(...), enum.Enum),
    *(torch.dtype, torch.device, torch.Size),
)


@dataclasses.dataclass
class Invariant:
    """The same on both sides, or needed on one only and not a tensor."""

    value: Any


@dataclasses.dataclass
class Incompatible:
    """Can't be joined: reading it is an error, of this kind; ``sides`` describes the two values.

    ``otherwise`` gives the attempt up for another one, if there is one in which they can.
    """

    reason: str
    hint: str
    kind: type[StagingError] = DifferentTypesError
    sides: tuple[str, str] | None = None
    otherwise: Callable[[], None] | None = None

    def undefined(self, name: str, location: Any) -> Undefined:
        """What stands for the value."""
        return Undefined(name, self.reason, self.hint, location, self.kind, self.sides, otherwise=self.otherwise)

    @classmethod
    def between(cls, a: Any, b: Any, hint: str, kind: type[StagingError]) -> Incompatible:
        """Two values that are there on either path, but differ too much."""
        first, second = sides(a, b)
        return cls(f"it is {first} on one path and {second} on the other", hint, kind, (first, second))


@dataclasses.dataclass
class Phi:
    """A tensor (``kind`` None) or number on both sides; ``a``/``b`` is UNSET where that side is not needed.

    ``hidden``: nobody sees it, since it is the tag of a ``TaggedUnion`` or a flag of ours.
    """

    a: Any
    b: Any
    dtype: torch.dtype
    kind: type | None
    hidden: bool = dataclasses.field(default=False, repr=False)


@dataclasses.dataclass
class Structured:
    """A container of joins; ``build`` makes the joined container from its children, ``sides`` are the two joined.

    A side that is not needed is UNSET.
    """

    children: list[Any]
    build: Callable[[list[Any]], Any]
    signature: Any
    sides: tuple[Any, ...] = ()


@dataclasses.dataclass
class UnequalLengths:
    """Two lists of different lengths, or of data-dependent length; a side that is not needed is UNSET.

    Stacking their elements takes a subgraph, so that it is left to who joins. ``otherwise`` is the join of lists whose
    elements are too unlike for that.
    """

    a: Any
    b: Any
    otherwise: Callable[[], Any]


Join = Invariant | Incompatible | Phi | Structured | UnequalLengths
# The signature of a group that is a ``TaggedUnion``: this, and the kinds of its cases.
TAGGED_UNION = "one of"
# The signature of a group that is a list of rows: this, and the structure of the elements.
ROWS = "rows"


def numeric(value: Any) -> bool:
    """Whether a value can be a result of a graph operator."""
    dense = isinstance(value, torch.Tensor) and not isinstance(value, SparseTensor)
    return dense or number_kind(value) is not None


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in DTYPES:
        return text_of(a) == text_of(b)
    if isinstance(a, SYMBOLS):
        return bool(a.node is b.node or a.node.expr == b.node.expr)
    if isinstance(a, Number):
        return a.tensor is b.tensor and a.kind is b.kind
    if isinstance(a, types.MethodType):
        return a.__func__ is b.__func__ and a.__self__ is b.__self__
    if isinstance(a, types.FunctionType):
        return same_function(a) == same_function(b)
    if isinstance(a, frozenset):  # the content of a set; its members may be of the user's classes
        return set(map(id, a)) == set(map(id, b))
    return isinstance(a, COMPARABLE) and bool(a == b)


def join(a: Any, b: Any, need_a: bool = True, need_b: bool = True) -> Join:
    """How the values of two paths become one. A side that is not needed may be anything."""
    if not need_a and not need_b:
        return Invariant(a) if a is not UNSET else Invariant(b)
    a, b = (UNSET if unset(value) else value for value in (a, b))
    if _equal(a, b):
        return Invariant(a)
    if not need_a:
        return _one_sided(b, a_missing=True)
    if not need_b:
        return _one_sided(a, a_missing=False)
    if isinstance(a, RecoveryValue) is not isinstance(b, RecoveryValue):
        # Nobody knows the muted one: let it be of the other's kind.
        return _one_sided(b, a_missing=True) if isinstance(a, RecoveryValue) else _one_sided(a, a_missing=False)
    for value in (a, b):
        if isinstance(value, Undefined):
            return Invariant(value)
    if isinstance(a, TaggedUnion) or isinstance(b, TaggedUnion):
        hint = "move what reads it into the branches"
        return join_cases(a, b) or Incompatible.between(a, b, hint, DifferentObjectsError)
    if type(a) is list and type(b) is list and (len(a) != len(b) or has_rows(a) or has_rows(b)):
        return UnequalLengths(a, b, lambda: join_cases(a, b) or _apart(a, b))
    by_rows = rows_differ(a, b)
    alike = _apart(a, b) if by_rows else _join_alike(a, b)
    if not isinstance(alike, Incompatible) or (by_rows and row_places(a) == row_places(b)):
        return alike
    return join_cases(a, b) or alike


def _join_alike(a: Any, b: Any) -> Join:
    if a is UNSET or b is UNSET:
        return Incompatible(
            "it has a value on one path only",
            "assign it before the branch or loop, or on every path",
            NoValueError,
            sides(a, b),
        )
    if numeric(a) and numeric(b):
        return _join_numeric(a, b)
    if type(a) is type(b):
        group = _join_containers(a, b)
        if group is not None:
            return group
    return _apart(a, b)


def join_cases(
    a: Any, b: Any, old: Structured | None = None, child: Callable[[Any, Any, Any], Join] | None = None
) -> Structured | None:
    """Two values of different kinds as a ``TaggedUnion``, or None if that can't be.

    A side may be MISSING. ``old`` is what an earlier join gave, whose kinds come first; ``child`` then joins its
    children with what there is now.
    """
    a, b = (UNSET if unset(value) else value for value in (a, b))
    found = sorted_out(a, b, _signature, () if old is None else old.signature[1])
    if found is None:
        return None
    tag_a, tag_b, rows = found
    tags = [UNSET if tag is MISSING else tag for tag in (tag_a, tag_b)]
    children: list[Join] = [Phi(tags[0], tags[1], torch.int64, None, hidden=True)]
    for i, (kind, x, y) in enumerate(rows):
        if kind == ("unset",):
            children.append(Invariant(UNSET))
        elif x is MISSING and y is MISSING:
            return None
        elif old is not None and child is not None and i + 1 < len(old.children):
            children.append(child(old.children[i + 1], x, y))
        elif x is MISSING:
            children.append(_one_sided(y, a_missing=True))
        else:
            children.append(_one_sided(x, a_missing=False) if y is MISSING else join(x, y))
    if any(isinstance(c, Incompatible) for c in children):
        return None
    kinds = tuple(kind for kind, _, _ in rows)
    return Structured(children, lambda made: TaggedUnion(made[0], made[1:]), (TAGGED_UNION, kinds))


def join_content(a: Any, b: Any) -> Join:
    """The content of one list, dict or set on two paths; a key that one path does not have has no value there."""
    if isinstance(a, dict) and isinstance(b, dict) and list(a) != list(b):
        if isinstance(a, DefaultDict) or isinstance(b, DefaultDict):
            return _apart(a, b)
        keys = [*a, *(k for k in b if k not in a)]
        if [k for k in keys if k in b] == list(b):
            children = [join(a.get(k, UNSET), b.get(k, UNSET)) for k in keys]
            signature = (dict, Keys(tuple(keys)))
            return Structured(children, lambda made: dict(zip(keys, made, strict=True)), signature, (a, b))
    joined = join(a, b)
    if isinstance(joined, UnequalLengths):
        return UnequalLengths(a, b, lambda: _apart(a, b))
    return _apart(a, b) if isinstance(joined, Structured) and joined.signature[0] == TAGGED_UNION else joined


def _signature(value: Any) -> Any:
    opened, rows = open_container(value), row_places(value)
    return None if opened is None else (opened[2], rows) if rows else opened[2]


def _apart(a: Any, b: Any) -> Incompatible:
    """Two values that nothing can stand for."""
    if type(a) is not type(b):
        hint = "give it the same type (tensor, number, or container of the same structure) on both paths"
        return Incompatible.between(a, b, hint, DifferentTypesError)
    if isinstance(a, (list, tuple, dict)):
        hint = "give both the same number of elements, or the same keys in the same order"
        return Incompatible.between(a, b, hint, DifferentStructureError)
    hint = "assign a number or a tensor on each path, and choose by it afterwards"
    return Incompatible.between(a, b, hint, DifferentObjectsError)


def _one_sided(value: Any, *, a_missing: bool) -> Join:
    both: tuple[Any, Any] = (UNSET, value) if a_missing else (value, UNSET)
    if isinstance(value, (torch.Tensor, Number, *SYMBOLS)) and not isinstance(value, SparseTensor):
        kind = number_kind(value)
        return Phi(*both, value.dtype if isinstance(value, torch.Tensor) else DTYPES[kind or int], kind)
    if isinstance(value, TaggedUnion):
        cases = join_cases(MISSING, value) if a_missing else join_cases(value, MISSING)
        return Invariant(value) if cases is None else cases
    if type(value) is list and has_rows(value):
        return UnequalLengths(*both, lambda: Invariant(value))
    opened = open_container(value)
    if opened is not None:
        children, build, signature = opened
        return Structured([_one_sided(c, a_missing=a_missing) for c in children], build, signature, both)
    return Invariant(value)


def _join_numeric(a: Any, b: Any) -> Join:
    ka, kb = number_kind(a), number_kind(b)
    if ka is not None and kb is not None:
        if ka is kb:
            return Phi(a, b, DTYPES[ka], ka)
        return Incompatible.between(
            a, b, "use the same Python type on both paths (0.0 in place of 0)", DifferentTypesError
        )
    if ka is None and kb is None:
        if a.dtype is not b.dtype:
            return Incompatible.between(a, b, f"cast on one of the paths: .to({a.dtype})", DifferentDtypesError)
        if a.dim() != b.dim():
            hint = "keep the dimension on both paths (keepdim=True), or .expand or .reshape on one of them"
            return Incompatible.between(a, b, hint, DifferentRanksError)
        return Phi(a, b, a.dtype, None)
    tensor, number = (a, b) if ka is None else (b, a)
    kind = number_kind(number)
    assert kind is not None
    if promoted_dtype(tensor, kind) is not tensor.dtype:
        hint = f"make the number a tensor: torch.full({list(tensor.shape)}, {number}, dtype={tensor.dtype})"
        return Incompatible.between(a, b, hint, DifferentDtypesError)
    if tensor.dim() != 0:
        hint = "start from a tensor of the same shape (torch.zeros(...), torch.zeros_like(...))"
        return Incompatible.between(a, b, hint, DifferentRanksError)
    if type(number) is int and tensor.dtype.is_floating_point and abs(number) * torch.finfo(tensor.dtype).eps > 2:
        return Incompatible.between(a, b, "use a smaller number: this one is rounded as a tensor", DifferentTypesError)
    if plan().has_taken(Alternative.NUMBERS_STAY_NUMBERS):
        return Incompatible.between(a, b, "use a tensor on both paths", DifferentTypesError)
    return Phi(a, b, tensor.dtype, None)


def labels(signature: Any, count: int) -> list[str]:
    """How the source names the children of a container: ``[0]``, ``['key']``, ``.field``."""
    if isinstance(signature, tuple) and signature[0] == TAGGED_UNION:
        return [""] * count
    kind, keys = signature if isinstance(signature, tuple) else (list, count)
    if isinstance(keys, Keys):
        return [f"[{key!r}]" for key in keys.order]
    if isinstance(keys, tuple):
        return [key if key.startswith("[") else f".{key}" for key in keys]
    fields = getattr(kind, "_fields", None)
    return [f".{field}" for field in fields] if fields is not None else [f"[{i}]" for i in range(count)]


def _join_containers(a: Any, b: Any) -> Join | None:
    opened = open_alike(a, b)
    if opened is None:
        return None
    (first, build, signature), (second, _, _) = opened
    children = [join(x, y) for x, y in zip(first, second, strict=True)]
    if all(isinstance(c, Invariant) for c in children) and isinstance(a, tuple):
        return Invariant(a)
    return Structured(children, build, signature, (a, b))


def leaves(joined: Join) -> list[Phi]:
    """The leaves of a join, in order."""
    if isinstance(joined, Phi):
        return [joined]
    if isinstance(joined, Structured):
        return [leaf for child in joined.children for leaf in leaves(child)]
    return []


def rebuild(
    joined: Join,
    values: Callable[[Phi], Any],
    name: str,
    location: Any = None,
    made: Callable[[Any, tuple[Any, ...]], Any] | None = None,
) -> Any:
    """The joined value, with ``values`` giving the value of each leaf (a tensor, wrapped as the leaf's kind).

    ``made`` is told of each container that is made, with those that it stands for, and returns what to take for it.
    """
    if isinstance(joined, Invariant):
        return joined.value
    if isinstance(joined, Incompatible):
        return joined.undefined(name, location)
    if isinstance(joined, Phi):
        tensor = values(joined)
        if joined.kind is not None:
            return Number(tensor, joined.kind)
        if not joined.hidden:
            note_lower_kinds(tensor, joined.a, joined.b)
        return tensor
    assert isinstance(joined, Structured)
    names = (f"{name}{label}" for label in labels(joined.signature, len(joined.children)))
    built = joined.build([rebuild(c, values, n, location, made) for c, n in zip(joined.children, names, strict=True)])
    return made(built, joined.sides) if made is not None and joined.sides else built


def leaf_tensor(value: Any, leaf: Phi) -> torch.Tensor:
    """A side of a leaf as a tensor of the leaf's dtype; traced."""
    if isinstance(value, Retagged):
        return value.tensor()
    tensor = value if isinstance(value, torch.Tensor) else number_tensor(value)
    return tensor if tensor.dtype is leaf.dtype else tensor.to(leaf.dtype)


def structure_change(slot: Slot, lost: Incompatible, where: str, location: Location) -> StagingError:
    """The error of a container whose structure differs by path, or from one trip of a loop to the next."""
    note_outer(slot.owner)
    what = f"{named(slot.owner, str(slot))} is changed {where}: {lost.reason}"
    if lost.kind in (DifferentDtypesError, DifferentRanksError, ListChangeError):
        return lost.kind(what, hint=lost.hint, location=location).or_else(lost.otherwise)
    if isinstance(slot.owner, (dict, set)):
        hint = "give it the same keys on every path, before the branch or loop"
        return KeysChangeError(what, hint=hint, location=location)
    hint = "give all elements of the list the same structure: tensors of one shape and dtype, numbers, tuples of them"
    return ListChangeError(what, hint=hint, location=location).or_else(lost.otherwise)
