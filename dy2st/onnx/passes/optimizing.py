"""Constant folding and tidying of a written graph, by rules that leave every value as it is.

onnxscript's own list of rules also drops an addend or a factor that is *nearly* 0 or 1 (``x + 1e-9`` becomes ``x``),
turns ``Min`` and ``Max`` into ``Clip``, which loses NaN, splits an odd size in halves, writes a ``Flatten`` of no
elements as a ``Reshape`` that fails, and computes the padding of ``auto_pad`` as if there were no dilations. Here are
the others, and the first rule in a form that looks at the exact value.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript import rewriter
from onnxscript.optimizer import _constant_folding
from onnxscript.rewriter.rules.common import (
    _basic_rules,
    _collapse_slices,
    _fuse_pad_into_conv,
    _redundant_scatter_nd,
    _remove_optional_bias,
)

from dy2st.onnx.building import FLOATS
from dy2st.onnx.passes.graph_facts import constant_integers
from dy2st.onnx.passes.narrowed_rules import RULES, FoldConstants
from dy2st.onnx.passes.repeated_nodes import compute_once

_RULES = (
    *RULES,
    *_collapse_slices.rules,
    _basic_rules.no_op_cast_rule,
    _basic_rules.no_op_expand_rule,
    _basic_rules.no_op_transpose_rule,
    _basic_rules.transpose_transpose_rule,
    _basic_rules.unsqueeze_unsqueeze_rule,
    _basic_rules.squeeze_reshape_1d_rule,
    _redundant_scatter_nd.no_op_dynamic_scatter_nd_rule,
    _fuse_pad_into_conv.fuse_pad_into_conv_rule,
    _fuse_pad_into_conv.fuse_pad_into_conv_integer_rule,
    *_remove_optional_bias.rules,
)

# Operand number and value with which an operator gives its other operand, bit for bit. (-0.0 + 0.0 is 0.0.)
_NEUTRAL: dict[str, tuple[tuple[int, float], ...]] = {
    "Mul": ((0, 1), (1, 1)),
    "Div": ((1, 1),),
    "Sub": ((1, 0),),
}

# What is folded: operators of which ONNX's reference implementation is one function of numpy. Others are left to
# onnxruntime: the reference's ``Resize`` with ``align_corners``, for one, computes something else, as does its
# ``GatherElements`` along more than 64 rows.
_FOLDED = frozenset(
    "Abs Add And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Concat ConstantOfShape Cos Div Equal "
    "Exp Expand EyeLike Flatten Floor Gather GatherND Greater GreaterOrEqual Identity IsInf IsNaN Less "
    "LessOrEqual Log Max Min Mod Mul Neg Not Or Pow Range Reciprocal ReduceMax ReduceMin ReduceProd ReduceSum Reshape "
    "Round Shape Sign Sin Size Slice Split Sqrt Squeeze Sub Tile Transpose Trilu Unsqueeze Where Xor".split()
)

# Kinds of numbers, of which a wider type has all that a narrower has.
_KINDS: tuple[Callable[[ir.DataType], bool], ...] = (
    lambda kind: kind in FLOATS,
    lambda kind: kind.is_integer() and kind.is_signed(),
    lambda kind: kind.is_integer() and not kind.is_signed(),
)


def _is_folded(node: ir.Node) -> bool | None:
    """None leaves it to the limits of size."""
    return None if node.op_type in _FOLDED else False


def inline(model: ir.Model) -> None:
    """Put the nodes of functions in the place of their calls."""
    passes.InlinePass()(model)


class RemoveNeutralOperands(ir.passes.InPlacePass):
    """``x * 1``, ``x / 1`` and ``x - 0`` are ``x``; for integers ``x + 0`` too; so is ``x`` as a wider type and back.

    So is a vector that is made one.

    onnxruntime 1.31 takes the two casts out of a graph without looking whether one of its branches or loops reads them.
    A truth value or an integer that becomes a wider integer on its way to another type becomes that at once.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Remove them, subgraphs included."""
        every = list(ir.traversal.RecursiveGraphIterator(model.graph))
        direct = [(node, source) for node in every if (source := _before_widening(node)) is not None]
        for node, source in direct:
            node.replace_input_with(0, source)
        found = [node for node in every if _neutral(node) is not None]
        for node in found:
            kept = _neutral(node)
            graph = node.graph
            assert graph is not None
            made = ir.Node("", "Identity", [kept], version=node.version)
            ir.convenience.replace_nodes_and_values(graph, node, [node], [made], node.outputs, made.outputs)
        return ir.passes.PassResult(model, modified=bool(found or direct))


def _neutral(node: ir.Node) -> ir.Value | None:
    """The operand that a node gives unchanged, or None."""
    if node.op_type == "Cast":
        return _widened(node)
    if node.op_type == "Reshape":
        vector = node.inputs[0]
        is_one = vector is not None and vector.shape is not None and len(vector.shape) == 1
        return vector if is_one and constant_integers(node.inputs[1]) == [-1] else None
    cases = _NEUTRAL.get(node.op_type, ())
    if node.op_type == "Add" and node.outputs[0].dtype is not None and node.outputs[0].dtype.is_integer():
        cases = ((0, 0), (1, 0))
    for index, neutral in cases:
        other = node.inputs[1 - index]
        number = node.inputs[index]
        if number is None or other is None or other.shape is None:
            continue
        tensor = ir.convenience.get_const_tensor(number)
        if tensor is None or len(tensor.shape):
            continue
        value = tensor.numpy().item()
        if value == neutral and str(value)[0] != "-":
            return other
    return None


def _widened(node: ir.Node) -> ir.Value | None:
    """What a cast gives back, of which its operand is a cast to a wider type of the same kind."""
    wide = node.inputs[0]
    before = wide.producer() if wide is not None else None
    value = before.inputs[0] if before is not None and before.op_type == "Cast" else None
    narrow, wider = (each.dtype if each is not None else None for each in (value, wide))
    if narrow is None or wider is None or narrow != ir.DataType(node.attributes["to"].as_int()):
        return None
    alike = any(is_one(narrow) and is_one(wider) for is_one in _KINDS)
    return value if alike and narrow.bitwidth < wider.bitwidth else None


def _before_widening(node: ir.Node) -> ir.Value | None:
    """What a cast may be given in place of its operand, a cast that loses nothing of a truth value or an integer."""
    wide = node.inputs[0] if node.op_type == "Cast" else None
    before = wide.producer() if wide is not None else None
    value = before.inputs[0] if before is not None and before.op_type == "Cast" else None
    narrow, wider = (each.dtype if each is not None else None for each in (value, wide))
    target = ir.DataType(node.attributes["to"].as_int()) if node.op_type == "Cast" else ir.DataType.UNDEFINED
    if value is None or narrow is None or wider is None or not (target in FLOATS or target.is_integer()):
        return None
    if narrow == ir.DataType.BOOL:
        return value if wider in FLOATS or wider.is_integer() else None
    alike = any(is_one(narrow) and is_one(wider) for is_one in _KINDS[1:])
    return value if alike and narrow.bitwidth < wider.bitwidth else None


def optimize(model: ir.Model) -> None:
    """Fold constants and remove what does nothing, in a model without functions."""
    ir.passes.Sequential(
        ir.passes.PassManager(
            [
                FoldConstants(
                    shape_inference=True,
                    input_size_limit=_constant_folding.DEFAULT_CONSTANT_FOLD_INPUT_SIZE_LIMIT,
                    output_size_limit=_constant_folding.DEFAULT_CONSTANT_FOLD_OUTPUT_SIZE_LIMIT,
                    should_fold=_is_folded,
                ),
                RemoveNeutralOperands(),
                rewriter.RewritePass(_RULES),
                passes.RemoveUnusedNodesPass(),
                passes.RemoveUnusedFunctionsPass(),  # type: ignore[no-untyped-call]
                passes.RemoveUnusedOpsetsPass(),
            ],
            steps=2,
            early_stop=True,
        ),
        passes.RemoveUnusedNodesPass(),
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
        passes.DeduplicateInitializersPass(),
    )(model)
    # The pass of onnx_ir looks at no subgraphs, and fails at a node that has a type as an attribute.
    compute_once(model)
    ir.passes.Sequential(passes.OutputFixPass(), passes.NameFixPass())(model)
