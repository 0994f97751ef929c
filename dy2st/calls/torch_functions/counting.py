"""Torch functions whose number of results follows from a dynamic size or from data, written so that any size will do.

``one_hot``, ``tril_indices``, ``triu_indices``, ``combinations``, ``cartesian_prod``, ``vander``, ``fftfreq``,
``rfftfreq``, ``unique`` and ``unique_consecutive``. The sizes of ``combinations`` are data to torch even where they are
known. Torch knows the shape of unique slices only where their dimension is counted from the front.

Source: ``one_hot`` of ATen/native/Onehot.cpp; ``tril_indices_cpu`` of ATen/native/TensorFactories.cpp; ``combinations``
and ``cartesian_prod`` of ATen/native/Itertools.cpp; ``linalg_vander`` of ATen/native/LinearAlgebra.cpp;
``fft_fftfreq`` of ATen/native/SpectralOps.cpp.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.staging.conditions import require
from dy2st.values.number import DTYPES, Number, cast, number_kind, number_tensor, one_element, symbolic


@replaces("one_hot")
def one_hot(tensor: torch.Tensor, num_classes: Any = -1) -> Any:
    """``functional.one_hot``: with as many classes as the data has, or a data-dependent number."""
    classes = symbolic(num_classes)
    inferred = isinstance(classes, int) and classes == -1
    if tensor.dtype is not torch.int64:
        return NotImplemented
    if ints(classes) and not inferred:
        # A class out of range is a place out of range, too.
        zeros = torch.zeros([*tensor.shape, classes], dtype=torch.int64, device=tensor.device)
        return zeros.scatter(-1, tensor.unsqueeze(-1), 1) if classes > 0 else NotImplemented
    if inferred:
        require(tensor.numel() > 0)
        classes = tensor.max().item() + 1
        torch._check(classes >= 0)
    else:
        require((tensor < classes).all())
    require((tensor >= 0).all())
    return (tensor.unsqueeze(-1) == torch.arange(classes, device=tensor.device)).to(torch.int64)


def _from_the_front(form: Any, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int) -> Any:
    """The call of ``form`` with a ``dim`` that is counted from the front, or NotImplemented where there is none."""
    dim = args[place] if len(args) > place else kwargs.get("dim")
    if not isinstance(dim, int) or not -tensor.dim() <= dim < 0:
        return NotImplemented
    return form(tensor, *args[:place], **{**kwargs, "dim": dim + tensor.dim()})


@replaces("unique")
def unique(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
    """``torch.unique(input, sorted, return_inverse, return_counts, dim)``: along a dimension from the end."""
    return _from_the_front(torch.unique, input, args, kwargs, 3)


@replaces("unique_consecutive")
def unique_consecutive(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
    """``torch.unique_consecutive(input, return_inverse, return_counts, dim)``: along a dimension from the end."""
    return _from_the_front(torch.unique_consecutive, input, args, kwargs, 2)


def _triangular(n: Any) -> Any:
    """The sum of 1, 2, ... n; zero if n is negative."""
    least = torch.sym_max(n, 0)
    return least * (least + 1) // 2


def _lower(rows: Any, columns: Any, offset: Any) -> Any:
    """How many places of a matrix lie on the diagonal or below: the sum of ``r + offset + 1``, kept in 0..columns."""
    right = offset - columns
    return _triangular(rows + offset) - _triangular(offset) - _triangular(rows + right) + _triangular(right)


def _places(chosen: torch.Tensor, count: Any) -> torch.Tensor:
    """Where ``chosen`` is True, in order [count, dimensions]."""
    return torch.ops.aten.nonzero_static.default(chosen, size=count)  # type: ignore[no-any-return]


def _indices(row: Any, col: Any, offset: Any, options: dict[str, Any], *, lower: bool) -> Any:
    rows, columns, offset = symbolic(row), symbolic(col), symbolic(offset)
    if options.get("out") is not None:
        return NotImplemented
    device = options.get("device")
    right = torch.arange(columns, device=device) - torch.arange(rows, device=device)[:, None]
    if lower:
        places = _places(right <= offset, _lower(rows, columns, offset))
    else:
        places = _places(right >= offset, rows * columns - _lower(rows, columns, offset - 1))
    return torch.stack([places.select(1, 0), places.select(1, 1)]).to(options.get("dtype") or torch.int64)


@replaces("tril_indices", sized=True)
def tril_indices(row: Any, col: Any, offset: Any = 0, **options: Any) -> Any:
    """``torch.tril_indices``: [2, count], row by row."""
    return _indices(row, col, offset, options, lower=True)


@replaces("triu_indices", sized=True)
def triu_indices(row: Any, col: Any, offset: Any = 0, **options: Any) -> Any:
    """``torch.triu_indices``: [2, count], row by row."""
    return _indices(row, col, offset, options, lower=False)


@replaces("combinations")
def combinations(input: torch.Tensor, r: int = 2, with_replacement: bool = False) -> Any:  # noqa: A002
    """``torch.combinations``: [count, r], in the order of the places."""
    if input.dim() != 1 or r < 1:
        return NotImplemented
    n = input.shape[0]
    grid = [torch.arange(n, device=input.device).reshape([-1 if d == k else 1 for d in range(r)]) for k in range(r)]
    chosen = torch.ones([n] * r, dtype=torch.bool, device=input.device)
    for first, second in itertools.pairwise(grid):
        chosen = chosen & (first <= second if with_replacement else first < second)
    count = 1
    for k in range(r):
        count = count * (n + k if with_replacement else n - k)
    places = _places(chosen, count // math.factorial(r))
    return input[places]


@replaces("cartesian_prod", sized=True)
def cartesian_prod(*tensors: Any) -> Any:
    """``torch.cartesian_prod``: [product of the sizes, number of tensors]."""
    if len(tensors) < 2 or any(t.dim() != 1 for t in tensors):
        return NotImplemented
    sizes = [t.shape[0] for t in tensors]
    ones = [1] * len(sizes)
    spread = [t.reshape([*ones[:k], -1, *ones[k + 1 :]]).expand(sizes).reshape(-1) for k, t in enumerate(tensors)]
    return torch.stack(spread, 1)


@replaces("vander", sized=True)
def vander(x: torch.Tensor, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803 - torch's name
    """``torch.vander``: [n, N], the powers of a vector's elements."""
    if x.dim() != 1:
        return NotImplemented
    powers = _powers(x, x.shape[0] if N is None else symbolic(N))
    return powers if increasing else powers.flip(1)


