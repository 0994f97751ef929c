"""Rows 61, 63, 67: functions that run as programs, and the way back."""

from __future__ import annotations

import copy
import functools
import gc
import threading
import types
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from harness import dyn, outcomes, refused, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import LostStateError, RetracingWarning, StagingError

if TYPE_CHECKING:
    from collections.abc import Iterator


def scaled(x: Tensor, k: float = 2.0, *, mode: str = "up") -> Tensor:
    """A branch on a tensor, and two on Python values."""
    if mode == "down":
        k = 1 / k
    if x.sum() > 0:
        return x * k
    return x - k


class Net(nn.Module):
    """Dropout, batch norm outside of staged code, and a number that is read."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.linear = nn.Linear(3, 3)
        self.dropout = nn.Dropout(0.5)
        self.scale = 2.0

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        if x.mean() > 0.05:
            x = self.linear(x) * self.scale
        steps = 0
        while x.norm() > 1:
            x = x / 2
            steps += 1
        return self.dropout(x) + steps


def equal(static: Any, eager: Any, *inputs: Any) -> None:
    """The same results for every input, from the same random numbers."""
    for given in inputs:
        args = given if isinstance(given, tuple) else (given,)
        torch.manual_seed(3)
        expected = eager(*args)
        torch.manual_seed(3)
        torch.testing.assert_close(static(*args), expected)
    outcomes.append("Y")


@pytest.fixture
def captures() -> Iterator[list[warnings.WarningMessage]]:
    """The warnings about needless captures."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RetracingWarning)
        yield found


# ---- row 61


@row(61)
def test_one_program_for_each_signature() -> None:
    static = dy2st.to_static(scaled)
    x = torch.tensor([1.0, -3.0])
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x,), {}),
        ((x.double(),), {}),
        ((x[:1],), {}),
        ((x[None],), {}),
        ((x, 3.0), {}),
        ((x, 3), {}),
        ((x, 1.0), {"mode": "down"}),
        ((torch.ones(2, 3).T,), {}),
        ((torch.ones(3, 2),), {}),
    ]
    for number, (args, kwargs) in enumerate(calls, 1):
        for sign in (1, -1):
            given = (args[0] * sign, *args[1:])
            torch.testing.assert_close(static(*given, **kwargs), scaled(*given, **kwargs))
        assert len(static.programs) == number
    static(x=x)
    static(x, mode="down", k=1.0)
    assert len(static.programs) == len(calls), "the same calls in another form"


@row(61)
def test_numbers_that_compare_equal_are_not_the_same() -> None:
    def ratio(x: Tensor, y: float) -> Tensor:
        return torch.copysign(x, torch.tensor(y)) if x.sum() > 0 else x

    static = dy2st.to_static(ratio)
    x = torch.ones(2)
    for y in (0.0, -0.0, 0.0, float("nan"), float("nan")):
        assert torch.equal(static(x, y), ratio(x, y))
    assert len(static.programs) == 3


