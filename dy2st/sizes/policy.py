"""What becomes of a decision on a dynamic size: part of the program's contract, checked at run time, or refused.

* What eager demands (it raises otherwise) is no restriction; it is tested when the graph runs, unless what ONNX has for
  the operator fails as well.
* Sizes declared as ``Dim.DYNAMIC`` or ``Dim.AUTO`` that an operator takes to be equal are one size of the program.
* A size that is declared as ``Dim.AUTO`` may be fixed.
* Sizes that are data and that an operator takes to be equal are compared when the graph runs.
* Anything else is refused, at the user's line; or accepted and reported, if the user allows that line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import sympy
import torch
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols

from dy2st.errors import CaughtError, Location, SpecializedError
from dy2st.sizes.declared import AUTO, NAMED, Declared
from dy2st.sizes.rules import Decision, is_nonempty
from dy2st.source.user_frames import running_location
from dy2st.tracing.size_facts import SizeFacts, expression
from dy2st.tracing.size_ops import Requirement, Side, all_equal, none_zero

# Operators for which ONNX has one that fails where eager's raises because of a size.
FAILING = frozenset(
    "__getitem__ expand expand_as broadcast_to reshape view unflatten amax amin aminmax argmax argmin kthvalue "
    "topk quantile take conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d adaptive_max_pool1d "
    "adaptive_max_pool2d pixel_shuffle channel_shuffle linalg_cross linalg_vector_norm copy_ fft_rfft".split()
)


@dataclass(frozen=True)
class Specialization:
    """A decision that the user has allowed: at which line, and what holds in the program."""

    location: Location
    fixed: str

    def to_dict(self) -> dict[str, str]:
        """For a file's metadata: the file's name alone, where it lies is nobody's business."""
        return {"line": f"{Path(self.location.filename).name}:{self.location.line}", "fixed": self.fixed}


class FixedSizes(NamedTuple):
    """The symbols of sizes that the user allows to be fixed: at one value, or (``narrowed``) to fewer than declared."""

    fixed: frozenset[Any]
    narrowed: frozenset[Any]


