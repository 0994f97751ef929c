"""Rules of onnxscript that hold for fewer graphs than they are applied to, each with the condition that it lacks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript.optimizer import _constant_folding
from onnxscript.rewriter import MatchResult, RewriteRuleClassBase
from onnxscript.rewriter.rules.common import _fuse_batchnorm, _materialize_reshape_shape

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
    """A shape that is known but for one size, which -1 stands for: that is found from the others, if none is zero."""

    def check(self, context: Any, data: ir.Value, shape: ir.Value) -> MatchResult:
        """Look for a size of zero beside -1, too."""
        found = super().check(context, data, shape)
        if found and {0, -1} <= set(self._new_dims):
            return found.fail("A size cannot be found from the others, of which one is zero.")
        return found


class _NormOfOwnWeights(_fuse_batchnorm._FuseBatchNormBase):
    """A norm that goes into the weights before it, if these are nothing else and the norm is one of given statistics.

    The rule gives new weights the name of the old ones, which the graph's outputs keep, and a new bias a name that
    something else may have.
    """

    def check(self, context: Any, x: Any, inbound_out: ir.Value, batchnorm_out: ir.Value) -> MatchResult:
        """Look at the outputs, the dtypes and the mode, too."""
        found = super().check(context, x, inbound_out, batchnorm_out)
        inbound, norm = inbound_out.producer(), batchnorm_out.producer()
        if not found or inbound is None or norm is None:
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
        """Name a new bias by the result."""
        made = super().rewrite(op, x, inbound_out, batchnorm_out)
        inbound = inbound_out.producer()
        if inbound is not None and len(inbound.inputs) < 3:
            made.producer().inputs[2].name = f"{batchnorm_out.name}/bias"
        return made


class _NormIntoConv(_NormOfOwnWeights, _fuse_batchnorm.FuseBatchNormIntoConv): ...


class _NormIntoConvTranspose(_NormOfOwnWeights, _fuse_batchnorm.FuseBatchNormIntoConvTranspose): ...


class _NormIntoGemm(_NormOfOwnWeights, _fuse_batchnorm.FuseBatchNormIntoGemm): ...


RULES = tuple(
    each.rule()  # type: ignore[no-untyped-call]
    for each in (
        ProductOfReshaped,
        ProductOfOneReshaped,
        KnownShape,
        _NormIntoConv,
        _NormIntoConvTranspose,
        _NormIntoGemm,
    )
)
