"""Results travel between processes, and are kept in files, as JSON: what comes back is the same, or is refused."""

from __future__ import annotations

import json
import math
from types import MappingProxyType

import numpy as np
import pytest

from dy2st.errors import Location
from dy2st.report import InputResult, ParityReport, StageResult
from dy2st.report.listing import GraphNode, Listing
from dy2st.report.model import Culprit, Difference, OutputMetrics, PathSite, Picture, Tolerance
from dy2st.report.plain import from_plain, to_plain
from dy2st.report.run import Failure, Judgement, TargetResult
from dy2st.sweep.job import Answer, Death, Job

SITE = PathSite("net.py", 3, None, "if", "if x:", ("then", "else"), ("then",))
STAGE = StageResult(
    "onnxruntime",
    "differs",
    math.inf,
    1e-7,
    (Difference("out", "value", "\ud800 differs", (0, 1)), Difference("out", "count", "two")),
    pictures=(Picture("out", (2, 3), 3.0, 3, 1, (1e-7, 1.0), (1, 0), ((0.0, 3.0), (0.0, math.inf))),),
    outputs=(
        OutputMetrics("out", max_ulps=None, cosine=0.5, worst=(1,), dtype="float32", shape=(3,), of_tolerance=2.0),
    ),
    culprit=Culprit("net.py", 4, "x", "eager 1", "node", "trip 1"),
)
REPORT = ParityReport(
    "Net",
    (InputResult("0", "x: f32[3]", (STAGE,), seconds=0.5), InputResult("1", "", problem="raises")),
    tolerances={"float32": Tolerance(1e-4, 0.0)},
    versions={"torch": "2.13.0"},
    graph={"If": 1},
    opset=20,
    paths=(SITE,),
)
RESULT = TargetResult(
    "net.py",
    1,
    REPORT,
    (Failure("D2S245", "NumpyError", "what", line=3),),
    Location("net.py", 2, 4, "text", 9),
    1.5,
    listings=(
        Listing("f", "net.py", 1, ("a", "b"), "", (SITE,), (GraphNode(1, "If", "n", ("y",), "main"),), ((1, "ran"),)),
    ),
    written={"bytes": 3, "files": ["a"]},
    judgement=Judgement(("worse",), (), True),
)


@pytest.mark.parametrize("value", [RESULT, Answer(RESULT, "said", ("a.py",), "")])
def test_there_and_back(value):
    text = json.dumps(to_plain(value))
    assert repr(from_plain(type(value), json.loads(text))) == repr(value)  # times are not compared otherwise


def test_a_job():
    job = Job("net.py", {"rtol": {"": 1.0}, "opsets": (18,)}, about="net.py", listings=True)
    there = Job.from_plain(json.loads(json.dumps(job.to_plain())))
    assert there == Job("net.py", {"rtol": {"": 1.0}, "opsets": [18]}, about="net.py", listings=True)


def test_a_death():
    death = Death("ended", "capturing", "said", True, 2.5)
    assert from_plain(Death, json.loads(json.dumps(to_plain(death)))) == death


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exit_code", "1"),
        ("exit_code", True),
        ("target", None),
        ("failures", "none"),
        ("failures", [{"code": 3}]),
        ("definition", {"filename": "a"}),
        ("report", {"model": "Net"}),
        ("seconds", "long"),
        ("listings", [1]),
    ],
)
def test_what_is_none_of_ours(field, value):
    plain = to_plain(RESULT) | {field: value}
    with pytest.raises(ValueError, match=r"Expected|missing"):
        from_plain(TargetResult, plain)


def test_numbers_and_views_of_classes_of_their_own():
    assert to_plain({"x": np.float64(2), "y": MappingProxyType({1: [float("inf")]})}) == {
        "x": 2.0,
        "y": {"1": [math.inf]},
    }


def test_what_a_newer_one_adds_is_left_out():
    assert repr(from_plain(TargetResult, to_plain(RESULT) | {"unknown": 1})) == repr(RESULT)


def test_what_is_not_plain():
    with pytest.raises(ValueError, match="object is no plain value"):
        to_plain({"x": object()})
