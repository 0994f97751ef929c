"""The sizes of one export: what is declared of them, what the user allows to be fixed, and what was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from dy2st.plan import Revision
from dy2st.sizes.allowed_lines import AllowedLines
from dy2st.sizes.declared import assume_declared, declared_otherwise, map_dimensions
from dy2st.sizes.policy import FixedSizes, SizePolicy, Specialization
from dy2st.sizes.rules import SizeRules
from dy2st.sizes.symbolic_operators import unknown_texts
from dy2st.staging.session import Session
from dy2st.tracing.named_tuples import shapes_again
from dy2st.tracing.size_facts import expression

# What eager raises where sizes do not fit: TORCH_CHECK and its kin, and torch's own Python code.
OF_SIZES = (RuntimeError, IndexError, ValueError, TypeError, AssertionError)


@dataclass
class ExportedSizes:
    """The sizes of one export. ``call`` has the signature that ``shapes`` (``dynamic_shapes``) is about.

    ``given`` are the arguments as the user has them: positional, and by keyword.
    """

    call: Any
    shapes: Any
    allowed: AllowedLines
    given: Any = None
    specialized: list[Specialization] = field(default_factory=list)
    # The shapes of the attempt that is running.
    attempted: Any = None
    # Dimensions of arguments that are declared otherwise in the next attempt, as (leaf, dimension).
    fixed: dict[tuple[int, int], Any] = field(default_factory=dict)

    def declared(self, args: Any, kwargs: Any) -> Any:
        """``dynamic_shapes`` for the next attempt: as the user declares them, but for what was found to be fixed."""
        fixed = self.fixed
        self.attempted = declared_otherwise(self.call, args, kwargs, self.shapes, fixed) if fixed else self.shapes
        return self.attempted

    def as_given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The stand-ins of the arguments, with the shapes of tensors that torch has made plain tuples of."""
        return shapes_again((args, kwargs), self.given)  # type: ignore[no-any-return]

    def by_expression(self, args: Any, kwargs: Any) -> dict[Any, Any]:
        """What is declared of the sizes of the arguments, by their expressions."""
        found: dict[Any, Any] = {}

        def visit(_position: int, leaf: Any, spec: Any) -> None:
            if isinstance(leaf, torch.Tensor):
                found.update({expression(leaf.shape[d]): dim for d, dim in spec.items() if dim is not None})

        if self.attempted and isinstance(self.attempted, (Mapping, list, tuple)):
            map_dimensions(self.call, args, kwargs, self.attempted, visit)
        return found

    @contextlib.contextmanager
    def watching(self, capture: Session, args: Any, kwargs: Any, *, tests: bool) -> Iterator[None]:
        """Look at every decision on a size; ``args`` and ``kwargs`` are the stand-ins of the arguments.

        ``tests``: the graph is to test what eager demands of sizes.
        """
        tracing = capture.tracing
        env = tracing.shape_env
        inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]

        def caught() -> bool:
            return any(map(capture.may_catch, OF_SIZES))

        def insist(fact: Any) -> bool:
            return capture.conditional and not caught() and tracing.assume(env.create_symboolnode(fact))

        policy = SizePolicy(env, lambda: capture.conditional, caught, self.allowed, tests, inputs=inputs)
        assume_declared(env, self.call, args, kwargs, self.attempted)
        capture.compare_sizes = lambda: self._compare(capture, policy)
        with SizeRules(tracing.fake_mode, policy.decide, insist).watching(), unknown_texts():
            yield
        self.specialized += [found for found in policy.specialized if found not in self.specialized]
        found = policy.finish()
        if found is not None:
            raise Revision(lambda: self._fix(found, args, kwargs))

    def _compare(self, capture: Session, policy: SizePolicy) -> None:
        """What operators have taken to hold is tested when the graph runs, as soon as something is traced."""
        while policy.pending and not capture.tracing.is_silent:
            required = policy.pending.pop(0)
            capture.guards.require(required.test(), required.location, required.message, always=True)

    def _fix(self, found: FixedSizes, args: Any, kwargs: Any) -> None:
        def visit(position: int, leaf: Any, _spec: Any) -> None:
            sizes = list(leaf.shape) if isinstance(leaf, torch.Tensor) else [leaf]
            for d, size in enumerate(sizes):
                symbols = {size.node._expr, expression(size)} if isinstance(size, torch.SymInt) else set()
                if symbols & found.narrowed:
                    self.fixed[position, d] = Dim.DYNAMIC
                if symbols & found.fixed:
                    self.fixed[position, d] = Dim.STATIC

        known = dict(self.fixed)
        map_dimensions(self.call, args, kwargs, self.shapes, visit)
        assert self.fixed != known, "a dimension can be fixed once only"
