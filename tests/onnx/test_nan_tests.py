"""Tests of NaN that are taken out or put before a branch: no bit changes, whatever numbers there are."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.interval_analysis import never_nan
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.onnx.passes.node_constructs import UNUSUAL
from dy2st.onnx.passes.number_facts import nan_fills, never_negative_zero
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import parsed, results, shown

WIDTH = 24
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1.0]


def numbers(rng: np.random.Generator, *shape: int, dtype: type = np.float32) -> np.ndarray:
    """Numbers of which some, all or none are special, and many are equal."""
    usual = rng.integers(-2, 3, shape) if rng.random() < 0.5 else rng.standard_normal(shape)
    part = rng.choice([0, 0.02, 0.2, 1])
    return np.where(rng.random(shape) < part, rng.choice(SPECIAL, shape), usual).astype(dtype)


def in_loop(body: Callable[[Tensor], tuple[Tensor, ...]]) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    """A model whose loop adds rows ``[n, WIDTH]`` to a state ``[WIDTH, WIDTH]`` and gives what ``body`` tells of it."""

    def model(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        best, *told = body(h)
        out, others = [best], [told]
        for row in x:
            h = h * 0.5 + row
            best, *told = body(h)
            out.append(best)
            others.append(told)
        return torch.stack(out), *(torch.stack([each[k] for each in others]) for k in range(len(told)))

    return model


def maximum(h: Tensor) -> tuple[Tensor, ...]:
    return *h.max(1), *(h + 1.0).min(0, keepdim=True)


def places(h: Tensor) -> tuple[Tensor, ...]:
    return h.argmax(-1), h.amin(0), h.argmin(0, keepdim=True), h.amax((0, 1))


def top(h: Tensor) -> tuple[Tensor, ...]:
    return *h.flatten().topk(5), h.topk(3, 0, largest=False)[0]


def order(h: Tensor) -> tuple[Tensor, ...]:
    return h.argsort(dim=1, descending=True, stable=True), h.sort(dim=0, stable=True)[0]


def softmax(h: Tensor) -> tuple[Tensor, ...]:
    p = h.softmax(-1)
    return p.amax(-1), p.argmax(-1), (-p).amin(-1), p.amin(0), p.max(-1)[0]


def bounded(h: Tensor) -> tuple[Tensor, ...]:
    p = torch.where(h > 0, 1.5, -0.0)
    return *p.max(1), p.argmin(0)


def asking(h: Tensor) -> tuple[Tensor, ...]:
    """What asks for NaN by itself."""
    return h.amax(1), h.isnan().any(1), h.nan_to_num(2.0).amax(0), torch.where(h.isnan(), 3.0, h).amin(1)


def one_sided(h: Tensor) -> tuple[Tensor, ...]:
    """No number is as great as infinity, or as small."""
    p, d = torch.sigmoid(h * 3), torch.sqrt(h * h)
    least = d.min(1)
    return p.argmax(0), least.indices, least.values, d[:3].argmin(), *p[:2].flatten().topk(6)


def asking_elsewhere(h: Tensor) -> tuple[Tensor, ...]:
    """What is chosen where there is NaN is not what an extreme has there, or not only where it has it."""
    p = torch.sigmoid(h[:5])
    flags = p.isnan()
    first = flags.to(torch.uint8).argmax(1)
    some, column = flags.any(), flags.any(0)[:5]
    places = torch.where(flags.any(1), 7, p.argmax(1))
    return torch.where(some, first, p.argmax(1)), torch.where(column, first, p.argmax(1)), places


def one_sided_rows(h: Tensor) -> tuple[Tensor, ...]:
    p = torch.tanh(h[:3])
    return p.argmax(0), (-h[:4].abs()).argsort(dim=1, stable=True), h[1].exp().argmin()


BODIES = [one_sided, one_sided_rows, asking_elsewhere, maximum, places, top, order, softmax, bounded, asking]


def exported(body: Callable, file: Path, dtype: torch.dtype, **options) -> OnnxSession:
    example = torch.zeros(WIDTH, WIDTH, dtype=dtype), torch.ones(3, WIDTH, dtype=dtype)
    dy2st.onnx.export(in_loop(body), example, file, dynamic_shapes=(None, {0: Dim("n")}), **options)
    return OnnxSession(file)


@pytest.mark.slow_but_for("order-dtype11", "order-dtype6")
@pytest.mark.parametrize(
    ("body", "dtype"),
    [
        *(
            pytest.param(body, torch.float32, marks=[pytest.mark.slow] * (body in (places, softmax, asking)))
            for body in BODIES
        ),
        pytest.param(maximum, torch.float64, marks=pytest.mark.slow),
        (order, torch.float64),
    ],
)
def test_no_bit_changes(body: Callable, dtype: torch.dtype, tmp_path: Path) -> None:
    file, plain = (
        exported(body, tmp_path / f"{len(left)}.onnx", dtype, without_passes=left) for left in ([], ["nan-tests"])
    )
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 4) * 5:
        args = [torch.from_numpy(numbers(rng, *size)).to(dtype) for size in ((WIDTH, WIDTH), (n, WIDTH))]
        found, wanted = ([*each.values(dict(zip(each.input_names, args, strict=True)))] for each in (file, plain))
        for one, other, eager in zip(found, wanted, in_loop(body)(*args), strict=True):
            assert one.numpy().tobytes() == other.numpy().tobytes() or _same_but_nan(one, other)
            # Equal elements are in another order in torch's topk, and what is equal after rounding may not be before.
            if one.is_floating_point() or body not in {top, softmax, one_sided}:
                torch.testing.assert_close(one, eager, equal_nan=True)


def _same_but_nan(one: Tensor, other: Tensor) -> bool:
    """Whether the bits are the same, those of what is NaN left aside."""
    zeros = (torch.where(each.isnan(), 0.0, each) for each in (one, other))
    same = torch.equal(*(each.view(torch.int32 if each.dtype == torch.float32 else torch.int64) for each in zeros))
    return same and torch.equal(one.isnan(), other.isnan())


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (maximum, {"ArgMax", "ReduceSum"}),
        (top, {"TopK", "If", "IsNaN"}),
        (bounded, {"ArgMax", "ArgMin", "GatherElements"}),
        (asking, {"IsNaN", "ReduceMax"}),
        (one_sided_rows, {"IsNaN", "Where", "ArgMax", "ArgMin"}),
    ],
)
def test_what_is_left(body: Callable, kinds: set[str], tmp_path: Path) -> None:
    exported(body, tmp_path / "m.onnx", torch.float32)
    model = ir.from_proto(onnx.load(tmp_path / "m.onnx"))
    loops = [node for node in model.graph.all_nodes() if node.op_type in LOOPS]
    usual = [node.attributes["body"].as_graph() for node in loops if node.graph and node.graph.name != UNUSUAL]
    found = {line.strip() for body in usual for line in shown(body)}
    assert kinds <= found
    assert ("If" in found) == ("If" in kinds)
    assert ("IsNaN" in found) == ("IsNaN" in kinds)


class Decoder(torch.nn.Module):
    """From a token to the tokens behind it, with attention to all before; ``scale`` of its weights."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.norm = torch.nn.Embedding(11, 8), torch.nn.LayerNorm(8)
        self.project, self.cell, self.out = torch.nn.Linear(8, 16), torch.nn.GRUCell(8, 8), torch.nn.Linear(8, 11)
        with torch.no_grad():
            self.out.weight.mul_(scale)

    def forward(self, token: Tensor) -> Tensor:
        keys = values = torch.zeros(token.shape[0], 0, 8)
        h, tokens = torch.zeros(token.shape[0], 8), [token]
        for _ in range(6):
            key, value = self.project(self.norm(self.embed(token))).chunk(2, -1)
            keys, values = torch.cat([keys, key[:, None]], 1), torch.cat([values, value[:, None]], 1)
            weights = torch.softmax((keys @ h[:, :, None])[:, :, 0], -1)
            h = self.cell((weights[:, None] @ values)[:, 0], h)
            token = self.out(h).argmax(-1)
            tokens.append(token)
            if (token == 0).all():
                break
        return torch.stack(tokens, 1)


