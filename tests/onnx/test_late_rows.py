"""What a ``Scan`` only stacks is computed behind it: no bit changes, and what other steps read stays."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.late_rows import compute_late
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed
from tests.onnx.test_nan_tests import numbers

# A Scan over rows x and y; what is stacked of them and of the state h.
SCAN = """
    g (float[time, batch, 4] x, float[time, batch, 4] y, float[batch, 4] h, float[4] w, float[4, 5] m, float[4, 99] v)
        => (float[batch, 4] last, float[R, S, U] told) {{
        two = Constant<value_ints = [2]>()
        one = Constant<value_ints = [1]>()
        last, stacked = Scan<num_scan_inputs = 2{directions}, body = step
            (float[batch, 4] state, float[batch, 4] row, float[batch, 4] other)
            => (float[batch, 4] next, float[batch, K] seen) {{
            next = Add(state, row)
            half = Mul(next, row)
            {body}
        }}>(h, x, y)
        told = Relu(stacked)
    }}"""


def calls(*times: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(0)
    sizes = [((t, b, 4), (t, b, 4), (b, 4), (4,), (4, 5), (4, 99)) for t in times for b in (0, 1, 3)]
    return [tuple(numbers(rng, *size) for size in each) for each in sizes]


def late(body: str, *times: int, directions: str = "") -> tuple[list[str], list[str]]:
    """The operators behind the Scan, and those in its body."""
    text = SCAN.format(body=body, directions=directions)
    lines = changed(text, lambda model: compute_late(model, OPSET), *calls(*(times or (1, 2, 5))))
    place = lines.index("Scan")
    inside = [line.strip() for line in lines[place + 1 :] if line.startswith(" ")]
    return [line for line in lines[place + 1 :] if not line.startswith(" ")], inside


@pytest.mark.parametrize(
    ("body", "behind"),
    [
        ("seen = Add(half, other)", ["Add"]),
        ("seen = Sub(w, half)", ["Sub"]),
        ("seen = Tanh(half)", ["Tanh"]),
        ("a = Add(half, other) b = Exp(a) seen = Mul(b, other)", ["Add", "Exp", "Mul"]),
        ("a = Mul(half, w) seen = Sub(a, row)", ["Mul", "Sub"]),
        ("a = Less(half, other) seen = Where(a, other, w)", ["Less", "Where"]),
        ("seen = MatMul(half, m)", ["MatMul"]),
        ("a = MatMul(next, m) seen = Relu(a)", ["MatMul", "Relu"]),
        ("seen = Softmax<axis = 0>(half)", ["Softmax"]),
    ],
)
def test_what_is_only_stacked_is_late(body: str, behind: list[str]) -> None:
    found, inside = late(body)
    assert found == [*behind, "Relu"]
    assert inside == ["Add", "Mul", *(["Identity"] if "next, m" in body else [])]


@pytest.mark.parametrize(
    "body",
    [
        "seen = Add(next, half)",  # two values that the body makes
        "seen = Mul(next, other)",  # the state itself is stacked, too
        "seen = Add(state, half)",
        "seen = Identity(half)",
        "a = Add(half, other) b = Mul(a, a) seen = Sub(b, a)",
        "seen = MatMul(half, v)",  # more than eight times as many columns
    ],
)
def test_what_else_stays(body: str) -> None:
    text = SCAN.format(body=body, directions="")
    before = changed(text, lambda _: None)
    after = changed(text, lambda model: compute_late(model, OPSET), *calls(2, 3))
    assert before.count("  Mul") == after.count("  Mul")
    assert after[after.index("Scan") + 1 :][-1] == "Relu"
    assert [line for line in after if not line.startswith(" ")] == [line for line in before if line[0] != " "]


def test_rows_that_are_read_backwards_stay() -> None:
    found, inside = late("seen = Add(half, other)", directions=", scan_input_directions = [0, 1]")
    assert found == ["Relu"]
    assert inside == ["Add", "Mul", "Add"]
    found, inside = late("seen = Add(half, other)", directions=", scan_input_directions = [1, 0]")
    assert found == ["Add", "Relu"]
    assert inside == ["Add", "Mul"]


def test_no_row_is_left_to_scan() -> None:
    """One is needed for the number of steps."""
    text = SCAN.format(body="seen = Add(half, other)", directions="").replace("Add(state, row)", "Tanh(state)")
    text = text.replace("Mul(next, row)", "Neg(next)")
    lines = changed(text, lambda model: compute_late(model, OPSET), *calls(1, 4))
    assert lines.count("  Add") == 0


class Recurrent(nn.Module):
    """Logits of each step, from a state that only a sum goes into."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.out = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, rows = torch.zeros(6), []
        for row in x:
            h = torch.tanh(h * 0.5 + row)
            rows.append(torch.relu(self.out(h)) - row[0])
        return torch.stack(rows) if rows else torch.zeros(0, 4), h


def test_products_of_states_are_products_of_all_rows(tmp_path) -> None:
    model = Recurrent()
    dy2st.onnx.export(model, (torch.ones(3, 6),), tmp_path / "m.onnx", dynamic_shapes=({0: Dim("n")},))
    graph = ir.from_proto(onnx.load(tmp_path / "m.onnx")).graph
    (scan,) = [node for node in graph.all_nodes() if node.op_type == "Scan"]
    assert not {node.op_type for node in scan.attributes["body"].as_graph()} & {"Gemm", "MatMul", "Relu", "Sub"}
    file = OnnxSession(tmp_path / "m.onnx")
    for n in (0, 1, 2, 7):
        x = torch.randn(n, 6)
        for found, wanted in zip(file.values({"x": x}), model(x), strict=True):
            torch.testing.assert_close(found, wanted)


class Logits(Recurrent):
    """The state is not returned: where there is no row, only that says so which is made of all rows."""

    def forward(self, x: Tensor) -> Tensor:
        h, rows = torch.zeros(6), []
        for row in x:
            h = torch.tanh(h * 0.5 + row)
            rows.append(torch.relu(self.out(h)) - row[0])
        return torch.stack(rows) if len(rows) > 0 else torch.zeros(0, 4)


def test_trips_are_counted_and_results_compared() -> None:
    report = dy2st.check(Logits(), [(torch.randn(n, 6),) for n in (3, 0, 1)], dynamic_shapes=({0: Dim("n")},))
    assert report.ok, str(report)
    assert not report.uncovered