@dataclass
class SizePolicy:
    """The decisions of one capture.

    ``tests``: whether what eager demands is to be tested by the graph; torch's own operators raise as eager does.
    ``conditional``: whether what is traced now may not run. ``caught``: whether it runs in a ``try`` that may catch
    what eager raises. ``allows``: whether the user allows a line.
    """

    env: ShapeEnv
    conditional: Callable[[], bool]
    caught: Callable[[], bool]
    allows: Callable[[Location], bool]
    tests: bool
    # What the user has allowed.
    specialized: list[Specialization] = field(default_factory=list)
    # The tensors among the program's inputs.
    inputs: list[torch.Tensor] = field(default_factory=list)
    # To be tested when the graph runs.
    pending: list[Requirement] = field(default_factory=list)
    # Part of the program's contract.
    kept: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.declared = Declared.of(self.env)
        self.start = SizeFacts.of(self.env)

    def decide(self, decision: Decision) -> None:
        """Raise ``SpecializedError`` for a decision that can't be in a graph."""
        guard = self.env.simplify(decision.guard)
        if isinstance(guard, sympy.And):
            for part in guard.args:
                if self.env._maybe_evaluate_static(part) is None:
                    self.decide(replace(decision, guard=part))
            return
        symbols = guard.free_symbols
        related = isinstance(guard, sympy.Eq) and bool(guard.lhs.free_symbols and guard.rhs.free_symbols)
        location = running_location()
        if decision.demanded:
            if self.caught():
                self._refuse_caught(guard, location)
            self._test(decision, guard, location)
        if decision.operator and not decision.demanded and is_nonempty(guard):
            # torch does something else with nothing at all: that is left out.
            sides = tuple(side for size, side in self._sides(decision) if size.free_symbols & symbols)
            if self._require(sides, guard, location, nonempty=True):
                return
        if free_unbacked_symbols(guard):
            require = self._require_equal if related else self._require_static
            if not decision.demanded and not require(decision, guard, location):
                self._refuse(decision, guard, location)
            return
        pins = pinned_symbol(guard) is not None
        if decision.demanded and (self.conditional() or not (pins or (related and len(symbols) > 1))):
            return
        freedom = self.declared.free(symbols)
        single = len(symbols) == 1
        equal = related and decision.operator and (single or NAMED not in freedom)
        if equal and (decision.demanded or self._require_equal(decision, guard, location)):
            if not self.conditional() and not single:
                self.kept.append(guard)
            return
        if not (pins and freedom == {AUTO}):
            self._refuse(decision, guard, location)
        self.kept.append(guard)

    def _sides(self, decision: Decision) -> list[tuple[Any, Side]]:
        """The dynamic sizes that a decision may be about: the operator's own arguments come first."""
        tensors = [*decision.tensors, *self.inputs]
        sides = [(expression(n), Side(t, d)) for t in tensors for d, n in enumerate(t.shape)]
        return [(self.env.simplify(size), side) for size, side in sides if isinstance(size, sympy.Basic)]

    def _require_equal(self, decision: Decision, guard: Any, location: Location | None) -> bool:
        """Compare the two sides of an equation when the graph runs, if they are sizes of tensors."""
        sides = dict(reversed(self._sides(decision)))
        return self._require(tuple(sides[size] for size in guard.args if size in sides), guard, location)

    def _require_static(self, decision: Decision, guard: Any, location: Location | None) -> bool:
        """Compare a size with a static one of the same operator's: not with a 1, which sizes need not equal."""
        if not decision.operator or not isinstance(guard, sympy.Eq):
            return False
        own = {id(tensor) for tensor in decision.tensors}
        sizes = {size: side for size, side in reversed(self._sides(decision)) if id(side.tensor) in own}
        shapes: list[tuple[torch.Tensor, tuple[Any, ...]]] = [(t, tuple(t.shape)) for t in decision.tensors]
        static = {n: Side(t, d) for t, shape in shapes for d, n in enumerate(shape) if isinstance(n, int)}
        for size, constant in (guard.args, guard.args[::-1]):
            if size in sizes and constant.is_Integer and int(constant) > 1 and int(constant) in static:
                return self._require((sizes[size], static[int(constant)]), guard, location)
        return False

    def _require(
        self, sides: tuple[Side, ...], guard: Any, location: Location | None, *, nonempty: bool = False
    ) -> bool:
        if location is None or len(sides) < (1 if nonempty else 2):
            return False
        if self.caught():
            self._refuse_caught(guard, location)
        relation, symbols = none_zero(sides) if nonempty else all_equal(sides)
        message = f"exported for {self.declared.spoken(guard)} only"
        self.pending.append(Requirement(relation, symbols, location, message))
        return True

    def _test(self, decision: Decision, guard: Any, location: Location | None) -> None:
        """Test what eager demands when the graph runs, where the graph would not fail by itself."""
        sides = dict(reversed(self._sides(decision)))
        if self.tests and location and decision.operator not in FAILING and sides.keys() >= guard.free_symbols:
            message = f"eager raises here unless {self.declared.spoken(guard)}"
            self.pending.append(Requirement(guard, sides, location, message))

    def _refuse_caught(self, guard: Any, location: Location | None) -> NoReturn:
        raise CaughtError(
            f"eager raises here unless {self.declared.spoken(guard)}, in a try statement that may catch it",
            hint="test for the size with an if in place of the try, or make the dimension static",
            location=location,
        )

    def _refuse(self, decision: Decision, guard: Any, location: Location | None) -> None:
        """Raise, unless the user allows the line."""
        fixed = self.declared.spoken(guard)
        if location is not None and self.allows(location):
            found = Specialization(location, fixed)
            if found not in self.specialized:
                self.specialized.append(found)
            return
        by = f"by torch's rule for {decision.operator}" if decision.operator else "in code that dy2st does not convert"
        raise SpecializedError(
            f"a size that is declared dynamic decides what the graph is, {by}: the graph is right for {fixed} only",
            hint="make the dimension static, or write it so that any size will do (an if, a for loop, torch functions "
            "on tensors); --allow-specialize LINE accepts what is fixed at this line",
            location=location,
        )

    def finish(self) -> FixedSizes | None:
        """At the end of the capture: what eager demands of the inputs is no guard of the program.

        If the user has allowed to fix sizes that are declared dynamic, these: they are to be declared otherwise.
        """
        env = self.env
        freedom = self.declared.freedom
        pinned = {symbol for guard in self.kept if (symbol := pinned_symbol(guard)) is not None}
        fixed = frozenset(symbol for symbol in pinned if freedom.get(symbol) != AUTO)
        kept = {symbol for guard in self.kept for symbol in guard.free_symbols}
        narrowed = frozenset(symbol for symbol in kept - pinned if freedom.get(symbol) == NAMED)
        if fixed or narrowed:
            return FixedSizes(fixed, narrowed)
        del env.guards[self.start.guards :]
        for guard in dict.fromkeys(self.kept):
            made = symbolic_shapes.ShapeGuard(guard, env._get_sloc(), size_oblivious=False)  # type: ignore[attr-defined]
            env.guards.append(made)
        for symbol, bounds in self.start.ranges.items():
            if symbol not in kept:
                env.var_to_range[symbol] = bounds
        return None


def pinned_symbol(guard: Any) -> Any:
    """The symbol that a test fixes at one value, or None."""
    if not isinstance(guard, sympy.Eq) or len(guard.free_symbols) != 1:
        return None
    (symbol,) = guard.free_symbols
    difference = guard.lhs - guard.rhs
    linear = difference.is_polynomial(symbol) and sympy.degree(difference, symbol) == 1
    return symbol if linear else None
