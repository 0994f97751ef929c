"""Loops that run once more where there is NaN: as eager has it on all numbers, or are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes import nan_reruns
from dy2st.onnx.passes.nan_reruns import rerun_for_nan
from dy2st.onnx.passes.node_constructs import RERUN
from dy2st.onnx.passes.place_facts import are_places_in, places_below
from dy2st.onnx.runtime.stepping import End, Stepper
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed, parsed
from tests.onnx.test_nan_tests import numbers

SHAPES = (None, {0: Dim("n")})


@pytest.fixture(autouse=True)
def _any_gain(monkeypatch):
    """How much is gained is not looked at here."""
    monkeypatch.setattr(nan_reruns, "MOST_FOR_ONE", 1000)
    monkeypatch.setattr(nan_reruns, "_saved", lambda *_: 3)


def stacked(rows: list[Tensor], *shape: int) -> Tensor:
    return torch.stack(rows) if rows else torch.zeros(0, *shape, dtype=torch.int64)


def rows(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    told = []
    for row in x:
        best = (h[:, None] + row[None, :]).max(0)
        h = torch.tanh(best.values)
        told.append(best.indices)
    return stacked(told, 5), h


def looked_up(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """What is read is another row than that of eager, until there is NaN."""
    table, told = torch.arange(25.0).reshape(5, 5), []
    for row in x:
        h = h + row
        place = h.argmax()
        h = h * 0.5 + table[place]
        told.append(place)
    return stacked(told), h


def two(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    told, other = [], h.double()
    for row in x:
        h, other = h + row, other * 0.5 - row
        told.append(h.argmax(-1) * 10 + other.argmin(-1))
    return h, other, stacked(told)


def branch(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    count = torch.zeros((), dtype=torch.int64)
    for row in x:
        h = h + row
        best = h.argmax()
        if best > 1:
            count = count + best
        else:
            h = h - 1
    return h, count


def nested(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    trips = torch.zeros((), dtype=torch.int64)
    while trips < 2:
        for row in x:
            h = torch.where(torch.arange(5) == (h + row).argmin(), row, h)
        trips = trips + 1
    return h, trips


def until(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Ends when the place is that of the first NaN, if there is one; without the test it would go on for ever."""
    trips, place = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    target = torch.where(h.isnan(), 1.0, 0.0).argmax()
    step = torch.zeros(5).index_fill(0, target[None], float(len(x)) + 1).nan_to_num(0.0)
    h = h.nan_to_num(posinf=1.0, neginf=-1.0) if not bool(h.isnan().any()) else h
    h = h.clamp(-2, 2)
    while trips < 1 or place != target:
        h = h + step
        place = h.argmax()
        trips = trips + 1
    return h, trips


