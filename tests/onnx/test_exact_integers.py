"""Integers in a file are those of eager, however large: none is computed as a double on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from onnx import helper
from torch import Tensor
from torch.export import Dim

import dy2st
from dy2st.onnx.passes.integer_facts import ELEMENTS, IntegerFacts

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = torch.tensor([2**55 + 1, 2**54 + 3, -7, 12345678901234567])
ROWS = {0: Dim("n")}

REDUCED: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "a sum": (lambda x: x.sum(), LARGE),
    "one that goes on from the other end": (lambda x: (x * 1000).sum(), LARGE),
    "along the first": (lambda x: torch.stack([x, x + 2], 1).sum(0), LARGE),
    "along the middle": (lambda x: torch.stack([torch.stack([x, x + 2]), torch.stack([x - 9, x])]).sum(1), LARGE),
    "along two": (lambda x: torch.stack([torch.stack([x, x + 2]), torch.stack([x - 9, x])]).sum((0, 2)), LARGE),
    "along all": (lambda x: torch.stack([x, x + 2]).sum((0, 1)), LARGE),
    "kept": (lambda x: torch.stack([x, x + 2]).sum(1, keepdim=True), LARGE),
    "of many": (lambda x: x.expand(400, -1).sum(0), LARGE),
    "of the first of four": (lambda x: x.expand(2, 3, 2, -1).sum(0), LARGE),
    "of bits": (lambda x: (torch.ones_like(x) << torch.arange(x.shape[0])).sum(), torch.ones(62, dtype=torch.long)),
    "of int32": (lambda x: x.int().sum(dtype=torch.int32), torch.tensor([2**30] * 5)),
    "of uint8": (lambda x: x.to(torch.uint8).sum(dtype=torch.uint8), torch.tensor([200] * 5)),
    "of a list": (lambda x: sum(x.tolist()), LARGE),
    "a mean": (lambda x: x.sum() // x.shape[0], LARGE),
    "a product with ones": (lambda x: x @ torch.ones_like(x), LARGE),
    "a trace": (lambda x: torch.diag(x).trace(), LARGE),
    "a product": (lambda x: x.prod(), torch.tensor([3] * 37)),
    "a product that goes on from the other end": (lambda x: x.prod(), torch.tensor([7] * 37)),
    "a product of bytes that are less than zero": (lambda x: (-(x > 0).to(torch.uint8)).prod(), torch.ones(9)),
    "a product of differences of bytes": (lambda x: ((x < 0).byte() - (x > 0).byte()).prod(), torch.ones(9)),
    "a product of flags as bytes": (lambda x: (-(x > 0).long()).to(torch.uint8).prod(), torch.ones(9)),
    "products of rows": (lambda x: torch.stack([x, x + 2]).prod(1), torch.tensor([7] * 21)),
    "products of columns": (lambda x: torch.stack([x, x + 2]).prod(0, keepdim=True), LARGE),
    "a product of int32": (lambda x: x.int().prod(dtype=torch.int32), torch.tensor([7] * 37)),
    "einsum of one": (lambda x: torch.einsum("i->", x), LARGE),
    "einsum of a diagonal": (lambda x: torch.einsum("ii->", torch.stack([x, x]).T[:2]), LARGE),
    "einsum of three": (lambda x: torch.einsum("i,i,j->j", x, x, x), LARGE),
    "fmod": (lambda x: torch.fmod(x, 10), LARGE),
    "fmod of two": (lambda x: torch.fmod(x, x.flip(0) - 20), LARGE),
    "a range": (lambda x: torch.arange(int(x[0]), int(x[0]) + x.shape[0]), LARGE),
    "a range down": (lambda x: torch.arange(int(x[0]), int(x[0]) - x.shape[0], -2), LARGE),
}


@pytest.mark.parametrize("name", REDUCED)
def test_large_integers(name: str) -> None:
    model, given = REDUCED[name]
    report = dy2st.check(model, [(given,), (given[:2],), (given.flip(0),)], dynamic_shapes=(ROWS,))
    assert report.ok, str(report)


@pytest.mark.parametrize("model", [lambda x: x.sum(0), lambda x: x.sum(1), lambda x: x.sum(), lambda x: x.prod(1)])
def test_nothing_is_summed(model: Callable[[Tensor], Tensor]) -> None:
    sets = [(torch.full(shape, 2**55 + 1),) for shape in ((2, 3), (0, 3), (3, 0), (0, 0), (1, 1))]
    report = dy2st.check(model, sets, dynamic_shapes=({0: Dim("n"), 1: Dim("m")},))
    assert report.ok, str(report)


def test_a_number_is_its_own_sum() -> None:
    def model(x: Tensor) -> Any:
        number = x.max()
        return number.sum(0), number.prod(-1), number.sum(), number.prod(), number.sum(0, dtype=torch.int32)

    report = dy2st.check(model, [(LARGE,), (-LARGE,)])
    assert report.ok, str(report)


def test_sums_in_a_loop() -> None:
    def model(x: Tensor, steps: Tensor) -> Tensor:
        total = x.sum()
        while total % 7 != 0 and steps > 0:
            total = total + (x * steps).sum()
            steps = steps - 1
        return total

    sets = [(LARGE, torch.tensor(k)) for k in (0, 1, 5)]
    report = dy2st.check(model, sets)
    assert report.ok, str(report)


def kinds(model: Callable[..., Any], *given: Tensor) -> set[str]:
    program = dy2st.onnx.export(model, given, dynamic_shapes=tuple(ROWS for _ in given))
    return {node.op_type for node in program.model.graph.all_nodes()}


@pytest.mark.parametrize(
    "model",
    [
        lambda x: (x > 0).sum(),
        lambda x: (x > 0).long().sum(),
        lambda x: torch.where(x > 0, 3, 5).sum(),
        lambda x: x.to(torch.int8).sum(),
        lambda x: (x.argsort() % 100).sum(),
        lambda x: x.long().clamp(-9, 9).sum(),
        lambda x: ((x > 0).sum() + x.shape[0]) * (x < 1).sum(),
    ],
)
def test_what_is_small_is_summed_as_ever(model: Callable[..., Any]) -> None:
    found = kinds(model, torch.randn(5))
    assert "ReduceSum" in found
    assert "MatMul" not in found


def test_a_range_of_places_is_one_node() -> None:
    def model(x: Tensor) -> Tensor:
        first, found = 0, x.sum()
        while found < 100:
            found = found + torch.arange(first, first + 3).sum()
            first = first + 1
        return found

    program = dy2st.onnx.export(model, (torch.ones(4),))
    ranges = [node for node in program.model.graph.all_nodes() if node.op_type == "Range"]
    assert all(use.node.op_type != "Add" for each in ranges for use in each.outputs[0].uses())


def test_facts() -> None:
    """How far from zero integers may be, of a graph in ONNX's text."""
    text = """
        <ir_version: 10, opset_import: ["" : 20]>
        facts (int64[n] x, bool[n] flags, int32[n] narrow) => (int64[n] y, int64 small, int64 counted, int64 wild) {
            one = Constant <value_ints = [1]> ()
            few = Constant <value_ints = [-9, 4]> ()
            no = Constant <value_int = 0> ()
            bits = Cast <to = 7> (flags)
            wide = Cast <to = 7> (narrow)
            both = Mul (wide, few)
            y = Add (x, bits)
            shape = Shape (x)
            small = Squeeze (one)
            trips = Squeeze (shape)
            counted, wild = Loop (trips, , no, no) <
                body = body (int64 i, bool go_in, int64 count, int64 power) => (bool go, int64 next, int64 more) {
                    go = Identity (go_in)
                    next = Add (count, small)
                    doubled = Add (power, power)
                    more = Add (doubled, small)
                }
            >
        }"""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    values = {value.name: value for node in model.graph.all_nodes() for value in node.outputs}
    facts = IntegerFacts(model)
    known = {name: facts.largest(values[name]) for name in ("few", "bits", "wide", "both", "shape", "small")}
    assert known == {"few": 9, "bits": 1, "wide": 2**31, "both": 9 * 2**31, "shape": ELEMENTS, "small": 1}
    assert facts.largest(values["counted"]) == ELEMENTS
    assert [facts.largest(values[name]) for name in ("y", "wild")] == [None, None]


