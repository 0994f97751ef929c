"""Row 54: a model that looks at a clock."""

from __future__ import annotations

import time

import torch
from harness import agree, dyn, refused, row
from torch import Tensor

import dy2st
from dy2st.errors import UnguardedError


@row(8, 54)
def test_a_limit_on_elapsed_time_is_not_exceeded_by_the_trace() -> None:
    """A trace of the loop takes longer than the limit, which no run of the code comes near."""

    def model(x: Tensor) -> tuple[Tensor, int]:
        begun, began = time.perf_counter(), time.time_ns()
        done = 0
        for each in [*x.unbind(1)] * 8:
            if each.sum() < 0:
                continue
            x = torch.tanh(x) + each.softmax(0)[:, None]
            done += 1
            if time.perf_counter() - begun > 0.5 or time.time_ns() - began > 500_000_000:
                break
        return x, done

    model(torch.ones(2, 3))  # torch's own first call takes a while
    agree(model, [(torch.ones(2, 3),), (-torch.ones(4, 3),)], (dyn(0),), whole=False)


@row(54)
def test_what_is_divided_by_elapsed_time_is_not_divided_by_nothing() -> None:
    def model(x: Tensor) -> tuple[Tensor, bool]:
        begun = time.time()
        x = x * 2 if x.sum() > 0 else x
        return x, 1 / (time.time() - begun) > 0

    agree(model, [(torch.ones(2),), (-torch.ones(2),)])


@row(54)
def test_to_static_takes_a_clock_only_where_it_is_a_constant() -> None:
    def model(x: Tensor) -> Tensor:
        return x * (time.time() > 0)

    def once(x: Tensor) -> Tensor:
        return x * dy2st.constant(time.time() > 0)

    with refused(UnguardedError, "asks the system"):
        dy2st.to_static(model)(torch.ones(2))
    assert dy2st.to_static(once)(torch.ones(2)).tolist() == [1, 1]
