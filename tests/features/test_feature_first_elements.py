"""``next`` of a generator expression; and ``any`` and ``all``, where elements that nobody asks for would fail.

The law: ``next((f(x) for x in xs if c), d)`` is ``for x in xs: if c: return f(x)`` and then ``return d``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

import dy2st


def first_above(x: Tensor) -> Tensor:
    return x.sum() * next((i for i in range(x.shape[0]) if x[i] > 1), -1)


def first_value(x: Tensor) -> Tensor:
    value = next((v for v in x if v > 1), None)
    return x * 2 if value is None else x * value


def first_with_place(x: Tensor) -> Tensor:
    place = next(i for i, v in enumerate(x) if v >= x.max())
    return x * place + next((v for v in x), x.sum())


def first_of_products(x: Tensor) -> Tensor:
    return x.sum() * next((i * j + 1 for i in range(x.shape[0]) for j in range(2) if x[i] * j > 1), -1)


def first_in_a_loop(x: Tensor) -> Tensor:
    total = torch.tensor(0)
    for r in range(int(x[0])):
        total = total + next((i for i in range(x.shape[0]) if x[i] > r), 100)
    return x * total


def looked_up_behind(x: Tensor) -> Tensor:
    """What is behind the element that decides is not there."""
    return x.sum() + next((x[i + 1] * i for i in range(x.shape[0]) if x[i] > 1), x[0] * -1)


def asked_behind(x: Tensor) -> Tensor:
    if any(x[i + 1] > 1 for i in range(x.shape[0])):
        x = x * 2
    return x if all(x[i + 1] < 9 for i in range(x.shape[0]) if x[i] > 0 and x[i] < 5) else -x


SIZES = [(torch.tensor(v),) for v in ([0.2, 3.0, 2.1], [0.0, 0.5], [3.0], [-1.0, 0.5, 0.0, 1.0, 2.0, 3.0], [3.0, 1.5])]


@row(24)
@pytest.mark.parametrize("model", [first_above, first_value, first_with_place, first_of_products, first_in_a_loop])
def test_the_first_of_a_generator_expression(model: Callable[..., Tensor]) -> None:
    agree(model, SIZES, (dyn(0),))


@row(24)
def test_nothing_is_looked_up_behind_the_element_that_decides() -> None:
    places = [(torch.tensor(v),) for v in ([0.2, 3.0, 2.1], [2.0, 0.5], [0.0], [0.0, 5.0, 7.0])]
    agree(looked_up_behind, places, (dyn(0),))
    agree(
        asked_behind, [(torch.tensor(v),) for v in ([0.2, 3.0, 9.0], [1.0, 9.5, 2.0], [-1.0, 1.5, 9.0, 1.0])], (dyn(0),)
    )


def first_of_python(x: Tensor) -> Tensor:
    place = next((i for i in range(3) if x[i] > 1), -1)
    return x.sum() * place + next((i for i in range(3) if i > 1), -1)


@row(24)
def test_the_first_of_what_python_goes_over() -> None:
    agree(first_of_python, [(torch.tensor(v),) for v in ([0.2, 3.0, 2.1], [0.0, 0.5, 0.0], [3.0, 0.0, 1.0])])


def nothing_found(x: Tensor) -> Tensor:
    return x * next(i for i in range(x.shape[0]) if x[i] > 1)


def taken_twice(x: Tensor) -> Tensor:
    left = iter([x[0], x[1], x[2]])
    return next((v for v in left if v > 1), x[0]) + next((v for v in left if v > 1), x[1])


@row(24)
def test_what_has_no_first_fails_and_an_iterator_is_refused() -> None:
    program = dy2st.export(nothing_found, (torch.ones(3),), dynamic_shapes=(dyn(0),)).module()
    assert program(torch.tensor([0.0, 2.0])).tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="eager raises here"):
        program(torch.zeros(2))
    assert refuses(taken_twice, (torch.ones(3),)).code == "D2S232"
