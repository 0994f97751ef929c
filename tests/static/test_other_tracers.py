"""Other tracers that are given a static function or module say what to give them, or see the code behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import UsageError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(x))


def double(x: Tensor) -> Tensor:
    return x * 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit
@pytest.mark.parametrize("trace", [torch.fx.symbolic_trace, torch.jit.script])
@pytest.mark.parametrize("made", [Net, lambda: double], ids=["module", "function"])
def test_they_are_sent_to_the_original(trace: Callable[[Any], Any], made: Callable[[], Any]) -> None:
    static = dy2st.to_static(made())
    with pytest.raises(UsageError, match="is given a static function") as caught:
        trace(static)
    assert caught.value.hint is not None
    assert "original" in caught.value.hint
    trace(static.original)


def test_torch_export_sees_the_code() -> None:
    static = dy2st.to_static(Net())
    x = torch.ones(3, 2)
    program = torch.export.export(static, (x,))
    assert {node.name for node in program.graph.nodes} >= {"linear", "tanh"}
    torch.testing.assert_close(program.module()(x), static(x))


def test_isinstance_still_tells_what_it_is() -> None:
    static = dy2st.to_static(double)
    assert static.__class__ is type(static)
    assert not isinstance(static, nn.Module)
