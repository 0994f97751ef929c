"""Registering kernels that are written in Python, without what torch's own way makes beside.

To lower a program, torch registers some six thousand kernels and takes them back: fifteen for each operator that is a
composite of others. ``OperatorBase.py_impl`` returns a decorator with annotations, which Python evaluates with every
registration, and these take ten times as long as the registration itself: a tenth of the export of a small model.

Source: ``OperatorBase.py_impl`` of torch 2.13.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torch._C import DispatchKey
from torch._ops import OperatorBase

from dy2st.tracing.replaced import replaced


def registering_quickly() -> AbstractContextManager[None]:
    """Within, the kernel for a dispatch key is only noted; anything else goes torch's own way."""
    make = OperatorBase.py_impl

    @functools.wraps(make)
    def py_impl(self: OperatorBase, k: Any) -> Callable[[Any], Any]:
        if not isinstance(k, DispatchKey) or k == DispatchKey.Python:
            return make(self, k)

        def note(kernel):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  annotations are what is saved
            if k in self.py_kernels:
                return make(self, k)(kernel)  # which refuses it
            self.py_kernels[k] = kernel
            self._dispatch_cache.clear()
            return kernel

        return note

    return replaced([(OperatorBase, "py_impl", py_impl)])
