"""torch functions whose result or written part has sizes that differ by input: ``squeeze``, ``copy_``, diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor
from torch.nn import functional

import dy2st

# Rows that begin with a positive number: two, one, all, none.
INPUTS = [
    (torch.tensor(rows),)
    for rows in (
        [[1.0, 2.0], [-1.0, 3.0], [-2.0, 1.0], [4.0, 0.0]],
        [[-1.0, 2.0], [3.0, 4.0], [-2.0, 1.0]],
        [[1.0, 2.0], [3.0, -1.0]],
        [[-1.0, 2.0], [-3.0, -4.0], [-1.0, 0.5]],
    )
]


def summed(x: Tensor) -> Any:
    index = (x[:, 0] > 0).nonzero().squeeze()
    return x[index].sum(), index.dim(), index.numel()


def reshaped(x: Tensor) -> Any:
    index = (x[:, 0] > 0).nonzero().squeeze()
    return x[index].reshape(-1, 2), x[index.reshape(-1)]


def written_to(x: Tensor) -> Any:
    index = (x[:, 0] > 0).nonzero().squeeze()
    y = x.clone()
    y[index] = 0.0
    return y


def iterated(x: Tensor) -> Any:
    total = x.sum() * 0
    for i in (x[:, 0] > 0).nonzero().squeeze(-1):
        total = total + x[i].squeeze().sum()
    return total


def several(x: Tensor) -> Any:
    column = x[x[:, 0] > 0][:, :1]
    return column.squeeze().sum(), column.squeeze(1), column.squeeze((0, 1)).sum(), column[None].squeeze(0)


def of_fixed_sizes(x: Tensor) -> Any:
    y = x[:, None, :1]
    return y.squeeze((1, 2)), y.squeeze(1), x.mean().squeeze(), x[0, 0].squeeze(0), x[0].squeeze(), x.squeeze(-1)


@row(59)
@pytest.mark.parametrize(
    "model",
    [summed, reshaped, written_to, iterated, several, of_fixed_sizes],
    ids=lambda model: model.__name__,
)
def test_squeezed(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS, (dyn(0),), paths=1)


def of_a_fixed_size_that_is_not_one(x: Tensor) -> Any:
    return x.squeeze(0), x.squeeze(), torch.squeeze(x[None], dim=1), x.squeeze((0, 1))


@row(59)
def test_nothing_to_squeeze() -> None:
    agree(of_a_fixed_size_that_is_not_one, [(torch.ones(3, 2),), (torch.zeros(3, 2),)], paths=1)


def of_a_declared_size(x: Tensor) -> Any:
    return x.squeeze(0).sum(), torch.searchsorted(x.exp().cumsum(1).squeeze(0), torch.ones_like(x)).reshape(-1)


def of_declared_sizes(x: Tensor) -> Any:
    y = x[None].squeeze()
    return y[-1].sum(), y.dim(), y.reshape(-1) + 1


@row(48)
def test_squeezed_where_a_declared_size_is_one() -> None:
    agree(of_a_declared_size, [*INPUTS, (torch.ones(1, 2),)], (dyn(0),), paths=1)
    inputs = [(torch.arange(1.0, 1.0 + n * m).reshape(n, m),) for n, m in ((2, 3), (1, 3), (4, 1), (1, 2), (3, 3))]
    agree(of_declared_sizes, inputs, (dyn(0, 1),), paths=1)


def declared_and_returned(x: Tensor) -> Any:
    return x.squeeze(0)


def returned(x: Tensor) -> Any:
    return x[(x[:, 0] > 0).nonzero().squeeze()]


@row(59)
def test_squeezed_on_some_paths() -> None:
    assert refuses(declared_and_returned, INPUTS[0], (dyn(0),)).code == "D2S303"


@row(59, 72)
def test_a_result_that_is_squeezed_on_some_paths() -> None:
    """Of one number of dimensions or another, by path: an optional of each."""
    report = dy2st.check(
        returned,
        [(torch.tensor(x),) for x in ([[1.0, 2.0], [-1.0, 3.0]], [[1.0, 2.0], [2.0, 3.0]], [[-1.0, 2.0], [-2.0, 3.0]])],
        dynamic_shapes=(dyn(0),),
    )
    assert report.outcome == "equal"


def stretched(x: Tensor) -> Any:
    y = x.clone()
    y.copy_(x[0])
    z = x.clone()
    z[1:].copy_(x[0, :1])
    z[:, 1].copy_(x.mean())
    z.narrow(1, 0, 1).copy_(x[:, 1:] * 2)
    total = torch.zeros(3, 2)
    total[:, 1:] = x[0, 0]
    total.T.copy_(x[0][:, None])
    counts = torch.zeros(2, 2, dtype=torch.int64)
    counts.copy_(x[0] * 3)
    return y, z, total, counts


def stretched_on_a_path(x: Tensor) -> Any:
    y = x.clone()
    if x.sum() > 0:
        y.copy_(x[0])
    for value in x[0]:
        y[:, :1].copy_(value)
        y[1:] = y[0] + 1
    return y


@row(31)
@pytest.mark.parametrize("model", [stretched, stretched_on_a_path], ids=lambda model: model.__name__)
def test_written_in_place(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS, (dyn(0),), paths=1)


def on_a_diagonal(x: Tensor) -> Any:
    y = x.clone()
    y.diagonal().fill_(2.0)
    y.diagonal(1).add_(x[0, 0])
    y.T.diagonal(1).mul_(3.0)
    kernel = x @ x.T
    kernel.diagonal().add_(0.1)
    part = kernel.diagonal(dim1=-2, dim2=-1)
    part += 1
    if x.sum() > 0:
        kernel.diagonal().copy_(x.mean())
    counts = (x[None] > 0).diagonal_scatter(x.diagonal()[None] < 0, 0, 1, 2)
    return y, kernel, part, counts, x[:, None].diagonal_scatter(x[:, None].diagonal(0, 0, 2) * 3, 0, 0, 2)


@row(31)
def test_written_on_a_diagonal() -> None:
    agree(on_a_diagonal, INPUTS, (dyn(0),), paths=1)


def pairs(x: Tensor) -> Any:
    return torch.combinations(x[0]), torch.combinations(torch.arange(4), 3), torch.combinations(x[:, 0], 2, True)


@row(59)
def test_combinations_of_any_number() -> None:
    agree(pairs, INPUTS, (dyn(0),), paths=1)


def solved_triangles(matrix: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    part = matrix[x > 0][:, x > 0]
    right, below = torch.ones(part.shape[0], 2), torch.ones(3, part.shape[0])
    return (
        torch.linalg.solve_triangular(part, right, upper=False),
        torch.linalg.solve_triangular(part.T, right, upper=True, unitriangular=True),
        torch.linalg.solve_triangular(part, below, upper=False, left=False),
    )


def gradient_of_a_triangle(matrix: Tensor, x: Tensor) -> Tensor:
    part = matrix[x > 0][:, x > 0].detach().requires_grad_()
    right, below = torch.ones(part.shape[0], 2), torch.ones(3, part.shape[0])
    with torch.enable_grad():
        first = torch.linalg.solve_triangular(part, right, upper=False).square().sum()
        second = torch.linalg.solve_triangular(part, below, upper=False, left=False, unitriangular=True).square().sum()
    return torch.autograd.grad(first + second, part)[0]


MATRIX = torch.tensor([[3.0, 0, 0, 0], [1, 2, 0, 0], [-1, 0.5, 4, 0], [2, 1, -2, 3]])
CHOICES = ([1.0, 2, -1, 3], [-1.0, 2, -1, 3], [1.0, 2, 1, 3], [-1.0, -1, -1, -1])


def test_triangles_of_a_size_that_is_data() -> None:
    agree(solved_triangles, [(MATRIX, torch.tensor(each)) for each in CHOICES], paths=1)


def test_gradients_of_triangles_of_a_size_that_is_data() -> None:
    report = dy2st.check(gradient_of_a_triangle, [(MATRIX, torch.tensor(each)) for each in CHOICES])
    assert report.outcome == "equal", report.problems()


def test_ends_of_slices_that_are_tensors_of_one_element() -> None:
    def model(x: Tensor, p: Tensor) -> tuple[Any, ...]:
        rounds = 0
        while (x[rounds + p - 1 :] > 1).any() and rounds < 3:
            rounds += 1
        y = x.clone()
        y[p - 2 : p] = 7
        return rounds, x[p - p.min() :], x[p - 2 : p + 1], x[min(p, 2) : p], y

    agree(model, [(torch.tensor([1.0, 2, -1, 3]), torch.tensor([place])) for place in (2, 3, 0, 1)])


# ---- sizes that are data


def frequencies(x: Tensor) -> Any:
    count = int(x.abs().sum())
    tensor = x.abs().sum().ceil().long()
    return (
        torch.fft.fftfreq(count),
        torch.fft.rfftfreq(count, 0.3),
        torch.fft.fftfreq(tensor, d=0.1, dtype=torch.float64),
        torch.fft.rfftfreq(tensor, device=x.device, dtype=x.dtype),
    )


@row(59)
def test_frequencies_of_a_number_that_is_data() -> None:
    agree(frequencies, INPUTS, (dyn(0),), paths=1)


def product(x: Tensor) -> Any:
    rows = x[x[:, 0] > 0]
    return torch.einsum("ni,mi,mj->nj", rows, rows, x[: rows.shape[0]])


@row(59)
def test_a_product_of_many_is_computed_from_left_to_right(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chooser:
        """What torch has of opt_einsum, where that is installed: it asks for all sizes."""

        @staticmethod
        def contract_path(_equation: str, *operands: Tensor, optimize: str) -> Any:
            return sorted((int(size), optimize) for operand in operands for size in operand.shape) and [
                [(0, 1), (0, 1)]
            ]

    inside = torch.backends.opt_einsum.m
    for name, value in (("_opt_einsum", Chooser), ("enabled", True), ("strategy", "auto")):
        monkeypatch.setattr(inside, name, value)
    agree(product, INPUTS, (dyn(0),), paths=1)


def scattered(x: Tensor) -> Any:
    if x.sum() > 3:
        x = x * 2
    return torch.as_strided_scatter(x.contiguous(), x[:1].clone(), (1, 2), (2, 1), 1), x


def strided(x: Tensor) -> Any:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        loss = (x.contiguous().as_strided((2,), (3,), 0) ** 2).sum()
        if loss > 2:
            loss = loss * 3
        return torch.autograd.grad(loss, x)[0]


@row(59)
@pytest.mark.parametrize("model", [scattered, strided])
def test_written_by_strides(model: Callable[[Tensor], Any]) -> None:
    agree(model, INPUTS, (dyn(0),))


@row(59)
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize("function", [torch.unique, torch.unique_consecutive])
def test_unique_slices(function: Callable[..., Any], dim: int) -> None:
    """Along a dimension counted from either end; what follows takes their shape for what it is."""

    def model(x: Tensor) -> Any:
        values, inverse, counts = function(x, dim=dim, return_inverse=True, return_counts=True)
        return values.cumsum(-1), values.flip(dim), values.shape[dim], inverse, torch.roll(counts, 1, dims=-1)

    tables = (
        [[1, 1, 2, 2]] * 3,
        [[0, 0, 1, 0], [1, 1, 0, 1], [1, 1, 0, 1]],
        [[3, 3, 3, 3]],
        [[1, 2, 1, 1], [1, 2, 2, 2]],
    )
    agree(model, [(torch.tensor(rows),) for rows in tables], (dyn(0),), paths=1)
    agree(model, [(torch.tensor(rows) > 1,) for rows in tables], (dyn(0),), paths=1)


@row(59)
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("function", [torch.Tensor.unique, torch.Tensor.unique_consecutive])
def test_unique_elements_along_the_only_dimension(function: Callable[..., Any], dim: int) -> None:
    def model(x: Tensor) -> Any:
        values, counts = function(x, return_counts=True, dim=dim)
        if values[0] > 0:
            values[: counts[0]] = 0
        return torch.repeat_interleave(values, counts, dim=-1).cumsum(-1)

    inputs = ([1.0, 1.0, 2.0, 1.0], [-1.0, 0.0, 0.0], [5.0], [2.0, 2.0, 2.0])
    agree(model, [(torch.tensor(each),) for each in inputs], (dyn(0),), paths=2)


@row(59)
@pytest.mark.parametrize("loss", [functional.cross_entropy, functional.nll_loss])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_loss_of_one_sample_without_a_batch(loss: Callable[..., Any], reduction: str) -> None:
    def model(x: Tensor, target: Tensor) -> Any:
        chosen = x[x > 0]
        plain = loss(chosen, target, reduction=reduction)
        return plain, loss(x, target.sum(), weight=x.abs() + 1, ignore_index=1, reduction=reduction)

    inputs = [(torch.tensor([0.5, 2.0, -1.0, 3.0]), torch.tensor(at)) for at in (0, 1, 2)]
    agree(model, [*inputs, (torch.tensor([1.0, 2.0]), torch.tensor(0))], (dyn(0), None), paths=1)
