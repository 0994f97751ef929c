"""Threads that run beside a capture.

While it traces, torch.fx replaces ``nn.Module.__call__`` and ``__getattr__`` for the whole process: the module calls of
all threads would end up on the stack of modules of the one that traces.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

from torch.fx.experimental.proxy_tensor import _ModuleStackTracer

from dy2st.tracing.replaced import replaced


def left_alone() -> AbstractContextManager[None]:
    """Other threads call their modules as if nothing were traced."""
    tracing = threading.get_ident()
    call_module, get_attribute = _ModuleStackTracer.call_module, _ModuleStackTracer.getattr

    def call(self: Any, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
        if threading.get_ident() != tracing:
            return forward(*args, **kwargs)
        return call_module(self, m, forward, args, kwargs)

    def get(self: Any, attr: str, attr_val: Any, cache: Any) -> Any:
        return get_attribute(self, attr, attr_val, cache) if threading.get_ident() == tracing else attr_val

    return replaced([(_ModuleStackTracer, "call_module", call), (_ModuleStackTracer, "getattr", get)])
