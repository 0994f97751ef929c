"""The node that singular vectors and eigenvectors go through until it is known that their signs cancel out."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from dy2st.onnx.building import recorder
from dy2st.onnx.translations.guard_nodes import onnx_require, onnx_tied

DOMAIN, KIND = "dy2st", "Spectrum"

# Values that differ by less, relative to the greatest, may be equal but for rounding, and what is less may be zero.
GAP = 2.0**-20

DISTINCT = "exported for singular values or eigenvalues that differ: eager's vectors of equal ones are any"
POSITIVE = "exported for singular values that are not zero: eager's vectors of those are any"


def spectrum(
    left: ir.Value, values: ir.Value, right: ir.Value, tests: Sequence[tuple[str, ir.Value]]
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The three as results of one node, which also gets both vectors behind each of the ``tests``, and those before it.

    ``left`` (..., m, k) has a vector in each column; so has ``right`` of a symmetric matrix, and of another one (k, n)
    a vector in each row: there are two tests then.
    """
    given = [left, values, right]
    one, other = left, right
    for message, ok in tests:
        token = onnx_require(ok, message)
        one, other = _tied(one, token), _tied(other, token)
        given += [one, other]
    tracer = recorder()
    made = ir.Node(DOMAIN, KIND, given, num_outputs=3)
    for source, out in zip((left, values, right), made.outputs, strict=True):
        out.type, out.shape = source.type, source.shape
    tracer.nodes.append(made)
    first, second, third = made.outputs
    return first, second, third


def _tied(value: ir.Value, token: ir.Value) -> ir.Value:
    made = onnx_tied(value, token)
    made.shape = value.shape
    return made