@pytest.mark.slow_but_for("1e+37")
@pytest.mark.parametrize("scale", [1.0, 1e37, math.inf])
def test_tokens_and_weights_make_numbers(scale: float, tmp_path: Path) -> None:
    """Of weights that are known there is NaN or not; sums that may overflow need the test."""
    model = Decoder(scale)
    dy2st.onnx.export(model, (torch.tensor([3, 4]),), tmp_path / "m.onnx", dynamic_shapes=({0: Dim("batch")},))
    nodes = {node.op_type for node in ir.from_proto(onnx.load(tmp_path / "m.onnx")).graph.all_nodes()}
    assert ("IsNaN" in nodes) == (scale > 1)
    file = OnnxSession(tmp_path / "m.onnx")
    for first in ([1], [5, 7], [2, 9, 0, 10]):
        (found,) = file.values({"token": torch.tensor(first)})
        assert torch.equal(found, model(torch.tensor(first)))


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_softmax_is_nan_in_whole_rows(kind: str, dtype: str) -> None:
    """Of what is said of rows, onnxruntime's kernels hold all."""
    rng = np.random.default_rng(1)
    for shape, axis in [((1, 1), 1), ((3, 2), 1), ((2, 17), 1), ((5, 64), 0), ((2, 7, 33), 1), ((3, 5, 9), 2)]:
        size = ", ".join(map(str, shape))
        rest = ", ".join(str(n) for d, n in enumerate(shape) if d != axis)
        model = parsed(f"""
        g ({dtype}[{size}] x) => ({dtype}[{size}] y, {dtype}[{rest}] most, {dtype}[{rest}] least,
                                  int64[{rest}] first, int64[{rest}] other) {{
            axis = Constant<value_ints = [{axis}]>()
            y = {kind}<axis = {axis}>(x)
            most = ReduceMax<keepdims = 0>(y, axis)
            least = ReduceMin<keepdims = 0>(y, axis)
            first = ArgMax<axis = {axis}, keepdims = 0>(y)
            other = ArgMin<axis = {axis}, keepdims = 0>(y)
        }}""")
        found = model.graph.outputs[0]
        assert not nan_fills(found, 0 if axis else 1)
        if not nan_fills(found, axis):
            assert (kind, dtype) == ("LogSoftmax", "double")
            continue
        for _ in range(12):
            given = numbers(rng, *shape, dtype=np.float32 if dtype == "float" else np.float64)
            y, most, least, first, other = results(model, given)
            wrong = np.isnan(y).any(axis)
            np.testing.assert_array_equal(wrong, np.isnan(y).all(axis))
            assert np.isnan(most[wrong]).all()
            assert np.isnan(least[wrong]).all()
            assert not first[wrong].any()
            assert not other[wrong].any()


