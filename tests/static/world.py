"""Changes to the world: a function or module, what is changed of what it reads, and how it is changed back."""

# ruff: noqa: PLW0108 - a lambda looks its global up in each call; a table has long lines

from __future__ import annotations

import builtins
import collections
import contextvars
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import io
import os
import statistics
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize, prune

NUMBER = 2
NESTED = {"a": {"b": 3}}
LONG = list(range(100))
WEIGHT = torch.ones(3)
CHOSEN = {1, 2}
PAIRS = ((1, 2), (3,))
ARRAY = np.ones(3, dtype=np.float32)
STACK = collections.deque([1, 2])
ORDERED = collections.OrderedDict(a=1, b=2)
VIEW = types.MappingProxyType(NESTED)
CONTEXT: contextvars.ContextVar[int] = contextvars.ContextVar("context", default=2)
WEIGHTS = [torch.ones(3), torch.ones(3)]
PRICE = decimal.Decimal("1.0")
EAST = dt.timezone(dt.timedelta(hours=3))
NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
EMPTY = range(0)
NOTE = io.StringIO("ab")
NOTE.seek(2)
LINEAR = nn.Linear(3, 3)
MARKED: Any = torch.ones(3)
MARKED.mark = 3


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


MODE = Mode.UP


class Settings:
    scale = 2

    def __init__(self) -> None:
        self.value = 3
        self._hidden = 5
        self.inner = types.SimpleNamespace(z=1)

    @property
    def shown(self) -> int:
        return self._hidden

    def times(self, x: Tensor) -> Tensor:
        return x * self.value

    @staticmethod
    def plain(x: Tensor) -> Tensor:
        return x * 2

    @classmethod
    def of_class(cls, x: Tensor) -> Tensor:
        return x * cls.scale


SETTINGS = Settings()
REFERENCE = weakref.ref(SETTINGS)


@dataclasses.dataclass
class Options:
    k: int = 1
    names: set[int] = dataclasses.field(default_factory=lambda: {1})


OPTIONS = Options()


def double(x: Tensor) -> Tensor:
    return x * 2


def triple(x: Tensor) -> Tensor:
    return x * 3


def helper(x: Tensor, k: int = 2) -> Tensor:
    return x * k


def with_default(x: Tensor, k: int = 2) -> Tensor:
    return x * k if x.sum() > 0 else x


def with_keyword_default(x: Tensor, *, k: int = 2) -> Tensor:
    return x * k


def with_attribute(x: Tensor) -> Tensor:
    return x * with_attribute.k  # type: ignore[attr-defined]


with_attribute.k = 2  # type: ignore[attr-defined]
used = double
PARTIAL = functools.partial(helper, k=3)


def closure() -> tuple[Any, list[int], Callable[[int], None], Callable[[Tensor], None], Callable[[Any], None]]:
    items, number, tensor, function = [2], 3, torch.ones(3), double

    def model(x: Tensor) -> Tensor:
        return function(x) * items[0] * number + tensor

    def set_number(value: int) -> None:
        nonlocal number
        number = value

    def set_tensor(value: Tensor) -> None:
        nonlocal tensor
        tensor = value

    def set_function(value: Any) -> None:
        nonlocal function
        function = value

    return model, items, set_number, set_tensor, set_function


MODEL, ITEMS, SET_NUMBER, SET_TENSOR, SET_FUNCTION = closure()


class Block(nn.Module):
    """Reads a bit of everything that a module holds."""

    shared = 1

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.k = 2
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
        self.named = nn.ModuleDict({"a": nn.Identity()})
        self.register_buffer("shift", torch.ones(3))
        self.settings = {"a": [1]}
        self.sizes = [1]
        self.function = torch.sin
        self.dropout = nn.Dropout(0.0)
        self.norm = nn.LayerNorm(3)
        self.tensors = [torch.ones(3)]
        self.ordered = collections.OrderedDict(a=1, b=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x) * self.k + self.shift * self.settings["a"][0]
        for layer in self.layers:
            y = layer(y)
        for child in self.named.values():
            y = child(y)
        if y.sum() > 100:
            y = y * 0
        y = self.function(self.norm(y)) * len(self.sizes) * self.shared + self.tensors[0]
        y = y * next(iter(self.ordered.values()))
        return y * (2 if self.training else 1) * (3 if self.dropout.training else 1)


