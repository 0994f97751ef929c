"""``torch.func``: gradients of functions, which become operators of the graph as those of tensors do.

A function is traced as it is called, on aliases of its arguments, and the trace is differentiated. ``vmap``
is a call for each row.

Source: ``torch.func.grad``, ``grad_and_value``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``, ``hessian`` and
``vmap`` of torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._vmap_internals import _vmap
from torch.utils import _pytree as pytree

from dy2st.calls.builtins.overloads import stands_for
from dy2st.calls.gradients.taking import gradients
from dy2st.calls.torch_functions.gradient_marks import mark
from dy2st.errors import NoGradientError, RaisedError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import emitting, gradient_mode
from dy2st.tracing.wanted_gradients import LEAF

Places = int | tuple[int, ...]


class _Call:
    """One call of a function on aliases of some of its arguments, which want gradients while it runs."""

    def __init__(self, capture: Session, function: Any, places: Sequence[int], args: Sequence[Any]) -> None:
        self.capture = capture
        self.leaves: list[torch.Tensor] = []
        given = list(args)
        for place in places:
            given[place] = pytree.tree_map_only(torch.Tensor, self._alias, given[place])
        self.specs = [pytree.tree_structure(given[place]) for place in places]
        mode = gradient_mode()
        self.before, mode.enabled = mode.enabled, True
        try:
            self.result = capture.call(function)(*given)
        finally:
            mode.enabled = self.before

    def _alias(self, value: torch.Tensor) -> torch.Tensor:
        with emitting():
            made: torch.Tensor = torch.ops.aten.alias.default(value)
        mark(self.capture, made, leaf=True)
        self.leaves.append(made)
        return made

    def pull(
        self, ends: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor | None], *, create_graph: bool = False
    ) -> list[Any]:
        """The gradients, in the forms of the arguments; zero where an argument has no part in it."""
        nodes = [self.capture.tracing.node_of(leaf) for leaf in self.leaves]
        for node in nodes:
            if node is not None:
                node.meta[LEAF] = True
        try:
            found = gradients(self.capture, ends, self.leaves, tangents, create_graph=create_graph or self.before)
        except RuntimeError as error:
            if "does not require grad" not in str(error):
                raise
            found = [(None, False)] * len(self.leaves)
        values = [
            torch.zeros_like(leaf) if value is None else value
            for leaf, (value, _) in zip(self.leaves, found, strict=True)
        ]
        made = []
        for spec in self.specs:
            made.append(pytree.tree_unflatten(values[: spec.num_leaves], spec))
            del values[: spec.num_leaves]
        # From here on the aliases are what their arguments are.
        for node in nodes:
            if node is not None:
                del node.meta[LEAF]
        return made


def _running() -> Session:
    assert MODE.capture is not None
    return MODE.capture


def _places(argnums: Places) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _as_told(found: list[Any], argnums: Places) -> Any:
    return found[0] if isinstance(argnums, int) else tuple(found)


@stands_for(torch.func.grad_and_value)
def grad_and_value(func: Any, argnums: Places = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function of the gradient and the value of ``func``."""

    def run(*args: Any, **kwargs: Any) -> Any:
        bound = (lambda *given: _running().call(func)(*given, **kwargs)) if kwargs else func
        call = _Call(_running(), bound, _places(argnums), args)
        value, *aux = call.result if has_aux else (call.result,)
        if not isinstance(value, torch.Tensor) or value.dim():
            raise RuntimeError("grad_and_value: expected the function to return a scalar tensor")
        found = _as_told(call.pull([value], [None]), argnums)
        return (found, (value.detach(), *aux)) if has_aux else (found, value.detach())

    return run


