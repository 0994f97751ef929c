"""Branches between a tensor and nothing: taken out where a test says that the tensor has no rows, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from dy2st.onnx.passes.empty_arms import drop_empty_arms
from tests.onnx.graph_text import OPSET, changed

GRAPH = """
    g (int64[{sizes}] x) => (int64[{given}] y) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        two = Constant<value_int = 2>()
        first = Shape<start = 0, end = 1>(x)
        size = Squeeze(first)
        {test}
        y = If(test) <then_branch = t () => (int64[{given}] a) {{ {then} }},
            else_branch = e () => (int64[{given}] b) {{ {orelse} }}>
    }}"""
SAME = "{} = Identity(x)"
NOTHING = "{} = Constant<value = int64[{}] {{}}>()"


def written(test: str, then: str, orelse: str, sizes: str = "n", given: str = "m") -> list[str]:
    text = GRAPH.format(test=test, then=then, orelse=orelse, sizes=sizes, given=given)
    rest = [2] * (sizes.count(",") + 1)
    calls = [(np.arange(n * 2 ** (len(rest) - 1)).reshape(n, *rest[1:]),) for n in (0, 1, 2, 3)]
    return changed(text, lambda model: drop_empty_arms(model, OPSET), *calls)


@pytest.mark.parametrize(
    "test",
    [
        "test = Greater(size, zero)",
        "test = Less(zero, size)",
        "test = GreaterOrEqual(size, one)",
        "test = LessOrEqual(one, size)",
        "test = Cast<to = 9>(size)",
        "no = Equal(zero, size) test = Not(no)",
        "no = Less(size, one) test = Not(no)",
    ],
)
def test_a_tensor_if_it_has_rows(test: str) -> None:
    assert "If" not in written(test, SAME.format("a"), NOTHING.format("b", 0))


def test_the_other_way_round_and_with_other_sizes() -> None:
    assert "If" not in written("test = Equal(size, zero)", NOTHING.format("a", 0), SAME.format("b"))
    nothing = NOTHING.format("b", "0, 2")
    assert "If" not in written("test = Greater(size, zero)", SAME.format("a"), nothing, "n, 2", "m, 2")


@pytest.mark.parametrize(
    ("test", "sizes", "nothing"),
    [
        ("test = Greater(size, one)", "n", "0"),  # of one row there is a tensor, too
        ("test = Less(size, two)", "n", "0"),
        ("test = Equal(size, zero)", "n", "0"),  # the tensor, if it has no rows
        ("test = Greater(size, zero)", "n, k", "0, 2"),  # another size is not known
        ("test = Greater(size, zero)", "n, 2", "0, 3"),
    ],
)
def test_what_is_not_the_same_stays(test: str, sizes: str, nothing: str) -> None:
    given = ", ".join("mk"[: len(sizes.split(","))])
    assert "If" in written(test, SAME.format("a"), NOTHING.format("b", nothing), sizes, given)


def test_what_an_arm_computes_stays() -> None:
    assert "If" in written("test = Greater(size, zero)", "a = Neg(x)", NOTHING.format("b", 0))
