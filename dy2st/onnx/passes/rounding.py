"""Operators whose result ONNX rounds otherwise: sizes of ``interpolate``, and quantisation to few values.

``interpolate(scale_factor=...)`` has another size in ONNX where single precision rounds the product. ``QuantizeLinear``
saturates at the bounds of the integer type alone: 4-bit values in ``uint8`` would reach 255.

Source: ``quantize_per_tensor`` of ``torch.ao.quantization.fx._decomposed``, torch 2.13; ONNX operators Resize and
QuantizeLinear.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import torch
from torch import fx

from dy2st.errors import UntranslatedError
from dy2st.sizes.lowering import place_of
from dy2st.sizes.rules import operator_name

# A factor such as 0.5 or 1.75 is exact for all of them.
MOST = 2**20


def require_exact_sizes(_graph: fx.Graph, node: fx.Node) -> None:
    """Look at an operator that may be an ``interpolate`` with factors.

    Raises:
        UntranslatedError: the file would give another size than eager for a size that is allowed, up to ``MOST``.
    """
    if "upsample_" not in str(node.target):
        return
    factors = _factors(node)
    sizes = node.args[0].meta["val"].shape[-len(factors) :] if factors else ()  # type: ignore[union-attr]
    for size, factor in zip(sizes, factors, strict=True):
        given = np.arange(MOST + 1) if isinstance(size, torch.SymInt) else np.array([size])
        wanted = np.floor(given * factor)
        made = given.astype(np.float32) * np.float32(factor)
        # With antialias the exporter gives the size alone, of which the factor follows only where it is whole.
        inexact = np.nonzero((made if "_aa" in str(node.target) else np.floor(made)) != wanted)[0]
        if len(inexact):
            first, name = inexact[0], operator_name(node.target)
            raise UntranslatedError(
                f"{name} with a factor of {factor:g}: ONNX's Resize would not make {int(wanted[first])} "
                f"elements of {int(given[first])} as eager does",
                hint="interpolate(..., recompute_scale_factor=True) or interpolate(..., size=...)",
                location=place_of(node),
            )


def _given(node: fx.Node) -> dict[str, Any]:
    """The arguments of an operator, by name."""
    schema = getattr(node.target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    return dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


def _factors(node: fx.Node) -> list[float]:
    """The factors of an operator of the ``upsample`` family; none if it is given sizes."""
    given = _given(node)
    return [] if given.get("output_size") is not None else list(given.get("scale_factors") or ())


# The operators are there only where a program has imported them: they are known by name.
_FAMILY = "quantized_decomposed.quantize_per_tensor."


def keep_bounds(graph: fx.Graph, node: fx.Node) -> None:
    """Clamp what is quantised to less than its type holds."""
    if not str(node.target).startswith(_FAMILY):
        return
    given = _given(node)
    low, high, limits = given["quant_min"], given["quant_max"], torch.iinfo(given["dtype"])
    if (low, high) == (limits.min, limits.max):
        return
    with graph.inserting_after(node):
        clamped = graph.call_function(torch.ops.aten.clamp.default, (node, low, high))
    clamped.meta = dict(node.meta)
    node.replace_all_uses_with(clamped, delete_user_cb=functools.partial(operator.is_not, clamped))
