"""Dimensions that are given by name: ``{0: "batch"}`` stands for ``{0: torch.export.Dim("batch")}``.

Source: the same shorthand is that of ``dynamic_axes`` and ``dynamic_shapes`` in ``torch.onnx.export``.
"""

from __future__ import annotations

import keyword
from typing import Any

from torch.export import Dim

from dy2st.errors import UsageError


class _Dims(dict[str, Any]):
    """Each name is one dimension, in whatever call it is given."""

    def __missing__(self, name: str) -> Any:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(
                f"dynamic_shapes calls a dimension {name!r}, which is no name", hint='letters, digits and _: "batch"'
            )
        dim = self[name] = Dim(name)
        return dim


_DIMS = _Dims()


def with_dims(shapes: Any) -> Any:
    """``dynamic_shapes`` with a dimension for each name in them; what is of another kind stays as it is.

    Raises:
        UsageError: a name is no identifier.
    """
    if isinstance(shapes, str):
        return _DIMS[shapes]
    if type(shapes) is dict:
        return {key: with_dims(value) for key, value in shapes.items()}
    if type(shapes) in (list, tuple):
        return type(shapes)(map(with_dims, shapes))
    return shapes
