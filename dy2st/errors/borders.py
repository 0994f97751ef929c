"""``D2S246``: a data-dependent value is handed to code that dy2st does not convert."""

from __future__ import annotations

from dy2st.errors.staging import StagingError


class UnconvertedCallError(StagingError):
    """A data-dependent value is given to code that dy2st does not convert.

    A function written in C, a function of numpy or of Python's library sees, in place of a number, what stands for it
    while the graph is made: it may take it for something that is no number, and answer wrongly. Only functions of
    which it is known that they hand such values on as they are get them.

    Before:
        import math
        def model(x):
            return x * math.gamma(x.sum().item())

    After:
        import torch
        def model(x):
            return x * torch.exp(torch.lgamma(x.sum()))
    """

    code = "D2S246"
