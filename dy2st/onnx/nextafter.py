"""``nextafter``: the neighbour of a float, by arithmetic alone.

ONNX has no operator for it, and none that looks at a float's bits. In rounding to nearest, ``x + max(phi * |x|, eta)``
is the next float above ``x`` (``phi`` a little over half an ulp of one, ``eta`` the least positive float).
Source: Rump, Zimmermann, Boldo, Melquiond, "Computing predecessor and successor in rounding to nearest", BIT 49, 2009.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.nodes import constant, node

# Unit roundoff, least positive and largest number.
LIMITS = {
    ir.DataType.FLOAT: (2.0**-24, 2.0**-149, (2 - 2.0**-23) * 2.0**127),
    ir.DataType.DOUBLE: (2.0**-53, 2.0**-1074, (2 - 2.0**-52) * 2.0**1023),
}


def onnx_nextafter(x: ir.Value, y: ir.Value) -> ir.Value:
    """``nextafter(x, y)`` of float32 or float64."""
    assert x.dtype is not None
    u, eta, largest = LIMITS[x.dtype]
    # The greater of both in place of their sum, from which an optimiser would drop the least float as zero.
    step = node("Max", [node("Mul", [node("Abs", [x]), constant(u * (1 + 2 * u), x.dtype)]), constant(eta, x.dtype)])
    sign = node("Sign", [node("Sub", [y, x])])
    # From an infinity the way is to the largest number.
    finite = node("Clip", [x, constant(-largest, x.dtype), constant(largest, x.dtype)])
    moved = node("Add", [finite, node("Mul", [sign, node("Where", [node("IsInf", [x]), constant(0.0, x.dtype), step])])])
    found = node("Where", [node("Equal", [x, y]), y, moved])
    # NaN is neither equal nor on either side; the sum keeps it.
    nan = node("Or", [node("IsNaN", [x]), node("IsNaN", [y])])
    return node("Where", [nan, node("Add", [x, y]), found])
