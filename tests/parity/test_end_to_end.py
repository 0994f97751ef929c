"""``dy2st.check`` with nothing given but a model and its inputs: it exports both stages itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2st
from dy2st.errors import ExampleInputsError, UnusableInputError


def halve(value, limit):
    steps = 0
    while value.abs().max() > limit:
        value = value / 2
        steps += 1
    return {"value": value, "steps": steps}


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, value):
        if value.sum() > 0:
            return self.linear(value)
        return value


def test_every_input_and_both_stages():
    limit = torch.tensor(1.0)
    inputs = {f"{scale} of {size}": (torch.ones(size) * scale, limit) for scale, size in ((0.5, 3), (9.0, 1), (1e3, 5))}
    report = dy2st.check(halve, inputs)
    assert report.ok, report
    assert [stage.stage for stage in report.inputs[0].stages] == ["converted", "program", "onnxruntime"]
    assert report.graph["Loop"] == 1
    assert report.onnx_file is None


def test_module_method_and_keyword_arguments():
    net = Gate()
    sets = [{"value": torch.ones(2, 3)}, {"value": -torch.ones(4, 3)}]
    assert dy2st.check(net, sets).ok
    assert dy2st.check(net.forward, sets).ok


def test_an_int_that_differs_is_an_input():
    def repeat(value, times):
        for _ in range(times):
            value = value + 1
        return value

    assert dy2st.check(repeat, [(torch.zeros(2), times) for times in (3, 0, 5)]).ok


def test_usable_inputs_are_compared_although_another_is_not():
    report = dy2st.check(Gate(), [(torch.ones(2, 3),), (torch.ones(2, 4),)])
    assert [each.outcome for each in report.inputs] == ["equal", "unusable"]


def test_no_usable_input():
    with pytest.raises(UnusableInputError, match=r"input 0 \(value: f32\[2, 4\]\): eager itself raises"):
        dy2st.check(Gate(), [(torch.ones(2, 4),)])


def test_inputs_that_can_not_share_a_program():
    with pytest.raises(ExampleInputsError, match="one program has one signature"):
        dy2st.check(lambda value, more=0: value + more, [(torch.ones(2),), (torch.ones(2), 1)])
