"""The value of a muted statement: whatever is done with it gives another such value, and nothing is refused."""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import Any

from torch.utils import _pytree as pytree

from dy2st.errors import StagingError
from dy2st.values.undefined import DUNDERS, Undefined

SHOWN = "<muted>"


class RecoveryValue(Undefined):
    """A value that nobody knows, and that nobody is told off for using."""

    def __init__(self) -> None:
        super().__init__(SHOWN, "", "", kind=StagingError)

    def refuse(self, called: str | None = None) -> Any:  # noqa: ARG002  # the parameters of Undefined
        """Nothing is wrong with it."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_poison")):
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        pass

    def __delattr__(self, name: str) -> None:
        pass

    def __repr__(self) -> str:
        return SHOWN

    def truth(self) -> Any:
        """As a condition it is a tensor's: both arms are looked at."""
        import torch

        return torch.full((), True)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls()


def mutes(*values: Any) -> bool:
    """Whether there is a muted value among these, or in lists, tuples and dicts of them."""
    return any(
        isinstance(leaf, RecoveryValue) or (isinstance(leaf, str) and SHOWN in leaf)
        for leaf in pytree.tree_leaves(values)
    )


# What Python does not take just anything for.
_NATIVE: dict[str, Any] = {
    "bool": False,
    "int": 1,
    "float": 1.0,
    "index": 0,
    "len": 1,
    "hash": 0,
    "str": SHOWN,
    "format": SHOWN,
    "contains": False,
    "exit": False,
    "delitem": None,
    "setitem": None,
}


def _wanted(frame: FrameType) -> int:
    """How many elements the code that iterates takes: as many as it has targets to unpack into, else one."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if at < 0:
        return 1
    instruction, argument = dis.opname[code[at]], code[at + 1]
    if instruction == "UNPACK_EX" and at >= 2 and dis.opname[code[at - 2]] == "EXTENDED_ARG":
        argument += code[at - 1]  # the targets behind the starred one
    return argument if instruction in ("UNPACK_SEQUENCE", "UNPACK_EX") else 1


def _define(name: str) -> None:
    if name in _NATIVE:
        setattr(RecoveryValue, f"__{name}__", lambda self, *args: _NATIVE[name])  # noqa: ARG005
    elif name == "iter":
        RecoveryValue.__iter__ = lambda self: iter((self,) * _wanted(sys._getframe(1)))  # type: ignore[attr-defined]
    else:
        setattr(RecoveryValue, f"__{name}__", lambda self, /, *args, **kwargs: self)  # noqa: ARG005


for _name in DUNDERS:
    _define(_name)
