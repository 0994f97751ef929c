"""Translations that are used more than once give values and nodes of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx
import pytest
import torch
from torch import Tensor

import dy2st
import dy2st.onnx


def angles(x: Tensor) -> Tensor:
    if x.sum() > 0:
        a, b = torch.acos(x / 9), torch.acos(x / 8)
    else:
        a, b = torch.acosh(x.abs() + 2), torch.acos(x / 6)
    return a + b + torch.acos(x / 10) + torch.acos(x / 11) + torch.acosh(x.abs() + 3)


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_translation_that_is_used_often(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 0.5, 2.0], dtype=dtype)
    assert dy2st.check(angles, [(x,), (-x,)]).ok
    made = dy2st.onnx.export(angles, (x,)).model_proto
    found = list(graphs(made.graph))
    values = Counter(name for graph in found for node in graph.node for name in node.output if name)
    nodes = Counter(node.name for graph in found for node in graph.node if node.name)
    assert max(values.values()) == 1
    assert max(nodes.values()) == 1
