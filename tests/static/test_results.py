"""A static function returns and raises what eager does: the same types, the same values, the same messages."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import functools
import pathlib
import pickle
import sys
import typing
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
from dy2st.errors import DifferentDtypesError, StagedNumberError, UsageError

X = torch.tensor([1.0, -2.0, 3.0])


class Pair(NamedTuple):
    a: Tensor
    b: int


@dataclasses.dataclass
class Record:
    a: Tensor
    b: int


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


class Plain:
    def __init__(self) -> None:
        self.k = 2

    @property
    def shown(self) -> int:
        return self.k

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.shown


class Base(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3 if x.sum() > 0 else x


class Derived(Base):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 2


class OwnCall(nn.Module):
    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) * 5

    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def raising(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError(f"positive, of {x.shape[0]}")
    return x


def asserting(x: Tensor) -> Tensor:
    assert x.sum() < 0, "must be negative"
    return x


def written_then_raising(x: Tensor, y: Tensor) -> Tensor:
    if y.sum() > 0:
        raise KeyError("y")
    return x + y


def always(_: Tensor) -> Tensor:
    raise RuntimeError("always")


def only_by_position(x: Tensor, /, k: int = 2) -> Tensor:
    return x * k


def same(a: Any, b: Any) -> bool:
    """Whether two results, or exceptions, are of the same types and values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, BaseException):
        return str(a) == str(b)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return bool(a == b)


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  whatever eager raises
        return error


