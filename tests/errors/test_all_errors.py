"""Everything that is refused of a model, not only the first: ``dy2st.refusals`` and ``--all-errors``."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import dy2st
from dy2st.cli.main import main

# ruff: noqa: F821 - a variable is read before it has a value

# Each line with a mark is refused, and named with the code behind it.
MODEL = """
import numpy as np
import torch
from torch import nn


class Pieces(nn.Module):
    def forward(self, h):
        total = h * 0
        for step in range(int(h.abs().sum())):
            names = {i: h + i for i in range(100)}
            total = total + names[0] + len({h.sum().item(), 0})  # D2S241
        return total


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pieces = Pieces()
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        y = torch.from_numpy(np.sin(x.numpy()))  # D2S245
        if x.sum() > 0:
            h = x * 2
            sums = np.cumsum(h.numpy())  # D2S245
            if x.max() > 100:
                h = h @ torch.ones(7, 7)
        else:
            h = -x
        z = self.pieces(h)
        try:  # D2S234
            if x.sum() > 100:
                return y, z
        finally:
            x = x + 1
        self.last = x.mean()  # D2S225
        return y, {z.sum().item(): h}  # D2S241


model = Net()


def example_inputs():
    return [(torch.ones(3),), (-torch.ones(3),)]
"""
MARKED = [(number, line.rpartition("# ")[2]) for number, line in enumerate(MODEL.splitlines(), 1) if "  # D2S" in line]


@pytest.fixture
def net(folder):
    (folder / "net.py").write_text(MODEL)
    import net

    return net


def places(errors):
    return [(error.location.line, error.code) for error in errors]


def test_nested_ones_and_those_in_callees(net):
    found = dy2st.refusals(net.model, net.example_inputs())
    assert places(found) == MARKED
    assert all(error.location.filename == net.__file__ for error in found)
    assert all(error.hint for error in found)


def test_first_one_is_what_an_export_raises(net):
    with pytest.raises(dy2st.errors.Dy2stError) as caught:
        dy2st.export(net.model, net.example_inputs()[0])
    found = dy2st.refusals(net.model, net.example_inputs())
    assert str(caught.value) in map(str, found)


def test_nothing_is_left_of_it(net):
    state = {name: value.clone() for name, value in net.model.state_dict().items()}
    dy2st.refusals(net.model, net.example_inputs())
    assert all(torch.equal(value, state[name]) for name, value in net.model.state_dict().items())
    with pytest.raises(dy2st.errors.NumpyError):
        dy2st.export(net.model, net.example_inputs()[0])


@pytest.mark.parametrize("command", ["check", "convert"])
def test_command(command, net, folder, capsys):
    assert main([command, "net.py", "--all-errors"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    heads = [line for line in err.splitlines() if line.startswith("dy2st: ")]
    assert heads[-1] == f"dy2st: {len(MARKED)} errors"
    assert [head.split(": ")[1:3] for head in heads[:-1]] == [[f"net.py:{line}", code] for line, code in MARKED]
    assert not list(folder.glob("*.onnx"))


def test_json(net, capsys):
    assert main(["check", "net.py", "--all-errors", "--json"]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert printed["exit_code"] == 2
    assert [(each["line"], each["code"], each["file"]) for each in printed["errors"]] == [
        (line, code, "net.py") for line, code in MARKED
    ]


GOOD = """
import torch

def model(x):
    return x * 2 if x.sum() > 0 else -x

def example_inputs():
    return [(torch.ones(3),), (-torch.ones(3),)]
