"""Rows 57 and 65: the rewritten code as text, and a debugger in the user's own source."""

# ruff: noqa: RET504, SIM108, T100 - the constructs under test are written as users write them
from __future__ import annotations

import bdb
import inspect
import linecache
import logging
import pdb
import sys
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from harness import outcomes, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import StagingError, UsageError
from dy2st.transforms import PASSES

if TYPE_CHECKING:
    from types import FrameType

HERE = str(Path(__file__))


def stepped(x: Tensor) -> Tensor:
    """A branch, a loop with a jump, a call."""
    total = torch.zeros(())
    if x.sum() > 0:
        total = total + 1  # in the then-arm
    else:
        total = total - 1  # in the else-arm
    for line in x:
        if line > 2:
            break  # out of the loop
        total = total + line  # in the loop
    with torch.no_grad():
        total = helped(total)  # in the with
    return total


def helped(y: Tensor) -> Tensor:
    """A callee."""
    while y > 1:
        y = y / 2  # in the callee
    return y


def line_of(remark: str) -> int:
    """The number of the line that ends with a remark."""
    lines = Path(HERE).read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if line.endswith(f"# {remark}"))
    return number


class Debugger(bdb.Bdb):
    """Stops at lines, and notes where, in which function, and what a variable was."""

    def __init__(self, *remarks: str) -> None:
        super().__init__(skip=["torch*"])
        self.stops: list[tuple[str, str]] = []
        self.seen: list[Any] = []
        for remark in remarks:
            assert self.set_break(HERE, line_of(remark)) is None

    def user_line(self, frame: FrameType) -> None:
        """A stop."""
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if self.break_here(frame):
            self.stops.append((frame.f_code.co_name, text.strip().partition("# ")[2]))
            self.seen.append(frame.f_locals.get("total", frame.f_locals.get("y")))
        self.set_continue()

    def run_call(self, function: Any, *args: Any) -> Any:
        """Debug a call."""
        return self.runcall(function, *args)


REMARKS = ("in the then-arm", "in the else-arm", "out of the loop", "in the loop", "in the with", "in the callee")


@row(65)
def test_breakpoints_in_converted_code_that_runs_eagerly() -> None:
    converted = dy2st.convert(stepped)
    for x in (torch.tensor([1.0, 1.5, 3.0]), torch.tensor([-1.0, -4.0])):
        expected, actual = Debugger(*REMARKS), Debugger(*REMARKS)
        assert torch.equal(expected.run_call(stepped, x), actual.run_call(converted, x))
        assert actual.stops == expected.stops
        assert len(actual.stops) >= 3
        assert [float(value) for value in actual.seen] == [float(value) for value in expected.seen]
    outcomes.append("Y")


@row(65)
def test_breakpoints_while_a_program_is_captured() -> None:
    debugger = Debugger(*REMARKS)
    program = debugger.run_call(dy2st.export, stepped, (torch.tensor([1.0, 1.5, 3.0]),))
    assert {stop for stop in debugger.stops if stop[0] == "stepped"} == {("stepped", remark) for remark in REMARKS[:5]}
    assert ("helped", "in the callee") in debugger.stops
    assert all(isinstance(value, Tensor) for value in debugger.seen)
    x = torch.tensor([-1.0, -4.0, 0.5])
    assert torch.equal(program.module()(x), stepped(x))


@row(65)
def test_breakpoint_and_set_trace_stop_in_the_users_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[tuple[str, int, list[str]]] = []

    def hook() -> None:
        frame = inspect.currentframe()
        assert frame is not None
        user = frame.f_back
        assert user is not None
        names = [name for name in user.f_locals if not name.startswith(("if_", "loop_"))]
        stops.append((user.f_code.co_filename, user.f_lineno, names))

    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            breakpoint()
            x = x * 2
        else:
            pdb.set_trace()
            x = x - 1
        return x

    monkeypatch.setattr(sys, "breakpointhook", hook)
    monkeypatch.setattr(pdb, "set_trace", hook)
    first = model.__code__.co_firstlineno
    dy2st.convert(model)(torch.ones(2))
    assert [(file, line - first) for file, line, _ in stops] == [(HERE, 2)]
    stops.clear()
    dy2st.export(model, (torch.ones(2),))
    assert [(file, line - first) for file, line, _ in stops] == [(HERE, 2), (HERE, 5)]
    assert all("x" in names for *_, names in stops)


