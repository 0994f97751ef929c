"""Loops that end where something is so of a row: as a search, with the same values on onnxruntime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.foreseen_ends import foresee_ends
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed

LOOP = """
    g (float[{size}] x, float[{size}] y, int64 limit, {kind} first) => ({kind} last) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        two = Constant<value_int = 2>()
        sizes = Shape<start = 0, end = 1>(x)
        trips = Squeeze(sizes)
        last = Loop({trips}, , first) <body = step (int64 i, bool go, {kind} state) => (bool on, {kind} next) {{
            one_x = Gather(x, i)
            one_y = Gather(y, i)
            less = Less(one_x, one_y)
            stop = Not(less)
            more = Add(state, {more})
            next = {next}
            on = {on}
        }}>
    }}"""
RNG = np.random.default_rng(3)


def typed(model: ir.Model) -> None:
    """Give the values of the body their shapes, which ONNX's inference keeps to itself."""
    for node in model.graph.all_nodes():
        if node.op_type not in {"Loop", "Shape", "Constant"}:
            node.outputs[0].shape = ir.Shape([])
        if node.op_type in {"Less", "Not"}:
            node.outputs[0].dtype = ir.DataType.BOOL


def written(next: str, kind: str = "int64", **parts: str) -> list[str]:  # noqa: A002 - as in the graph
    given = {"size": "n", "trips": "trips", "more": "one", "on": "Identity(less)"} | parts
    if kind == "bool":
        given["more"] = "one"
    first = {"int64": np.array(5), "float": np.array(-1, np.float32), "bool": np.array(False)}[kind]
    sizes = (0, 1, 2, 6, 6, 6) if given["size"] == "n" else (int(given["size"]),) * 4
    calls = []
    for n in sizes:
        x = RNG.integers(0, 9, n).astype(np.float32)
        y = np.where(RNG.random(n) < 0.8, 10, RNG.choice([0, np.nan], n)).astype(np.float32)
        calls.append((x, y, np.array(max(n - 1, 0)), first))
    text = LOOP.format(next=next, kind=kind, **given)
    if kind != "int64":
        text = text.replace("more = Add(state, one)", "")

    def apply(model: ir.Model) -> None:
        typed(model)
        foresee_ends(model, OPSET, frozenset())

    return changed(text, apply, *calls)


@pytest.mark.parametrize("size", ["n", "7", "1"])
@pytest.mark.parametrize(
    "next",
    ["Identity(more)", "Where(stop, state, more)", "Where(less, more, state)", "Where(stop, more, state)"],
    ids=["each", "others", "others turned", "last"],
)
@pytest.mark.parametrize("more", ["one", "two"])
def test_counters(next: str, more: str, size: str) -> None:  # noqa: A002 - as in the graph
    assert "Loop" not in written(next, more=more, size=size)


def test_a_number_of_the_last_trip() -> None:
    assert "Loop" not in written("Where(stop, i, state)")
    assert "Loop" not in written("Where(less, state, one_x)", "float", size="6")
    assert "Loop" in written("Where(less, state, one_x)", "float")  # there may be no row


def test_whether_there_was_one() -> None:
    assert "Loop" not in written("Or(state, stop)", "bool")
    assert "Loop" in written("Or(stop, go)", "bool")


@pytest.mark.parametrize(
    ("next", "parts"),
    [
        ("Identity(more)", {"trips": "limit"}),  # not a size of the rows
        ("Mul(state, two)", {}),
        ("Where(stop, i, more)", {}),
        ("Where(stop, state, i)", {}),
    ],
    ids=["other trips", "product", "both", "before the last"],
)
def test_other_loops_stay(next: str, parts: dict[str, str]) -> None:  # noqa: A002 - as in the graph
    assert "Loop" in written(next, **parts)


def test_a_condition_of_the_state_stays() -> None:
    text = {"on": "Less(state, limit)"}
    assert "Loop" in written("Identity(more)", **text)


def accepted(draft: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
    count = 0
    for i in range(draft.shape[0]):
        if draft[i] != best[i]:
            break
        count += 1
    return torch.cat([draft[:count], best[count : count + 1]]), torch.as_tensor(count)


def first_above(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    place, found = -1, False
    for i in range(x.shape[0]):
        if x[i] > limit:
            place = i
            found = True
            break
    return torch.as_tensor(place), torch.as_tensor(found)


def no_break(x: Tensor, limit: Tensor) -> Tensor:
    total = 0
    for i in range(x.shape[0]):
        total += 2
        if x[i] * 2.0 > limit:
            break
    else:
        total += 100
    return torch.as_tensor(total)


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("model", [first_above, no_break])
def test_models(model: Callable[[Tensor, Tensor], object], dynamic: bool, tmp_path: object) -> None:
    path = f"{tmp_path}/m.onnx"
    shapes = ({0: Dim("n")}, None) if dynamic else None
    dy2st.onnx.export(model, (torch.zeros(6), torch.tensor(0.5)), path, dynamic_shapes=shapes)
    assert not any(node.op_type in LOOPS for node in ir.load(path).graph.all_nodes())
    session = OnnxSession(path)
    for n in (0, 1, 2, 9) if dynamic else (6,):
        for part in (0.0, 0.3, 1.0):
            x = (torch.rand(n) < part).float()
            found = session.values({"x": x, "limit": torch.tensor(0.5)})
            wanted = model(x, torch.tensor(0.5))
            for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
                torch.testing.assert_close(one, other)


def test_tokens_that_are_accepted(tmp_path: object) -> None:
    path = f"{tmp_path}/m.onnx"
    n = Dim("n")
    dy2st.onnx.export(accepted, (torch.arange(4), torch.arange(5)), path, dynamic_shapes=({0: n}, {0: n + 1}))
    assert not any(node.op_type in LOOPS for node in ir.load(path).graph.all_nodes())
    session = OnnxSession(path)
    for size in (0, 1, 2, 9):
        for part in (0.0, 0.3, 1.0):
            best = torch.randint(0, 5, (size + 1,))
            draft = torch.where(torch.rand(size) < part, 7, best[:-1])
            for one, other in zip(session.values({"draft": draft, "best": best}), accepted(draft, best), strict=True):
                torch.testing.assert_close(one, other)
