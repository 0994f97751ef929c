"""State that lives on between calls: inputs and outputs of the file, equal to eager call after call, or refused."""

from __future__ import annotations

import collections
import itertools
import json
import warnings
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.export import Dim

import dy2st
from dy2st.errors import CarriedStateError, Dy2stError, StateWarning, UsageError
from dy2st.onnx import Runner

CALLS = 20


class Smoothed(nn.Module):
    """A buffer, a counter and a tensor written to in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(3))
        self.calls = 0
        self.sums = torch.zeros(2)
        self.last = None

    def forward(self, x):
        self.h = 0.9 * self.h + 0.1 * x
        self.calls += 1
        self.sums[0] += x.sum()
        self.last = x
        if self.calls > 3:
            return self.h * self.sums[0]
        return self.h


class Ring(nn.Module):
    """A ring buffer with the position as a Python int."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ring", torch.zeros(4, 3))
        self.position = 0

    def forward(self, x):
        self.ring[self.position] = x
        self.position = (self.position + 1) % 4
        return self.ring.mean(0)


class Recurrent(nn.Module):
    """The state of an LSTM as a tuple."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.state = (torch.zeros(1, 4), torch.zeros(1, 4))

    def forward(self, x):
        self.state = self.cell(x[None], self.state)
        return self.state[0]


class Lazy(nn.Module):
    """The state is made in the first call."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.state = None

    def forward(self, x):
        if self.state is None:
            self.state = (torch.zeros(1, 4), torch.zeros(1, 4))
        self.state = self.cell(x[None], self.state)
        return self.state[0]


class Stacked(nn.Module):
    """A list of fixed length whose elements are None before the first call."""

    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(3, 3) for _ in range(2)])
        self.hidden = [None] * 2

    def forward(self, x):
        x = x[None]
        for i, cell in enumerate(self.cells):
            self.hidden[i] = x = cell(x, self.hidden[i])
        return x


class Tracker(nn.Module):
    """A list of fixed length, changed under a condition."""

    def __init__(self):
        super().__init__()
        self.tracks = [torch.zeros(3), torch.ones(3)]

    def forward(self, x):
        for i in range(2):
            if (x - self.tracks[i]).abs().sum() < 3:
                self.tracks[i] = 0.5 * (self.tracks[i] + x)
        return torch.stack(self.tracks)


class Window(nn.Module):
    """A list that loses one element for each that it gets."""

    def __init__(self):
        super().__init__()
        self.window = [torch.zeros(3) for _ in range(3)]

    def forward(self, x):
        self.window.append(x)
        self.window.pop(0)
        return torch.stack(self.window).amax(0)


class Bounded(nn.Module):
    """The same with a deque."""

    def __init__(self):
        super().__init__()
        self.window = collections.deque([torch.zeros(3) for _ in range(3)], maxlen=3)

    def forward(self, x):
        self.window.append(x)
        return sum(self.window)


class Statistics:
    """A plain object that a module holds."""

    def __init__(self):
        self.mean = torch.zeros(3)
        self.count = 0


class RunningNorm(nn.Module):
    """Its state is in a plain object."""

    def __init__(self):
        super().__init__()
        self.statistics = Statistics()

    def forward(self, x):
        self.statistics.count += 1
        self.statistics.mean = self.statistics.mean + (x - self.statistics.mean) / self.statistics.count
        return x - self.statistics.mean


@dataclass
class Filter:
    """Replaced as a whole in each call."""

    level: torch.Tensor
    count: int


class Filtered(nn.Module):
    """A dataclass as state."""

    def __init__(self):
        super().__init__()
        self.filter = Filter(torch.zeros(3), 0)

    def forward(self, x):
        self.filter = Filter(self.filter.level + x, self.filter.count + 1)
        return self.filter.level / self.filter.count


class Keyed(nn.Module):
    """A dict whose keys stay."""

    def __init__(self):
        super().__init__()
        self.cache = {"low": torch.zeros(3), "high": torch.zeros(3), "name": "limits"}

    def forward(self, x):
        self.cache["low"] = torch.minimum(self.cache["low"], x)
        self.cache["high"] = torch.maximum(self.cache["high"], x)
        return self.cache["high"] - self.cache["low"]


