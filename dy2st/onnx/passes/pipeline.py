"""The passes that make a file smaller and faster, in their order: what each did, and how to leave one out.

None of them changes a value: sums that :mod:`dy2st.onnx.passes.early_sums` and the operators of
:mod:`dy2st.onnx.passes.fused_recurrences` add in another order may be rounded otherwise. So each can be left out by its
name, to see whether it is to blame or what it gains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dy2st.errors import UsageError
from dy2st.onnx.passes.arm_rows import take_rows_out_of_arms
from dy2st.onnx.passes.carried_dimensions import carry_dimensions
from dy2st.onnx.passes.chosen_values import choose_values
from dy2st.onnx.passes.columns import carry_columns
from dy2st.onnx.passes.compared_extremes import compare_extremes
from dy2st.onnx.passes.counted_loops import count_trips
from dy2st.onnx.passes.dead_results import drop_dead_results
from dy2st.onnx.passes.dot_products import sum_dot_products
from dy2st.onnx.passes.early_guards import guard_early
from dy2st.onnx.passes.empty_arms import drop_empty_arms
from dy2st.onnx.passes.expansions import stretch_in_operators
from dy2st.onnx.passes.floor_divisions import divide_downwards
from dy2st.onnx.passes.foreseen_ends import foresee_ends
from dy2st.onnx.passes.forwarded_rows import forward_rows
from dy2st.onnx.passes.fused_recurrences import fuse_recurrences
from dy2st.onnx.passes.grown_rows import stack_grown_rows
from dy2st.onnx.passes.index_tests import drop_index_tests
from dy2st.onnx.passes.kept_rows import stack_kept_rows
from dy2st.onnx.passes.late_rows import compute_late
from dy2st.onnx.passes.looked_up_products import look_up_products
from dy2st.onnx.passes.loop_invariants import hoist_invariants
from dy2st.onnx.passes.loops_to_scans import scan_rows
from dy2st.onnx.passes.nan_tests import take_nan_tests
from dy2st.onnx.passes.nested_stacks import stack_at_once
from dy2st.onnx.passes.plain_conditions import write_conditions
from dy2st.onnx.passes.product_sums import multiply_and_add
from dy2st.onnx.passes.repeated_nodes import compute_once
from dy2st.onnx.passes.row_indexing import index_plainly
from dy2st.onnx.passes.row_parts import take_row_parts
from dy2st.onnx.passes.scattered_rows import scatter_rows
from dy2st.onnx.passes.size_formulas import compute_sizes
from dy2st.onnx.passes.small_dimensions import put_in_front
from dy2st.onnx.passes.stacked_sizes import leave_out_told_sizes
from dy2st.onnx.passes.truth_values import keep_truth_values
from dy2st.onnx.passes.unit_dimensions import leave_out_unit_dimensions

if TYPE_CHECKING:
    import onnx_ir as ir

Run = Callable[["ir.Model", int, AbstractSet[str]], None]


@dataclass(frozen=True)
class Pass:
    """One pass: ``run`` changes a model in place, for an opset, knowing the names of sizes that are never zero."""

    name: str
    gain: str
    run: Run


PASSES = (
    Pass("dead-results", "results of loops and branches that nothing reads", lambda m, _, __: drop_dead_results(m)),
    Pass("index-tests", "lookups at what is never negative without a test", lambda m, _, __: drop_index_tests(m)),
    Pass("plain-indices", "one row of a tensor as one Gather", lambda m, opset, _: index_plainly(m, opset)),
    Pass("truth-values", "conditions without casts to and fro", lambda m, opset, _: keep_truth_values(m, opset)),
    Pass("expansions", "operators that broadcast by themselves", lambda m, _, __: stretch_in_operators(m)),
    Pass("nested-stacks", "matrices of numbers in one Concat", lambda m, opset, _: stack_at_once(m, opset)),
    Pass("unit-dimensions", "rows as matrices", lambda m, opset, _: leave_out_unit_dimensions(m, opset)),
    Pass("repeated-nodes", "what is computed twice, once", lambda m, _, __: compute_once(m)),
    Pass("plain-conditions", "conditions of loops without branches", lambda m, opset, _: write_conditions(m, opset)),
    Pass("arm-rows", "what arms compute of rows, outside of them", lambda m, opset, _: take_rows_out_of_arms(m, opset)),
    Pass("chosen-values", "branches that choose a small value as Where", lambda m, opset, _: choose_values(m, opset)),
    Pass("floor-divisions", "numbers that are not negative divided", lambda m, opset, _: divide_downwards(m, opset)),
    Pass("extremes", "comparisons of extremes without a test of NaN", compare_extremes),
    Pass("small-dimensions", "points and corners by coordinate", lambda m, opset, _: put_in_front(m, opset)),
    Pass("grown-rows", "tensors that grow in a loop as stacked rows", lambda m, opset, _: stack_grown_rows(m, opset)),
    Pass("kept-rows", "numbers appended on a condition as a Compress", lambda m, opset, _: stack_kept_rows(m, opset)),
    Pass("empty-arms", "tensors that are given if they have rows", lambda m, opset, _: drop_empty_arms(m, opset)),
    Pass("foreseen-ends", "loops that count up to some row as a search", foresee_ends),
    Pass("counted-loops", "loops that count as loops of so many trips", lambda m, opset, _: count_trips(m, opset)),
    Pass("size-formulas", "sizes that follow from those of inputs", lambda m, opset, _: compute_sizes(m, opset)),
    Pass("loop-invariants", "what is the same in each trip, before the loop", lambda m, _, __: hoist_invariants(m)),
    Pass("early-guards", "guards that ask the same in each trip, once", lambda m, opset, _: guard_early(m, opset)),
    Pass(
        "forwarded-rows",
        "rows that a loop wrote and reads again, as states",
        lambda m, opset, _: forward_rows(m, opset),
    ),
    Pass("row-parts", "parts of rows as rows of parts", lambda m, opset, _: take_row_parts(m, opset)),
    Pass("recurrences", "loops over a GRU, LSTM or RNN cell as the operator", fuse_recurrences),
    Pass("scans", "loops over rows as Scan, and products of all rows at once", scan_rows),
    Pass("late-rows", "what a Scan only stacks, of all rows at once", lambda m, opset, _: compute_late(m, opset)),
    Pass(
        "repeated-nodes", "what is computed twice, once: what came out of two loops", lambda m, _, __: compute_once(m)
    ),
    Pass("loop-invariants", "the same, for sizes of inner loops", lambda m, _, __: hoist_invariants(m)),
    Pass("looked-up-products", "products of embeddings in a table", lambda m, opset, _: look_up_products(m, opset)),
    Pass("product-sums", "products and sums as one Gemm", lambda m, opset, _: multiply_and_add(m, opset)),
    Pass("dot-products", "products of two vectors as sums", lambda m, opset, _: sum_dot_products(m, opset)),
    Pass("columns", "vectors that matrices are multiplied by, as columns", lambda m, opset, _: carry_columns(m, opset)),
    Pass(
        "carried-dimensions",
        "states with a dimension that each trip would add",
        lambda m, opset, _: carry_dimensions(m, opset),
    ),
    Pass("scattered-rows", "rows that are written as rows", lambda m, opset, _: scatter_rows(m, opset)),
    Pass("told-sizes", "sizes that stacked rows have anyway", lambda m, _, filled: leave_out_told_sizes(m, filled)),
    Pass("dead-results", "results that nothing reads any more", lambda m, _, __: drop_dead_results(m)),
    Pass("nan-tests", "extremes without a test of NaN", lambda m, opset, _: take_nan_tests(m, opset)),
)
NAMES = tuple(dict.fromkeys(each.name for each in PASSES))


@dataclass(frozen=True)
class Done:
    """What a pass did: the number of nodes before and after it, those of bodies included."""

    name: str
    gain: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.name}: {self.before} nodes to {self.after} ({self.gain})"


@dataclass
class _Choice:
    left_out: frozenset[str] = frozenset()
    done: list[Done] = field(default_factory=list)


_CHOICE: ContextVar[_Choice | None] = ContextVar("passes", default=None)


@contextlib.contextmanager
def choosing(left_out: Collection[str] = ()) -> Iterator[list[Done]]:
    """Leave passes out of the exports in this block; gives what the others did, export after export.

    Raises:
        UsageError: there is no pass of a name.
    """
    for name in left_out:
        if name not in NAMES:
            raise UsageError(f"there is no pass {name!r}", hint=f"one of {', '.join(NAMES)}")
    outer = _CHOICE.get()
    choice = _Choice(frozenset(left_out) | (outer.left_out if outer is not None else frozenset()))
    token = _CHOICE.set(choice)
    try:
        yield choice.done
    finally:
        _CHOICE.reset(token)
        if outer is not None:
            outer.done += choice.done


def run_passes(model: ir.Model, opset: int, filled: AbstractSet[str]) -> None:
    """Run the passes that are not left out, in place; ``filled`` are the names of sizes that are never zero."""
    choice = _CHOICE.get() or _Choice()
    for each in PASSES:
        if each.name in choice.left_out:
            continue
        before = _count(model)
        each.run(model, opset, filled)
        choice.done.append(Done(each.name, each.gain, before, _count(model)))


def _count(model: ir.Model) -> int:
    return sum(1 for _ in model.graph.all_nodes())
