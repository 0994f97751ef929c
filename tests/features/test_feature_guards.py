"""``raise`` under a tensor condition and ``assert`` on tensors: where eager raises, the graph fails."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
import torch
from harness import agree, dyn, row, scalars, vectors
from torch import Tensor, nn

import dy2st

BAD = float("nan")


@row(43)
def test_a_raise_guards_the_code_after_it() -> None:
    def model(x: Tensor) -> Tensor:
        if x.isnan().any():
            raise ValueError("not a number")
        return x * 2

    agree(model, vectors(3, 1, 0), (dyn(0),), paths=1, raising=[(torch.tensor([1.0, BAD]),)])


@row(43)
def test_a_raise_on_each_kind_of_path() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 10:
            y = x + 1
        elif x.sum() > 5:
            message = f"between: {x.shape}"
            raise KeyError(message)
        else:
            if x[0] < 0:
                if x[1] < 0:
                    raise ValueError("both")
                return x - 1
            y = x - 2
        return y * 3

    good = [(torch.tensor(v),) for v in ([6.0, 6.0], [-1.0, 2.0], [1.0, 2.0])]
    bad = [(torch.tensor(v),) for v in ([3.0, 3.0], [-1.0, -2.0])]
    agree(model, good, paths=3, raising=bad)


@row(43, 3, 8)
def test_raises_in_loops() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while x.sum() < 5:
            x = x + 1
            steps += 1
            if steps > 4:
                raise RuntimeError("no convergence")
            for value in x:
                if value < -8:
                    raise ValueError("too small")
                if value > 100:
                    break
            else:
                x = x + 0.5
        return x, steps

    good = [(torch.full((n,), v),) for n, v in ((3, 0.5), (3, 9.0), (2, -1.0), (1, 4.5))]
    good.append((torch.tensor([103.0, -99.5]),))
    bad = [(torch.tensor([-6.0, -6.0]),), (torch.tensor([4.0, -10.0]),), (torch.zeros(0),)]
    agree(model, good, (dyn(0),), paths=3, raising=bad)


@row(43, 11)
def test_a_raise_behind_a_loop_that_returns() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        for _ in range(int(n)):
            x = x * 0.5
            if x.abs().max() < 1:
                return x
        raise RuntimeError("not converged")

    good = [(torch.tensor([0.5, 1.0]), torch.tensor(3)), (torch.tensor([5.0, 1.0]), torch.tensor(4))]
    bad = [(torch.tensor([99.0, 1.0]), torch.tensor(4)), (torch.tensor([0.1, 1.0]), torch.tensor(0))]
    agree(model, good, raising=bad)


@row(43, 12)
def test_a_loop_that_would_not_end_waits_for_the_guard() -> None:
    def model(x: Tensor) -> Tensor:
        if (x <= 0).any():
            raise ValueError("positive numbers only")
        while x.max() < 8:
            x = x * 2
        return x

    good = [(torch.tensor(v),) for v in ([1.0, 3.0], [9.0, 3.0])]
    agree(model, good, raising=[(torch.tensor([-1.0, 0.0]),)])


@row(43, 30)
def test_a_check_in_a_helper() -> None:
    def check(x: Tensor, low: float) -> None:
        if (x < low).any():
            raise ValueError("too low")

    def model(x: Tensor) -> Tensor:
        check(x, -1.0)
        if x.sum() > 0:
            check(x, 0.0)
            return x.sqrt()
        return x

    good = [(torch.tensor([1.0, 4.0]),), (torch.tensor([-0.5, 0.1]),)]
    agree(model, good, raising=[(torch.tensor([-2.0, 9.0]),), (torch.tensor([-0.5, 9.0]),)])


@row(43, 29)
def test_state_and_raise() -> None:
    @dataclass
    class Counter:
        n: int = 0

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            counter = Counter()
            for values in x:
                if values.sum() < 0:
                    raise ValueError("negative")
                if values.sum() > 1:
                    counter.n += 1
                    self.total = self.total + values.sum()
            return self.total * 2, counter.n

    good = [(torch.rand(n, 3),) for n in (3, 1, 0)]
    agree(Model(), good, (dyn(0),), raising=[(torch.tensor([[1.0, 2.0, 3.0], [-9.0, 0.0, 0.0]]),)])


@row(43, 42)
def test_an_exception_that_is_caught() -> None:
    def model(x: Tensor) -> Tensor:
        try:
            if x.sum() > 0:
                raise ValueError("positive")  # noqa: TRY301
            y = x
        except ValueError:
            y = -x
        return y

    agree(model, [(torch.ones(2),), (-torch.ones(2),)])


@row(42, 43)
def test_finally_and_with_around_a_raise() -> None:
    def model(x: Tensor) -> Tensor:
        y = x
        try:
            with contextlib.nullcontext():
                if x.sum() > 5:
                    raise ValueError("large")
                y = x + 1
        finally:
            y = y * 2
        return y

    agree(model, [(torch.ones(2),), (torch.zeros(2),)], paths=1, raising=[(torch.full((2,), 9.0),)])


@row(43)
def test_a_python_condition_raises_while_tracing() -> None:
    def model(x: Tensor) -> Tensor:
        if x.dim() != 1:
            raise ValueError("one dimension, please")
        try:
            value = {"a": 1}["b"]
        except KeyError:
            value = 2
        if x.sum() > 0:
            try:
                value = [1, 2][value]
            except IndexError:
                value += 1
        return x * value

    agree(model, [(torch.ones(2),), (-torch.ones(2),)], whole=False)


@row(45)
def test_an_assert_fails_in_the_graph() -> None:
    def model(x: Tensor) -> Tensor:
        assert (x > 0).all(), "positive"
        if x[0] > 2:
            assert x[1] > 2
            x = x + 1
        for v in x:
            assert v < 100, f"{v}"
        return x

    good = [(torch.tensor(v),) for v in ([1.0, 2.0], [3.0, 4.0])]
    bad = [(torch.tensor(v),) for v in ([1.0, -2.0], [3.0, 1.0], [1.0, 200.0])]
    agree(model, good, raising=bad)


@row(43, 17)
def test_a_bool_or_int_output_carries_the_guard() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        if x < 0:
            raise ValueError
        return x > 3, 4

    agree(model, scalars(1.0, 5.0), paths=1, raising=scalars(-1.0))


@row(43)
def test_guards_are_dropped_on_request_and_that_is_recorded(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        assert (x < 100).all()
        return x[:1] * [1.0, 2.0][int(x[0])]

    good, bad = (torch.tensor([1.0, 2.0]),), (torch.tensor([0.0, -2.0]),)
    places = [f"eager raises here: {Path(__file__).name}:", 'raise ValueError("negative")', "assert (x < 100).all()"]
    program = dy2st.export(model, good, drop_guards=True)
    dropped = program.graph_module.meta["dy2st.dropped_guards"]
    assert len(dropped) == 2
    assert all(place in "\n".join(dropped) for place in places)
    torch.testing.assert_close(program.module()(*bad), torch.zeros(1))

    file = tmp_path / "model.onnx"
    dy2st.onnx.export(model, good, file, drop_guards=True)
    properties = {entry.key: entry.value for entry in onnx.load(file).metadata_props}
    assert json.loads(properties["dy2st.dropped_guards"]) == dropped
    report = dy2st.check(model, [good], drop_guards=True)
    assert report.ok
    assert report.dropped_guards == tuple(dropped)
    assert f"dropped as allowed: {dropped[0]}" in str(report)
    # What eager raises without a word of the user's stays: the list has two elements.
    with pytest.raises(RuntimeError, match="eager raises here"):
        program.module()(torch.tensor([2.0, 2.0]))
    assert "dy2st.dropped_guards" not in {e.key for e in dy2st.onnx.export(model, good).model_proto.metadata_props}


def torchs_asserts(x: Tensor) -> Tensor:
    torch._assert(x.shape[0] % 2 == 0, f"an odd number of rows: {x.shape}")
    torch._assert(x.sum() < 100, "too much")
    for _ in range(x.shape[0] // 2):
        torch._assert(x.dim() == 1, "no vector")
        torch._assert((x > -50).all(), "too little")
        x = x / 2
    return x.view(x.shape[0] // 2, 2).sum(1)


@row(43)
def test_asserts_of_torch() -> None:
    wrong = [torch.full((4,), 30.0), torch.full((2,), -60.0), torch.ones(3)]
    agree(torchs_asserts, vectors(2, 4, 6), (dyn(0),), raising=[(x,) for x in wrong])
