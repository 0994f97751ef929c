"""``and``, ``or`` and ``in`` with tensors among their operands."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from types import FrameType
from typing import Any

import torch

from dy2st.source.user_frames import location_of, look_up, snapshot
from dy2st.staging.branches.paths import flow_at_end, merge
from dy2st.staging.cases import narrowed
from dy2st.staging.conditions import both, condition, either, truth_number
from dy2st.staging.flow import Flow, Own
from dy2st.staging.routes import Copy, route_to
from dy2st.staging.session import Session
from dy2st.staging.sites import DECIDES
from dy2st.staging.trace_frame import TraceFrame
from dy2st.tracing.size_facts import known_again
from dy2st.tracing.tracer import at_least
from dy2st.values.number import Number, number_kind
from dy2st.values.undefined import UNSET, Undefined, no_value

# Evaluated whether needed or not, these change nothing and can't fail: an And in place of an If.
CHEAP = frozenset("any all sum mean numel isnan isinf isfinite".split())
# These fail on an empty tensor.
NEEDS_ELEMENTS = frozenset("max min amax amin".split())


def has_elements(node: Any) -> bool:
    """Whether the tensor of a node is known to have elements."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and all(at_least(size, 1) for size in value.shape)


def is_truth(value: Any) -> bool:
    """Whether a value is a bool, or a tensor of one."""
    if isinstance(value, torch.Tensor):
        return value.dtype is torch.bool and all(type(size) is int and size == 1 for size in value.shape)
    return number_kind(value) is bool


class StagedLazy:
    """The first operand of an ``and``/``or`` whose truth is data-dependent."""

    def __init__(
        self,
        capture: Session,
        first: Any,
        truth: torch.Tensor,
        names: tuple[str, ...],
        conjunction: bool,
        frame: FrameType,
        *,
        listed: bool = False,
    ) -> None:
        self.capture = capture
        self.first = first
        self.truth = truth
        self.names = names
        self.conjunction = conjunction
        self.frame = frame
        self.location = replace(location_of(frame), construct="and" if conjunction else "or")
        # What inputs should decide, on the left and on the right: an expression that the user has written.
        self.copy: Copy | None = None
        if listed:
            visits = capture.trace_frames[-1].visits
            self.copy = capture.sites.of(frame).operands(self.location, route_to(frame), visits)
        # Whether names are bound to something else now: ``values``.
        self.staged = False
        self.values: dict[Any, Any] = {}
        self.scope: TraceFrame | None = None

    def more(self) -> bool:
        """Trace the second operand in a subgraph of its own."""
        self.values = {name: self.capture.present(value) for name, value in self._named().items()}
        self.scope = self.capture.push(f"operand_{self.location.line}", arm=True)
        self.capture.learn(self.scope, self.truth, value=self.conjunction)
        return True

    def value(self, second: Any) -> Any:
        """The value of the expression: one of the operands."""
        second = narrowed(self.capture, second)
        self._right(second, is_truth(second))
        with contextlib.closing(self):
            return self._value(second)

    def test(self, second: Any) -> Any:
        """The truth of the expression."""
        second = narrowed(self.capture, second)
        self._right(second, True)
        with contextlib.closing(self):
            return self._test(second)

    def _right(self, second: Any, asked: bool) -> None:
        """What is known of the right operand: only a truth value decides, and one of Python's in one way."""
        if self.copy is None:
            return
        ways: tuple[str, ...] = DECIDES[self.location.construct]
        decided = condition(second) if asked else None
        if not asked:
            ways = ()
        elif isinstance(decided, bool):
            ways = ways if decided is not self.conjunction else ways[:1]
        self.capture.sites.keep(self.copy, ways)

    def close(self) -> None:
        """Keep no value alive, which something else might then seem to refer to: this stays in the user's frame."""
        self.first, self.scope = None, None
        if not self.staged:
            self.values = {}

    def bound(self, name: str) -> Any:
        """What a variable is now that the second operand has bound, or has not."""
        value = self.values.pop(name)
        return no_value(name, self.location) if value is UNSET else value

    def _named(self) -> dict[Any, Any]:
        env = snapshot(self.frame)
        return {name: look_up(env, name, None, UNSET) for name in self.names}

    def _value(self, second: Any) -> Any:
        if isinstance(self.first, (Number, torch.SymBool)) and number_kind(self.first) is bool:
            kind = number_kind(second)
            if kind is bool:
                return self._test(second)
        return self._join(second, self.first)

    def _test(self, second: Any) -> Any:
        decided = condition(second)
        if self.harmless():
            capture = self.capture
            capture.adopt(capture.pop().subgraph)
            return truth_number((both if self.conjunction else either)(self.truth, decided))
        if isinstance(decided, bool):
            self._join(None, None)
            return truth_number((both if self.conjunction else either)(self.truth, decided))
        return truth_number(condition(self._join(truth_number(decided), not self.conjunction)))

    def harmless(self) -> bool:
        """Whether the second operand, just traced, may be evaluated where it is not needed too."""
        scope = self.scope
        assert scope is not None
        if scope.journal.old or scope.subgraph.modules or scope.failure or self.capture.trace_frames[-1] is not scope:
            return False
        if any(value is not UNSET for value in self.values.values()):
            return False  # a name keeps its value where the operand is not evaluated
        for node in scope.subgraph.graph.nodes:
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
        before = self.scope.subgraph.facts
        assert before is not None
        with known_again(before, self.capture.tracing.shape_env):
            return has_elements(node)

    def _join(self, second: Any, first: Any) -> Any:
        capture = self.capture
        assert self.scope is not None
        ended = flow_at_end(capture, Flow({Own.RESULT: second, **self._named()}), self.scope)
        capture.pop()
        skipped = capture.push(f"skipped_{self.location.line}")
        capture.pop()
        flows = (ended, Flow({Own.RESULT: first, **self.values}))
        subgraphs = (self.scope.subgraph, skipped.subgraph)
        if not self.conjunction:
            flows, subgraphs = (flows[1], flows[0]), (subgraphs[1], subgraphs[0])
        env = merge(capture, self.truth, subgraphs, flows, (Own.RESULT, *self.names), self.location).env
        value = env.pop(Own.RESULT)
        self.staged, self.values = True, env
        if isinstance(value, Undefined):
            value.refuse()
        return value