RESULTS: dict[str, typing.Callable[[Tensor], Any]] = {
    "an int by path": lambda x: 3 if x.sum() > 0 else 4,
    "an int of data": lambda x: int(x.sum()),
    "a bool": lambda x: bool(x.sum() > 0),
    "a float": lambda x: x.sum().item(),
    "a constant": lambda x: (x, 3),
    "none": lambda x: (x, None),
    "nothing": lambda _: None,
    "a text": lambda x: (x, "s"),
    "a named tuple": lambda x: Pair(x, 2),
    "a dataclass": lambda x: Record(x * 2, 2),
    "a dataclass by path": lambda x: Record(x * 2, 2) if x.sum() > 0 else Record(x, 3),
    "a dict": lambda x: {"a": x, 1: x * 2},
    "an ordered dict": lambda x: collections.OrderedDict(a=x),
    "a default dict": lambda x: collections.defaultdict(list, a=[x]),
    "a deque": lambda x: collections.deque([x, x + 1], maxlen=2),
    "lists": lambda x: [x, [x * 2]],
    "an empty list": lambda _: [],
    "a shape": lambda x: x.shape,
    "a size": lambda x: x.shape[0],
    "a result of torch's": lambda x: torch.topk(x, 2),
    "an enum": lambda x: (x, Mode.UP),
    "a dtype": lambda x: x.dtype,
    "the input": lambda x: x,
}
ARGUMENTS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "a dataclass": (lambda x, d: x * d.b + d.a, (X, Record(X, 3)), {}),
    "an enum": (lambda x, mode: x if mode is Mode.UP else -x, (X, Mode.DOWN), {}),
    "a function": (lambda x, f: f(x) if x.sum() > 0 else x, (X, torch.sin), {}),
    "a lambda": (lambda x, f: f(x), (X, lambda v: v * 3), {}),
    "a module": (lambda x, module: module(x), (X, nn.Linear(3, 3)), {}),
    "an array": (lambda x, a: x * torch.from_numpy(a), (X, np.ones(3, dtype=np.float32)), {}),
    "a set": (lambda x, s: x * len(s), (X, {1, 2}), {}),
    "a size": (lambda x, s: x.reshape(s), (X, torch.Size([3, 1])), {}),
    "a dtype": (lambda x, d: x.to(d), (X, torch.float64), {}),
    "a device": (lambda x, d: x.to(d), (X, torch.device("cpu")), {}),
    "none": (lambda x, m=None: x if m is None else x * m, (X, None), {}),
    "a text": (lambda x, m: x if m == "a" else x * 2, (X, "b"), {}),
    "a slice": (lambda x, s: x[s], (X, slice(0, 2)), {}),
    "a range": (lambda x, r: x * sum(r), (X, range(3)), {}),
    "a complex number": (lambda x, c: x * c, (X, 1j), {}),
    "keywords": (lambda x, **k: x * k["a"] + len(k), (X,), {"a": 2, "b": 3}),
    "any number": (lambda *a: sum(a), (X, X, X), {}),
    "by keyword alone": (lambda x, *, k=2: x * k, (X,), {"k": 5}),
    "by position alone": (only_by_position, (X,), {"k": 5}),
    "nested ones": (lambda d: d["a"][0] * d["b"]["c"], ({"a": [X, X], "b": {"c": 2}},), {}),
}
ERRORS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a raise": (raising, (X,)),
    "no raise": (raising, (-X,)),
    "an assert": (asserting, (X,)),
    "a raise on every path": (always, (X,)),
    "a wrong type": (lambda x: x + "a", (X,)),
    "a wrong shape": (lambda x: x @ torch.ones(4, 4), (X,)),
    "a wrong index": (lambda x: x[7], (X,)),
    "an index of data": (lambda x: x[x.argmax() + 5], (X,)),
    "a raise of another argument": (written_then_raising, (X, X)),
    "a missing argument": (lambda x, _: x, (X,)),
    "too many arguments": (lambda x: x, (X, X)),
    "an unknown keyword": (functools.partial(lambda x, k: x * k, j=1), (X,)),
}
CALLABLES: dict[str, Any] = {
    "a subclass that calls its base": Derived(),
    "a call of its own": OwnCall(),
    "a callable object": Plain(),
    "a bound method": Plain().__call__,
    "a partial": functools.partial(lambda x, k: x * k, k=4),
    "a builtin": torch.sin,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    static = dy2st.to_static(RESULTS[name])
    for x in (X, -X, X):
        assert same(static(x), RESULTS[name](x))


def _until_small(x: Tensor) -> Tensor:
    while x.sum() > 10:
        x = x / 2
    return x


IDENTITIES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "a branch": lambda x, y: x if x.sum() > 0 else y * 2,
    "two results": lambda x, y: (x if x.sum() > 0 else y, y, x[:1]),
    "a loop": lambda x, _: _until_small(x),
    "a copy": lambda x, y: x.clone() if x.sum() > 0 else y,
    "the greater one": lambda x, y: max(x.sum(), y.sum()) * 0 + max(x[0], y[0]),
    "one of a list": lambda x, y: [x, y][int(x.sum() > 0)],
    "a view by path": lambda x, y: x[1:] if x.sum() > 0 else y,
    "beside a write": lambda x, y: (torch.zeros(2).add_(x[:2]), x if x.sum() > 0 else y),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_a_result_is_an_argument_where_it_is_in_eager(name: str) -> None:
    """The same object, or the same memory."""

    def seen(function: Any, *args: Tensor) -> Any:
        results = pytree.tree_leaves(function(*args))
        memory = [arg.untyped_storage().data_ptr() for arg in args]
        return [
            ([each is arg for arg in args], [each.untyped_storage().data_ptr() == at for at in memory])
            for each in results
        ]

    static = dy2st.to_static(IDENTITIES[name])
    for x in (X, -X, 100 * X):
        assert seen(static, x.clone(), X.clone()) == seen(IDENTITIES[name], x.clone(), X.clone())


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    function, args, kwargs = ARGUMENTS[name]
    static = dy2st.to_static(function)
    for _ in range(2):
        assert same(static(*args, **kwargs), function(*args, **kwargs))


@pytest.mark.parametrize("name", ERRORS)
def test_exceptions(name: str) -> None:
    function, args = ERRORS[name]
    static = dy2st.to_static(function)
    for _ in range(2):
        assert same(outcome(static, *args), outcome(function, *args))


@pytest.mark.parametrize("name", CALLABLES)
def test_callables(name: str) -> None:
    static = dy2st.to_static(CALLABLES[name])
    for x in (X, -X, X):
        assert same(static(x), CALLABLES[name](x))


def test_subclass_of_a_static_class() -> None:
    @dy2st.to_static
    class Static(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 3 if x.sum() > 0 else x

    class Below(Static):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * 2

    assert torch.equal(Below()(X), X * 6)


def test_a_method_that_calls_its_module() -> None:
    class Generating(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x) if x.sum() > 0 else x

        @dy2st.to_static
        def generate(self, x: Tensor, steps: int) -> Tensor:
            for _ in range(steps):
                x = self(x).tanh()
                if x.sum() < -1:
                    break
            return x

    module = Generating()
    for x in (X, -X):
        expected = x
        for _ in range(3):
            expected = module(expected).tanh()
            if expected.sum() < -1:
                break
        torch.testing.assert_close(module.generate(x, 3), expected)


class Unnamed:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


BY_OBJECT = {Unnamed(): 2}


def test_keys_that_have_no_text() -> None:
    static = dy2st.to_static(lambda x: x * sum(BY_OBJECT.values()))
    assert torch.equal(static(X), X * 2)


def written(x: Tensor, stream: Any = None) -> Tensor:
    if stream is not None:
        stream.write(str(x))
    return x * 2 if x.sum() > 0 else x


def reporting(x: Tensor) -> Tensor:
    return written(x, None if x.shape[0] else sys.stdout)


def test_the_filters_of_warnings_are_refused():
    def model(x):
        return x * len(warnings.filters) if x.sum() > 0 else x

    with pytest.raises(dy2st.errors.UnguardedError, match="filters of warnings"):
        dy2st.to_static(model)(torch.ones(2))


def test_a_stream_that_is_only_named_is_no_matter() -> None:
    static = dy2st.to_static(reporting)
    assert torch.equal(static(X), X * 2)
    with pytest.raises(dy2st.errors.UnguardedError, match=r"write\(\) reads or writes a file"):
        dy2st.to_static(lambda x: written(x, sys.__stdout__))(X)


@pytest.mark.parametrize("read", [np.load, np.fromfile, torch.load, lambda _: str(pathlib.Path.cwd())])
def test_files_are_refused(read: Any) -> None:
    with pytest.raises(dy2st.errors.UnguardedError):
        dy2st.to_static(lambda x, path: x * len(read(path)))(X, "somewhere.npy")


def test_a_static_module_is_another_view_of_the_module() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    static = dy2st.to_static(module)
    module.eval()
    assert not static.training
    torch.testing.assert_close(static(X), module(X))
    module.double()
    torch.testing.assert_close(static(X.double()), module(X.double()))
    static[0] = nn.Linear(3, 2)
    assert module(X).shape == (2,)
    module.note = 5
    assert static.note == 5


def test_layouts_of_arguments() -> None:
    base = torch.arange(24.0).reshape(4, 6)
    static = dy2st.to_static(lambda x: x * (x.stride(0) + 10 * x.is_contiguous()))
    for x in (base, base[::2], base.t(), base[:, ::2], base[1:3]):
        assert torch.equal(static(x), x * (x.stride(0) + 10 * x.is_contiguous()))
    with pytest.raises(dy2st.errors.UnguardedError, match="storage_offset"):
        dy2st.to_static(lambda x: x * x.storage_offset())(base[1])


def test_hooks_run_once() -> None:
    module = nn.Linear(3, 3)
    module.register_forward_hook(lambda *a: a[2] + 1)
    module.register_forward_pre_hook(lambda _, a: (a[0] * 2,))
    torch.testing.assert_close(dy2st.to_static(module)(X), module(X))


def test_a_capture_leaves_the_module_alone() -> None:
    class Noted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.notes = [1]
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x) * len(self.notes)

    module = Noted()
    notes, weight, held = module.notes, module.linear.weight, dict(module.__dict__)
    dy2st.export(module, (X,))
    static = dy2st.to_static(module)
    static(X)
    assert module.notes is notes
    assert module.linear.weight is weight
    assert module.__dict__ == held
    notes.append(2)
    torch.testing.assert_close(static(X), module(X))


async def waiting(x: Tensor) -> Tensor:
    return x


def generating(x: Tensor) -> typing.Iterator[Tensor]:
    yield x


@pytest.mark.parametrize("function", [waiting, generating])
def test_what_is_done_in_steps_is_refused(function: Any) -> None:
    with pytest.raises(UsageError, match=function.__name__):
        dy2st.to_static(function)


def test_compilers_see_the_function() -> None:
    static = dy2st.to_static(only_by_position)
    assert torch.equal(torch.compile(static, backend="eager", fullgraph=True)(X), X * 2)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_copies_of_objects_with_static_methods(duplicate: Any) -> None:
    first = Holding()
    assert torch.equal(first.run(X), X * 2)
    second = duplicate(first)
    second.k = 3
    assert torch.equal(second.run(X), X * 3)
    assert torch.equal(first.run(X), X * 2)


class Holding:
    def __init__(self) -> None:
        self.k = 2

    @dy2st.to_static
    def run(self, x: Tensor) -> Tensor:
        return x * self.k if x.sum() > 0 else x


def test_results_that_are_not_the_same_number_of_tensors(tmp_path):
    def model(x):
        rows = []
        while x.abs().sum() > 1:
            x = x / 2
            rows.append(x[x > x.min()])
        return rows, x if x.sum() > 0 else None, "up" if x.sum() > 0 else "down"

    made = dy2st.to_static(model)
    for x in (torch.tensor([4.0, 2.0, -1.0]), torch.tensor([-1.0, -2.0]), torch.tensor([0.25])):
        rows, found, says = made(x)
        want = model(x)
        assert says == want[2]
        assert (found is None) == (want[1] is None)
        torch.testing.assert_close(rows, want[0])
    dy2st.save(made, tmp_path / "model.dy2st", examples=[(torch.tensor([4.0, 2.0, -1.0]),)])
    loaded = dy2st.load(tmp_path / "model.dy2st")
    for x in (torch.tensor([4.0, 2.0, -1.0]), torch.tensor([0.25, 0.5])):
        assert same(loaded(x), model(x))


def until_small(x):
    best = -1.0
    while x.sum() > 1:
        x = x / 2
        best = x.max()
    return best, best + 1, torch.zeros(2) + best


def counted_or_added(x):
    flag, total = False, 0
    for row in x:
        if row > 0:
            flag, total = x.max() > 1, total + row
    return flag, not flag, total, total * 2, total / 2


BY_PATH: dict[str, typing.Callable[[Tensor], Any]] = {
    "a tensor or a float": lambda x: x.sum() if x.max() > 0 else 0.5,
    "a tensor or an int of another kind": lambda x: (x, x.sum() if x.max() > 0 else 0),
    "a tensor of another dtype": lambda x: x.sum() if x.max() > 0 else (x > 0).sum(),
    "a tensor of another rank": lambda x: x.sum() if x.max() > 0 else x,
    "an int or a float": lambda x: 1 if x.max() > 0 else 0.5,
    "a tensor, an int or None": lambda x: (x.sum() if x.max() > 2 else 3) if x.max() > 0 else None,
    "the greater": lambda x: (max(x.sum(), 1), min(1.0, x.sum())),
    "beside None": lambda x: {"a": x.sum() if x.max() > 0 else None, "b": max(2, x.sum())},
    "of a loop": until_small,
    "of a loop, and what is computed of it": counted_or_added,
}


@pytest.mark.slow_for("of a loop, and what is computed of it")
@pytest.mark.parametrize("name", BY_PATH)
def test_types_by_path(name, tmp_path):
    """A result is a number where it is one in eager, and of eager's dtype and rank."""
    function = BY_PATH[name]
    inputs = [torch.ones(3), -torch.ones(3), torch.tensor([1.0, -2.0, 3.0, 4.0])]
    static = dy2st.to_static(function)
    deployed = dy2st.to_static(function, backend="onnxruntime")
    with torch.no_grad():
        assert all(same(static(x), function(x)) and same(deployed(x), function(x)) for x in inputs)
    dy2st.save(static, tmp_path / "model.dy2st")
    loaded = dy2st.load(tmp_path / "model.dy2st")
    with torch.no_grad():
        assert all(same(loaded(x), function(x)) for x in inputs[:2])


def test_elements_of_several_types_are_refused():
    def model(x):
        found = [0.0]
        for row in x:
            if row > 0:
                found.append(row)  # noqa: PERF401
        return found

    with pytest.raises(DifferentDtypesError, match="a list whose elements are a float32 tensor or a float"):
        dy2st.to_static(model)(torch.ones(3))


def reshaped_by_path(x):
    y = x.t() if x.sum() > 0 else x
    return y, y * 2, y.reshape(-1), y.flatten() + 1, y.contiguous(), y.contiguous().view(-1)


def turned_in_a_loop(x):
    y = x.t()
    while y.sum() > 20:
        y = (y / 2).t()
    return y, y + 1


LAYOUTS: dict[str, typing.Callable[[Tensor], Any]] = {
    "a view by path": lambda x: x.t() if x.sum() > 0 else x,
    "a new tensor by path": lambda x: x.t() * 2 if x.sum() > 0 else x * 3,
    "an expanded one": lambda x: x.expand(4, 3, 3) if x.sum() > 0 else x.permute(1, 0)[None],
    "what is made of it": reshaped_by_path,
    "of a loop": turned_in_a_loop,
    "a view that there is not": lambda x: (x.t() if x.sum() > 0 else x).view(-1),
}


def layout(result):
    if isinstance(result, BaseException):
        return type(result)
    return [(each.stride(), each.tolist()) for each in pytree.tree_leaves(result)]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_result_lies_in_memory_as_it_does_in_eager(name, tmp_path):
    function = LAYOUTS[name]
    static = dy2st.to_static(function)
    inputs = [torch.arange(9.0).view(3, 3), -torch.ones(3, 3), torch.ones(3, 3).t() * 9]
    for x in inputs:
        want, got = outcome(function, x), outcome(static, x)
        assert layout(got) == layout(want)
        if isinstance(want, Tensor):
            assert (want.data_ptr() == x.data_ptr()) == (got.data_ptr() == x.data_ptr())
    dy2st.save(static, tmp_path / "model.dy2st")
    loaded = dy2st.load(tmp_path / "model.dy2st")
    for x in inputs[:2]:
        assert layout(outcome(loaded, x)) == layout(outcome(function, x))


def test_asking_how_a_tensor_lies_is_refused_where_that_may_depend_on_the_path():
    def model(x):
        y = x.t() if x.sum() > 0 else x
        return y if y.is_contiguous() else y * 2

    with pytest.raises(StagedNumberError, match="how a tensor lies in memory"):
        dy2st.to_static(model)(torch.ones(3, 3))

    def certain(x):
        y = x * 2 if x.sum() > 0 else x * 3
        return y if y.is_contiguous() and x.stride() == (3, 1) else y * 2

    static = dy2st.to_static(certain)
    for x in (torch.ones(3, 3), -torch.ones(3, 3)):
        assert same(static(x), certain(x))


def test_a_stride_is_told_as_it_is():
    def told(x):
        return x * 2 if x.sum() > 0 else x, x.stride(), x.is_contiguous()

    static = dy2st.to_static(told)
    row = torch.ones(1, 3)
    for x in (row, torch.ones(1, 6)[:, :3], row.expand(4, 3), torch.ones(4, 3), row):
        assert static(x)[1:] == told(x)[1:]
    assert static.cache_info().currsize == 4


def test_contiguous_is_the_tensor_itself_where_it_is_in_eager():
    def model(x):
        y = x.contiguous()
        return (y if x.sum() > 0 else -y), y is x, y.contiguous() is y

    static = dy2st.to_static(model)
    square = torch.arange(9.0).view(3, 3)
    for x in (square, square.t(), square[:1], square[:1].expand(3, 3)):
        assert static(x)[1:] == model(x)[1:]

    def by_path(x):
        y = x.t() if x.sum() > 0 else x
        return x if y.contiguous() is y else x + 1

    with pytest.raises(dy2st.errors.IdentityError):
        dy2st.to_static(by_path)(square)
