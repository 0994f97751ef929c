"""``nextafter``: the neighbour of a float, by arithmetic alone.

ONNX has no operator for it, and none that looks at a float's bits. In rounding to nearest, ``x + max(phi * |x|, eta)``
is the next float above ``x`` (``phi`` a little over half an ulp of one, ``eta`` the least positive float).
Source: Rump, Zimmermann, Boldo, Melquiond, "Computing predecessor and successor in rounding to nearest", BIT 49, 2009.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import op

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
    step = op("Max", op("Mul", op("Abs", x), u * (1 + 2 * u)), eta)
    sign = op("Sign", op("Sub", y, x))
    # From an infinity the way is to the largest number.
    finite = op("Clip", x, -largest, largest)
    moved = op("Add", finite, op("Mul", sign, op("Where", op("IsInf", x), 0.0, step)))
    found = op("Where", op("Equal", x, y), y, moved)
    # NaN is neither equal nor on either side; the sum keeps it.
    nan = op("Or", op("IsNaN", x), op("IsNaN", y))
    return op("Where", nan, op("Add", x, y), found)
