"""Results of classes that a library has registered as containers, with code of their own where they are made."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import dy2st
import dy2st.onnx


class Output(OrderedDict[str, Any]):
    """A dict that has its items as attributes, too, as libraries of models return them."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


@dataclasses.dataclass
class Scores(Output):
    loss: Tensor | None = None
    logits: Tensor | None = None
    states: tuple[Tensor, ...] | None = None


pytree.register_pytree_node(
    Scores,
    lambda scores: (list(scores.values()), list(scores.keys())),
    lambda values, keys: Scores(**dict(zip(keys, values, strict=True))),
    serialized_type_name="tests.Scores",
    flatten_with_keys_fn=lambda scores: (
        [(pytree.MappingKey(key), value) for key, value in scores.items()],
        list(scores),
    ),
)


def alone(x: Tensor) -> Scores:
    return Scores(logits=x * 2)


def nested(x: Tensor) -> tuple[Tensor, dict[str, Scores]]:
    if x.sum() > 0:
        return x, {"found": Scores(logits=x * 2, states=(x + 1, x.sum()))}
    return x * 3, {"found": Scores(logits=x * 4, states=(x, x.max()))}


INPUTS = [torch.ones(2), -torch.ones(2)]


def same(found: Any, wanted: Any) -> None:
    assert pytree.tree_structure(found) == pytree.tree_structure(wanted)
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("function", [alone, nested])
def test_they_hold_what_they_were_made_of(function: Callable[[Tensor], Any]) -> None:
    static, program = dy2st.to_static(function), dy2st.export(function, (INPUTS[0],))
    run = program.module()
    for x in INPUTS:
        for _ in range(2):
            same(static(x), function(x))
        same(run(x), function(x))
    report = dy2st.check(function, [(x,) for x in INPUTS])
    assert report.ok, str(report)
    file = dy2st.onnx.export(function, (INPUTS[0],))
    assert len(file.model.graph.outputs) == len(pytree.tree_leaves(function(INPUTS[0])))