def ran(kind: str, *given: Any, **attributes: Any) -> Any:
    """What onnxruntime makes of arrays with one node."""
    arrays = [np.asarray(each) for each in given]
    names = [f"input_{number}" for number in range(len(arrays))]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), [None] * each.ndim)
        for name, each in zip(names, arrays, strict=True)
    ]
    node = helper.make_node(kind, names, ["output"], **attributes)
    graph = helper.make_graph([node], "graph", inputs, [helper.make_empty_tensor_value_info("output")])
    opsets = [helper.make_opsetid("", 20)]
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays, strict=True)))[0].tolist()


def test_the_operators_that_stand_for_them_compute_integers() -> None:
    """What this rests on, of onnxruntime; the second half says which ones do not."""
    x, y = np.array([2**60 + 1, 2**53 + 1, -(2**61) + 7]), np.array([2**60 + 3, 5, -(2**61) - 5])
    plain = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Mod": np.mod, "Max": np.maximum, "Min": np.minimum}
    for kind, compute in (plain | {"Equal": np.equal, "Less": np.less, "GreaterOrEqual": np.greater_equal}).items():
        assert ran(kind, x, y) == compute(x, y).tolist(), kind
    assert ran("MatMul", np.stack([x, y]), np.ones((3, 1), np.int64)) == [[x.sum()], [y.sum()]]
    assert ran("CumSum", x, 0) == x.cumsum().tolist()
    assert ran("ScatterElements", [1, 1], [0, 0, 1], [3**20, 3**15, 7], reduction="mul") == [3**35, 7]
    assert ran("ScatterElements", [1, 1], [0, 0, 1], x, reduction="add") == [int(x[0] + x[1] + 1), int(x[2] + 1)]
    assert ran("ReduceMax", x) == [int(x.max())]
    assert ran("ReduceMin", x) == [int(x.min())]
    assert [ran("ArgMax", x, keepdims=0), ran("ArgMin", x, keepdims=0)] == [0, 2]
    assert ran("ReduceSum", x) != [int(x.sum())]
    assert ran("ReduceProd", [3**20, 3**15]) != [3**35]
    assert ran("Mod", [2**60 + 1], [2**61], fmod=1) != [2**60 + 1]
    assert ran("Range", 2**60 + 1, 2**60 + 4, 1) != [2**60 + 1, 2**60 + 2, 2**60 + 3]
