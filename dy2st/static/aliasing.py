"""What an operator's result shares memory with, as far as its schema and torch's documentation tell.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.tracing.grad_mode import HANDED_ON, WORKED_ON
from dy2st.tracing.guards import require_op, tied_op
from dy2st.tracing.subgraph import written_inputs

ATEN = torch.ops.aten
CLONES = (ATEN.clone.default, ATEN.lift_fresh_copy.default, tied_op)

# Operators that give back their operand as it is, where there is nothing to do; their schemas don't say so.
_MAYBE_THE_SAME = frozenset(
    "to contiguous reshape flatten type_as float double half bfloat16 int long bool dropout feature_dropout "
    "alpha_dropout native_dropout expand_as view_as reshape_as broadcast_to squeeze ravel conj resolve_conj "
    "resolve_neg real imag atleast_1d atleast_2d atleast_3d movedim moveaxis swapaxes chunk tensor_split split "
    "unflatten numpy_T positive cpu cuda broadcast_tensors meshgrid matrix_H adjoint narrow hsplit vsplit dsplit pad "
    "rrelu _reshape_alias".split()
)


def is_users_clone(node: fx.Node) -> bool:
    """Whether eager copies here, too."""
    ours = HANDED_ON in node.meta or WORKED_ON in node.meta
    return node.target in CLONES and node.target is not tied_op and not ours


def is_guard(node: fx.Node) -> bool:
    """Whether a node adds the zero of a guard to the token of the program: what comes next in a function is later."""
    if node.op != "call_function" or node.target is not ATEN.add_.Tensor:
        return False
    return getattr(node.args[1], "target", None) is require_op


def is_new(node: fx.Node) -> bool:
    """Whether an operator's results are memory of their own, by its schema."""
    if not isinstance(node.target, OpOverload):
        return False
    returns = node.target._schema.returns
    maybe = name_of_operator(node) in _MAYBE_THE_SAME
    return _copies(node) or (not maybe and all(each.alias_info is None for each in returns))


def is_view(node: fx.Node) -> bool:
    """Whether a node gives a view of its operand for certain, or a part of a list, and reads no element."""
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, OpOverload) or written_inputs(node) or name_of_operator(node) in _MAYBE_THE_SAME:
        return False
    schema = node.target._schema
    returns = [each.alias_info is not None for each in schema.returns]
    tensors = [each for each in schema.arguments if "Tensor" in str(each.type)]
    return bool(returns) and all(returns) and len(tensors) == 1


def name_of_operator(node: fx.Node) -> str:
    """The name of an operator of torch's, without its namespace and overload."""
    name: str = node.target._schema.name  # type: ignore[union-attr]
    return name.partition("::")[2]


def _copies(node: fx.Node) -> bool:
    """Whether a cast is told to copy."""
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    if "copy" not in names:
        return False
    place = names.index("copy")
    return bool(node.args[place] if place < len(node.args) else node.kwargs.get("copy"))


def changes_nothing(node: fx.Node) -> bool:
    """Whether a cast is one to the dtype that there is, for which eager gives back its operand as well."""
    if node.target is ATEN.alias.default:  # ours
        return True
    if node.target is not ATEN.to.dtype or len(node.args) != 2 or node.kwargs:
        return False
    source: Any = node.args[0]
    value = source.meta.get("val") if isinstance(source, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype is node.args[1]
