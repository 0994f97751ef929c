"""Runs to be rendered: one with something of every kind, one with hostile texts, one where all is well."""

from __future__ import annotations

import pytest

from dy2st.errors import Location
from dy2st.report import Difference, InputResult, ParityReport, PathSite, StageResult, Tolerance
from dy2st.report.file_arms import FileSite
from dy2st.report.graph_drawing import Box, Drawing
from dy2st.report.listing import GraphNode, Listing
from dy2st.report.model import Culprit, Picture
from dy2st.report.run import Failure, Run, TargetResult

ROOT, FILE = "/repository", "/repository/models/net.py"

EQUAL = StageResult("program", "equal", 1.2e-7, 1e-6)
PICTURE = Picture(
    "output[0]", (2, 3), 3.0, 3, 1, (1e-7, 1e-6, 1.0, 10.0), (1, 0, 1), ((0.0, 3.0, 1e-7), (0.0, 0.0, float("inf")))
)
WRONG = StageResult(
    "onnxruntime",
    "differs",
    3.0,
    float("inf"),
    (
        Difference("output[0]", "value", "eager has 1 at [0, 1], this 4 (1 of 6 elements differ)", (0, 1)),
        Difference("output[1]", "shape", "eager has shape [2], this [3]"),
    ),
    pictures=(PICTURE,),
    culprit=Culprit(FILE, 17, "x", "eager 1 vs onnxruntime 4", "node_add", "trip 2"),
)
FAILED = StageResult("onnxruntime", "error", message="RuntimeError: no kernel")
TOLERANCES = {"float32": Tolerance(1e-4, 1e-5)}
VERSIONS = {"torch": "2.13.0", "onnxruntime": "1.31.1"}

IF = PathSite(FILE, 12, 7, "if", "if x.sum() > 0:", ("then", "else"), ("then",))
WHILE = PathSite(
    FILE, 15, 10, "loop", "while (x < 5).any():", ("no trip", "one trip", "more trips"), ("one trip",), ("no trip",)
)
LISTING = Listing(
    "Net.forward",
    FILE,
    11,
    (
        "    def forward(self, x):",
        "        if x.sum() > 0:  # a comment",
        '            return "<b>" * x',
        "        y = '''one",
        "two'''; x = x",
        "        while (x < 5).any():",
        "            x = x + 1",
        "        return x",
    ),
    "def forward(self, x):\n    if_12 = d2s.if_(x.sum() > 0)\n",
    (IF, WHILE),
    (
        GraphNode(12, "If", "node_branch", ("y",), "main"),
        GraphNode(13, "Mul", "node_mul", ("y_1", "y_2"), "main / node_branch.then_branch"),
    ),
    ((13, "ran"), (14, "never"), (15, "never")),
)

THEN = Drawing(
    "then_branch",
    (Box("nodes", 'return "<b>" * x', FILE, 13, ("Mul",), ("node_mul",)), Box("output", "y_1")),
    ((0, 1),),
    1,
)
ELSE = Drawing("else_branch", (), (), 4000)
DRAWING = Drawing(
    "",
    (
        Box("input", "x"),
        Box("nodes", "if x.sum() > 0:  # a comment", FILE, 12, ("ReduceSum", "Greater"), ("node_sum", "node_gt")),
        Box("nodes", "if x.sum() > 0:  # a comment", FILE, 12, ("If",), ("node_branch",), (THEN, ELSE)),
        Box("nodes", "", "", None, ("Cast",), ("node_cast",)),
        Box("output", "y"),
    ),
    ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4)),
    4005,
)
ARM = FileSite(
    "node_branch", "If", (), FILE, 12, 7, "if", "if x.sum() > 0", ("then", "else"), ("else",), {"then": ("0", "1")}
)


def report(*inputs, **fields):
    graph = {"Add": 3, "If": 1}
    return ParityReport("Net", inputs, tolerances=TOLERANCES, versions=VERSIONS, graph=graph, opset=20, **fields)


