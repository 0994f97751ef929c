"""What is done to torch functions under a capture before torch.export's own modes see them."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.calls.communication import check_communicating
from dy2st.calls.torch_functions import (  # noqa: F401  each registers its family of functions
    attention,
    counting,
    factorisations,
    foreach,
    grouped_products,
    identities,
    least_squares,
    losses,
    matrices,
    memory_layout,
    number_ranges,
    packed_sequences,
    pooling,
    scaled_addends,
    sparse,
    splitting,
    squeezing,
    stacking,
    thresholds,
)
from dy2st.calls.torch_functions.broadcasting import with_ones
from dy2st.calls.torch_functions.eager_errors import eager_error
from dy2st.calls.torch_functions.gradient_marks import mark_made
from dy2st.calls.torch_functions.in_place_views import check_place
from dy2st.calls.torch_functions.indexing import (
    get_item,
    has_late_mask,
    lies_inside,
    may_lie_outside,
    needs_view,
    set_item,
    without_lists,
)
from dy2st.calls.torch_functions.memory_layout import apart_by_path
from dy2st.calls.torch_functions.out_arguments import call_with_out
from dy2st.calls.torch_functions.registry import ints, replacement
from dy2st.calls.torch_functions.tensor_sizes import with_sizes
from dy2st.errors import CaughtError, Dy2stError
from dy2st.source.user_frames import is_users_frame
from dy2st.staging.containers.lists import elements as rows_of
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.session import MODE
from dy2st.values.dtype_provenance import any_notes, note_made_from_lower
from dy2st.values.error_recovery import RecoveryValue, mutes
from dy2st.values.extensions import note_reading
from dy2st.values.number import Number, number_tensor
from dy2st.values.number_arguments import call_with_numbers, has_number
from dy2st.values.tagged_union import TaggedUnion, any_unions, distributed
from dy2st.values.tensor_literals import LITERALS, literal, of_tensors, with_data


def refuse_caught_index() -> None:
    """Eager raises where an index is out of range, which a ``try`` around it may catch; a graph can't."""
    # of what calls ``__torch_function__``, which calls ``_called``, which asks
    by_the_user = is_users_frame(sys._getframe(3))
    capture = MODE.capture
    if capture is not None and by_the_user and not capture.leaves(IndexError("index out of range")):
        raise CaughtError(
            "a tensor is indexed by a data-dependent value, in a try statement that may catch an IndexError",
            hint="test the index with an if in place of the try",
        )


# Whose operators fail where an index is out of range.
_INDEXING = frozenset("gather index_select take take_along_dim embedding scatter scatter_add __getitem__".split())


def after_guards(name: str, args: Any, kwargs: Any) -> Any:
    """Arguments that are computed after the guards so far: what eager tests first is to fail first."""
    capture = MODE.capture
    if name not in _INDEXING or capture is None or capture.guards.token is None:
        return args, kwargs
    tied = functools.partial(_tied_index, capture)
    start = 0 if name == "embedding" else 1  # what is indexed may go on as a view
    return (*args[:start], *pytree.tree_map(tied, args[start:])), pytree.tree_map(tied, kwargs)


def _tied_index(capture: Any, leaf: Any) -> Any:
    index = isinstance(leaf, torch.Tensor) and leaf.dtype in (torch.int64, torch.int32)
    return capture.guards.after(leaf) if index and capture.tracing.node_of(leaf) is not None else leaf


class NumbersMode(torch.overrides.TorchFunctionMode):
    """Torch functions that take staged numbers without looking for ``__torch_function__`` (indexing, factories)."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Convert staged numbers among the arguments."""
        kwargs = kwargs or {}
        check_communicating(func)
        result = self._called(func, args, kwargs)
        if any_notes():
            note_made_from_lower(func, args, kwargs, result)
        return result

    def _called(self, func: Any, args: Any, kwargs: Any) -> Any:  # noqa: C901, PLR0912  one case for each kind of function
        if MODE.capture is not None and MODE.capture.recovering and mutes(args, kwargs):
            return RecoveryValue()
        if any_unions() and any(isinstance(leaf, TaggedUnion) for leaf in pytree.tree_leaves((args, kwargs))):
            with self:
                return distributed(func, *args, **kwargs)
        if kwargs.get("out") is not None and MODE.capture is not None:
            with self:
                return call_with_out(func, args, kwargs)
        name = getattr(func, "__name__", "")
        note_reading(name)
        check_place(name, args)
        args = with_sizes(name, args)
        args, kwargs = with_ones(name, args, kwargs)
        args, kwargs = after_guards(name, args, kwargs)
        if name in ("__getitem__", "__setitem__"):
            args = (args[0], without_lists(args[1]), *args[2:])
            if needs_view(args[1]) and not lies_inside(args[0], args[1]):
                refuse_caught_index()
        if name == "__getitem__" and (needs_view(args[1]) or may_lie_outside(*args)):
            return get_item(args[0], args[1])
        if name == "__setitem__" and (needs_view(args[1]) or has_late_mask(args[1]) or has_open_sizes(args[2])):
            value = args[2]
            if isinstance(value, Number):
                value = number_tensor(value).to(args[0].dtype)
            return set_item(args[0], args[1], value)
        if name in LITERALS:
            args, kwargs = with_data(name, args, kwargs, _listed)
        if of_tensors(name, args, kwargs):
            return literal(name, args, kwargs)
        result = replacement(func, args, kwargs)
        if result is NotImplemented:
            if has_number(args, kwargs):
                return call_with_numbers(func, args, kwargs)
            try:
                result = func(*args, **kwargs)
            except Exception as error:
                if isinstance(error, Dy2stError) or MODE.capture is None:
                    raise
                # stack() of nothing, for one.
                nothing = bool(args) and isinstance(args[0], (list, tuple)) and not args[0]
                found = error if nothing else None
                if not nothing and MODE.capture.conditional:
                    found = eager_error(func, args, kwargs, error)
                if found is None:
                    raise
                return MODE.capture.fail(found)
        mark_made(kwargs, result)
        result = apart_by_path(name, args, result)
        if isinstance(result, torch.Tensor) and MODE.capture is not None:
            # A literal's value is no constant: a staged path may write to it.
            MODE.capture.tracing.forget_constant(result)
        if MODE.capture is not None:
            MODE.capture.compare_sizes()
        return result


def _listed(data: Any) -> Any:
    """A range of data-dependent length as a list."""
    return list(rows_of(data)) if isinstance(data, StagedIterable) else data


def has_open_sizes(value: Any) -> bool:
    """Whether a tensor has sizes of which torch's own store would ask whether they are one."""
    return isinstance(value, torch.Tensor) and not ints(*value.shape)
