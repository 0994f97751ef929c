"""What makes sparse tensors: from here on their entries are tensors of the graph.

``sparse_coo_tensor`` of indices and values, and ``to_sparse`` of a dense tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.torch_functions.registry import replaces
from dy2st.staging.conditions import require
from dy2st.values.number import symbolic
from dy2st.values.sparse_tensor import SparseTensor, refuse_sparse_use

# Said of a new tensor, these change nothing of its values.
_PLAIN = ("dtype", "device", "requires_grad", "check_invariants")


@replaces("sparse_coo_tensor")
def sparse_coo_tensor(indices: Any, values: Any, size: Any = None, **options: Any) -> Any:
    """``torch.sparse_coo_tensor`` whose values are numbers, and whose size is given."""
    if size is None:
        refuse_sparse_use("is as large as its indices say")
    if not isinstance(indices, torch.Tensor) or not isinstance(values, torch.Tensor):
        return NotImplemented
    device, asked = options.get("device"), [value for name, value in options.items() if name not in _PLAIN]
    if any(asked) or options.get("requires_grad") or (device is not None and torch.device(device) != values.device):
        return NotImplemented
    if values.dim() != 1 or indices.dim() != 2 or indices.shape[0] != len(size):
        return NotImplemented
    if indices.is_floating_point() or indices.dtype is torch.bool:
        return NotImplemented
    sizes = list(map(symbolic, size))
    places = indices.to(torch.int64).unbind(0)
    for place, limit in zip(places, sizes, strict=True):
        require(((place >= 0) & (place < limit)).all(), RuntimeError)
    return SparseTensor.of(places, values.to(options.get("dtype") or values.dtype), sizes)


def _made_sparse(layout: torch.layout) -> Callable[..., Any]:
    def form(input: Any, *args: Any, **options: Any) -> Any:  # noqa: A002 - torch's name
        if isinstance(input, SparseTensor) or args or options or input.dim() == 0 or input.layout is not torch.strided:
            return NotImplemented
        if layout is torch.sparse_csr and input.dim() != 2:
            return NotImplemented
        places = (input != 0).nonzero().unbind(1)
        return SparseTensor.of(places, input[tuple(places)], input.shape, layout, one_each=True)

    return form


replaces(torch.Tensor.to_sparse, torch.Tensor.to_sparse_coo)(_made_sparse(torch.sparse_coo))
replaces(torch.Tensor.to_sparse_csr)(_made_sparse(torch.sparse_csr))


@replaces(torch.sparse.mm)
def mm(sparse: Any, dense: Any, *others: Any, **options: Any) -> Any:
    """``torch.sparse.mm`` of matrices of which neither is sparse, which it takes as well."""
    matrices = (sparse, dense)
    if others or options or not all(isinstance(each, torch.Tensor) for each in matrices):
        return NotImplemented
    if any(isinstance(each, SparseTensor) or each.layout is not torch.strided for each in matrices):
        return NotImplemented
    return torch.mm(sparse, dense)
