"""How the process is set, of what code can set: looked at before a capture and after it, and never before a call."""

from __future__ import annotations

import gc
import random
import sys
from typing import Any

import numpy as np
import torch

from dy2st.guards.ambient import modes

State = dict[str, Any]


def process_state() -> State:
    """The settings by their names in words."""
    print_options = {**np.get_printoptions()}
    return dict(modes()) | {
        "torch's generator of random numbers": torch.get_rng_state().numpy().tobytes(),
        "Python's generator of random numbers": random.getstate(),
        "numpy's generator of random numbers": np.random.get_state(legacy=False)["state"]["key"].tobytes(),  # noqa: NPY002
        "what numpy does at errors": np.geterr(),
        "how numpy prints": sorted(map(repr, print_options.items())),
        "how torch prints": repr(vars(torch._tensor_str.PRINT_OPTS)),
        "the number of torch's threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "the precision of products": torch.get_float32_matmul_precision(),
        "the detection of anomalies": torch.is_anomaly_enabled(),
        "the limit of recursion": sys.getrecursionlimit(),
        "how often threads are switched": sys.getswitchinterval(),
        "where Python looks for modules": list(sys.path),
        "whether garbage is collected": gc.isenabled(),
    }


def difference(before: State, after: State) -> str | None:
    """The first setting that is another one."""
    return next((name for name in before if before[name] != after[name]), None)