"""


def test_model_without_any(folder, capsys):
    (folder / "good.py").write_text(GOOD)
    assert main(["check", "good.py", "--all-errors"]) == 0
    assert "equal to eager on all 2 inputs" in capsys.readouterr().out


@pytest.mark.slow
def test_several_targets(in_this_process, net, folder, capsys):
    (folder / "good.py").write_text(GOOD)
    assert main(["check", "net.py", "good.py", "--all-errors"]) == 2
    out, err = capsys.readouterr()
    assert "good.py: equal to eager on all 2 inputs" in out
    assert f"dy2st: net.py: {len(MARKED)} errors" in err


INPUTS = [(torch.ones(3),), (-torch.ones(3),)]


def test_what_depends_on_an_unknown_value_is_not_refused():
    def model(x):
        array = x.numpy()  # refused
        first, *rest = array
        if first > 0:  # noqa: SIM108
            rows = [row * 2 for row in array if row > 1]
        else:
            rows = {(1, 0): array}[int(first), 0]
        while array.sum() > 3:
            array = array / 2
        names = {float(v): v for v in rows}
        return x + torch.tensor(float(array[0])) + len(names) + torch.zeros(len(rest)).sum()

    start = model.__code__.co_firstlineno
    assert places(dy2st.refusals(model, INPUTS)) == [(start + 1, "D2S245")]


def test_unknown_side_of_a_branch_is_like_the_other():
    def model(x):
        if x.sum() > 0:  # noqa: SIM108
            y = torch.from_numpy(x.numpy())  # refused
        else:
            y = x * 2
        return {float(y.sum()): x, 2: y}  # refused

    start = model.__code__.co_firstlineno
    assert places(dy2st.refusals(model, INPUTS)) == [(start + 2, "D2S245"), (start + 5, "D2S241")]


def test_statements_of_every_kind_are_muted():
    def model(x, slots):
        h = x
        h += torch.from_numpy(x.numpy())
        slots["h"] = torch.from_numpy(x.numpy())
        if x.numpy().sum() > 0:
            h = h * 2
        elif x.numpy().sum() > 1:
            h = h * 3
        for v in x.numpy():
            h = h + v
        while x.numpy().sum() > 99:
            h = h * 2
        with torch.autograd.profiler.record_function(str(x.numpy())):
            h = h + 1
        assert x.numpy().sum() < 99
        del slots[float(x.numpy().sum() > 99)]
        match x.numpy().sum():
            case 1:
                h = h + 1
        double = lambda: x.numpy() * 2  # noqa: E731
        double()
        return torch.from_numpy(x.numpy())

    start = model.__code__.co_firstlineno
    args = (torch.ones(3), {0.0: torch.ones(3), "h": torch.ones(3)})
    wanted = [2, 3, 4, 6, 8, 10, 12, 14, 15, 16, 19, 21]
    assert places(dy2st.refusals(model, [args])) == [(start + line, "D2S245") for line in wanted]


def test_a_value_that_is_read_twice_is_refused_once():
    def model(x):
        while x.sum() > 100:
            x = x - step
            y = step * 2
            step = x + y  # noqa: F841
        return x

    found = dy2st.refusals(model, INPUTS)
    assert [error.code for error in found] == ["D2S207"]


def test_results_are_all_looked_at():
    def model(x):
        rows = [x]
        while x.abs().sum() > 1:
            x = x / 2
            rows.append(x.sum())
        y = x if x.sum() > 0 else x.double()
        return rows, y, x

    found = dy2st.refusals(model, INPUTS)
    assert sorted(error.code for error in found) == ["D2S203", "D2S204"]
    start = model.__code__.co_firstlineno
    assert {error.location.line for error in found} == {start + 6}


def test_module_in_a_method():
    class Owner:
        def __init__(self):
            self.linear = nn.Linear(3, 3)

        def __call__(self, x):
            y = self.linear(x).detach().numpy()
            return self.linear(x) + y.sum()

    assert [error.code for error in dy2st.refusals(Owner(), INPUTS)] == ["D2S245"]


def test_code_that_can_not_be_muted_is_refused_once():
    @dy2st.not_to_static
    def model(x):
        return x if x.sum() > 0 else -x

    assert [error.code for error in dy2st.refusals(model, INPUTS)] == ["D2S244"]


def test_converted_model_is_refused_like_the_original():
    def model(x):
        y = x.numpy()
        return x + y.sum() + x.numpy().sum()

    start = model.__code__.co_firstlineno
    assert places(dy2st.refusals(dy2st.convert(model), INPUTS))[:1] == [(start + 1, "D2S245")]
