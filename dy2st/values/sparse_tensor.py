"""A sparse tensor that a model makes: its entries as tensors of the graph, which has no sparse ones.

It is a ``torch.Tensor`` to whoever asks for its type, and answers as torch's sparse tensor would; what it holds are the
places and the values of its entries. A product with a dense matrix takes the entries alone, as torch's does, so that
an infinity meets no zero that is not stored. Whatever is not listed here is refused.

Source: ``torch.sparse`` (https://docs.pytorch.org/docs/stable/sparse.html); ``_coalesce_sparse_cpu`` and ``s_addmm`` of
ATen/native/sparse/SparseTensor.cpp and SparseTensorMath.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from dy2st.errors import SparseTensorError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.tracing.row_reads import rows_at

_HINT = "make it dense (to_dense), or keep its indices and values as tensors of their own"
_PRODUCT_DTYPES = (torch.float32, torch.float64)
_MATRIX = 2


class SparseTensor(torch.Tensor):
    """A tensor of any number of sparse dimensions, by the entries that are stored.

    ``places`` has an int64 [entries] for each dimension, ``entries`` are the values there. Several entries of one place
    are added, if it is not ``one_each``; if it is, they are in the order of places. ``shown`` is the layout that it is
    taken to have.
    """

    places: tuple[torch.Tensor, ...]
    entries: torch.Tensor
    one_each: bool
    shown: torch.layout
    sizes: tuple[Any, ...]

    @staticmethod
    def of(
        places: Sequence[torch.Tensor],
        entries: torch.Tensor,
        sizes: Sequence[Any],
        shown: torch.layout = torch.sparse_coo,
        *,
        one_each: bool = False,
    ) -> SparseTensor:
        """The tensor of these entries."""
        make: Any = torch.Tensor._make_wrapper_subclass
        made: SparseTensor = make(SparseTensor, tuple(sizes), dtype=entries.dtype, device=entries.device)
        made.places, made.entries = tuple(places), entries
        made.one_each, made.shown, made.sizes = one_each, shown, tuple(sizes)
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What torch's function gives for it.

        Raises:
            SparseTensorError: it is not known what, in terms of the entries.
        """
        del types
        form = _FORMS.get(func)
        found = NotImplemented if form is None else form(*args, **(kwargs or {}))
        if found is NotImplemented:
            name = getattr(func, "__name__", "an operator")
            owner = getattr(func, "__self__", None)
            refuse_sparse_use(f"is given to {getattr(owner, '__name__', name) if name == '__get__' else name + '()'}")
        return found

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """It is no operand of an operator."""
        del types, args, kwargs
        refuse_sparse_use(f"is given to {func}")

    def like(self, entries: torch.Tensor) -> SparseTensor:
        """Other values at the same places."""
        return SparseTensor.of(self.places, entries, self.sizes, self.shown, one_each=self.one_each)


def refuse_sparse_use(what: str) -> NoReturn:
    """Raise for ``what`` is done with a sparse tensor, at the user's line."""
    raise SparseTensorError(
        f"a sparse tensor {what}, for which a graph has no operators",
        hint=_HINT,
        location=location_of(users_frame()),
    )


def coalesced(tensor: SparseTensor) -> SparseTensor:
    """One entry for each place, in the order of places."""
    if tensor.one_each:
        return tensor
    sizes = [torch.full((), 1, dtype=torch.int64) * size for size in tensor.sizes]
    keys = tensor.places[0]
    for place, size in zip(tensor.places[1:], sizes[1:], strict=True):
        keys = keys * size + place
    keys, inverse = torch.unique(keys, return_inverse=True)
    entries = torch.zeros_like(keys, dtype=tensor.entries.dtype).index_put((inverse,), tensor.entries, accumulate=True)
    places: list[torch.Tensor] = []
    for size in reversed(sizes[1:]):
        rest = keys.div(size, rounding_mode="floor")
        places.insert(0, keys - rest * size)
        keys = rest
    return SparseTensor.of((keys, *places), entries, tensor.sizes, tensor.shown, one_each=True)


def _dense(tensor: SparseTensor, *args: Any, **options: Any) -> Any:
    if args or any(value is not None for value in options.values()):
        return NotImplemented
    zeros = torch.zeros(tensor.sizes, dtype=tensor.entries.dtype)
    return zeros.index_put(tensor.places, tensor.entries, accumulate=True)


def _product(a: Any, b: Any, **options: Any) -> Any:
    """[n, m] @ [m] or [m, k]: each entry's value times the row of its column, added at its row."""
    if not isinstance(a, SparseTensor) or isinstance(b, SparseTensor) or b.dim() not in (1, _MATRIX) or options:
        return NotImplemented
    if len(a.sizes) != _MATRIX or a.entries.dtype is not b.dtype or b.dtype not in _PRODUCT_DTYPES:
        return NotImplemented
    if not (a.sizes[1] is b.shape[0] or a.sizes[1] == b.shape[0]):
        return NotImplemented
    entries = a.entries if b.dim() == 1 else a.entries[:, None]
    zeros = torch.zeros((a.sizes[0], *b.shape[1:]), dtype=b.dtype)
    return zeros.index_put((a.places[0],), entries * rows_at(b, a.places[1]), accumulate=True)


