"""Rules of onnxscript with the conditions that they lack: results before and after, and of models that they broke."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import dy2st
from dy2st.onnx.passes.optimizing import optimize
from tests.onnx.graph_text import changed, results

numbers = np.random.default_rng(0).standard_normal


def product(a: tuple[int, ...], first: list[int], b: tuple[int, ...], second: list[int], shape: list[int]) -> list[str]:
    """The operators of a product of reshaped tensors, after its result was compared."""
    text = f"""
    g (float{list(a)} a, float{list(b)} b) => (float{shape} y) {{
        as_first = Constant<value_ints = {first}>()
        as_second = Constant<value_ints = {second}>()
        shape = Constant<value_ints = {shape}>()
        p = Reshape(a, as_first)
        q = Reshape(b, as_second)
        product = MatMul(p, q)
        y = Reshape(product, shape)
    }}"""
    return changed(text, optimize, (numbers(a, np.float32), numbers(b, np.float32)))


@pytest.mark.parametrize(
    ("a", "first", "b", "second", "shape"),
    [
        ((2, 3, 4), [6, 4], (4, 5), [4, 5], [2, 3, 5]),
        ((2, 2, 3, 4), [4, 3, 4], (2, 2, 4, 5), [4, 4, 5], [2, 2, 3, 5]),
        ((4,), [1, 4], (4, 5), [4, 5], [5]),
        ((3, 4), [1, 3, 4], (2, 2, 4, 5), [4, 4, 5], [2, 2, 3, 5]),
    ],
)
def test_reshapes_around_a_product_go(a, first, b, second, shape):
    assert product(a, first, b, second, shape) == ["MatMul"]


@pytest.mark.parametrize(
    ("a", "first", "b", "second", "shape"),
    [
        ((2, 1, 1, 2), [2, 2], (2, 2, 1), [2, 2], [2, 2, 1, 1]),  # the second's columns would meet other rows
        ((4, 1), [2, 2], (4, 1), [2, 2], [4, 1]),  # there is no such product
        ((2, 1, 2, 3), [2, 2, 3], (1, 2, 3, 2), [2, 3, 2], [2, 2, 2]),
    ],
)
def test_reshapes_that_make_another_product_stay(a, first, b, second, shape):
    assert product(a, first, b, second, shape).count("Reshape") >= 2


def test_a_negative_sum_of_a_size_is_not_its_absolute_value():
    text = """
    g (float[n, 3] x) => (int64[1] y) {
        five = Constant<value_ints = [-5]>()
        size = Shape<start = 0, end = 1>(x)
        sum = Add(size, five)
        y = Abs(sum)
    }"""
    assert changed(text, optimize, (np.ones((2, 3), np.float32),), (np.ones((7, 3), np.float32),)) == [
        "Shape",
        "Add",
        "Abs",
    ]


def test_rows_of_reshaped_sizes_are_not_sizes():
    text = """
    g (float[n, 3] x) => (int64[1, 2] y) {
        more = Constant<value_ints = [3, 4, 5]>()
        square = Constant<value_ints = [2, 2]>()
        one = Constant<value_ints = [1]>()
        size = Shape<start = 0, end = 1>(x)
        sizes = Concat<axis = 0>(size, more)
        rows = Reshape(sizes, square)
        y = Gather<axis = 0>(rows, one)
    }"""
    changed(text, optimize, (np.ones((2, 3), np.float32),))


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_nothing_is_flattened(shape, axis):
    for sizes in ("n, m, k", str(list(shape))[1:-1]):
        text = f"g (float[{sizes}] x) => (float[p, q] y) {{ y = Flatten<axis = {axis}>(x) }}"
        changed(text, optimize, (np.ones(shape, np.float32),))


def test_statistics_of_the_batch_stay():
    text = """
    g (float[n, 1, 4] x) => (float[n, 1, m] y)
    <float[1, 1, 2] weight = {1, 2}, float[1] one = {1}, float[1] zero = {0}> {
        made = Conv(x, weight)
        y, mean, var = BatchNormalization<training_mode = 1>(made, one, zero, zero, one)
    }"""
    assert "BatchNormalization" in changed(text, optimize, (numbers((2, 1, 4), np.float32),))


@functools.cache
def norm(channels: int) -> nn.BatchNorm1d:
    made = nn.BatchNorm1d(channels)
    torch.manual_seed(0)
    for tensor in (made.weight.data, made.bias.data, made.running_mean):
        assert tensor is not None
        tensor.normal_()
    return made


class Normed(nn.Module):
    """A convolution and a norm, and the weights of both besides."""

    def __init__(self, besides: Callable[[Normed, Tensor], Any]) -> None:
        super().__init__()
        self.besides = besides
        self.norm = norm(4)
        self.w = nn.Parameter(torch.randn(4, 2, 3))
        self.register_buffer("w_bias", torch.ones(4))

    def forward(self, x):
        return self.norm(functional.conv1d(x, self.w)), self.besides(self, x)


def count_up(model: Normed, x: Tensor) -> Tensor:
    model.w_bias.add_(x.sum())
    return model.w_bias * 2


@pytest.mark.parametrize(
    "besides",
    [
        lambda model, _: model.w,
        lambda model, x: model.w_bias + x.sum(),
        lambda model, x: functional.conv1d(x, model.w, model.w_bias),
        count_up,
    ],
    ids=["returned", "name", "shared", "state"],
)
def test_a_norm_after_weights_that_are_used_besides(besides):
    calls = [(torch.randn(2, 2, 5),), (torch.randn(3, 2, 5),)]
    report = dy2st.check(Normed(besides).eval(), calls, dynamic_shapes={"x": {0: "n"}})
    assert report.ok, report


def test_weights_that_are_not_used_besides_take_the_norm():
    model = Normed(lambda _, x: x.sum()).eval()
    made = dy2st.onnx.export(model, (torch.randn(2, 2, 5),), dynamic_shapes={"x": {0: "n"}})
    assert "BatchNormalization" not in [node.op_type for node in made.model_proto.graph.node]


class HalfNorm(nn.Module):
    """The number added to the variance is none in half precision, and the variance of one channel is zero."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, eps=1e-8)
        assert self.norm.running_var is not None
        self.norm.running_var[0] = 0
        self.conv = nn.Conv1d(2, 4, 3, bias=False)

    def forward(self, x):
        return self.norm(self.conv(x))


