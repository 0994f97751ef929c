"""Code that names its caller by a frame, as loggers do: of the functions inside, and in each run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import Dy2stError


def told(word: object) -> None:
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno
    caller = frame.f_back
    assert caller is not None
    print(caller.f_code.co_name, caller.f_lineno, caller.f_globals["__name__"], frame.f_lineno - line, word)  # noqa: T201


def tells(x: Tensor) -> Tensor:
    if x.sum() > 0:
        told("positive")
    for i in range(2):
        if x.sum() > i:
            told(x.sum().item())
    print(sys._getframe().f_code.co_name)  # noqa: T201
    return x * 2


def test_functions_inside_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    static = dy2st.to_static(tells)
    static(torch.ones(3))
    capsys.readouterr()
    for x in (torch.ones(3), -torch.ones(3), torch.full((3,), 0.25)):
        tells(x)
        expected = capsys.readouterr().out
        assert torch.equal(static(x), x * 2)
        assert capsys.readouterr().out == expected


def _variables(x: Tensor) -> Tensor:
    frame: Any = inspect.currentframe()
    return x * len(frame.f_locals)


def _global(x: Tensor) -> Tensor:
    frame: Any = inspect.currentframe()
    return x * frame.f_globals["LEVEL"]  # type: ignore[no-any-return]


LEVEL = 3
REFUSED: dict[str, Callable[[Tensor], Tensor]] = {
    "the caller": lambda x: x * len(inspect.currentframe().f_back.f_code.co_name),  # type: ignore[union-attr]
    "the caller by its depth": lambda x: x * sys._getframe(1).f_lineno,
    "variables": _variables,
    "a global": _global,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_another_one_in_each_call_is_refused(name: str) -> None:
    with pytest.raises(Dy2stError, match="D2S229") as caught:
        dy2st.to_static(REFUSED[name])(torch.ones(3))
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_loguru() -> None:
    speaker: Any = import_module("loguru").logger
    said: list[tuple[Any, ...]] = []

    def keep(message: Any) -> None:
        said.append(tuple(message.record[key] for key in ("name", "function", "line", "message", "extra")))

    def inner(x: Tensor) -> Tensor:
        if x.sum() > 0:
            speaker.info("sum {} {k}", x.sum().item(), k=3)
            speaker.opt(depth=1).warning("of the caller")
            speaker.bind(part=1).debug(f"{x.sum().item():.2f}")
        return x * 2

    def model(x: Tensor) -> Tensor:
        return inner(x) + 1

    speaker.remove()
    handler = speaker.add(keep, level="DEBUG")
    try:
        static = dy2st.to_static(model)
        for x in (torch.ones(3), -torch.ones(3), torch.ones(3)):
            model(x)
            expected = [*said]
            said.clear()
            assert torch.equal(static(x), x * 2 + 1)
            assert said == expected
            said.clear()
        speaker.disable(__name__)
        static(torch.ones(3))
        assert not said
        with pytest.raises(Dy2stError, match="D2S229"):
            dy2st.to_static(lambda x: (speaker.bind(part=x).info("a tensor"), x)[1])(torch.ones(3))
        with pytest.raises(Dy2stError, match="D2S229"):
            dy2st.to_static(lambda x: (speaker.opt(lazy=True).info("{}", lambda: 1), x)[1])(torch.ones(3))
    finally:
        speaker.enable(__name__)
        speaker.remove(handler)
