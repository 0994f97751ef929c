"""Numbers that are data, where torch asks for a Python number: thresholds, replacements, slopes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIAL = torch.tensor([1.0, -2.0, 3.0, 0.25, -0.25, 0.0, -0.0, math.inf, -math.inf, math.nan])
THRESHOLDS = (0.5, 0.25, 2.0)
ONE = torch.tensor([1])


def _as_tensor(number: Tensor) -> Any:
    return number


def _as_number(number: Tensor) -> Any:
    return number.item()


FORMS = {
    "nan_to_num": lambda x, t: torch.nan_to_num(x, nan=t),
    "nan_to_num of all": lambda x, t: torch.nan_to_num(x, t, posinf=t * 2, neginf=-t),
    "nan_to_num_": lambda x, t: x.clone().nan_to_num_(posinf=t),
    "hardtanh": lambda x, t: F.hardtanh(x, -t, t),
    "hardtanh of one end": lambda x, t: F.hardtanh(x, -2.5, t),
    "hardtanh_": lambda x, t: F.hardtanh_(x * 2, -t, t),
    "softshrink": F.softshrink,
    "huber_loss": lambda x, t: F.huber_loss(x[:7], x[:7] * 2, delta=t, reduction="none"),
    "huber_loss of all": lambda x, t: F.huber_loss(x[:7], x[:7] * 2, delta=t),
    "smooth_l1_loss": lambda x, t: F.smooth_l1_loss(x[:7], x[:7] * 2, beta=t, reduction="sum"),
    "isclose": lambda x, t: torch.isclose(x, x * 1.25, rtol=t, atol=0.0),
    "isclose with NaN": lambda x, t: torch.isclose(x, x + 0.25, rtol=0.0, atol=t, equal_nan=True),
    "scatter": lambda x, t: x.scatter(0, ONE, t),
    "scatter, added": lambda x, t: x.scatter(0, torch.tensor([1, 1, 2]), t, reduce="add"),
    "scatter_, multiplied": lambda x, t: x.clone().scatter_(0, torch.tensor([1, 1, 2]), t, reduce="multiply"),
    "scatter_": lambda x, t: torch.zeros(2, 5).scatter_(1, torch.tensor([[0], [3]]), t) + x[:5],
    "quantile": lambda x, t: torch.quantile(x[:7], t / 4),
}


def _takes(form: Callable[[Tensor, Any], Tensor], read: Callable[[Tensor], Any], number: Any) -> bool:
    """Whether eager takes this kind of number."""
    try:
        form(SPECIAL, read(number))
    except (TypeError, RuntimeError):
        return False
    return True


@row(21)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_number_that_is_data(form: Callable[[Tensor, Any], Tensor], dtype: torch.dtype) -> None:
    numbers = [torch.tensor(number, dtype=dtype) for number in THRESHOLDS]
    kinds = [read for read in (_as_tensor, _as_number) if _takes(form, read, numbers[0].float())]
    assert kinds
    for read in kinds:

        def model(x: Tensor, number: Tensor, read: Callable[[Tensor], Any] = read) -> Any:
            return form(x, read(number))

        agree(model, [(SPECIAL.to(dtype), number) for number in numbers], paths=1)


@row(21)
def test_a_number_of_a_branch() -> None:
    def model(x: Tensor, t: Tensor) -> Tensor:
        while x.abs().max() > 1:
            by = t.item() if x.sum() > 0 else 0.75
            x = F.softshrink(x, by) / 2
        return torch.nan_to_num(x, nan=t.item())

    inputs = [(torch.tensor(values), torch.tensor(0.5)) for values in ([4.0, 1.0], [-9.0, 1.0], [0.5, math.nan])]
    agree(model, inputs, paths=3)


@row(21)
def test_numbers_and_tensors_are_reduced_where_they_are_scattered() -> None:
    def model(x: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        counts = torch.zeros(9, dtype=torch.int64).scatter_(0, index, 2, reduce="add")
        scaled = x.scatter(0, index, 2.5, reduce="multiply")
        return counts, scaled, x.scatter(0, index, x * 2, reduce="add"), scaled.scatter_(0, index, 3, reduce="add")

    inputs = [(torch.arange(float(n)), torch.tensor(index)) for n, index in ((6, [0, 1, 1, 3]), (9, [8, 8]), (1, []))]
    agree(model, [(x, index.long()) for x, index in inputs], paths=1, dynamic_shapes=(dyn(0), dyn(0)))


@row(21)
@pytest.mark.parametrize(
    "loss",
    [
        *(F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss),
        *(F.binary_cross_entropy, F.binary_cross_entropy_with_logits),
    ],
)
def test_losses_of_sizes_that_data_decide(loss: Callable[..., Tensor]) -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if x.shape[0] > y.shape[0]:
            x = x[: y.shape[0]]
        else:
            y = y[: x.shape[0]]
        return loss(x, y), loss(x[x > 0.5], target=y[x > 0.5], reduction="none")

    inputs = [(torch.rand(n), torch.rand(m)) for n, m in ((4, 4), (5, 3), (2, 6), (1, 2))]
    agree(model, inputs, paths=2, dynamic_shapes=(dyn(0), dyn(0)))


@row(21)
def test_whether_bools_are_close() -> None:
    def model(x: Tensor, t: Tensor) -> tuple[Tensor, ...]:
        one, other = x > 0, x > t
        tolerances: list[dict[str, Any]] = [{}, {"rtol": 0.5, "atol": 0.0}, {"rtol": 1.0}, {"atol": 1.0}]
        return tuple(torch.isclose(one, other, **each) for each in tolerances)

    agree(model, [(SPECIAL, torch.tensor(number)) for number in (2.0, -1.0)], paths=1)


REFUSED_BY_EAGER: dict[str, tuple[Any, type[Exception]]] = {
    "hardtanh": (lambda x, t: F.hardtanh(x, t, -t), ValueError),
    "softshrink": (lambda x, t: F.softshrink(x, -t), RuntimeError),
    "huber_loss": (lambda x, t: F.huber_loss(x, x * 2, delta=-t), RuntimeError),
    "smooth_l1_loss": (lambda x, t: F.smooth_l1_loss(x, x * 2, beta=-t), RuntimeError),
    "isclose": (lambda x, t: torch.isclose(x, x, atol=-t), RuntimeError),
}


@row(21)
@pytest.mark.parametrize(("form", "error"), REFUSED_BY_EAGER.values(), ids=REFUSED_BY_EAGER.keys())
def test_what_eager_refuses(form: Callable[[Tensor, Any], Tensor], error: type[Exception]) -> None:
    def model(x: Tensor, t: Tensor) -> Tensor:
        return form(x, t.item())

    x = torch.tensor([1.0, -2.0, 3.0])
    agree(model, [(x, torch.tensor(-0.5))], raising=[(x, torch.tensor(0.5))])
    with pytest.raises(error):
        model(x, torch.tensor(0.5))


@row(21)
@pytest.mark.parametrize("form", ["hardtanh", "softshrink", "huber_loss", "smooth_l1_loss", "nan_to_num"])
def test_derivatives_are_those_of_torch(form: str) -> None:
    def model(x: Tensor, t: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(FORMS[form](x, t.item()).sum(), x)[0]

    x = torch.tensor([1.0, -2.0, 3.0, 0.5, -0.5, 0.25, -0.25, 4.0, 1.5, -1.5])
    agree(model, [(x, torch.tensor(number)) for number in THRESHOLDS], paths=1)
