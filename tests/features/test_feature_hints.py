"""Row 62: loops that are rolled, unrolled or bounded on request."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest
import torch
from harness import agree, check_refusal, dyn, outcomes, refuses, row, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import LoopHintError, UnrolledLoopWarning

WEIGHTS = [torch.randn(3, 3, generator=torch.Generator().manual_seed(k)) for k in range(5)]
BIASES = (0.5, -1.0, 2.0, 0.0, 1.5)


def operators(model: Any, *args: Any) -> list[str]:
    """The node types of a model's ONNX graph, those of subgraphs left out."""
    return [node.op_type for node in dy2st.onnx.export(model, args).model.graph]


@row(62)
def test_hints_are_the_identity_in_eager_code() -> None:
    steps = range(3)
    assert dy2st.rolled(steps) is steps
    assert dy2st.unrolled(steps) is steps
    test = torch.tensor(True)
    assert dy2st.at_most(5, test) is test
    code = "import sys, dy2st; dy2st.rolled([1]); dy2st.at_most(3, 1 < 2); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    outcomes.append("Y")


@row(62)
def test_a_rolled_range_is_one_loop() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        h = x
        for i in dy2st.rolled(range(200)):
            h = torch.tanh(h * 0.9 + i * 0.01)
        return h, i

    agree(model, vectors(3, 1, 4), (dyn(0),), paths=1)
    assert operators(model, torch.ones(3)).count("Scan") == 1
    assert len(operators(model, torch.ones(3))) < 10


@row(62)
def test_rolled_ranges_with_start_step_and_no_steps() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        n = 0
        for i in dy2st.rolled(range(7, 1, -2)):
            for j in dy2st.rolled(range(2)):
                x = x + i * 10 + j
                n += 1
        for _ in dy2st.rolled(range(0)):
            x = x * 0
        for _ in dy2st.rolled([]):
            x = x * 0
        return x, n

    agree(model, vectors(3, 1), (dyn(0),), paths=1, whole=False)


@pytest.mark.slow
@row(62)
def test_rolled_sequences_of_like_elements() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, float]:
        outputs = []
        total = 0.0
        for w, b in dy2st.rolled(list(zip(WEIGHTS, BIASES, strict=True))):
            x = x @ w + b
            if x.sum() > 3:
                x = x / 4
            outputs.append(x.mean())
            total = total + b
        for k, w in dy2st.rolled(enumerate(WEIGHTS, 2)):
            x = x + w[0] * k
        for w in dy2st.rolled(reversed(WEIGHTS)):
            x = torch.tanh(x @ w)
        return x, torch.stack(outputs), total

    inputs = [(scale * torch.randn(n, 3),) for n, scale in ((2, 1.0), (1, 5.0), (3, -3.0))]
    agree(model, inputs, (dyn(0),))
    found = operators(model, torch.ones(2, 3))
    assert found.count("Loop") + found.count("Scan") == 3


@row(62)
def test_rolled_rows_of_a_tensor_of_static_length() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        h = torch.zeros(4)
        found = -1
        for t, line in enumerate(x):
            if line.max() > 9:
                found = t
        for line in dy2st.rolled(x):
            h = torch.tanh(h + line)
            if h.min() > 0.9:
                break
        return h, found

    agree(model, [(torch.randn(12, 4),), (3 + torch.randn(12, 4),), (torch.full((12, 4), 10.0),)], paths=3)


@row(62)
def test_a_rolled_while_with_a_python_counter() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, int]:
        i, even = 0, 0
        while dy2st.rolled(i < 50):
            x = x * 0.99 + 0.01
            if i % 2 == 0:
                even += 1
            if x.sum() > 3:
                break
            i += 1
        return x, i, even

    agree(model, [(torch.tensor(v),) for v in ([0.1, 0.2], [8.0], [0.7, 0.7, 0.7, 0.7])], (dyn(0),), paths=3)
    assert operators(model, torch.ones(2)).count("Loop") == 1


@row(62)
def test_unrolled_loops_stay_unrolled_when_a_tensor_decides_a_jump() -> None:
    def unrolled(x: Tensor) -> tuple[Tensor, int]:
        for i in dy2st.unrolled(range(4)):
            if x.sum() > 4:
                break
            x = x + i
        return x, i

    def native(x: Tensor) -> tuple[Tensor, int]:
        for i in range(4):
            if x.sum() > 4:
                break
            x = x + i
        return x, i

    inputs = [(torch.tensor(v),) for v in ([0.1, 0.2], [8.0], [1.0, 0.5, 1.4], [-30.0])]
    agree(unrolled, inputs, (dyn(0),), paths=3)
    agree(native, inputs, (dyn(0),), paths=3)
    assert "Loop" not in operators(unrolled, torch.ones(2))
    assert "Loop" in operators(native, torch.ones(2))


