"""A file in the model's place: a callable that takes what eager takes, and returns what eager returns."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.parity.inputs import InputSet
from dy2st.parity.state import preserved
from dy2st.tracing.named_tuples import with_leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.parity.outputs import Output
    from dy2st.parity.stages import OnnxSession


@dataclass(frozen=True)
class _Structure:
    """The dicts, lists and tuples of a result, and which of its leaves are None, which a file does not have."""

    spec: pytree.TreeSpec
    present: tuple[bool, ...]

    @classmethod
    def of(cls, result: Any, count: int) -> _Structure | None:
        """That of what eager has returned; None if the file's outputs can't be put into it one by one."""
        leaves, spec = pytree.tree_flatten(result)
        present = tuple(leaf is not None for leaf in leaves)
        whole = any(dataclasses.is_dataclass(leaf) for leaf in leaves)
        return None if whole or sum(present) != count else cls(spec, present)

    def holding(self, values: Sequence[Any]) -> Any:
        """The structure with these values."""
        given = iter(values)
        return with_leaves([next(given) if there else None for there in self.present], self.spec)


class AnsweringFile:
    """A file as a callable; with state, each call goes on from where the last one ended.

    A file has its outputs in order. Which dicts, lists and tuples eager has them in, only eager knows: it runs once,
    on a copy of the first call's arguments, and its state is put back. With state eager runs in each call anyway, and
    :meth:`formed_like` is told of it.
    """

    def __init__(self, eager: Any, session: OnnxSession) -> None:
        self._eager, self._session = eager, session
        self._own = [name for name in session.output_names if name not in session.following]
        self._count = len(self._own)
        self._structure: _Structure | None = None
        # A list of data-dependent length or an optional is several outputs, or one that is not always there.
        self._is_open = not session.told and not session.state_names
        self.has_state = bool(session.state_names)
        self.state: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the file returns, in eager's structure."""
        feed = self._session.feed(self._eager, InputSet("call", args, kwargs))
        values = dict(zip(self._session.output_names, self._session.values({**self.state, **feed}), strict=True))
        going_on = zip(self._session.state_names, self._session.following, strict=True)
        self.state = {name: values[output] for name, output in going_on}
        if self._is_open:
            self._is_open = False
            self._structure = self._asked(InputSet("call", args, kwargs))
        return self._formed([values[name] for name in self._own])

    def _asked(self, given: InputSet) -> _Structure | None:
        """The structure of what eager returns; None where it fails, which is for the comparison to tell."""
        with contextlib.suppress(Exception):
            copied = given.copied()
            with torch.no_grad(), preserved(self._eager), torch.random.fork_rng(devices=[]):
                return _Structure.of(self._eager(*copied.args, **copied.kwargs), self._count)
        return None

    def _formed(self, values: Sequence[Any]) -> Any:
        if self._structure is not None:
            return self._structure.holding(values)
        return values[0] if self._count == 1 else tuple(values)

    def _values(self, answer: Any) -> list[Any]:
        """The outputs, in the file's order, of what a call has returned."""
        if self._session.told:
            return [answer] if self._count == 1 else list(answer)
        return [leaf for leaf in pytree.tree_leaves(answer) if leaf is not None]

    def formed_like(self, result: Any, answer: Any) -> Any:
        """What a call has returned, in the structure of what eager has returned for the same."""
        if self._session.told:
            return answer
        self._structure = _Structure.of(result, self._count)
        return self._formed(self._values(answer))

    def places(self) -> list[str]:
        """The places of the outputs in what eager returns, if the file tells them."""
        return self._session.places()

    def outputs_of(self, answer: Any) -> list[Output]:
        """The tensors of what a call has returned, with their places in what eager returns, if the file tells them."""
        return self._session.as_outputs(self._values(answer), self._own)
