"""Writes that no graph shows: into what C functions are given, and into arrays of numpy's.

A program that runs in the place of such code would not write. What the code can read is looked at before a capture and
after it: a capture puts back what it has recorded, so what differs was written unrecorded. A tensor that
``torch.from_numpy`` makes of an array that others can read lies in the array; a program has a copy of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from dy2st.errors import Dy2stError, LostStateError
from dy2st.guards.executed_code import Code, run_by
from dy2st.guards.functions import LOADED
from dy2st.guards.names import Names
from dy2st.guards.process_state import difference, process_state
from dy2st.guards.sources import World
from dy2st.sizes.lowering import place_of
from dy2st.source.find import location
from dy2st.static.clones import Clones
from dy2st.static.programs import Call

_HINT = "keep it in a buffer (register_buffer), or take it as an argument and return it"


@contextlib.contextmanager
def unchanged(call: Call, names: Names, function: Any) -> Iterator[None]:
    """Around a capture of ``call`` of ``function``: nothing that its code can read changes.

    Raises:
        LostStateError: something does.
    """
    before, state = _looked_at(call, names, learn=True), process_state()
    yield
    after, changed = _looked_at(call, names, learn=False), difference(state, process_state())
    if changed is None and before is not None and after is not None and before.key != after.key:
        changed = before.difference(after)
    if changed is None:
        return
    code = getattr(function, "__code__", None)
    raise LostStateError(
        f"{changed} is changed, which a program can't: to_static would lose it",
        hint=_HINT,
        location=None if code is None else location(code),
    )


def code_that_counts(call: Call, frozen: frozenset[str] | bool, capture: Callable[[], Any]) -> frozenset[Code] | None:
    """The code that runs in ``capture()`` of ``call``, if all that can be reached is too much; else None."""
    return run_by(lambda: call.world(Names(frozen=frozen), {}, learn=True), capture)


def _looked_at(call: Call, names: Names, *, learn: bool) -> World | None:
    with contextlib.suppress(Dy2stError):  # that it can't be looked at is said when the program is kept
        world = call.world(names, {}, learn=learn)
        for source in world.sources:
            if source.access == LOADED:
                source.key = LOADED  # a capture may import more
        return world
    return None


def keep_arrays_apart(program: torch.export.ExportedProgram, world: World, clones: Clones) -> None:
    """Give a program constants of its own where they lie in arrays that others can change.

    Raises:
        LostStateError: the program writes to such a constant: eager changes the array.
    """
    arrays = [source.value for source in world.sources if isinstance(source.value, np.ndarray)]
    if not arrays:
        return
    inside = {name for name, value in program.constants.items() if _lies_in(value, arrays)}
    found = clones.written_inputs(cloning=False) if inside else {}
    writers = {node.name: first for node, (first, *_) in found.items()}
    for spec in program.graph_signature.input_specs:
        if spec.target not in inside:
            continue
        if spec.arg.name in writers:
            raise LostStateError(
                "a tensor that lies in an array of numpy's is changed, which the array would not see",
                hint="copy the array (torch.tensor), or keep a tensor",
                location=place_of(writers[spec.arg.name]),
            )
        program.constants[spec.target] = program.constants[spec.target].clone()


def _lies_in(value: Any, arrays: list[Any]) -> bool:
    plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and value.device.type == "cpu"
    if not plain or value.numel() == 0:
        return False
    memory = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage()).numpy()
    return any(np.may_share_memory(memory, array) for array in arrays)
