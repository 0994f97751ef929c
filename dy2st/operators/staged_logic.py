"""``and``, ``or`` and ``in`` with tensors among their operands."""

from __future__ import annotations

import contextlib
from types import FrameType
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.graph.numbers import SYMBOLS, Number, number_kind, number_tensor
from dy2st.graph.one_export import OtherWay
from dy2st.graph.one_of import OneOf
from dy2st.graph.places import location_of
from dy2st.graph.poison import Poison
from dy2st.graph.rows import has_rows
from dy2st.graph.size_facts import known_again
from dy2st.graph.texts import characters
from dy2st.graph.tracing import at_least
from dy2st.operators import list_values
from dy2st.operators.capture import Capture
from dy2st.operators.conditions import both, condition, either, truth_number
from dy2st.operators.dicts import contains_key, has_maybe_keys
from dy2st.operators.flow import Flow
from dy2st.operators.frames import snapshot
from dy2st.operators.mode import MODE
from dy2st.operators.scope import Scope
from dy2st.operators.selection import among, chosen, is_staged_key
from dy2st.operators.special_methods import special

# Evaluated whether needed or not, these change nothing and can't fail: an And in place of an If.
CHEAP = frozenset("any all sum mean numel isnan isinf isfinite".split())
# These fail on an empty tensor.
NEEDS_ELEMENTS = frozenset("max min amax amin".split())
# A name that the operand binds (``and (top := x.max()) > 0``) and that is read behind the expression: the operand is
# evaluated in any case, and the program fails where a declared size is 0.
NONEMPTY = OtherWay()


def has_elements(node: Any) -> bool:
    """Whether the tensor of a node is known to have elements."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and all(at_least(size, 1) for size in value.shape)


class StagedLazy:
    """The first operand of an ``and``/``or`` that only the graph knows the truth of."""

    def __init__(self, capture: Capture, first: Any, truth: torch.Tensor, conjunction: bool, frame: FrameType) -> None:
        self.capture = capture
        self.first = first
        self.truth = truth
        self.conjunction = conjunction
        self.frame = frame
        self.location = location_of(frame)
        self.names: dict[Any, Any] = {}
        # Sizes that have to be one or more, where it is evaluated in any case.
        self.nonempty: list[Any] = []
        self.scope: Scope | None = None

    def more(self) -> bool:
        """Trace the second operand in a region of its own."""
        self.names = snapshot(self.frame)
        self.scope = self.capture.push(f"operand_{self.location.line}", arm=True)
        self.capture.learn(self.scope, self.truth, value=self.conjunction)
        return True

    def value(self, second: Any) -> Any:
        """The value of the expression: one of the operands."""
        with contextlib.closing(self):
            return self._value(second)

    def test(self, second: Any) -> Any:
        """The truth of the expression."""
        with contextlib.closing(self):
            return self._test(second)

    def close(self) -> None:
        """Keep no value alive, which something else might then seem to refer to: this stays in the user's frame."""
        self.names, self.first, self.scope = {}, None, None

    def _value(self, second: Any) -> Any:
        if isinstance(self.first, (Number, torch.SymBool)) and number_kind(self.first) is bool:
            kind = number_kind(second)
            if kind is bool:
                return self._test(second)
        return self._join(second, self.first)

    def _test(self, second: Any) -> Any:
        decided = condition(second)
        if self._harmless():
            capture = self.capture
            region = capture.pop().region
            for size in self.nonempty:
                if not at_least(size, 1):
                    what = "exported for one element at least"
                    capture.guards.require(number_tensor(size) > 0, self.location, what, always=True)
            capture.adopt(region)
            return truth_number((both if self.conjunction else either)(self.truth, decided))
        return truth_number(condition(self._join(truth_number(decided), not self.conjunction)))

    def _harmless(self) -> bool:
        scope = self.scope
        assert scope is not None
        if scope.journal.old or scope.region.modules or scope.failure or self.capture.scopes[-1] is not scope:
            return False
        for node in scope.region.graph.nodes:
            target = node.target
            if node.op != "call_function":
                return False
            if not isinstance(target, torch._ops.OpOverload):
                continue
            pointwise = torch.Tag.pointwise in target.tags
            name = target.overloadpacket.__name__
            cheap = name in CHEAP or (name in NEEDS_ELEMENTS and self._has_elements(node.args[0]))
            if target._schema.is_mutable or not (pointwise or cheap):
                return False
        return True

    def _has_elements(self, node: Any) -> bool:
        """Whether a tensor has elements, also where the second operand is not evaluated."""
        assert self.scope is not None
        before = self.scope.region.facts
        assert before is not None
        with known_again(before, self.capture.tracing.shape_env):
            if has_elements(node):
                return True
        sizes = node.meta["val"].shape
        if not self._binds() or any(free_unbacked_symbols(size) for size in sizes):
            return False
        NONEMPTY.met = True
        self.nonempty += sizes
        return NONEMPTY.taken

    def _binds(self) -> bool:
        """Whether the second operand has bound a variable."""
        return any(
            # An ``and`` inside has a driver, in a variable of ours.
            self.names.get(name) is not value and not type(value).__module__.startswith("dy2st.operators.")
            for name, value in snapshot(self.frame).items()
        )

    def _join(self, second: Any, first: Any) -> Any:
        capture = self.capture
        assert self.scope is not None
        ended = capture.ended(Flow({"value": second}), self.scope)
        capture.pop()
        skipped = capture.push(f"skipped_{self.location.line}")
        capture.pop()
        flows = (ended, Flow({"value": first}))
        regions = (self.scope.region, skipped.region)
        if not self.conjunction:
            flows, regions = (flows[1], flows[0]), (regions[1], regions[0])
        value = capture.merge(self.truth, regions, flows, ("value",), self.location).env["value"]
        if isinstance(value, Poison):
            value.refuse()
        return value


def contains(item: Any, container: Any) -> Any:
    """``item in container``."""
    if isinstance(container, OneOf):
        assert MODE.capture is not None
        return chosen(MODE.capture, container, lambda case: contains(item, case))
    if isinstance(item, OneOf):
        assert MODE.capture is not None
        return chosen(MODE.capture, item, lambda case: contains(case, container))
    if has_maybe_keys(container):
        return contains_key(container, item)
    method = special(container, "__contains__")
    if method is not None:
        return truth_number(condition(method(item)))
    if isinstance(container, (dict, set, frozenset)) and is_staged_key(item):
        return among(container, item)
    if isinstance(container, str):
        characters(item)
    staged = isinstance(item, (torch.Tensor, Number, *SYMBOLS))
    if isinstance(container, torch.Tensor):
        return truth_number(condition((container == item).any()))
    if has_rows(container):
        return list_values.contains(container, item)
    if isinstance(container, (list, tuple)) and (
        staged or any(isinstance(c, (torch.Tensor, Number, torch.SymInt)) for c in container)
    ):
        found: Any = False
        for element in container:
            found = either(found, True if element is item else condition(element == item))
        return truth_number(found)
    return item in container
