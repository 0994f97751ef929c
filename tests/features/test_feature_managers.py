"""Rows 33, 40, 41, 44: with statements, generators, what decorators make, and what Python calls by itself."""

# ruff: noqa: SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import contextlib
import functools
import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch
from harness import agree, dyn, outcomes, refuses, row, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import (
    CaughtError,
    GeneratorError,
    JumpError,
    NoValueError,
    NumpyError,
    StagedPathError,
    StagingError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNS = [(torch.tensor(v),) for v in ([1.0, 2.0, -0.5], [-1.0, -2.0], [0.1], [4.0, -3.5])]
ROWS = [
    (scale * torch.randn(n, 3, generator=torch.Generator().manual_seed(n)),) for n, scale in ((2, 1), (1, 4), (3, -2))
]


class Tag:
    """A context manager that counts, and keeps a log of how it was left."""

    def __init__(self, log: list[float]) -> None:
        self.log, self.depth = log, 0

    def __enter__(self) -> Tag:  # noqa: PYI034
        self.depth += 1
        self.log.append(self.depth)
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self.log.append(0 if kind is None else 100)
        self.depth -= 1


# ---- row 44


@row(44)
def test_managers_that_set_attributes() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        log: list[float] = []
        tag = Tag(log)
        with tag as outer:
            if x.sum() > 0:
                with tag:
                    x = x * outer.depth
                x = x * outer.depth
            else:
                x = x - outer.depth
            for r in x:
                with Tag([]) as inner:
                    if r > 1:
                        inner.depth += 1
                    x = x + inner.depth
        return x + tag.depth, len(log)

    agree(model, SIGNS, (dyn(0),), paths=3)


@row(44)
def test_generator_managers_that_change_state() -> None:
    def model(x: Tensor) -> Tensor:
        state = {"scale": torch.ones(())}

        @contextlib.contextmanager
        def scaled(k: Tensor) -> Iterator[Tensor]:
            old = state["scale"]
            state["scale"] = k
            try:
                yield k * 2
            finally:
                state["scale"] = old + 1

        with scaled(x.max()) as k:
            y = x * state["scale"]
            if x.sum() > 0:
                with scaled(k):
                    y = y + state["scale"]
            y = y + state["scale"]
        for r in x:
            with scaled(r) as k:
                if k > 1:
                    y = y * 0.5
                y = y + state["scale"]
        return y * state["scale"]

    agree(model, SIGNS, (dyn(0),), paths=3)


class Pushed(nn.Module):
    """A manager that is a method, and keeps tensors in attributes and in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.h = torch.zeros(1)
        self.k = 2.0
        self.register_buffer("entered", torch.zeros((), dtype=torch.int64))

    @contextlib.contextmanager
    def pushed(self, v: Tensor) -> Iterator[Tensor]:
        """The state with something added; afterwards twice what it was."""
        before = self.h
        self.h = self.h + v
        self.entered += 1
        yield self.h
        self.h = before * self.k

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        out = x
        for r in x:
            with self.pushed(r) as h:
                if r > 0:
                    out = out + h
                while out.sum() > 9:
                    with self.pushed(r):
                        out = out / 2
        return out, self.h


@row(44, 29, 30)
def test_managers_that_are_methods() -> None:
    agree(Pushed(), SIGNS, (dyn(0),), paths=3)


@row(44)
def test_managers_of_the_library() -> None:
    lock = threading.Lock()

    class Closable:
        def __init__(self, x: Tensor) -> None:
            self.x = x

        def close(self) -> None:
            self.x = self.x * 0

    def model(x: Tensor) -> tuple[Tensor, int]:
        log: list[float] = []
        with contextlib.ExitStack() as stack, lock:
            tag = stack.enter_context(Tag(log))
            stack.callback(log.append, 7.0)
            if x.sum() > 0:
                x = x * (tag.depth + 1)
        with contextlib.suppress(ValueError):
            x = x + 1
            int("no number")
            x = x + 100
        with contextlib.closing(Closable(x)) as held:
            y = held.x
            if y.sum() > 3:
                y = -y
        with contextlib.nullcontext(y * 2) as z:
            for _ in range(3):
                with contextlib.nullcontext():
                    if z.sum() > 2:
                        break
                    z = z + 1  # noqa: PLW2901
        return z + held.x, len(log)

    agree(model, SIGNS, (dyn(0),), paths=3, whole=False)


@row(44, 10, 8)
def test_jumps_out_of_managers() -> None:
    def arm(x: Tensor) -> Tensor:
        log: list[float] = []
        if x.sum() > 0:
            with Tag(log):
                return x + len(log)
        return x - len(log)

    def around(x: Tensor) -> Tensor:
        with torch.no_grad():
            for i in range(4):
                if x.sum() > 5:
                    break
                with contextlib.nullcontext(i) as k:
                    if x.min() < -3:
                        continue
                    x = x + k
            if x.sum() < 0:
                return x - 1
        return x

    agree(arm, SIGNS, (dyn(0),))
    agree(around, [*SIGNS, (torch.tensor([-9.0, 9.0]),), (torch.tensor([-9.0, 1.0]),)], (dyn(0),), paths=4)


@row(44, 10)
def test_jumps_past_an_exit_that_changes_something_are_refused() -> None:
    def model(x: Tensor) -> Tensor:
        log: list[float] = []
        with Tag(log):
            if x.sum() > 0:
                return x + 1
        return x - len(log)

    def looped(x: Tensor) -> tuple[Tensor, int]:
        log: list[float] = []
        for _ in range(4):
            with Tag(log):
                if x.sum() > 5:
                    break
                x = x + 1
        return x, len(log)

    for each in (model, looped):
        assert isinstance(refuses(each, SIGNS[0], (dyn(0),)), JumpError)


@row(44, 43)
def test_managers_that_may_swallow_what_a_tensor_decides_are_refused() -> None:
    @contextlib.contextmanager
    def forgiving() -> Iterator[None]:
        try:  # noqa: SIM105
            yield
        except ValueError:
            pass

    def suppressed(x: Tensor) -> Tensor:
        with contextlib.suppress(ValueError):
            if x.sum() > 0:
                raise ValueError
            x = x + 1
        return x

    def forgiven(x: Tensor) -> Tensor:
        with forgiving():
            if x.sum() > 0:
                raise ValueError
            x = x + 1
        return x  # noqa: RET504

    def stacked(x: Tensor) -> Tensor:
        with contextlib.ExitStack() as stack:
            if x.sum() > 0:
                stack.enter_context(Tag([]))
                x = x * 2
        return x

    for each in (suppressed, forgiven):
        assert isinstance(refuses(each, SIGNS[0], (dyn(0),)), CaughtError | StagingError)
    assert isinstance(refuses(stacked, SIGNS[0], (dyn(0),)), StagedPathError)


@row(44, 42)
def test_no_handler_takes_a_refusal_for_its_own() -> None:
    def suppressed(x: Tensor) -> Tensor:
        with contextlib.suppress(Exception):
            x = x + torch.as_tensor(x.numpy()).sum()
        return x

    def handled(x: Tensor) -> Tensor:
        try:
            x = x + torch.as_tensor(x.numpy()).sum()
        except Exception:  # noqa: BLE001 - that is what is tested
            x = x - 1
        return x

    for each in (suppressed, handled):
        assert isinstance(refuses(each, SIGNS[0]), NumpyError)


# ---- row 44: autocast


class Mixed(nn.Module):
    """Autocast as a block, as an object, as a decorator, switched off inside, and in staged code."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(3, 4), nn.Linear(4, 3)
        self.norm = nn.LayerNorm(4)
        self.dtype = dtype
        self.context = torch.autocast("cpu", dtype=dtype)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        with torch.autocast("cpu", dtype=self.dtype):
            y = self.up(x)
            z = self.norm(y)
            if y.sum() > 0:
                q = torch.softmax(y @ self.down.weight.T, -1)
            else:
                q = self.down(y)
            loss = nn.functional.mse_loss(q, x)
            joined = torch.cat([q, x])
            with torch.autocast("cpu", enabled=False):
                plain = x @ x.T

        @torch.autocast("cpu", dtype=self.dtype)
        def inner(v: Tensor) -> Tensor:
            return self.up(v) if v.sum() > 0 else torch.matmul(v, self.up.weight.T)

        h = torch.zeros(1, 3, dtype=self.dtype)
        for line in x:
            with self.context:
                h = torch.tanh(self.down(self.up(line[None] + h)))
                if h.float().sum() > 0.5:
                    h = h * 0.5
        return y, z, q, loss, joined, plain, inner(x), h


def eager_and_program(model: nn.Module, inputs: list[tuple[Tensor]]) -> None:
    """Exactly equal: the program runs the same kernels in the same types."""
    program = dy2st.export(model, inputs[0], dynamic_shapes=(dyn(0),)).module()
    for (x,) in inputs:
        with torch.no_grad():
            expected, actual = model(x), program(x)
        for want, got in zip(expected, actual, strict=True):
            assert want.dtype is got.dtype
            torch.testing.assert_close(got, want)
    outcomes.append("Y")


@row(44)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_is_part_of_the_program(dtype: torch.dtype) -> None:
    eager_and_program(Mixed(dtype).eval(), ROWS)


@row(44)
def test_autocast_on_onnxruntime() -> None:
    # Float32 results of half-precision steps are as exact as these.
    for dtype in (torch.float16, torch.bfloat16):
        report = dy2st.check(Mixed(dtype).eval(), ROWS, rtol=1e-2, atol=1e-3)
        assert report.ok, str(report)
    outcomes.append("Y")


@row(44)
def test_autocast_of_recurrent_and_attention_layers() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.conv = nn.GRUCell(3, 4), nn.Conv1d(3, 4, 3, padding=1)
            self.attend, self.norm = nn.MultiheadAttention(4, 2, batch_first=True), nn.BatchNorm1d(4)

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                c = self.norm(self.conv(x.T[None]))
                h = self.cell(x)
                if x.sum() > 0:
                    h = h * 2
                k, weights = self.attend(h[None], h[None], h[None])
            return c, h, k, weights

    eager_and_program(Model().eval(), ROWS)


@row(44)
@pytest.mark.filterwarnings("ignore:CUDA is not available:UserWarning")
def test_autocast_for_another_device_does_nothing() -> None:
    def model(x: Tensor) -> Tensor:
        with torch.autocast("cuda", dtype=torch.float16):
            return x @ x.T if x.sum() > 0 else x @ x.T * 2

    agree(model, ROWS, (dyn(0),), paths=1, whole=False)


# ---- row 33


@row(33)
def test_generators_that_python_can_run() -> None:
    def pieces(x: Tensor, size: int) -> Iterator[Tensor]:
        for start in range(0, 4, size):
            piece = x[start : start + size]
            yield piece * 2 if piece.sum() > 0 else piece

    def running(values: Any) -> Any:
        total = torch.zeros(2)
        for value in values:
            if value.sum() > 0:
                total = total + value
            got = yield total
            if got is not None:
                total = total * got
        return total

    def both(x: Tensor) -> Any:
        yield from pieces(x, 2)
        last = yield from running(pieces(x, 2))
        yield last - 1

    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total = torch.zeros(2)
        for piece in both(x):
            if piece.sum() > 1:
                total = total + piece
        stacked = torch.stack(list(pieces(x, 2))) + sum(p.mean() for p in pieces(x, 1))
        steps = running(pieces(x, 2))
        first = next(steps)
        return total, stacked, first + steps.send(3.0)

    agree(model, vectors(4, 4, 4, 4, scale=2.0), paths=3, whole=False)


@row(33, 29)
def test_generators_that_change_state() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def lines(self, x: Tensor, n: int) -> Iterator[Tensor]:
            """Yields, and counts in a buffer, also where the consumer leaves early."""
            for i in range(n):
                self.seen = self.seen + x[i].sum()
                yield x[i] * self.seen

        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros(3)
            for line in self.lines(x, 3):
                total = total + line
                if total.sum() > 4:
                    break
            if x.sum() > 0:
                for line in self.lines(x, 2):
                    total = total - line
            return total

    agree(Model(), [(scale * torch.randn(3, 3),) for scale in (1.0, 4.0, -2.0, 0.1)] + [(torch.ones(3, 3),)], paths=3)


@row(33)
def test_generators_whose_steps_depend_on_a_tensor_are_refused() -> None:
    def positive(x: Tensor) -> Iterator[Tensor]:
        for element in x:
            if element > 0:
                yield element

    def until(x: Tensor) -> Iterator[Tensor]:
        while x.sum() < 9:
            x = x + 1
            yield x

    def early(x: Tensor) -> Iterator[Tensor]:
        if x.sum() > 0:
            return
        yield x

    for generator in (positive, until, early):

        def model(x: Tensor, generator: Any = generator) -> Tensor:
            total = torch.zeros(())
            for element in generator(x):
                total = total * 0.5 + element.sum()
            return total

        assert isinstance(refuses(model, (torch.ones(3),)), GeneratorError)


@row(33)
def test_iterators_advance_on_one_path_only() -> None:  # noqa: C901
    def whole(x: Tensor) -> Tensor:
        steps = iter([1.0, 2.0, 3.0])
        if x.sum() > 0:
            for step in steps:
                x = x * step
        return x + 1

    agree(whole, SIGNS, (dyn(0),))

    def arm_and_after(x: Tensor) -> Tensor:
        steps = iter([1.0, 2.0, 3.0])
        if x.sum() > 0:
            x = x * next(steps)
        return x + next(steps)

    def both_arms(x: Tensor) -> Tensor:
        steps = zip([1.0, 2.0], [3.0, 4.0], strict=True)
        if x.sum() > 0:
            x = x + list(steps)[0][1]  # noqa: RUF015
        return x + len(list(steps))

    def trips(x: Tensor) -> Tensor:
        steps = (k * 2 for k in range(9))
        while x.sum() < 10:
            for step in steps:
                x = x + step
                break
        return x

    def generator_in_arms(x: Tensor) -> Tensor:
        def values() -> Iterator[float]:
            yield 1.0
            yield 2.0

        steps = values()
        if x.sum() > 0:
            x = x * next(steps)
        else:
            x = x - next(steps)
        return x

    for model in (arm_and_after, both_arms, trips, generator_in_arms):
        assert isinstance(refuses(model, SIGNS[0]), GeneratorError)


# ---- row 40


def plus_one(function: Any) -> Any:
    """A decorator as users write it."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result + 1 if result.mean() > 0 else result

    return wrapper


def scaled_by(k: float) -> Any:
    """A decorator with an argument, as a class."""

    class Scaled:
        def __init__(self, function: Any) -> None:
            self.function = function
            functools.update_wrapper(self, function)

        def __call__(self, *args: Any) -> Any:
            result = self.function(*args)
            return result * k if result.sum() > 1 else result

    return Scaled


@functools.lru_cache
def triangle(n: int) -> Tensor:
    """A constant that is made once."""
    return torch.tril(torch.ones(n, n))


@functools.cache
def halved(x: Tensor) -> Tensor:
    """A cache on tensors."""
    return x / 2 if x.sum() > 0 else x


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """A manager that is used as a decorator."""
    yield


@plus_one
@torch.no_grad()
@functools.lru_cache
@logged()
@scaled_by(0.5)
@plus_one
def stacked(x: Tensor) -> Tensor:
    """Six decorators."""
    return x * 2 if x.sum() > 0 else -x


@functools.singledispatch
def described(value: Any) -> Any:
    """Chosen by type."""
    return value


@described.register
def _(value: torch.Tensor) -> Tensor:
    return value * 2 if value.sum() > 0 else value


class Decorated(nn.Module):
    """Decorated methods and cached properties."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.n = nn.Parameter(torch.tensor(2.0)), 3

    @functools.cached_property
    def scale(self) -> Tensor:
        """Computed once, by a branch."""
        return self.w * 2 if self.w > 0 else self.w

    @functools.cached_property
    def count(self) -> int:
        """Computed once, in Python."""
        return self.n + 1

    def shift(self, x: Tensor, k: float) -> Tensor:
        """What a partial method calls."""
        return x * k if x.sum() > 0 else x - k

    tripled = functools.partialmethod(shift, k=3.0)

    @plus_one
    @torch.inference_mode()
    def wrapped(self, x: Tensor) -> Tensor:
        """A decorated method."""
        return x * self.scale if x.max() > 1 else x

    def forward(self, x: Tensor) -> Tensor:
        k = self.scale
        if x.sum() > 0:
            x = x * self.scale + self.count
        return self.wrapped(self.tripled(x)) + k


@row(40)
def test_decorated_callees() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        mask = triangle(3)
        if x.sum() > 0:
            mask = triangle(3) * x.sum()
        return stacked(x) + halved(x) + halved(x) + described(x) + described(3), mask

    agree(model, SIGNS, (dyn(0),))
    assert type(triangle(3)) is Tensor, "the cache holds what eager code put there"
    agree(Decorated(), SIGNS, (dyn(0),), whole=False)

    class Late(Decorated):
        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                x = x * self.scale
            return x + self.scale

    assert isinstance(refuses(Late(), SIGNS[0]), NoValueError)


@row(40)
def test_caches_hold_nothing_of_a_capture() -> None:
    triangle.cache_clear()
    net = Decorated()
    dy2st.export(net, SIGNS[0])
    assert "scale" not in vars(net)

    def model(x: Tensor) -> Tensor:
        return x * triangle(2).sum() if x.sum() > 0 else x

    program = dy2st.export(model, SIGNS[0]).module()
    assert torch.equal(triangle(2) + 0, torch.tril(torch.ones(2, 2)))
    assert torch.equal(program(SIGNS[0][0]), model(SIGNS[0][0]))
    outcomes.append("Y")


# ---- row 41


class Vector:
    """What Python calls of a class by itself."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __add__(self, other: float) -> Vector:
        return Vector(self.x + other if self.x.sum() > 0 else self.x - other)

    def __neg__(self) -> Vector:
        return Vector(-self.x if self.x.sum() > 0 else self.x)

    def __lt__(self, other: float) -> Tensor:
        return self.x.sum() < other if self.x.max() > 1 else self.x.max() < other

    def __getitem__(self, key: int) -> Tensor:
        return self.x[key] if self.x.sum() > 0 else self.x[0]

    def __getattr__(self, name: str) -> Tensor:
        if name == "twice":
            return self.x * 2 if self.x.sum() > 0 else self.x
        raise AttributeError(name)

    def __enter__(self) -> Tensor:
        return self.x if self.x.sum() > 0 else self.x + 1

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, k: float) -> Tensor:
        return self.x + k if self.x.sum() > 0 else self.x

    @property
    def value(self) -> Tensor:
        """A property with a setter and a deleter."""
        return self.x if self.x.sum() > 0 else self.x * 2

    @value.setter
    def value(self, new: Tensor) -> None:
        self.x = new if new.sum() > 0 else new + 1

    @value.deleter
    def value(self) -> None:
        self.x = self.x * 0


@row(41)
def test_special_methods_and_properties() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        vector = Vector(x)
        y = (-(vector + 1)).value
        with Vector(x * 2) as z:
            z = z + vector(3.0)  # noqa: PLW2901
        if vector < 2:
            z = z + vector[-1]
        vector.value = x - 1
        twice = vector.twice + vector.value
        del vector.value
        return y, z, twice, vector.x

    agree(model, SIGNS, (dyn(0),), paths=2, whole=False)


class Hooked(nn.Module):
    """Hooks of every kind on a child, and on the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("largest", torch.zeros(()))

        def before(module: nn.Module, args: tuple[Tensor], kwargs: dict[str, Any]) -> Any:
            if args[0].sum() > 0:
                return (args[0] * 2,), kwargs
            return None

        def after(module: nn.Module, args: tuple[Tensor], kwargs: dict[str, Any], output: Tensor) -> Any:
            if output.mean() > 0:
                return output + 1
            return None

        self.linear.register_forward_pre_hook(before, with_kwargs=True)
        self.linear.register_forward_hook(after, with_kwargs=True)
        self.linear.register_forward_hook(lambda module, args, output: output * 0.5, prepend=True)
        self.register_forward_pre_hook(lambda module, args: (args[0] + 1,) if args[0].sum() > 2 else None)
        self.register_forward_hook(noted)

    def forward(self, x: Tensor) -> Tensor:
        for line in x:
            if line.sum() < 0:
                x = x + self.linear(x)
        return self.linear(x)


def noted(module: Any, args: Any, output: Tensor) -> Tensor | None:
    """A hook that changes the module's state."""
    if output.max() > module.largest:
        module.largest = output.max()
        return None
    return output - 1


@row(41, 29)
def test_hooks_of_every_kind() -> None:
    agree(Hooked(), [*ROWS, (-torch.ones(2, 3),), (5 * torch.ones(1, 3),)], (dyn(0),), paths=3, whole=False)


class Called(nn.Module):
    """A call of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def __call__(self, x: Tensor) -> Tensor:
        y = super().__call__(x)
        return y if y.sum() > 0 else -y

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if x.sum() > 0 else x


class Calling(nn.Module):
    """Calls a child that has a call of its own, and class and static methods in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.child = Called()
        self.child.register_forward_hook(lambda module, args, output: output * 2 if output.max() > 0 else output)

    @classmethod
    def doubled(cls, x: Tensor) -> Tensor:
        """A class method."""
        return cls.shifted(x * 2) if x.sum() > 0 else x

    @staticmethod
    def shifted(x: Tensor) -> Tensor:
        """A static method."""
        return x + 1 if x.mean() > 1 else x

    def forward(self, x: Tensor) -> Tensor:
        y = self.doubled(x) + type(self).shifted(x) + Calling.doubled(x) + self.__class__.shifted(x)
        return self.child(y) + self.child.forward(x)


@row(41)
def test_calls_of_their_own() -> None:
    agree(Called(), ROWS, (dyn(0),), whole=False)
    agree(Calling(), ROWS, (dyn(0),))


@row(41)
def test_parametrizations() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
            self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))

        def forward(self, x: Tensor) -> Tensor:
            return self.normed(x) if x.sum() > 0 else self.spectral(x)

    agree(Model().eval(), ROWS, (dyn(0),), whole=False)
