"""Row 44: with statements: managers of the user's and of the library, jumps out of them, autocast."""

# ruff: noqa: SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import pytest
import torch
from harness import agree, both_signs, dyn, outcomes, refuses, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import (
    CaughtError,
    JumpError,
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


@row(44)
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


@row(44)
def test_with_statements() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor, self.depth = factor, 0

        def __enter__(self) -> Scale:  # noqa: PYI034
            self.depth += 1
            return self

        def __exit__(self, *exc: object) -> None:
            self.depth -= 1

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad(), Scale(2.0) as scale:
            if x.sum() > 0:
                with Scale(3.0) as inner:
                    y = x * inner.factor * scale.depth
            else:
                y = x - scale.factor
        with torch.autocast("cpu", enabled=False):
            total = torch.zeros(())
            for element in y:
                with contextlib.nullcontext(element * 2) as doubled:
                    if doubled > 4:
                        continue
                    total = total + doubled
        return y + scale.depth, total

    agree(model, both_signs(3, 1, 2), (dyn(0),), paths=4)


@row(44, 10)
def test_return_and_break_in_with() -> None:
    def model(x: Tensor) -> Tensor:
        with torch.no_grad():
            if x.sum() > 3:
                return x - 1
            for i in range(x.shape[0]):
                with contextlib.suppress(ZeroDivisionError):
                    if x[i] < -1:
                        break
                    x = x * 0.5
            if x.sum() < -1:
                return -x
        return x

    agree(
        model,
        [(torch.tensor(v),) for v in ([1.0, 2.5], [0.1, 0.2, 0.1], [-3.0, 0.1], [-0.5, -4.0, 5.0], [-3.0])],
        (dyn(0),),
        paths=4,
    )


# ---- autocast


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


@pytest.mark.slow
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


def gradients_by_mode(x: Tensor) -> Tensor:
    while x.abs().max() > 1:
        with torch.set_grad_enabled(x.requires_grad):
            x = x / 2
        with (
            torch.no_grad(),
            torch.set_grad_enabled(
                False,
            ),
        ):
            x = x - 0.1
    return x


@row(44)
def test_a_mode_of_gradients_for_a_block() -> None:
    agree(gradients_by_mode, both_signs(3, 1), (dyn(0),), paths=1)


@row(44)
def test_a_mode_of_gradients_for_a_block_has_its_gradients() -> None:
    weight = torch.tensor(2.0, requires_grad=True)

    def model(x: Tensor) -> Tensor:
        y = x * weight
        if x.sum() > 0:
            with torch.set_grad_enabled(False):
                z = y * weight
            y = y + z * weight
        return y.sum()

    static = dy2st.to_static(model)
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 0.5])):
        (wanted,), (found,) = (torch.autograd.grad(each(x), weight) for each in (model, static))
        assert torch.equal(wanted, found)


@row(44)
def test_a_mode_of_gradients_that_outlives_its_path_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            torch.set_grad_enabled(False)
            x = x * 2
        return x

    assert refuses(model, both_signs(2)[0]).code == "D2S252"
