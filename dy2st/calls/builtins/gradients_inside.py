"""Gradients that a model computes by itself: a program has none.

Where gradients are asked for with ``allow_unused``, a trace would give None for all of them, and the model would go on
with zeros.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from dy2st.calls.builtins.overloads import stands_for
from dy2st.errors import RaisedError
from dy2st.source.user_frames import location_of, users_frame


@stands_for(torch.autograd.grad, torch.autograd.backward)
def _no_gradients(*_args: Any, **_kwargs: Any) -> NoReturn:
    raise RaisedError(
        "the model computes gradients by torch.autograd, which a program can't",
        hint="write the derivative as a formula, or compute it outside",
        location=location_of(users_frame()),
    )
