"""How far a condition on tensors was from the other answer: the branch distance that guides a search for inputs.

While the mode is on, every bool tensor that a comparison makes is remembered with the margin of its elements: how much
the operands would have to change, negative where the answer is False. ``and``, ``or``, ``not``, ``any`` and ``all``
combine margins; what rearranges a bool tensor rearranges them. Numbers read out of tensors remember comparisons too.
Source: Korel, "Automated software test data generation", 1990 (branch distance); Tracey et al., 1998 (its algebra).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

# How far an answer that has no degrees (a mask that was given) is taken to be from the other.
UNKNOWN = 1.0
# How far an answer is that nothing is known about.
FAR = 1e300

# A level, and within a level a distance: the less the nearer.
Distance = tuple[int, float]

_SIGNS = {"lt": -1.0, "le": -1.0, "gt": 1.0, "ge": 1.0}
_NAMES = {f"__{name}__": name for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_SAME_NAMES = {
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
    "__and__": "logical_and",
    "__rand__": "logical_and",
    "bitwise_and": "logical_and",
    "__or__": "logical_or",
    "__ror__": "logical_or",
    "bitwise_or": "logical_or",
    "__invert__": "logical_not",
    "bitwise_not": "logical_not",
}
_REARRANGING = frozenset(
    ("__getitem__ reshape view flatten unsqueeze squeeze expand expand_as permute transpose t clone contiguous select "
     "gather index_select flip roll narrow detach").split()
)  # fmt: skip


class Margins(TorchFunctionMode):
    """Remembers margins; ``last`` is that of the last truth value that Python asked for, None if it has none."""

    asked = 0

    def __init__(self) -> None:
        super().__init__()
        self._known: Any = WeakIdKeyDictionary()
        self.last: float | None = None
        self._unread: float | None = None
        self._subject: Any = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function, and remember the margin of what it answers."""
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        name = _NAMES.get(name, name)
        name = _SAME_NAMES.get(name, name)
        if name == "__bool__":
            if args[0] is not self._subject:  # the statement asks once more for what ``and`` has asked for
                self.heard(self._margin_of(args[0]))
            self._subject = args[0]
        elif name == "item" and type(result) in (int, float):
            return self.tracked(result)
        elif isinstance(result, torch.Tensor) and result.dtype is torch.bool and args:
            try:
                margin = self._margins(name, args, kwargs or {}, func)
            except (TypeError, RuntimeError, IndexError, ValueError):
                margin = None  # an overload that is not known here: the search goes on without it
            if margin is not None and margin.shape == result.shape:
                self._known[result] = margin
        return result

    def heard(self, margin: float) -> None:
        """A truth value was asked for."""
        self.last = self._unread = margin
        self.asked += 1

    def answered(self) -> float:
        """How far the answer was from the other one, if there was one since this was asked before."""
        margin, self._unread = self._unread, None
        return FAR if margin is None or not math.isfinite(margin) else abs(margin)

    def taken(self) -> Distance:
        """How far the last answer was from the other one; forgotten with this.

        The level falls with each truth value that was asked for: of ``a and b`` an input that gets to ``b`` is nearer.
        """
        last, asked, self.last, self.asked, self._subject = self.last, self.asked, None, 0, None
        self._unread = None
        return -asked, FAR if last is None or not math.isfinite(last) else abs(last)

    def tracked(self, number: Any) -> Any:
        """A number that remembers how far its comparisons were from the other answer."""
        kind = TrackedInt if isinstance(number, int) else TrackedFloat
        made = kind(number)
        made.margins = self
        return made

    def computed(self, *numbers: Any) -> None:
        """Python has computed with numbers that were read out of tensors."""

    def tracking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``int`` or ``float``, of a tensor a number that is tracked."""

        def of(*args: Any) -> Any:
            result = function(*args)
            return self.tracked(result) if args and isinstance(args[0], torch.Tensor) else result

        return of

    def _margin_of(self, tensor: torch.Tensor) -> float:
        known = self._known.get(tensor)
        if known is not None:
            return float(known)
        value = float(tensor) if not tensor.is_complex() else 1.0
        return UNKNOWN if tensor.dtype is torch.bool or value == 0 else abs(value)

    def _of(self, value: Any) -> torch.Tensor | None:
        """The margins of a bool tensor: those known, else one step."""
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.bool:
            return None
        known = self._known.get(value)
        return torch.where(value, UNKNOWN, -UNKNOWN).double() if known is None else known

    def _margins(self, name: str, args: Any, kwargs: Any, func: Any) -> torch.Tensor | None:
        if name in ("lt", "le", "gt", "ge", "eq", "ne"):
            return _compared(name, args[0], args[1])
        first = self._of(args[0])
        if first is None:
            return None
        if name == "logical_not":
            return -first
        if name in ("logical_and", "logical_or") and len(args) > 1:
            second = self._of(args[1])
            combine = torch.minimum if name == "logical_and" else torch.maximum
            return None if second is None else combine(first, second)
        if name in ("any", "all") and first.numel():
            reduce = torch.amax if name == "any" else torch.amin
            return reduce(first, *args[1:], **kwargs)
        if name in _REARRANGING:
            rearranged: torch.Tensor = func(first, *args[1:], **kwargs)
            return rearranged
        return None


class Roundings(Margins):
    """Asks of numbers alone, and only whether Python has computed one that float32 does not have."""

    rounded = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function; a number that it reads out of a tensor is tracked."""
        result = func(*args, **(kwargs or {}))
        is_number = getattr(func, "__name__", "") == "item" and type(result) in (int, float)
        return self.tracked(result) if is_number else result

    def computed(self, *numbers: Any) -> None:
        """A file computes in float32, and may come to another number."""
        for number in numbers:
            if isinstance(number, float) and math.isfinite(number):
                self.rounded |= torch.tensor(number, dtype=torch.float32).item() != number


