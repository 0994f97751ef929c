"""Pairs of a program and changes, each a generator: it makes functions static with what it is given, and gives what
it sees of results, gradients and what is left behind. It is run twice, eagerly and static, each time with a world of
its own."""

from __future__ import annotations

import collections
import contextvars
import decimal
import enum
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

Static = Callable[[Any], Any]
PAIRS: list[Callable[[Static], Iterator[Any]]] = []


def pair(function: Callable[[Static], Iterator[Any]]) -> Callable[[Static], Iterator[Any]]:
    PAIRS.append(function)
    return function


def given() -> Tensor:
    return torch.tensor([1.0, -2.0, 3.0])


def weight() -> Tensor:
    return given().requires_grad_()


def gradients(*tensors: Tensor) -> list[Tensor | None]:
    found = [None if each.grad is None else each.grad.clone() for each in tensors]
    for each in tensors:
        each.grad = None
    return found


@pair
def a_descriptor(static: Static) -> Iterator[Any]:
    class Twice:
        factor = 3

        def __get__(self, owner: Any, kind: Any = None) -> int:
            return self.factor * 2

    twice = Twice()
    owner = type("Owner", (), {"value": twice})()
    model = static(lambda x: x * owner.value)
    yield model(given())
    twice.factor = 5
    yield model(given())
    Twice.factor = 7
    del twice.factor
    yield model(given())


@pair
def an_empty_slot(static: Static) -> Iterator[Any]:
    class Slotted:
        __slots__ = ("value",)

    held = Slotted()
    model = static(lambda x: x * (held.value if hasattr(held, "value") else 9))
    yield model(given())
    held.value = 5
    yield model(given())
    del held.value
    yield model(given())


@pair
def what_answers_for_attributes(static: Static) -> Iterator[Any]:
    class Answering:
        def __init__(self) -> None:
            self.table = {"value": 2}

        def __getattr__(self, name: str) -> int:
            if name in ("__dict__", "table"):
                raise AttributeError(name)
            if name.startswith("__"):
                raise LookupError(name)  # no AttributeError, which hasattr() takes for an answer
            return self.table[name]

    held = Answering()
    model = static(lambda x: x * held.value)
    yield model(given())
    held.table["value"] = 5
    yield model(given())
    held.value = 9
    yield model(given())


@pair
def subscripts_of_a_class(static: Static) -> Iterator[Any]:
    class Table:
        held = {"a": 2}  # noqa: RUF012

        def __class_getitem__(cls, key: str) -> int:
            return cls.held[key]

    model = static(lambda x: x * Table["a"])
    yield model(given())
    Table.held["a"] = 5
    yield model(given())


@pair
def a_metaclass_that_makes(static: Static) -> Iterator[Any]:
    numbers = {"n": 2}

    class Meta(type):
        def __call__(cls, *args: Any) -> Any:
            made = super().__call__(*args)
            made.n = numbers["n"]
            return made

    class Made(metaclass=Meta):
        n: int

    model = static(lambda x: x * Made().n)
    yield model(given())
    numbers["n"] = 5
    yield model(given())


@pair
def a_method_with_a_cache(static: Static) -> Iterator[Any]:
    class Held:
        def __init__(self, value: int) -> None:
            self.value = value

        @functools.cache  # noqa: B019
        def cached(self) -> int:
            return self.value

    one, other = Held(2), Held(2)
    model = static(lambda x, held: x * held.cached())
    yield model(given(), one)
    one.value = 9
    yield model(given(), one)
    Held.cached.cache_clear()
    yield model(given(), one)
    yield model(given(), other)
    other.value = 9
    yield model(given(), other)
    yield model(given(), one)


@pair
def which_object_it_is(static: Static) -> Iterator[Any]:
    held = types.SimpleNamespace(one=types.SimpleNamespace())
    first = held.one
    known = {id(first): 2}
    model = static(lambda x: x * known.get(id(held.one), 5))
    for each in (first, types.SimpleNamespace(), first):
        held.one = each
        yield model(given())
        yield model(given())


@pair
def values_of_enums(static: Static) -> Iterator[Any]:
    class Mode(enum.Enum):
        A = 2
        B = 3

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mode = Mode.A

        def forward(self, x: Tensor, mode: Mode) -> Tensor:
            return x * self.mode.value * mode.value

    model = static(Model())
    for value in (3, 7, 3):
        Mode.B._value_ = value
        yield model(given(), Mode.B)
        yield model(given(), Mode.B)
        Mode.A._value_ = value + 1
        yield model(given(), Mode.A)


