"""The sizes of one export: what is declared of them, what the user allows to be fixed, and what was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.graph.allowed_lines import AllowedLines
from dy2st.graph.declared import assume_declared, map_dimensions, with_static
from dy2st.graph.size_facts import expression
from dy2st.graph.size_policy import FixedSizes, SizePolicy, Specialization
from dy2st.graph.size_rules import SizeRules

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture

# Each attempt fixes at least one more dimension.
MOST_ATTEMPTS = 20


@dataclass
class ExportedSizes:
    """The sizes of one export. ``call`` has the signature that ``shapes`` (``dynamic_shapes``) is about."""

    call: Any
    shapes: Any
    allowed: AllowedLines
    specialized: list[Specialization] = field(default_factory=list)
    fixed: set[tuple[int, int]] = field(default_factory=set)

    def attempts(self, args: Any, kwargs: Any, attempt: Callable[[Any], Any]) -> Any:
        """``attempt(dynamic_shapes)``, again with more dimensions static as long as the user allows to fix them.

        Raises:
            UsageError: the user allows a line at which nothing is fixed.
        """
        if hasattr(self.shapes, "dynamic_shapes"):  # ShapesCollection, AdditionalInputs
            self.shapes = self.shapes.dynamic_shapes(self.call, args, kwargs)
        for _ in range(MOST_ATTEMPTS):
            shapes = with_static(self.call, args, kwargs, self.shapes, self.fixed) if self.fixed else self.shapes
            known = len(self.fixed)
            try:
                result = attempt(shapes)
            except FixedSizes:
                if len(self.fixed) == known:
                    raise
                continue
            self.allowed.require_used()
            return result
        raise AssertionError("a dimension can be fixed once only")

    @contextlib.contextmanager
    def watching(self, capture: Capture, args: Any, kwargs: Any) -> Iterator[None]:
        """Look at every decision on a size; ``args`` and ``kwargs`` are the stand-ins of the arguments."""
        tracing = capture.tracing
        env = tracing.shape_env
        inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        policy = SizePolicy(env, lambda: capture.conditional, self.allowed, inputs=inputs)
        assume_declared(env, self.call, args, kwargs, self.shapes)
        capture.compare_sizes = lambda: self._compare(capture, policy)
        with SizeRules(tracing.fake_mode, policy.decide).watching():
            yield
        self.specialized += [found for found in policy.specialized if found not in self.specialized]
        try:
            policy.finish()
        except FixedSizes as fixed:
            self._fix(fixed.symbols, args, kwargs)
            raise

    def _compare(self, capture: Capture, policy: SizePolicy) -> None:
        """What operators have taken to hold is tested when the graph runs."""
        while policy.pending:
            required = policy.pending.pop(0)
            capture.guards.require(required.test(), required.location, required.message)

    def _fix(self, symbols: frozenset[Any], args: Any, kwargs: Any) -> None:
        def visit(position: int, leaf: Any, _spec: Any) -> None:
            sizes = list(leaf.shape) if isinstance(leaf, torch.Tensor) else [leaf]
            for d, size in enumerate(sizes):
                if isinstance(size, torch.SymInt) and {size.node._expr, expression(size)} & symbols:
                    self.fixed.add((position, d))

        map_dimensions(self.call, args, kwargs, self.shapes, visit)