def few(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """Ends after six trips at most; a place goes into the next trip, and decides whether there is one."""
    table, told = torch.arange(25.0).reshape(5, 5) / 10 - 1, []
    place, counts = torch.tensor(0), torch.zeros(5)
    for _ in range(6):
        h = torch.sin(h * 1.5) + table[place] + x.sum(0)
        place = h.argmax()
        counts = counts.scatter_add(0, place[None], h.max()[None])
        told.append(place)
        if place == 3:
            break
    return stacked(told), h, counts


def few_or_none(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """A loop that may make no trip: there is nothing to be summed then."""
    place, t = torch.tensor(0), 0
    while t < 6 and (x[:, 0] < t + 1).all():
        h = h * 0.5 + x.sum(0)
        place = place + h.argmin()
        t += 1
    return h, place


MODELS = [rows, looked_up, two, branch, nested, until, few, few_or_none]


def exported(model: Callable[..., object], file: Path) -> tuple[OnnxSession, int]:
    """The file, and how many of its loops run once more."""
    dy2st.onnx.export(model, (torch.zeros(5), torch.ones(3, 5)), file, dynamic_shapes=SHAPES)
    nodes = ir.from_proto(onnx.load(file)).graph.all_nodes()
    return OnnxSession(file), sum(RERUN in node.metadata_props for node in nodes)


@pytest.mark.parametrize("model", MODELS)
def test_what_eager_does(model: Callable[..., tuple[Tensor, ...]], tmp_path: Path) -> None:
    file, reruns = exported(model, tmp_path / "m.onnx")
    assert reruns
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 5) * 8:
        args = [torch.from_numpy(numbers(rng, *size)) for size in ((5,), (n, 5))]
        found = file.values({name: arg for name, arg in zip("hx", args, strict=True) if name in file.input_names})
        for one, other in zip(found, model(*args), strict=True):
            torch.testing.assert_close(one, other, equal_nan=True)


def divided(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """A place that may be wrong divides, and may be zero."""
    told = []
    for row in x:
        h = h + row
        told.append(100 // (h.argmax() - torch.where(h.isnan(), 1.0, 0.0).sum().long() + 9))
    return stacked(told), h


def from_any(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    """A row is read of a table that may have fewer."""
    told = []
    for row in x:
        h = h + x[(h + row).argmax()]
        told.append(h.argmax())
    return stacked(told), h


def ordered(h: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    told = []
    for row in x:
        h = h + row
        told.append(h.topk(3).indices)
    return stacked(told, 3), h


@pytest.mark.parametrize("model", [divided, from_any, ordered])
def test_loops_that_stay(model: Callable[..., tuple[Tensor, ...]], tmp_path: Path) -> None:
    _, reruns = exported(model, tmp_path / "m.onnx")
    assert not reruns


def alone(model: onnx.ModelProto, feed: dict[str, Tensor]) -> list[Tensor]:
    given = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return [torch.from_numpy(each) for each in given.run(None, {name: each.numpy() for name, each in feed.items()})]


@pytest.mark.parametrize("model", [rows, branch])
def test_a_loop_is_checked_once(model: Callable[..., tuple[Tensor, ...]], tmp_path: Path) -> None:
    """The loop behind the test is none of the user's, and what ran in vain is not looked at."""
    file = tmp_path / "m.onnx"
    exported(model, file)
    torch.manual_seed(0)
    inputs = [(torch.randn(5), torch.randn(n, 5)) for n in (0, 1, 5, 7)]
    wrong = torch.randn(3, 5)
    wrong[1, 2] = torch.nan
    for sets in (inputs, [*inputs, (torch.randn(5), wrong)]):
        report = dy2st.check(model, sets, dynamic_shapes=SHAPES, onnx_file=file)
        assert report.ok, report
        assert report.covered, report
    assert not dy2st.check(model, inputs[:1], dynamic_shapes=SHAPES, onnx_file=file).covered
    for x in (inputs[2][1], wrong):
        stepper = Stepper.of(file, alone)
        h = torch.ones(5)
        for one, other in zip(stepper.outputs({"h": h, "x": x}), model(h, x), strict=True):
            torch.testing.assert_close(one, other, equal_nan=True)
        trips = [step.place for step in stepper.steps if isinstance(step, End) and isinstance(step.place[-1][1], int)]
        assert len(trips) == len(set(trips)) == len(x)


@pytest.mark.parametrize(
    ("text", "below"),
    [
        ("ArgMax<axis = 1>(x)", 7),
        ("ArgMin<axis = 0>(x)", None),  # of a size that is not known
        ("Mod(n, five)", 5),
        ("Mod<fmod = 1>(n, five)", None),
        ("Mod(n, minus)", None),
        ("Where(here, best, five)", 7),
        ("Where(here, best, minus)", None),
        ("Where(here, best, n)", None),
        ("Unsqueeze(best, axis)", 7),
        ("Add(best, five)", 12),
        ("Sub(best, five)", None),
        ("Identity(five)", 6),
    ],
)
def test_places(text: str, below: int | None) -> None:
    model = parsed(f"""
    g (float[batch, 7] x, int64[batch, 1] n, bool[batch, 1] here) => (int64 found) {{
        five = Constant<value = int64[1] {{5}}>()
        minus = Constant<value = int64[1] {{-5}}>()
        axis = Constant<value_ints = [0]>()
        best = ArgMax<axis = 1>(x)
        found_places = {text}
        found = ReduceSum<keepdims = 0>(found_places)
    }}""")
    places = next(value for node in model.graph for value in node.outputs if value.name == "found_places")
    assert places_below(places) == below
    x = model.graph.inputs[0]
    assert are_places_in(places, x, 1) == (below is not None and below <= 7)
    assert not are_places_in(places, x, 0)
    assert not are_places_in(places, x, 2)


def test_few_trips_or_none() -> None:
    """Sums are stacked in each trip; of no trip there is none."""
    text = """
    g (float[4] h, bool on) => (float[4] end, int64 total) {
        six = Constant<value_int = 6>()
        none = Constant<value_int = 0>()
        end, total = Loop(six, on, h, none) <body = step (int64 i, bool go, float[4] state, int64 so_far)
            => (bool more, float[4] next, int64 sum) {
            more = Identity(go)
            next = Sin(state)
            plain = ArgMax<axis = 0, keepdims = 0>(next)
            flags = IsNaN(next)
            numbers = Cast<to = 2>(flags)
            first = ArgMax<axis = 0, keepdims = 0>(numbers)
            some = ReduceMax<keepdims = 0>(flags)
            place = Where(some, first, plain)
            sum = Add(so_far, place)
        }>
    }"""
    h = np.array([0.5, 1, -2, 0.1], np.float32)
    calls = [(given, np.array(on)) for on in (True, False) for given in (h, np.where(h == 1, np.nan, h), h * np.inf)]
    assert changed(text, lambda model: rerun_for_nan(model, OPSET), *calls).count("If") == 1
