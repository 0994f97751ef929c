"""Outputs without a value on any input."""

from __future__ import annotations

import json

import torch
from torch import Tensor

import dy2st
from dy2st.report.model import InputResult, StageResult, never_compared
from dy2st.report.parity_report import ParityReport, render_text

STAGES = (StageResult("program", "equal"),)


def told(*blanks: dict[str, str]) -> list[str]:
    return never_compared(InputResult(str(i), "", STAGES, blank=blank) for i, blank in enumerate(blanks))


def test_on_every_input() -> None:
    assert told({"a": "empty", "b": "empty"}, {"a": "empty"}) == [
        "a is empty on every input: no value of it is compared"
    ]
    assert told({"a": "empty"}, {"a": "NaN throughout"}) == [
        "a is NaN throughout or empty on every input: no value of it is compared"
    ]
    assert told({"a": "empty"}, {}) == []
    assert told() == []


def test_inputs_that_compare_nothing_do_not_count() -> None:
    unusable = InputResult("0", "", problem="eager itself raises")
    raising = InputResult("1", "", STAGES, raises="ValueError")
    assert never_compared([unusable, raising]) == []
    assert len(never_compared([unusable, raising, InputResult("2", "", STAGES, blank={"a": "empty"})])) == 1


def test_a_check_of_a_model() -> None:
    def model(x: Tensor, limit: float = 1e9) -> dict[str, Tensor]:
        return {"twice": x * 2, "large": x[x > limit], "ratio": x / x * torch.inf * 0}

    report = dy2st.check(model, [(torch.ones(3),), (torch.ones(0),)])
    large = "output['large'] is empty on every input: no value of it is compared"
    ratio = "output['ratio'] is NaN throughout or empty on every input: no value of it is compared"
    assert (report.ok, report.covered, report.uncovered) == (True, False, [large, ratio])
    assert f"not covered: {large}" in render_text(report)
    assert json.loads(report.to_json())["inputs"][0]["blank"] == {
        "output['large']": "empty",
        "output['ratio']": "NaN throughout",
    }
    assert dy2st.check(model, [(torch.ones(3), 0.5)]).uncovered == [
        ratio.replace("NaN throughout or empty", "NaN throughout")
    ]


def test_a_report_of_nothing() -> None:
    assert ParityReport("model", ()).uncovered == []
