"""A loop whose state is that of a recurrent cell as the operator ``GRU``, ``LSTM`` or ``RNN``.

Before::

    h_end, hs = Loop(steps, "", h_0) <body = step (i, go, h) {
        row = Gather(x, i)
        from_x = Gemm(row, w, b)
        from_h = MatMul(h, u)
        sum = Add(from_x, from_h)
        next = Tanh(sum)
        out = Identity(next)
    }>

After::

    h_end, hs = If(usual) <
        then_branch = { hs, h_end = RNN<hidden_size = 64>(x, w_rnn, u_rnn, b_rnn, "", h_0) },
        else_branch = { h_end, hs = Loop(steps, "", h_0) <body = ...> }
    >

What is not the cell's stays a loop, over the rows of ``hs``. A mask, under which a state stays as it is, is the
operator's ``sequence_lens``.

onnxruntime 1.31 ends the process where such an operator has no step or no row, and gives numbers where NaN comes in.
So what is ``usual`` is asked when the file runs: there are numbers, whose sums can't overflow, and a mask is true for
the first steps of each row, or the last ones. For all else there is the loop.

A step computes what the loop's would, with its sums in another order: see :mod:`dy2st.onnx.passes.cell_forms` for what
is recognised, and :mod:`dy2st.onnx.passes.cell_proof` for how that is tried before a file has it.
Source: ONNX operators GRU-14, LSTM-14 and RNN-14, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import BOOL, FLOAT, INT32, cast, op, ops, put_in_place, recording
from dy2st.onnx.passes.cell_algebra import Reader
from dy2st.onnx.passes.cell_forms import Cell, cells
from dy2st.onnx.passes.cell_proof import cell_node, is_proved
from dy2st.onnx.passes.graph_facts import is_onnx, same_size
from dy2st.onnx.passes.kernels import has_kernel
from dy2st.onnx.passes.loop_rows import LoopRows, turned_round
from dy2st.onnx.passes.loop_sizes import kept_sizes, makes_all_trips
from dy2st.onnx.passes.loops_to_scans import scan_rows
from dy2st.onnx.passes.node_constructs import UNUSUAL
from dy2st.onnx.passes.node_copies import needed_for
from dy2st.onnx.passes.repeated_nodes import is_pure
from dy2st.onnx.passes.row_copies import pass_rows_on
from dy2st.onnx.passes.source_lines import STACK
from dy2st.tracing.constructs import construct_in

# Sums of a cell whose operands are that large are far from overflow, and its weights have to be smaller.
_LARGE, _LARGEST_WEIGHTS = 1e30, 1e20
# The name of a number of steps that is not zero.
_STEPS = "steps_of_"


def fuse_recurrences(model: ir.Model, opset: int, filled: AbstractSet[str]) -> None:
    """Write such loops as the operators; in place, inner loops first. ``filled`` names sizes that are never zero."""
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "Loop" and is_onnx(node):
                _fuse(node, opset, filled)


def _fuse(node: ir.Node, opset: int, filled: AbstractSet[str]) -> None:
    body: ir.Graph = node.attributes["body"].as_graph()
    if not _is_counted(node) or not all(map(is_pure, body)):
        return
    for states, size in _groups(node, body):
        for cell in cells(body, Reader(body, states, size)):
            found = _Fusing(node, cell, opset, filled)
            if found.is_possible() and is_proved(body, cell, opset):
                found.apply()
                return


def _is_counted(node: ir.Node) -> bool:
    """Whether nothing but the number of its trips ends a loop, which is known before it."""
    trips = node.inputs[0]
    return trips is not None and trips.shape is not None and not len(trips.shape) and makes_all_trips(node)


def _groups(node: ir.Node, body: ir.Graph) -> list[tuple[dict[ir.Value, int], Any]]:
    """The states that are float32 matrices of one shape in all trips, those with as many rows together."""
    groups: list[tuple[dict[ir.Value, int], Any]] = []
    for place, (start, value, end) in enumerate(zip(node.inputs[2:], body.inputs[2:], body.outputs[1:], strict=False)):
        if start is None or value.dtype != FLOAT or value.shape is None or len(value.shape) != 2:
            continue
        if not all(kept_sizes(start, end)) or not isinstance(value.shape[1], int) or not value.shape[1]:
            continue
        group = next((states for states, size in groups if same_size(size, value.shape[0])), None)
        if group is None:
            groups.append(({value: place}, value.shape[0]))
        else:
            group[value] = place
    return groups


class _Fusing:
    """One loop and one cell of it."""

    def __init__(self, node: ir.Node, cell: Cell, opset: int, filled: AbstractSet[str]) -> None:
        self.node, self.cell, self.opset, self.filled = node, cell, opset, filled
        self.body: ir.Graph = node.attributes["body"].as_graph()
        self.trips = node.inputs[0]
        self.rows = LoopRows(node, self._operands)
        # Whether the mask is expected to be true for the first steps, not for the last ones.
        self.is_early = cell.mask is None or not self.rows.goes_back(cell.mask)
        self.starts = [node.inputs[2 + place] for place in cell.places]
        self.before = [self.body.inputs[2 + place] for place in cell.places]
        self.ends = [_source(self.body.outputs[1 + place]) for place in cell.places]
        self.count = len(node.inputs) - 2
        self.others = [place for place in range(self.count) if place not in cell.places]
        # What the loop gives beside the cell's states: other states, and rows.
        self.rest = [*(self.body.outputs[1 + place] for place in self.others), *self.body.outputs[1 + self.count :]]
        known = [self.ends[0], *([] if cell.mask is None else [cell.mask])]
        self.left = needed_for(self.body, self.rest, known, self._operands)

    def _operands(self, node: ir.Node) -> Sequence[ir.Value | None]:
        """Where the mask is true, the state is what the step has computed."""
        state = self.ends[0].producer()
        if state is None or node is state or (node.op_type, state.op_type) != ("Where", "Where"):
            return node.inputs
        same = list(node.inputs[:2]) == list(state.inputs[:2])
        return [node.inputs[0], self.ends[0], node.inputs[2]] if same else node.inputs

    def is_possible(self) -> bool:
        """Whether the operator gives all that the rest of the loop needs, and onnxruntime has it."""
        read = {value for node in self.left for value in self._operands(node)} | set(self.rest)
        if any(value in read for value in (*self.before[1:], *self.ends[1:])):
            return False
        return self._bound() is not None and has_kernel(self.cell.kind, self.opset, {"T": FLOAT, "T1": INT32})

    def _bound(self) -> float | None:
        """How large inputs and states may be, so that no sum overflows; None where the weights are too large."""
        cell = self.cell
        biases = np.abs(cell.b, dtype=np.float64).reshape(2, -1).sum(0)
        sums = np.abs(cell.w, dtype=np.float64).sum(1) + np.abs(cell.u, dtype=np.float64).sum(1) + biases
        largest = float(sums.max())
        return _LARGE / max(1.0, largest) if largest < _LARGEST_WEIGHTS else None

    def apply(self) -> None:
        """Put a branch in the place of the loop."""
        node = self.node
        with recording(self.opset) as made:
            stacks = self.rows.stacks([*self.cell.rows, *([] if self.cell.mask is None else [self.cell.mask])])
            rows, mask = stacks[: len(self.cell.rows)], stacks[len(self.cell.rows) :]
            lengths = self._lengths(mask[0]) if mask else None
            usual = self._usual(rows, mask[0] if mask else None, lengths)
            fused = self._then(rows, lengths)
            values = ops(
                "If",
                usual,
                dtypes=[out.dtype for out in node.outputs],
                then_branch=fused,
                else_branch=self._otherwise(),
            )
        for old, new in zip(node.outputs, values, strict=True):
            new.type, new.shape = old.type, old.shape
        # The branch is none of the user's, and its loop is not expected to run.
        node.metadata_props[STACK] = construct_in(node.metadata_props.get(STACK, ""))[1]
        put_in_place(node, made.nodes, values)

    # ---- before the branch

    def _lengths(self, mask: ir.Value) -> ir.Value:
        """For how many steps a mask [time, batch, 1] is true, as int32 [batch]."""
        return op("ReduceSum", cast(mask, INT32), [0, 2], keepdims=0)

    def _numbers(self, trips: Any) -> ir.Value:
        return op("Unsqueeze", op("Range", 0, trips, 1, dtype=INT32), [1])

    def _alive(self, lengths: ir.Value) -> ir.Value:
        """A mask [time, batch] that is true for so many steps."""
        trips = cast(self.trips, INT32)
        if self.is_early:
            return op("Less", self._numbers(trips), lengths)
        return op("GreaterOrEqual", self._numbers(trips), op("Sub", trips, lengths))

    def _usual(self, rows: Sequence[ir.Value], mask: ir.Value | None, lengths: ir.Value | None) -> ir.Value:
        """Whether the operator computes what the loop does."""
        sums = [op("ReduceL1", each, keepdims=0) for each in rows]
        sums += [op("ReduceL1", start, keepdims=0) for start in self.starts if not _is_small(start)]
        total = sums[0]
        for each in sums[1:]:
            total = op("Add", total, each)
        tests = [op("LessOrEqual", total, self._bound())]
        tests += [op("Greater", op("Size", each), 0) for each in rows]
        if mask is not None and lengths is not None:
            alive = op("Unsqueeze", self._alive(lengths), [2])
            wrong = op("Xor", mask, alive) if mask.dtype == BOOL else op("Not", op("Equal", mask, cast(alive, FLOAT)))
            tests.append(op("Equal", op("ReduceSum", cast(wrong, INT32), keepdims=0), 0))
        usual = tests[0]
        for test in tests[1:]:
            usual = op("And", usual, test)
        return usual

    # ---- the branch

    def _then(self, rows: Sequence[ir.Value], lengths: ir.Value | None) -> ir.Graph:
        steps = f"{_STEPS}{self.node.outputs[0].name}"
        with recording(self.opset) as made:
            finals, after, before = self._states(rows, lengths, steps)
            found = dict(zip(self.cell.places, finals, strict=True))
            rows_told = self.rest[len(self.others) :]
            left = [value for value in rows_told if _source(value) is not self.ends[0]]
            stacks: list[ir.Value] = []
            if left or self.others:
                known = {self.ends[0]: after}
                if any(self.before[0] in self._operands(node) for node in self.left) or self.before[0] in self.rest:
                    known[self.before[0]] = before()
                mask = self.cell.mask
                if mask is not None and lengths is not None:
                    # In this branch it is what the lengths say.
                    known[mask] = cast(op("Unsqueeze", self._alive(lengths), [2]), mask.dtype)
                    known[mask].shape = ir.Shape([steps, *(mask.shape or ())])
                trips = op("Squeeze", op("Shape", after, start=0, end=1), [0])
                trips.shape = ir.Shape([])
                results = self.rows.over(left, known, self.others, self.left, trips)
                found.update(zip(self.others, results, strict=False))
                stacks = list(results[len(self.others) :])
                for value, stack in zip(left, stacks, strict=True):
                    assert value.shape is not None
                    stack.shape = ir.Shape([steps, *value.shape])
            outputs = [found[place] for place in range(self.count)]
            outputs += [after if _source(value) is self.ends[0] else stacks.pop(0) for value in rows_told]
            results = [op("Identity", value) for value in outputs]
        for old, new in zip(self.node.outputs, results, strict=True):
            new.type = old.type
        return self._graph("fused", made.nodes, results, self.filled | {steps})

    def _states(self, rows: Sequence[ir.Value], lengths: ir.Value | None, steps: str) -> Any:
        """The states after the last step, ``h`` after each [time, batch, hidden], and what gives it before each."""
        x = rows[0] if len(rows) == 1 else op("Concat", *rows, axis=2)
        starts = [op("Unsqueeze", start, [0]) for start in self.starts]
        turned = lengths is not None and not self.is_early
        given = turned_round(x) if turned else x
        # The operator goes from the last step that counts to the first one: both are turned round.
        attributes = {"direction": "reverse"} if turned else {}
        y, *last = cell_node(self.cell, given, lengths, starts, **attributes)
        after = op("Squeeze", y, [1])
        finals = [op("Squeeze", each, [0]) for each in last]
        if lengths is not None:
            some = op("Unsqueeze", op("Greater", lengths, 0), [1])
            finals = [op("Where", some, end, start) for end, start in zip(finals, self.starts, strict=True)]
            alive = op("Unsqueeze", self._alive(lengths), [2])
            told, other = (turned_round(after), self.starts[0]) if turned else (after, finals[0])
            after = op("Where", alive, told, other)
        for value in finals:
            value.shape = self.before[0].shape
        shape = self.before[0].shape
        assert shape is not None
        after.shape = ir.Shape([steps, *shape])

        def before() -> ir.Value:
            found = op("Concat", op("Unsqueeze", self.starts[0], [0]), op("Slice", after, [0], [-1], [0]), axis=0)
            found.shape = after.shape
            return found

        return finals, after, before

    def _otherwise(self) -> ir.Graph:
        with recording(self.opset) as made:
            results = ops("Loop", *self.node.inputs, dtypes=[out.dtype for out in self.node.outputs], body=self.body)
        for old, new in zip(self.node.outputs, results, strict=True):
            new.type, new.shape = old.type, old.shape
        return self._graph(UNUSUAL, made.nodes, results)

    def _graph(
        self,
        name: str,
        nodes: Sequence[ir.Node],
        results: Sequence[ir.Value],
        filled: AbstractSet[str] | None = None,
    ) -> ir.Graph:
        """A branch; where it is known which sizes are not zero, loops that are left in it are written anew."""
        stem = self.node.outputs[0].name
        lines = construct_in(self.node.metadata_props.get(STACK, ""))[1]
        graph = ir.Graph([], results, nodes=nodes, name=name)
        for node in graph.all_nodes():
            node.metadata_props.setdefault(STACK, lines)
        if filled is not None:
            inner = ir.Model(graph, ir_version=10)
            fuse_recurrences(inner, self.opset, filled)
            scan_rows(inner, self.opset, filled)
            pass_rows_on(graph)
        for count, node in enumerate(graph.all_nodes()):
            for place, out in enumerate(node.outputs):
                out.name = f"{stem}_{name}_{count}_{place}"
        return graph


def _source(value: ir.Value) -> ir.Value:
    """What a value is a copy of."""
    node = value.producer()
    while node is not None and node.op_type == "Identity" and is_onnx(node) and node.inputs[0] is not None:
        value = node.inputs[0]
        node = value.producer()
    return value


def _is_small(value: ir.Value | None) -> bool:
    """Whether a value is known to have no number of more than one."""
    node = value.producer() if value is not None else None
    if node is None or not is_onnx(node) or node.op_type not in {"ConstantOfShape", "Expand"}:
        return False
    if node.op_type == "ConstantOfShape":
        if "value" not in node.attributes:
            return True
        number = node.attributes["value"].as_tensor().numpy()
    else:
        found = ir.convenience.get_const_tensor(node.inputs[0]) if node.inputs[0] is not None else None
        if found is None:
            return False
        number = found.numpy()
    return bool((np.abs(number) <= 1).all())