def test_a_norm_in_half_precision():
    torch.manual_seed(0)
    calls = [(torch.randn(2, 2, 5).half() / 100,), (torch.randn(3, 2, 5).half() / 100,)]
    report = dy2st.check(HalfNorm().eval().half(), calls, dynamic_shapes={"x": {0: "n"}})
    assert report.ok, report


TABLE = torch.arange(70.0).reshape(70, 1)


def look_up(x: Tensor) -> Tensor:
    """Along more rows than numpy chooses among."""
    return torch.gather(TABLE, 0, torch.zeros(70, 1, dtype=torch.int64)).sum() + x


def without_elements(x: Tensor) -> tuple[Tensor, ...]:
    none = x[:, :0]
    return none.reshape(x.shape[0] * 2, 0), none.reshape(0, x.shape[0]), none.view(x.shape[0], 2, 0)


def absolute(x: Tensor) -> Tensor:
    return torch.abs(torch.tensor([-5]) + x.shape[0])


def split(x: Tensor) -> tuple[Tensor, ...]:
    return *x[:, :0].split(2, 1), *x.split(2, 1), *x.split(3, 1), *torch.zeros(0, 3).split(2)


@pytest.mark.parametrize("function", [look_up, without_elements, absolute, split])
def test_functions(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = dy2st.check(
            function, [(torch.ones(2, 3),), (torch.ones(7, 3),), (torch.ones(5, 3),)], dynamic_shapes={"x": {0: "n"}}
        )
    assert report.ok, report


def count(rows: int) -> Tensor:
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (lambda x, k: x.reshape(int(k), 3), (torch.ones(6), count(2)), (torch.ones(6), count(3))),
        (lambda x, k: x.view(2, int(k)).view(-1) + 1, (torch.ones(6), count(3)), (torch.ones(7), count(3))),
        (lambda x, k: x.reshape(-1, 3).reshape(-1) + k, (torch.ones(6), count(3)), (torch.ones(7), count(3))),
        (lambda x, k: x.reshape(-1, 3).reshape(-1, 2) + k, (torch.ones(6), count(3)), (torch.ones(8), count(3))),
    ],
)
def test_a_file_fails_where_eager_fails_to_reshape(function, good, bad):
    made = dy2st.onnx.export(function, good, dynamic_shapes={"x": {0: "n"}, "k": None})
    model = ir.from_proto(made.model_proto)
    np.testing.assert_array_equal(results(model, *(np.asarray(arg) for arg in good))[0], function(*good))
    with pytest.raises(RuntimeError):
        function(*bad)
    with pytest.raises(Exception, match="Reshape"):
        results(model, *(np.asarray(arg) for arg in bad))


@pytest.mark.parametrize(
    ("sizes", "first", "second", "kinds"),
    [
        ("n, 4", [-1, 2], [-1], ["Reshape"]),  # a multiple of 4 is one of 2
        ("n, 3", [-1, 2], [-1], ["Reshape", "Reshape"]),
        ("n, 3", [-1, 2], [-1, 4], ["Reshape"]),  # a multiple of 4, again
        ("n, 3", [2, 6], [-1], ["Reshape"]),  # to 12 elements
        ("n, 3", [2, 6], [4, 3], ["Reshape"]),
    ],
)
def test_a_reshape_that_may_fail_stays(sizes, first, second, kinds):
    dims = ", ".join("pq"[: len(second)])
    text = f"""
    g (float[{sizes}] x) => (float[{dims}] y) {{
        one = Constant<value_ints = {first}>()
        two = Constant<value_ints = {second}>()
        middle = Reshape(x, one)
        y = Reshape(middle, two)
    }}"""
    assert changed(text, optimize, (np.ones((4, int(sizes[-1])), np.float32),)) == kinds


def halves_and_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.view(x.shape[0] // 2, 2, 3).sum(1), x.reshape(x.shape[0] * 3).view(x.shape[0], 3, 1)


def test_a_shape_whose_elements_are_known_is_a_constant():
    made = dy2st.onnx.export(halves_and_rows, (torch.ones(8, 3),), dynamic_shapes={"x": {0: "n"}})
    assert "Concat" not in [node.op_type for node in made.model_proto.graph.node]
    report = dy2st.check(halves_and_rows, [(torch.ones(8, 3),), (torch.ones(6, 3),)], dynamic_shapes={"x": {0: "n"}})
    assert report.ok, report
