"""The derivative of a loop is a loop, over the iterations in reverse.

The forward loop keeps the tensors that it carries, as they are at the start of each iteration: rows that it stacks.
The backward loop takes them from the last to the first, runs the iteration again and pulls back through it. It carries
the gradients of what the forward loop carries, and sums up those of what that captures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from dy2st.derivatives.gradient_values import Gradient, fitted, flag, is_real, summed
from dy2st.derivatives.links import Links, Reach, runs_for_sure
from dy2st.derivatives.random_draws import Keeping, draws_of
from dy2st.derivatives.tape import Key, Plain, Record, Rules, Tape, key_of
from dy2st.errors import NoGradientError
from dy2st.tracing.graph_ops import trace_loop
from dy2st.tracing.row_reads import rows_at
from dy2st.tracing.size_ops import length_op


@dataclass(frozen=True)
class Backward:
    """What a backward loop carries: gradients by these carried tensors and operands of the forward loop.

    ``flagged`` says whether it carries, beside each gradient, whether it is there.
    """

    carried: tuple[int, ...]
    operands: tuple[int, ...]
    flagged: bool

    @property
    def count(self) -> int:
        """The number of gradients."""
        return len(self.carried) + len(self.operands)


class LoopRecord(Record):
    """A loop on the tape."""

    def __init__(self, tape: Tape, node: fx.Node, body: fx.GraphModule, links: Links) -> None:
        self.rules: Rules = tape.rules
        self.body = body
        _, self.trips, self.go, self.carried, self.operands, vary, stacked = tape.value(node.args)
        captured: Any = (*node.args[3], *node.args[4])  # type: ignore[misc]
        wanted = [i for i, each in enumerate(captured) if isinstance(each, fx.Node) and key_of(each) in tape.active]
        self.wanted = wanted
        self.sure = runs_for_sure(self.trips, self.go)
        self.step = links.of_body(body)
        reached = links.of_loop(body, len(self.carried), self.sure)
        active = [k for k, each in enumerate(reached) if any(i in each for i in wanted)]
        results = self._forward(vary, stacked, differentiated=bool(active))
        outputs: list[Key] = [(node, k) for k in active if is_real(results[k])]
        super().__init__(node, [key_of(captured[i]) for i in wanted], results, outputs)

    def _forward(self, vary: Any, stacked: int, *, differentiated: bool) -> tuple[torch.Tensor, ...]:
        arguments = (self.trips, self.go, self.carried, self.operands, vary)
        if not differentiated:
            return tuple(trace_loop(get_proxy_mode(), Plain(self.body).run, *arguments, stacked))
        if any(vary):
            raise NoGradientError(
                "a tensor that changes its size from one iteration to the next is part of a loop that the loss "
                "depends on: the backward pass has no such loop",
                hint="give it its final size before the loop and write into it, or keep rows of one size in a list",
            )
        self.draws = draws_of(self.body, "a staged loop")
        count = len(self.carried)

        def keeping(*inputs: Any) -> Any:
            run = Keeping(self.body, self.draws)
            results = run.run(*inputs)
            kept = inputs[1 : 1 + count] if count else inputs[:1]
            return (*results, *(each.clone() for each in kept), *run.kept.values())

        total = stacked + max(count, 1) + len(self.draws)
        found = trace_loop(get_proxy_mode(), keeping, *arguments, total)
        results, self.kept = tuple(found[: count + stacked]), tuple(found[count + stacked :])
        return results

    def pull(self, tangents: Sequence[Gradient | None]) -> Sequence[Gradient | None]:
        """By a loop in reverse."""
        count = len(self.carried)
        given = {key[1]: found.settled() for key, found in zip(self.outputs, tangents, strict=True) if found}
        ends = {k: found for k, found in given.items() if k is not None and k < count}
        rows = {k: found for k, found in given.items() if k is not None and k >= count}
        shape = self._shape(ends, rows)
        if not shape.count:
            return [None] * len(self.inputs)
        start = [ends.get(k) or Gradient(torch.zeros_like(self.carried[k]), there=False) for k in shape.carried]
        start += [Gradient(torch.zeros_like(self.operands[i - count]), there=False) for i in shape.operands]
        carried = [each.value for each in start]
        if shape.flagged:
            carried += [each.flag() for each in start]
        flags = {k: found.there for k, found in rows.items() if found.there is not True}
        beside = (*self.kept, *(found.value for found in rows.values()), *flags.values())
        operands = (*beside, *self.carried, *self.operands)
        length = self.kept[0].shape[0]
        trips = length if isinstance(length, (int, torch.SymInt)) else int(length)
        body = self._body(shape, list(rows), list(flags))
        results = trace_loop(get_proxy_mode(), body, trips, None, tuple(carried), operands, ((),) * len(carried), 0)
        return self._gradients(shape, results)

    def _shape(self, ends: dict[int, Gradient], rows: dict[int, Gradient]) -> Backward:
        """What the backward loop has to carry."""
        count = len(self.carried)
        # A gradient by what is carried reaches what the iteration before computed it of.
        reached = {i for k in rows for i in self.step[k] if i < count} | set(ends)
        while following := {i for k in reached for i in self.step[k] if i < count} - reached:
            reached |= following
        wanted = self._needing(reached | set(self.wanted))
        carried = tuple(sorted(k for k in reached if k in wanted))
        sources = [*carried, *rows]
        operands = tuple(i for i in self.wanted if i >= count and any(i in self.step[k] for k in sources))
        flagged = not self._settled(carried, operands, ends, rows)
        return Backward(carried, operands, flagged)

    def _needing(self, among: set[int]) -> set[int]:
        """The carried tensors that depend, at the start of some iteration, on something whose gradient is wanted."""
        needing = {i for i in self.wanted if i < len(self.carried)}
        while True:
            sources = {*needing, *self.wanted}
            following = {
                k for k in range(len(self.carried)) if k in among and any(i in sources for i in self.step[k])
            } - needing
            if not following:
                return needing
            needing |= following

    def _settled(
        self, carried: Sequence[int], operands: Sequence[int], ends: dict[int, Gradient], rows: dict[int, Gradient]
    ) -> bool:
        """Whether all gradients are there in every iteration, so that nothing has to be carried to say so."""
        if any(k not in ends for k in carried) or any(
            found.there is not True for found in (*ends.values(), *rows.values())
        ):
            return False
        sources: list[Reach] = [self.step[k] for k in (*carried, *rows)]
        return all(any(each.get(i, False) for each in sources) for i in (*carried, *operands))

    def _body(self, shape: Backward, rows: list[int], flags: list[int]) -> Callable[..., Any]:
        """An iteration of the backward loop."""
        count, kept = len(self.carried), len(self.kept)

        def pulled(i: Any, *arguments: Any) -> Any:
            left = list(arguments)

            def take(number: int) -> list[Any]:
                taken = left[:number]
                del left[:number]
                return taken

            values = take(shape.count)
            there = take(shape.count) if shape.flagged else [True] * shape.count
            stacks, stacked, stacked_flags = take(kept), take(len(rows)), take(len(flags))
            likes, operands = take(count), left
            number = stacks[0].shape[0] - 1 - i
            state = [fitted(row_of(each, number), like) for each, like in zip(stacks, likes, strict=False)]
            tape = Tape(self.body, self.rules)
            drawn = stacks[kept - len(self.draws) :]
            tape.known = {node: row_of(each, number) for node, each in zip(self.draws, drawn, strict=True)}
            wanted = [*shape.carried, *shape.operands]
            tape.run([number, *state, *operands], [1 + k for k in wanted])
            tangents: list[Gradient | None] = [None] * len(tape.outputs)
            for k, value, flagged in zip(shape.carried, values, there, strict=False):
                tangents[1 + k] = Gradient(value, flagged)
            known = dict(zip(flags, stacked_flags, strict=True))
            for k, rows_of_k in zip(rows, stacked, strict=True):
                tangents[1 + k] = Gradient(row_of(rows_of_k, number), known.get(k, True))
            found = tape.pull(tangents)
            made = [found[1 + k] for k in shape.carried]
            for n, i_ in enumerate(shape.operands, len(shape.carried)):
                made.append(summed(_so_far(values[n], there[n]), found[1 + i_]))
            gradients = [
                torch.zeros_like(value) if each is None else fitted(each.settled().value, value).clone()
                for each, value in zip(made, values, strict=True)
            ]
            told = [flag(each is not None and each.there).clone() for each in made] if shape.flagged else []
            return (torch.full([], True, dtype=torch.bool), *gradients, *told)

        return pulled

    def _gradients(self, shape: Backward, results: Sequence[torch.Tensor]) -> list[Gradient | None]:
        found: dict[int, Gradient] = {}
        ran = True if self.sure or shape.flagged or not shape.operands else length_op(self.kept[0], 0) > 0
        for n, i in enumerate((*shape.carried, *shape.operands)):
            there = results[shape.count + n] if shape.flagged else True if n < len(shape.carried) else ran
            found[i] = Gradient(results[n], there)
        return [found.get(i) for i in self.wanted]


def _so_far(value: torch.Tensor, there: Any) -> Gradient:
    """A sum that is zero as long as there is nothing to sum."""
    return Gradient(value, there)


def row_of(stack: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """One row of a stack."""
    return rows_at(stack, number.reshape(1)).squeeze(0)


def loop_rule(links: Links) -> Any:
    """How a tape takes a loop."""

    def rule(tape: Tape, node: fx.Node, module: fx.GraphModule, arguments: Sequence[Any]) -> Record:
        body: Any = node.args[0]
        return LoopRecord(tape, node, getattr(module, str(body.target)), links)

    return rule
