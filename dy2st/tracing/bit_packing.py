"""Integer and bool results of ``torch.cond`` as floats of the same bits.

torch 2.13 can't differentiate a ``cond`` that returns an integer or a bool along with a float ("outs_to_grad length"):
there the others travel as floats. Floats are copied, never computed with, so that all 64 bits of an int64 arrive.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch import fx

VIEW, CAST = torch.ops.aten.view.dtype, torch.ops.aten.to.dtype
# How each dtype travels: by its bits where it has those of a float, else as the same number.
CARRIERS: dict[torch.dtype, tuple[Any, torch.dtype]] = {
    torch.int64: (VIEW, torch.float64),
    torch.int32: (VIEW, torch.float32),
    torch.int16: (CAST, torch.float32),
    torch.int8: (CAST, torch.float32),
    torch.uint8: (CAST, torch.float32),
    torch.bool: (CAST, torch.float32),
}


def _differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.dtype.is_floating_point or value.dtype.is_complex)


def _output(arm: fx.GraphModule) -> fx.Node:
    node: fx.Node = next(n for n in reversed(arm.graph.nodes) if n.op == "output")
    return node


def _converted(graph: fx.Graph, node: fx.Node, target: Any, dtype: torch.dtype) -> fx.Node:
    made = graph.call_function(target, (node, dtype))
    value = node.meta["val"]
    with value.fake_mode:
        made.meta["val"] = torch.empty_strided(value.shape, value.stride(), dtype=dtype)
    return made


def _arms(module: fx.GraphModule, node: fx.Node) -> list[fx.GraphModule]:
    return [getattr(module, str(arm.target)) for arm in node.args[1:3] if isinstance(arm, fx.Node)]


def pack(module: fx.GraphModule, node: fx.Node) -> None:
    """Let what a ``cond`` returns beside floats travel as floats; nothing changes if it returns no float.

    The caller recompiles ``module``, and with it the arms.
    """
    arms = _arms(module, node)
    values = [result.meta["val"] for result in _output(arms[0]).args[0]]  # type: ignore[union-attr]
    if not any(map(_differentiable, values)):
        return
    carried = {i: CARRIERS[v.dtype] for i, v in enumerate(values) if v.dtype in CARRIERS}
    for arm in arms:
        output = _output(arm)
        results = list(output.args[0])  # type: ignore[arg-type]
        for i, (target, dtype) in carried.items():
            assert isinstance(results[i], fx.Node)
            with arm.graph.inserting_before(output):
                results[i] = _converted(arm.graph, results[i], target, dtype)
        output.args = (tuple(results),)

    made = list(node.meta["val"])
    for user, index in _results(node):
        if index in carried:
            made[index] = _output(arms[0]).args[0][index].meta["val"]  # type: ignore[index,union-attr]
            with module.graph.inserting_after(user):
                restored = _converted(module.graph, user, carried[index][0], values[index].dtype)
            user.replace_all_uses_with(restored, delete_user_cb=functools.partial(operator.is_not, restored))
            user.meta["val"] = made[index]
            _swap_names(user, restored)
    node.meta["val"] = tuple(made)


def unpack(module: fx.GraphModule, node: fx.Node) -> None:
    """Undo ``pack``; the caller recompiles ``module``, and with it the arms."""
    arms = _arms(module, node)
    results = [list(_output(arm).args[0]) for arm in arms]  # type: ignore[arg-type]
    made = list(node.meta["val"])
    unused: dict[fx.Node, None] = {}
    for i, first in enumerate(results[0]):
        if first.target not in (VIEW, CAST) or not all(r[i].target is first.target for r in results):
            continue
        own = first.args[0].meta["val"]
        users = [user for user, index in _results(node) if index == i]
        restored = [n for user in users for n in user.users]
        carrier = CARRIERS.get(own.dtype)
        if carrier != (first.target, first.args[1]) or any(n.args[1:] != (own.dtype,) for n in restored):
            continue
        made[i] = own
        for result in results:
            unused[result[i]] = None
            result[i] = result[i].args[0]
        for n in restored:
            (user,) = n.all_input_nodes
            user.meta["val"] = n.meta["val"]
            _swap_names(user, n)
            n.replace_all_uses_with(user)
            module.graph.erase_node(n)
    node.meta["val"] = tuple(made)
    for arm, values in zip(arms, results, strict=True):
        _output(arm).args = (tuple(values),)
    for packed in unused:
        if not packed.users:
            packed.graph.erase_node(packed)


def _swap_names(a: fx.Node, b: fx.Node) -> None:
    """A program names its results by their nodes: what stands for a result has the name of it."""
    a.name, b.name = b.name, a.name


def _results(node: fx.Node) -> list[tuple[fx.Node, int]]:
    """The nodes that take a result of ``node``, each with its index."""
    found = []
    for user in node.users:
        assert user.target is operator.getitem
        index = user.args[1]
        assert isinstance(index, int)
        found.append((user, index))
    return found