@replaces(torch.linalg.vander, sized=True)
def linalg_vander(x: torch.Tensor, *, N: Any = None) -> Any:  # noqa: N803
    """``torch.linalg.vander``: [..., n, N]."""
    if x.dim() < 1:
        return NotImplemented
    return _powers(x, x.shape[-1] if N is None else symbolic(N))


def _powers(x: torch.Tensor, count: Any) -> torch.Tensor:
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.int64)
    x = x.unsqueeze(-1)
    # One power too many, so that there may be none.
    factors = torch.cat([torch.ones_like(x), x.expand([*x.shape[:-1], count])], -1)
    powers: torch.Tensor = torch.ops.aten.slice.Tensor(factors.cumprod(-1), -1, 0, count)
    return powers


@replaces(torch.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, *, out: Any = None, **options: Any) -> Any:
    """``torch.fft.fftfreq`` of a data-dependent number: 0, 1, ... and then the negative ones, over ``n * d``."""
    if out is not None or _are_pythons(n, d):
        return NotImplemented
    count = _number(n).symbolic()
    places = torch.arange(count, device=options.get("device"))
    return _over(torch.where(places < (count + 1) // 2, places, places - count), n, d, options)


@replaces(torch.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, *, out: Any = None, **options: Any) -> Any:
    """``torch.fft.rfftfreq`` of a data-dependent number."""
    if out is not None or _are_pythons(n, d):
        return NotImplemented
    return _over(torch.arange(_number(n).symbolic() // 2 + 1, device=options.get("device")), n, d, options)


def _are_pythons(*numbers: Any) -> bool:
    return all(isinstance(each, (int, float)) for each in numbers)


def _number(value: Any) -> Number:
    """A number, or a tensor of one, as torch takes it where it wants a Python number."""
    if isinstance(value, torch.Tensor):
        kind = float if value.dtype.is_floating_point else int
        return Number(cast(one_element(value), DTYPES[kind]), kind)
    return Number(number_tensor(value), number_kind(value) or int)


def _over(places: torch.Tensor, n: Any, d: Any, options: dict[str, Any]) -> torch.Tensor:
    """As torch multiplies: by the inverse, in the dtype that is asked for."""
    length: Any = _number(n)
    inverse = 1.0 / (length * _number(d))
    made: torch.Tensor = places.to(options.get("dtype") or torch.get_default_dtype()) * inverse
    return made.requires_grad_() if options.get("requires_grad") else made
