"""In the body of a loop, vectors that matrices are multiplied by are columns from trip to trip.

Before::

    end = Loop(trips, "", v) <body = step (i, go, state) {
        product = MatMul(a, state)                      # a: [n, n], state: [n]
        size = ReduceL2<keepdims = 0>(product)
        next = Div(product, size)
    }>

After::

    column = Unsqueeze(v, [1])
    wide = Loop(trips, "", column) <body = step (i, go, state) {
        product = MatMul(a, state)                      # state: [n, 1]
        size = ReduceL2<keepdims = 0>(product)
        next = Div(product, size)
    }>
    end = Squeeze(wide, [1])

A matrix times a vector takes onnxruntime 1.31 as long as a product of matrices, so that such products are written with
columns in any case (:mod:`dy2st.onnx.passes.workarounds`): here they are no vectors in between. It is done where the
body gets fewer nodes by it. A vector of a fixed size of few elements stays one.

So are the products of several matrices with one vector, of which each is a column, and what is made of them element by
element or along the other dimensions, but for a ``GatherElements``, which is slower of columns. Rows that a ``Scan``
reads or stacks are columns in its body, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from dy2st.onnx.building import op, put_before, recording
from dy2st.onnx.passes.carried_dimensions import narrow_result
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_shape
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.onnx.passes.workarounds import is_short

# Of one operand, element by element.
_OF_ONE = frozenset(
    """Abs Cast Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal
    Relu Round Selu Sigmoid Sign Sin Softplus Softsign Sqrt Tan Tanh""".split()
)
_PLACES = frozenset(("ArgMax", "ArgMin"))
_REDUCTIONS = frozenset(
    "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare".split()
)


def carry_columns(model: ir.Model, opset: int) -> None:
    """Carry such columns; in place, in each loop by itself."""
    for graph in (model.graph, *model.graph.subgraphs()):
        for node in list(graph):
            if node.op_type in LOOPS and is_onnx(node):
                found = _Columns(node)
                if found.gain() > 0:
                    found.write(opset)
    _read_columns(model)


def _read_columns(model: ir.Model) -> None:
    """Read a column where a vector is made one that was a column before; in place."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        vector = node.inputs[0] if node.op_type == "Unsqueeze" and is_onnx(node) else None
        taken = vector.producer() if vector is not None else None
        if taken is None or taken.op_type != "Squeeze" or len(taken.inputs) != 2 or node.outputs[0].is_graph_output():
            continue
        column, axes = taken.inputs[0], constant_integers(taken.inputs[1])
        same = axes == constant_integers(node.inputs[1])
        if column is not None and axes is not None and same and len(axes) == 1 and axes[0] >= 0:
            node.outputs[0].replace_all_uses_with(column)


