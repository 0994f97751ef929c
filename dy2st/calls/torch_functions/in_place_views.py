"""Methods that make a tensor a view of itself, in place: ``y.squeeze_(1)``, ``y.t_()``.

A graph has values. What a path writes to a tensor from before it goes on as the value of its memory, with the sizes
that the tensor has; that the tensor itself has other sizes now, or lies otherwise, is not told on. So it has to be made
where it is changed.

Source: ``torch/_C/_nn`` and ``native_functions.yaml``, what is tagged ``inplace_view``.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.errors import DataError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE

# Without ``resize_``, of which only its own size is known to be right.
_CHANGING = frozenset("as_strided_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split())


def check_place(name: str, args: tuple[Any, ...]) -> None:
    """Refuse the method ``name`` of a tensor that was made before a staged path or an iteration began.

    Raises:
        DataError: it was.
    """
    capture = MODE.capture
    if name not in _CHANGING or capture is None or not args or not isinstance(args[0], torch.Tensor):
        return
    node = capture.tracing.node_of(args[0])
    if capture.depth > 1 and (node is None or node.graph is not capture.subgraph.graph):
        raise DataError(
            f"the sizes of a tensor are changed in place ({name}) under a tensor condition, behind an early return or"
            " in a staged loop, and the tensor was made before",
            hint=f"make a new tensor: y = y.{name.removesuffix('_')}(...) in place of y.{name}(...)",
            location=location_of(users_frame()),
        )
