"""The help pages: each error class's docstring."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from dy2st.errors.base import Dy2stError
from dy2st.errors.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def kinds() -> dict[str, type[Dy2stError]]:
    """Every error class by its code, in the order of the codes."""

    def below(kind: type[Dy2stError]) -> Iterator[type[Dy2stError]]:
        yield kind
        for child in kind.__subclasses__():
            yield from below(child)

    return {kind.code: kind for kind in sorted(below(Dy2stError), key=lambda kind: kind.code)}


def explain(code: str) -> str:
    """The help page of an error code such as ``D2S201``, in either case.

    Raises:
        UsageError: there is no such code.
    """
    kind = kinds().get(code.strip().upper())
    if kind is None:
        raise UsageError(f"there is no error code {code!r}", hint="`dy2st explain` lists them")
    return f"{kind.code} {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or '')}"


def summaries() -> dict[str, str]:
    """What each code means, in one sentence."""
    return {code: inspect.cleandoc(kind.__doc__ or "").partition("\n")[0] for code, kind in kinds().items()}
