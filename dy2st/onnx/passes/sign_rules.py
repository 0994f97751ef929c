"""How the signs of singular vectors and eigenvectors go through ONNX's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import onnx_ir as ir

from dy2st.onnx.passes.sign_facts import (
    NOTHING,
    WHOLE,
    Facts,
    IndefiniteError,
    Sign,
    Weight,
    aligned,
    behind,
    following,
    integers,
    literal,
    rank_of,
    stays,
    together,
)
from dy2st.onnx.passes.sign_places import PLACES

# What has no sign whatever its argument has.
_BLIND = frozenset(("IsNaN", "IsInf", "Shape", "Size"))
_ODD = frozenset("Identity Neg Sign Tanh Sin Tan Asin Atan Sinh Asinh Erf".split())
_FUNCTIONS = _ODD | frozenset("Abs Sqrt Exp Log Cos Reciprocal Relu Sigmoid Softplus Not Ceil Floor Round Cast".split())
_OF_ZERO_ZERO = _ODD | {"Abs", "Sqrt", "Relu", "Cast", "Ceil", "Floor", "Round"}
_JOINING = frozenset("Add Sub Max Min Pow Where Equal Less LessOrEqual Greater GreaterOrEqual And Or Clip Mod".split())
_FLOATS = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16))


class Cancelled(NamedTuple):
    """The signs of a spectrum's vectors have cancelled out at a node.

    ``apart`` where vectors of equal values are told apart; ``weights`` are what follows the spectrum and has weighted
    the vectors.
    """

    spectrum: int
    node: ir.Node
    apart: bool
    weights: frozenset[Weight]


class Rules:
    """What is known of the values of a graph, and where signs have cancelled out."""

    def __init__(self) -> None:
        self.known: dict[ir.Value, Facts] = {}
        self.cancelled: list[Cancelled] = []

    def of(self, value: ir.Value | None) -> Facts:
        """What is known of a value."""
        return NOTHING if value is None else self.known.get(value, NOTHING)

    def result(self, node: ir.Node) -> Facts:
        """What is known of the only result of a node.

        Raises:
            IndefiniteError: it depends on signs in a way that has no rule.
        """
        given = [self.of(each) for each in node.inputs]
        if not any(each.signs or each.follows or each.diagonal for each in given) and node.op_type not in _STARTING:
            return NOTHING
        rule: Callable[..., Facts] | None = _RULES.get(node.op_type)
        if node.op_type in _BLIND:
            return Facts(follows=given[0].follows) if node.op_type in ("IsNaN", "IsInf") else NOTHING
        if rule is not None:
            try:
                return rule(self, node, given)
            except IndefiniteError:
                if any(each.signs for each in given):
                    raise
                return NOTHING
        if any(each.signs for each in given):
            raise IndefiniteError
        return NOTHING

    def cancel(self, node: ir.Node, signs: Iterable[Sign], facts: Facts = NOTHING, *, apart: bool = False) -> None:
        """Signs have cancelled out; ``facts`` has the weights. ``apart`` where each vector stands for itself."""
        for dim, of in signs:
            number, *part = of
            told_apart = part[:1] != ["all"] and (apart or dim == WHOLE or bool(part) or number in facts.weighted)
            weights = frozenset(each for each in facts.weights if each.spectrum == number and part[:1] != ["all"])
            self.cancelled.append(Cancelled(number, node, told_apart, weights))

    def product(self, node: ir.Node, given: list[Facts]) -> Facts:
        """``Mul`` and ``Div``."""
        out, kind = node.outputs[0], node.op_type
        operands = [(value, aligned(facts, value, out)) for value, facts in _there(node, given)]
        a, b = (facts for _, facts in operands)
        both = a.signs & b.signs
        made = together([a, b])
        for (_, mine), weight in ((operands[0], operands[1]), (operands[1], operands[0])):
            for dim, of in mine.signs - both:
                if dim != WHOLE:
                    made = _weighted(made, of[0], dim, weight, out, inverse=kind == "Div")
        self.cancel(node, [sign for sign in both if sign[0] != WHOLE], apart=True)
        self.cancel(node, [sign for sign in both if sign[0] == WHOLE], made)
        multiplies = kind == "Mul"
        return replace(
            made,
            signs=a.signs ^ b.signs,
            follows=following(operands, out),
            diagonal=a.diagonal or (b.diagonal and multiplies),
            vanishes=a.vanishes or (b.vanishes and multiplies),
        )

    def function(self, node: ir.Node, given: list[Facts]) -> Facts:
        """A function of each element."""
        (facts, *_), kind = given, node.op_type
        of_zero = kind in _OF_ZERO_ZERO
        made = replace(facts, diagonal=facts.diagonal and of_zero, vanishes=facts.vanishes and of_zero)
        odd = kind in _ODD or (kind == "Cast" and node.outputs[0].dtype in _FLOATS)
        if not facts.signs or odd:
            return made
        if kind != "Abs":
            raise IndefiniteError
        return self._without(node, made)

    def _without(self, node: ir.Node, facts: Facts) -> Facts:
        """Each element's sign is lost."""
        self.cancel(node, facts.signs, apart=True)
        return replace(facts, signs=frozenset(), weighted=frozenset(), weights=frozenset())

    def joined(self, node: ir.Node, given: list[Facts]) -> Facts:
        """An elementwise function of several, all with the same signs."""
        out, kind = node.outputs[0], node.op_type
        operands = [(value, aligned(facts, value, out)) for value, facts in _there(node, given)]
        first = operands[0][1]
        if kind == "Pow" and first.signs:
            exponent = literal(node.inputs[1])
            if exponent is None or len(exponent) != 1 or exponent[0] % 1:
                raise IndefiniteError
            return first if exponent[0] % 2 else self._without(node, first)
        if kind == "Where":
            return _chosen(operands, out)
        signs = {facts.signs for _, facts in operands}
        if signs != {frozenset()} and (len(signs) > 1 or kind not in ("Add", "Sub")):
            raise IndefiniteError
        diagonal = kind in ("Add", "Sub", "And") and all(facts.diagonal for _, facts in operands)
        vanishes = kind in ("Add", "Sub", "Max", "Min", "Clip") and all(
            facts.vanishes or literal(value) == [0] for value, facts in operands
        )
        vanishes = vanishes or (kind == "Pow" and first.vanishes and (literal(node.inputs[1]) or [0])[0] > 0)
        made = together([facts for _, facts in operands])
        return replace(
            made,
            signs=first.signs,
            follows=following(operands, out),
            diagonal=diagonal or (kind == "Equal" and _is_identity(*node.inputs)),
            vanishes=vanishes,
        )

    def matrices(self, node: ir.Node, given: list[Facts]) -> Facts:
        """``MatMul``."""
        (x, y), (a, b) = node.inputs, given
        left, right, dims = rank_of(x), rank_of(y), rank_of(node.outputs[0])
        if left < 2 or right < 2:
            return self.product_of(node, given, *_as_equation(left, right))
        if a.diagonal and b.diagonal and not a.signs and not b.signs:
            return Facts(diagonal=True)
        assert x is not None
        assert y is not None
        one, other = (_shifted(facts, dims - rank) for facts, rank in ((a, left), (b, right)))
        inner = [{of for dim, of in signs if dim == end} for signs, end in ((one, dims - 1), (other, dims - 2))]
        made = together([a, b])
        # A diagonal matrix weights the vectors, and hands their signs on.
        for signs, own, (value, facts) in ((one, 0, (y, b)), (other, 1, (x, a))):
            if inner[own] and not inner[1 - own] and facts.diagonal and not facts.signs:
                for of in inner[own]:
                    made = _weighted(made, of[0], None, (value, facts), value)
                return replace(made, signs=signs)
        if inner[0] != inner[1]:
            raise IndefiniteError
        self.cancel(node, [(0, of) for of in inner[0]], made)
        outer = frozenset(sign for sign in one if sign[0] != dims - 1)
        return replace(made, signs=outer ^ frozenset(sign for sign in other if sign[0] != dims - 2))

    def einsum(self, node: ir.Node, given: list[Facts]) -> Facts:
        """``Einsum`` without an ellipsis."""
        equation = node.attributes["equation"].as_string().replace(" ", "")
        inputs, _, output = equation.partition("->")
        if "." in equation or "->" not in equation:
            raise IndefiniteError
        return self.product_of(node, given, inputs.split(","), output)

    def product_of(self, node: ir.Node, given: list[Facts], inputs: Sequence[str], output: str) -> Facts:
        """A sum of products, by the letters of an ``Einsum``."""
        left, met, made = set[Sign](), set[Sign](), together(given)
        for letters, facts in zip(inputs, given, strict=True):
            if len(set(letters)) != len(letters):
                raise IndefiniteError
            signs = {(WHOLE if dim == WHOLE else letters[dim], of) for dim, of in facts.signs}
            left, met = left ^ signs, met | signs
        for letter, of in met:
            for letters, value, facts in zip(inputs, node.inputs, given, strict=True):
                own = letters.index(letter) if letter != WHOLE and letter in letters else None
                if own is not None and value is not None and (own, of) not in facts.signs:
                    made = _weighted(made, of[0], own, (value, facts), value)
        if any(letter != WHOLE and letter not in output for letter, _ in left):
            raise IndefiniteError
        self.cancel(node, [sign for sign in met - left if sign[0] in output], apart=True)
        self.cancel(node, [sign for sign in met - left if sign[0] not in output], made)
        placed = {(WHOLE if letter == WHOLE else output.index(letter), of) for letter, of in left}
        return replace(made, signs=frozenset(placed))

    def determinant(self, node: ir.Node, given: list[Facts]) -> Facts:
        """``Det``: the product of the signs."""
        (facts,), dims = given, rank_of(node.inputs[0])
        signs: set[Sign] = set()
        for dim, of in facts.signs:
            if dim == WHOLE:
                raise IndefiniteError
            signs ^= {(WHOLE, (of[0], "all", *of[1:])) if dim >= dims - 2 else (dim, of)}
        return Facts(frozenset(signs))

    def reduced(self, node: ir.Node, given: list[Facts]) -> Facts:
        """Sums and lengths along dimensions."""
        value, facts = node.inputs[0], given[0]
        dims = rank_of(value)
        axes = {axis % dims for axis in integers(node.inputs[1])} if len(node.inputs) > 1 and node.inputs[1] else None
        axes = set(range(dims)) if axes is None else axes
        if node.op_type in ("ReduceL2", "ReduceSumSquare"):
            self.cancel(node, [sign for sign in facts.signs if sign[0] in axes], facts)
            self.cancel(node, [sign for sign in facts.signs if sign[0] not in axes], apart=True)
            return NOTHING
        keeps = node.attributes["keepdims"].as_int() if "keepdims" in node.attributes else 1
        kept = [dim for dim in range(dims) if dim not in axes or keeps]
        return facts.moved(lambda dim: None if dim in axes else kept.index(dim))


