"""Whether what a run decides is no matter of luck: nothing was rounded on the way to it.

``x.sum() > 3`` on three ones is a tie, but 1, 2 and 3 are numbers of float32, and so is every partial sum: no order of
additions and no other kernel may come to anything else. Each operator runs once more in float64 on what it was given.
Where that makes a difference, it has rounded, and so is inexact what is computed from its result. A reduction also has
to be exact of its operands' magnitudes: so no partial sum is rounded either. All this holds of operators that every
kernel rounds alike, as IEEE 754 has it; ``exp`` is none of these. A comparison of inexact numbers that are far apart
is exact again. Which of equal elements ``topk`` names first is luck of another kind: a run that depends on it is not
exact.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from dy2st.parity.equal_choices import chooses_among_equals
from dy2st.parity.tolerances import TOLERANCES

# They move, choose or compare numbers, or are exact: nothing is rounded.
_UNROUNDED = frozenset(
    (
        "abs neg sign relu relu_ clamp clamp_min clamp_max max min amax amin aminmax maximum minimum fmax fmin floor "
        "ceil round trunc frac where masked_fill masked_select sort topk msort argsort kthvalue median mode index "
        "index_select index_put _index_put_impl gather scatter take select_scatter slice_scatter diagonal_scatter "
        "as_strided_scatter cat stack flip roll repeat repeat_interleave constant_pad_nd reflection_pad1d "
        "reflection_pad2d replication_pad1d replication_pad2d clone copy _to_copy to contiguous fill zero zeros_like "
        "ones_like full_like empty_like new_zeros new_ones new_full new_empty full zeros ones empty arange "
        "scalar_tensor lift_fresh lift_fresh_copy tril triu embedding one_hot rand randn randint bernoulli rand_like "
        "randn_like uniform normal unique unique_consecutive _unique2 nonzero max_pool2d_with_indices "
        "max_pool3d_with_indices _local_scalar_dense detach alias heaviside copysign nan_to_num isfinite bucketize "
        "searchsorted cummax cummin logical_not movedim rot90 view_as_real view_as_complex complex real imag "
        "resolve_conj resolve_neg"
    ).split()
)

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_REDUCTIONS = frozenset(
    "sum nansum mean mm bmm addmm addbmm baddbmm addmv addr dot vdot mv cumsum prod norm linalg_vector_norm".split()
)
_COMPARISONS = frozenset("lt le gt ge eq ne".split())
# What gives a number to Python.
_ASKING = frozenset("_local_scalar_dense is_nonzero equal".split())
_ROUNDED_ALIKE = _REDUCTIONS | frozenset(
    "add sub rsub mul div true_divide reciprocal sqrt square pow remainder fmod floor_divide addcmul addcdiv".split()
)


class ExactDecisions(TorchDispatchMode):
    """Follows inexact values, to where Python asks for one; ``exact`` is False then."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.exact = True
        # By their addresses; they stay alive, or another storage could come to have one.
        self._inexact: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator."""
        kwargs = kwargs or {}
        operands = _tensors((args, kwargs))
        inexact = any(_memory(each)[0] in self._inexact for each in operands)
        if _name(func) in _ASKING:
            self.exact = self.exact and not inexact
            return func(*args, **kwargs)
        if inexact and compares(func) and _is_far(*args[:2]):
            return func(*args, **kwargs)
        if is_rounded_alike(func):
            result, exact = run_exactly(func, args, kwargs)
        else:
            result = func(*args, **kwargs)
            exact = is_unrounded(func) or not any(map(_is_float, _tensors(result)))
            self.exact = self.exact and not chooses_among_equals(func, args, kwargs, result)
        if inexact or not exact:
            self._inexact.update(_memory(each) for each in _tensors(result))
        return result


def _tensors(values: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(values) if isinstance(each, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> tuple[int, Any]:
    storage = tensor.untyped_storage()
    return storage._cdata, storage  # noqa: SLF001 - torch gives it no other identity


def _is_far(left: Any, right: Any) -> bool:
    """Whether no two numbers are as near to each other as rounding may bring them."""
    one, other = (each.double() if isinstance(each, torch.Tensor) else float(each) for each in (left, right))
    apart = torch.as_tensor(one - other).abs()
    size = torch.maximum(torch.as_tensor(one).abs(), torch.as_tensor(other).abs())
    return bool((apart > TOLERANCES[torch.float32].atol + TOLERANCES[torch.float32].rtol * size).all())


def is_unrounded(func: Any) -> bool:
    """Whether an operator moves, chooses or compares numbers; a view has the memory of its operand."""
    schema = func._schema  # noqa: SLF001 - torch gives it no other name
    is_view = not schema.is_mutable and any(each.alias_info is not None for each in schema.returns)
    return is_view or _name(func) in _UNROUNDED


def compares(func: Any) -> bool:
    """Whether an operator compares numbers."""
    return _name(func) in _COMPARISONS


def is_rounded_alike(func: Any) -> bool:
    """Whether IEEE 754 says what an operator gives, or each of its additions."""
    return _name(func) in _ROUNDED_ALIKE


def run_exactly(func: Any, args: Any, kwargs: Any) -> tuple[Any, bool]:
    """What an operator gives that is rounded alike, and whether it is exact."""
    given = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))  # it may write to its operands
    operands = [each for each in pytree.tree_leaves(given) if _is_float(each)]
    result = func(*args, **kwargs)
    results = [each for each in pytree.tree_leaves(result) if _is_float(each)]
    if not results:
        return result, True
    if not operands:  # integers become floats
        return result, all(bool((each == each.round()).all()) for each in results)
    if any(each.dtype not in _NARROW for each in (*operands, *results)):
        return result, False  # there is nothing wider than float64
    try:
        return result, _is_exact(func, given, results)
    except RuntimeError:  # it has no float64
        return result, False


def _name(func: Any) -> str:
    """An operator's name, the same for the one that works in place."""
    name: str = func._schema.name  # noqa: SLF001 - torch gives it no other name
    return name.partition("::")[2].removesuffix("_")


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _is_exact(func: Any, given: Any, results: list[torch.Tensor]) -> bool:
    if not _same(results, _floats(func, _widened(given))):
        return False
    if _name(func) not in _REDUCTIONS:
        return True
    sizes = pytree.tree_map_only(torch.Tensor, lambda each: each.abs() if _is_float(each) else each, given)
    narrow = _floats(func, pytree.tree_map_only(torch.Tensor, torch.clone, sizes))
    return _same(narrow, _floats(func, _widened(sizes)))


def _floats(func: Any, given: Any) -> list[torch.Tensor]:
    args, kwargs = given
    return [each for each in pytree.tree_leaves(func(*args, **kwargs)) if _is_float(each)]


def _widened(given: Any) -> Any:
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda each: each.double() if _is_float(each) else each, given)
    return args, {name: torch.float64 if value in _NARROW else value for name, value in kwargs.items()}


def _same(results: list[torch.Tensor], wide: list[torch.Tensor]) -> bool:
    return len(results) == len(wide) and all(
        torch.equal(one.double().nan_to_num(), other.double().nan_to_num())
        for one, other in zip(results, wide, strict=True)
    )
