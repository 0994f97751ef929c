"""One target in several parts, put together as if one process had checked it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dy2st.cli.checked import checked
from dy2st.cli.shares import divided, joined
from dy2st.sweep.job import Answer, Job

MODEL = """\
import torch

def model(x):
    if x.sum() > 0:
        return x * 2, x.argmax()
    while x.sum() < -20:
        x = x / 2
    return x, x.argmin()

example_inputs = [(torch.ones(3),), (-torch.ones(4),), (torch.full((5,), float("nan")),), (-torch.ones(6) * 9,)]
"""


def without_times(result):
    inputs = tuple(replace(each, seconds=None) for each in result.report.inputs)
    return replace(result, seconds=None, report=replace(result.report, inputs=inputs))


@pytest.mark.slow_but_for("2-2")
@pytest.mark.parametrize(("count", "parts"), [(1, 1), (2, 2), (3, 2), (4, 4), (9, 8)])
def test_the_parts_are_the_whole(count, parts, folder, write):
    write("parts.py", MODEL)
    job = Job("parts.py", {"opsets": (18, 21), "rtol": {"": 0.0}, "atol": None})
    jobs = divided(job, count)
    assert len(jobs) == parts
    if count > 2:
        return  # a process more gives the same in the same way
    whole = without_times(checked(job, lambda _: None))
    answers = [Answer(checked(each, lambda _: None), files=("/a",)) for each in jobs]
    found = joined(jobs, answers)
    assert without_times(found.result) == whole
    assert found.files == ("/a",) * (count > 0)


def test_inputs_are_put_in_their_order(folder, write):
    write("parts.py", MODEL)
    job = Job("parts.py", {"opsets": ()})
    jobs = divided(job, 3)
    assert [each.options["share"] for each in jobs] == [[0, 3, 0, 1], [1, 3, 0, 1], [2, 3, 0, 1]]
    found = joined(jobs, [Answer(checked(each, lambda _: None)) for each in jobs]).result
    assert without_times(found) == without_times(checked(job, lambda _: None))
    assert [each.name for each in found.report.inputs] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("options", [{"search": 1.0}, {"providers": ("CPU",)}])
def test_what_depends_on_all_inputs_is_not_divided(options):
    job = Job("net.py", options)
    assert divided(job, 4) == [job]
    assert divided(Job("net.py", {}, listings=True), 4) == [Job("net.py", {}, listings=True)]
