"""What a call makes of a part of the state: what it is before and after, as inputs and outputs of a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.export import Dim

from dy2st.capture.carried_parts import Part, Unit
from dy2st.capture.carried_places import Place, Steps, is_absent, is_structure, leaves, rebuilt, structures
from dy2st.capture.lost_state import outlived
from dy2st.capture.results import promoted
from dy2st.errors import CarriedStateError, Location
from dy2st.source.assigning_lines import stored_at
from dy2st.source.user_frames import place as spot
from dy2st.staging.cases import is_case, narrowed
from dy2st.staging.session import Session
from dy2st.tracing.size_facts import expression
from dy2st.tracing.stale import check_read
from dy2st.tracing.subgraph import storage_key
from dy2st.tracing.tracer import same_size
from dy2st.values.describing import alternatives, describe
from dy2st.values.journal import Slot
from dy2st.values.number import number_kind, number_tensor
from dy2st.values.tagged_union import TaggedUnion, cases_of, distributed

# The size that a program is captured with where an example tells none.
SOME_SIZE = 3

FORGET = 'or export with state="forget": the file then starts afresh in each call'


def new_unit(
    capture: Session, place: Place, steps: Steps, old: Any, new: Any, declared: Mapping[Any, Any]
) -> Unit | None:
    """The unit of a leaf that was ``old`` before the call and is ``new`` after it; None if there is no such."""
    new = narrowed(capture, new)
    cases = cases_of(new)
    present = [each for each in (old, *cases) if not is_absent(each)]
    absent = [each for each in (old, *cases) if is_absent(each)]
    name = ".".join([place.path, *map(str, steps)])
    if not present or any(each is not absent[0] for each in absent[1:]):
        return None
    kind = "buffer" if is_buffer(place) else "attribute"
    if absent:
        template = present[-1]
        parts = {at: _part(".".join([name, *map(str, at)]), kind, leaf) for at, leaf in leaves(template).items()}
        found = {at: part for at, part in parts.items() if part is not None}
        if len(found) < len(parts):
            return None
        for at, leaf in leaves(template).items():
            if isinstance(leaf, torch.Tensor):
                sizes: list[Any] = list(leaf.shape)
                found[at].dynamic = {
                    d: _declared(size, declared) for d, size in enumerate(sizes) if not isinstance(size, int)
                }
        flag = Part(f"{name}_is_set", "presence", bool, torch.bool, [])
        bare = rebuilt(template, dict.fromkeys(found)) if is_structure(template) else None
        return Unit(place, steps, bare, found, flag, absent[0], _location(capture, place, None))
    part = _part(name, kind, old)
    if part is None:
        return None
    unit = Unit(place, steps, None, {(): part}, location=_location(capture, place, None))
    try:
        _next(capture, part, new, declared)
    except CarriedStateError:
        return None
    return unit


def is_buffer(place: Place) -> bool:
    """Whether a place is a registered buffer of a module."""
    return isinstance(place.owner, torch.nn.Module) and place.name in place.owner.__dict__.get("_buffers", ())


def _part(name: str, kind: str, leaf: Any) -> Part | None:
    number = number_kind(leaf)
    if number is not None:
        return Part(name, "number", number, number_tensor(leaf).dtype, [])
    # A complex tensor is one of another rank in a file.
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided or leaf.is_complex():
        return None
    return Part(name, kind, None, leaf.dtype, [_hint(size) for size in leaf.shape])


def _hint(size: Any) -> int:
    if isinstance(size, int):
        return size
    hint = size.node.hint if size.node.has_hint() else None
    return SOME_SIZE if hint is None else int(hint)


def _declared(size: Any, declared: Mapping[Any, Any]) -> Any:
    """What is declared of a size: as of the argument whose size it is, else that it may change."""
    found = declared.get(expression(size)) if not isinstance(size, int) else None
    return Dim.DYNAMIC if found is None else found


def next_values(
    capture: Session, unit: Unit, value: Any, given: Mapping[Part, torch.Tensor], declared: Mapping[Any, Any]
) -> tuple[dict[Part, torch.Tensor], bool]:
    """The parts of a unit as the call leaves them, and whether one has turned out to be wider than was known.

    Raises:
        CarriedStateError: they have no place in the parts that are known.
    """
    value = narrowed(capture, value)
    found: dict[Part, torch.Tensor] = {}
    wider = False
    if unit.flag is None:
        (part,) = unit.parts.values()
        try:
            tensor, wider = _next(capture, part, value, declared)
        except CarriedStateError as error:
            error.location = _location(capture, unit.place, None)
            raise
        return {part: given[part] if tensor is None else tensor}, wider
    cases = cases_of(value)
    there = [number for number, case in enumerate(cases) if not is_absent(case)]
    if not isinstance(value, TaggedUnion):
        found[unit.flag] = torch.full((), bool(there), dtype=torch.bool)
    else:
        tests: Iterator[torch.Tensor] = (is_case(value, number) for number in there)
        found[unit.flag] = next(tests)
        for test in tests:
            found[unit.flag] = found[unit.flag].logical_or(test)
    for at, part in unit.parts.items():
        if not there:
            found[part] = given[part]
            continue
        held = [leaves(cases[number]).get(at) for number in there]
        if len(held) > 1 or held[0] is None:
            kinds = " or ".join(dict.fromkeys(map(describe, held)))
            raise CarriedStateError(
                f"{part.name!r} is {kinds} after the call, depending on the path",
                hint=f"store values of one dtype, rank and structure on all paths; {FORGET}",
                location=_location(capture, unit.place, None),
            )
        tensor, more = _next(capture, part, held[0], declared)
        found[part] = given[part] if tensor is None else tensor
        if tensor is not None and isinstance(value, TaggedUnion):
            found[part] = _chosen(found[unit.flag], tensor, given[part])
        wider |= more
    return found, wider


def _chosen(there: torch.Tensor, value: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    """The value if there is one, else what was given: what stands for no value is the same in eager and in a file."""
    if all(isinstance(size, int) for size in (*value.shape, *given.shape)) and value.shape == given.shape:
        return torch.where(there, value, given)
    # Before the first call what is given has the sizes of an example, whatever is declared of them.
    chosen = distributed(torch.clone, TaggedUnion(there.to(torch.int64), [given, value]))
    assert isinstance(chosen, torch.Tensor)
    return chosen


def _next(capture: Session, part: Part, value: Any, declared: Mapping[Any, Any]) -> tuple[torch.Tensor | None, bool]:
    """The tensor of a part as the call leaves it, and whether the part is wider than was known.

    There is no tensor where the part has become another one: what is captured now does not matter any more.
    """
    kinds = {number_kind(case) for case in cases_of(value)}
    if part.number is not None and kinds <= {int, float} and part.number in (int, float):
        if part.number is int and float in kinds:
            part.become_float()
            return None, True
        tensor = number_tensor(promoted(value) if isinstance(value, TaggedUnion) else value)
        return tensor.to(part.dtype), False
    if part.number is not None and kinds == {part.number}:
        return number_tensor(value), False
    if part.number is None and isinstance(value, torch.Tensor):
        if value.dtype is part.dtype and value.dim() == len(part.shape):
            check_read(capture.tracing.layer, storage_key(value))
            return value, _widen(part, value, declared)
        what = f"of {part.dtype} and rank {len(part.shape)}"
        raise CarriedStateError(
            f"{part.name!r} is a tensor {what} before the call and {describe(value)} of rank {value.dim()} after it",
            hint=f"give it its dtype and rank before the first call, or cast what is stored; {FORGET}",
        )
    was = "a tensor" if part.number is None else f"the {part.number.__name__}"
    raise CarriedStateError(
        f"{part.name!r} is {was} before the call and {_words(value)} after it",
        hint=f"give it a value of the same kind before the first call; {FORGET}",
    )


def _widen(part: Part, value: torch.Tensor, declared: Mapping[Any, Any]) -> bool:
    wider = False
    for d, size in enumerate(value.shape):
        if d not in part.dynamic and not same_size(size, part.shape[d]):
            part.dynamic[d] = _declared(size, declared)
            # Torch takes a size of 0 or 1 for one that stays so.
            part.shape[d] = max(_hint(size), 2)
            wider = True
    return wider


# ---- what is refused


def _location(capture: Session, place: Place, held: Any) -> Location | None:
    """Where a place, or a container in it, was stored to."""
    slots = [slot for slot in capture.stored if slot.kind == place.kind and slot.name == place.name]
    slots += [Slot.of("content", each) for each in structures(held)]
    slots += [slot for slot in capture.stored if any(slot.owner is each for each in structures(held))]
    for slot in slots:
        if slot in capture.stored:
            return spot(*capture.stored[slot])
    return stored_at(type(place.owner), place.name) if place.kind == "attribute" else None


def refuse_unreached(capture: Session, slot: Slot, holders: Iterable[Any], model: Any) -> None:
    """What changes may be held by what no attribute leads to, such as the default of a parameter.

    ``holders`` are the objects that the ``model`` leads to.
    """
    stored = capture.stored.get(slot)
    namespaces = {id(vars(each)) for each in holders if hasattr(each, "__dict__")}
    if slot.identity in namespaces and slot.kind == "content":
        raise CarriedStateError(
            "an attribute is stored through __dict__, or by vars()",
            hint="assign it: self.h = ...",
            location=None if stored is None else spot(*stored),
        )
    if slot.kind != "global" and outlived(slot, capture.trace_frames[0].journal.old[slot], model):
        raise CarriedStateError(
            f"{slot} is changed, and it is none that an attribute of the model leads to",
            hint="keep it in an attribute of the model",
            location=None if stored is None else spot(*stored),
        )


def changed_layout(
    capture: Session, place: Place, before: Any, after: Any, journal: Mapping[Slot, Any]
) -> CarriedStateError:
    """The error of a value that has another structure after the call."""
    was, now = _told(before, journal), _told(after, {})
    grows = isinstance(before, (list, dict)) and type(before) is type(after)
    advice = (
        "keep a tensor of fixed size and write into it, or return what is new and let the caller keep it"
        if grows
        else "keep a tensor, a number, or a tuple or dataclass of these that has the same structure from the start"
    )
    return CarriedStateError(
        f"{place.path!r} is {was} before the call and {now} after it: a file has one input for each tensor and number"
        " of its state, and can't keep this",
        hint=f"{advice}; {FORGET}",
        location=_location(capture, place, before),
    )


def shared_container(capture: Session, place: Place, before: Any) -> CarriedStateError:
    """The error of a container that has several names."""
    return CarriedStateError(
        f"{place.path!r} ({describe(before)}) is something that the model changes by another name, too",
        hint=f"refer to it by one attribute only; {FORGET}",
        location=_location(capture, place, before),
    )


def _told(value: Any, journal: Mapping[Slot, Any]) -> str:
    if isinstance(value, (list, dict)):
        count = len(journal.get(Slot.of("content", value), value))
        return f"a {type(value).__name__} of {count} element{'s' * (count != 1)}"
    return _words(value)


def _words(value: Any) -> str:
    cases = cases_of(value)
    return alternatives(cases) if len(cases) > 1 else describe(value)
