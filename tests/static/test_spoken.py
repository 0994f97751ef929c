"""What code prints, logs and warns of is said in each run of its program: as often, in the same order and words."""

# ruff: noqa: T201, G004, LOG004, LOG014, UP031  what is tested prints and logs

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import BackendError, Dy2stError, UnguardedError, UnsavableError

LOG = logging.getLogger("dy2st.tests.spoken")
ADAPTER = logging.LoggerAdapter(LOG, {"who": "adapter"})
INPUTS = [torch.ones(3), -torch.ones(3), torch.full((3,), 4.0), torch.ones(4), torch.full((6,), 0.5), torch.ones(3)]


def prints(x: Tensor) -> Tensor:
    print("start", x.shape, [x.sum(), {"a": 1.5}], x.sum().item(), x.dtype, sep="; ")
    steps = 0
    while x.sum() > 1:
        x = x / 2
        steps += 1
        print(steps, x.max(), end="!\n")
    print("end", steps, steps > 1, file=sys.stderr)
    print(f"x = {x}, mean {x.mean():.3f}, {x.sum().item()!r}; " + "steps %d of %s" % (steps, [steps, x[0]]))
    print(f"{x.max().item():.2f} and {steps!s}", ", ".join([str(x[0]), "b"]), f"{x.shape}")
    return x


def says_what_was(x: Tensor) -> Tensor:
    y = x * 2
    before, size = f"{y} {y.sum():.1f} {[y[0]]}", f"{y.shape[0]}"
    print(y)
    if x.sum() > 0:
        y += 1
    print("before %s" % y[1], before, "now", f"{y}", size, "%12s|%-8s|" % (f"{y.sum()}", y.sum().item()))
    return y


def logs(x: Tensor) -> Tensor:
    LOG.info("called with %s", x.shape[0])
    if x.sum() > 0:
        LOG.warning("positive: %s %.2f", x, x.sum().item())
        LOG.debug(f"not said: {x}")
    else:
        logging.getLogger(LOG.name).log(logging.ERROR, "negative")
    ADAPTER.error("adapted %d", x.shape[0])
    ADAPTER.log(logging.INFO, f"adapted {x.sum()}")
    return x * 2


def warns(x: Tensor) -> Tensor:
    if x.sum() > 0:
        warnings.warn("positive", RuntimeWarning, stacklevel=2)
    for i in range(2):
        warnings.warn(f"step {i}", stacklevel=1)
    return x * 2


