"""What code stores in its first call and finds in later ones: memos, tables that are made when they are needed.

A program stores nothing of the kind. But code that has filled what was empty may have nothing to store in the next
call. So eager makes such a call, and then the code is captured in the world that this has left. If it stores nothing
any more, the program is right as long as guards see what was stored there unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch.export import ExportedProgram

from dy2st.capture.diagnosis import defined_at
from dy2st.capture.program import LOST
from dy2st.errors import BufferKindError, LostStateError
from dy2st.guards.constants import is_constant
from dy2st.guards.names import Names
from dy2st.guards.source import Same
from dy2st.guards.sources import World
from dy2st.values.journal import Slot, Store
from dy2st.values.undefined import UNSET

_T = TypeVar("_T")
# On a refusal, what the code stores, if it may have nothing more to store in the next call.
_STORES = "dy2st_stores"
_HINTS = {
    "returns": "return a new one, list(x) or dict(x)",
    "adds to the grad": "take the gradient with torch.autograd.grad, which leaves grad alone",
}


class Filled:
    """What the calls of one function have filled."""

    def __init__(self) -> None:
        # What is refused though eager has just made the call.
        self._goes_on: Exception | None = None

    def may_be_last(self, refused: Exception) -> bool:
        """Whether the code that was refused just now may have nothing more to store once eager has made the call.

        Who registers a buffer anew with another size or dtype has it then.
        """
        return self._goes_on is None and (isinstance(refused, BufferKindError) or bool(_stores_of(refused)))

    @property
    def refused(self) -> Exception:
        """Why there is no program for a call that eager has made."""
        assert self._goes_on is not None
        return self._goes_on

    @staticmethod
    def refuse_lost(program: ExportedProgram, name: str, function: object, stores: Sequence[Store]) -> None:
        """Refuse a program that would lose something; ``stores`` are what its code stores.

        Raises:
            LostStateError: it would.
        """
        lost = program.graph_module.meta.get(LOST)
        if not lost:
            return
        what, location = lost[0]
        hint = next(
            (text for word, text in _HINTS.items() if what.startswith(word)),
            "keep tensors in a buffer (register_buffer), pass other values in and return them",
        )
        refused = LostStateError(
            f"{name} {what}, which a program can't: to_static would lose it",
            hint=hint,
            location=location or defined_at(function),
        )
        if len(lost) == len(stores) and _may_be_last(stores):
            setattr(refused, _STORES, stores)
        raise refused

    @staticmethod
    def instead_of(failed: Exception, capture: Callable[[], _T]) -> _T:
        """What ``capture`` gives after eager has made a call that could not be traced.

        Raises:
            Exception: the one that it failed with, if that can't be traced either.
        """
        try:
            return capture()
        except Exception as error:  # noqa: BLE001  of whatever kind, the first one is told
            raise failed from failed.__cause__ or error

    def after(self, refused: Exception, capture: Callable[[Sequence[Store]], _T]) -> _T | None:
        """What ``capture`` gives after eager has made a call that was ``refused``, being told what that has stored.

        If the code stores again, there is no program for the call, and the next one is refused before it is made.
        """
        try:
            return capture(_stores_of(refused))
        except Exception as error:  # noqa: BLE001  it is said in the next call: this one has been made
            error.__context__ = None  # so that what its frames hold is let go
            self._goes_on = error.with_traceback(None)
            return None


def _stores_of(refused: Exception) -> Sequence[Store]:
    return getattr(refused, _STORES, ())


def _may_be_last(stores: Sequence[Store]) -> bool:
    """Whether something is filled, and what is stored beside it are constants: the length of a table, say."""
    if any(each.of_arguments for each in stores):
        return False
    beside = [each for each in stores if not _fills(each)]
    return len(beside) < len(stores) and all(is_constant(each.old) and each.slot.kind != "content" for each in beside)


def _fills(store: Store) -> bool:
    """Whether something is put where nothing was, or a table of another size in the place of one.

    Nothing is what is absent, None or False, what a dict has no key for, and a set no member.
    """
    old, new = store.old, store.new
    if store.slot.kind != "content":
        tables = isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor)
        return old is UNSET or old is None or old is False or (tables and _differ(old, new))
    if isinstance(old, dict):
        return list(new)[: len(old)] == list(old) and all(new[key] is value for key, value in old.items())
    return isinstance(old, frozenset) and old <= new


def _differ(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Whether two tensors differ in dtype or shape; sizes that are open are others."""
    sizes = [*old.shape, *new.shape]
    return old.dtype != new.dtype or any(isinstance(each, torch.SymInt) for each in sizes) or old.shape != new.shape


def refuse_unguarded(stores: Sequence[Store], world: World, names: Names) -> None:
    """See to it that guards of a program that holds in ``world`` see what was stored change.

    Raises:
        LostStateError: they don't.
    """
    for each in stores:
        if not _is_guarded(each.slot, world, names):
            raise LostStateError(f"{each.slot} is changed, which a program can't: to_static would lose it")


def _is_guarded(slot: Slot, world: World, names: Names) -> bool:
    if slot.kind == "global":
        named = [each.access for each in world.sources if each.access[0] == "global" and each.access[2] == slot.name]
        return any(access[1] is slot.owner for access in named)
    if slot.kind not in ("attribute", "content", "cell") or (slot.kind == "attribute" and not names.has(slot.name)):
        return False
    return any(each.value is slot.owner and not isinstance(each.key, Same) for each in world.sources)
