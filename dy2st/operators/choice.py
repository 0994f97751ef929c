"""A function that differs by path: calling it branches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import DifferentObjectsError
from dy2st.operators.staged_branch import StagedBranch

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture


class Choice:
    """One of two callables; only the graph knows which."""

    def __init__(self, capture: Capture, test: torch.Tensor, then: Any, orelse: Any) -> None:
        self._choice = (capture, test, then, orelse)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call both, each in an arm of its own."""
        from dy2st.operators.following import followed

        capture, test, then, orelse = self._choice
        branch = StagedBranch(capture, test, (), sys._getframe(1))
        branch.then()
        first = followed(capture, then)(*args, **kwargs)
        branch.orelse()
        second = followed(capture, orelse)(*args, **kwargs)
        return branch.choose(first, second)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _, _, then, orelse = self._choice
        missing = object()
        a, b = getattr(then, name, missing), getattr(orelse, name, missing)
        if a is missing and b is missing:
            raise AttributeError(name)
        if a is b:
            return a
        raise DifferentObjectsError(
            f"the attribute {name!r} of an object that differs by path",
            hint="read it in the branch where the object is chosen",
        )
