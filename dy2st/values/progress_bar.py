"""What stands for a progress bar of tqdm's in code that is captured: its iterable, without the bar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self


class ProgressBar:
    """A bar that is shown nowhere: a graph has nothing to show it on. Counters of its own it has none."""

    def __init__(self, iterable: Any = None) -> None:
        self.iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to take away."""

    def update(self, *_args: Any, **_kwargs: Any) -> None:
        """Nothing is shown."""

    set_description = set_description_str = set_postfix = set_postfix_str = update
    refresh = display = clear = reset = unpause = moveto = close = update