class Nested(nn.Module):
    """State of children."""

    def __init__(self):
        super().__init__()
        self.encoder = Ring()
        self.head = Smoothed()

    def forward(self, x):
        return self.head(self.encoder(x))


class Normed(nn.Module):
    """BatchNorm in training mode."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(1)

    def forward(self, x):
        return self.norm(x[:, None])


class Growing(nn.Module):
    """A cache that grows with each call."""

    def __init__(self):
        super().__init__()
        self.keys = torch.zeros(0, 3)

    def forward(self, x):
        self.keys = torch.cat([self.keys, x[None]])
        return (self.keys * x).sum(-1).softmax(0) @ self.keys


class Started(nn.Module):
    """A bool that changes once, and an int that becomes a float."""

    def __init__(self):
        super().__init__()
        self.started = False
        self.level = 0

    def forward(self, x):
        if not self.started:
            self.started = True
            self.level = float(x.mean())
        else:
            self.level = 0.5 * self.level + 0.5 * float(x.mean())
        return x * self.level


class Unset(nn.Module):
    """An attribute that is not there before the first call."""

    def forward(self, x):
        if not hasattr(self, "total"):
            self.total = torch.zeros_like(x)
        self.total = self.total + x
        return self.total


class Resetting(nn.Module):
    """A tensor that becomes None again."""

    def __init__(self):
        super().__init__()
        self.peak = None

    def forward(self, x):
        if self.peak is None:
            self.peak = x
        else:
            self.peak = torch.maximum(self.peak, x)
        found = self.peak + 0
        if found.sum() > 2:
            self.peak = None
        return found


class Shared:
    """A class's attribute."""

    total = torch.zeros(3)


class OfClass(nn.Module):
    """State of a class."""

    def forward(self, x):
        Shared.total = Shared.total + x
        return Shared.total * 1


class Hooked(nn.Module):
    """A hook that counts knows the module itself."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_forward_hook(self.counting)

    def counting(self, module, args, result):
        self.calls += 1
        return result * self.calls

    def forward(self, x):
        return x + 1


class Masked(nn.Module):
    """What is made in the first call, and stays."""

    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        if self.mask is None or self.mask.shape[0] < x.shape[0]:
            self.mask = torch.arange(x.shape[0], dtype=x.dtype)
        return x * self.mask[: x.shape[0]]


class Lists(nn.Module):
    """A tuple that becomes None again."""

    def __init__(self):
        super().__init__()
        self.pair = (torch.zeros(3), torch.zeros(3))

    def forward(self, x):
        if self.pair is None:
            self.pair = (x * 0, x * 0)
        h, c = self.pair
        h = h + x
        c = c + h
        self.pair = (h, c)
        if c.sum() > 5:
            self.pair = None
        return c


def counter():
    """A closure's variables."""
    count, total = 0, torch.zeros(3)

    def mean(x):
        nonlocal count, total
        count += 1
        total = total + x
        return total / count

    return mean


MODELS = {
    each.__name__: each
    for each in (
        Smoothed,
        Ring,
        Recurrent,
        Lazy,
        Stacked,
        Tracker,
        Window,
        Bounded,
        RunningNorm,
        Filtered,
        Keyed,
        Nested,
        Normed,
        Growing,
        Started,
        Unset,
        Resetting,
        OfClass,
        Hooked,
        Masked,
        Lists,
        counter,
    )
}


@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
def test_equal_call_after_call(make, tmp_path):
    torch.manual_seed(0)
    model, file = make(), tmp_path / "model.onnx"
    dy2st.onnx.export(model, (torch.randn(3),), file)
    runner = Runner(file)
    with torch.no_grad():
        for call in range(CALLS):
            x = torch.randn(3)
            expected = model(x.clone())
            (found,) = runner(x.numpy())
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5, err_msg=f"call {call}")