FACTS = {
    # not NaN, no zero with a sign
    "Constant<value = float[2] {1, -0}>()": (True, False),
    "Constant<value = float[2] {1, 0}>()": (True, True),
    "Constant<value = float[2] {1, nan}>()": (False, True),
    "Relu(x)": (False, False),
    "Cast<to = 1>(i)": (True, False),
    "Add(x, one)": (False, True),
    "Where(b, one, two)": (True, True),
    "Where(b, one, x)": (False, False),
    "Where(b, x, one)": (False, False),
    "Where(wrong, one, x)": (True, False),
    "Where(wrong, x, one)": (False, False),
    "Sub(one, two)": (True, False),
    "Sub(x, one)": (False, False),
    "Tanh(number)": (True, False),
    "Abs(number)": (True, True),
    "Unsqueeze(number, axis)": (True, False),
    "Concat<axis = 0>(one, number)": (True, False),
    "Concat<axis = 0>(one, x)": (False, False),
    "Max(one, x)": (False, False),
}


@pytest.mark.parametrize("text", FACTS)
def test_what_is_known_of_numbers(text: str) -> None:
    model = parsed(f"""
    g (float[2] x, int64[2] i, bool[2] b) => (float[n] y) {{
        axis = Constant<value_ints = [0]>()
        one = Constant<value = float[2] {{1, 2}}>()
        two = Constant<value = float[2] {{3, 2}}>()
        number = Cast<to = 1>(i)
        wrong = IsNaN(x)
        found = {text}
        flat = Constant<value_ints = [-1]>()
        y = Reshape(found, flat)
    }}""")
    (found,) = [node.inputs[0] for node in model.graph if node.op_type == "Reshape"]
    assert (never_nan(found), never_negative_zero(found)) == FACTS[text]
