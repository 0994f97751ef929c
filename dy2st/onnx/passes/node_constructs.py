"""Which construct of the user's a branch or loop of a file stands for, as metadata of the node.

A node that dy2st, a translation or a library adds says that it stands for none. One that says nothing was made by
somebody else, or has lost what it said: all that can be asked of it is asked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.source_lines import STACK, frames
from dy2st.tracing.constructs import Construct, construct_in

if TYPE_CHECKING:
    import onnx_ir as ir

# The key of a node's metadata: JSON with the construct's kind, column and ways. No kind stands for no construct.
CONSTRUCT = "dy2st.construct"
# Of a ``Scan`` that is given one row in place of none: how to tell is in :mod:`dy2st.onnx.runtime.arm_counts`.
PADDED = "dy2st.padded"
# Of a branch with a loop in one arm, and what that gives without a trip in the other.
LOOP_OR_NONE = "dy2st.loop_or_none"
# Of a branch behind a loop that ran without tests of NaN: one arm runs it as it was, the other gives what there is.
RERUN = "dy2st.rerun"
# Of what is computed for all trips of a loop at once: the loop's own entry of that name, which torch's exporter writes.
ALL_TRIPS = "dy2st.all_trips_of"
NAMESPACE = "namespace"
# The name of an arm for what an operator in the other one can't do: NaN, an empty batch.
UNUSUAL = "unusual"
CONTROL_FLOW = frozenset(("If", "Loop", "Scan", "SequenceMap"))


def note_constructs(model: ir.Model) -> None:
    """Say of each branch and loop which construct it stands for, and of no traceback any more; in place."""
    for node in model.graph.all_nodes():
        stack = node.metadata_props.get(STACK, "")
        construct, plain = construct_in(stack)
        if construct is not None:
            node.metadata_props[STACK] = plain
        if node.op_type in CONTROL_FLOW and is_onnx(node):
            known = construct if construct is not None and frames(plain) else None
            node.metadata_props[CONSTRUCT] = _as_text(known or Construct("", None))


def stand_for_none(node: ir.Node) -> None:
    """Take from what a node says of its source which construct it stands for."""
    if STACK in node.metadata_props:
        _, node.metadata_props[STACK] = construct_in(node.metadata_props[STACK])


def _as_text(construct: Construct) -> str:
    return json.dumps({"kind": construct.kind, "column": construct.column, "ways": construct.ways})


def construct_of(text: str) -> Construct | None:
    """What a node's metadata says; None if it says nothing that can be read."""
    try:
        found = json.loads(text)
        return Construct(str(found["kind"]), found["column"], tuple(map(str, found["ways"])))
    except (ValueError, TypeError, KeyError):
        return None