GOOD = TargetResult("models/good.py", 0, report(InputResult("0", "x: f32[3]", (EQUAL,))), seconds=1.25)
BAD = TargetResult(
    "models/net.py:Net",
    1,
    report(
        InputResult("0", "x: f32[3]", (EQUAL, WRONG), seconds=0.5),
        InputResult("1", "x: f32[4]", (EQUAL, WRONG)),
        InputResult("up", "x: f32[5]", (EQUAL, FAILED)),
        InputResult("3", "x: f32[6]", problem="eager itself raises ValueError"),
        specialized=(f"{FILE}:20: n is 4",),
        dropped_guards=(f"{FILE}:21: the index 5 is out of range",),
        paths=(IF, WHILE),
        arms=(ARM,),
        searched="searched 100 runs: no input takes them",
    ),
    definition=Location(FILE, 11),
    seconds=2.5,
    uncovered_fails=True,
    listings=(LISTING,),
    drawing=DRAWING,
)
REFUSED = TargetResult(
    "models/refused.py",
    2,
    failures=(
        Failure(
            "D2S241",
            "IdentityError",
            "an int is used as a key",
            "keep it in a tensor",
            "models/refused.py",
            7,
            12,
            20,
            "    d = {int(x.sum()): x}",
        ),
        Failure("D2S245", "NumpyError", "numpy on a tensor", "", "/elsewhere/lib.py", 3),
    ),
    definition=Location("models/refused.py", 5),
)
MISSING = TargetResult(
    "models/none.py", 2, failures=(Failure("D2S902", "TargetError", "models/none.py: no such file"),)
)
DEFECT = TargetResult("models/defect.py", 3, failures=(Failure(None, "KeyError", "'x'"),))

HOSTILE = "</script><script>alert(1)</script> a|b `c` *d* [e](http://f) % \"g\" 'h' & ]]> :: , \x00\x1b \ud800 \u202e é"


def run(*targets, **fields):
    return Run("check", "0.1.0", targets, root=ROOT, folder=ROOT, started="2026-01-02T03:04:05", **fields)


def hostile_run():
    site = PathSite(f"/repository/{HOSTILE}.py", 3, None, "if", f"if {HOSTILE}:", ("then", "else"), ())
    stage = StageResult(HOSTILE, "differs", 1.0, 1.0, (Difference(HOSTILE, "value", f"{HOSTILE}\nsecond line"),))
    broken = StageResult(HOSTILE, "error", message=HOSTILE)
    inputs = (InputResult(HOSTILE, HOSTILE, (stage, broken)), InputResult("1", HOSTILE, problem=HOSTILE))
    found = ParityReport(HOSTILE, inputs, paths=(site,), paths_problem=HOSTILE, specialized=(HOSTILE,))
    node = GraphNode(1, HOSTILE, HOSTILE, (HOSTILE,), HOSTILE)
    listing = Listing(HOSTILE, f"/repository/{HOSTILE}.py", 1, (HOSTILE, "x = 1"), HOSTILE, (), (node,))
    failure = Failure("D2S241", HOSTILE, HOSTILE, HOSTILE, f"{HOSTILE}.py", 1, 1, 2, HOSTILE)
    inner = Drawing(HOSTILE, (Box("output", HOSTILE),), (), 0)
    box = Box("nodes", HOSTILE, f"/repository/{HOSTILE}.py", 1, (HOSTILE,), (HOSTILE,), (inner,))
    drawing = Drawing(HOSTILE, (Box("input", HOSTILE), box), ((0, 1),), 1)
    return run(
        TargetResult(HOSTILE, 1, found, listings=(listing,), drawing=drawing),
        TargetResult(HOSTILE, 2, failures=(failure,)),
    )


RUNS = {
    "full": run(GOOD, BAD, REFUSED, MISSING, DEFECT),
    "bad": run(BAD),
    "good": run(GOOD),
    "refused": run(REFUSED),
    "missing": run(MISSING),
    "hostile": hostile_run(),
}


@pytest.fixture(params=RUNS)
def any_run(request):
    """Each of the runs."""
    return RUNS[request.param]


@pytest.fixture
def runs():
    """The runs by name."""
    return RUNS
