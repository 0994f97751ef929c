"""A program that copies nothing where eager copies nothing: values, memory, gradients and exceptions are eager's."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch import Tensor, nn

import dy2st
from dy2st.errors import Dy2stError
from dy2st.static.undo_log import UndoLog
from tests.static.drawn_writes import models

NUMBERS = itertools.count()


def loaded(text: str, folder: Path) -> Any:
    name = f"drawn_writes_{next(NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def arguments(seed: int, leaf: Tensor | None) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    whole = torch.rand(6, dtype=torch.float64, generator=generator) * 2
    b = torch.rand(4, dtype=torch.float64, generator=generator) * 2
    if leaf is not None:
        whole, b = whole * leaf, b + leaf
    return whole[:4], b, whole[2:], torch.tensor([seed % 2, (seed + 1) % 4])


def run(model: Any, given: tuple[Tensor, ...]) -> Any:
    try:
        return model(*given)
    except Dy2stError:
        raise
    except Exception as error:  # noqa: BLE001  it may be of any kind
        return error


def memory(tensors: list[Any]) -> list[Any]:
    """Which of the values are one object, and which lie where in one storage."""
    found: list[Any] = []
    for one, two in itertools.combinations(tensors, 2):
        if not (isinstance(one, Tensor) and isinstance(two, Tensor)):
            continue
        shared = one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
        found.append((one is two, shared and (one.storage_offset(), two.storage_offset())))
    return found


def seen(call: Any, model: Any, seed: int, *, gradients: bool) -> Any:
    """What a call gives, what it has done to its arguments and its buffer, and what gradients flow."""
    leaf = torch.ones(1, dtype=torch.float64, requires_grad=True) if gradients else None
    given = arguments(seed, leaf)
    with torch.set_grad_enabled(gradients):
        result = run(call, given)
    if isinstance(result, Exception):
        return [type(result), str(result), *(each.tolist() for each in (*given, model.buf))]
    results = list(result) if isinstance(result, tuple) else [result]
    tensors = [*results, *given, model.buf]
    values = [each.detach().clone() if isinstance(each, Tensor) else each for each in tensors]
    wanted = [each for each in tensors if isinstance(each, Tensor) and each.requires_grad]
    found: Any = None
    if leaf is not None and wanted:
        total = torch.stack([each.sum() * (n + 1) for n, each in enumerate(wanted)]).sum()
        try:
            (found,) = torch.autograd.grad(total, leaf, allow_unused=True)
        except RuntimeError:
            found = "refused"
    return values, memory(tensors), [isinstance(each, Tensor) and each.requires_grad for each in tensors], found


def equal(one: Any, two: Any) -> bool:
    if isinstance(one, Tensor):
        return isinstance(two, Tensor) and torch.allclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)
    if isinstance(one, (list, tuple)):
        return type(one) is type(two) and len(one) == len(two) and all(map(equal, one, two))
    return type(one) is type(two) and (one == two or (one != one and two != two))


def check(text: str, folder: Path, *, gradients: bool) -> bool:
    """Whether the function could be captured; then static is eager."""
    module = loaded(text, folder)
    eager, static = module.Model(), module.Model()
    converted = dy2st.to_static(static)
    for seed in (0, 1, 2, 5):
        expected = seen(eager, eager, seed, gradients=gradients)
        try:
            actual = seen(converted, static, seed, gradients=gradients)
        except Dy2stError:
            return False
        assert equal(actual, expected), f"{text}\nseed {seed}\neager  {expected}\nstatic {actual}"
        eager.buf, static.buf = eager.buf.detach().clone(), eager.buf.detach().clone()
    return True


DRAWN = settings(
    max_examples=60, deadline=None, phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@given(text=models())
@DRAWN
def test_drawn_writes(text: str, tmp_path: Path) -> None:
    check(text, tmp_path, gradients=False)


@pytest.mark.slow
@given(text=models(raising=False))  # what a tensor with a history was is not put back
@DRAWN
def test_drawn_writes_with_gradients(text: str, tmp_path: Path) -> None:
    check(text, tmp_path, gradients=True)


def copies_of(function: Any, *args: Tensor) -> int:
    """How many copies of large tensors a call makes."""
    static = dy2st.to_static(function)
    with torch.no_grad():
        static(*(each.clone() for each in args))
        given = [each.clone() for each in args]
        with torch.profiler.profile(record_shapes=True) as profile:
            static(*given)
    large = [e for e in profile.events() if e.name in ("aten::clone", "aten::copy_") and _size(e) >= LARGE]
    return len(large)


def _size(event: Any) -> int:
    return max((int(torch.Size(shape).numel()) for shape in event.input_shapes if shape), default=0)


LARGE = 10_000


class Buffered(nn.Module):
    buf: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buf", torch.zeros(LARGE))

    def forward(self, x: Tensor) -> Tensor:
        i = 0
        while x.sum() < 5 and i < 6:
            self.buf[i] = x.sum()
            x = x + 1
            i += 1
        return x


def fresh(x: Tensor) -> Tensor:
    cache = torch.zeros(LARGE)
    i = 0
    while x.sum() < 9 and i < 6:
        cache[i] = x[0] * 2
        x = x + cache[: i + 1].sum() * 0.01 + 0.3
        i += 1
    return x


def given_cache(x: Tensor, cache: Tensor) -> Tensor:
    i = 0
    while x.sum() < 9 and i < 6:
        cache[:, i] = x
        x = x + cache[:, : i + 1].sum(1) * 0.01 + 0.3
        i += 1
    return x


def one_arm(x: Tensor, cache: Tensor) -> Tensor:
    for i in range(4):
        if x[i % 2] > 0:
            cache[i % 2, 0] += x.sum()
        x = x - 0.5
    return x


def nested(x: Tensor, cache: Tensor) -> Tensor:
    i = 0
    while x.sum() < 3 and i < 3:
        j = 0
        while x[0] < 5 and j < 2:
            cache[j, i] = x.sum()
            j += 1
            x = x + 0.25
        i += 1
    return x


def swapped(x: Tensor, one: Tensor) -> Tensor:
    one, other = one * 2, torch.zeros_like(one)
    while x.sum() < 3:
        other[0, 0] = one[1, 1] + x[0]
        one, other = other, one
        x = x + 1
    return x


def reassigned(x: Tensor, h: Tensor) -> Tensor:
    while x.sum() < 3:
        h = torch.roll(h, 1, 0)
        h[0, 0] = x[0]
        x = x + 1
    return x + h[0, 0]


CACHE = torch.zeros(2, LARGE)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (Buffered(), (torch.zeros(3),)),
        (fresh, (torch.zeros(3),)),
        (given_cache, (torch.zeros(2), CACHE)),
        (one_arm, (torch.ones(2), CACHE)),
        (nested, (torch.zeros(2), CACHE)),
        (swapped, (torch.zeros(2), CACHE)),
        (reassigned, (torch.zeros(2), CACHE)),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_nothing_large_is_copied(function: Any, arguments: tuple[Tensor, ...]) -> None:
    assert copies_of(function, *arguments) == 0


def test_the_users_copies_are_made() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(3)
        kept = h
        while x.sum() < 3:
            kept = h.clone()
            h[0] += 1
            x = x + 1
        return h, kept

    eager, static = (f(torch.zeros(2)) for f in (model, dy2st.to_static(model)))
    assert [each.tolist() for each in static] == [each.tolist() for each in eager]


def test_a_result_that_may_be_an_argument_is_that_very_tensor() -> None:
    def model(x: Tensor, a: Tensor) -> Tensor:
        c = torch.zeros(3)
        while x.sum() < 3:
            c = a
            x = x + 1
        return c

    static, a = dy2st.to_static(model), torch.ones(3)
    assert static(torch.zeros(2), a) is a
    first, second = (static(torch.ones(2) * 9, a) for _ in range(2))
    first.add_(1)
    assert second.tolist() == [0, 0, 0]


def test_autograd_refuses_what_it_refuses_in_eager() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        h = x * 1
        for _ in range(n):
            h[0] = torch.exp(h)[1]
            h.mul_(h.detach() + 1)
        return h

    for function in (model, dy2st.to_static(model)):
        x = torch.ones(3, requires_grad=True)
        function(x, torch.tensor(2)).sum().backward()
        assert x.grad is not None

    def refused(x: Tensor, n: Tensor) -> Tensor:
        h, total = x * 1, x.sum()
        for _ in range(n):
            total = total + (h * x).sum()
            h[0] = 3
        return total

    for function in (refused, dy2st.to_static(refused)):
        x = torch.ones(3, requires_grad=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            function(x, torch.tensor(2)).backward()


def test_what_raises_in_a_loop_with_gradients_is_eagers() -> None:
    def model(x: Tensor, cache: Tensor) -> Tensor:
        for i in range(4):
            cache[i] = x
            if x > 2:
                raise ValueError(f"at {i}")
            x = x * 1.5
        return x

    for function in (model, dy2st.to_static(model)):
        cache, x = torch.zeros(4), torch.ones((), requires_grad=True)
        with pytest.raises(ValueError, match=r"^at 2$"):
            function(x, cache)
        assert cache.tolist() == [1, 1.5, 2.25, 0]
        assert cache.grad_fn is not None


def test_the_log_of_writes_is_no_larger_than_what_is_written_to() -> None:
    log = UndoLog()
    tensor = torch.arange(3.0 * LARGE).reshape(3, LARGE)
    before = tensor.clone()
    with torch.no_grad():
        for i in range(50):
            log.note(tensor[i % 3])
            tensor[i % 3].mul_(0.5)
    assert sum(old.numel() for _, old in (*log._notes, *log._whole.values())) <= 2 * tensor.numel()
    assert log.undo([tensor])
    assert torch.equal(tensor, before)
