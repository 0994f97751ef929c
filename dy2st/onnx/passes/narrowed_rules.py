"""Rules of onnxscript that hold for fewer graphs than they are applied to, each with the condition that it lacks."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript.optimizer import _constant_folding
from onnxscript.rewriter import MatchResult, RewriteRuleClassBase
from onnxscript.rewriter.rules.common import (
    _basic_rules,
    _fuse_batchnorm,
    _materialize_reshape_shape,
    _redundant_scatter_nd,
)

from dy2st.onnx.passes.graph_facts import constant_integers

Sizes = tuple[int, ...]


class FoldConstants(_constant_folding.FoldConstantsPass):
    """Constant folding that follows only what is a list of sizes.

    onnxscript's takes the parts of a shape for the rows of what it was reshaped to, and every sum of sizes and numbers
    for one that is not negative.
    """

    def _reset(self) -> None:
        super()._reset()
        self._state = _Following()  # type: ignore[no-untyped-call]


class _Following(_constant_folding.OptimizerState):
    """What is known of values: of a list of sizes these, which are not negative, unless they are numbers."""

    def set_sym_value(self, value: ir.Value, sym_value: Any) -> None:
        if not isinstance(sym_value, ir.Shape) or self._is_list(value, sym_value):
            super().set_sym_value(value, sym_value)

    def _is_list(self, value: ir.Value, sizes: ir.Shape) -> bool:
        if value.shape is None or len(value.shape) > 1:
            return False
        node = value.producer()
        if sizes.is_static() or node is None or node.op_type != "Add":
            return True
        addends = [self.get_shape_value(addend) for addend in node.inputs]
        return not any(isinstance(d, int) and d < 0 for addend in addends if addend is not None for d in addend)


class ProductOfReshaped(RewriteRuleClassBase):
    """A product of two reshaped tensors, reshaped, is that of the tensors where the same rows meet the same columns.

    onnxscript's rule compares the shape of the result alone.
    """

    def pattern(self, op: Any, a: Any, b: Any, shape_a: Any, shape_b: Any, shape: Any) -> Any:
        """Both are reshaped."""
        first = op.Reshape(a, shape_a, _outputs=["first"])
        second = op.Reshape(b, shape_b, _outputs=["second"])
        return op.Reshape(op.MatMul(first, second), shape, _outputs=["result"])

    def check(self, _context: Any, a: ir.Value, b: ir.Value, **values: ir.Value) -> MatchResult:  # type: ignore[override]
        """All sizes are numbers, and the product is the same."""
        found = MatchResult()
        shapes = [_sizes(value) for value in (a, b, values["first"], values.get("second", b), values["result"])]
        known = [shape for shape in shapes if shape is not None]
        if len(known) < len(shapes) or not _is_same_product(*known):
            return found.fail("The product of the tensors is another, or not known to be the same.")
        return found

    def rewrite(self, op: Any, a: ir.Value, b: ir.Value, **_: ir.Value) -> Any:
        """Multiply the tensors."""
        return op.MatMul(a, b)


class ProductOfOneReshaped(ProductOfReshaped):
    """The same where the first tensor alone is reshaped."""

    def pattern(self, op: Any, a: Any, b: Any, shape_a: Any, shape: Any) -> Any:  # type: ignore[override]
        """The second is multiplied as it is."""
        return op.Reshape(op.MatMul(op.Reshape(a, shape_a, _outputs=["first"]), b), shape, _outputs=["result"])


def _sizes(value: ir.Value) -> Sizes | None:
    shape = value.shape
    return tuple(int(d) for d in shape if isinstance(d, int)) if shape is not None and shape.is_static() else None


def _is_same_product(a: Sizes, b: Sizes, first: Sizes, second: Sizes, result: Sizes) -> bool:
    """Whether ``(a as first) @ (b as second)`` as ``result`` is ``a @ b``."""
    if not a or not b or len(first) < 2 or len(second) < 2:
        return False
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    batches = _broadcast(left[:-2], right[:-2])
    if batches is None or left[-1] != right[-2] or right[-2:] != second[-2:]:
        return False
    if (*batches, *(left[-2:-1] if len(a) > 1 else ()), *(right[-1:] if len(b) > 1 else ())) != result:
        return False
    if math.prod(right[:-2]) == 1 == math.prod(second[:-2]):  # one matrix, which all rows are multiplied by
        return left[-1] == first[-1]
    paired = left[:-2] == right[:-2] and first[:-2] == second[:-2]
    return left[-2:] == first[-2:] and (paired or math.prod(left[:-2]) == 1 == math.prod(first[:-2]))


def _broadcast(one: Sequence[int], other: Sequence[int]) -> Sizes | None:
    pairs = list(itertools.zip_longest(reversed(one), reversed(other), fillvalue=1))
    if any(1 not in pair and len(set(pair)) > 1 for pair in pairs):
        return None
    return tuple(first if second == 1 else second for first, second in reversed(pairs))


class KnownShape(_materialize_reshape_shape.MaterializeReshapeShape):
    """A shape that is known but for one size, which -1 stands for, if what that is found to be is the size.

    If another size is zero, none is found; and a reshape to a size of which the number of elements is not known to be
    right fails where eager raises.
    """

    def check(self, context: Any, data: ir.Value, shape: ir.Value) -> MatchResult:
        """Look at the number of elements, too."""
        found = super().check(context, data, shape)
        if not found or -1 not in self._new_dims:
            return found
        if 0 in self._new_dims:
            return found.fail("A size cannot be found from the others, of which one is zero.")
        given, made = data.shape, context.output_values[0].shape
        if _elements(given) is None or _elements(given) not in (_elements(made), _elements(made, exact=False)):
            return found.fail("The size that is found may be another.")
        return found


class ReshapeReshape(_basic_rules.ReshapeReshape):
    """A reshape of a reshape, if the first never fails or fails where the second does."""

    def check(self, context: Any, x: ir.Value, shape_ignored: ir.Value, shape: ir.Value) -> MatchResult:
        """Look at what the first asks for, too."""
        found = super().check(context, x, shape_ignored, shape)
        if not found:
            return found
        elements = _elements(x.shape)
        if elements is not None and elements == _elements(context.root.inputs[0].shape):
            return found
        asked, wanted = constant_integers(shape_ignored), [int(d) for d in self._new_shape]
        if asked is None or 0 in asked or x.shape is None:
            return found.fail("The first may fail.")
        known = math.prod(d for d in x.shape if isinstance(d, int))
        factor = math.prod(d for d in asked if d > 0)
        rest = math.prod(d for d in wanted if d > 0)
        # An open size is found if the others divide the number of elements.
        never = -1 in asked and known % factor == 0
        if never or (min(wanted, default=1) > 0) or (-1 in asked and 0 not in wanted and rest % factor == 0):
            return found
        return found.fail("The first may fail where the second does not.")


_PRODUCT = re.compile(r"\w+(\*\w+)*")
_QUOTIENT = re.compile(r"\(?\(?(\w+(?:\*\w+)*)\)?//(\d+)\)?")


def _elements(shape: ir.Shape | None, *, exact: bool = True) -> tuple[Fraction, Counter[str]] | None:
    """The number of elements as a number and the names that it is multiplied by, or None where a size has none.

    Args:
        shape: a size is a number, a name, a product of these, or some other term, which is taken for a name.
        exact: without it, ``n//2`` is half of ``n``, which it is if ``n`` can be divided.
    """
    if shape is None:
        return None
    number, names = Fraction(1), Counter[str]()
    for size in shape:
        text = str(size if isinstance(size, int) else size.value)
        if text == "None":
            return None
        quotient = None if exact else _QUOTIENT.fullmatch(text)
        if quotient is not None:
            text = quotient[1]
            number /= int(quotient[2])
        for factor in text.split("*") if _PRODUCT.fullmatch(text) else [text]:
            if factor.isdigit():
                number *= int(factor)
            else:
                names[factor] += 1
    return number, names


class _NormOfOwnWeights(_fuse_batchnorm._FuseBatchNormBase):
    """A norm that goes into the weights before it, if these are nothing else and the norm is one of given statistics.

    The rule gives new weights the name of the old ones, which the graph's outputs keep, and a new bias a name that
    something else may have; in half precision it loses what is added to the variance.
    """

    def check(self, context: Any, x: Any, inbound_out: ir.Value, batchnorm_out: ir.Value) -> MatchResult:
        """Look at the outputs, the dtypes and the mode, too."""
        found = super().check(context, x, inbound_out, batchnorm_out)
        inbound, norm = _node(inbound_out), _node(batchnorm_out)
        if not found:
            return found
        if norm.attributes.get_int("training_mode", 0):
            return found.fail("The statistics are those of the batch.")
        own = [value for value in inbound.inputs[1:] if value is not None]
        if any(value.is_graph_output() for value in own):
            return found.fail("The weights are an output.")
        if len({value.dtype for value in (*own, *norm.inputs[1:]) if value is not None}) > 1:
            return found.fail("The dtypes differ.")
        return found

    def rewrite(self, op: Any, x: ir.Value, inbound_out: ir.Value, batchnorm_out: ir.Value) -> Any:
        """Compute the weights in doubles, and name a new bias by the result."""
        inbound, norm = _node(inbound_out), _node(batchnorm_out)
        own = [value for value in inbound.inputs[1:] if value is not None]
        weights, *biases = (_array(value) for value in own)
        gamma, beta, mean, var = (_array(value) for value in norm.inputs[1:])
        attributes = dict(inbound.attributes)
        scaled = attributes.pop("beta", None)
        factor = gamma / np.sqrt(var + norm.attributes.get_float("epsilon", 1e-5))
        bias = sum(biases) * (scaled.as_float() if scaled is not None else 1.0)
        made = self._scale_weights(weights, factor, inbound.attributes), (bias - mean) * factor + beta
        given = own[0].const_value
        assert given is not None
        with np.errstate(over="ignore"):
            rounded = [array.astype(given.numpy().dtype) for array in made]
        if not all(np.isfinite(array.astype(np.float64)).all() for array in rounded):
            return None
        names = [*(value.name for value in own), f"{batchnorm_out.name}/bias"]
        operands = [op.initializer(ir.tensor(array), name=name) for array, name in zip(rounded, names, strict=False)]
        return op.op(inbound.op_type, x, *operands, **attributes)


def _node(value: ir.Value) -> ir.Node:
    node = value.producer()
    assert node is not None
    return node


def _array(value: ir.Value | None) -> np.ndarray:
    tensor = value.const_value if value is not None else None
    assert tensor is not None
    return tensor.numpy().astype(np.float64)


class _NormIntoConv(_NormOfOwnWeights, _fuse_batchnorm.FuseBatchNormIntoConv): ...


class _NormIntoConvTranspose(_NormOfOwnWeights, _fuse_batchnorm.FuseBatchNormIntoConvTranspose): ...


class _NormIntoGemm(_NormOfOwnWeights, _fuse_batchnorm.FuseBatchNormIntoGemm): ...


class RowsThatAreAllWritten(_redundant_scatter_nd.ScatterAllStatic):
    """Rows that are all written are what is written, if nothing is added to them."""

    def pattern(self, op: Any, data: Any, indices: Any, updates: Any) -> Any:
        """A ``ScatterND`` without a reduction, which onnxscript's own rule takes for one, too."""
        return op.ScatterND(data, indices, updates, _allow_other_attributes=False)


RULES = tuple(
    each.rule()  # type: ignore[no-untyped-call]
    for each in (
        ProductOfReshaped,
        ProductOfOneReshaped,
        KnownShape,
        ReshapeReshape,
        _NormIntoConv,
        _NormIntoConvTranspose,
        _NormIntoGemm,
        RowsThatAreAllWritten,
    )
)
