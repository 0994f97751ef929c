"""Running tensors' operators outside the dispatch modes that are active: of a trace, or of who counts or disturbs."""

from __future__ import annotations

from torch.utils._python_dispatch import _disable_current_modes as without_modes

__all__ = ["without_modes"]
