"""The end of a program: what it returns, what its buffers hold, and what waits for the guards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import (
    BufferKindError,
    DifferentDtypesError,
    DifferentObjectsError,
    DifferentRanksError,
    DifferentStructureError,
    DifferentTypesError,
    GrownListError,
    StagedNumberError,
)
from dy2st.source.assigning_lines import stored_at
from dy2st.staging.cases import narrowed
from dy2st.staging.session import MODE, Session
from dy2st.tracing.gradients import stop_gradients
from dy2st.tracing.stale import check_read
from dy2st.tracing.subgraph import storage_key
from dy2st.tracing.tracer import same_size, starts_anywhere
from dy2st.values.describing import alternatives, article, describe
from dy2st.values.dtype_provenance import Kind, lower_kinds
from dy2st.values.journal import Slot
from dy2st.values.number import number_kind, number_tensor
from dy2st.values.sparse_tensor import SparseTensor, refuse_sparse_use
from dy2st.values.stacked_list import StackedList
from dy2st.values.staged_text import is_unknown
from dy2st.values.tagged_union import TaggedUnion, cases_of, distributed
from dy2st.values.undefined import UNSET, Undefined


def drop_grad_mode(capture: Session) -> None:
    """What ran without gradients is detached; torch.export would move it into subgraphs, and lose ours in doing so."""
    capture.trace_frames[0].subgraph.drop_grad_mode()
    root = capture.tracing.tracer.root
    stop_gradients(root, capture.tracing.root.graph)


def write_buffers(capture: Session, result: Any, is_output: Callable[[Slot], bool] = lambda _: False) -> Any:
    """At the end of a program: a buffer that was assigned gets its new value in place; the program's result.

    ``is_output`` says which have their new values among the program's outputs.
    """
    changed = []
    for slot, old in capture.trace_frames[0].journal.old.items():
        buffers = slot.owner.__dict__.get("_buffers", {}) if isinstance(slot.owner, torch.nn.Module) else {}
        if slot.kind != "attribute" or slot.name not in buffers or not isinstance(old, torch.Tensor):
            continue
        if is_output(slot):
            continue
        new = slot.get()
        if new is old:
            continue
        if not isinstance(new, torch.Tensor) or new.dtype is not old.dtype or not _has_the_sizes_of(new, old):
            raise BufferKindError(
                f"the buffer {slot.name!r} is assigned {describe(new)} in place of {describe(old)}",
                hint="give a buffer a fixed dtype, rank and sizes, or keep the value in a plain attribute",
                location=stored_at(type(slot.owner), slot.name),
            )
        check_read(capture.tracing.layer, storage_key(new))
        changed.append((old, new))
    if not changed:
        return result
    storages = {storage_key(old) for old, _ in changed}

    def own(value: Any) -> Any:
        shares = isinstance(value, torch.Tensor) and storage_key(value) in storages
        return value.clone() if shares else value

    result = pytree.tree_map(own, result)
    # These writes are ours: what a buffer was assigned is what it holds at the end.
    capture.tracing.check = lambda _node: None
    copies = [(old, new.clone()) for old, new in changed]
    for old, new in copies:
        old.copy_(new)
    return result


def _has_the_sizes_of(new: torch.Tensor, old: torch.Tensor) -> bool:
    return new.dim() == old.dim() and all(same_size(a, b) for a, b in zip(new.shape, old.shape, strict=True))


def tie_guards(capture: Session, result: Any) -> Any:
    """At the end of a program: its first output waits for the guards."""
    leaves, spec = pytree.tree_flatten(result)
    first = next((i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)), None)
    if first is not None:
        leaves[first] = capture.guards.after(leaves[first])
    return pytree.tree_unflatten(leaves, spec)


def checked_output(kinds: list[type | None], value: Any) -> Any:
    """A leaf of what a model returns, as the program's: a number becomes a tensor, and ``kinds`` gets its kind.

    Raises ``StagingError`` for what has no place among the results of a program.
    """
    if isinstance(value, Undefined):
        value.refuse()
    if isinstance(value, StackedList):
        raise GrownListError(
            "a list whose length is known only when the graph runs is returned",
            hint="return torch.stack(list) in its place",
        )
    if is_unknown(value):
        raise StagedNumberError(
            "a text made from a number that is known only when the graph runs is returned",
            hint="return the number itself",
        )
    if isinstance(value, SparseTensor):
        refuse_sparse_use("is returned")
    if isinstance(value, TaggedUnion) and MODE.capture is not None:
        value = promoted(narrowed(MODE.capture, value))
        if isinstance(value, TaggedUnion):
            refuse_cases(cases_of(value))
    kinds.append(number_kind(value))
    if kinds[-1] is not None:
        return number_tensor(value)
    if MODE.capture is not None and isinstance(value, torch.Tensor):
        check_read(MODE.capture.tracing.layer, storage_key(value))
    warn_of_lower(value)
    # A view that begins at a data-dependent place: torch.export would name its place again, which it can't.
    return value.clone() if isinstance(value, torch.Tensor) and starts_anywhere(value) else value


def warn_of_lower(value: Any) -> None:
    """The export will warn of a result that eager has in another dtype on some path."""
    if kinds := lower_kinds(value):
        caution(f"{describe(value)} or {or_kinds(kinds)}", value.dtype)


def or_kinds(kinds: Iterable[Kind]) -> str:
    """In words, one of these: ``an int or a float16 tensor``."""
    # The order of a set of types is not that of the last run.
    names = sorted(each.__name__ if isinstance(each, type) else str(each) for each in kinds)
    return " or ".join(article(f"{name.removeprefix('torch.')}{' tensor' * ('.' in name)}") for name in names)


def caution(returned: str, dtype: torch.dtype | None) -> None:
    """A result has another dtype in eager on some path, and the same value: to be told when the export is done."""
    if MODE.capture is not None:
        text = f"the model returns {returned}, depending on the path; the program returns {dtype} on all of them"
        MODE.capture.cautions[text] = dtype


def promoted(value: Any) -> Any:
    """What is an integer (tensor) on one path and a float (tensor) on the other, as the float: the values are equal.

    A program's result has one dtype. The export will warn, since eager's dtype differs by path.
    """
    cases = cases_of(value)
    if {number_kind(case) for case in cases} == {int, float}:
        caution(alternatives(cases), torch.float64)
        return distributed(float, value)
    if not isinstance(value, TaggedUnion) or not all(isinstance(case, torch.Tensor) for case in cases):
        return value
    # What is empty has no values that another dtype would change.
    full = {case.dtype for case in cases if not any(type(size) is int and size == 0 for size in case.shape)}
    floats = full if len(full) == 1 else {case.dtype for case in cases if case.dtype.is_floating_point}
    if len(floats) != 1 or len({case.dim() for case in cases}) > 1 or any(case.dtype.is_complex for case in cases):
        return value
    (dtype,) = floats
    caution(alternatives(cases), dtype)
    return distributed(torch.Tensor.to, value, dtype)


def refuse_cases(cases: Sequence[Any]) -> None:
    """A program's result has one type."""
    if any(case is UNSET for case in cases):
        what = "the model returns a container with an element that is there on some paths only"
        raise DifferentStructureError(what, hint="return the same elements or keys on every path")
    what = f"the model returns {alternatives(cases)}, depending on the path"
    if all(isinstance(case, torch.Tensor) for case in cases):
        dtypes = {case.dtype for case in cases}
        if len(dtypes) > 1:
            raise DifferentDtypesError(what, hint=f"cast on every path: .to({cases[0].dtype})")
        raise DifferentRanksError(what, hint="keep the dimension on every path (keepdim=True), or .expand, or .reshape")
    types = {type(case) for case in cases}
    if len(types) == 1 and (isinstance(cases[0], (list, tuple, dict, set)) or dataclasses.is_dataclass(cases[0])):
        raise DifferentStructureError(what, hint="return the same number of elements, or the same keys, on every path")
    flag = "return a tensor on every path, and a number or bool beside it that tells the paths apart"
    raise (DifferentObjectsError if len(types) == 1 else DifferentTypesError)(what, hint=flag)
