"""Conditions of loops: without a branch for each part, and without what nobody reads behind a ``break``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.plain_conditions import parts_of, write_conditions
from dy2st.onnx.passes.repeated_nodes import compute_once
from tests.onnx.graph_text import OPSET, changed, parsed

# A loop with two numbers and a vector as states, of which one number is read after it.
LOOP = """
    g (float[n] x, float rest, int64 limit) => (int64 count{results}) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        small = Constant<value_float = 0.1>()
        half = Constant<value_float = 0.5>()
        count, vector, number = Loop(, , zero, x, rest)
            <body = step (int64 i, bool go, int64 before, float[n] v, float r)
            => (bool on, int64 after, float[n] w, float s) {{
            after = Add(before, one)
            s = Mul(r, half)
            test = Greater(s, small)
            {body}
        }}>
    }}"""
NEXT = "w = Neg(v)"


def call(n: int, rest: float, limit: int) -> tuple[np.ndarray, ...]:
    return np.arange(n, dtype=np.float32), np.array(rest, np.float32), np.array(limit)


CALLS = [call(3, 5.0, 2), call(1, 5.0, 50), call(0, 0.0, 4), call(2, np.nan, 3)]


def written(body: str, results: str = "", calls: list[tuple[np.ndarray, ...]] = CALLS) -> list[str]:
    lines = changed(LOOP.format(body=body, results=results), lambda model: write_conditions(model, OPSET), *calls)
    return [line.strip() for line in lines if line.startswith("  ")]


def truth(then: str, orelse: str) -> str:
    given = {"false": "value = bool {0}", "true": "value = bool {1}"}
    arms = [
        f"a_{name} = Constant<{given[text]}>()" if text in given else f"a_{name} = {text}"
        for name, text in (("then", then), ("else", orelse))
    ]
    return f"""
        asked = If(test) <then_branch = t () => (bool a_then) {{ {arms[0]} }},
            else_branch = e () => (bool a_else) {{ {arms[1]} }}>
        within = Less(after, limit)
        {NEXT}"""


MORE = "Less(after, limit)"


@pytest.mark.parametrize(
    ("then", "orelse", "kinds"),
    [
        (MORE, "false", ["And"]),
        ("false", MORE, ["Not", "And"]),
        ("true", MORE, ["Or"]),
        (MORE, "true", ["Not", "Or"]),
    ],
)
def test_a_truth_value_in_an_arm(then: str, orelse: str, kinds: list[str]) -> None:
    lines = written(truth(then, orelse) + " on = And(asked, within)")
    assert "If" not in lines
    assert lines[3:] == ["Less", *kinds, "Less", "Neg", "And"]


@pytest.mark.parametrize(
    "arm",
    [
        f"{MORE} b = And(a_then, go)",  # both arms are computed
        "ReduceMax<keepdims = 0>(flags)",  # of many elements
        "Greater(quotient, zero)",  # which may have none
    ],
)
def test_other_arms_stay(arm: str) -> None:
    source = truth(arm.split(" b = ", maxsplit=1)[0], "false" if " b = " not in arm else "Not(test)")
    source = source.replace("{ a_then = Red", "{ flags = Less(v, w) a_then = Red").replace(
        "{ a_then = Gre", "{ quotient = Div(limit, after) a_then = Gre"
    )
    body = f"{NEXT} {source.replace(NEXT, '')} on = And(asked, within)"
    assert "If" in written(body)


BREAK = """
    stop = Less(s, small)
    w = If(stop) <then_branch = t () => (float[n] left) { left = Identity(v) },
        else_branch = e () => (float[n] next) { c = Cast<to = 1>(after) d = Mul(v, c) next = Add(d, s) }>
    going = Not(stop)
    within = Less(after, limit)"""


@pytest.mark.parametrize("on", ["And(going, within)", "And(within, going)", "Identity(going)"])
def test_what_only_the_next_iteration_reads_is_computed(on: str) -> None:
    lines = written(f"{BREAK} on = {on}", calls=[*CALLS[:3]])
    assert "If" not in lines
    assert "Identity" not in lines[:-1]


SEEN = "seen = ReduceSum<keepdims = 0>(w) also = Greater(seen, small) on = And(going, also)"


@pytest.mark.parametrize(
    ("body", "results"),
    [
        (f"{BREAK} on = And(going, within)", ", float[n] vector"),  # is read after the loop
        (f"{BREAK} on = Identity(within)", ""),  # the loop may go on
        (f"{BREAK} on = Or(going, within)", ""),
        (f"{BREAK} {SEEN}", ""),
        (f"{BREAK.replace('Add(d, s)', 'Add(d, x)')} on = Identity(going)", ""),
    ],
)
def test_other_branches_stay(body: str, results: str) -> None:
    source = body
    if "Add(d, x)" in body:  # of sizes that may differ
        source = body.replace("Add(d, x)", "Add(d, y)").replace("stop = ", "y = Slice(x, b, e) stop = ", 1)
        source = "b = Constant<value_ints = [0]>() e = Shape(x) " + source
    assert "If" in written(source, results, calls=CALLS[:3])


ALSO = """
    stop = Less(s, small)
    w, more = If(stop) <
        then_branch = t () => (float[n] left, bool no) {
            left = Identity(v) false = Constant<value = bool {0}>() no = Identity(false) },
        else_branch = e () => (float[n] next, bool yes) { next = Neg(v) yes = Less(after, limit) }>
    going = Not(stop)"""


@pytest.mark.parametrize(
    ("on", "stays"),
    [
        ("on = And(more, going)", False),
        ("both = And(going, more) on = Identity(both)", False),
        ("on = Identity(more)", True),  # nothing else says that the loop ends
        ("on = Or(more, going)", True),
        ("number = Cast<to = 7>(more) other = Less(number, after) both = And(other, more) on = And(both, going)", True),
    ],
)
def test_a_part_of_the_condition_that_is_computed_behind_a_break(on: str, stays: bool) -> None:
    assert ("If" in written(f"{ALSO} {on}", calls=CALLS[:3])) == stays


def test_what_is_a_part_of_a_condition() -> None:
    body = f"""
        {BREAK.replace("w = If", "other = If")}
        both = And(going, within)
        twice = Not(stop)
        on = And(both, twice)
        {NEXT}"""
    model = parsed(LOOP.format(body=body, results=""))
    inner = next(node for node in model.graph if node.op_type == "Loop").attributes["body"].as_graph()
    names = {value.name: value for node in inner for value in node.outputs}
    parts = parts_of(names["both"])
    assert {(value.name, meant) for value, meant in parts} == {
        ("both", True),
        ("going", True),
        ("within", True),
        ("stop", False),
    }
    assert written(body, calls=CALLS[:3]).count("And") == 1


def test_results_are_no_copies() -> None:
    lines = changed(
        LOOP.format(body=f"a = Identity(test) on = Identity(a) {NEXT}", results=""), compute_once, *CALLS[:3]
    )
    assert "  Identity" not in lines


class Descent(torch.nn.Module):
    """Conjugate gradients: what follows the ``break`` is for the next iteration alone."""

    def forward(self, a: Tensor, b: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        x, r, steps = torch.zeros_like(b), b, torch.zeros((), dtype=torch.int64)
        p, size = r, r @ r
        while size > 1e-8 and steps < limit:
            product = a @ p
            alpha = size / (p @ product)
            x, r = x + alpha * p, r - alpha * product
            new = r @ r
            steps = steps + 1
            if new < 1e-6:
                break
            p, size = r + new / size * p, new
        return x, steps


def test_a_model(tmp_path: Path) -> None:
    model, n = Descent(), Dim("n")
    shapes: Any = ({0: n, 1: n}, {0: n}, None)
    calls = [
        (torch.eye(k) * 2 + torch.ones(k, k) / 4, torch.ones(k) * scale + torch.arange(k), torch.tensor(limit))
        for k, scale, limit in ((5, 1.0, 20), (1, 1.0, 20), (4, 2.0, 1), (6, 1.0, 0), (3, 0.0, 5))
    ]
    file = tmp_path / "m.onnx"
    program = dy2st.onnx.export(model, calls[0], file, dynamic_shapes=shapes)
    (loop,) = [node for node in program.model.graph.all_nodes() if node.op_type == "Loop"]
    assert not [node for node in loop.attributes["body"].as_graph() if node.op_type == "If"]
    report = dy2st.check(model, calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report