def test_names_defaults_and_metadata(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Nested(), (torch.ones(3),), file)
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    told = json.loads({each.key: each.value for each in model.metadata_props}["dy2st.state"])
    by_input = {each["input"]: each for each in told}
    assert set(by_input) == {"encoder.ring", "encoder.position", "head.h", "head.calls", "head.sums"}
    assert by_input["encoder.ring"] == {
        "input": "encoder.ring",
        "output": "encoder.ring_next",
        "path": "encoder.ring",
        "kind": "buffer",
        "dtype": "float32",
        "shape": [4, 3],
    }
    assert by_input["head.calls"]["kind"] == "number"
    assert by_input["head.sums"]["kind"] == "attribute"
    assert {each.name for each in model.graph.initializer} >= set(by_input)
    session = onnxruntime.InferenceSession(file)
    assert [each.name for each in session.get_inputs()] == ["x"]
    first = session.run(None, {"x": np.ones(3, np.float32)})
    assert len(first) == 6


def test_the_present_values_are_the_first(tmp_path):
    model, file = Smoothed(), tmp_path / "model.onnx"
    for _ in range(5):
        model(torch.ones(3))
    dy2st.onnx.export(model, (torch.ones(3),), file)
    (found,) = Runner(file)(np.full(3, 2, np.float32))
    torch.testing.assert_close(torch.from_numpy(found), model(torch.full((3,), 2.0)))
    assert model.calls == 6


