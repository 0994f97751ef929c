"""The derivative of a branch is a branch: each arm runs the arm of the forward pass again, and pulls back through it.

What the arms compute on the way has other sizes in each, so nothing of it is kept: it is computed again from what the
branch captures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from dy2st.derivatives.gradient_values import Gradient, flag, is_real
from dy2st.derivatives.links import Links, one_of
from dy2st.derivatives.random_draws import Keeping, draws_of, like
from dy2st.derivatives.tape import Key, Record, Rules, Tape, key_of
from dy2st.tracing.graph_ops import trace_branch


class BranchRecord(Record):
    """A branch on the tape."""

    def __init__(self, tape: Tape, node: fx.Node, arms: Sequence[fx.GraphModule], links: Links) -> None:
        self.rules: Rules = tape.rules
        self.arms = arms
        self.condition, _, _, self.operands = tape.value(node.args)
        captured: Any = node.args[3]
        self.wanted = [
            i for i, each in enumerate(captured) if isinstance(each, fx.Node) and key_of(each) in tape.active
        ]
        reached = [one_of(a, b) for a, b in zip(*map(links.of, arms), strict=True)]
        active = [k for k, each in enumerate(reached) if any(i in each for i in self.wanted)]
        results = self._forward(differentiated=bool(active))
        outputs: list[Key] = [(node, k) for k in active if is_real(results[k])]
        self.reached = [reached[k] for _, k in outputs if k is not None]
        super().__init__(node, [key_of(captured[i]) for i in self.wanted], results, outputs)

    def _forward(self, *, differentiated: bool) -> tuple[torch.Tensor, ...]:
        """The branch, which gives beside its results what is drawn in it."""
        where = "a data-dependent branch"
        self.draws = [draws_of(arm, where) for arm in self.arms] if differentiated else [[], []]
        self.drawn: tuple[torch.Tensor, ...] = ()

        def keeping(which: int) -> Any:
            def run(*inputs: Any) -> Any:
                keeper = Keeping(self.arms[which], self.draws[which])
                results = keeper.run(*inputs)
                drawn = [
                    list(keeper.kept.values()) if i == which else [like(node, where) for node in nodes]
                    for i, nodes in enumerate(self.draws)
                ]
                return (*results, *drawn[0], *drawn[1])

            return run

        found = trace_branch(get_proxy_mode(), self.condition, keeping(0), keeping(1), self.operands)
        count = len(found) - sum(map(len, self.draws))
        results, self.drawn = tuple(found[:count]), tuple(found[count:])
        return results

    def pull(self, tangents: Sequence[Gradient | None]) -> Sequence[Gradient | None]:
        """By a branch that gives, for each operand, its gradient and whether it is there."""
        given = [(key[1], found.settled()) for key, found in zip(self.outputs, tangents, strict=True) if found]
        used = [each for each, found in zip(self.reached, tangents, strict=True) if found is not None]
        places = [n for n, i in enumerate(self.wanted) if any(i in each for each in used)]
        flags = [found.there for _, found in given if found.there is not True]
        count, indices = len(self.operands), [self.wanted[n] for n in places]
        static: list[list[Any]] = []

        def arm(which: int) -> Any:
            def pulled(*arguments: Any) -> Any:
                operands, left = arguments[:count], list(arguments[count:])
                drawn, left = left[: len(self.drawn)], left[len(self.drawn) :]
                values, there = left[: len(given)], left[len(given) :]
                tape = Tape(self.arms[which], self.rules)
                own = drawn[len(self.draws[0]) :] if which else drawn[: len(self.draws[0])]
                tape.known = dict(zip(self.draws[which], own, strict=True))
                tape.run(operands, indices)
                inner: list[Gradient | None] = [None] * len(tape.outputs)
                for (k, found), value in zip(given, values, strict=True):
                    assert k is not None
                    inner[k] = Gradient(value, True if found.there is True else there.pop(0))
                found_all = tape.pull(inner)
                made = [found_all[i] for i in indices]
                static.append([each is not None and each.there for each in made])
                gradients = [
                    torch.zeros_like(operands[i]) if each is None else each.settled().value.clone()
                    for i, each in zip(indices, made, strict=True)
                ]
                return (*gradients, *(flag(False if each is None else each.there).clone() for each in made))

            return pulled

        if not places:
            return [None] * len(self.inputs)
        operands = (*self.operands, *self.drawn, *(found.value for _, found in given), *flags)
        results = trace_branch(get_proxy_mode(), self.condition, arm(0), arm(1), operands)
        gradients: list[Gradient | None] = [None] * len(self.inputs)
        for n, place in enumerate(places):
            there = {True if each[n] is True else False if each[n] is False else None for each in static}
            if there != {False}:
                always = there == {True}
                gradients[place] = Gradient(results[n], True if always else results[len(places) + n])
        return gradients


def branch_rule(links: Links) -> Any:
    """How a tape takes a branch."""

    def rule(tape: Tape, node: fx.Node, module: fx.GraphModule, arguments: Sequence[Any]) -> Record:
        arms: Any = node.args[1:3]
        return BranchRecord(tape, node, [getattr(module, str(arm.target)) for arm in arms], links)

    return rule
