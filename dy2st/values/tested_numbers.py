"""What a test says of the number that it compares: in the arm of ``if n > 0`` the number is 1 at least."""

from __future__ import annotations

import torch
from torch import fx

_ATEN = torch.ops.aten
# By comparison: what is added to the other side for the least value, where the answer is True, and where it is False.
_ADDED: dict[str, tuple[int | None, int | None]] = {
    "gt": (1, None),
    "ge": (0, None),
    "eq": (0, None),
    "lt": (None, 0),
    "le": (None, 1),
    "ne": (None, 0),
}
_LEAST = {
    overload: added
    for name, added in _ADDED.items()
    for overload in (getattr(_ATEN, name).Scalar, getattr(_ATEN, name).Tensor)
}
_SAME = (_ATEN.clone.default, _ATEN.alias.default, _ATEN.view.default)


def least_values(node: fx.Node, value: bool) -> dict[fx.Node, int]:
    """The least values of ints, by their nodes, if the test computed by ``node`` is ``value``."""
    if node.op != "call_function":
        return {}
    args, target = node.args, node.target
    if target in (_ATEN.logical_not.default, _ATEN.bitwise_not.default) and isinstance(args[0], fx.Node):
        return least_values(args[0], not value)
    if target in _SAME and isinstance(args[0], fx.Node):
        return least_values(args[0], value)
    if target is (_ATEN.logical_and.default if value else _ATEN.logical_or.default):
        found: dict[fx.Node, int] = {}
        for part in args:
            for each, least in (least_values(part, value) if isinstance(part, fx.Node) else {}).items():
                found[each] = max(least, found.get(each, least))
        return found
    more = _LEAST.get(target, (None, None))[0 if value else 1]
    if more is None or not isinstance(args[0], fx.Node) or (other := _number(args[1])) is None:
        return {}
    tensor = args[0].meta.get("val")
    whole = isinstance(tensor, torch.Tensor) and tensor.dtype is torch.int64 and tensor.dim() == 0
    return {args[0]: other + more} if whole else {}


def _number(value: object) -> int | None:
    """The int that an argument is, or a tensor without dimensions that is made of one."""
    if isinstance(value, fx.Node) and value.target in (_ATEN.full.default, _ATEN.scalar_tensor.default):
        value = value.args[-1] if value.target is _ATEN.scalar_tensor.default or value.args[0] == [] else None
    return value if type(value) is int else None
