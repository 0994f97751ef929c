"""Which of equal elements an operator names, where nothing says which: the second of two best scores, say.

torch documents no order of equal elements for ``topk`` and for a ``sort`` that is not stable, nor which place of
several ``kthvalue`` and ``mode`` give: it changes with sizes, processors and devices. Places of ``max``, ``argmax`` and
a stable sort are defined.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ANY_OF_EQUAL = frozenset("topk sort kthvalue mode".split())


def chooses_among_equals(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
    """Whether the places in ``result`` are those of some of several equal elements, of which others are as right.

    Args:
        func: an operator that has run.
        args: what it was given by position.
        kwargs: what it was given by name.
        result: what it has returned.
    """
    if _name(func) not in _ANY_OF_EQUAL or isinstance(result, torch.Tensor):
        return False
    given = _arguments(func, args, kwargs)
    x, values, dim = given["self"], result[0], given["dim"]
    if given.get("stable") or x.dim() == 0 or values.numel() == 0:
        return False
    if not given.get("sorted", True) and values.shape[dim] > 1:
        return True
    return _repeated_between(_ordered(x), _ordered(values if values.dim() == x.dim() else values.unsqueeze(dim)), dim)


class FirstOfEquals(TorchDispatchMode):
    """Has these operators name equal elements in the order in which they are, ``mode`` the last of them.

    ``met`` says whether there were any.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator."""
        result = func(*args, **(kwargs or {}))
        if not chooses_among_equals(func, args, kwargs or {}, result):
            return result
        self.met = True
        name, given = _name(func), _arguments(func, args, kwargs or {})
        x, dim = given["self"], given["dim"]
        descending = given["largest"] if name == "topk" else given.get("descending", False)
        values, places = torch.sort(x, dim=dim, descending=descending, stable=True)
        if name == "topk":
            values, places = (each.narrow(dim, 0, given["k"]) for each in (values, places))
        elif name == "kthvalue":
            values, places = (each.narrow(dim, given["k"] - 1, 1) for each in (values, places))
        elif name == "mode":
            values = result[0] if given["keepdim"] else result[0].unsqueeze(dim)
            same = x == values
            count = torch.arange(x.shape[dim], device=x.device).reshape([-1] + [1] * (x.dim() - 1 - dim % x.dim()))
            named = result[1] if given["keepdim"] else result[1].unsqueeze(dim)
            places = torch.where(same, count, -1).amax(dim, keepdim=True)
            places = torch.where(same.any(dim, keepdim=True), places, named)  # NaN equals nothing
        if name in ("kthvalue", "mode") and not given["keepdim"]:
            values, places = values.squeeze(dim), places.squeeze(dim)
        return values, places


def _name(func: Any) -> str:
    name: str = func._schema.name  # noqa: SLF001 - torch gives it no other name
    return name.partition("::")[2]


def _arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments of a call by name, defaults too."""
    named = func._schema.arguments  # noqa: SLF001 - torch gives it no other name
    return {
        **{each.name: each.default_value for each in named},
        **dict(zip((each.name for each in named), args, strict=False)),
        **kwargs,
    }


def _ordered(x: torch.Tensor) -> torch.Tensor:
    """Numbers in the same order; NaN equals itself and is above all others."""
    wide = x.double()
    return torch.where(wide.isnan(), torch.inf, wide.clamp(max=torch.finfo(torch.float64).max))


def _repeated_between(x: torch.Tensor, values: torch.Tensor, dim: int) -> bool:
    """Whether an element of ``x`` is there twice along a dimension, and neither below nor above all ``values``."""
    ascending = x.sort(dim).values
    one = ascending.narrow(dim, 0, x.shape[dim] - 1)
    other = ascending.narrow(dim, 1, x.shape[dim] - 1)
    within = (values.amin(dim, keepdim=True) <= one) & (one <= values.amax(dim, keepdim=True))
    return bool(((one == other) & within).any())
