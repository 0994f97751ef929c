"""Guards as ONNX: onnxruntime fails where eager raises.

ONNX has no operator that fails on purpose. ``Gather`` with an index that depends on the condition is one in effect: an
index outside its data is an error by the operator's definition. The node's name, which onnxruntime's message quotes,
says what eager raises and where.
Source: ONNX operator Gather-13, https://onnx.ai/onnx/operators/onnx__Gather.html.
"""

from __future__ import annotations

import collections

import onnx_ir as ir

from dy2st.onnx.building import constant, op

GUARD = "dy2st.guard"


def onnx_require(ok: ir.Value, message: str) -> ir.Value:
    """``require`` as a ``Gather`` from one zero, at index 0 if ``ok`` and else at 1."""
    index = op("Where", ok, constant(0), constant(1))
    found = op("Gather", constant([0]), index, axis=0)
    producer = found.producer()
    assert producer is not None
    producer.metadata_props[GUARD] = message
    return found


def onnx_tied(x: ir.Value, token: ir.Value) -> ir.Value:
    """``tied`` as the only element of ``[x]``, at the index that the token is: zero, as no optimiser knows."""
    return op("Gather", op("Unsqueeze", x, [0]), token, axis=0)


def name_guards(model: ir.Model) -> None:
    """Name each guard's node after what it says; the exporter has named them by then."""
    counts: collections.Counter[str] = collections.Counter()
    for found in model.graph.all_nodes():
        message = found.metadata_props.get(GUARD)
        if message is not None:
            counts[message] += 1
            found.name = message if counts[message] == 1 else f"{message} ({counts[message]})"