class _Columns:
    """The vectors of a body that may be columns, and those that are read as if they were.

    Of a tensor, the last dimension is that of the columns.
    """

    def __init__(self, loop: ir.Node) -> None:
        self.loop = loop
        self.body: ir.Graph = loop.attributes["body"].as_graph()
        is_loop = loop.op_type == "Loop"
        self.before, self.first = (2, 1) if is_loop else (0, 0)
        scanned = 0 if is_loop else loop.attributes["num_scan_inputs"].as_int()
        self.count = len(self.body.inputs) - self.before - scanned
        plain = not is_loop and not {"scan_input_axes", "scan_output_axes"} & set(loop.attributes)
        self.rows = list(self.body.inputs[self.count :]) if plain else []
        self.own = {out for node in self.body for out in node.outputs} | set(self.body.inputs)
        # States that are columns on the way in and out, and what the nodes give that are given columns.
        self.states = {place for place in range(self.count) if self._is_state(place)}
        self.members: set[ir.Value] = set()
        while True:
            self.members = self._reached()
            lost = {place for place in self.states if self._end(place) not in self.members}
            if not lost:
                break
            self.states -= lost

    def _state(self, place: int) -> ir.Value:
        return self.body.inputs[self.before + place]

    def _end(self, place: int) -> ir.Value:
        return self.body.outputs[self.first + place]

    def _is_state(self, place: int) -> bool:
        """Whether a state is a vector of one size, and computed anew in each trip."""
        start, state, end = self.loop.inputs[self.before + place], self._state(place), self._end(place)
        return (
            start is not None
            and _is_vector(state)
            and same_shape(start, state)
            and same_shape(state, end)
            and end.producer() in self.body
            and sum(each is end for each in self.body.outputs) == 1
        )

    def _reached(self) -> set[ir.Value]:
        """The values that are columns if the states are."""
        found = {self._state(place) for place in self.states}
        for node in self.body:
            if is_onnx(node) and len(node.outputs) == 1 and _has_columns(node.outputs[0]) and self._passes(node, found):
                found.add(node.outputs[0])
        return found

    def _passes(self, node: ir.Node, columns: set[ir.Value]) -> bool:
        """Whether a node gives a column of columns."""
        out, inputs, kind = node.outputs[0], node.inputs, node.op_type
        if kind == "MatMul":
            return inputs[0] not in columns and _is_product(node)
        if kind in _OF_ONE or (kind == "Identity" and self._stacked(out) is not None):
            return inputs[0] in columns
        if kind in _PLACES:
            return inputs[0] in columns and node.attributes.get_int("axis", 0) >= 0
        if kind == "Squeeze" or (kind in _REDUCTIONS and not _reduces(node)):
            axes = constant_integers(inputs[1]) if len(inputs) == 2 else None
            return inputs[0] in columns and bool(axes) and axes is not None and min(axes) >= 0
        if kind not in ELEMENTWISE or not any(value in columns for value in inputs):
            return False
        return all(value is not None and (_is_number(value) or same_shape(value, out)) for value in inputs)

    def _stacked(self, value: ir.Value) -> int | None:
        """Where a ``Scan`` stacks a value that is there for nothing else; None for others."""
        places = [place for place, result in enumerate(self.body.outputs) if result is value]
        stacks = bool(self.rows) and len(places) == 1 and places[0] >= self.count and not value.uses()
        return places[0] if stacks else None

    def gain(self) -> int:
        """How many nodes fewer the body has; 0 where it or the graph around it has none fewer."""
        inside = outside = 0
        for node in self.body:
            if node.op_type == "MatMul" and node.outputs[0] in self.members:
                inside += 2
        for value in dict.fromkeys(self._given()):
            is_outside = value not in self.own or self._is_row(value)
            inside -= not is_outside
            outside += is_outside
        inside -= sum(1 for value in self.members if any(True for _ in self._leaving(value)))
        outside += 2 * len(self.states)
        return inside if inside > 0 and inside >= outside - 2 * len(self.states) else 0

    def _given(self) -> Iterator[ir.Value]:
        """The vectors that have to be made columns for what reads them."""
        for node in self.body:
            if node.outputs[0] in self.members and (node.op_type == "MatMul" or node.op_type in ELEMENTWISE):
                operands = node.inputs[1:] if node.op_type == "MatMul" else node.inputs
                yield from (each for each in operands if each is not None and self._is_given(each))

    def _is_given(self, value: ir.Value) -> bool:
        return value not in self.members and _has_columns(value) and not _is_number(value)

    def _is_row(self, value: ir.Value) -> bool:
        """Whether a vector is a row that a ``Scan`` reads, for nothing else than what has columns."""
        return any(value is row for row in self.rows) and all(self._takes(use.node, use.idx) for use in value.uses())

    def _takes(self, node: ir.Node, place: int) -> bool:
        """Whether a node gives columns of columns, of which one operand is to be one."""
        if node.graph is not self.body or node.outputs[0] not in self.members:
            return False
        return node.op_type in ELEMENTWISE or (node.op_type == "MatMul" and place == 1)

    def _leaving(self, value: ir.Value) -> Iterator[tuple[ir.Node, int] | int]:
        """The uses of a column that need a vector, and the places of results that are."""
        for use in value.uses():
            inside = use.node.graph is self.body
            if not (inside and (use.node.outputs[0] in self.members or _reduces(use.node))):
                yield use.node, use.idx
        for place, result in enumerate(self.body.outputs):
            if result is value and place - self.first not in self.states and self._stacked(value) is None:
                yield place

    def write(self, opset: int) -> None:
        """Write the body with columns."""
        leaving = {value: list(self._leaving(value)) for value in self.members}
        self._widen_given(opset)
        for node in list(self.body):
            if node.inputs and _reduces(node) and node.inputs[0] in self.members and len(node.inputs) == 2:
                node.resize_inputs(1)
        for place in self.states:
            start = self.loop.inputs[self.before + place]
            with recording(opset) as made:
                wide = op("Unsqueeze", start, [1])
            wide.shape = _column(self._state(place))
            put_before(self.loop, made.nodes, stem=f"{self._state(place).name}_column")
            self.loop.replace_input_with(self.before + place, wide)
            narrow_result(self.loop, self.loop.outputs[place], 1, opset)
        for value in self.members:
            stacked = self._stacked(value)
            if stacked is not None:
                narrow_result(self.loop, self.loop.outputs[stacked], _rank(value) + 1, opset)
            before, value.shape = value.shape, _column(value)
            if leaving[value]:
                self._narrow(value, before, leaving[value], opset)

    def _widen_given(self, opset: int) -> None:
        """Make columns of the vectors that nodes are given which give columns."""
        for value in list(dict.fromkeys(self._given())):
            users = [(use.node, use.idx) for use in value.uses() if self._takes(use.node, use.idx)]
            if self._is_row(value):
                self._widen_row(value, opset)
                continue
            with recording(opset) as made:
                wide = op("Unsqueeze", value, [_rank(value)])
            wide.shape = _column(value)
            put_before(users[0][0] if value in self.own else self.loop, made.nodes, stem=f"{value.name}_column")
            if value in self.own:
                self._put_first(made.nodes, value)
            for user, place in users:
                user.replace_input_with(place, wide)

    def _widen_row(self, row: ir.Value, opset: int) -> None:
        """Let a ``Scan`` read columns."""
        place = list(self.body.inputs).index(row)
        whole = self.loop.inputs[place]
        assert whole is not None
        with recording(opset) as made:
            wide = op("Unsqueeze", whole, [_rank(row) + 1])
        wide.shape = None if whole.shape is None else ir.Shape([*whole.shape, 1])
        put_before(self.loop, made.nodes, stem=f"{row.name}_columns")
        self.loop.replace_input_with(place, wide)
        row.shape = _column(row)

    def _put_first(self, nodes: list[ir.Node], value: ir.Value) -> None:
        """Put nodes where their operand is there, before all that read it."""
        maker = value.producer()
        self.body.remove(nodes)
        if maker is not None and maker.graph is self.body:
            self.body.insert_after(maker, nodes)
        else:
            self.body.insert_before(self.body[0], nodes)

    def _narrow(
        self, value: ir.Value, shape: ir.Shape | None, leaving: list[tuple[ir.Node, int] | int], opset: int
    ) -> None:
        """Give those a vector that need one."""
        with recording(opset) as made:
            found = op("Squeeze", value, [_rank(value) - 1])
        found.shape = shape
        maker = value.producer()
        for count, node in enumerate(made.nodes):
            node.outputs[0].name = f"{value.name}_vector_{count}"
            node.name = f"node_{node.outputs[0].name}"
        self._put_first_of(made.nodes, maker)
        for use in leaving:
            if isinstance(use, int):
                self.body.outputs[use] = found
            else:
                use[0].replace_input_with(use[1], found)

    def _put_first_of(self, nodes: list[ir.Node], maker: ir.Node | None) -> None:
        if maker is not None and maker.graph is self.body:
            for node in nodes:
                node.metadata_props.update(maker.metadata_props)
            self.body.insert_after(maker, nodes)
        else:
            self.body.insert_before(self.body[0], nodes)