def _there(node: ir.Node, given: list[Facts]) -> list[tuple[ir.Value, Facts]]:
    return [(value, facts) for value, facts in zip(node.inputs, given, strict=True) if value is not None]


def _weighted(
    made: Facts, spectrum: int, dim: int | None, weight: tuple[ir.Value, Facts], out: ir.Value, *, inverse: bool = False
) -> Facts:
    """With a weight along ``dim`` of ``out`` more, or that of a diagonal matrix."""
    value, facts = weight
    along = {each for each, of in facts.follows if of == spectrum and dim in (None, each)}
    if along:
        shift = rank_of(out) - rank_of(value)
        found = Weight(spectrum, value, min(along) - shift, facts.vanishes)
        return made if inverse else replace(made, weights=made.weights | {found})
    if dim is not None and stays(value, facts, out, dim, spectrum):
        return made
    return replace(made, weighted=made.weighted | {spectrum})


def _chosen(operands: list[tuple[ir.Value, Facts]], out: ir.Value) -> Facts:
    """``Where``."""
    (test, cond), (one, then), (other, orelse) = operands
    if cond.signs or (cond.diagonal and then.signs):
        raise IndefiniteError
    if cond.diagonal and literal(other) == [0]:
        return replace(then, diagonal=True)
    if then.signs != orelse.signs:
        # What is zero or no number has any sign.
        found = [facts for value, facts in ((other, then), (one, orelse)) if _signless(value)]
        if not found:
            raise IndefiniteError
        return replace(found[0], follows=frozenset(), diagonal=False, vanishes=False)
    made = together([then, orelse])
    for dim, of in then.signs:
        if dim != WHOLE and not stays(test, cond, out, dim, of[0]):
            made = replace(made, weighted=made.weighted | {of[0]})
    return replace(
        made,
        signs=then.signs,
        follows=following(operands, out),
        diagonal=then.diagonal and orelse.diagonal,
        vanishes=all(facts.vanishes or literal(value) == [0] for value, facts in operands[1:]),
    )


