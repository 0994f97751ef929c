"""What torch decides from a dynamic size while a program is captured: nothing that the graph does not say, or refused.

torch decides a test of a dynamic size by the example, and notes a guard: the program is right where the guard holds.
Here every such decision is looked at when it is made.

* In the rule by which an operator's result gets its shape, the operator itself is in the graph and does at run time
  what it does for each size. Only what is known of its result may hold on one side of the test alone. So the operator
  is tried at sizes on the other side: if it raises, the test says what eager demands, and holds in the code that
  follows; if the result has the shape that is known, the test means nothing; else the decision counts.
* ``torch._check``: eager raises where it does not hold. It holds in the code that follows.
* Anything else is Python that took a branch, which the graph does not have. The decision counts.

What becomes of a decision that counts is up to ``decide``.

Source: ``ShapeEnv.evaluate_expr``, ``FakeTensorMode.dispatch`` and ``proxy_tensor.proxy_call`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    _suppress_guards,
    free_unbacked_symbols,
)
from torch.utils import _pytree as pytree

from dy2st.sizes.guard_hooks import asking, is_open
from dy2st.sizes.guard_origin import TestingCode, arguments_of_torch_function, demanded_of_the_user
from dy2st.sizes.shape_probing import REFUSALS, Outcome, Trials
from dy2st.tracing.graph_ops import sizes_made
from dy2st.tracing.replaced import replaced
from dy2st.tracing.size_facts import assume, expression


@dataclass(frozen=True)
class Decision:
    """A test of a dynamic size that came out as ``guard`` says.

    ``operator``: by the rule of which operator or function of torch; empty for other code.
    ``demanded``: eager raises where the guard does not hold.
    """

    guard: Any
    operator: str
    demanded: bool
    # The operator's arguments.
    tensors: tuple[torch.Tensor, ...] = ()


@dataclass
class Running:
    """An operator whose rule is running."""

    # Tests met so far; for each, whether eager raises if it comes out otherwise, as far as the code says so.
    met: dict[Any, bool] = field(default_factory=dict)
    # Other operators take its place in the graph.
    replaced: bool = False


@dataclass
class SizeRules:
    """The decisions of one capture. ``decide`` raises for one that can't be in a graph; else the guard holds."""

    fake_mode: Any
    decide: Callable[[Decision], None]
    # Lets a relation of sympy hold in what is traced now, if that may not run; whether it does.
    insist: Callable[[Any], bool]
    running: list[Running] = field(default_factory=list)
    trials: Trials = field(init=False)

    def __post_init__(self) -> None:
        self.env: ShapeEnv = self.fake_mode.shape_env
        self.trials = Trials(self.env)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look at every decision that is made."""
        env, mode = self.env, self.fake_mode
        defer, dispatch = env.guard_or_defer_runtime_assert, mode.dispatch
        record = proxy_tensor.proxy_call

        def decided(expr: Any, run: Callable[[], Any]) -> Any:
            if not self.running:
                return self._outside(expr, run)
            with _suppress_guards(env):
                value: Any
                demanded = False
                try:
                    value = run()
                except GuardOnDataDependentSymNode:
                    known = self._of_data(expr)
                    if known is None:
                        raise
                    return known
            self.running[-1].met[guard_of(expr, value)] = demanded
            return value

        def guard_or_defer_runtime_assert(expr: Any, message: str, fx_node: Any = None) -> bool:
            if not self.running or not is_open(self.env, expr):
                if free_unbacked_symbols(expr) and is_open(self.env, expr) and demanded_of_the_user():
                    self.decide(Decision(expr, "", True))
                return bool(defer(expr, message, fx_node))
            self.running[-1].met[expr] = True
            return True

        def recorded(proxy_mode: Any, func: Any, pre_dispatch: bool, args: Any, kwargs: Any) -> Any:
            if self.running:
                self.running[-1].replaced = True
            return self._operator(func, args, kwargs, lambda: record(proxy_mode, func, pre_dispatch, args, kwargs))

        def dispatched(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if self.running:
                return dispatch(func, types, args, kwargs or {})
            return self._operator(func, args, kwargs or {}, lambda: dispatch(func, types, args, kwargs or {}))

        ours = [
            (env, "guard_or_defer_runtime_assert", guard_or_defer_runtime_assert),
            (mode, "dispatch", dispatched),
            (proxy_tensor, "proxy_call", recorded),
        ]
        with replaced(ours), asking(env, decided):
            yield

    def _of_data(self, expr: Any) -> bool | None:
        """How a test of a size that is data comes out in an operator that runs; None if that can't be known."""
        if self._said(expr) or self._said(sympy.Not(expr)):
            return self._said(expr)
        some, met = _said_of_nothing(expr), self.running[-1].met
        if some is not None:
            met.setdefault(guard_of(expr, some), False)
            return some
        parts = _equations(expr)
        if not parts or not free_unbacked_symbols(expr) <= sizes_made(self.env):
            return None
        # An operator asks whether data-dependent sizes are equal, two or those of two shapes: they have to be.
        met.update((each, True) for each in parts if is_open(self.env, each))
        return True

    def _said(self, expr: Any) -> bool:
        """Whether eager's operator raises where a test does not hold, as the rule that runs has said before."""
        demands = {guard for operator in self.running for guard, raises in operator.met.items() if raises}
        if not isinstance(expr, sympy.Eq):
            return expr in demands
        return not demands.isdisjoint((expr, sympy.Eq(expr.rhs, expr.lhs)))

    def _outside(self, expr: Any, run: Callable[[], Any]) -> Any:
        """A test in Python code."""
        if free_unbacked_symbols(expr):
            try:
                return run()
            except GuardOnDataDependentSymNode:
                some, tensors = _said_of_nothing(expr), arguments_of_torch_function()
                sizes = {size for tensor in tensors for each in tensor.shape for size in _symbols(each)}
                if some is None or not expr.free_symbols <= sizes:
                    raise
                # Whether eager would raise does not matter: the program does.
                called = TestingCode.running(some).torch_function
                self._counts(guard_of(expr, some), called, demanded=False, tensors=tensors)
                return some
        with _suppress_guards(self.env):
            value = run()
        code = TestingCode.running(value)
        if code.copies:
            return value
        self._counts(guard_of(expr, value), code.torch_function, demanded=code.raises)
        return value

    def _operator(self, func: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:
        """Run an operator's rule, and judge what it has decided."""
        before = None
        if torch.Tag.inplace_view in getattr(func, "tags", ()):
            before = self.trials.described((args, kwargs))
        self.running.append(Running())
        try:
            result = run()
        except REFUSALS:
            if self._is_met_elsewhere(func, args, kwargs):
                return self._operator(func, args, kwargs, run)
            # The rule may have gone on as if a test had meant nothing.
            blamed = (g for g, raises in self.running[-1].met.items() if not raises and is_open(self.env, g))
            guard = min(blamed, key=_plainness, default=None)
            if guard is not None:
                self._counts(guard, operator_name(func), demanded=False, tensors=_tensors(args))
            raise
        finally:
            operator = self.running.pop()
        if operator.met and isinstance(func, torch._ops.OpOverload):
            # Sizes that have to be equal first: they are tried together.
            for related in (True, False):
                met = [guard for guard in operator.met if _relates(guard) is related and is_open(self.env, guard)]
                if met:
                    outcomes = [Outcome.RAISES if operator.met[guard] else Outcome.OTHER for guard in met]
                    if not operator.replaced:
                        arguments = before or self.trials.described((args, kwargs))
                        outcomes = self.trials.judge(func, arguments, result, met)
                    self._judged(operator_name(func), met, outcomes, _tensors((args, kwargs)))
        return result

    def _is_met_elsewhere(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether an operator raises for the example's sizes, which may not come this way, and not for all others."""
        if not isinstance(func, torch._ops.OpOverload):
            return False
        demands = [sympy.Not(guard) for guard in self.running[-1].met if is_open(self.env, guard)]
        outcomes = self.trials.judge(func, self.trials.described((args, kwargs)), None, demands)
        return any(
            outcome is Outcome.RAISES and self.insist(demand) for demand, outcome in zip(demands, outcomes, strict=True)
        )

    def _judged(
        self, operator: str, met: list[Any], outcomes: list[Outcome], tensors: tuple[torch.Tensor, ...]
    ) -> None:
        pairs = sorted(zip(met, outcomes, strict=True), key=lambda pair: _plainness(pair[0]))
        for guard, outcome in pairs:
            # What one of them says may settle the next.
            if outcome is Outcome.GIVEN:
                assume(self.env, guard)
            elif outcome is not Outcome.SAME and is_open(self.env, guard):
                self._counts(guard, operator, demanded=outcome is Outcome.RAISES, tensors=tensors)

    def _counts(self, guard: Any, operator: str, *, demanded: bool, tensors: tuple[torch.Tensor, ...] = ()) -> None:
        self.decide(Decision(guard, operator, demanded, tensors))
        assume(self.env, guard)


def guard_of(expr: Any, value: Any) -> Any:
    """What holds if the test ``expr`` has been given ``value``."""
    if value is sympy.true or value is True:
        return expr
    if value is sympy.false or value is False:
        return sympy.Not(expr)
    return sympy.Eq(expr, value)


def operator_name(target: Any) -> str:
    """What an operator is called: ``reshape``."""
    return str(getattr(target, "overloadpacket", target)).rpartition(".")[2]


def _tensors(tree: Any) -> tuple[torch.Tensor, ...]:
    return tuple(leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _plainness(guard: Any) -> tuple[bool, int]:
    """How well a guard says what is fixed: best is one size that equals a number."""
    return not (isinstance(guard, sympy.Eq) and guard.lhs.is_Symbol), len(str(guard))


def is_nonempty(guard: Any) -> bool:
    """Whether a test says no more than that something has elements: a product, or a sum, of sizes is not zero."""
    if not isinstance(guard, (sympy.Ne, sympy.Gt, sympy.Ge, sympy.Lt, sympy.Le)):
        return False
    least = {sympy.Ne: (0, 0), sympy.Gt: (None, 0), sympy.Ge: (None, 1), sympy.Lt: (0, None), sympy.Le: (1, None)}
    kind = next(kind for kind in least if isinstance(guard, kind))
    left, right = least[kind]
    for product, other, bound in ((guard.lhs, guard.rhs, right), (guard.rhs, guard.lhs, left)):
        if bound is not None and other == bound and _counts_elements(product):
            return True
    return False


def _counts_elements(expr: Any) -> bool:
    """Whether an expression is a number of elements: of what is joined of several, it is a sum of theirs."""
    if not expr.is_Add:
        return bool(expr.free_symbols)
    return all(term.free_symbols and term.as_coeff_Mul()[0] > 0 for term in expr.args)


def _said_of_nothing(test: Any) -> bool | None:
    """How a test whether there is nothing at all comes out where there is something; None for another test."""
    return False if is_nonempty(sympy.Not(test)) else True if is_nonempty(test) else None


def _symbols(size: Any) -> set[Any]:
    return expression(size).free_symbols if isinstance(size, torch.SymInt) else set()


def _equations(test: Any) -> tuple[Any, ...]:
    """The equations that a test consists of; none if there is something else in it."""
    parts: tuple[Any, ...] = test.args if isinstance(test, sympy.And) else (test,)
    return parts if all(isinstance(each, sympy.Eq) for each in parts) else ()


def _relates(guard: Any) -> bool:
    """Whether a guard says that sizes are equal."""
    return isinstance(guard, sympy.Eq) and bool(guard.lhs.free_symbols and guard.rhs.free_symbols)