@row(62)
def test_a_bound_is_the_trip_count_of_the_graph() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        n = 0
        while dy2st.at_most(20, x.abs().max() > 0.5 and n < 100):
            x = x / 2
            n += 1
            if n == 3 and x.sum() < 0:
                break
        return x, n

    inputs = [(torch.tensor(v),) for v in ([0.1], [1.0, -0.3], [500.0, 2.0], [-9.0], [-500.0])]
    agree(model, inputs, (dyn(0),), paths=4)
    (loop,) = (n for n in dy2st.onnx.export(model, (torch.ones(1),)).model.graph if n.op_type == "Loop")
    assert loop.inputs[0] is not None
    assert loop.inputs[0].const_value.numpy() == 20


@row(62)
def test_a_bound_that_does_not_hold_fails_the_program() -> None:
    def model(x: Tensor) -> Tensor:
        while dy2st.at_most(2, x.abs().max() > 0.5):
            x = x / 2
        return x

    program = dy2st.export(model, (torch.ones(2),)).module()
    for value in (0.3, 0.9, 1.9):
        x = torch.full((2,), value)
        assert torch.equal(program(x), model(x))
    assert torch.equal(model(torch.full((2,), 8.0)), torch.full((2,), 0.5)), "eager goes on"
    with pytest.raises(RuntimeError, match="runs more often than at_most says"):
        program(torch.full((2,), 8.0))


@row(62)
def test_steps_that_are_texts() -> None:
    def model(x: Tensor) -> Tensor:
        for name in dy2st.rolled(["a", "double", "bcd"]):
            if name == "double":
                x = x * 2
            x = x + len(name)
        return x

    agree(model, [(torch.ones(3),), (-torch.ones(3),)], paths=1)


@row(62)
def test_steps_that_no_index_picks_are_refused() -> None:
    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])

        def forward(self, x: Tensor) -> Tensor:
            for layer in dy2st.rolled(self.layers):
                x = layer(x)
            return x

    def shapes(x: Tensor) -> Tensor:
        for y in dy2st.rolled([torch.ones(1), torch.ones(3, 3)]):
            x = x + y
        return x

    def dynamic(x: Tensor) -> Tensor:
        for y in dy2st.unrolled(x):
            x = x + y
        return x

    for model in (Layers(), shapes):
        with pytest.raises(LoopHintError) as caught:
            dy2st.export(model, (torch.ones(3, 3),))
        check_refusal(caught.value, model)
    assert isinstance(refuses(dynamic, (torch.ones(3, 3),), (dyn(0),)), LoopHintError)


@row(62)
def test_hints_elsewhere_than_in_a_loop_are_refused() -> None:
    def no_loop(x: Tensor) -> Tensor:
        if dy2st.at_most(3, x.sum() > 0):
            x = x + 1
        return x

    def inside(x: Tensor) -> Tensor:
        for _, y in enumerate(dy2st.rolled([x, x])):
            x = x + y
        return x

    def no_bound(x: Tensor) -> Tensor:
        while dy2st.at_most(0, x.sum() > 0):
            x = x - 1
        return x

    for model in (no_loop, inside, no_bound):
        with pytest.raises(LoopHintError) as caught:
            dy2st.export(model, (torch.ones(3, 3),))
        check_refusal(caught.value, model)


@pytest.mark.slow
@row(62)
def test_many_copies_are_not_made_without_a_word() -> None:
    def unrolled(x: Tensor) -> Tensor:
        for _ in range(150):
            x = torch.tanh(x) * 0.9 + x.sum() + 1
            x = x - x.mean() * 2
        return x

    def counted(x: Tensor) -> Tensor:
        i = 0
        while i < 150:
            x = torch.tanh(x) * 0.9 + x.sum() + 1
            x = x - x.mean() * 2
            i += 1
        return x

    for model in (unrolled, counted):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UnrolledLoopWarning)
            dy2st.export(model, (torch.ones(2),))
        (caught,) = found
        assert "150 copies of its body" in str(caught.message)
        assert caught.filename == __file__
    outcomes.append("Y")