class Speaks(nn.Module):
    """Speaks in training alone."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            print("training", (x > 0).sum())
        return x * 2


Said = list[Any]


def heard(call: Callable[[Tensor], Tensor], x: Tensor, caplog: Any, capsys: Any) -> Said:
    """What a call says, and its result."""
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.INFO, LOG.name):
        warnings.simplefilter("always")
        result = call(x)
    records = [(r.levelname, r.getMessage(), r.lineno, r.funcName, r.pathname) for r in caplog.records]
    warned = [(str(each.message), each.category, each.filename, each.lineno) for each in caught]
    return [result.tolist(), *capsys.readouterr(), records, warned]


@pytest.mark.parametrize("function", [prints, says_what_was, logs])
def test_it_says_the_same_in_each_call(function: Callable[[Tensor], Tensor], caplog: Any, capsys: Any) -> None:
    static = dy2st.to_static(function)
    for x in INPUTS:
        assert heard(static, x, caplog, capsys) == heard(function, x, caplog, capsys)
    assert static.cache_info().hits > 1


def test_warnings_name_their_lines(caplog: Any, capsys: Any) -> None:
    static = dy2st.to_static(warns)

    for x in INPUTS:
        said, wanted = (heard(each, x, caplog, capsys) for each in (static, warns))
        assert [each[:2] for each in said[-1]] == [each[:2] for each in wanted[-1]]
        assert said[-1][-2:] == wanted[-1][-2:]


def test_a_filter_decides_in_each_call() -> None:
    static = dy2st.to_static(warns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        static(torch.ones(3))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "step")
        with pytest.warns(RuntimeWarning, match="positive"):
            static(torch.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="positive"):
            static(torch.ones(3))


def test_a_level_that_changes(caplog: Any, capsys: Any) -> None:
    static, x = dy2st.to_static(logs), torch.ones(3)
    for level in (logging.INFO, logging.ERROR, logging.WARNING, logging.INFO):
        LOG.setLevel(level)
        try:
            caplog.clear()
            static(x)
            said = len(caplog.records)
            caplog.clear()
            logs(x)
            assert said == len(caplog.records)
        finally:
            LOG.setLevel(logging.NOTSET)


def test_a_module_speaks_in_its_mode(capsys: Any) -> None:
    static = dy2st.to_static(Speaks())
    for mode in (True, False, True):
        static.train(mode)
        for _ in range(2):
            static(torch.ones(3))
        assert capsys.readouterr().out == ("training tensor(3)\n" * 2 if mode else "")


def test_gradients_say_nothing_again(capsys: Any) -> None:
    def model(x: Tensor) -> Tensor:
        for _ in range(3):
            print("at", x.detach().max().item())
            x = x * 2 if x.sum() > 0 else x - 1
        while x.sum() < 50:
            x = x * 1.5
            print("while", x.detach().sum())
        return x

    static, answers = dy2st.to_static(model), []
    for call in (model, static, static, static):
        x = torch.full((3,), 0.75).requires_grad_()
        call(x).sum().backward()
        assert x.grad is not None
        answers.append((capsys.readouterr().out, x.grad.tolist()))
    assert all(each == answers[0] for each in answers)


def test_what_fails_afterwards_is_said_once(capsys: Any) -> None:
    def model(x: Tensor) -> Tensor:
        print("before")
        if x.sum() > 5:
            raise ValueError("too large")
        return x * 2

    static = dy2st.to_static(model)
    static(torch.ones(3))
    capsys.readouterr()
    with pytest.raises((ValueError, RuntimeError)):
        static(torch.full((3,), 9.0))
    assert capsys.readouterr().out == "before\n"


@pytest.mark.slow
def test_other_backends_say_it(capsys: Any) -> None:
    static = dy2st.to_static(prints, backend="aot_eager")
    for x in INPUTS[:2]:
        prints(x)
        wanted = capsys.readouterr()
        static(x)
        assert capsys.readouterr() == wanted


TEMPLATE = "%12s"
UNSAYABLE: dict[str, Callable[[Tensor], Any]] = {
    "a text that is filled up": lambda x: print(str(x.detach()).ljust(60) + "|"),
    "a text in a template": lambda x: print(TEMPLATE % f"{x.detach().sum()}"),
    "a number in a template": lambda x: print(TEMPLATE % (x.detach().sum().item(),)),
    "a text in capitals": lambda x: print(f"{x.detach()}".upper()),
    "a tensor with gradients": lambda x: print(x * 2),
    "an object": lambda x: print(LOG, x.shape),
    "the error that is handled": lambda x: LOG.error("failed", exc_info=True),
    "an exception": lambda x: LOG.exception("failed"),
}


@pytest.mark.parametrize("name", UNSAYABLE)
def test_what_can_not_be_said_again_is_refused(name: str) -> None:
    def model(x: Tensor) -> Tensor:
        UNSAYABLE[name](x)
        return x * 2

    with pytest.raises(UnguardedError, match="D2S229") as caught:
        dy2st.to_static(model)(torch.ones(3, requires_grad=True))
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_files_and_onnxruntime_say_nothing(tmp_path: Path) -> None:
    static = dy2st.to_static(prints)
    static(torch.ones(3))
    with pytest.raises(UnsavableError, match="print"):
        dy2st.save(static, tmp_path / "f.dy2st")
    with torch.no_grad(), pytest.raises((BackendError, UnguardedError)):
        dy2st.to_static(prints, backend="onnxruntime")(torch.ones(3))
    assert issubclass(UnsavableError, Dy2stError)


def test_filters_of_a_block_are_left_to_it() -> None:
    def model(x: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", "no such text")
            y = x * 2 if x.sum() > 0 else -x
        return y + 1

    static = dy2st.to_static(model)
    for x in (torch.ones(2), -torch.ones(2)):
        assert torch.equal(static(x), model(x))
    assert static.cache_info().hits > 0


def filtered(x: Tensor) -> Tensor:
    warnings.simplefilter("ignore")
    return x * 2


def warned_in_a_block(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("said to nobody", stacklevel=1)
    return x * 2


def recorded(x: Tensor) -> Tensor:
    with warnings.catch_warnings(record=True) as said:
        x = x * 2
    return x + len(said)


@pytest.mark.parametrize("model", [filtered, warned_in_a_block, recorded])
def test_filters_that_a_program_does_not_have_are_refused(model: Callable[[Tensor], Tensor]) -> None:
    with warnings.catch_warnings(), pytest.raises(UnguardedError):
        dy2st.to_static(model)(torch.ones(2))
