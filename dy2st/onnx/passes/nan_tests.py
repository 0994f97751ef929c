"""What is there for NaN alone is taken out where none can reach, and is a branch of its own in a loop.

torch says where the first NaN is, and onnxruntime's ``ReduceMax``, ``ArgMax`` and ``TopK`` pass over it. So an extreme
is written with a test.

Before::

    place = ArgMax<axis = 1, keepdims = 1>(x)
    is_nan = IsNaN(x)
    number = Cast<to = 2>(is_nan)
    first = ArgMax<axis = 1, keepdims = 1>(number)
    some = ReduceMax<keepdims = 1>(is_nan, [1])
    found = Where(some, first, place)

After, if no element of ``x`` is NaN, or all of a row are as behind a ``Softmax`` along it::

    found = ArgMax<axis = 1, keepdims = 1>(x)

After, in the body of a loop, for ``x`` of which nothing is known::

    sum = ReduceSum<keepdims = 0>(x)
    wrong = IsNaN(sum)
    found = If(wrong) <
        then_branch = exact () => (found_1) { ... },                           # as before
        else_branch = plain () => (found_2) { found_2 = ArgMax<axis = 1, keepdims = 1>(x) }
    >

A sum is NaN if a part is; it also is of infinities of both signs, for which the exact way is as right. The value at the
place of an extreme is the extreme itself, unless that is a zero: there may be one of each sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, arm, op, ops, put_before, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_shape
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.onnx.passes.node_constructs import stand_for_none
from dy2st.onnx.passes.number_facts import nan_fills, never_nan, never_negative_zero

# What a test, and the results that wait for it, are made of.
_PARTS = frozenset(
    "ArgMax ArgMin Cast GatherElements IsNaN Min ReduceMax ReduceMin Squeeze TopK Unsqueeze Where".split()
)
_EXTREMES = {"ArgMax": "ReduceMax", "ArgMin": "ReduceMin"}
# A flag that is not set stays one in these.
_KEEPING = frozenset(("Cast", "ReduceMax", "ReduceMin", "Squeeze", "Unsqueeze"))
# So many elements cost more to test one by one than to add up, and a branch.
WORTH_A_BRANCH = 512


def take_nan_tests(model: ir.Model, opset: int) -> None:
    """Take such tests out, or put one before a branch; in place, subgraphs included."""
    inside: set[int] = set()
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if node.op_type in LOOPS and is_onnx(node):
            inside.update(map(id, _within(node)))
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "IsNaN" and is_onnx(node) and node.graph is not None and node.outputs[0].uses():
            _Cluster(node).rewrite(opset, in_loop=id(node) in inside)


def _within(node: ir.Node) -> Iterator[ir.Node]:
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield from attribute.as_graph().all_nodes()


class _Cluster:
    """The nodes that need a value and constants alone, down to those whose results wait for a test of NaN."""

    def __init__(self, test: ir.Node) -> None:
        self.test = test
        wide = test.inputs[0]
        assert wide is not None
        before = _made_by(wide, "Cast")
        narrow = before.inputs[0] if before is not None else None
        is_wide = narrow is not None and narrow.dtype == FLOAT and wide.dtype == DOUBLE
        self.value: ir.Value = narrow if is_wide and narrow is not None else wide
        self.nodes: list[ir.Node] = []
        self.waiting: set[ir.Value] = set()
        known = {self.value}
        reached = [self.value]
        while reached:
            for node, _ in list(reached.pop(0).uses()):
                operands = [each for each in node.inputs if each is not None]
                if node.graph is not test.graph or node.outputs[0] in known or node.op_type not in _PARTS:
                    continue
                constant = (each in known or ir.convenience.get_const_tensor(each) is not None for each in operands)
                if is_onnx(node) and all(constant):
                    self.nodes.append(node)
                    known.update(node.outputs)
                    reached += node.outputs
                    if node.op_type == "IsNaN" or self.waiting & set(operands):
                        self.waiting.update(node.outputs)
        own = set(self.nodes)
        self.results = [
            out
            for node in self.nodes
            for out in node.outputs
            if out in self.waiting and (out.is_graph_output() or any(use.node not in own for use in out.uses()))
        ]

    def rewrite(self, opset: int, *, in_loop: bool) -> None:
        """Write the results without a test, or on two ways."""
        x = self.value
        if not self.results or x.dtype not in {FLOAT, DOUBLE}:
            return
        with recording(opset) as made:
            simple = _WithoutNaN(x)
            values = [simple.of(result) for result in self.results]
        found = [value for value in values if value is not None]
        if len(found) < len(values) or not simple.axes or any(value in {x, *self.waiting} for value in found):
            _forget(made.nodes)
            return
        if not (never_nan(x) or (simple.rows_only and all(nan_fills(x, axis) for axis in simple.axes))):
            _forget(made.nodes)
            if not in_loop or not _is_large(x):
                return
            with recording(opset) as made:
                found = self._branch(opset)
        put_before(self.test, made.nodes, stem=str(self.results[0].name))
        for old, new in zip(self.results, found, strict=True):
            new.type, new.shape = old.type, old.shape
            old.replace_all_uses_with(new, replace_graph_outputs=True)
        for node in self.nodes[::-1]:
            if not any(out.uses() or out.is_graph_output() for out in node.outputs) and node.graph is not None:
                node.graph.remove(node, safe=True)

    def _branch(self, opset: int) -> list[ir.Value]:
        """The results of an ``If``: as they are where there may be NaN, and without a test where there is none."""
        wrong = op("IsNaN", op("ReduceSum", self.value, keepdims=0))
        arms = []
        for name, way in (("exact", _Copied(self).of), ("plain", _WithoutNaN(self.value).of)):
            with recording(opset) as made:
                outputs: list[ir.Value] = []
                for result in self.results:
                    value = way(result)
                    own = value is not None and value.producer() in made.nodes and value not in outputs
                    outputs.append(value if own and value is not None else op("Identity", value))
            for out, result in zip(outputs, self.results, strict=True):
                out.type, out.shape = result.type, result.shape
            arms.append(arm(made.nodes, outputs, like=self.test, name=name))
        dtypes = [result.dtype for result in self.results]
        values = ops("If", wrong, dtypes=dtypes, then_branch=arms[0], else_branch=arms[1])
        branch = values[0].producer()
        assert branch is not None
        branch.metadata_props.update(self.test.metadata_props)
        stand_for_none(branch)
        return list(values)


class _Copied:
    """The nodes of a cluster once more, recorded."""

    def __init__(self, cluster: _Cluster) -> None:
        self.own = {out for node in cluster.nodes for out in node.outputs}
        self.made: dict[ir.Value, ir.Value] = {}

    def of(self, value: ir.Value) -> ir.Value:
        """The copy of a value of the cluster; others are themselves."""
        if value not in self.own:
            return value
        if value not in self.made:
            node = value.producer()
            assert node is not None
            copies = _again(node, [self.of(each) if each is not None else None for each in node.inputs])
            self.made.update(zip(node.outputs, copies, strict=True))
        return self.made[value]


class _WithoutNaN:
    """What values of a cluster are if no element is NaN, recorded."""

    def __init__(self, x: ir.Value) -> None:
        self.x = x
        self.axes: set[int] = set()  # of the extremes that are looked for
        self.rows_only = True  # whether all of them give the first of a row that is all NaN
        self.made: dict[ir.Value, ir.Value] = {}

    def of(self, value: ir.Value) -> ir.Value | None:
        """The simple form; None if there is none."""
        if value in self.made:
            return self.made[value]
        node = value.producer()
        if value is self.x or node is None or ir.convenience.get_const_tensor(value) is not None:
            return value
        if node.op_type not in _PARTS or self._is_unset(value):
            return None
        found = self._form(node, value)
        if found is not None:
            self.made[value] = found
        return found

    def _form(self, node: ir.Node, value: ir.Value) -> ir.Value | None:
        kind = node.op_type
        if kind == "Where":
            return self._of_where(node, value)
        if kind == "TopK":
            return self._of_top(node, value)
        if kind in _EXTREMES or kind in _EXTREMES.values():
            return self._of_extreme(node, keep=None)
        if kind == "Squeeze" and constant_integers(node.inputs[1]) is not None:
            inner = self._of_squeezed(node)
            if inner is not None:
                return inner
        if kind == "GatherElements":
            return self._of_gathered(node, keep=None)
        if kind == "Min":
            return None
        operands = [self.of(each) if each is not None else None for each in node.inputs]
        if any(new is None and old is not None for old, new in zip(node.inputs, operands, strict=True)):
            return None
        return _again(node, operands)[0]

    def _is_unset(self, value: ir.Value) -> bool:
        """Whether a value is a flag for NaN, or a number made of such flags."""
        node = value.producer()
        if node is None or not is_onnx(node) or value is self.x:
            return False
        if node.op_type == "IsNaN":
            return node.inputs[0] is not None and self._is_wide(node.inputs[0])
        operand = node.inputs[0] if node.op_type in _KEEPING else None
        return operand is not None and self._is_unset(operand)

    def _is_wide(self, value: ir.Value) -> bool:
        """Whether a value is the one that is looked at, perhaps with more digits."""
        node = _made_by(value, "Cast")
        return value is self.x or (
            node is not None and node.inputs[0] is self.x and self.x.dtype == FLOAT and value.dtype == DOUBLE
        )

    def _of_where(self, node: ir.Node, value: ir.Value) -> ir.Value | None:
        test, instead, other = node.inputs
        if test is None or instead is None or other is None or not self._is_unset(test):
            return None
        found = self.of(other)
        shaped = same_shape(other, value) or self._reduced_alike(test, other)
        if found is None or not shaped:
            return None
        kind = found.producer()
        number = ir.convenience.get_const_tensor(instead)
        is_nan = number is not None and number.size == 1 and bool(np.isnan(number.numpy()).all())
        place = kind is not None and kind.op_type in _EXTREMES
        extreme = kind is not None and kind.op_type in _EXTREMES.values()
        self.rows_only &= place or (extreme and is_nan)
        return found

    def _reduced_alike(self, test: ir.Value, other: ir.Value) -> bool:
        """Whether a flag and an extreme are of the same rows, in the same shape."""
        one, two = test.producer(), other.producer()
        if one is not None and one.op_type == "Cast":
            one = one.inputs[0].producer() if one.inputs[0] is not None else None
        if one is None or two is None or two.inputs[0] is not self.x or not two.op_type.startswith(("Arg", "Reduce")):
            return False
        return one.op_type == "ReduceMax" and self._axes(one) == self._axes(two) and _keeps(one) == _keeps(two)

    def _axes(self, node: ir.Node) -> list[int] | None:
        shape = self.x.shape
        if shape is None:
            return None
        if node.op_type in _EXTREMES:
            axes: list[int] | None = [node.attributes["axis"].as_int() if "axis" in node.attributes else 0]
        elif len(node.inputs) < 2 or node.inputs[1] is None:
            axes = list(range(len(shape)))
        else:
            axes = constant_integers(node.inputs[1])
        return None if axes is None else sorted(axis % len(shape) for axis in axes)

    def _of_extreme(self, node: ir.Node, keep: bool | None) -> ir.Value | None:
        """An extreme of the value itself, with other dimensions if need be."""
        axes = self._axes(node)
        if node.inputs[0] is not self.x or axes is None:
            return None
        self.axes.update(axes)
        self.rows_only &= len(axes) == 1
        return (_again(node, node.inputs) if keep is None else _again(node, node.inputs, keepdims=int(keep)))[0]

    def _of_squeezed(self, node: ir.Node) -> ir.Value | None:
        """An extreme, or where it is, whose dimension is dropped."""
        inner, axes = node.inputs[0], constant_integers(node.inputs[1])
        while inner is not None:
            made = inner.producer()
            if made is None or inner is self.x:
                return None
            if made.op_type in _EXTREMES and _keeps(made) and axes is not None and self.x.shape is not None:
                same = [axis % len(self.x.shape) for axis in axes] == self._axes(made)
                return self._of_extreme(made, keep=False) if same else None
            if made.op_type == "GatherElements":
                return self._of_gathered(made, keep=False, axes=axes)
            if made.op_type != "Where" or self.of(inner) is None:
                return None
            inner = made.inputs[2]
        return None

    def _of_gathered(self, node: ir.Node, keep: bool | None, axes: Sequence[int] | None = None) -> ir.Value | None:
        """The values at the places of extremes."""
        data, places = node.inputs
        found = self.of(places) if data is self.x and places is not None else None
        made = found.producer() if found is not None else None
        if found is None or made is None or self.x.shape is None:
            return None
        dims = len(self.x.shape)
        axis = (node.attributes["axis"].as_int() if "axis" in node.attributes else 0) % dims
        if made.op_type == "TopK":
            same = keep is None and found is made.outputs[1] and _axis_of(made, dims) == axis
            return made.outputs[0] if same else None
        wanted = axes is None or [each % dims for each in axes] == [axis]
        if made.op_type not in _EXTREMES or self._axes(made) != [axis] or not _keeps(made) or not wanted:
            return None
        if never_negative_zero(self.x):
            return op(_EXTREMES[made.op_type], self.x, [axis], keepdims=int(keep is None))
        return _again(node, [self.x, found])[0] if keep is None else None

    def _of_top(self, node: ir.Node, value: ir.Value) -> ir.Value | None:
        """``TopK`` of what has a number of its own for NaN: without NaN the order is that of the value."""
        key = _made_by(node.inputs[0], "Where")
        least = _made_by(key.inputs[2], "Min") if key is not None else None
        wide = least.inputs[0] if least is not None else None
        count = node.inputs[1]
        if key is None or wide is None or key.inputs[0] is None or count is None or value is node.outputs[0]:
            return None
        if not self._is_wide(wide) or not self._is_unset(key.inputs[0]):
            return None
        if count is not self.x and ir.convenience.get_const_tensor(count) is None:
            return None
        self.rows_only = False
        assert self.x.shape is not None
        self.axes.add(_axis_of(node, len(self.x.shape)))
        return _again(node, [self.x, count], dtypes=[self.x.dtype, ir.DataType.INT64])[1]


def _forget(nodes: Sequence[ir.Node]) -> None:
    """Let nodes that were only tried read nothing any more."""
    for node in nodes:
        for place in range(len(node.inputs)):
            node.replace_input_with(place, None)


def _made_by(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == kind and is_onnx(node) else None


def _keeps(node: ir.Node) -> bool:
    return "keepdims" not in node.attributes or bool(node.attributes["keepdims"].as_int())


def _axis_of(node: ir.Node, dims: int) -> int:
    return (node.attributes["axis"].as_int() if "axis" in node.attributes else -1) % dims


def _is_large(value: ir.Value) -> bool:
    """Whether there are many elements; a size that is not known counts as a small batch."""
    sizes = [size if isinstance(size, int) else 4 for size in value.shape or ()]
    return math.prod(sizes) >= WORTH_A_BRANCH


def _again(
    node: ir.Node,
    inputs: Sequence[ir.Value | None],
    dtypes: Sequence[ir.DataType | None] | None = None,
    **changed: object,
) -> Sequence[ir.Value]:
    """The operator on other operands, recorded."""
    attributes = {name: attribute.value for name, attribute in node.attributes.items()} | changed
    made = ops(node.op_type, *inputs, dtypes=dtypes or [out.dtype for out in node.outputs], **attributes)
    for new, old in zip(made, node.outputs, strict=True):
        new.shape = None if changed else old.shape
    return made