def _compared(name: str, left: Any, right: Any) -> torch.Tensor | None:
    if any(isinstance(side, torch.Tensor) and side.is_complex() for side in (left, right)):
        return None
    apart = _double(left) - _double(right)
    if name in _SIGNS:
        margin = apart * _SIGNS[name]
        # A tie is as near as can be to either answer.
        tie = math.ulp(0.0) if name in ("le", "ge") else -math.ulp(0.0)
        return torch.where(margin == 0, tie, margin)
    equal = torch.where(apart == 0, UNKNOWN, -apart.abs())
    return equal if name == "eq" else -equal


def _double(value: Any) -> torch.Tensor:
    return value.detach().double() if isinstance(value, torch.Tensor) else torch.tensor(float(value)).double()


def _comparing(name: str) -> Callable[[Any, Any], Any]:
    compare = getattr(operator, name)

    def compared(self: Any, other: Any) -> Any:
        plain = self.plain()
        if isinstance(other, (int, float)) and self.margins is not None:
            self.margins.computed(other)
            self.margins.heard(float(other) - float(plain))
        return compare(plain, other)

    return compared


def _computing(name: str) -> Callable[..., Any]:
    def computed(self: Any, *others: Any) -> Any:
        result = getattr(self.plain(), name)(*others)
        self.margins.computed(result, *others)
        return self.margins.tracked(result) if type(result) in (int, float) else result

    return computed


class TrackedFloat(float):
    """A float read out of a tensor."""

    margins: Any = None

    def plain(self) -> float:
        """The number itself."""
        return float.__add__(self, 0.0)


class TrackedInt(int):
    """An int read out of a tensor."""

    margins: Any = None

    def plain(self) -> int:
        """The number itself."""
        return int.__add__(self, 0)


for _kind in (TrackedFloat, TrackedInt):
    for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(_kind, f"__{_name}__", _comparing(_name))
    setattr(_kind, "__hash__", _kind.__mro__[1].__hash__)  # noqa: B010 - mypy knows no assignment to it
    for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "neg", "abs", "truediv", "rtruediv"):
        setattr(_kind, f"__{_name}__", _computing(f"__{_name}__"))
