"""State that lives on between calls as inputs and outputs of a program.

A first capture finds out what the model changes. A second one captures the model with these places holding inputs of
the program, and returns their new values beside the result. It may come upon more (a counter is a number of the graph
now, so that both sides of a test of it are traced), or learn that a size changes: then there is a third. What no
program reads (an attribute that is written for a look at it later) is none of the state.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.carried_parts import Part, Unit
from dy2st.capture.carried_places import (
    Paths,
    Place,
    at,
    fits,
    is_absent,
    is_same,
    is_structure,
    kept_kind,
    leaves,
    rebuilt,
    structures,
)
from dy2st.capture.carried_units import (
    changed_layout,
    is_buffer,
    new_unit,
    next_values,
    refuse_unreached,
    shared_container,
)
from dy2st.capture.overwritten_state import Overwritten
from dy2st.capture.root_module import original_of
from dy2st.capture.settled_state import Settled, used_inputs
from dy2st.errors import CarriedStateError, Location
from dy2st.staging.session import Session
from dy2st.tracing.size_facts import expression
from dy2st.tracing.subgraph import changed_inputs, storage_key, storage_of
from dy2st.values.journal import Slot
from dy2st.values.tagged_union import cases_of

# What a program calls the inputs of its state; the file has better names.
PREFIX = "dy2st_state_"


class CarriedState:
    """What is known of the state of a model, capture after capture."""

    def __init__(self, model: Any, paths: Paths | None = None) -> None:
        self.model = model
        self.units: list[Unit] = []
        # Found by the last capture, and what nobody reads.
        self.found: list[Unit] = []
        self.unread: set[tuple[Any, ...]] = set()
        self.revised = False
        # Of before the first capture: in a capture, the user's objects hold what is traced.
        self._paths = paths
        self._views: dict[int, Any] = {}
        self._held: list[tuple[torch.nn.Module, str, torch.Tensor]] = []
        self._given: dict[Part, torch.Tensor] = {}
        self._versions: dict[int, int] = {}
        # What the last capture has written to in place.
        self.written: list[Part] = []
        # The user's objects as they are outside of a capture, and containers that stand for theirs.
        self._before: dict[Slot, Any] = {}
        self._made: dict[int, Any] = {}
        # What was put into each place, by its key.
        self._put: dict[Any, Any] = {}
        # What the first call alone changes.
        self.settled = Settled()
        self.overwritten = Overwritten()
        # ``dynamic_shapes`` of the last capture, those of the state among them.
        self.dynamic_shapes: Any = None
        # What is declared of the arguments' sizes, by their expressions.
        self.declared: dict[Any, Any] = {}

    def __deepcopy__(self, memo: Any) -> CarriedState:
        """A copy of a program has the same state: it is about the user's own objects."""
        return self

    @property
    def paths(self) -> Paths:
        """How the model names what it leads to."""
        if self._paths is None:
            self._paths = Paths(self.model)
        return self._paths

    @property
    def parts(self) -> list[Part]:
        """What the program takes and gives, in order."""
        return [part for unit in self.units for part in unit.all_parts()]

    def inputs(self) -> dict[str, torch.Tensor]:
        """Examples for the inputs, by the names that a capture gives them."""
        return {f"{PREFIX}{number}": part.example() for number, part in enumerate(self.parts)}

    def shapes(self) -> dict[str, Any]:
        """What is declared of their sizes."""
        return {f"{PREFIX}{number}": part.dynamic or None for number, part in enumerate(self.parts)}

    # ---- during a capture

    @contextlib.contextmanager
    def capturing(self, model: Any, module: torch.nn.Module) -> Iterator[None]:
        """While places hold what ``put`` puts there; ``model`` is a view of the user's, ``module`` what is traced."""
        modules = [*module.modules(), *(model.modules() if isinstance(model, torch.nn.Module) else ())]
        self._views = {id(original_of(each)): each for each in modules}
        self._before, self._put, self._made, self.found, self.revised = {}, {}, {}, [], False
        self._held = [
            (each, name, held)
            for each in modules
            for name, held in (*each._buffers.items(), *each._parameters.items())
            if held is not None
        ]
        try:
            yield
        finally:
            for slot, value in self._before.items():
                slot.set(value)

    def put(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Let the places hold these inputs of the trace."""
        given = {part: inputs[f"{PREFIX}{number}"].clone() for number, part in enumerate(self.parts)}
        self._given = given
        for content in self.settled.put(self._slots):
            self._before[content] = content.get()
        for place, slot, nothing in self.overwritten.put(self._slots):
            self._before[slot] = slot.get()
            slot.set(nothing)
            self._put[place.key] = nothing
        self._versions = {id(tensor): tensor._version for tensor in given.values()}
        for place, units in self._by_place().items():
            first, *_ = slots = self._slots(place)
            value = rebuilt(first.get(), {unit.steps: unit.value(given) for unit in units})
            for slot in slots:
                self._before[slot] = slot.get()
                slot.set(value)
            self._put[place.key] = value
            self._made |= {id(each): each for each in structures(value)}

    def _slots(self, place: Place) -> list[Slot]:
        """The slot in what stands for the user's object, and that in the object: hooks know the latter."""
        return list(dict.fromkeys((place.slot(self._views), place.slot())))

    def storages(self) -> set[int]:
        """The storages of what was put: somebody reads these after the call."""
        return {storage_key(tensor) for tensor in self._given.values()}

    def carries(self, slot: Slot) -> bool:
        """Whether a slot holds what was put there."""
        return slot in self._before

    def taken(self, capture: Session) -> list[torch.Tensor]:
        """At the end of the model's code: the new values of the parts. What else has changed is noted."""
        journal = capture.trace_frames[0].journal.old
        places = dict.fromkeys(self._by_place())
        by_key = {place.key: place for place in places}
        for slot in self._changed(capture):
            if slot.identity in self._made:
                continue
            place = self.paths.place_of(slot)
            if place is not None and place.key not in by_key:
                by_key[place.key] = place
            if place is None and slot in journal:
                refuse_unreached(capture, slot, (*self._views.values(), *self.paths.objects), self.model)
        new: dict[Part, torch.Tensor] = {}
        for place in by_key.values():
            new |= self._taken_of(capture, journal, place)
        self._refuse_aliases(new)
        self.settled.require_unchanged()
        return [new[part].clone() for part in self.parts]

    def _taken_of(self, capture: Session, journal: Mapping[Slot, Any], place: Place) -> dict[Part, torch.Tensor]:
        slots = self._slots(place)
        known_as = self._put.get(place.key)
        changed = [
            each for each in slots if (each.get() is not known_as if place.key in self._put else each in journal)
        ]
        slot = changed[0] if changed else slots[0]
        before, after = journal.get(slot, slot.get()), slot.get()
        if len(changed) > 1:
            raise shared_container(capture, place, before)
        if self.overwritten.are(place, after):
            return {}
        units = [unit for unit in self.units if unit.place.key == place.key]
        found: dict[Part, torch.Tensor] = {}
        for unit in units:
            values, widened = next_values(capture, unit, at(after, unit.steps), self._given, self.declared)
            found |= values
            self.revised |= widened
        known = {unit.steps for unit in units} | {key[-1] for key in self.unread if key[:-1] == place.key}
        if () in known:
            return found
        old = leaves(before, journal)
        if is_structure(before) and any(is_absent(case) for case in cases_of(after)):
            old = {(): before}
        elif is_structure(before) and not fits(old, after):
            if self.paths.is_read(place) and not self._settles(capture, journal, place):
                self._overwrites(place, changed_layout(capture, place, before, after, journal))
            return found
        written = self._written(capture)
        for steps, leaf in old.items():
            if any(steps[: len(each)] == each for each in known):
                continue
            value = at(after, steps)
            in_place = isinstance(leaf, torch.Tensor) and storage_key(leaf) in written
            if not in_place and is_same(leaf, value):
                continue
            if self.paths.is_shared(before):
                raise shared_container(capture, place, before)
            made = new_unit(capture, place, steps, leaf, value, self.declared)
            if made is not None:
                self.found.append(made)
            elif self.paths.is_read(place) and not is_buffer(place):  # which has an error of its own
                self._overwrites(place, changed_layout(capture, place, before, after, journal))
        return found

    def _overwrites(self, place: Place, error: CarriedStateError) -> None:
        if not self.overwritten.takes(place, error):
            raise error

    def _settles(self, capture: Session, journal: Mapping[Slot, Any], place: Place) -> bool:
        """Whether a place may be as this call leaves it before each later one, too: ``another`` finds out."""
        slot = self._slots(place)[0]
        before, after = journal.get(slot, slot.get()), slot.get()
        if before is not after or self.paths.is_shared(before):
            return False
        return self.settled.takes(place, after, changed_layout(capture, place, before, after, journal))

    def _changed(self, capture: Session) -> list[Slot]:
        """The slots that the model has stored to, and those of buffers that it has written to."""
        journal = capture.trace_frames[0].journal.old
        written = self._written(capture)
        slots = [
            Slot.of("attribute", module, name) for module, name, held in self._held if storage_key(held) in written
        ]
        return [*journal, *(slot for slot in slots if slot not in journal)]

    def _written(self, capture: Session) -> set[int | None]:
        nodes = capture.tracing.root.graph.nodes
        return {storage_of(target) for node in nodes for target in changed_inputs(node)}

    def _refuse_aliases(self, new: Mapping[Part, torch.Tensor]) -> None:
        """What is written to in place may not be one tensor with something else, from the next call on."""
        self.written = [part for part, tensor in self._given.items() if tensor._version != self._versions[id(tensor)]]
        by_storage: dict[int, Part] = {}
        for part, tensor in new.items() if self.written else ():
            other = by_storage.setdefault(storage_key(tensor), part)
            if other is not part:
                raise self._aliased(self.written[0], f"{other.name!r} and {part.name!r} are one tensor after the call")

        held = {storage_key(tensor): name for _, name, tensor in self._held}
        for part in self.written:
            if (name := held.get(storage_key(new[part]))) is not None:
                raise self._aliased(part, f"{part.name!r} is {name!r} itself after the call")

    def _aliased(self, written: Part, what: str) -> CarriedStateError:
        unit = next(unit for unit in self.units if written in unit.all_parts())
        return CarriedStateError(
            f"{what}, and {written.name!r} is changed in place: one call changes what another name stands for, too",
            hint=f"store a copy (.clone()), or compute a new tensor in place of changing {written.name!r}",
            location=unit.location,
        )

    def _by_place(self) -> dict[Place, list[Unit]]:
        found: dict[tuple[Any, ...], tuple[Place, list[Unit]]] = {}
        for unit in self.units:
            found.setdefault(unit.place.key, (unit.place, []))[1].append(unit)
        return dict(found.values())

    # ---- between captures

    def another(self, program: torch.export.ExportedProgram, given: Any) -> bool:
        """After a capture: whether there has to be another one, which knows more. ``given`` are the arguments."""
        if self.overwritten.more:
            return True
        if self.settled.contents:
            return self.settled.another(program, alone=not (self.found or self.units or self.revised))
        if self.found:
            for unit in self.found:
                unit.settle(at(unit.place.slot().get(), unit.steps))
            self.units += self.found
            return True
        if self.revised:
            for unit in self.units:
                unit.settle(at(unit.place.slot().get(), unit.steps))
            return True
        used = used_inputs(program.graph)
        names = {part: f"{PREFIX}{number}" for number, part in enumerate(self.parts)}
        idle = [unit for unit in self.units if not any(names[part] in used for part in unit.all_parts())]
        self.unread |= {unit.key for unit in idle}
        self.units = [unit for unit in self.units if unit not in idle]
        if not idle:
            self._refuse_names()
            self._refuse_sizes(program, given)
        return bool(idle)

    def _refuse_sizes(self, program: torch.export.ExportedProgram, given: Any) -> None:
        """A size that is an argument's has to be that before the first call, too: a program knows but one size."""
        values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        names = [str(name) for name in program.graph_signature.user_inputs]
        traced = [values[name] for name in names if isinstance(values.get(name), torch.Tensor)]
        count = len(self.parts)
        sizes: dict[Any, int] = {}
        for name, leaf in zip(names, pytree.tree_leaves(given), strict=False):  # a number is one of both, too
            value = values.get(name)
            if isinstance(value, torch.Tensor) and isinstance(leaf, torch.Tensor):
                sizes |= {expression(size): each for size, each in zip(value.shape, leaf.shape, strict=True)}
        first = dict(zip(self.parts, traced[len(traced) - count :], strict=True))
        for unit in self.units:
            if unit.flag is not None and not unit.flag.initial:
                continue
            for part in unit.parts.values():
                pairs = zip(first[part].shape, part.initial.shape, strict=True)
                wanted = [sizes.get(expression(size), each) for size, each in pairs]
                if wanted != list(part.initial.shape):
                    raise CarriedStateError(
                        f"{part.name!r} has the sizes {list(part.initial.shape)} before the first call, and for these"
                        f" arguments {wanted} after it: sizes that are those of an argument",
                        hint=f"let {part.name!r} be None before the first call, and give it its size there",
                        location=unit.location,
                    )

    def _refuse_names(self) -> None:
        """The user's own tensors that are changed in place may have one name only."""
        for unit in self.units:
            held = leaves(at(unit.place.slot().get(), unit.steps))
            for steps, part in unit.parts.items():
                tensor = held.get(steps)
                if part in self.written and isinstance(tensor, torch.Tensor) and self.paths.has_names(tensor):
                    raise self._aliased(part, f"the memory of {part.name!r} has other names")

    def add_written(self, tensor: torch.Tensor, location: Location | None) -> bool:
        """A tensor in a plain attribute is written to in place: it is state, if the model leads to it."""
        found = self.paths.place_of_tensor(tensor)
        if found is None:
            return False
        place, steps = found
        part = Part(_name(place, steps), "attribute", None, tensor.dtype, list(tensor.shape))
        unit = Unit(place, steps, None, {(): part}, location=location)
        if unit.key in {each.key for each in self.units}:
            return False
        unit.settle(tensor)
        self.units.append(unit)
        return True

    # ---- in eager mode

    @contextlib.contextmanager
    def holding(self, given: Sequence[torch.Tensor]) -> Iterator[None]:
        """Let the user's own objects have this state meanwhile: the parts in their order."""
        by_part = dict(zip(self.parts, given, strict=True))
        before = {place.slot(): place.slot().get() for place in self._by_place()}
        try:
            for place, units in self._by_place().items():
                slot = place.slot()
                slot.set(
                    kept_kind(rebuilt(slot.get(), {unit.steps: unit.plain(by_part) for unit in units}), slot.get())
                )
            yield
        finally:
            for slot, value in before.items():
                slot.set(value)

    def read(self, otherwise: Sequence[torch.Tensor] | None = None) -> list[torch.Tensor]:
        """The parts as the user's own objects have them now; ``otherwise`` is for those without a value."""
        instead = dict(zip(self.parts, otherwise or [part.initial for part in self.parts], strict=True))
        found: dict[Part, torch.Tensor] = {}
        for unit in self.units:
            found |= unit.read(at(unit.place.slot().get(), unit.steps), instead)
        return [found[part] for part in self.parts]

    def of_copy(self, model: Any, memo: Mapping[int, Any]) -> CarriedState:
        """The same state of a copy of the model; ``memo`` has the copies of objects by the identity of these."""
        made = CarriedState(model)
        made.units = [
            dataclasses.replace(
                unit, place=dataclasses.replace(unit.place, owner=memo.get(id(unit.place.owner), unit.place.owner))
            )
            for unit in self.units
        ]
        return made


def _name(place: Place, steps: Any) -> str:
    return ".".join([place.path, *map(str, steps)])