@row(61)
def test_torchs_modes_are_part_of_the_signature() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.zeros(2) + x if x.sum() > 0 else torch.ones(2) - x
        return y @ y.reshape(2, 1)

    static = dy2st.to_static(model)
    x = torch.tensor([1.5, 2.0])
    equal(static, model, x, -x)
    with torch.no_grad():
        equal(static, model, x, -x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        equal(static, model, x, -x)
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(RuntimeError, match="dtype"):
            model(torch.ones(2, dtype=torch.float32)) @ torch.ones(1, dtype=torch.float32)
        equal(static, model, x.double(), -x.double())
        assert static(x.double()).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert len(static.programs) == 4


@row(61)
def test_attributes_of_self() -> None:
    class Scaler:
        def __init__(self) -> None:
            self.factor = 2.0
            self.sizes = [1, 2]

        @dy2st.to_static
        def apply(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                return x * self.factor + len(self.sizes)
            return x

    scaler = Scaler()
    x = torch.ones(2)
    results = [scaler.apply(x)]
    scaler.factor = -1.0
    results.append(scaler.apply(x))
    scaler.sizes.append(7)
    results.append(scaler.apply(x))
    assert [float(r[0]) for r in results] == [4.0, 1.0, 2.0]
    assert len(scaler.apply.programs) == 3

    net = Net().eval()
    static = dy2st.to_static(net)
    equal(static, net, torch.randn(4, 3))
    static.scale = net.scale = 0.1
    equal(static, net, torch.randn(4, 3) + 1)


@row(61)
def test_arguments_of_any_type_are_compared() -> None:
    static = dy2st.to_static(lambda x, _: x)
    for argument in ({1, 2}, object(), Plain(), {1, 2}, Plain()):
        assert torch.equal(static(torch.ones(2), argument), torch.ones(2))


@row(61)
def test_an_object_is_not_kept_alive_by_its_programs() -> None:
    class Own:
        @dy2st.to_static
        def apply(self, x: Tensor) -> Tensor:
            return x * 2 if x.sum() > 0 else x

    thing = Own()
    thing.apply(torch.ones(2))
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None


@row(61)
def test_a_warning_names_what_keeps_changing(captures: list[warnings.WarningMessage]) -> None:
    static = dy2st.to_static(scaled)
    for rank in range(1, 10):
        static(torch.ones([2] * rank))
    (caught,) = captures
    text = str(caught.message)
    assert "scaled has been captured 6 times" in text
    assert "the number of dimensions of x keeps changing (4, then 5, then 6)" in text
    assert Path(caught.filename) == Path(__file__)

    captures.clear()
    by_value = dy2st.to_static(scaled)
    for k in range(9):
        by_value(torch.ones(2), k)
    (caught,) = captures
    assert "the value of k keeps changing (3, then 4, then 5)" in str(caught.message)
    assert "pass k as a tensor" in str(caught.message)


@row(61)
def test_no_warning_where_captures_are_few_or_shapes_are_declared(captures: list[warnings.WarningMessage]) -> None:
    static = dy2st.to_static(scaled, input_spec=["x=f32[n]"])
    for size in range(1, 10):
        equal(static, scaled, torch.ones(size), -torch.ones(size))
    assert len(static.programs) == 1
    net = Net()
    trained = dy2st.to_static(net)
    for _ in range(3):
        trained.train()(torch.randn(4, 3))
        trained.eval()(torch.randn(4, 3))
    assert len(trained.forward.programs) == 2
    assert not captures


@row(61)
def test_sizes_that_change_are_left_open(captures: list[warnings.WarningMessage]) -> None:
    static = dy2st.to_static(scaled)
    for size in range(2, 20):
        equal(static, scaled, torch.ones(size), -torch.ones(size))
    assert len(static.programs) == 2
    for size in (0, 1):
        equal(static, scaled, torch.ones(size), -torch.ones(size))
    assert len(static.programs) == 4
    assert not captures


@row(61)
def test_threads_share_programs_and_disturb_no_capture() -> None:
    static = dy2st.to_static(scaled)
    converted = dy2st.convert(scaled)
    net = Net().eval()
    module = dy2st.to_static(net)
    start = threading.Barrier(4)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait()
            generator = torch.Generator().manual_seed(number)
            for size in (1, 2, 3):
                x = torch.randn(size, generator=generator)
                y = torch.randn(2, 3, generator=generator)
                torch.testing.assert_close(static(x), scaled(x))
                torch.testing.assert_close(converted(x), scaled(x))
                with torch.no_grad():
                    assert not torch.is_grad_enabled()
                assert torch.is_grad_enabled()
                torch.testing.assert_close(module(y), net(y))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the main thread has to know
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert len(static.programs) == 3
    outcomes.append("Y")


@row(29, 30)
def test_state_that_a_program_would_lose_is_refused() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.seen = 0, []
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x: Tensor, what: str) -> Tensor:
            if x.sum() > 0:
                x = x * 2
            if what == "number":
                self.calls += 1
            elif what == "list":
                self.seen.append(3)
            elif what == "tensor":
                self.last = x
            else:
                self.total += x.sum()
                rows = [x]
                rows.append(x)
            return x + self.total + self.calls

    for what, named in (("number", "Counting.calls"), ("list", "list"), ("tensor", "Counting.last")):
        with refused(LostStateError, match=named):
            dy2st.to_static(Counting())(torch.ones(2), what)
    eager, static = Counting(), dy2st.to_static(Counting())
    equal(static, eager, (torch.ones(2), "buffer"), (-torch.ones(2), "buffer"), (torch.ones(2), "buffer"))
    assert torch.equal(static.total, eager.total)


class Plain:
    """An object with a method and a call."""

    def method(self, x: Tensor) -> Tensor:
        return x + 1 if bool(x.sum() > 100) else x

    def __call__(self, x: Tensor) -> Tensor:
        return self.method(x)


# ---- row 63


class Inner(nn.Module):
    """A child."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if bool(x.sum() > 100) else x


@row(63)
def test_functions_and_methods_come_back() -> None:
    static, converted = dy2st.to_static(scaled), dy2st.convert(scaled)
    assert dy2st.undo(static) is static.original is scaled
    assert dy2st.undo(converted) is scaled
    assert dy2st.undo(scaled) is scaled
    plain = Plain()
    for made in (dy2st.convert(plain.method), dy2st.to_static(plain.method)):
        back = dy2st.undo(made)
        assert back == plain.method
        assert back.__func__ is Plain.method
    partial = dy2st.undo(dy2st.convert(functools.partial(scaled, k=3.0)))
    assert partial.func is scaled
    assert partial.keywords == {"k": 3.0}


@row(63)
def test_modules_come_back_with_their_state() -> None:
    for make in (dy2st.convert, dy2st.to_static):
        net = Net().eval()
        made = make(net)
        made.scale = 0.5
        made.extra = nn.Linear(1, 1)
        back = dy2st.undo(made)
        assert type(back) is Net
        assert back.linear is net.linear
        assert back.scale == 0.5
        assert list(back.state_dict()) == list(made.state_dict())
        back.other = nn.Linear(1, 1)
        assert "other" not in dict(made.named_children())
        x = torch.randn(4, 3)
        assert torch.equal(back(x), copy.deepcopy(made)(x))
        assert dy2st.undo(back) is back
    own = Net()
    own.forward = types.MethodType(Inner.forward, own)
    assert dy2st.undo(dy2st.convert(own)).forward.__func__ is Inner.forward


@row(63)
def test_classes_and_callable_objects_come_back() -> None:
    class Local(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    native = Local.forward
    decorated = dy2st.to_static(Local)
    net = decorated()
    net(torch.ones(2))
    assert dy2st.undo(decorated) is Local
    assert Local.forward is native
    assert torch.equal(net(-torch.ones(2)), torch.ones(2)), "instances made before run eagerly too"
    assert dy2st.undo(dy2st.convert(Plain)) is Plain
    plain = Plain()
    plain.tag = "kept"
    back = dy2st.undo(dy2st.convert(plain))
    assert type(back) is Plain
    assert back.tag == "kept"


# ---- row 67


@row(67)
def test_train_and_eval_are_captured_apart() -> None:
    net = Net()
    static = dy2st.to_static(copy.deepcopy(net))
    for mode in (True, False, True, False):
        net.train(mode)
        static.train(mode)
        for shift in (0.0, 2.0):
            equal(static, net, torch.randn(5, 3) + shift)
            for name, buffer in net.named_buffers():
                torch.testing.assert_close(static.get_buffer(name), buffer, msg=f"{name}, training {mode}")
    assert len(static.forward.programs) == 2
    net.dropout.eval()
    static.dropout.eval()
    equal(static, net, torch.randn(5, 3))


@row(67)
def test_dropout_in_staged_code() -> None:
    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.4)

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                x = self.dropout(x) + 1
            for line in x:
                x = x + self.dropout(line)
            return x

    net = Inside()
    program = dy2st.export(net, (torch.ones(2, 3),), dynamic_shapes=(dyn(0),)).module()
    for x in (torch.ones(2, 3), -torch.ones(3, 3)):
        equal(program, net, x)
    program = dy2st.export(net.eval(), (torch.ones(2, 3),), dynamic_shapes=(dyn(0),)).module()
    equal(program, net, torch.ones(3, 3), -torch.ones(1, 3))


@row(67)
def test_modes_that_can_not_be_staged_are_refused() -> None:
    class Norm(nn.Module):
        def __init__(self, where: str) -> None:
            super().__init__()
            self.norm, self.where = nn.BatchNorm1d(3), where

        def forward(self, x: Tensor) -> Tensor:
            if self.where == "arm" and x.sum() > 0:
                x = self.norm(x)
            if self.where == "loop":
                while x.norm() > 1:
                    x = self.norm(x) / 2
            if self.where == "train" and x.sum() > 0:
                self.norm.train()
            if self.where == "eval" and x.sum() > 0:
                self.norm.eval()
            return self.norm(x)

    for where in ("arm", "loop", "train", "eval"):
        with refused(StagingError) as caught:
            dy2st.export(Norm(where), (torch.randn(4, 3),))
        assert caught.value.location is not None
    for where in ("arm", "loop"):
        net = Norm(where).eval()
        program = dy2st.export(net, (torch.randn(4, 3),)).module()
        equal(program, net, torch.ones(4, 3), -torch.ones(4, 3), 5 * torch.randn(4, 3))
