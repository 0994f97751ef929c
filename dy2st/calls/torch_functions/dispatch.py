"""What is done to torch functions under a capture before torch.export's own modes see them."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

from dy2st.calls.builtins.copies import copied
from dy2st.calls.torch_functions.factorisations import call_with_guard
from dy2st.calls.torch_functions.indexing import (
    get_item,
    has_late_mask,
    lies_inside,
    needs_view,
    set_item,
    without_lists,
)
from dy2st.calls.torch_functions.out_arguments import call_with_out, resized
from dy2st.calls.torch_functions.registry import call_for_any_size
from dy2st.calls.torch_functions.returned_inputs import returned_input
from dy2st.errors import CaughtError, DataError, Dy2stError
from dy2st.source.user_frames import is_users_frame
from dy2st.staging.session import MODE
from dy2st.tracing.grad_mode import gradient_mode
from dy2st.values.dtype_provenance import any_notes, note_made_from_lower
from dy2st.values.error_recovery import RecoveryValue, mutes
from dy2st.values.number import Number, number_tensor
from dy2st.values.number_arguments import call_with_numbers, has_number
from dy2st.values.staged_text import UNKNOWN, text
from dy2st.values.tagged_union import TaggedUnion, any_unions, distributed
from dy2st.values.tensor_literals import literal, of_tensors

# What they say is no value of the graph, though torch has operators of these names.
OF_DTYPES = (torch.promote_types, torch.result_type, torch.can_cast)


def refuse_caught_index() -> None:
    """Eager raises where an index is out of range, which a ``try`` around it may catch; a graph can't."""
    # of what calls ``__torch_function__``, which calls ``_called``, which asks
    by_the_user = is_users_frame(sys._getframe(3))
    capture = MODE.capture
    if capture is not None and by_the_user and (capture.watched or capture.may_catch(IndexError)):
        raise CaughtError(
            "a tensor is indexed by what only the graph knows, in a try statement that may catch an IndexError",
            hint="test the index with an if in place of the try",
        )


class NumbersMode(torch.overrides.TorchFunctionMode):
    """Torch functions that take staged numbers without looking for ``__torch_function__`` (indexing, factories)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Convert staged numbers among the arguments."""
        kwargs = kwargs or {}
        result = self._called(func, args, kwargs)
        if any_notes():
            note_made_from_lower(func, args, kwargs, result)
        return result

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:  # noqa: C901, PLR0911, PLR0912  one case for each kind of function
        if MODE.capture is not None and MODE.capture.recovering and mutes(args, kwargs):
            return RecoveryValue()
        if any_unions() and any(isinstance(leaf, TaggedUnion) for leaf in pytree.tree_leaves((args, kwargs))):
            with self:
                return distributed(func, *args, **kwargs)
        if kwargs.get("out") is not None and MODE.capture is not None:
            with self:
                return call_with_out(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if func in OF_DTYPES:
            with disable_proxy_modes_tracing():
                return func(*args, **kwargs)
        if func is torch.Tensor.__format__:
            return text(f"<tensor {UNKNOWN}>")
        if func in (torch.Tensor.resize_, torch.Tensor.resize_as_):
            return resized(*args, **kwargs)
        if func is torch._C._set_grad_enabled:
            gradient_mode().enabled = bool(args[0])
            return None
        if func == torch.Tensor.data.__get__:  # type: ignore[attr-defined]
            # The same memory, and known to the trace.
            if isinstance(args[0], torch.nn.Parameter) and MODE.capture is not None and MODE.capture.depth > 1:
                raise DataError(
                    "a parameter's data is used under a tensor condition or in a staged loop",
                    hint="use the parameter itself, and keep what changes in a buffer",
                )
            return args[0].detach()
        if func == torch.Tensor.data.__set__:  # type: ignore[attr-defined]
            raise DataError(
                "the data of a tensor is replaced", hint="use copy_() to change its values, or assign a new tensor"
            )
        if (same := returned_input(func, args, kwargs)) is not NotImplemented:
            return same
        if name in ("__getitem__", "__setitem__"):
            args = (args[0], without_lists(args[1]), *args[2:])
            if needs_view(args[1]) and not lies_inside(args[0], args[1]):
                refuse_caught_index()
        if name == "__getitem__" and needs_view(args[1]):
            return get_item(args[0], args[1])
        if name == "__setitem__" and (needs_view(args[1]) or has_late_mask(args[1]) or has_open_sizes(args[2])):
            value = args[2]
            if isinstance(value, Number):
                value = number_tensor(value).to(args[0].dtype)
            return set_item(args[0], args[1], value)
        if (
            func in (torch.where, torch.Tensor.where)
            and isinstance(args[0], torch.Tensor)
            and args[0].dtype is torch.uint8
        ):
            # Eager still takes a byte mask; the decompositions don't.
            args = (args[0].to(torch.bool), *args[1:])
        if of_tensors(name, args, kwargs):
            return literal(name, args, kwargs)
        if name == "__deepcopy__":
            return copied(*args)
        if name == "__reduce_ex__":  # of copy.copy()
            return torch.ops.aten.alias.default, (args[0],)
        result = call_for_any_size(func, args, kwargs)
        if result is NotImplemented:
            result = call_with_guard(func, args, kwargs)
        if result is NotImplemented:
            if has_number(args, kwargs):
                return call_with_numbers(func, args, kwargs)
            try:
                result = func(*args, **kwargs)
            except Exception as error:
                # stack() of nothing, for one.
                if isinstance(error, Dy2stError):
                    raise
                if MODE.capture is None or not args or not isinstance(args[0], (list, tuple)) or args[0]:
                    raise
                return MODE.capture.fail(error)
        if isinstance(result, torch.Tensor) and MODE.capture is not None:
            # A literal's value is no constant: a staged path may write to it.
            MODE.capture.tracing.forget_constant(result)
        if MODE.capture is not None:
            MODE.capture.compare_sizes()
        return result


def has_open_sizes(value: Any) -> bool:
    """Whether a tensor has sizes of which torch's own store would ask whether they are one."""
    return isinstance(value, torch.Tensor) and not all(isinstance(size, int) for size in value.shape)
