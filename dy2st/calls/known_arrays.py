"""Arrays of numpy's that are made of tensors of constants, while these are traced."""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.outside_world import Constants
from dy2st.operators.export_session import current
from dy2st.staging.session import Session
from dy2st.tracing.known_values import known_value
from dy2st.tracing.tracer import outside_the_trace


def array_of(capture: Session, tensor: torch.Tensor) -> Any:
    """The array that has the memory of a tensor of constants; None for any other tensor.

    Neither is written to from now on: the other one would change, too.
    """
    known = known_value(capture.tracing, tensor, fixed=current().part(Constants).everything)
    if known is None:
        return None
    capture.aliases.share_with_array(tensor)
    with outside_the_trace():
        made = known.numpy(force=True)
    made.flags.writeable = False
    capture.aliases.object_is_shared(made)
    return made
