"""How many terms a model's largest sum has: what the tolerance is scaled by.

Eager runs once more, operator by operator, where a difference is beyond the tolerance of a model without large sums.
Products of matrices and convolutions count by their operations as torch counts them; what reduces, by how many elements
make one; cumulative sums and their like, by the length they run along.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from dy2st.parity.stages import run_model

if TYPE_CHECKING:
    from dy2st.parity.inputs import InputSet

# They choose one of their operands: nothing is rounded.
_EXACT = frozenset("all amax amin aminmax any argmax argmin count_nonzero max min".split())


# What torch neither counts the operations of nor tags as a reduction, by name: the terms by the operator's arguments.
_TERMS: dict[str, Callable[[Any], int]] = {
    **dict.fromkeys("cumsum cumprod logcumsumexp _softmax _log_softmax".split(), lambda a: a[0].size(a[1])),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), lambda a: math.prod(a[1])),
    "native_group_norm": lambda a: a[4] * a[5] // a[6],  # channels * size // groups
    # All that is added may end up in one element.
    **dict.fromkeys("scatter_add scatter_reduce index_add index_reduce".split(), lambda a: a[2].numel()),
    **dict.fromkeys(("index_put", "_index_put_impl"), lambda a: a[2].numel() if a[3:4] == (True,) else 1),
    **dict.fromkeys(("bincount", "_embedding_bag", "_embedding_bag_forward_only"), lambda a: a[1].numel()),
    **dict.fromkeys(("dot", "vdot", "mv", "addmv"), lambda a: a[-1].size(-1)),
    **dict.fromkeys(("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"), lambda a: a[0].numel()),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), lambda a: a[1].numel()),
    "_cdist_forward": lambda a: a[0].size(-1),
    "_scaled_dot_product_flash_attention_for_cpu": lambda a: max(a[0].size(-1), a[1].size(-2)),
}
# They add up in training alone, and normalise by what they are given else.
_BATCH_NORMS = frozenset(("native_batch_norm", "_native_batch_norm_legit"))


def largest_sum(model: Any, inputs: InputSet) -> int:
    """The most terms that eager adds up in one operator on this set; 1 where it can't be followed."""
    with _Counting() as counting:
        try:
            run_model(model, model, inputs)
        except Exception:  # noqa: BLE001 - a tensor of a class of its own, for one: the tolerance stays as it is
            return 1
    return int(counting.most)


class _Counting(TorchDispatchMode):
    """Looks at each operator that a model comes down to."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator, and count its terms."""
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        if isinstance(first, torch.Tensor) and first.numel() and (first.is_floating_point() or first.is_complex()):
            with contextlib.suppress(TypeError, IndexError, AttributeError):  # an overload of other arguments
                self.most = max(self.most, _terms(func, args, kwargs or {}, result, first))
        return result


def _terms(func: Any, args: Any, kwargs: dict[str, Any], result: Any, first: torch.Tensor) -> int:
    packet = func.overloadpacket
    if packet in flop_registry:
        count: Callable[..., int] = flop_registry[packet]
        return int(count(*args, **kwargs, out_val=result)) // (2 * first.numel())
    name = packet.__name__.removesuffix("_")
    if name in _TERMS:
        return int(_TERMS[name](args))
    source = args[0]
    if name in _BATCH_NORMS and args[5]:
        return int(source.numel() // source.size(1))
    if name in _EXACT or torch.Tag.reduction not in func.tags:
        return 1
    return int(source.numel() // first.numel())