@pair
def the_context_of_decimals(static: Static) -> Iterator[Any]:
    third = static(lambda x: x * float(decimal.Decimal(1) / decimal.Decimal(3)))
    yield third(given())
    with decimal.localcontext() as context:
        context.prec = 2
        yield third(given())
    yield third(given())


@pair
def maps_one_before_another(static: Static) -> Iterator[Any]:
    first, second = {"k": 2}, {"k": 3, "j": 4}
    chain = collections.ChainMap(first, second)
    model = static(lambda x: x * chain["k"] * chain["j"])
    yield model(given())
    del first["k"]
    yield model(given())
    second["j"] = 1
    yield model(given())
    chain.maps.insert(0, {"k": 8})
    yield model(given())


@pair
def what_is_gone(static: Static) -> Iterator[Any]:
    class Held:
        value = 3

    held = Held()
    named = weakref.WeakValueDictionary({"a": held})
    model = static(lambda x: x * (named["a"].value if "a" in named else 7))
    yield model(given())
    held.value = 5
    yield model(given())
    del held
    yield model(given())


@pair
def a_context_of_its_own(static: Static) -> Iterator[Any]:
    variable = contextvars.ContextVar("variable", default=2)
    model = static(lambda x: x * variable.get())
    yield model(given())
    context = contextvars.copy_context()
    context.run(variable.set, 9)
    yield context.run(model, given())
    yield model(given())


@pair
def a_parametrisation_that_changes(static: Static) -> Iterator[Any]:
    class Scaled(nn.Module):
        factor = 2.0

        def forward(self, tensor: Tensor) -> Tensor:
            return tensor * self.factor

    torch.manual_seed(0)
    layer, scaled = nn.Linear(3, 3), Scaled()
    parametrize.register_parametrization(layer, "weight", scaled)
    model = static(layer)
    yield model(given())
    scaled.factor = 3.0
    yield model(given())
    with parametrize.cached():
        yield model(given())
        yield model(given())
    original: Any = layer.parametrizations["weight"].original
    model(given()).sum().backward()
    yield gradients(original)
    parametrize.remove_parametrizations(layer, "weight")
    model(given()).sum().backward()
    yield gradients(layer.weight)


@pair
def modes_and_kinds_of_a_module(static: Static) -> Iterator[Any]:
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    model = static(layer)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float32):
        layer.to(dtype)
        yield model(given().to(dtype))
    layer.requires_grad_(False)
    yield model(given())
    layer.bias.requires_grad_(True)
    model(given()).sum().backward()
    yield gradients(layer.weight, layer.bias)
    state = {name: each * 2 for name, each in layer.state_dict().items()}
    layer.load_state_dict(state, assign=True)
    yield model(given())


@pair
def dropout_and_norm_in_training(static: Static) -> Iterator[Any]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    model, x = static(module), torch.randn(4, 3)
    for change in (lambda: 0, module[1].eval, module[2].eval, module.eval, module[1].train, module.train):
        change()
        torch.manual_seed(1)
        result = model(x)
        yield result
        result.sum().backward()
        yield gradients(*module.parameters())
        yield [each.clone() for each in module.buffers()]


@pair
def tied_weights(static: Static) -> Iterator[Any]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module[1].weight = module[0].weight
    model = static(module)
    for again in (False, True):
        model(given()).sum().backward()
        yield gradients(module[0].weight, module[1].weight)
        module[1].weight = module[0].weight if again else nn.Parameter(module[0].weight.detach().clone())
    model(given()).sum().backward()
    yield gradients(module[0].weight)


@pair
def a_tensor_in_two_places(static: Static) -> Iterator[Any]:
    held, other = weight(), weight()
    model = static(lambda x, y: x * y * held)
    for args in ((held, other), (held, held), (other, other), (other, held)):
        model(*args).sum().backward()
        yield gradients(held, other)


@pair
def a_list_in_two_places(static: Static) -> Iterator[Any]:
    held = [1, 2]
    model = static(lambda x, items: x * sum(items) * len(held))
    for items in (held, [1, 2], held):
        yield model(given(), items)
        yield model(given(), items)
    held.append(0)
    yield model(given(), [1, 2])


