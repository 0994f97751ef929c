"""A loop over the rows of tensors as a ``Scan``, and what needs no earlier step as one computation for all steps.

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

    from_xs = Gemm(x, w, b)                          # for all steps at once
    h_end, hs = Scan<num_scan_inputs = 1>(h_0, from_xs) <body = step (h, from_x) {
        from_h = MatMul(h, u)
        sum = Add(from_x, from_h)
        next = Tanh(sum)
        out = Identity(next)
    }>

Rows along another dimension (``Gather<axis = 1>(x, i)``, where the batch comes first) are those of the tensor with that
dimension in front: one ``Transpose`` before the loop.

A state that is what such a row was in the trip before is read from these rows, too, one place further on.

A loop of which all results are such values is no loop any more: its states are the last ones of them.

So it is where the number of trips is that of the rows and nothing ends the loop early. onnxruntime 1.31 fails at a
``Scan`` over no rows. Where there may be none, one row is put in their place, and what is made of it is left out: a
row of zeros, or for ``x[t]`` from ``t = 1`` on, the first row, if there is one. Such a ``Scan`` makes a trip where the
user's loop makes none, and says so in its metadata.

Where something in the body could fail at such a row, or several tensors would be copied to have one, all of this is in
the arm of a branch. The other arm gives the state as it was and no rows; the branch says in its metadata that this is
the loop without a trip. (In onnxruntime 1.31 one tensor with a row of zeros is faster where it may be: what a branch
gives takes memory anew in each run.)

::

    some = Greater(steps, 0)
    h_end, hs = If(some) <
        then_branch = rows () => (h_end_1, hs_1) { h_end_1, hs_1 = Scan(h_0, x) ... },
        else_branch = none () => (h_end_2, hs_2) { h_end_2 = Identity(h_0)  hs_2 = Constant() }
    >

A sum may be rounded otherwise: onnxruntime's product of many rows adds in another order than that of few, and what
needs no earlier step is added first (:mod:`dy2st.onnx.passes.early_sums`).
Source: loop distribution, Allen, Kennedy, "Optimizing Compilers for Modern Architectures", 2001, section 5.4; ONNX
operator Scan-21, https://onnx.ai/onnx/operators/onnx__Scan.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import onnx_ir as ir

from dy2st.onnx.building import (
    Recorder,
    arm,
    constant,
    op,
    ops,
    put_in_place,
    recording,
)
from dy2st.onnx.passes.early_sums import add_early
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.loop_invariants import never_fails, takes_its_places
from dy2st.onnx.passes.loop_sizes import (
    kept_sizes,
    makes_all_trips,
    read_sizes,
)
from dy2st.onnx.passes.node_constructs import LOOP_OR_NONE, PADDED, UNUSUAL, stand_for_none
from dy2st.onnx.passes.repeated_nodes import is_pure
from dy2st.onnx.passes.row_forms import turned
from dy2st.onnx.passes.stacked_sizes import leave_out_sizes, no_rows, states_like_rows
from dy2st.onnx.passes.trip_rows import TripRows, made_by

# What makes no rows of none.
_OF_NO_ROWS = ELEMENTWISE | frozenset(
    "Abs Cast Ceil Exp Floor Gather Identity IsNaN Log Neg Not Relu Sigmoid Sqrt Squeeze Tanh Unsqueeze".split()
)


def scan_rows(model: ir.Model, opset: int, filled: AbstractSet[str]) -> None:
    """Make a ``Scan`` of each loop that can be one; in place, inner loops first.

    ``filled`` are the names of sizes that are never zero, as those are not of which the graph takes a row. Loops for
    what is unusual stay as they are: no time is to be gained where they don't run.
    """
    filled = filled | read_sizes(model.graph)
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph) if graph.name != UNUSUAL else ():
            if node.op_type == "Loop" and is_onnx(node):
                _Rewriting(node, opset, filled).apply()


class _Rewriting(TripRows):
    """One loop, as it is written anew."""

    def apply(self) -> None:
        """Rewrite the loop, if it is one over rows."""
        known = self.length is not None and self.trips is not None and self.trips.shape is not None
        if not known or len(self.trips.shape) or not makes_all_trips(self.loop) or not self._keeps_shapes():
            return
        in_branch = False
        self._try()
        if self._is_no_loop():
            self._write_rows()
            return
        if not self.is_some and (
            not (self._scanned() and self._never_fails()) or (self._padded() > 1 and self._has_empty_results())
        ):
            in_branch = self.is_some = True
            self._try()
        if not self._scanned() or (in_branch and not self._has_empty_results()):
            return
        add_early(self.body, self.rows)
        with recording(self.opset) as made:
            self.find_rows()
            self._write(made, self._scanned(), in_branch=in_branch)

    def _try(self) -> None:
        """See which values have rows; nothing is left of what is recorded for that."""
        with recording(self.opset) as tried:
            self.find_rows()
        for node in tried.nodes:
            for place in range(len(node.inputs)):
                node.replace_input_with(place, None)

    def _padded(self) -> int:
        """How many tensors get a row of zeros in place of none, which is a copy of each."""
        return len({rows for rows in self.rows.values() if made_by(rows, "Pad")})

    def _has_empty_results(self) -> bool:
        """Whether it is known how many dimensions the stacked rows have."""
        stacked = self.loop.outputs[len(self.loop.inputs) - 2 :]
        return all(value.shape is not None and len(value.shape) and value.dtype is not None for value in stacked)

    def _keeps_shapes(self) -> bool:
        """Whether the state has one shape in all trips."""
        return all(
            start is not None and isinstance(start.type, ir.TensorType) and all(kept_sizes(start, end))
            for start, end in zip(self.loop.inputs[2:], self.body.outputs[1:], strict=False)
        )

    # ---- the scan

    def _scanned(self) -> list[ir.Value]:
        """The values with rows that something else in the body, or its result, needs."""
        moved = set(map(id, self.moved))
        results = set(map(id, self.body.outputs))
        return [
            value
            for value in self.rows
            if value not in self.delayed
            and (id(value) in results or any(id(use.node) not in moved for use in value.uses()))
        ]

    def _never_fails(self) -> bool:
        """Whether what is left of the body computes something of any row."""
        moved = set(map(id, self.moved))
        return all(
            id(node) in moved or (is_pure(node) and (never_fails(node) or takes_its_places(node))) for node in self.body
        )

    def _write(self, made: Recorder, scanned: Sequence[ir.Value], *, in_branch: bool) -> None:
        """Put the ``Scan`` in the place of the loop, and what computes its rows before it."""
        loop, body, starts = self.loop, self.body, self.loop.inputs[2:]
        going = body.outputs.pop(0).producer()
        elements = [ir.Value(name=f"{each.name}_row", type=each.type, shape=each.shape) for each in scanned]
        for value, element in zip(scanned, elements, strict=True):
            self._keep_result(value, element)
            value.replace_all_uses_with(element)
        gone = [*self.moved, *([going] if going is not None and going.graph is body else [])]
        for node in gone[::-1]:
            if not any(out.uses() or out.is_graph_output() for out in node.outputs):
                body.remove(node, safe=True)
        del body.inputs[:2]
        body.inputs.extend(elements)
        rows = [self.rows[value] for value in scanned]
        sources = [turned(each) for each in rows]
        directions = {"scan_input_directions": [int(each is not None) for each in sources]} if any(sources) else {}
        values = ops(
            "Scan",
            *starts,
            *(row if source is None else source for row, source in zip(rows, sources, strict=True)),
            dtypes=[out.dtype for out in loop.outputs],
            body=body,
            num_scan_inputs=len(scanned),
            **directions,
        )
        scan = values[0].producer()
        assert scan is not None
        if not self.is_some:
            scan.metadata_props[PADDED] = "one row stands for none"
            values = self._without_the_row(values, starts)
        _type_as(values, loop.outputs)
        if not in_branch:
            leave_out_sizes(loop, body, values, range(len(starts), len(values)))
            put_in_place(loop, made.nodes, values)
            return
        with recording(self.opset) as around:
            values = self._if_some(made, values, starts)
        leave_out_sizes(loop, body, values, states_like_rows(loop, body))
        put_in_place(loop, around.nodes, values)
        branch = values[0].producer()
        assert branch is not None
        stand_for_none(branch)
        branch.metadata_props[LOOP_OR_NONE] = "no trip is the other arm"

    def _is_no_loop(self) -> bool:
        """Whether all results are rows, of which there may be none."""
        if not all(result in self.rows for result in self.body.outputs[1:]):
            return False
        # What may end the run, or draws at random, is asked for in each trip.
        if not all(is_pure(node) for node in self.body):
            return False
        return self.is_some or all(node.op_type in _OF_NO_ROWS for node in self.moved)

    def _write_rows(self) -> None:
        """Put the rows themselves in the place of the loop, and the last ones of states."""
        is_some, self.is_some = self.is_some, True
        starts = [each for each in self.loop.inputs[2:] if each is not None]
        with recording(self.opset) as made:
            self.find_rows()
            self.body.outputs.pop(0)
            results = [self.rows[result] for result in self.body.outputs]
            values = []
            for start, rows in zip(starts, results, strict=False):
                some = rows if is_some else op("Concat", op("Unsqueeze", start, [0]), rows, axis=0)
                values.append(op("Gather", some, constant(-1), axis=0))
            # A result of a graph is made by a node of its own.
            values += [op("Identity", rows) for rows in results[len(starts) :]]
        _type_as(values, self.loop.outputs)
        leave_out_sizes(self.loop, self.body, values, range(len(starts), len(values)))
        put_in_place(self.loop, made.nodes, values)

    def _keep_result(self, value: ir.Value, element: ir.Value) -> None:
        """A result of the body that is a row as it is has a node of its own."""
        for place, result in enumerate(self.body.outputs):
            if result is value:
                copy = ir.Node("", "Identity", [element], version=self.loop.version)
                copy.outputs[0].name, copy.outputs[0].type = f"{value.name}_result_{place}", value.type
                copy.outputs[0].shape = value.shape
                copy.metadata_props.update(self.loop.metadata_props)
                self.body.append(copy)
                self.body.outputs[place] = copy.outputs[0]

    def _without_the_row(self, values: Sequence[ir.Value], starts: Sequence[ir.Value | None]) -> list[ir.Value]:
        """The results without what was made of the row that stands for none."""
        assert self.length is not None
        counted = self.length.more >= 0 or self.is_filled(self.length.plus(1))
        some = op("Greater", self.trips, 0)
        end = op("Reshape", self.trips if counted else op("Max", self.trips, 0), [1])
        states = [op("Where", some, after, before) for after, before in zip(values, starts, strict=False)]
        return [*states, *(op("Slice", rows, [0], end, [0]) for rows in values[len(starts) :])]

    def _if_some(
        self, made: Recorder, values: Sequence[ir.Value], starts: Sequence[ir.Value | None]
    ) -> Sequence[ir.Value]:
        """The results of a branch: those of the ``Scan``, or without a row the state as it was and no rows."""
        old = self.loop.outputs
        rows = arm(made.nodes, values, like=self.loop, name="rows")
        with recording(self.opset) as other:
            results = [op("Identity", start) for start in starts]
            _type_as(results, old[: len(starts)])
            alike = states_like_rows(self.loop, self.body)
            results += [no_rows(old[place], alike.get(place)) for place in range(len(starts), len(old))]
        none = arm(other.nodes, results, like=self.loop, name="none")
        some = op("Greater", self.trips, 0)
        found = ops("If", some, dtypes=[out.dtype for out in old], then_branch=rows, else_branch=none)
        _type_as(found, old)
        return found


def _type_as(values: Sequence[ir.Value], others: Sequence[ir.Value]) -> None:
    """Let values have the types and shapes of others."""
    for value, other in zip(values, others, strict=True):
        value.type, value.shape = other.type, other.shape