def test_names_do_not_clash(tmp_path):
    class Clashing(nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.zeros(3)

        def forward(self, x):
            self.x = self.x + x
            return {"x_next": self.x * 2}

    model, file = Clashing(), tmp_path / "model.onnx"
    dy2st.onnx.export(model, (torch.ones(3),), file)
    runner = Runner(file)
    assert runner.input_names == ["x"]
    assert runner.output_names == ["x_next"]
    for _ in range(3):
        np.testing.assert_allclose(runner(np.ones(3, np.float32))[0], model(torch.ones(3))["x_next"])


def test_names_that_are_given(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Smoothed(), (torch.ones(3),), file, input_names=["frame"], output_names=["level"])
    runner = Runner(file)
    assert (runner.input_names, runner.output_names) == (["frame"], ["level"])
    assert set(runner.state) == set()
    runner(frame=np.ones(3, np.float32))
    assert set(runner.state) == {"h", "calls", "sums"}


def test_sizes_of_the_state_follow_the_batch(tmp_path):
    class Batched(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = None

        def forward(self, x):
            if self.h is None:
                self.h = torch.zeros(x.shape[0], 2)
            self.h = 0.5 * self.h + x
            return self.h

    model, file = Batched(), tmp_path / "model.onnx"
    dy2st.onnx.export(model, (torch.ones(3, 2),), file, dynamic_shapes={"x": {0: Dim("batch")}})
    (told,) = [each for each in onnx.load(file).graph.input if each.name == "h"]
    assert told.type.tensor_type.shape.dim[0].dim_param == "batch"
    runner = Runner(file)
    for batch in (5, 1, 4):
        model.h = None
        runner.reset()
        for _ in range(3):
            x = torch.randn(batch, 2)
            np.testing.assert_allclose(runner(x.numpy())[0], model(x), rtol=1e-5)


def test_a_model_without_state_is_as_before():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None
            self.mode = "none"

        def forward(self, x):
            self.last = x
            self.mode = "seen"
            return x * 2

    program = dy2st.onnx.export(Plain(), (torch.ones(3),))
    assert len(program.model.graph.inputs) == len(program.model.graph.outputs) == 1
    assert "dy2st.state" not in program.model.metadata_props


def test_forget_says_so():
    with pytest.warns(StateWarning, match=r"forgets h, .*calls"):
        program = dy2st.onnx.export(Smoothed2(), (torch.ones(3),), state="forget")
    assert len(program.model.graph.inputs) == 1


class Smoothed2(nn.Module):
    """No plain tensor that is written to in place: forgetting has no place for it either."""

    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(3))
        self.calls = 0

    def forward(self, x):
        self.h = self.h + x
        self.calls += 1
        return self.h * self.calls


def test_refuse_names_the_line():
    with pytest.raises(CarriedStateError, match="'h' is changed in each call and read in the next") as raised:
        dy2st.onnx.export(Smoothed2(), (torch.ones(3),), state="refuse")
    assert raised.value.location is not None
    assert raised.value.location.text.strip() == "self.h = self.h + x"


def test_a_number_that_has_to_be_pythons_says_what_helps():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.scale0, self.scale1 = 0, 1.0, 2.0

        def forward(self, x):
            self.calls += 1
            return x * getattr(self, f"scale{self.calls % 2}")

    with pytest.raises(Dy2stError) as raised:
        dy2st.onnx.export(Named(), (torch.ones(3),))
    assert "'calls' from call to call" in raised.value.hint
    with pytest.warns(StateWarning):
        dy2st.onnx.export(Named(), (torch.ones(3),), state="forget")


def test_an_unknown_choice():
    with pytest.raises(UsageError, match="none of the ways"):
        dy2st.onnx.export(Smoothed2(), (torch.ones(3),), state="keep")


class Listing(nn.Module):
    """A list that grows."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x.mean())
        return sum(self.seen)


class NewKeys(nn.Module):
    """A dict that gets new keys."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = f"call {len(self.cache)}"
        self.cache[key] = x
        return sum(self.cache.values())


class Texts(nn.Module):
    """A text that changes."""

    def __init__(self):
        super().__init__()
        self.phase = "first"

    def forward(self, x):
        if self.phase == "first":
            self.phase = "later"
            return x
        return -x


class Retyped(nn.Module):
    """Another dtype after the first call."""

    def __init__(self):
        super().__init__()
        self.total = torch.tensor(0)

    def forward(self, x):
        self.total = self.total + x.sum()
        return x * self.total


class Numbered(nn.Module):
    """A number that becomes a tensor."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def forward(self, x):
        self.total = self.total + x.sum()
        return x * self.total


class Twice(nn.Module):
    """One list by two names."""

    def __init__(self):
        super().__init__()
        self.first = self.second = [torch.zeros(3)]

    def forward(self, x):
        self.first[0] = self.first[0] + x
        return self.second[0] * 2


class Aliased(nn.Module):
    """Two attributes that are one tensor after the call, and a change in place."""

    def __init__(self):
        super().__init__()
        self.a = torch.zeros(3)
        self.b = torch.zeros(3)

    def forward(self, x):
        self.a += x
        found = self.a + self.b
        self.b = self.a
        return found


class Viewed(nn.Module):
    """A view of a tensor that is changed in place, from the start."""

    def __init__(self):
        super().__init__()
        self.whole = torch.zeros(2, 3)
        self.row = self.whole[0]

    def forward(self, x):
        self.whole += x
        return self.row * 1


class Replaced(nn.Module):
    """A plain object that is replaced."""

    def __init__(self):
        super().__init__()
        self.statistics = Statistics()

    def forward(self, x):
        new = Statistics()
        new.mean = self.statistics.mean + x
        self.statistics = new
        return new.mean


class Arrays(nn.Module):
    """An array of numpy's."""

    def __init__(self):
        super().__init__()
        self.calls = np.zeros(1)

    def forward(self, x):
        self.calls += 1
        return x * float(self.calls[0])


class Counted(nn.Module):
    """A counter of Python's library."""

    def __init__(self):
        super().__init__()
        self.calls = itertools.count(1)

    def forward(self, x):
        return x * next(self.calls)


class Iterated(nn.Module):
    """An iterator."""

    def __init__(self):
        super().__init__()
        self.numbers = iter(range(9))

    def forward(self, x):
        return x * next(self.numbers)


class Namespace(nn.Module):
    """A store that goes around the attribute."""

    def __init__(self):
        super().__init__()
        self.h = torch.zeros(3)

    def forward(self, x):
        self.__dict__["h"] = self.__dict__["h"] + x
        return self.h * 1


class Tied(nn.Module):
    """A tensor of the model's is its state, and is changed in place."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.h = torch.ones(3)

    def forward(self, x):
        self.h *= 2
        found = self.h + x
        self.h = self.weight
        return found


class Complex(nn.Module):
    """A complex tensor."""

    def __init__(self):
        super().__init__()
        self.h = torch.zeros(3, dtype=torch.complex64)

    def forward(self, x):
        self.h = self.h * 1j + x
        return self.h.real


class Defaulted(nn.Module):
    """State in a parameter's default."""

    def forward(self, x, seen=[torch.zeros(3)]):  # noqa: B006, B008 - what is tested
        seen[0] = seen[0] + x
        return seen[0] * 2


REFUSED = {
    each.__name__: each
    for each in (
        Listing,
        NewKeys,
        Texts,
        Retyped,
        Numbered,
        Twice,
        Aliased,
        Viewed,
        Replaced,
        Defaulted,
        Arrays,
        Counted,
        Iterated,
        Namespace,
        Tied,
        Complex,
    )
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=list(REFUSED))
def test_refused_at_the_line(make):
    with pytest.raises(CarriedStateError) as raised:
        dy2st.onnx.export(make(), (torch.ones(3),))
    assert raised.value.location is not None
    assert raised.value.location.filename == __file__
    assert raised.value.hint


def test_a_size_that_is_another_one_before_the_first_call():
    class Stretched(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.zeros(1, 2)

        def forward(self, x):
            mean = self.h.sum(0) / self.h.shape[0]
            self.h = self.h * 0.5 + x
            return mean

    with pytest.raises(CarriedStateError, match=r"'h' has the sizes \[1, 2\] before the first call"):
        dy2st.onnx.export(Stretched(), (torch.ones(4, 2),), dynamic_shapes={"x": {0: Dim("batch")}})


def test_keywords_and_more_arguments(tmp_path):
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = torch.zeros(3)

        def forward(self, x, *more, scale=1.0, **others):
            self.h = self.h + x * scale
            for each in more:
                self.h = self.h + each
            return self.h + others["z"]

    model, file = Many(), tmp_path / "model.onnx"
    a, b, z = torch.randn(3), torch.randn(3), torch.randn(3)
    dy2st.onnx.export(model, (a, b), file, kwargs={"scale": 2.0, "z": z})
    runner = Runner(file)
    for _ in range(3):
        np.testing.assert_allclose(runner(a.numpy(), b.numpy(), z.numpy())[0], model(a, b, scale=2.0, z=z), rtol=1e-5)


def test_the_model_is_left_alone():
    model = Nested()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    dy2st.onnx.export(model, (torch.ones(3),))
    assert model.head.calls == 0
    assert model.encoder.position == 0
    assert torch.equal(model.head.sums, torch.zeros(2))
    assert model.head.last is None
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_large_state_lies_beside_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("dy2st.onnx.exporting.is_large", lambda _: True)
    model, file = Ring(), tmp_path / "model.onnx"
    model.ring.fill_(7)
    dy2st.onnx.export(model, (torch.ones(3),), file)
    (found,) = Runner(file)(np.ones(3, np.float32))
    np.testing.assert_allclose(found, model(torch.ones(3)))


def test_no_warning_where_nothing_is_forgotten():
    with warnings.catch_warnings():
        warnings.simplefilter("error", StateWarning)
        dy2st.onnx.export(nn.Linear(3, 3), (torch.ones(3),), state="forget")


def test_a_program_has_no_state_of_its_own():
    program = dy2st.export(nn.Linear(3, 3), (torch.ones(3),))
    with pytest.raises(Dy2stError, match="export the model"):
        dy2st.onnx.export(program, state="io")


def test_an_argument_that_is_returned_as_it_is(tmp_path):
    """Its output has a name beside the input's."""

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.tensor(2))

        def forward(self, x):
            self.seen += 3
            return self.seen, x, {"x": x * 2}

    dy2st.onnx.export(Counting(), (torch.ones(3),), tmp_path / "model.onnx")
    runner = Runner(tmp_path / "model.onnx")
    assert len({*runner.output_names, *runner.input_names}) == 4
    for seen in (5, 8):
        result = runner(np.ones(3, np.float32))
        assert result[0] == seen
        np.testing.assert_array_equal(result[1], np.ones(3, np.float32))


def test_variables_of_functions_that_a_call_makes_are_no_state():
    """They are gone with the call, other than those of functions that the model holds."""

    def model(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        steps, best = 0, x.sum()

        def raised(to: float) -> torch.Tensor:
            nonlocal steps, best
            while best < to:
                best = best + 1
                steps += 1
            return best

        raised(3)
        return raised(5) * x, steps

    sets = [(torch.ones(2),), (-torch.ones(2),), (torch.full((2,), 4.0),)]
    program = dy2st.onnx.export(model, sets[0], state="refuse")
    assert [each.name for each in program.model.graph.inputs] == ["x"]
    assert dy2st.check(model, sets, state="refuse").ok
