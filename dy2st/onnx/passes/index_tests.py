"""Indices that can't be negative without the test whether they are.

Before, where :mod:`dy2st.onnx.translations.lookups` makes a lookup fail for a negative index::

    token = ArgMax<axis = -1>(logits)
    below = Less(token, 0)
    place = Where(below, 9223372036854775807, token)
    row = Gather(table, place)

After, for what counts or numbers, is taken from numbers that are not negative, or is computed from them::

    row = Gather(table, token)
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import INT64, put_in_place
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.natural_numbers import NaturalNumbers
from dy2st.onnx.translations.lookups import NO_PLACE


def drop_index_tests(model: ir.Model) -> None:
    """Take the indices themselves; in place, subgraphs included."""
    numbers = NaturalNumbers(model)
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        index = tested_index(node)
        if index is not None and numbers.has(index):
            put_in_place(node, [], [index])


def tested_index(node: ir.Node) -> ir.Value | None:
    """The indices of which a node lets those pass that are not negative."""
    if node.op_type != "Where" or not is_onnx(node):
        return None
    test, no_place, index = node.inputs
    asked = test.producer() if test is not None else None
    if asked is None or asked.op_type != "Less" or asked.inputs[0] is not index or index is None:
        return None
    ends = constant_integers(asked.inputs[1]), constant_integers(no_place)
    return index if ends == ([0], [NO_PLACE.get(index.dtype or INT64)]) else None