def _is_vector(value: ir.Value) -> bool:
    return value.shape is not None and len(value.shape) == 1


def _has_columns(value: ir.Value) -> bool:
    """Whether a value is a vector, or several of them."""
    return value.shape is not None and len(value.shape) > 0


def _is_number(value: ir.Value) -> bool:
    """Whether a value is one number, however it is stretched."""
    return value.shape is not None and all(size == 1 for size in value.shape)


def _is_product(node: ir.Node) -> bool:
    """Whether a node multiplies a matrix by a vector that is not short."""
    left, right = node.inputs
    if left is None or right is None or left.shape is None or right.shape is None:
        return False
    return len(left.shape) >= 2 and _is_vector(right) and not is_short(right)


def _reduces(node: ir.Node) -> bool:
    """Whether a node makes one number of a vector, or of a column if it has no axes."""
    if node.op_type not in _REDUCTIONS or not is_onnx(node):
        return False
    if "keepdims" not in node.attributes or node.attributes["keepdims"].as_int():
        return False
    if "noop_with_empty_axes" in node.attributes and node.attributes["noop_with_empty_axes"].as_int():
        return False
    data = node.inputs[0]
    if len(node.inputs) == 1:
        return True
    return data is not None and _is_vector(data) and constant_integers(node.inputs[1]) in ([0], [-1])


def _rank(value: ir.Value) -> int:
    assert value.shape is not None
    return len(value.shape)


def _column(value: ir.Value) -> ir.Shape:
    assert value.shape is not None
    return ir.Shape([*value.shape, 1])