@row(65)
def test_warnings_and_records_name_the_users_line(caplog: pytest.LogCaptureFixture) -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x * 2
        warnings.warn("noted", UserWarning, stacklevel=1)
        logging.warning("recorded")  # noqa: LOG015 - what is tested
        return x

    first = model.__code__.co_firstlineno
    for run in (lambda: dy2st.convert(model)(torch.ones(2)), lambda: dy2st.export(model, (torch.ones(2),))):
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.WARNING):
            warnings.simplefilter("always")
            run()
        assert [(w.filename, w.lineno - first) for w in caught if str(w.message) == "noted"] == [(HERE, 3)]
        assert [(r.pathname, r.lineno - first) for r in caplog.records if r.message == "recorded"] == [(HERE, 4)]


class Failing(nn.Module):
    """Fails in several places."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x)
        for line in x:
            if self.where == "loop":
                x = x + line.reshape(5)  # fails in the loop
        return self.linear(x) if self.where != "linear" else self.linear(x.reshape(-1))  # fails in the linear

    def inner(self, x: Tensor) -> Tensor:
        """A callee."""
        if self.where == "inner":
            return x @ torch.ones(7)  # fails in the callee
        return x


@row(65)
@pytest.mark.parametrize(
    ("where", "remark"),
    [("inner", "fails in the callee"), ("loop", "fails in the loop"), ("linear", "fails in the linear")],
)
def test_tracebacks_show_the_users_lines(where: str, remark: str) -> None:
    def frames(model: Any) -> list[tuple[str, int, str]]:
        with pytest.raises(RuntimeError) as caught:
            model(torch.ones(3, 2))
        found = traceback.extract_tb(caught.value.__traceback__)
        return [(f.name, f.lineno or 0, f.line or "") for f in found if f.filename == HERE and f.name != "frames"]

    model = Failing(where)
    expected, actual = frames(model), frames(dy2st.convert(model))
    assert actual == expected
    assert actual[-1][1] == line_of(remark)
    with pytest.raises(dy2st.errors.Dy2stError) as caught:
        dy2st.export(model, (torch.ones(3, 2),))
    assert caught.value.location is not None
    assert (caught.value.location.filename, caught.value.location.line) == (HERE, line_of(remark))
    outcomes.append("Y")


@row(60, 65)
def test_a_refusal_has_the_users_frames_in_its_traceback() -> None:
    def refused(x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = x.numpy()  # refused here
            x = x + torch.as_tensor(y)
        return x

    with pytest.raises(StagingError) as caught:
        dy2st.export(refused, (torch.ones(2),))
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == HERE]
    assert frames[-1].name == "refused"
    assert frames[-1].lineno == line_of("refused here")


# ---- row 57


@row(57)
def test_code_after_each_pass_and_as_a_diff() -> None:
    texts = [dy2st.code(stepped, after=kind.__name__) for kind in PASSES]
    assert texts[-1] == dy2st.code(stepped)
    assert len(set(texts)) > 4, "some passes change it"
    for text in texts:
        compile(text, "<code>", "exec")
        assert '"""A branch, a loop with a jump, a call."""' in text
        assert "# in the then-arm" in text
    before_branches = dy2st.code(stepped, after="LowerTry")
    assert "if x.sum() > 0:" in before_branches
    assert "d2s.if_(x.sum() > 0" in dy2st.code(stepped, after="LowerIf")

    diff = dy2st.code(stepped, diff=True).splitlines()
    assert diff[0] == "--- stepped"
    assert "-    if x.sum() > 0:" in diff
    assert any(line.startswith("+    if_") and "d2s.if_(" in line for line in diff)
    assert " def stepped(x: Tensor) -> Tensor:" in diff
    assert dy2st.code(stepped, after="LowerAssert", diff=True) == ""
    assert dy2st.code(dy2st.to_static(stepped), diff=True) == dy2st.code(dy2st.convert(stepped), diff=True)
    with pytest.raises(UsageError, match="there is no pass 'LowerNothing'"):
        dy2st.code(stepped, after="LowerNothing")
