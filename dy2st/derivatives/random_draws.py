"""Random numbers in what a derivative computes again: they are kept, since others would be drawn.

Source: ``torch.Tag.nondeterministic_seeded``, which torch gives to operators that draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dy2st.derivatives.tape import Plain, place_in
from dy2st.errors import NoGradientError

# Operators whose result is drawn, and has no gradient but zero.
KEPT = frozenset(
    "bernoulli rand rand_like randn randn_like randint randint_like normal_functional uniform normal randperm "
    "multinomial exponential".split()
)


def is_draw(node: fx.Node) -> bool:
    """Whether a node draws random numbers."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    given = {argument.name: value for argument, value in zip(target._schema.arguments, node.args, strict=False)}
    given |= node.kwargs
    # Without training, or with a probability of zero, these draw nothing.
    probabilities = [given.get(name, 0) for name in ("dropout", "dropout_p", "p") if _has(target, name)]
    return given.get("train") is not False and (not probabilities or any(each != 0 for each in probabilities))


def _has(target: torch._ops.OpOverload, name: str) -> bool:
    return any(argument.name == name for argument in target._schema.arguments)


def draws_of(module: fx.GraphModule, where: str) -> list[fx.Node]:
    """The nodes of a graph that draw random numbers, to be kept.

    Raises:
        NoGradientError: some can't be: those of a graph inside it.
    """
    found: list[fx.Node] = []
    for inner in module.modules():
        for node in inner.graph.nodes if isinstance(inner, fx.GraphModule) else ():
            if not is_draw(node):
                continue
            if inner is not module or node.target._opname not in KEPT:
                raise NoGradientError(
                    f"random numbers are drawn inside {where} that the loss depends on and computes again to go back",
                    hint="draw them before it and use them inside; or switch dropout off (model.eval())",
                    location=place_in(node, inner),
                )
            found.append(node)
    return found


class Keeping(Plain):
    """Runs a graph and remembers what some of its nodes give."""

    def __init__(self, module: fx.GraphModule, nodes: Sequence[fx.Node]) -> None:
        super().__init__(module)
        self.kept: dict[fx.Node, Any] = dict.fromkeys(nodes)

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        result = super().run_node(n)
        if n in self.kept:
            self.kept[n] = result
        return result


def like(node: fx.Node, where: str) -> torch.Tensor:
    """Zeros, in the place of what a node draws on another path."""
    value = node.meta["val"]
    if not all(isinstance(size, int) for size in value.shape):
        raise NoGradientError(
            f"as many random numbers as data decides are drawn in {where} that the loss depends on",
            hint="draw them before it and use them inside",
            location=place_in(node, None),
        )
    return torch.zeros(list(value.shape), dtype=value.dtype)
