"""What code does to the process, to autograd and to what its caller has, which no program could do: refused."""

from __future__ import annotations

import gc
import inspect
import itertools
import logging
import queue
import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import dy2st
from dy2st.errors import Dy2stError, UnguardedError

LIST, LOCK, LAYER, WEIGHT = [1], threading.Lock(), nn.Linear(3, 3), nn.Parameter(torch.ones(3))
LINE: queue.Queue[int] = queue.Queue()
GENERATOR = torch.Generator()
TABLE = torch.ones(2)


def after(effect: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def model(x: Tensor) -> Tensor:
        effect(x)
        return x * 2

    return model


def keeps_a_gradient(x: Tensor) -> Tensor:
    y = x * 2
    y.retain_grad()
    return y


def hooks_a_parameter(x: Tensor) -> Tensor:
    WEIGHT.register_hook(lambda gradient: gradient * 2)
    return x * WEIGHT


def marks_its_result(x: Tensor) -> Tensor:
    y: Any = x * 2
    y.mark = 5
    return y  # type: ignore[no-any-return]


def logs(_: Tensor) -> None:
    logging.getLogger("dy2st.tests.effects").critical("words", stack_info=True)


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "the caller's frame": lambda x: x * len(sys._getframe(1).f_code.co_name),
    "the stack": lambda x: x * len(inspect.stack()),
    "whether a lock is held": lambda x: x * 2 if LOCK.locked() else x,
    "what waits in a queue": lambda x: x * LINE.qsize(),
    "counts of references": lambda x: x * sys.getrefcount(LIST),
    "the seed of a generator": lambda x: x * GENERATOR.initial_seed(),
    "a text of a tensor": lambda x: x * len(str(TABLE)),
    "filters of warnings": after(lambda _: warnings.simplefilter("ignore")),
    "a log": after(logs),
    "the seed of Python": after(lambda _: random.seed(3)),
    "the seed of numpy": after(lambda _: np.random.seed(3)),  # noqa: NPY002
    "the state of torch's generator": after(lambda _: torch.set_rng_state(torch.get_rng_state())),
    "what numpy does at errors": after(
        lambda _: np.seterr(divide="ignore" if np.geterr()["divide"] == "warn" else "warn")
    ),
    "garbage": after(lambda _: gc.collect()),
    "a flag of a backend": after(
        lambda _: setattr(torch.backends.mkldnn, "enabled", not torch.backends.mkldnn.enabled)
    ),
    "a gradient that is kept": keeps_a_gradient,
    "a hook of a parameter": hooks_a_parameter,
    "an attribute of a result": marks_its_result,
    "a list of the caller's": lambda x: (LIST, x * 2),
    "the version of a tensor": lambda x: x * x._version,
    "what a view is a view of": lambda x: x if x._base is None else x * 2,
    "whether it is a view": lambda x: x if x._is_view() else x * 2,
    "a reentrant checkpoint": lambda x: checkpoint(LAYER, x.detach(), use_reentrant=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_at_its_line(name: str) -> None:
    before = np.geterr(), torch.backends.mkldnn.enabled, random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with pytest.raises(Dy2stError) as caught:
            dy2st.to_static(REFUSED[name])(torch.ones(3, requires_grad=True))
    finally:
        np.seterr(**before[0])
        torch.backends.mkldnn.enabled = before[1]
        random.setstate(before[2])
        np.random.set_state(before[3])  # noqa: NPY002
    assert caught.value.code
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_whether_lists_are_one_is_not_asked_of_arguments() -> None:
    static = dy2st.to_static(lambda x, one, other: x * 2 if one is other else x)
    for others in ([], [torch.Size([2])], [LOCK]):
        given = [*LIST, *others]
        with pytest.raises(Dy2stError, match="D2S223"):
            static(torch.ones(3), given, given)


@pytest.mark.filterwarnings("ignore")  # torch's own, of quantised tensors
def test_what_torch_can_not_trace_is_refused_with_a_code() -> None:
    given = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    with pytest.raises(Dy2stError, match="D2S301") as caught:
        dy2st.to_static(lambda x: x.dequantize() * 2)(given)
    assert caught.value.location is not None


def test_the_mode_of_gradients_that_the_code_leaves() -> None:
    def model(x: Tensor) -> Tensor:
        torch.set_grad_enabled(False)
        return x * 2 if x.sum() > 0 else x

    static = dy2st.to_static(model)
    for enabled in (True, False, True):
        with torch.set_grad_enabled(enabled):
            for each in (static, model):
                torch.set_grad_enabled(enabled)
                assert not each(torch.ones(3, requires_grad=True)).requires_grad
                assert not torch.is_grad_enabled()


def test_a_leaf_that_is_told_inside() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        y.requires_grad_(True)
        return y, y * y if x.sum() > 0 else y

    y, z = dy2st.to_static(model)(torch.ones(3))
    assert y.is_leaf
    z.sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [4, 4, 4]


def test_what_a_tensor_was_computed_of() -> None:
    def model(x: Tensor) -> tuple[Tensor, bool]:
        return x * (2 if x.is_leaf else 3) if x.grad_fn is None else x * 5, (x * 1).is_leaf

    static = dy2st.to_static(model)
    leaf = torch.ones(3, requires_grad=True)
    for x in (leaf, leaf * 1, torch.ones(3), leaf * 1, leaf):
        for actual, expected in zip(static(x), model(x), strict=True):
            assert torch.equal(torch.as_tensor(actual), torch.as_tensor(expected))


def test_attributes_that_come_to_tensors() -> None:
    def model(x: Tensor) -> Tensor:
        return x * getattr(x, "scale", 1) * getattr(LAYER.weight, "scale", 1)

    static, x, weight = dy2st.to_static(model), torch.ones(3), LAYER.weight
    for holder in (x, weight):
        for value in (None, 2, 3, None):
            if value is not None:
                holder.scale = value  # type: ignore[attr-defined]
            for _ in range(2):
                assert torch.equal(static(x), model(x))
            if value is not None:
                del holder.scale


def test_a_refusal_without_a_place_of_its_own_tells_the_function() -> None:
    counter = itertools.count()

    def counted(x: Tensor) -> Tensor:
        return x * next(counter)

    with pytest.raises(UnguardedError) as raised:
        dy2st.to_static(counted)(torch.ones(3))
    assert raised.value.location is not None
    assert "def counted" in (raised.value.location.text or "")