def _of_rank(rank: int) -> Callable[..., Any]:
    """The product with a dense tensor of that rank only."""

    def form(a: Any, b: Any) -> Any:
        return _product(a, b) if b.dim() == rank else NotImplemented

    return form


def _shown_as(layout: torch.layout) -> Callable[..., Any]:
    """The same in another layout; the compressed one has one entry for each place."""

    def form(tensor: SparseTensor, *args: Any, **options: Any) -> Any:
        compressed = torch.sparse_csr in (layout, tensor.shown)
        if args or options or (compressed and len(tensor.sizes) != _MATRIX):
            return NotImplemented
        if layout is tensor.shown:
            return tensor
        found = coalesced(tensor) if compressed else tensor
        return SparseTensor.of(found.places, found.entries, found.sizes, layout, one_each=found.one_each)

    return form


def _transposed(tensor: SparseTensor, *dims: int) -> Any:
    swaps = not dims or (len(dims) == _MATRIX and {d % _MATRIX for d in dims} == {0, 1})
    # What is compressed by rows is so by columns then, which is a layout of its own.
    if len(tensor.sizes) != _MATRIX or not swaps or tensor.shown is not torch.sparse_coo:
        return NotImplemented
    return SparseTensor.of(tensor.places[::-1], tensor.entries, tensor.sizes[::-1])


def _values(tensor: SparseTensor) -> Any:
    """Torch gives them where each place has one entry."""
    return tensor.entries.clone() if tensor.one_each else NotImplemented


def _indices(tensor: SparseTensor) -> Any:
    known = tensor.one_each and tensor.shown is torch.sparse_coo
    return torch.stack(tensor.places) if known else NotImplemented


def _times(a: Any, b: Any) -> Any:
    """Each entry times a number of Python's."""
    tensor, number = (a, b) if isinstance(a, SparseTensor) else (b, a)
    plain = type(number) in (int, float) and tensor.entries.is_floating_point()
    return tensor.like(tensor.entries * number) if plain else NotImplemented


def _each(operator: Callable[..., Any]) -> Callable[..., Any]:
    """A linear operator, done to each entry."""

    def form(tensor: SparseTensor) -> SparseTensor:
        return tensor.like(operator(tensor.entries))

    return form


def _size(tensor: SparseTensor, dim: int | None = None) -> Any:
    return torch.Size(tensor.sizes) if dim is None else tensor.sizes[dim]


def _getter(name: str) -> Any:
    return getattr(torch.Tensor, name).__get__


_PAIRED = (torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__)
_FORMS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.to_dense: _dense,
    torch.Tensor.to_sparse_csr: _shown_as(torch.sparse_csr),
    torch.Tensor.to_sparse_coo: _shown_as(torch.sparse_coo),
    torch.Tensor.to_sparse: _shown_as(torch.sparse_coo),
    torch.Tensor.coalesce: lambda tensor: coalesced(tensor) if tensor.shown is torch.sparse_coo else NotImplemented,
    torch.Tensor.values: _values,
    torch.Tensor.indices: _indices,
    torch.Tensor._nnz: lambda tensor: tensor.entries.shape[0],
    torch.Tensor.size: _size,
    torch.Tensor.dim: lambda tensor: len(tensor.sizes),
    torch.Tensor.detach: _each(torch.detach),
    torch.Tensor.clone: _each(torch.clone),
    torch.Tensor.__len__: lambda tensor: tensor.sizes[0],
    **dict.fromkeys(
        (torch.is_floating_point, torch.Tensor.is_floating_point), lambda tensor: tensor.entries.is_floating_point()
    ),
    **dict.fromkeys((torch.is_complex, torch.Tensor.is_complex), lambda tensor: tensor.entries.is_complex()),
    **dict.fromkeys((torch.mv, torch.Tensor.mv), _of_rank(1)),
    **dict.fromkeys((torch.mm, torch.Tensor.mm, torch.sparse.mm), _of_rank(_MATRIX)),
    **dict.fromkeys((torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__), _product),
    **dict.fromkeys((torch.t, torch.Tensor.t, torch.transpose, torch.Tensor.transpose), _transposed),
    **dict.fromkeys(_PAIRED, _times),
    **dict.fromkeys((torch.neg, torch.Tensor.neg, torch.Tensor.__neg__), _each(torch.neg)),
    _getter("shape"): _size,
    _getter("ndim"): lambda tensor: len(tensor.sizes),
    _getter("dtype"): lambda tensor: tensor.entries.dtype,
    _getter("device"): lambda tensor: tensor.entries.device,
    _getter("layout"): lambda tensor: tensor.shown,
    _getter("is_sparse"): lambda tensor: tensor.shown is torch.sparse_coo,
    _getter("is_sparse_csr"): lambda tensor: tensor.shown is torch.sparse_csr,
    _getter("requires_grad"): lambda tensor: tensor.entries.requires_grad,
    _getter("is_cuda"): lambda _: False,
}
