"""Products of two vectors as sums of products."""

from __future__ import annotations

import numpy as np
import pytest

from dy2st.onnx.passes.dot_products import FEW, sum_dot_products
from tests.onnx.graph_text import OPSET, changed, parsed, results


def product(size: object, kind: str = "float", other: str = "") -> str:
    return f"g ({kind}[{size}] u, {kind}[{size}] v, float[2, 2] m) => ({kind} y) {{ y = MatMul(u, v) {other} }}"


def vectors(size: int, dtype: type) -> tuple[np.ndarray, ...]:
    drawn = np.random.default_rng(size).integers(-9, 10, (2, size))
    return (*drawn.astype(dtype), np.ones((2, 2), np.float32))


@pytest.mark.parametrize(
    ("kind", "dtype"), [("float", np.float32), ("double", np.float64), ("int32", np.int32), ("int64", np.int64)]
)
def test_of_unknown_size(kind: str, dtype: type) -> None:
    calls = [vectors(size, dtype) for size in (1, 5, 3000)]
    assert changed(product("n", kind), lambda model: sum_dot_products(model, OPSET), *calls) == ["Mul", "ReduceSum"]


def test_of_nothing_it_is_zero() -> None:
    model = parsed(product("n"))
    sum_dot_products(model, OPSET)
    for _ in range(3):
        assert results(model, *vectors(0, np.float32))[0] == 0


def test_infinities_and_nan_are_as_in_the_product() -> None:
    model = parsed(product("n"))
    sum_dot_products(model, OPSET)
    for u, v in (([np.inf, 0], [0, 1]), ([np.inf, 1], [1, 1]), ([np.inf, np.inf], [1, -1]), ([np.nan], [0])):
        left, right = (np.array(each, np.float32) for each in (u, v))
        with np.errstate(invalid="ignore"):
            wanted = left @ right
        np.testing.assert_array_equal(results(model, left, right, np.ones((2, 2), np.float32))[0], wanted)


def test_few_numbers_stay_one_product_where_nothing_is_transposed() -> None:
    calls = [vectors(FEW, np.float32)]
    assert changed(product(FEW), lambda model: sum_dot_products(model, OPSET), *calls) == ["MatMul"]
    turned = changed(product(FEW, other="t = Transpose(m)"), lambda model: sum_dot_products(model, OPSET), *calls)
    assert turned == ["Mul", "ReduceSum", "Transpose"]
    many = changed(product(FEW + 1), lambda model: sum_dot_products(model, OPSET), vectors(FEW + 1, np.float32))
    assert many == ["Mul", "ReduceSum"]


def test_products_of_matrices_stay() -> None:
    text = "g (float[n, 2] a, float[2] v) => (float[n] y) { y = MatMul(a, v) }"
    call = (np.ones((3, 2), np.float32), np.ones(2, np.float32))
    assert changed(text, lambda model: sum_dot_products(model, OPSET), call) == ["MatMul"]
