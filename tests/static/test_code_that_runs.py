"""Where names lead to what can't be looked at before each call, the code that has run is what counts."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import UnguardedError

logger = logging.getLogger(__name__)
X = torch.tensor([1.0, 2.0])


class Library:
    """A class of which a call needs little, and whose other methods lead anywhere."""

    def __init__(self) -> None:
        self.scale = 2.0

    def run(self, x: Tensor) -> Tensor:
        logger.debug("one of many")
        return self.scaled(x) if x.sum() > 0 else x - 1

    def scaled(self, x: Tensor) -> Tensor:
        return x * self.scale

    def load(self) -> Any:
        return warnings.filters


@pytest.fixture
def library() -> Library:
    return Library()


def test_what_the_code_reads_is_guarded(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def model(x: Tensor) -> Any:
        return library.run(x) if x.numel() < 9 else library.load()

    static = dy2st.to_static(model)

    def agree() -> None:
        for x in (X, -X):
            torch.testing.assert_close(static(x), model(x))

    agree()
    library.scale = 5.0
    agree()
    monkeypatch.setattr(Library, "scaled", lambda _, x: x * 7)
    agree()
    monkeypatch.setattr(library, "run", lambda x: x * 9)
    agree()
    monkeypatch.undo()
    agree()
    programs = static.cache_info().currsize
    monkeypatch.setattr(Library, "load", lambda _: 3)
    agree()
    assert static.cache_info().currsize <= programs + 1


def test_what_runs_is_refused(library: Library) -> None:
    def model(x: Tensor) -> Any:
        return x * len(library.load())

    with pytest.raises(UnguardedError, match="filters of warnings"):
        dy2st.to_static(model)(X)
