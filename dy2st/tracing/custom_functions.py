"""``torch.autograd.Function``: one operator of the graph, with the user's own backward.

Traced into, its backward would be the derivative of its forward: silently another one. So where a program is to be
differentiated, its ``apply`` is one operator. What it gives is found by running its forward on fake tensors.
Source: https://docs.pytorch.org/docs/stable/notes/extending.html.
"""

from __future__ import annotations

import itertools
import weakref
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, disable_proxy_modes_tracing, track_tensor_tree
from torch.utils import _pytree as pytree

from dy2st.errors import NoGradientError, StagingError
from dy2st.operators.export_session import current
from dy2st.tracing.grad_mode import gradient_mode
from dy2st.tracing.replaced import replaced

_COUNT = itertools.count()


class Context:
    """What ``forward`` gets as ``ctx`` where only its results are wanted."""

    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Nothing is differentiated through a captured forward."""

    save_for_forward = mark_non_differentiable = save_for_backward

    def mark_dirty(self, *tensors: Any) -> None:
        """A function that writes to its inputs is no operator without effects."""
        if tensors:
            raise StagingError(
                "a torch.autograd.Function writes to its inputs in place (mark_dirty)",
                hint="compute a new tensor in its forward",
            )

    def set_materialize_grads(self, value: bool) -> None:
        """See ``save_for_backward``."""


def without_foreign_functions() -> AbstractContextManager[None]:
    """Refuse the functions of libraries while something is traced that is to have gradients.

    Theirs would be the derivative of their forward, as with reentrant checkpoints: of what ran without autograd, none.
    """
    native = vars(torch.autograd.Function)["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        mode = gradient_mode() if current().capture is not None else None
        if mode is not None and mode.differentiated and not mode.functions:
            raise NoGradientError(
                f"{cls.__name__}, an autograd.Function of a library, is called by code that is not converted",
                hint="checkpoint(..., use_reentrant=False) has none; call a function of your own with apply()",
            )
        return native.__get__(None, cls)(*args, **kwargs)

    return replaced([(torch.autograd.Function, "apply", classmethod(apply))])


def has_own_setup(function: type) -> bool:
    """Whether a function's ``forward`` takes no ``ctx``, since ``setup_context`` does."""
    return function.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context  # type: ignore[attr-defined]


class CustomFunction(HigherOrderOperator):
    """``function.apply`` as an operator; its arguments are tensors and constants."""

    def __init__(self, function: Any) -> None:
        super().__init__(f"dy2st_function_{function.__name__}_{next(_COUNT)}")  # type: ignore[no-untyped-call]
        self.function = weakref.ref(function)
        self.apply = function.apply
        self.py_impl(DispatchKey.CompositeExplicitAutograd)(self.apply)
        self.py_autograd_impl(self._autograd)
        self.py_impl(FakeTensorMode)(self._fake)
        self.py_impl(ProxyTorchDispatchMode)(self._traced)
        self.py_functionalize_impl(self._functional)

    def __call__(self, *args: Any) -> Any:
        """``function.apply(*args)``."""
        return super().__call__(*args)  # type: ignore[no-untyped-call]

    def _autograd(self, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return self(*args)

    def _fake(self, mode: Any, *args: Any) -> Any:
        function: Any = self.function()
        with mode:
            result = function.forward(*args) if has_own_setup(function) else function.forward(_context(args), *args)
            return pytree.tree_map_only(torch.Tensor, torch.clone, result)

    def _traced(self, mode: Any, *args: Any) -> Any:
        proxies = pytree.tree_map(mode.tracer.unwrap_proxy, args)
        proxy = mode.tracer.create_proxy("call_function", self, proxies, {}, name="function")
        with disable_proxy_modes_tracing():
            results = self(*args)
        return track_tensor_tree(results, proxy, constant=None, tracer=mode.tracer)

    def _functional(self, ctx: Any, *args: Any) -> Any:
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(self(*ctx.unwrap_tensors(args)))


def _context(args: tuple[Any, ...]) -> Context:
    context = Context()
    context.needs_input_grad = (False,) * len(args)
    return context


_MADE: weakref.WeakKeyDictionary[Any, CustomFunction] = weakref.WeakKeyDictionary()


def operator_of(function: Any) -> CustomFunction:
    """The operator of a class that derives from ``torch.autograd.Function``."""
    found = _MADE.get(function)
    if found is None:
        found = _MADE[function] = CustomFunction(function)
    return found
