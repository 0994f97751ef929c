"""Singular vectors and eigenvectors whose signs cancel out are given; others are refused.

eager's vectors have the signs that LAPACK's algorithm leaves them, a file's those of another algorithm. A result may be
computed of them as in ``v @ torch.diag(f(values)) @ v.T``, in which both signs of each vector are the same result.
Where it takes more than that (equal values have no definite vectors, and those of zero are any on both sides), the file
gets a guard.

Source: ``torch.linalg.svd`` and ``torch.linalg.eigh`` of torch's documentation, for what is not unique.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from dy2st.errors import Location, UntranslatedError
from dy2st.onnx.building import INT64, cast, op, recording
from dy2st.onnx.passes.sign_facts import NOTHING, Facts, IndefiniteError, rank_of, together
from dy2st.onnx.passes.sign_rules import Cancelled, Rules
from dy2st.onnx.passes.source_lines import STACK, frames
from dy2st.onnx.translations.guard_nodes import onnx_require, onnx_tied
from dy2st.onnx.translations.spectrum_nodes import DOMAIN, GAP, KIND, POSITIVE


def settle_signs(model: ir.Model, opset: int) -> None:
    """Put the vectors of each decomposition in the place of its ``Spectrum`` node; in place.

    Raises:
        UntranslatedError: something depends on their signs, or may do so.
    """
    spectra = [node for node in model.graph.all_nodes() if (node.domain, node.op_type) == (DOMAIN, KIND)]
    if not spectra:
        return
    signs = _Signs(spectra)
    signs.follow(model.graph)
    for value in model.graph.outputs:
        signs.require_none(value)
    for number, node in enumerate(spectra):
        met = [each for each in signs.rules.cancelled if each.spectrum == number]
        _resolve(node, _tests_needed(node, met, opset))


class _Signs:
    """What is known while the nodes of a graph are looked at in order. Spectra are called by their numbers."""

    def __init__(self, spectra: Sequence[ir.Node]) -> None:
        self.spectra = list(spectra)
        self.numbers = {node: number for number, node in enumerate(spectra)}
        self.rules = Rules()

    def follow(self, graph: ir.Graph) -> None:
        """Look at all nodes of a graph."""
        for node in graph:
            if node in self.numbers:
                self._start(node, self.numbers[node])
                continue
            inner = [attr.as_graph() for attr in node.attributes.values() if attr.type == ir.AttributeType.GRAPH]
            for each in inner:
                self.follow(each)
            if node.op_type == "If":
                self._join(node, inner)
            elif inner:
                for value in (*node.inputs, *(out for each in inner for out in each.outputs)):
                    self.require_none(value, node)
            elif len(node.outputs) != 1:
                for value in node.inputs:
                    self.require_none(value, node)
            else:
                self._result(node)

    def _start(self, node: ir.Node, number: int) -> None:
        left, values, right = node.outputs
        dims = len(left.shape or ())
        self.rules.known[left] = Facts(frozenset({(dims - 1, (number,))}))
        self.rules.known[values] = Facts(follows=frozenset({(dims - 2, number)}), vanishes=True)
        symmetric = _is_symmetric(node)
        self.rules.known[right] = Facts(frozenset({(dims - 1 if symmetric else dims - 2, (number,))}))

    def _result(self, node: ir.Node) -> None:
        try:
            facts = self.rules.result(node)
        except IndefiniteError:
            self._refuse(set().union(*(self.rules.of(each).spectra() for each in node.inputs)), node)
        if facts != NOTHING:
            self.rules.known[node.outputs[0]] = facts

    def _join(self, node: ir.Node, arms: Sequence[ir.Graph]) -> None:
        for out, *ends in zip(node.outputs, *(arm.outputs for arm in arms), strict=True):
            found = [self.rules.of(end) for end in ends]
            if len({facts.signs for facts in found}) > 1:
                self._refuse(set().union(*(facts.spectra() for facts in found)), node)
            known = [facts.follows for facts in found]
            made = replace(
                together(found),
                signs=found[0].signs,
                follows=frozenset.intersection(*known),
                diagonal=all(facts.diagonal for facts in found),
                vanishes=all(facts.vanishes for facts in found),
            )
            if made != NOTHING:
                self.rules.known[out] = made

    def require_none(self, value: ir.Value | None, node: ir.Node | None = None) -> None:
        """What leaves the graph, or goes where its signs are not followed, has none."""
        found = self.rules.of(value).spectra()
        if found:
            self._refuse(found, node)

    def _refuse(self, spectra: set[int], node: ir.Node | None) -> None:
        decomposition = self.spectra[min(spectra)]
        name, what = (
            ("linalg.eigh", "eigenvectors") if _is_symmetric(decomposition) else ("linalg.svd", "singular vectors")
        )
        places = frames(decomposition.metadata_props.get(STACK, ""))
        used = frames(node.metadata_props.get(STACK, "")) if node is not None else []
        where = f", and line {used[-1][1]} may tell them apart" if used and used[-1:] != places[-1:] else ""
        raise UntranslatedError(
            f"there is no ONNX translation of {name} for this use: {what} have no definite sign, so a file could give"
            f" others than eager{where}",
            hint="return what is the same for both signs, such as v @ torch.diag(f(values)) @ v.mT, or use svdvals, "
            "eigvalsh, pinv, solve, qr",
            location=Location(*places[-1]) if places else None,
        )


def _is_symmetric(spectrum: ir.Node) -> bool:
    """Whether it is of a symmetric matrix: the vectors of zero are as good as others then."""
    return len(spectrum.inputs) == 5


def _tests_needed(spectrum: ir.Node, met: Sequence[Cancelled], opset: int) -> int:
    """How many of its tests the vectors have to be behind; what has weights that may be zero is tested beside them."""
    if any(each.apart for each in met):
        return (len(spectrum.inputs) - 3) // 2
    if _is_symmetric(spectrum):
        return 0
    needed = 0
    for each in met:
        vanishes = any(weight.vanishes for weight in each.weights)
        if not vanishes and not (each.weights and _require_vanishing(spectrum, each, opset)):
            needed = 1
    return needed


def _require_vanishing(spectrum: ir.Node, met: Cancelled, opset: int) -> bool:
    """Have the file fail if vectors of zero have weights other than zero; False if that can't be said."""
    values, (out,), graph = spectrum.outputs[1], met.node.outputs, met.node.graph
    dims = rank_of(values)
    if graph is None or any(rank_of(weight.value) - dims not in (0, 1) for weight in met.weights):
        return False
    uses = list(out.uses())
    with recording(opset) as made:
        bound = op("Mul", GAP, op("ReduceMax", values, [-1], keepdims=1))
        greatest = []
        for weight in sorted(met.weights, key=lambda each: each.value.name or ""):
            size, rank = op("Abs", weight.value), rank_of(weight.value)
            other = 2 * rank - 3 - weight.dim
            greatest.append(op("ReduceMax", size, [other], keepdims=0) if rank > dims else size)
        product = functools.reduce(lambda a, b: op("Mul", a, b), greatest)
        wrong = op("And", op("LessOrEqual", values, bound), op("Greater", product, bound))
        number = op("ReduceSum", op("Reshape", cast(wrong, INT64), [-1]), [0], keepdims=0)
        token = onnx_require(op("Equal", number, 0), POSITIVE)
        tied = onnx_tied(out, token)
    tied.shape, tied.type = out.shape, out.type
    for node in made.nodes:
        node.metadata_props.setdefault(STACK, met.node.metadata_props.get(STACK, ""))
    graph.insert_after(met.node, made.nodes)
    for user, index in uses:
        user.replace_input_with(index, tied)
    for index, each in enumerate(graph.outputs):
        if each is out:
            graph.outputs[index] = tied
    return True


def _resolve(spectrum: ir.Node, tests: int) -> None:
    """The results themselves, the vectors behind so many tests."""
    given = list(spectrum.inputs)
    left, right = (given[0], given[2]) if not tests else given[1 + 2 * tests : 3 + 2 * tests]
    for out, source in zip(spectrum.outputs, (left, given[1], right), strict=True):
        assert source is not None
        out.replace_all_uses_with(source, replace_graph_outputs=True)
    graph = spectrum.graph
    assert graph is not None
    graph.remove(spectrum, safe=True)