def _signless(value: ir.Value) -> bool:
    found = literal(value)
    return found is not None and all(each == 0 or math.isnan(each) for each in found)


def _shifted(facts: Facts, by: int) -> frozenset[Sign]:
    return frozenset((dim if dim == WHOLE else dim + by, of) for dim, of in facts.signs)


def _as_equation(left: int, right: int) -> tuple[list[str], str]:
    """A product of matrices one of which is a vector."""
    front = "abcdefgh"[: max(left, right) - 1]
    if left == right == 1:
        return ["z", "z"], ""
    if left == 1:
        return ["z", f"{front[:-1]}z{front[-1]}"], front
    return [f"{front}z", "z"], front


def _is_identity(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether the equality of two numbers is that of row and column."""
    if one is None or other is None or one.shape is None or other.shape is None:
        return False
    across = {len(value.shape) > 1 and value.shape[-1] == 1 for value in (one, other) if value.shape is not None}
    sources = [behind(each, "Cast", "Identity", "Unsqueeze", "Reshape") for each in (one, other)]
    nodes = [None if source is None else source.producer() for source in sources]
    if across != {True, False} or any(node is None or node.op_type != "Range" for node in nodes):
        return False
    return all([literal(node.inputs[0]), literal(node.inputs[2])] == [[0], [1]] for node in nodes if node is not None)


_RULES: dict[str, Any] = {
    **dict.fromkeys(_FUNCTIONS, Rules.function),
    **dict.fromkeys(_JOINING, Rules.joined),
    **dict.fromkeys(("Mul", "Div"), Rules.product),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare"), Rules.reduced),
    "MatMul": Rules.matrices,
    "Einsum": Rules.einsum,
    "Det": Rules.determinant,
    **{kind: (lambda rules, node, given, _rule=rule: _rule(node, given)) for kind, rule in PLACES.items()},
}
# What makes a diagonal matrix of nothing.
_STARTING = frozenset(("Equal", "EyeLike"))
