"""Numbers that a staged path changes: Python ints, floats and bools whose value is known only when the graph runs.

A ``Number`` holds a 0-d tensor (int64, float64 or bool) and behaves as the Python number would: the same arithmetic
between numbers, and with a tensor the promotion of a Python scalar (``float32_tensor * number`` stays float32), which
a plain 0-d float64 tensor would not give. As a size or an index it becomes a symbolic int.

Source: PEP 3141 (numeric tower), torch's type promotion of Python scalars.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from dy2st.errors import StagedNumberError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import asked_by_others
from dy2st.tracing.tracer import at_least
from dy2st.values.counter_bounds import Origin
from dy2st.values.numpy_floats import classes
from dy2st.values.python_errors import may_divide_by_zero
from dy2st.values.staged_text import unknown_part

DTYPES: dict[type, torch.dtype] = {bool: torch.bool, int: torch.int64, float: torch.float64}
SYMBOLIC: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def number_kind(value: Any) -> type | None:
    """``bool``, ``int`` or ``float`` for a Python, symbolic or staged number; None for anything else."""
    if isinstance(value, Number):
        return value.kind
    for symbolic, kind in SYMBOLIC.items():
        if isinstance(value, symbolic):
            return kind
    return type(value) if type(value) in DTYPES else None


def number_tensor(value: Any) -> torch.Tensor:
    """The 0-d tensor of a number: int64, float64 or bool; traced."""
    if isinstance(value, Number):
        return value.tensor
    kind = number_kind(value)
    assert kind is not None
    if isinstance(value, torch.SymBool):
        # A symbolic bool has no tensor constructor of its own.
        made: torch.Tensor = torch.ops.aten.scalar_tensor.default(torch.sym_ite(value, 1, 0), dtype=torch.int64)
        return made != 0
    if type(value) in DTYPES:
        return torch.full((), value, dtype=DTYPES[kind])
    tensor: torch.Tensor = torch.ops.aten.scalar_tensor.default(value, dtype=DTYPES[kind])
    return tensor


def symbolic(value: Any) -> Any:
    """A staged number as a symbolic one, where torch wants such; anything else as it is."""
    return value.symbolic() if isinstance(value, Number) else value


def scalar_operand(number: Any, like: torch.Tensor) -> torch.Tensor:
    """A number as an operand beside the tensor ``like``, in the dtype that promotion of a Python scalar gives."""
    kind = number_kind(number)
    assert kind is not None
    return cast(number_tensor(number), promoted_dtype(like, kind))


def promoted_dtype(like: torch.Tensor, kind: type) -> torch.dtype:
    """The dtype of ``like`` combined with a Python scalar of type ``kind``."""
    if like.dtype.is_complex or kind is bool:
        return like.dtype
    if kind is int:
        return torch.int64 if like.dtype is torch.bool else like.dtype
    return like.dtype if like.dtype.is_floating_point else torch.get_default_dtype()


def one_element(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of one element as a 0-d one; where it has another number of them, this fails, as eager does."""
    flat = tensor.reshape(())
    if flat.dim() == 0:
        return flat
    # Of a data-dependent size, torch takes the shape of the result to be that of the operand.
    return flat.any() if flat.dtype is torch.bool else flat.sum() if flat.is_complex() else flat.amax()


def cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``tensor.to(dtype)``, leaving no trace where nothing changes."""
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


class NumberBounds:
    """What an export knows of the numbers that it is given as symbols."""

    def __init__(self) -> None:
        # Has the next symbol of a tensor be another one, if the last is not known where it is asked for.
        self.renew: Callable[[torch.Tensor], None] = lambda _tensor: None
        # Says of a symbol what tests have said of the number's tensor; the capture puts its own way here.
        self.say: Callable[[torch.Tensor, Any], None] = lambda _tensor, _symbol: None
        # Has a graph fail where a test does not hold, of which it is said what it is exported for; None: nothing can.
        self.hold: Callable[[torch.Tensor, str], None] | None = None


class Number:
    """A Python number whose value is a 0-d tensor of the graph; ``origin`` is what is known of a loop's counter."""

    __slots__ = ("kind", "origin", "tensor")

    # Calls a torch function with staged numbers among its arguments; ``number_arguments`` puts it here.
    call_torch: ClassVar[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]

    def __init__(self, tensor: torch.Tensor, kind: type, origin: Origin | None = None) -> None:
        self.tensor = tensor
        self.kind = kind
        self.origin = origin

    @property
    def known(self) -> Origin:
        """Its origin; of a number that nothing is known of, itself."""
        return self.origin or Origin(self.tensor)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls of torch functions with a number among their arguments."""
        return cls.call_torch(func, args, kwargs or {})

    def symbolic(self) -> Any:
        """The number as a symbolic int or float, where torch wants one (a size, an index, a scalar argument)."""
        if self.kind is bool:
            return self.tensor.to(torch.int64).item()
        bounds = current().part(NumberBounds)
        bounds.renew(self.tensor)
        made = self.tensor.item()
        if self.kind is int:
            bounds.say(self.tensor, made)
        return made

    def __repr__(self) -> str:
        return unknown_part(self.kind.__name__, repr, self)

    def __format__(self, spec: str) -> str:
        return unknown_part(self.kind.__name__, format, self, spec)

    def __hash__(self) -> int:
        raise StagedNumberError(
            f"{self._words()} that is known only when the graph runs is used as a key or set member",
            hint="keep such values in a tensor or a list",
        )

    def _refuse(self, use: str) -> Any:
        raise StagedNumberError(
            f"{self._words()} that is known only when the graph runs is used {use}",
            hint="write the condition or loop in code that dy2st converts, or compute with torch functions",
        )

    def _words(self) -> str:
        return f"{'an' if self.kind is int else 'a'} {self.kind.__name__}"

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    @property  # type: ignore[misc]  # it is written to nowhere
    def __class__(self) -> type:
        """The class that ``isinstance`` of the user's and of libraries' code is told; ours and torch's see this one."""
        return self.kind if asked_by_others() else Number

    # numpy leaves operators to this class.
    __array_ufunc__ = None

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._refuse("as an array of numpy's")

    def __array_function__(self, func: Any, *args: Any) -> Any:
        return self._refuse(f"in numpy's {func.__name__}()")

    def __complex__(self) -> complex:
        return complex(self._refuse("where a Python complex number is needed"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._refuse("in a copy or a pickle of an object")

    def __bool__(self) -> bool:
        return bool(self._refuse("as a Python condition"))

    def __int__(self) -> int:
        return int(self._refuse("where a Python int is needed"))

    def __float__(self) -> float:
        return float(self._refuse("where a Python float is needed"))

    def __index__(self) -> int:
        return int(self._refuse("as a Python index or size"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "real" or (name == "numerator" and self.kind is not float):
            return self.__pos__()
        if name == "imag" or (name == "denominator" and self.kind is not float):
            return (float if self.kind is float else int)(name == "denominator")
        if name == "conjugate":
            return self.__pos__
        if name == "is_integer":
            return lambda: Number(self.tensor == self.tensor.floor(), bool)
        if any(hasattr(each, name) for each in classes(self.kind)):
            return self._refuse(f"with its method or attribute {name!r}")
        raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}")

    def item(self) -> Number:
        """The way of numpy and torch to a Python number; it is one already."""
        return self


def _promoted(kind: type, other: type) -> type:
    return max((kind, other, int), key=[bool, int, float].index)


def binary(func: Callable[[Any, Any], Any], name: str, a: Any, b: Any) -> Any:
    """``func`` of two operands of which at least one is a Number."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        like = a if isinstance(a, torch.Tensor) else b
        if number_kind(a) is not None:
            a = scalar_operand(a, like)
        if number_kind(b) is not None:
            b = scalar_operand(b, like)
        return func(a, b)
    ka, kb = number_kind(a), number_kind(b)
    if ka is None or kb is None:
        return NotImplemented
    if name in ("and", "or", "xor") and ka is bool and kb is bool:
        return Number(func(number_tensor(a), number_tensor(b)), bool)
    kind = _promoted(ka, kb)
    may_divide_by_zero(name, b)
    if name == "truediv" or (name == "pow" and not (kind is int and _not_negative(b))):
        kind = _kind_of_power(b) if name == "pow" and kind is int else float
    x, y = (cast(number_tensor(v), DTYPES[kind]) for v in (a, b))
    compares = name in ("lt", "le", "gt", "ge", "eq", "ne")
    return Number(func(x, y), bool if compares else kind, _moved(name, a, b))


def _kind_of_power(exponent: Any) -> type:
    """The kind of ``int ** exponent``: Python has an int where the exponent is not negative, and else a float.

    Raises:
        StagedNumberError: it is a float for some exponents, or for all that are known.
    """
    hold = current().part(NumberBounds).hold
    if hold is None or _not_negative(-exponent):
        raise StagedNumberError(
            "int ** int with an exponent known only when the graph runs may be an int or a float",
            hint="use float operands, or torch.pow on tensors",
        )
    hold(number_tensor(exponent) >= 0, "exported for int ** int whose exponent is not negative")
    return int


def _not_negative(value: Any) -> bool:
    """Whether an int is known to be at least 0."""
    if isinstance(value, Number):
        return value.kind is bool or value.known.not_negative()
    return at_least(value, 0) if isinstance(value, torch.SymInt) else value >= 0


def _moved(name: str, a: Any, b: Any) -> Origin | None:
    """The origin of a sum, a difference or a product of a staged int and one that is none."""
    if isinstance(a, Number):
        return a.known.moved(name, b) if a.kind is int else None
    assert isinstance(b, Number)
    if b.kind is not int:
        return None
    return b.known.subtracted_from(a) if name == "sub" else b.known.moved(name, a)


def plain_number(value: Any) -> Any:
    """The number that a value is equal to, of Python's own types: of a member of an IntEnum, or one of numpy's."""
    value = _plain(value)
    own = number_kind(value) is not None or not isinstance(value, numbers.Number)
    return value if own or not hasattr(value, "item") else value.item()


def _plain(value: Any) -> Any:
    """An int or float itself for one of a subclass: a member of an IntEnum, numpy's float64."""
    kind = None if number_kind(value) is not None else next((k for k in (int, float) if isinstance(value, k)), None)
    return value if kind is None else kind(value)


def _define(name: str, func: Callable[[Any, Any], Any]) -> None:
    compares = name in ("lt", "le", "gt", "ge", "eq", "ne")

    def forward(self: Number, other: Any, *modulus: Any) -> Any:
        if modulus:
            self._refuse("in pow() with a modulus")
        other = _plain(other)
        if name in ("eq", "ne") and isinstance(other, numbers.Number) and number_kind(other) is None:
            self._refuse(f"in a comparison with a {type(other).__name__}")
        return binary(func, name, self, other)

    def reflected(self: Number, other: Any) -> Any:
        return binary(func, name, _plain(other), self)

    setattr(Number, f"__{name}__", forward)
    if not compares:
        setattr(Number, f"__r{name}__", reflected)


def _floordiv(a: Any, b: Any) -> Any:
    return torch.div(a, b, rounding_mode="floor")


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "truediv": torch.true_divide,
    "floordiv": _floordiv,
    "mod": torch.remainder,
    "pow": torch.pow,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "eq": torch.eq,
    "ne": torch.ne,
}
for _name, _func in BINARY.items():
    _define(_name, _func)


def _unary(name: str, func: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def method(self: Number) -> Number:
        kind = int if self.kind is bool else self.kind
        origin = self.known.moved("mul", -1) if name == "neg" and self.kind is int else None
        return Number(func(cast(self.tensor, DTYPES[kind])), kind, origin)

    setattr(Number, f"__{name}__", method)


_unary("neg", operator.neg)
_unary("pos", lambda t: t)
_unary("abs", torch.abs)


def _inverted(self: Number) -> Number:
    return Number(torch.bitwise_not(cast(self.tensor, torch.int64)), int)


def _rounded(self: Number, digits: Any = None) -> Number:
    if self.kind is not float:
        if digits is not None and not (isinstance(digits, int) and digits >= 0):
            self._refuse("in round() to tens or hundreds")
        return Number(self.tensor.to(torch.int64), int)
    if digits is None:
        return Number(torch.round(self.tensor).to(torch.int64), int)
    return Number(torch.round(self.tensor, decimals=digits), float)


setattr(Number, "__invert__", _inverted)  # noqa: B010 - mypy knows a class by its body
Number.__round__ = _rounded  # type: ignore[attr-defined]
Number.__floor__ = lambda self: Number(torch.floor(self.tensor.double()).to(torch.int64), int)  # type: ignore[attr-defined]
Number.__ceil__ = lambda self: Number(torch.ceil(self.tensor.double()).to(torch.int64), int)  # type: ignore[attr-defined]
Number.__trunc__ = lambda self: Number(torch.trunc(self.tensor.double()).to(torch.int64), int)  # type: ignore[attr-defined]
Number.__rdivmod__ = lambda self, other: (other // self, other % self)  # type: ignore[attr-defined]
Number.__divmod__ = lambda self, other: (self // other, self % other)  # type: ignore[operator]
