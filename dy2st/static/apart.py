"""Calls that no program stands for, since the function talks with other processes or reads tensors that are spread.

A tensor whose operators Python answers (a ``DTensor``, which is a part of a tensor and the collectives around it) can't
be traced into a program, nor can one of a class of the user's. A function that reads one runs itself for as long as it
is there. A function that was found to talk while it was captured runs itself from then on. Both are always right: what
runs is what the user wrote.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from dy2st.errors import CommunicationError, Dy2stError
from dy2st.guards.names import Names, is_users_class
from dy2st.guards.paths import Fetch, fetcher
from dy2st.guards.sources import observe

_BY_PYTHON = torch._C.DispatchKey.Python


def is_spread(value: Any) -> bool:
    """Whether something is a tensor whose operators Python answers, or one of a class of the user's."""
    if not isinstance(value, torch.Tensor):
        return False
    return torch._C._dispatch_keys(value).has(_BY_PYTHON) or is_users_class(type(value))


class Apart:
    """Whether the calls of one function or object are such calls."""

    def __init__(self) -> None:
        self._talks = False
        self._fetch: Fetch | None = None
        self._names = Names()

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether this call is known to be one, by the values that it starts from."""
        if self._talks or self._fetch is None:
            return self._talks
        with contextlib.suppress(Exception):  # the place is gone
            return is_spread(self._fetch(values)[0])
        return False

    def look(self, roots: Sequence[tuple[str, Any]]) -> None:
        """A call is about to be captured that starts from ``roots``, pairs of a name and a value.

        Raises:
            CommunicationError: a tensor that it can read is spread.
        """
        try:
            world = observe(roots, self._names, {}, learn=True)
        except Dy2stError:  # the capture says it, or more
            return
        spread = next((source for source in world.tensors if is_spread(source.value)), None)
        if spread is not None:
            self._fetch = fetcher(world.sources[: len(roots)], [spread])
            raise CommunicationError(f"{spread.name} is a {type(spread.value).__name__}")

    @contextlib.contextmanager
    def noticing(self) -> Iterator[None]:
        """Around a capture: whether the function talks."""
        try:
            yield
        except CommunicationError:
            self._talks = True
            raise
