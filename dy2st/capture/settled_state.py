"""State that the first call alone changes, as ``options.setdefault("steps", 10)`` does: it settles, and is none.

The rule. A list or dict has other constants after a call than before it, on every path, and nothing else of the model
changes. It is captured a second time as it is in later calls, with the container as the first call has left it. If that
changes nothing more, and the program is the same, all calls of the program are as eager's: the program has no state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from dy2st.capture.carried_places import Place
from dy2st.errors import CarriedStateError
from dy2st.values.journal import Slot

# What a container may hold: values that nobody can change.
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))
_METADATA = torch.ops.aten._assert_tensor_metadata.default


class Settled:
    """The containers that the first call changes, as it has left them, and its program."""

    def __init__(self) -> None:
        self.contents: list[tuple[Place, Any]] = []
        self._error: CarriedStateError | None = None
        self._first: list[Any] | None = None
        self._holding: list[tuple[Any, Any]] = []

    def takes(self, place: Place, after: Any, error: CarriedStateError) -> bool:
        """Whether a place may settle as ``after`` the first call; ``error`` is raised if it turns out not to."""
        if self._first is not None or type(after) not in (dict, list):
            return False
        parts = [*after, *after.values()] if isinstance(after, dict) else after
        if any(type(each) not in _CONSTANTS for each in parts):
            return False
        self.contents.append((place, copy.copy(after)))
        self._error = self._error or error
        return True

    def put(self, slots: Callable[[Place], list[Slot]]) -> Iterator[Slot]:
        """In a capture of a later call, fill the containers, which ``slots`` hold; each is given before it changes."""
        self._holding = []
        for place, content in self.contents if self._first is not None else ():
            for container in {id(each): each for each in (slot.get() for slot in slots(place))}.values():
                slot = Slot.of("content", container)
                yield slot
                slot.set(copy.copy(content))
                self._holding.append((container, content))

    def require_unchanged(self) -> None:
        """At the end of a later call.

        Raises:
            CarriedStateError: it has changed what the first one had left.
        """
        for container, content in self._holding:
            self._require(_spelled(container) == _spelled(content))

    def another(self, program: torch.export.ExportedProgram, *, alone: bool) -> bool:
        """After a capture: whether the model is to be captured as in a later call.

        Raises:
            CarriedStateError: it is another program, or has state of another kind (it is not ``alone``).
        """
        self._require(alone)
        if self._first is None:
            self._first = _described(program)
            return True
        self._require(_described(program) == self._first)
        return False

    def _require(self, settled: bool) -> None:
        if not settled:
            assert self._error is not None
            raise self._error


def _spelled(content: Any) -> str:
    """A container's elements with their types and order: 1, 1.0 and True are not the same, NaN is."""
    return repr(list(content.items()) if isinstance(content, dict) else content)


def _described(program: torch.export.ExportedProgram) -> list[Any]:
    """All that a program computes: its graphs, what they read beside their inputs, and the form of its result."""
    modules = [each for each in program.graph_module.modules() if isinstance(each, fx.GraphModule)]
    tensors = pytree.tree_leaves((program.constants, program.state_dict))
    values = [each.tolist() if isinstance(each, torch.Tensor) else repr(each) for each in tensors]
    forms = [str(each.dtype) for each in tensors if isinstance(each, torch.Tensor)]
    return [*(str(each.graph) for each in modules), repr(values), *forms, str(program.call_spec.out_spec)]


def used_inputs(graph: fx.Graph) -> set[str]:
    """The inputs that something of a program depends on: its results, or what it does beside them."""
    dead: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        pure = node.op in ("placeholder", "get_attr") or (
            node.op == "call_function" and (not node.is_impure() or node.target is _METADATA)
        )
        if pure and all(user in dead for user in node.users):
            dead.add(node)
    return {node.name for node in graph.nodes if node.op == "placeholder" and node not in dead}
