"""ONNX nodes, recorded for the torch node that is being translated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from torch.onnx._internal.exporter import _core


def recorder() -> Any:
    """The recorder of torch.onnx for the node that is being translated."""
    tracer = _core.current_tracer
    assert tracer is not None
    return tracer


def node(kind: str, inputs: Sequence[Any], **attributes: Any) -> ir.Value:
    """Record one ONNX node; its first output."""
    tracer = recorder()
    made = ir.Node(
        "",
        kind,
        list(inputs),
        attributes=[ir.Attr(name, *value) for name, value in attributes.items()],
        version=tracer.opset.version,
    )
    tracer.nodes.append(made)
    return made.outputs[0]


def constant(values: Any, dtype: ir.DataType = ir.DataType.INT64) -> ir.Value:
    """A ``Constant``."""
    return node("Constant", [], value=(ir.AttributeType.TENSOR, ir.tensor(values, dtype=dtype)))
