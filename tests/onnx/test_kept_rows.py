"""Numbers that a loop appends on a condition, and loops of which all results are rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx

ROWS = ({0: Dim("n", min=0, max=100)},)


def kinds(program: torch.onnx.ONNXProgram) -> list[str]:
    return [node.op_type for node in program.model.graph.all_nodes()]


def collapsed(symbols: Tensor) -> Tensor:
    """Repeats are one, and zeros none."""
    kept = []
    last = torch.tensor(0)
    for symbol in symbols:
        if symbol != 0 and symbol != last:
            kept.append(symbol)
        last = symbol
    return torch.stack(kept) if len(kept) > 0 else torch.zeros(0, dtype=torch.int64)


def unless(symbols: Tensor) -> tuple[Tensor, Tensor]:
    """The arm that appends is the other one; what is appended is computed in it."""
    kept = torch.tensor([7, 8])
    total = torch.tensor(0)
    for symbol in symbols:
        total = total + symbol
        if total > 9:
            total = total * 0
        else:
            kept = torch.cat([kept, (symbol * 2 + total).unsqueeze(0)])
    return kept, total


def in_branches(symbols: Tensor) -> Tensor:
    """A condition in a condition."""
    kept = torch.zeros(0, dtype=torch.int64)
    for symbol in symbols:
        if symbol > 1:  # noqa: SIM102 - the model is about it
            if symbol < 4:
                kept = torch.cat([kept, symbol.unsqueeze(0)])
    return kept


def read_again(symbols: Tensor) -> Tensor:
    """What was kept is read in the loop."""
    kept = torch.zeros(1, dtype=torch.int64)
    for symbol in symbols:
        if symbol > kept.sum():
            kept = torch.cat([kept, symbol.unsqueeze(0)])
    return kept


def ended(symbols: Tensor) -> Tensor:
    """The loop ends early."""
    kept = torch.zeros(0, dtype=torch.int64)
    for symbol in symbols:
        if symbol > 1:
            kept = torch.cat([kept, symbol.unsqueeze(0)])
        if symbol == 4:
            break
    return kept


CALLS = [torch.tensor(each) for each in ([1, 1, 0, 1, 2, 2, 4, 3], [0, 0], [3], [2, 1, 2, 1])] + [
    torch.zeros(0, dtype=torch.int64)
]


@pytest.mark.parametrize(
    ("model", "stacked"),
    [(collapsed, True), (unless, True), (in_branches, True), (read_again, False), (ended, False)],
)
def test_appended_on_a_condition(model: Callable[..., object], stacked: bool, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    program = dy2st.onnx.export(model, (CALLS[0],), file, dynamic_shapes=ROWS)
    assert ("Compress" in kinds(program)) == stacked
    report = dy2st.check(model, [(each,) for each in CALLS], onnx_file=file, dynamic_shapes=ROWS)
    assert report.ok, report


def test_repeats_are_left_out_without_a_loop() -> None:
    found = kinds(dy2st.onnx.export(collapsed, (CALLS[0],), dynamic_shapes=ROWS))
    assert not {"Loop", "Scan"} & set(found)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=12))
def test_any_symbols(symbols: list[int]) -> None:
    found, wanted = (each(torch.tensor(symbols, dtype=torch.int64)) for each in (_runner(), collapsed))
    assert found.tolist() == wanted.tolist()


def _runner(made: list[Callable[[Tensor], Tensor]] = []) -> Callable[[Tensor], Tensor]:  # noqa: B006 - made once
    if not made:
        made.append(dy2st.to_static(collapsed, backend="onnxruntime"))
    return made[0]


def doubled(x: Tensor) -> Tensor:
    out = []
    for row in x:
        out.append(torch.tanh(row * 2))  # noqa: PERF401 - the model is about it
    return torch.stack(out) if len(out) > 0 else torch.zeros(0, 3)


def differences(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    last, before = torch.zeros(3), torch.ones(3)
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        out[t] = x[t] - last + before
        before = last
        last = x[t]
    return out, last, before


def behind_the_first(x: Tensor) -> tuple[Tensor, Tensor]:
    last = x[0]
    out = []
    for t in range(1, x.shape[0]):
        out.append(x[t] * last)
        last = x[t]
    return (torch.stack(out) if len(out) > 0 else torch.zeros(0, 3)), last


def smoothed(x: Tensor) -> Tensor:
    """A state that needs itself stays in a loop, and one that is the last row is read from the rows."""
    mean, last = torch.zeros(3), torch.zeros(3)
    for row in x:
        mean = mean * 0.5 + (row - last).abs()
        last = row
    return mean


@pytest.mark.parametrize(
    ("model", "sizes", "loops"),
    [(doubled, (0, 1, 5), 0), (differences, (0, 1, 5), 0), (behind_the_first, (1, 2, 5), 0), (smoothed, (0, 1, 5), 1)],
)
def test_what_needs_no_loop(model: Callable[..., object], sizes: tuple[int, ...], loops: int, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    program = dy2st.onnx.export(model, (torch.randn(4, 3),), file, dynamic_shapes=ROWS)
    found = kinds(program)
    assert found.count("Scan") + found.count("Loop") == loops
    report = dy2st.check(model, [(torch.randn(n, 3),) for n in (4, *sizes)], onnx_file=file, dynamic_shapes=ROWS)
    assert report.ok, report


def decoded(x: Tensor) -> Tensor:
    """A loop that makes a trip: what it stacks has its sizes."""
    h = x
    out = []
    for _ in range(6):
        h = torch.tanh(h + 1)
        out.append(h)
        if bool((h > 0.9).all()):
            break
    return torch.stack(out, 1)


def test_the_sizes_of_stacked_rows_are_not_told_again(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    program = dy2st.onnx.export(decoded, (torch.randn(4),), file, dynamic_shapes=ROWS)
    assert "Reshape" not in kinds(program)
    report = dy2st.check(decoded, [(torch.randn(n) - 2,) for n in (4, 1, 3)], onnx_file=file, dynamic_shapes=ROWS)
    assert report.ok, report
