"""``D2S2xx``: the base of what can't be staged."""

from __future__ import annotations

from dy2st.errors.base import Dy2stError


class StagingError(Dy2stError):
    """Control flow or state that can't be staged.

    Under a tensor condition both arms become parts of the graph, and a loop's state must keep its kind from one trip to
    the next. A variable that is a tensor on one path and a string or an object on the other has no place in a graph.

    Before:
        def model(x):
            if x.sum() > 0:
                result = x * 2
            else:
                result = "negative"
            return result

    After:
        import torch
        def model(x):
            if x.sum() > 0:
                result = x * 2
            else:
                result = torch.zeros_like(x)
            return result
    """

    code = "D2S201"