class Above(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Below(Above):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class Beside(Above):
    def forward(self, x: Tensor) -> Tensor:
        return x * 5


BELOW = Below()


class Scaled(list[int]):
    scale = 2


FUNCTIONS = {"a": torch.sin}
READ_BY_PYTHON: Any = collections.UserDict(a=2)
SCALED = Scaled([1])
MADE: Any = types.ModuleType("made")
MADE.value = 2
BYTES = bytearray(b"ab")
BELL: Any = statistics.NormalDist(2, 1)


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight * 2


@dataclasses.dataclass(frozen=True)
class Change:
    """``model`` before and after ``change``, and after ``back``."""

    model: Any
    change: Callable[[], Any]
    back: Callable[[], Any]


def to(name: str, value: Any) -> Callable[[], Any]:
    """Rebind a global of this module."""
    return lambda: globals().__setitem__(name, value)


def set_to(thing: Any, name: str, value: Any) -> Callable[[], Any]:
    """Set an attribute."""
    return lambda: setattr(thing, name, value)


def put(thing: Any, key: Any, value: Any) -> Callable[[], Any]:
    """Set an item."""
    return lambda: thing.__setitem__(key, value)


class Undone:
    """A change that gives back what undoes it."""

    def __init__(self, change: Callable[[], Any]) -> None:
        self._change = change
        self._handle: Any = None

    def change(self) -> None:
        self._handle = self._change()

    def back(self) -> None:
        self._handle.remove()


def _kept(change: Callable[[], Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    undone = Undone(change)
    return undone.change, undone.back


def reads() -> dict[str, Change]:
    """What functions read: globals, closures, defaults, attributes, classes, containers, the environment."""
    weight, second, times = WEIGHT, WEIGHTS[1], Settings.times
    linear_forward, linear_weight, code = nn.Linear.forward, LINEAR.weight, double.__code__
    above = Above.forward
    plain, of_class = Settings.__dict__["plain"], Settings.__dict__["of_class"]
    tokens: list[Any] = []
    found = {
        "a global number": Change(lambda x: x * NUMBER if x.sum() > 0 else -x, to("NUMBER", 5), to("NUMBER", 2)),
        "a global of another type": Change(lambda x: x * NUMBER, to("NUMBER", 2.5), to("NUMBER", 2)),
        "a number that is equal": Change(lambda x: x / 3 if NUMBER is True else x, to("NUMBER", 1), to("NUMBER", True)),
        "a nested dict": Change(lambda x: x * NESTED["a"]["b"], put(NESTED["a"], "b", 7), put(NESTED["a"], "b", 3)),
        "a key that comes": Change(lambda x: x * len(NESTED), put(NESTED, "c", {}), lambda: NESTED.pop("c")),
        "a long list": Change(lambda x: x * sum(LONG), put(LONG, 50, 1000), put(LONG, 50, 50)),
        "a list that grows": Change(lambda x: x * len(LONG), lambda: LONG.append(0), lambda: LONG.pop()),
        "a set": Change(lambda x: x * (3 if 2 in CHOSEN else 1), lambda: CHOSEN.discard(2), lambda: CHOSEN.add(2)),
        "a tuple": Change(lambda x: x * PAIRS[1][0], to("PAIRS", ((1, 2), (4,))), to("PAIRS", ((1, 2), (3,)))),
        "a deque": Change(lambda x: x * len(STACK), lambda: STACK.append(1), lambda: STACK.pop()),
        "a function of torch's in a dict": Change(
            lambda x: FUNCTIONS["a"](x), put(FUNCTIONS, "a", torch.cos), put(FUNCTIONS, "a", torch.sin)
        ),
        "what a class of Python's holds": Change(
            lambda x: x * READ_BY_PYTHON["a"], put(READ_BY_PYTHON, "a", 5), put(READ_BY_PYTHON, "a", 2)
        ),
        "what a property of Python's reads": Change(
            lambda x: x * BELL.mean, to("BELL", statistics.NormalDist(5, 1)), to("BELL", BELL)
        ),
        "an attribute of a list": Change(
            lambda x: x * SCALED.scale, set_to(SCALED, "scale", 5), lambda: delattr(SCALED, "scale")
        ),
        "an attribute of a list's class": Change(
            lambda x: x * SCALED.scale, set_to(Scaled, "scale", 5), set_to(Scaled, "scale", 2)
        ),
        "a module that was made": Change(lambda x: x * MADE.value, set_to(MADE, "value", 5), set_to(MADE, "value", 2)),
        "bytes": Change(lambda x: x * len(BYTES), lambda: BYTES.extend(b"c"), lambda: BYTES.pop()),
        "what super() calls": Change(
            lambda x: BELOW(x), set_to(Above, "forward", lambda _, x: x * 7), set_to(Above, "forward", above)
        ),
        "the bases of a class": Change(
            lambda x: BELOW(x), set_to(Below, "__bases__", (Beside,)), set_to(Below, "__bases__", (Above,))
        ),
        "an order": Change(
            lambda x: x * next(v for v in ORDERED.values()),
            lambda: ORDERED.move_to_end("a"),
            lambda: ORDERED.move_to_end("b"),
        ),
        "digits of a decimal": Change(
            lambda x: x * len(str(PRICE)), to("PRICE", decimal.Decimal("1.00")), to("PRICE", decimal.Decimal("1.0"))
        ),
        "a zone": Change(lambda x: x * NOON.hour, to("NOON", NOON.astimezone(EAST)), to("NOON", NOON)),
        "an empty range": Change(lambda x: x * (1 + EMPTY.start), to("EMPTY", range(2, 2)), to("EMPTY", range(0))),
        "a view of a dict": Change(lambda x: x * VIEW["a"]["b"], put(NESTED["a"], "b", 7), put(NESTED["a"], "b", 3)),
        "an enum": Change(lambda x: x if MODE is Mode.UP else -x, to("MODE", Mode.DOWN), to("MODE", Mode.UP)),
        "a tensor in place": Change(lambda x: x * WEIGHT, lambda: WEIGHT.mul_(2), lambda: WEIGHT.div_(2)),
        "a tensor replaced": Change(lambda x: x * WEIGHT, to("WEIGHT", torch.full((3,), 7.0)), to("WEIGHT", weight)),
        "a tensor's shape": Change(
            lambda x: x * WEIGHT.sum() * WEIGHT.shape[0], to("WEIGHT", torch.ones(1)), to("WEIGHT", weight)
        ),
        "a tensor's dtype": Change(lambda x: x * WEIGHT, to("WEIGHT", weight.double()), to("WEIGHT", weight)),
        "a tensor in a list": Change(
            lambda x: x + WEIGHTS[1], put(WEIGHTS, 1, torch.zeros(3)), put(WEIGHTS, 1, second)
        ),
        "a list of tensors": Change(
            lambda x: x + sum(WEIGHTS), lambda: WEIGHTS.append(torch.ones(3)), lambda: WEIGHTS.pop()
        ),
        "a tensor's own attribute": Change(
            lambda x: x * MARKED.mark, set_to(MARKED, "mark", 7), set_to(MARKED, "mark", 3)
        ),
        "an array": Change(lambda x: x * torch.from_numpy(ARRAY.copy()), put(ARRAY, 0, 5), put(ARRAY, 0, 1)),
        "a number of an array": Change(lambda x: x * float(ARRAY[0]), put(ARRAY, 0, 5), put(ARRAY, 0, 1)),
        "a text in memory": Change(
            lambda x: x * len(NOTE.getvalue()), lambda: NOTE.write("x"), lambda: (NOTE.seek(2), NOTE.truncate())
        ),
        "a context variable": Change(
            lambda x: x * CONTEXT.get(), lambda: tokens.append(CONTEXT.set(5)), lambda: CONTEXT.reset(tokens.pop())
        ),
        "a function": Change(lambda x: used(x), to("used", triple), to("used", double)),
        "a function's code": Change(
            lambda x: used(x), set_to(double, "__code__", triple.__code__), set_to(double, "__code__", code)
        ),
        "a default": Change(
            with_default, set_to(with_default, "__defaults__", (7,)), set_to(with_default, "__defaults__", (2,))
        ),
        "a keyword's default": Change(
            with_keyword_default,
            put(with_keyword_default.__kwdefaults__, "k", 7),
            put(with_keyword_default.__kwdefaults__, "k", 2),
        ),
        "a helper's default": Change(
            lambda x: helper(x), set_to(helper, "__defaults__", (7,)), set_to(helper, "__defaults__", (2,))
        ),
        "a function's attribute": Change(
            with_attribute, set_to(with_attribute, "k", 7), set_to(with_attribute, "k", 2)
        ),
        "a partial": Change(lambda x: PARTIAL(x), put(PARTIAL.keywords, "k", 8), put(PARTIAL.keywords, "k", 3)),
        "a builtin's name": Change(lambda x: x * len([1, 2]), to("len", lambda _: 7), lambda: globals().pop("len")),
        "a builtin": Change(
            lambda x: x * divmod(7, 2)[0],
            set_to(builtins, "divmod", lambda *_: (9, 9)),
            set_to(builtins, "divmod", divmod),
        ),
        "a list in a closure": Change(MODEL, put(ITEMS, 0, 5), put(ITEMS, 0, 2)),
        "a number in a closure": Change(MODEL, lambda: SET_NUMBER(5), lambda: SET_NUMBER(3)),
        "a tensor in a closure": Change(MODEL, lambda: SET_TENSOR(torch.zeros(3)), lambda: SET_TENSOR(torch.ones(3))),
        "a function in a closure": Change(MODEL, lambda: SET_FUNCTION(triple), lambda: SET_FUNCTION(double)),
        "an attribute": Change(
            lambda x: x * SETTINGS.value, set_to(SETTINGS, "value", 9), set_to(SETTINGS, "value", 3)
        ),
        "an attribute of a class": Change(
            lambda x: x * SETTINGS.scale, set_to(Settings, "scale", 9), set_to(Settings, "scale", 2)
        ),
        "an attribute before its class's": Change(
            lambda x: x * SETTINGS.scale, set_to(SETTINGS, "scale", 9), lambda: delattr(SETTINGS, "scale")
        ),
        "what a property reads": Change(
            lambda x: x * SETTINGS.shown, set_to(SETTINGS, "_hidden", 9), set_to(SETTINGS, "_hidden", 5)
        ),
        "what a method reads": Change(
            lambda x: SETTINGS.times(x), set_to(SETTINGS, "value", 9), set_to(SETTINGS, "value", 3)
        ),
        "a method": Change(
            lambda x: SETTINGS.times(x),
            set_to(Settings, "times", lambda _, x: x * 99),
            set_to(Settings, "times", times),
        ),
        "a static method": Change(
            lambda x: SETTINGS.plain(x),
            set_to(Settings, "plain", staticmethod(triple)),
            set_to(Settings, "plain", plain),
        ),
        "a class method": Change(
            lambda x: Settings.of_class(x),
            set_to(Settings, "of_class", classmethod(lambda _, x: x * 99)),
            set_to(Settings, "of_class", of_class),
        ),
        "a namespace": Change(
            lambda x: x * SETTINGS.inner.z, set_to(SETTINGS.inner, "z", 9), set_to(SETTINGS.inner, "z", 1)
        ),
        "a name that is computed": Change(
            lambda x: x * getattr(SETTINGS, f"_{'HIDDEN'.lower()}"),
            set_to(SETTINGS, "_hidden", 9),
            set_to(SETTINGS, "_hidden", 5),
        ),
        "an attribute that comes": Change(
            lambda x: x * (2 if hasattr(SETTINGS, "more") else 3),
            set_to(SETTINGS, "more", 9),
            lambda: delattr(SETTINGS, "more"),
        ),
        "a class attribute that comes": Change(
            lambda x: x * (2 if hasattr(SETTINGS, "more") else 3),
            set_to(Settings, "more", 9),
            lambda: delattr(Settings, "more"),
        ),
        "all attributes": Change(
            lambda x: x * vars(SETTINGS)["value"], set_to(SETTINGS, "value", 9), set_to(SETTINGS, "value", 3)
        ),
        "what a reference leads to": Change(
            lambda x: x * REFERENCE().value, set_to(SETTINGS, "value", 9), set_to(SETTINGS, "value", 3)
        ),  # type: ignore[union-attr]
        "a dataclass": Change(lambda x: x * OPTIONS.k, set_to(OPTIONS, "k", 9), set_to(OPTIONS, "k", 1)),
        "a set in a dataclass": Change(
            lambda x: x * (2 if 5 in OPTIONS.names else 1),
            lambda: OPTIONS.names.add(5),
            lambda: OPTIONS.names.discard(5),
        ),
        "a module's parameter": Change(
            lambda x: LINEAR(x),
            lambda: setattr(LINEAR, "weight", nn.Parameter(torch.ones(3, 3))),
            set_to(LINEAR, "weight", linear_weight),
        ),
        "a module's hook": Change(
            lambda x: LINEAR(x), *_kept(lambda: LINEAR.register_forward_hook(lambda *a: a[2] + 1))
        ),
        "a class of torch's": Change(
            lambda x: LINEAR(x),
            set_to(nn.Linear, "forward", lambda _, x: x * 7),
            set_to(nn.Linear, "forward", linear_forward),
        ),
        "the default dtype": Change(
            lambda x: x + torch.zeros(3),
            lambda: torch.set_default_dtype(torch.float64),
            lambda: torch.set_default_dtype(torch.float32),
        ),
        "deterministic algorithms": Change(
            lambda x: x * (2 if torch.are_deterministic_algorithms_enabled() else 1),
            lambda: torch.use_deterministic_algorithms(mode=True),
            lambda: torch.use_deterministic_algorithms(mode=False),
        ),
    }
    for name, read in {
        "an item of the environment": lambda x: x * int(os.environ["DY2ST_TEST"]),
        "the environment's get": lambda x: x * int(os.environ.get("DY2ST_TEST", "3")),
        "getenv": lambda x: x * int(os.getenv("DY2ST_TEST", "3")),
    }.items():
        found[name] = Change(read, put(os.environ, "DY2ST_TEST", "5"), put(os.environ, "DY2ST_TEST", "1"))
    return found


def _scaled(module: nn.Module, factor: float) -> None:
    state = {name: value * factor for name, value in module.state_dict().items()}
    module.load_state_dict(state, assign=True)


def of_modules() -> dict[str, Callable[[], Change]]:
    """What modules read, each of a module of its own."""
    found: dict[str, Callable[[], Change]] = {}

    def change(name: str, change: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
        def made() -> Change:
            torch.manual_seed(0)
            module = Block()
            return Change(module, lambda: change(module), lambda: back(module))

        found[name] = made

    def hooked(name: str, register: Callable[[Any], Any]) -> None:
        handles: list[Any] = []
        change(name, lambda m: handles.append(register(m)), lambda _: handles.pop().remove())

    def replaced(name: str, holder: Callable[[Any], Any], attribute: str, make: Callable[[Any], Any]) -> None:
        old: list[Any] = []

        def there(module: Any) -> None:
            old.append(getattr(holder(module), attribute))
            setattr(holder(module), attribute, make(old[-1]))

        change(name, there, lambda m: setattr(holder(m), attribute, old.pop()))

    def itself(module: Any) -> Any:
        return module

    change("an attribute", lambda m: setattr(m, "k", 5), lambda m: setattr(m, "k", 2))
    change("a dict", lambda m: put(m.settings["a"], 0, 5)(), lambda m: put(m.settings["a"], 0, 1)())
    change("a list", lambda m: m.sizes.append(5), lambda m: m.sizes.pop())
    change("an order", lambda m: m.ordered.move_to_end("a"), lambda m: m.ordered.move_to_end("b"))
    change("a function", lambda m: setattr(m, "function", torch.cos), lambda m: setattr(m, "function", torch.sin))
    change("an attribute of the class", lambda _: setattr(Block, "shared", 3), lambda _: setattr(Block, "shared", 1))
    change("an attribute before it", lambda m: setattr(m, "shared", 3), lambda m: delattr(m, "shared"))
    replaced("a submodule", itself, "linear", lambda _: nn.Linear(3, 3))
    replaced("a submodule of another class", itself, "linear", lambda _: nn.Tanh())
    replaced("a buffer", itself, "shift", torch.zeros_like)
    replaced("a parameter", lambda m: m.linear, "weight", lambda p: nn.Parameter(torch.ones_like(p)))
    replaced("a parameter that is none", lambda m: m.linear, "bias", lambda _: None)
    replaced("a parameter's dtype", lambda m: m.linear.weight, "data", lambda d: d.clone() * 3)
    change("an element of a list", lambda m: put(m.layers, 0, nn.Sigmoid())(), lambda m: put(m.layers, 0, nn.ReLU())())
    change("a list that grows", lambda m: m.layers.append(nn.Sigmoid()), lambda m: m.layers.__delitem__(2))
    change("a dict that grows", lambda m: put(m.named, "b", nn.Sigmoid())(), lambda m: m.named.pop("b"))
    change(
        "a tensor in a list",
        lambda m: put(m.tensors, 0, torch.zeros(3))(),
        lambda m: put(m.tensors, 0, torch.ones(3))(),
    )
    change("eval", lambda m: m.eval(), lambda m: m.train())
    change("eval of a child", lambda m: m.dropout.eval(), lambda m: m.dropout.train())
    change("state that is assigned", lambda m: _scaled(m, 2), lambda m: _scaled(m, 0.5))
    change("a setting of torch's", lambda m: setattr(m.norm, "eps", 1.0), lambda m: setattr(m.norm, "eps", 1e-5))
    hooked("a hook of a child", lambda m: m.linear.register_forward_hook(lambda *a: a[2] * 5))
    hooked("a hook before a child", lambda m: m.linear.register_forward_pre_hook(lambda _, a: (a[0] * 5,)))
    hooked("a hook of its own", lambda m: m.register_forward_hook(lambda *a: a[2] * 5))
    hooked("a hook of all modules", lambda _: nn.modules.module.register_module_forward_hook(lambda *a: a[2] * 5))
    replaced("forward of the class", lambda _: Block, "forward", lambda _: lambda _, x: x * 9)
    change("forward on the module", lambda m: setattr(m, "forward", lambda x: x * 9), lambda m: delattr(m, "forward"))
    change(
        "forward on a child",
        lambda m: setattr(m.linear, "forward", lambda x: x * 9),
        lambda m: delattr(m.linear, "forward"),
    )
    change(
        "pruning", lambda m: prune.l1_unstructured(m.linear, "weight", 0.5), lambda m: prune.remove(m.linear, "weight")
    )
    change(
        "a parametrisation",
        lambda m: parametrize.register_parametrization(m.linear, "weight", Doubled()),
        lambda m: parametrize.remove_parametrizations(m.linear, "weight", leave_parametrized=False),
    )
    change(
        "the class of a child",
        lambda m: setattr(m.layers[0], "__class__", nn.Sigmoid),
        lambda m: setattr(m.layers[0], "__class__", nn.ReLU),
    )
    change(
        "gradients of a parameter",
        lambda m: m.linear.weight.requires_grad_(False),
        lambda m: m.linear.weight.requires_grad_(True),
    )
    return found
