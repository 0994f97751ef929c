"""Guards: ``raise`` under a tensor condition and ``assert`` on a tensor, as part of the graph.

Where eager raises, the program raises and onnxruntime fails; where eager does not, a guard computes zero. A graph has
no statements, only values: each guard adds its zero to one 0-d *token* of the program, which the subgraphs around it
carry like any tensor that they write to, and the token is tied to an output. So no runtime can drop a guard, and a
loop that follows one starts after it.

``dy2st::require(ok, message)`` is 0 (int64), or raises ``RuntimeError(message)`` where ``ok`` is False.
``dy2st::tied(x, token)`` is ``x``, computed after ``token``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from dy2st.errors import Location
from dy2st.tracing.messages import say_op
from dy2st.tracing.size_ops import LIBRARY, gradient_of_first
from dy2st.tracing.tracer import Tracing

LIBRARY.define("require(Tensor ok, str message) -> Tensor")
LIBRARY.define("tied(Tensor x, Tensor token) -> Tensor")


# On an error that a guard has raised.
_OF_GUARD = "dy2st_of_guard"


def guard_error(message: str) -> RuntimeError:
    """What a guard raises."""
    error = RuntimeError(message)
    setattr(error, _OF_GUARD, True)
    return error


def is_guard_error(error: Exception) -> bool:
    """Whether a guard has raised this."""
    return hasattr(error, _OF_GUARD)


def _require(ok: torch.Tensor, message: str) -> torch.Tensor:
    if not bool(ok):
        raise guard_error(message)
    return torch.zeros((), dtype=torch.int64)


def _tied(x: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    return x.clone()


LIBRARY.impl("require", _require, "CompositeExplicitAutograd")
LIBRARY.impl("tied", _tied, "CompositeExplicitAutograd")
torch.library.register_fake("dy2st::require", lambda ok, message: ok.new_empty((), dtype=torch.int64), lib=LIBRARY)
torch.library.register_fake("dy2st::tied", lambda x, token: torch.empty_like(x), lib=LIBRARY)
torch.library.register_autograd("dy2st::tied", gradient_of_first, lib=LIBRARY)

require_op = torch.ops.dy2st.require.default
tied_op = torch.ops.dy2st.tied.default


@dataclass
class Guards:
    """The guards of one program; with ``drop`` they are left out, and ``dropped`` lists them."""

    tracing: Tracing
    drop: bool = False
    dropped: list[str] = field(default_factory=list)
    token: torch.Tensor | None = None

    def require(
        self, ok: torch.Tensor, location: Location, what: str = "eager raises here", *, always: bool = False
    ) -> None:
        """``ok`` (0-d bool) has to hold here: eager raises otherwise, at ``location``; ``what`` says so.

        ``always`` marks what no option drops: the user's code has no ``raise`` or ``assert`` there.
        """
        # The file's name alone: where it lies on the exporting machine is nobody's business.
        place = f"{Path(location.filename).name}:{location.line}"
        message = f"{what}: {place}: {(location.text or '').strip()}".rstrip(": ")
        if self.drop and not always:
            if message not in self.dropped:
                self.dropped.append(message)
            return
        self._add(location, lambda: require_op(ok, message))

    def say(self, values: list[torch.Tensor], number: int, location: Location) -> None:
        """The message of a ``number`` is said here, of these values (:mod:`dy2st.tracing.messages`)."""
        self._add(location, lambda: say_op(values, number))

    def _add(self, location: Location, zero: Callable[[], torch.Tensor]) -> None:
        """What comes next is computed after ``zero()``."""
        if self.token is None:
            with self.tracing.inside(self.tracing.root):
                self.token = torch.zeros((), dtype=torch.int64)
        with self.tracing.at(location):
            self.token.add_(zero())

    def after(self, value: torch.Tensor) -> torch.Tensor:
        """``value``, computed after the guards so far."""
        if self.token is None:
            return value
        tied: torch.Tensor = tied_op(value, self.token)
        return tied