@pair
def views_that_are_changed(static: Static) -> Iterator[Any]:
    def doubled(x: Tensor, y: Tensor) -> Tensor:
        if y.sum() > 0:
            x.mul_(2)
        else:
            x[0] = 9
        return x + y

    model, whole = static(doubled), torch.zeros(2, 3)
    for view in (whole[0], whole[1], whole.t()[1], whole[:, 1]):
        yield model(view, torch.ones(len(view)))
        yield model(view, -torch.ones(len(view)))
        yield whole.clone()


@pair
def derivatives_of_derivatives(static: Static) -> Iterator[Any]:
    held = weight()
    model = static(lambda x: (x * held).sin().pow(2) if x.sum() > 0 else held**3)
    for x in (given(), -given()):
        (first,) = torch.autograd.grad(model(x).sum(), held, create_graph=True)
        yield first
        first.pow(2).sum().backward()
        yield gradients(held)


@pair
def hooks_of_tensors(static: Static) -> Iterator[Any]:
    x, seen = weight(), []
    model = static(lambda x: x * x)
    handle = x.register_hook(lambda gradient: gradient * 10)
    model(x).sum().backward()
    yield gradients(x)
    handle.remove()
    result = model(x)
    result.retain_grad()
    result.register_hook(seen.append)
    result.sum().backward()
    yield gradients(x, result)
    yield [*seen]


@pair
def checkpoints_around_it(static: Static) -> Iterator[Any]:
    held = weight()
    model = static(lambda x: (x * held).sin())
    for _ in range(2):
        checkpoint(model, given(), use_reentrant=False).sum().backward()
        yield gradients(held)


@pair
def a_learner_that_steps_inside(static: Static) -> Iterator[Any]:
    torch.manual_seed(0)
    layer, x, y = nn.Linear(3, 1), torch.randn(4, 3), torch.randn(4, 1)

    def learner(x: Tensor, y: Tensor) -> Tensor:
        loss = ((layer(x) - y) ** 2).mean()
        found = torch.autograd.grad(loss, list(layer.parameters()), create_graph=True)
        stepped = [each - 0.1 * gradient for each, gradient in zip(layer.parameters(), found, strict=True)]
        return ((nn.functional.linear(x, *stepped) - y) ** 2).mean()

    model = static(learner)
    for factor in (1, 2):
        model(x * factor, y).backward()
        yield gradients(*layer.parameters())


@pair
def the_mode_of_gradients(static: Static) -> Iterator[Any]:
    held = weight()
    model = static(lambda x: x * held if x.sum() > 0 else x + held)
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            result = model(given())
            yield result
            yield result.is_inference()
    held.requires_grad_(False)
    yield model(given())


@pair
def what_raises_midway(static: Static) -> Iterator[Any]:
    class Counting(nn.Module):
        def __init__(self, *, assigns: bool) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.assigns = assigns

        def forward(self, x: Tensor) -> Tensor:
            self.count.add_(1)
            if self.assigns:
                self.count = self.count * 2
            y = x * self.count + torch.rand(3)
            x.mul_(2)
            while y.sum() < 20:
                y = y + 5
                if y.min() < -9:
                    raise ValueError(f"too small: {y.min().item():.4f}")
            self.count += 10
            return y

    for assigns in (False, True):
        module = Counting(assigns=assigns)
        model = static(module)
        torch.manual_seed(0)
        for factor in (1, -99, 1, -99, -99):
            x = given() * factor
            try:
                yield model(x)
            except ValueError as error:
                yield str(error)
            yield x
            yield module.count.clone()
    yield torch.rand(1)


@pair
def classes_that_derive(static: Static) -> Iterator[Any]:
    class Base(nn.Module):
        factor = 2

        @static
        def forward(self, x: Tensor) -> Tensor:
            return x * self.factor if x.sum() > 0 else -x

    class Derived(Base):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + 1

    base, derived = Base(), Derived()
    yield base(given())
    yield derived(given())
    derived.factor = 5
    yield derived(given())
    yield base(given())
    Base.factor = 7
    yield base(given())


@pair
def the_type_of_a_shape(static: Static) -> Iterator[Any]:
    model = static(lambda x, size: x * size.numel() if isinstance(size, torch.Size) else x * len(size))
    for size in (torch.Size([2, 3]), (2, 3), torch.Size([4])):
        yield model(given(), size)
