"""Rows that are written, or added to, at one place: no bit changes, and places outside fail as before."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.scattered_rows import scatter_rows
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed, parsed, results

GRAPH = """
    g ({kind}[{sizes}] table, {kind}[{width}] more, int64 i) => ({kind}[{sizes}] after) {{
        zero = Constant<value_ints = [0]>()
        size = Constant<value_ints = [{one}]>()
        {row}
        places = Expand(i, size)
        rows = Unsqueeze(row, zero)
        after = ScatterElements<axis = 0>(table, places, rows)
    }}"""
SIZES = {"n": ("", "1"), "n, 3": ("3", "1, 3"), "n, 2, 3": ("2, 3", "1, 2, 3")}
DTYPES = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32}
OLD = "old = Gather(table, i) "


def text_of(row: str, kind: str, sizes: str) -> str:
    width, one = SIZES[sizes]
    text = GRAPH.format(row=row, kind=kind, sizes=sizes, width=width, one=one)
    return text if width else text.replace(f"{kind}[] more", f"{kind} more")


def written(row: str, kind: str = "float", sizes: str = "n, 3") -> list[str]:
    rng = np.random.default_rng(0)
    rest = [int(size) for size in SIZES[sizes][0].split(",") if size]
    calls = []
    for n, i in ((1, 0), (1, -1), (5, 3), (5, -5), (5, 4)):
        table, more = rng.standard_normal((n, *rest)) * 9, rng.standard_normal(rest) * 9
        if kind in {"float", "double"}:
            table.flat[0], table.flat[-1] = -0.0, np.inf
        calls.append((table.astype(DTYPES[kind]), np.array(more, DTYPES[kind]), np.array(i)))
    lines = changed(text_of(row, kind, sizes), lambda model: scatter_rows(model, OPSET), *calls)
    return [line for line in lines if line != "Constant"]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", DTYPES)
def test_rows(kind: str, sizes: str) -> None:
    assert written("row = Identity(more)", kind, sizes) == ["Identity", "Unsqueeze", "ScatterND"]
    assert written(f"{OLD} row = Add(old, more)", kind, sizes) == ["Unsqueeze", "ScatterND"]
    assert written(f"{OLD} row = Add(more, old)", kind, sizes) == ["Unsqueeze", "ScatterND"]


@pytest.mark.parametrize(
    "row",
    [
        "at = Constant<value_int = 0>() old = Gather(table, at) row = Add(old, more)",  # another row
        f"{OLD} row = Sub(old, more)",
        "row = Add(more, more)",
    ],
)
def test_other_sums_are_written_as_they_are(row: str) -> None:
    assert written(row)[-3:] == ["Sub" if "Sub" in row else "Add", "Unsqueeze", "ScatterND"]


def test_a_number_that_is_stretched_is_no_row() -> None:
    text = text_of("row = Identity(more)", "float", "n, 3").replace("float[3] more", "float more")
    text = text.replace("rows = Unsqueeze(row, zero)", "rows = Expand(row, size)")
    call = (np.ones((2, 3), np.float32), np.array(7, np.float32), np.array(1))
    assert "ScatterElements" in changed(text, lambda model: scatter_rows(model, OPSET), call)


@pytest.mark.parametrize("i", [5, -6])
def test_a_place_outside_fails(i: int) -> None:
    for row in ("row = Identity(more)", f"{OLD} row = Add(old, more)"):
        model = parsed(text_of(row, "float", "n, 3"))
        scatter_rows(model, OPSET)
        with pytest.raises(Exception, match="indice"):
            results(model, np.ones((5, 3), np.float32), np.ones(3, np.float32), np.array(i))


def counted(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    sums, counts = torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)
    for i in range(labels.shape[0]):
        k = labels[i]
        if counts[k] < 2:
            sums[k] += x[i]
            counts[k] += 1
    return sums, counts


def test_a_model_that_counts(tmp_path: object) -> None:
    path, n = f"{tmp_path}/m.onnx", Dim("n")
    args = (torch.randn(5, 3), torch.tensor([0, 1, -1, 0, 0]))
    dy2st.onnx.export(counted, args, path, dynamic_shapes=({0: n}, {0: n}))
    kinds = {node.op_type for node in ir.load(path).graph.all_nodes()}
    assert "ScatterND" in kinds
    assert "ScatterElements" not in kinds
    session = OnnxSession(path)
    for size in (0, 1, 9):
        x, labels = torch.randn(size, 3), torch.randint(-4, 4, (size,))
        for one, other in zip(session.values({"x": x, "labels": labels}), counted(x, labels), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
