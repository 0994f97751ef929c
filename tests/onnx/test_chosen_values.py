"""Branches in loops that choose one of two small values: as Where, with the same values on onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from dy2st.onnx.passes.chosen_values import MOST_ELEMENTS, choose_values
from tests.onnx.graph_text import OPSET, changed

LOOP = """
    g (float[{sizes}] x, {kind} first, int64 limit) => ({kind} last) {{
        zero = Constant<value_int = 0>()
        two = Constant<value_float = 2.0>()
        four = Constant<value_int = 4>()
        cube = Constant<value = float[4, 4] {{2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}}>()
        last = Loop(limit, , first) <body = step (int64 i, bool go, {kind} before) => (bool on, {kind} after) {{
            on = Identity(go)
            odd = Mod(i, four)
            test = Greater(odd, zero)
            after = If(test) <then_branch = t () => ({kind} a) {{ {then} }},
                else_branch = e () => ({kind} b) {{ {orelse} }}>
        }}>
    }}"""


def written(then: str, orelse: str, kind: str, first: np.ndarray, sizes: str = "n") -> list[str]:
    x = np.arange(4, dtype=np.float32) if sizes == "n" else np.ones((4, 4), np.float32)
    text = LOOP.format(then=then, orelse=orelse, kind=kind, sizes=sizes)
    calls = [(x, first, np.array(trips)) for trips in (0, 1, 2, 7)]
    return [line.strip() for line in changed(text, lambda model: choose_values(model, OPSET), *calls)]


def numbers(size: object) -> np.ndarray:
    return np.linspace(-1, 5, int(str(size)), dtype=np.float32)


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("float", np.array(np.nan, np.float32)),
        ("double", np.array(-0.0)),
        ("int64", np.array(-(2**63))),
        ("int32", np.array(3, np.int32)),
    ],
)
def test_what_is_left_or_replaced(kind: str, first: np.ndarray) -> None:
    value = {"float": "float {1}", "double": "double {1}"}.get(kind, f"{kind} {{7}}")
    lines = written("a = Identity(before)", f"b = Constant<value = {value}>()", kind, first)
    assert "Where" in lines
    assert "If" not in lines


def test_a_vector_of_unknown_size_is_chosen_but_not_computed() -> None:
    assert "Where" in written("a = Identity(before)", "b = Identity(x)", "float[n]", numbers(4))
    assert "If" in written("a = Neg(before)", "b = Identity(x)", "float[n]", numbers(4))


def test_few_elements_may_be_computed() -> None:
    lines = written("a = Mul(before, two)", "b = Sub(before, two)", "float[3]", numbers(3))
    assert lines[-3:] == ["Mul", "Sub", "Where"]
    many = MOST_ELEMENTS + 1
    assert "If" in written("a = Mul(before, two)", "b = Sub(before, two)", f"float[{many}]", numbers(many))


def test_much_work_and_products_stay_in_their_arm() -> None:
    chain = "p = Neg(before) q = Abs(p) r = Exp(q) a = Sqrt(r)"
    assert "If" in written(chain, "b = Identity(before)", "float", np.array(0.5, np.float32))
    product = "a = MatMul(before, cube)"
    assert "If" in written(product, "b = Identity(before)", "float[4, 4]", np.eye(4, dtype=np.float32), "n, n")


def test_what_may_fail_stays_in_its_arm() -> None:
    lines = written("a = Identity(before)", "b = Div(before, four)", "int64", np.array(9))
    assert "Where" in lines
    assert "If" in written("a = Identity(before)", "b = Div(four, before)", "int64", np.array(1))


def test_a_truth_value_stays_in_its_arm() -> None:
    assert "If" in written("a = Identity(before)", "b = Constant<value = bool {0}>()", "bool", np.array(True))


def test_outside_of_loops_a_branch_stays() -> None:
    text = """
    g (float x, bool test) => (float y) {
        y = If(test) <then_branch = t () => (float a) { a = Identity(x) },
            else_branch = e () => (float b) { b = Neg(x) }>
    }"""
    calls = [(np.array(2, np.float32), np.array(test)) for test in (True, False)]
    assert changed(text, lambda model: choose_values(model, OPSET), *calls)[0] == "If"
