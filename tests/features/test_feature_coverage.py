"""Row 68: which paths the inputs take, in reports and on the command line. Row 64: parity on each of them."""

from __future__ import annotations

import contextlib
import functools
import json
import linecache
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from harness import outcomes, row
from torch import Tensor, nn
from torch.export import Dim

import dy2st
import dy2st.onnx
import dy2st.operators
from dy2st.errors.places import from_here


def missed(model: Any, *inputs: Any) -> list[str]:
    """What no input takes: the lines' own text, and what never happened."""
    report = dy2st.check(model, [given if isinstance(given, tuple) else (given,) for given in inputs])
    assert report.ok, str(report)
    assert not report.paths_problem
    outcomes.append("Y")
    assert report.covered == (not report.uncovered)
    return [f"{site.source} {way}" for site in report.paths for way in site.uncovered]


def sites(model: Any, *inputs: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """The staged constructs with the ways that they can go."""
    report = dy2st.check(model, [(given,) for given in inputs])
    return [(site.kind, site.source, site.ways) for site in report.paths]


ONES = torch.ones(3)


@row(64, 68)
def test_arms() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x * 2
        elif x.min() < -5:
            x = x / 2
        else:
            x = x - 1
        if x.shape[0] > 2:
            x = x + 1
        return x if x.max() > 1 else -x

    assert missed(model, ONES, -ONES, -9 * ONES) == []
    assert missed(model, ONES, -ONES) == ["elif x.min() < -5: then"]
    assert missed(model, ONES) == [
        "if x.sum() > 0: else",
        "elif x.min() < -5: then",
        "elif x.min() < -5: else",
        "return x if x.max() > 1 else -x else",
    ]


@row(64, 68)
@pytest.mark.parametrize(
    ("least", "jumps", "ways"),
    [
        (2, False, ("more trips",)),
        (1, False, ("one trip", "more trips")),
        (0, False, ("no trip", "one trip", "more trips")),
        (2, True, ("one trip", "more trips", "all trips")),
    ],
)
def test_trips_that_the_declared_sizes_exclude(least: int, jumps: bool, ways: tuple[str, ...]) -> None:
    def model(x: Tensor) -> Tensor:
        total = x.sum()
        for line in x:
            total = total * line.max()
            if jumps and total > 9:
                break
        return total

    report = dy2st.check(model, [(torch.ones(5, 2),)], dynamic_shapes=({0: Dim("n", min=least)},))
    (found,) = [site.ways for site in report.paths if site.kind == "loop"]
    assert found == ways


@row(64, 68)
def test_trips() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while x.abs().max() > 1:
            x = x / 2
            steps += 1
        return x, steps

    assert missed(model, ONES, 1.5 * ONES, 9 * ONES) == []
    assert missed(model, ONES, 9 * ONES) == ["while x.abs().max() > 1: one trip"]
    assert missed(model, ONES) == ["while x.abs().max() > 1: one trip", "while x.abs().max() > 1: more trips"]


@row(64)
def test_what_is_wrong_on_a_path_is_found_by_the_inputs_that_take_it(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:  # noqa: SIM108  the arms of a statement
            x = x * 2
        else:
            x = x - 1
        while x.max() > 8:
            x = x / 2
        return x

    def wrong_arm(x: Tensor) -> Tensor:
        x = x * 2 if x.sum() > 0 else x - 1.5
        while x.max() > 8:
            x = x / 2
        return x

    def wrong_loop(x: Tensor) -> Tensor:
        x = x * 2 if x.sum() > 0 else x - 1
        if x.max() > 8:
            x = x / 2
        return x

    inputs = {"then": (ONES,), "else": (-ONES,), "one trip": (6 * ONES,), "more trips": (30 * ONES,)}
    for wrong, paths in ((wrong_arm, {"else"}), (wrong_loop, {"more trips"})):
        file = tmp_path / f"{wrong.__name__}.onnx"
        dy2st.onnx.export(wrong, (ONES,), file)
        report = dy2st.check(model, inputs, onnx_file=file)
        assert {each.name for each in report.inputs if each.outcome == "differs"} == paths
    report = dy2st.check(model, inputs)
    assert report.ok
    assert report.covered
    outcomes.append("Y")


@row(68)
def test_ways_that_are_possible() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(())
        for _ in dy2st.rolled(range(5)):
            total = total + x.sum()
        for _ in range(4):
            if total > 9:
                break
            total = total + 1
        while True:
            x = x + 1
            if x.sum() > 5:
                break
        for _ in range(3):
            total = total * 2
        return x, total

    assert sites(model, ONES, -ONES) == [
        ("loop", "for _ in dy2st.rolled(range(5)):", ("more trips",)),
        ("loop", "for _ in range(4):", ("one trip", "more trips", "all trips")),
        ("if", "if total > 9:", ("then", "else")),
        ("loop", "while True:", ("one trip", "more trips")),
        ("if", "if x.sum() > 5:", ("then", "else")),
    ]
    assert missed(model, ONES, -ONES, 9 * ONES) == []


class Child(nn.Module):
    """A child with a branch of its own, a hook, and a property."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.linear.register_forward_hook(lambda module, args, output: output * 2 if output.sum() > 50 else output)

    @property
    def scale(self) -> Tensor:
        """A branch in a property."""
        return self.linear.bias.sum() * 0 if self.linear.bias.sum() > 99 else torch.ones(())

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 3:
            return self.linear(x) * self.scale
        return self.linear(-x)


@functools.lru_cache
def constant(k: int) -> float:
    """Stays as it is."""
    return 2.0**k


def helper(x: Tensor) -> Tensor:
    """Called from a model, in a loop."""
    for line in x:
        if line.sum() > 1:
            continue
        if line.sum() < -20:
            break
        x = x + line
    else:
        x = x + constant(1)
    return x


class Model(nn.Module):
    """Calls of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.children_of_mine = nn.Sequential(Child(), nn.ReLU(), Child())
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        with contextlib.suppress(KeyError), contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.nullcontext())
            x = self.children_of_mine(x)
        return helper(x) + functools.partial(helper)(x).mean()


@pytest.mark.slow
@row(68)
def test_callees_are_followed() -> None:
    model = Model().eval()
    inputs = [torch.randn(2, 3), 9 * torch.ones(1, 3), -9 * torch.ones(3, 3)]
    found = missed(model, *inputs)
    sources = {source for _, source, _ in sites(model, *inputs)}
    assert {"if x.sum() > 3:", "for line in x:", "if line.sum() > 1:", "if line.sum() < -20:"} <= sources
    assert any("scale" not in line and "99" in line and line.endswith("then") for line in found), found
    assert "if line.sum() < -20: then" in found
    assert not any(line.startswith("if x.sum() > 3:") for line in found)
    assert torch.equal(model.calls, torch.zeros(())), "the state is put back"


@row(68)
def test_observing_leaves_no_trace() -> None:
    plain = {name: getattr(dy2st.operators, name) for name in ("if_", "loop", "call")}
    init = vars(Child)["scale"]
    missed(Model().eval(), torch.randn(2, 3))
    assert {name: getattr(dy2st.operators, name) for name in plain} == plain
    assert vars(Child)["scale"] is init


@row(68)
def test_lines_that_are_taken_out() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 1e9:  # dy2st: uncovered ok
            x = x * 0
        while x.sum() > 1e9:  # a comment; dy2st: uncovered ok (1, many)
            x = x / 2
        return x

    assert missed(model, ONES) == []
    report = dy2st.check(model, [(ONES,)])
    assert [site.accepted for site in report.paths] == [("then", "else"), ("one trip", "more trips")]
    assert [site.code for site in report.paths] == ["if x.sum() > 1e9", "while x.sum() > 1e9"]
    assert "  if x.sum() > 1e9     else; accepted: then" in str(report)


@row(68)
def test_the_other_ways_of_a_line() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 1e9:  # dy2st: uncovered ok (else)
            x = x * 0
        while x.sum() > 0:  # dy2st: uncovered ok (0, many)
            x = x - 1
        return x

    assert missed(model, -ONES) == [
        "if x.sum() > 1e9:  # dy2st: uncovered ok (else) then",
        "while x.sum() > 0:  # dy2st: uncovered ok (0, many) one trip",
    ]


@row(68)
def test_the_end_of_a_loop_that_may_be_left() -> None:
    def first(x: Tensor) -> Tensor:
        found = torch.zeros(())
        for line in x:
            if line > 1:
                found = line
                break
        return found

    ends = "for line in x: all trips"
    assert missed(first, torch.zeros(0), torch.tensor([2.0]), torch.tensor([0.0, 2.0])) == [ends]
    assert missed(first, torch.zeros(0), torch.tensor([2.0]), torch.tensor([0.0, 2.0, 0.0]), torch.zeros(3)) == []


@row(68)
def test_the_report() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x * 2
        return x

    report = dy2st.check(model, [(ONES,)])
    (site,) = report.paths
    assert Path(site.file) == Path(__file__)
    assert linecache.getline(site.file, site.line).strip() == site.source == "if x.sum() > 0:"
    (line,) = report.uncovered
    assert line == f"{__file__}:{site.line}: if x.sum() > 0: its else-arm never ran"
    assert f"not covered: {from_here(line)}" in str(report)
    plain = json.loads(report.to_json())
    assert plain["uncovered"] == [line]
    assert plain["paths"][0]["taken"] == ["then"]
    assert "not covered" not in str(dy2st.check(model, [(ONES,), (-ONES,)]))


SOURCE = """\
import torch


def model(x):
    if x.sum() > 0:
        x = x * 2
    while x.sum() > 100:
        x = x / 2
    return x


def example_inputs():
    return [(torch.ones(3),), (torch.full((3,), 20.0),), (torch.full((3,), 900.0),)]
"""


@row(68)
@pytest.mark.parametrize(
    ("options", "code"),
    [([], 1), (["--allow-uncovered"], 0), (["--json"], 1), (["--json", "--allow-uncovered"], 0)],
    ids=str,
)
def test_the_command_line(dy2st_command: Any, write: Any, options: list[str], code: int) -> None:
    write("user_model.py", SOURCE)
    done = dy2st_command("check", "user_model.py:model", *options)
    assert done.code == code, done.err
    assert "user_model.py:5: if x.sum() > 0: its else-arm never ran" in done.out
    assert "user_model.py:7" not in done.out
    if "--json" in options:
        (target,) = json.loads(done.out)["targets"]
        assert target["outcome"] == "equal"
        assert [site["line"] for site in target["paths"]] == [5, 7]
        assert json.loads(done.out)["exit_code"] == code
    more = SOURCE.replace("return [(torch.ones(3),)", "return [(-torch.ones(3),), (torch.ones(3),)")
    write("user_model.py", more)
    sys.modules.pop("user_model", None)
    assert dy2st_command("check", "user_model.py:model", *options).code == 0
