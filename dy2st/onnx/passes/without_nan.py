"""What values that wait for a test of NaN are if no element is NaN: the forms that need no test.

``WithoutNaN(x).of(value)`` records what ``value``, which is computed from ``x`` with a test, is without one::

    place = ArgMax<axis = 1, keepdims = 1>(x)
    first = ArgMax<axis = 1, keepdims = 1>(Cast(IsNaN(x)))
    found = Where(ReduceMax(IsNaN(x)), first, place)        # of(found): ArgMax<axis = 1, keepdims = 1>(x)

The value at the place of an extreme is the extreme itself, unless that is a zero: there may be one of each sign.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, op, ops
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_shape
from dy2st.onnx.passes.number_facts import never_negative_zero

# What a test, and the results that wait for it, are made of.
PARTS = frozenset(
    "ArgMax ArgMin Cast GatherElements IsNaN Min ReduceMax ReduceMin Squeeze TopK Unsqueeze Where".split()
)
_EXTREMES = {"ArgMax": "ReduceMax", "ArgMin": "ReduceMin"}
# A flag that is not set stays one in these.
_KEEPING = frozenset(("Cast", "ReduceMax", "ReduceMin", "Squeeze", "Unsqueeze"))


class WithoutNaN:
    """What values of a cluster are if no element is NaN, recorded.

    With a ``key``, they are right for NaN, too: it has the order of the elements, NaN in its place among them. Then
    only places have forms, and what is taken from there.
    """

    def __init__(self, x: ir.Value, key: ir.Value | None = None) -> None:
        self.x = x
        self.key = key or x
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
        if node.op_type not in PARTS or self._is_unset(value):
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
        if kind == "Squeeze" and len(node.inputs) > 1 and constant_integers(node.inputs[1]) is not None:
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
        return again(node, operands)[0]

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
        node = made_by(value, "Cast")
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
        if self.key is not self.x and not (self._tells_rows(test, other) and self._is_first_nan(instead, kind)):
            return None
        number = ir.convenience.get_const_tensor(instead)
        is_nan = number is not None and number.size == 1 and bool(np.isnan(number.numpy()).all())
        place = kind is not None and kind.op_type in _EXTREMES
        extreme = kind is not None and kind.op_type in _EXTREMES.values()
        self.rows_only &= place or (extreme and is_nan)
        return found

    def _tells_rows(self, test: ir.Value, extreme: ir.Value) -> bool:
        """Whether a flag says of each row of an extreme whether there is NaN in it."""
        wide = made_by(test, "Cast")
        some = made_by(wide.inputs[0] if wide is not None else test, "ReduceMax")
        flags = some.inputs[0] if some is not None else None
        narrow = made_by(flags, "Cast")
        asked = made_by(narrow.inputs[0] if narrow is not None else flags, "IsNaN")
        return asked is not None and self._reduced_alike(test, extreme)

    def _is_first_nan(self, value: ir.Value, extreme: ir.Node | None) -> bool:
        """Whether a value is the place of the first NaN, along the dimension of an extreme, in the same shape."""
        node = made_by(value, "ArgMax")
        flags = made_by(node.inputs[0], "Cast") if node is not None else None
        if node is None or flags is None or extreme is None or not self._is_unset(flags.outputs[0]):
            return False
        test, axis = made_by(flags.inputs[0], "IsNaN"), node.attributes.get_int("axis", 0)
        same = extreme.attributes.get_int("axis", 0) == axis and _keeps(extreme) == _keeps(node)
        last = "select_last_index" in node.attributes and bool(node.attributes["select_last_index"].as_int())
        return test is not None and extreme.op_type in _EXTREMES and same and not last

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
        if self.key is not self.x and node.op_type not in _EXTREMES:
            return None
        self.axes.update(axes)
        self.rows_only &= len(axes) == 1
        inputs = [self.key, *node.inputs[1:]]
        return (again(node, inputs) if keep is None else again(node, inputs, keepdims=int(keep)))[0]

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
        if self.key is not self.x:
            return again(node, [self.x, found])[0] if keep is None else None
        if made.op_type == "TopK":
            same = keep is None and found is made.outputs[1] and _axis_of(made, dims) == axis
            return made.outputs[0] if same else None
        wanted = axes is None or [each % dims for each in axes] == [axis]
        if made.op_type not in _EXTREMES or self._axes(made) != [axis] or not _keeps(made) or not wanted:
            return None
        if never_negative_zero(self.x):
            return op(_EXTREMES[made.op_type], self.x, [axis], keepdims=int(keep is None))
        return again(node, [self.x, found])[0] if keep is None else None

    def _of_top(self, node: ir.Node, value: ir.Value) -> ir.Value | None:
        """``TopK`` of what has a number of its own for NaN: without NaN the order is that of the value."""
        key = made_by(node.inputs[0], "Where")
        least = made_by(key.inputs[2], "Min") if key is not None else None
        wide = least.inputs[0] if least is not None else None
        count = node.inputs[1]
        if (
            key is None
            or least is None
            or wide is None
            or key.inputs[0] is None
            or count is None
            or value is node.outputs[0]
        ):
            return None
        if not self._is_wide(wide) or not self._is_unset(key.inputs[0]):
            return None
        limits = [ir.convenience.get_const_tensor(each) if each else None for each in (key.inputs[1], least.inputs[1])]
        told = [each.numpy().item() if each is not None and each.size == 1 else None for each in limits]
        if self.key is not self.x and told != [np.inf, np.finfo(np.float64).max]:
            return None
        if count is not self.x and ir.convenience.get_const_tensor(count) is None:
            return None
        self.rows_only = False
        assert self.x.shape is not None
        self.axes.add(_axis_of(node, len(self.x.shape)))
        return again(node, [self.key, count], dtypes=[self.x.dtype, ir.DataType.INT64])[1]


def made_by(value: ir.Value | None, kind: str) -> ir.Node | None:
    """The node that gives a value, if it is an operator of a kind."""
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == kind and is_onnx(node) else None


def _keeps(node: ir.Node) -> bool:
    return "keepdims" not in node.attributes or bool(node.attributes["keepdims"].as_int())


def _axis_of(node: ir.Node, dims: int) -> int:
    return (node.attributes["axis"].as_int() if "axis" in node.attributes else -1) % dims


def again(
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