@stands_for(torch.func.grad)
def func_grad(func: Any, argnums: Places = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function of the gradient of ``func``."""
    both = grad_and_value(func, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return run


@stands_for(torch.func.vjp)
def vjp(func: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The value of ``func`` at ``primals``, and a function that pulls tangents back."""
    call = _Call(_running(), func, range(len(primals)), primals)
    value, *aux = call.result if has_aux else (call.result,)
    ends, spec = pytree.tree_flatten(value)

    def pull(tangents: Any, **_: Any) -> Any:
        given = pytree.tree_leaves(tangents)
        if pytree.tree_structure(tangents) != spec:
            raise RuntimeError("vjp: the tangents have another structure than what the function returns")
        return tuple(call.pull(ends, given))

    detached = pytree.tree_map_only(torch.Tensor, torch.detach, value)
    return (detached, pull, *aux)


@stands_for(torch.func.jvp)
def jvp(func: Any, primals: Any, tangents: Any, *, has_aux: bool = False, **_: Any) -> Any:
    """The value of ``func`` at ``primals``, and how it changes along ``tangents``.

    What is pulled back is a linear function of what is pulled. Its own gradient, of ``tangents``, is that change.

    Source: https://j-towns.github.io/2017/06/12/A-new-trick.html
    """
    capture = _running()
    call = _Call(capture, func, range(len(primals)), primals)
    value, *aux = call.result if has_aux else (call.result,)
    ends, spec = pytree.tree_flatten(value)
    if pytree.tree_structure(tuple(tangents)) != pytree.tree_structure(tuple(primals)):
        raise RuntimeError("jvp: the tangents have another structure than the primals")
    pulled = _Call(
        capture,
        lambda *weights: call.pull(ends, weights, create_graph=True),
        range(len(ends)),
        [torch.zeros_like(end) for end in ends],
    )
    found = pulled.pull(pytree.tree_leaves(pulled.result), pytree.tree_leaves(tangents))
    detached = pytree.tree_map_only(torch.Tensor, torch.detach, value)
    return (detached, pytree.tree_unflatten(found, spec), *aux)


@stands_for(torch.func.jacrev, torch.func.jacfwd)
def jacrev(func: Any, argnums: Places = 0, has_aux: bool = False, **_: Any) -> Callable[..., Any]:
    """A function of the Jacobian of ``func``, of a tensor by tensors; a row for each element of the result.

    So is ``jacfwd``, which computes the same numbers by columns.
    """

    def run(*args: Any) -> Any:
        call = _Call(_running(), func, _places(argnums), args)
        value, *aux = call.result if has_aux else (call.result,)
        if not isinstance(value, torch.Tensor) or not all(isinstance(size, int) for size in value.shape):
            raise NoGradientError(
                "jacrev() of a function that returns no tensor of a fixed shape", hint="return one tensor of such"
            )
        flat = value.reshape(-1)
        rows = [call.pull([flat[i]], [None]) for i in range(flat.shape[0])]
        found = [
            pytree.tree_map(lambda *each: torch.stack(each).reshape(*value.shape, *each[0].shape), *column)
            for column in zip(*rows, strict=True)
        ]
        return (_as_told(found, argnums), *aux) if has_aux else _as_told(found, argnums)

    return run


@stands_for(torch.func.hessian)
def hessian(func: Any, argnums: int = 0) -> Callable[..., Any]:
    """A function of the Hessian of ``func``."""
    found: Callable[..., Any] = jacrev(jacrev(func, argnums), argnums)
    return found


@stands_for(torch.vmap, torch.func.vmap, _vmap)
def vmap(func: Any, in_dims: Any = 0, out_dims: Any = 0, *_: Any, **__: Any) -> Callable[..., Any]:
    """A function that calls ``func`` for each row and stacks what it gives."""

    def run(*given: Any, **more: Any) -> Any:
        dims = [in_dims] * len(given) if isinstance(in_dims, int) else list(in_dims)
        pairs = list(zip(given, dims, strict=True))
        tensors = [(each, dim) for each, dim in pairs if isinstance(dim, int) and isinstance(each, torch.Tensor)]
        rows: list[Any] = [each.shape[dim] for each, dim in tensors]
        known = isinstance(out_dims, int) and len(rows) == sum(dim is not None for dim in dims)
        if not known or not rows or not isinstance(rows[0], int) or not rows[0]:
            raise RaisedError(
                "vmap() over other than the rows of tensors, of which there is a fixed number, can't be traced",
                hint="write a for loop over the rows in place of vmap",
                location=location_of(users_frame()),
            )
        if set(rows) != set(rows[:1]):
            raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got {rows}")
        called = _running().call(func)
        results = [
            called(*(each if dim is None else each.select(dim, i) for each, dim in pairs), **more)
            for i in range(rows[0])
        ]
        return pytree.tree_map(lambda *each: torch.stack(each, out_dims), *results)

    return run
