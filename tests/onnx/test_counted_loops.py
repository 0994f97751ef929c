"""Loops that count their trips themselves: as loops of so many trips, whatever else ends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.counted_loops import count_trips
from tests.onnx.graph_text import OPSET, changed

# A loop with a counter, which may be read after it.
LOOP = """
    g (float x, int64 n) => (float last{results}) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        two = Constant<value_int = 2>()
        half = Constant<value_float = 0.5>()
        small = Constant<value_float = 0.05>()
        {start}
        count, last = Loop({given}, {begin}, x)
            <body = step (int64 t, bool going, int64 i, float r) => (bool on, int64 more, float s) {{
            number = Cast<to = 1>(i)
            halved = Mul(r, half)
            s = Add(halved, number)
            more = Add(i, one)
            large = Greater(halved, small)
            {on}
        }}>
    }}"""
LESS = {"given": ", go", "start": "go = Less(zero, n)", "begin": "zero"}
ALWAYS = {"given": ", ", "start": "", "begin": "zero"}
CALLS = [(np.array(3, np.float32), np.array(n)) for n in (5, 1, 0, 2, -3)]


def counted(on: str, given: dict[str, str], results: str = "") -> list[str]:
    source = LOOP.format(on=on, results=results, **given)
    return changed(source, lambda model: count_trips(model, OPSET), *CALLS)


def body_of(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("  ")]


@pytest.mark.parametrize(
    ("on", "given"),
    [
        ("on = Less(more, n)", LESS),
        ("on = Greater(n, more)", {**LESS, "start": "go = Greater(n, zero)"}),
        ("on = Less(i, n)", LESS),
        ("on = LessOrEqual(more, n)", {**LESS, "start": "go = LessOrEqual(zero, n)"}),
        ("on = GreaterOrEqual(n, more)", LESS),
        ("done = GreaterOrEqual(more, n) on = Not(done)", LESS),
        ("done = LessOrEqual(n, more) on = Not(done)", LESS),
        ("on = Less(more, n)", {**LESS, "begin": "two", "start": "go = Less(two, n)"}),
        ("on = Less(more, n)", ALWAYS),
        ("a = Add(more, two) on = Less(a, n)", ALWAYS),
        ("on = Less(more, two)", ALWAYS),
        ("on = Less(more, n)", {**LESS, "given": "two, go"}),
        ("on = Less(more, n)", {**LESS, "start": "go = Less(one, n)"}),
        ("on = Less(t, n)", ALWAYS),
    ],
)
@pytest.mark.parametrize("results", ["", ", int64 count"], ids=["", "read"])
def test_the_trips_are_counted(on: str, given: dict[str, str], results: str) -> None:
    """From any start, with a condition before the loop or without one; for no trip, too."""
    lines = body_of(counted(on, given, results))
    assert not {"Less", "Greater", "LessOrEqual", "GreaterOrEqual"} & set(lines)


@pytest.mark.parametrize("on", ["on = And(within, large)", "both = And(large, within) on = Identity(both)"])
@pytest.mark.parametrize("results", ["", ", int64 count"], ids=["", "read"])
def test_what_else_ends_the_loop_stays(on: str, results: str) -> None:
    lines = counted(f"within = Less(more, n) {on}", LESS, results)
    assert "  Greater" in lines
    assert "  Less" not in lines
    assert "  And" not in lines


@pytest.mark.parametrize(
    "on",
    [
        "on = Less(number, half)",
        "m = Add(n, i) on = Less(more, m)",
        "on = Greater(more, n)",
        "a = Mul(more, two) on = Less(a, n)",
        "within = Less(more, n) on = Or(within, large)",
        "within = Less(more, n) truth = Cast<to = 1>(within) more_so = Greater(truth, half) on = And(within, more_so)",
    ],
)
def test_other_conditions_stay(on: str) -> None:
    calls = [call for call in CALLS if call[1] <= 0 or "Greater(more" not in on]
    if "Or(" in on or "m = " in on:
        calls = []
    source = LOOP.format(on=on, results="", **{**LESS, "given": "two, go"} if not calls else LOOP_ONCE)
    found = body_of(changed(source, lambda model: count_trips(model, OPSET), *calls))
    assert {"Less", "Greater"} & set(found)
    assert on.count("Less(") == found.count("Less")


LOOP_ONCE = {"given": "two, go", "start": "go = Less(zero, n)", "begin": "zero"}


@pytest.mark.parametrize("on", ["less = LessOrEqual(more, n)", "t2 = Add(t, two) less = Less(t2, n)"])
def test_a_limit_at_the_end_of_int64(on: str) -> None:
    """``n`` is that where nothing limits the trips."""
    ends = "six = Constant<value_float = 6.0>() ends = Less(s, six)"
    source = LOOP.format(on=f"{ends} {on} on = And(ends, less)", results="", **ALWAYS)
    calls = [(np.array(3, np.float32), np.array(n)) for n in (2**63 - 1, 2**63 - 2, -(2**63), 3)]
    assert "And" not in changed(source, lambda model: count_trips(model, OPSET), *calls)


class Recurrent(torch.nn.Module):
    """A cell over rows that are counted in a ``while``."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.GRUCell(3, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        h, i = torch.zeros(x.shape[1], 4), 0
        while i < x.shape[0]:
            h = self.cell(x[i], h)
            i += 1
        return h, i


class Search(torch.nn.Module):
    """As many steps as a tensor says, and as a bound allows."""

    def forward(self, x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.zeros((), dtype=torch.int64)
        while steps < limit:
            x = x / 2 + steps
            steps = steps + 1
            if x.sum() < 1:
                break
        return x, steps


class Unlimited(torch.nn.Module):
    """As many steps as it takes, or as a number allows that may be the largest; at most the largest in any case."""

    def forward(self, x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.zeros((), dtype=torch.int64)
        while steps <= limit and x.sum() > 1:
            x = x / 2
            steps = steps + 1
        turns = 0
        while turns <= 2**63 - 1 and x.sum() < 9:
            x = x * 2 + 1
            turns += 1
        return x, steps


N, BATCH = Dim("n"), Dim("batch")


@pytest.mark.parametrize(
    ("model", "shapes", "calls", "kinds"),
    [
        (
            Recurrent(),
            ({0: N, 1: BATCH},),
            [(torch.randn(n, batch, 3),) for n, batch in ((4, 2), (1, 1), (0, 2), (2, 0))],
            {"GRU"},
        ),
        (
            Search(),
            ({0: N}, None),
            [(torch.ones(n) * 9, torch.tensor(limit)) for n, limit in ((3, 4), (2, 0), (1, 1), (2, 40), (0, 5))],
            {"Loop"},
        ),
        (
            Unlimited(),
            ({0: N}, None),
            [(torch.ones(3) * 9, torch.tensor(limit)) for limit in (4, 2**63 - 1, 2**63 - 2, 0, -1, -(2**63))],
            {"Loop"},
        ),
    ],
    ids=["recurrent", "search", "unlimited"],
)
def test_models(model: torch.nn.Module, shapes: Any, calls: Any, kinds: set[str], tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    program = dy2st.onnx.export(model, calls[0], file, dynamic_shapes=shapes)
    assert kinds <= {node.op_type for node in program.model.graph.all_nodes()}
    report = dy2st.check(model, calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report
