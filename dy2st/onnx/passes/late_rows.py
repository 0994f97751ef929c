"""What the body of a ``Scan`` makes only to be stacked is made of all rows at once, behind it.

Before::

    h_end, ys = Scan<num_scan_inputs = 2>(h_0, xs, ds) <body = step (h, x, d) {
        next = Add(h, x)
        sum = ReduceSum(next, [1])
        y = Add(sum, d)                    # which no other step reads
    }>

After::

    h_end, sums = Scan<num_scan_inputs = 1>(h_0, xs) <body = step (h, x) {
        next = Add(h, x)
        sum = ReduceSum(next, [1])
    }>
    ys = Add(sums, ds)

So the body has a node less for each step, and a product of matrices is one of many rows. What is stacked instead is at
most ``WIDER`` times as large. A product may add in another order for another number of rows.
Source: loop distribution, Allen, Kennedy, "Optimizing Compilers for Modern Architectures", 2001, section 5.4.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from dy2st.onnx.building import recording
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape
from dy2st.onnx.passes.node_constructs import ALL_TRIPS, NAMESPACE, UNUSUAL
from dy2st.onnx.passes.repeated_nodes import is_pure
from dy2st.onnx.passes.row_forms import WIDER, Rows, rows_of

_PRODUCTS = frozenset(("MatMul", "Gemm"))


def compute_late(model: ir.Model, opset: int) -> None:
    """Move such nodes behind their ``Scan``; in place, subgraphs included."""
    for graph in [model.graph, *model.graph.subgraphs()]:
        for node in list(graph) if graph.name != UNUSUAL else ():
            if node.op_type == "Scan" and is_onnx(node) and "scan_output_directions" not in node.attributes:
                _Late(node, opset).apply()


class _Late:
    """One ``Scan``."""

    def __init__(self, scan: ir.Node, opset: int) -> None:
        self.scan, self.opset = scan, opset
        self.body: ir.Graph = scan.attributes["body"].as_graph()
        self.states = len(scan.inputs) - scan.attributes["num_scan_inputs"].as_int()

    def apply(self) -> None:
        """Move what can be moved, from the last node to the first."""
        for place in range(self.states, len(self.body.outputs)):
            while self._move(place):
                pass
        self._drop_unread_rows()

    def _rows(self) -> dict[ir.Value, ir.Value]:
        """The rows of the ``Scan``, by what they are in its body, but for those that are read backwards."""
        turned = self.scan.attributes.get_ints("scan_input_directions", [])
        inside, outside = self.body.inputs[self.states :], self.scan.inputs[self.states :]
        backwards = [*turned, *[0] * (len(inside) - len(turned))]
        return {
            one: whole
            for one, whole, back in zip(inside, outside, backwards, strict=True)
            if whole is not None and not back
        }

    def _move(self, place: int) -> bool:
        """Move the node that makes one of the stacked results; whether there is something to be moved."""
        made = self.body.outputs[place]
        node = made.producer()
        if node is None or node.graph is not self.body or not is_pure(node) or node.op_type == "Identity":
            return False
        if len(node.outputs) != 1 or made.uses() or sum(out is made for out in self.body.outputs) > 1:
            return False
        own = {out for each in self.body for out in each.outputs}
        rows = self._rows()
        needed = [value for value in dict.fromkeys(node.inputs) if value is not None and value in own]
        free = all(value not in self.body.inputs or value in rows for value in node.inputs)
        if len(needed) != 1 or not free or not _is_small(needed[0], made):
            return False
        (value,) = needed
        is_result = any(out is value for out in self.body.outputs)
        if is_result and node.op_type not in _PRODUCTS:
            return False
        return self._write(place, node, value, rows, copy=is_result)

    def _write(self, place: int, node: ir.Node, value: ir.Value, rows: Rows, *, copy: bool) -> bool:
        whole = self.scan.outputs[place]
        uses, name = list(whole.uses()), whole.name
        kind, shape = whole.type, whole.shape
        whole.type, whole.shape = value.type, ir.Shape([None, *(value.shape or ())])
        with recording(self.opset) as made:
            found = rows_of(node, {**rows, value: whole})
        graph = self.scan.graph
        if found is None or graph is None:
            for each in made.nodes:
                for count in range(len(each.inputs)):
                    each.replace_input_with(count, None)
            whole.type, whole.shape = kind, shape
            return False
        whole.name = f"{name}_parts"
        for count, each in enumerate(made.nodes):
            each.metadata_props.update(node.metadata_props)
            each.metadata_props[ALL_TRIPS] = self.scan.metadata_props.get(NAMESPACE, "")
            for out in each.outputs:
                out.name = f"{name}_late_{count}"
        (late,) = found
        late.name, late.type, late.shape = name, kind, shape
        graph.insert_after(self.scan, made.nodes)
        for use in uses:
            use.node.replace_input_with(use.idx, late)
        for count, out in enumerate(graph.outputs):
            if out is whole:
                graph.outputs[count] = late
        self.body.outputs[place] = self._copied(value) if copy else value
        self.body.remove(node, safe=True)
        return True

    def _copied(self, value: ir.Value) -> ir.Value:
        """A result of the body has a node of its own."""
        node = ir.Node("", "Identity", [value], version=self.opset)
        node.outputs[0].name, node.outputs[0].type = f"{value.name}_told", value.type
        node.outputs[0].shape = value.shape
        node.metadata_props.update(self.scan.metadata_props)
        self.body.append(node)
        return node.outputs[0]

    def _drop_unread_rows(self) -> None:
        """Rows that only such nodes have read are not scanned; one has to be, for the number of steps."""
        inside = self.body.inputs[self.states :]
        unread = [count for count, row in enumerate(inside) if not row.uses() and not row.is_graph_output()]
        turned = list(self.scan.attributes.get_ints("scan_input_directions", []))
        for count in unread[::-1] if len(unread) < len(inside) else unread[:0:-1]:
            self.body.inputs.pop(self.states + count)
            kept = [*self.scan.inputs[: self.states + count], *self.scan.inputs[self.states + count + 1 :]]
            self.scan.resize_inputs(len(kept))
            for index, value in enumerate(kept):
                self.scan.replace_input_with(index, value)
            turned[count : count + 1] = []
        self.scan.attributes["num_scan_inputs"] = ir.AttrInt64("num_scan_inputs", len(self.scan.inputs) - self.states)
        if turned:
            self.scan.attributes["scan_input_directions"] = ir.AttrInt64s("scan_input_directions", turned)


def _is_small(value: ir.Value, made: ir.Value) -> bool:
    """Whether a value is not much larger than what is made of it."""
    if same_shape(value, made):
        return True
    if value.shape is None or made.shape is None:
        return False
    shapes = [list(value.shape), list(made.shape)]
    sizes = [[size for size in shape if isinstance(size, int)] for shape in shapes]
    names = [sorted(str(size.value) for size in shape if isinstance(size, ir.SymbolicDim)) for shape in shapes]
    known = "None" not in names[0] and names[0] == names[1]
    return known and math.prod(sizes[0]) <= WIDER * math.prod(sizes[1])
