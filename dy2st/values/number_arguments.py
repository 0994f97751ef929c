"""Torch functions called with staged numbers: each argument in the form that the function takes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.values.number import DTYPES, Number, number_kind, number_tensor, scalar_operand
from dy2st.values.tensor_literals import LITERALS, literal

# Functions that take a tensor for a number, most of them elementwise: it acts as a scalar of promoted dtype.
ELEMENTWISE = frozenset(
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow lt le gt ge eq ne less "
    "less_equal greater greater_equal not_equal maximum minimum fmax fmin bitwise_and bitwise_or bitwise_xor "
    "logical_and logical_or logical_xor atan2 hypot rsub float_power xlogy "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ "
    "__rmod__ __pow__ __rpow__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __and__ __rand__ __or__ __ror__ __xor__ "
    "__rxor__ __iadd__ __isub__ __imul__ __itruediv__ __div__ __idiv__ add_ sub_ mul_ div_ pow_ remainder_ "
    "floor_divide_ clamp clip clamp_ clip_ clamp_min clamp_max where lerp masked_fill masked_fill_ fill_ addcmul "
    "__rdiv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ heaviside ldexp xlog1py quantile nanquantile".split()
)


# Functions that take sizes, as a sequence or one by one.
FACTORIES = frozenset("zeros ones empty rand randn eye arange linspace randint randperm".split())

# Functions of a tensor that take the sizes of the result.
SHAPED = frozenset("new_zeros new_ones new_empty view reshape".split())


def has_number(args: Any, kwargs: Any) -> bool:
    """Whether a staged number is among the arguments."""
    return any(isinstance(leaf, Number) for leaf in pytree.tree_leaves((args, kwargs)))


def _symbolic(tree: Any) -> Any:
    return pytree.tree_map_only(Number, Number.symbolic, tree)


def call_with_numbers(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a torch function some of whose arguments are staged numbers."""
    name = getattr(func, "__name__", "")
    first = bool(args) and isinstance(args[0], Number) and name not in FACTORIES
    if name in LITERALS:
        return literal(name, args, kwargs)
    if name in ("full", "new_full", "full_like"):
        return _full(func, name, args, kwargs)
    if name in ELEMENTWISE or (first and _tensors(args[1:], kwargs)):
        return _elementwise(func, name, args, kwargs)
    if name == "__setitem__":
        target, index, value = args
        if isinstance(value, Number):
            value = number_tensor(value).to(target.dtype)
        return func(target, _symbolic(index), value)
    if name == "arange" and any(isinstance(a, (Number, torch.SymFloat)) and number_kind(a) is float for a in args):
        return _float_range(func, *args, **kwargs)
    if first:
        # A function of one number (torch.sqrt(n)): torch would refuse it for a Python number too, save a few.
        args = (_plain_tensor(args[0]), *args[1:])
    converted = _symbolic((args, kwargs))
    if (name in FACTORIES and name not in ("arange", "randint")) or name in SHAPED:
        sizes = converted if name != "linspace" else (converted[0][2:], converted[1].get("steps"))
        for size in pytree.tree_leaves(sizes):
            if isinstance(size, torch.SymInt):
                # Eager raises for a negative size, and so does every runtime.
                torch._check(size >= 0)
    return func(*converted[0], **converted[1])


def _tensors(args: Any, kwargs: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]


def _elementwise(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function whose numbers are operands beside tensors."""
    tensors = _tensors(args, kwargs)
    if tensors and name in ("where", "masked_fill", "masked_fill_"):
        tensors = [t for t in tensors if t.dtype is not torch.bool] or tensors
    if not tensors:
        converted = pytree.tree_map_only(Number, _plain_tensor, (args, kwargs))
    else:
        like = tensors[0]
        if name in ("fill_", "masked_fill", "masked_fill_") or (name.endswith("_") and not name.startswith("__")):
            like = args[0]
        in_doubles = name == "float_power"
        converted = pytree.tree_map_only(
            Number,
            lambda n: number_tensor(n).to(torch.float64) if in_doubles else scalar_operand(n, like),
            (args, kwargs),
        )
        converted = _as_tensors(name, converted, like)
    return func(*converted[0], **converted[1])


def _float_range(func: Any, *bounds: Any, dtype: torch.dtype | None = None, **options: Any) -> torch.Tensor:
    """``arange`` with data-dependent floats: torch's own rule asks for their values."""
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        made: torch.Tensor = func(*map(_symbolic, bounds), dtype=dtype, **options)
        return made
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = math.ceil(_float64(end - start) / step).symbolic()
    torch._check(count >= 0)
    steps = torch.arange(count, device=options.get("device"))
    first, by = (number_tensor(bound).to(torch.float64) for bound in (start, step))
    return (first + steps * by).to(dtype)


def _float64(number: Any) -> Number:
    return Number(number_tensor(number).to(torch.float64), float)


def _plain_tensor(number: Number) -> torch.Tensor:
    dtype = torch.get_default_dtype() if number.kind is float else DTYPES[number.kind]
    return number.tensor.to(dtype)


def _as_tensors(name: str, converted: Any, like: torch.Tensor) -> Any:
    """``clamp`` wants both bounds as tensors, or both as numbers."""
    if "clamp" not in name and "clip" not in name and name != "where":
        return converted

    def lift(value: Any) -> Any:
        return scalar_operand(value, like) if number_kind(value) is not None else value

    return pytree.tree_map(lift, converted)


def _full(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = {
        "full": ("size", "fill_value"),
        "new_full": ("self", "size", "fill_value"),
        "full_like": ("self", "fill_value"),
    }[name]
    given = dict(zip(names, args, strict=False)) | kwargs
    value = given.pop("fill_value")
    ordered = [_symbolic(given.pop(n)) for n in names[:-1]]
    kind = number_kind(value)
    if not isinstance(value, Number):
        return func(*ordered, value, **given)
    if name == "full" and given.get("dtype") is None:
        given["dtype"] = torch.get_default_dtype() if kind is float else DTYPES[kind or int]
    made = func(*ordered, 0, **given)
    # A sum with zeros would lose the sign of -0.0.
    return torch.fill(made, number_tensor(value))


Number.call_torch = staticmethod(call_with_numbers)
