"""Comparing without torch: the same verdicts, texts and numbers as with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dy2st.embedded.array_compare import compare_arrays
from dy2st.embedded.array_file import Array
from dy2st.parity.compare import compare
from dy2st.parity.outputs import Output
from dy2st.parity.tolerances import tolerance_for

nan, inf = float("nan"), float("inf")
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
EDGES = [0.0, -0.0, 1.0, -1.0, 1 + 1e-5, 1 + 2e-3, 1.1, 65504.0, 1e30, -1e30, 1e-40, 5e-324, nan, inf, -inf, 3.0]


def array(tensor):
    bits = tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor
    return Array(str(tensor.dtype).removeprefix("torch."), bits.numpy())


def both(expected, actual, terms=1, spread=None, **bounds):
    """What is found with torch and without it; pictures are drawn with torch alone."""
    wants, gots = ([Output(f"y{i}", each) for i, each in enumerate(side)] for side in (expected, actual))
    with_torch = replace(
        compare("onnxruntime", wants, gots, terms=lambda: terms, spread=lambda: spread, **bounds), pictures=()
    )
    without = compare_arrays(
        "onnxruntime",
        [(f"y{i}", array(each)) for i, each in enumerate(expected)],
        [array(each) for each in actual],
        [tolerance_for(each.dtype, **bounds) for each in expected],
        [tolerance_for(each.dtype, terms=terms, **bounds) for each in expected],
        terms,
        None if spread is None else [each.numpy() for each in spread],
    )
    texts = tuple(replace(each, message=each.message.replace("torch.", "")) for each in with_torch.differences)
    return replace(with_torch, differences=texts), without


def require_alike(expected, actual, **options):
    first, second = both(expected, actual, **options)
    # a sum of products is added up in another order, and so is a mean
    for one, other in zip(first.outputs, second.outputs, strict=True):
        for name in ("cosine", "mismatched", "max_rel", "of_tolerance"):
            here, there = getattr(one, name), getattr(other, name)
            assert (here is None) == (there is None), name
            # A cosine is a sum of shares of 1, which may cancel to nothing.
            least = 1e-12 if name == "cosine" else 1e-300
            assert here is None or here == pytest.approx(there, rel=1e-9, abs=least), name
    blank = {"cosine": None, "mismatched": 0.0, "max_rel": 0.0, "of_tolerance": None}
    outputs = [tuple(replace(each, **blank) for each in side.outputs) for side in (first, second)]
    assert first.max_rel == pytest.approx(second.max_rel, rel=1e-12)
    assert replace(first, outputs=outputs[0], max_rel=0.0) == replace(second, outputs=outputs[1], max_rel=0.0)
    return second


@st.composite
def pairs(draw):
    """Two tensors that are often alike, in dtype and shape more often than in values."""
    dtype = draw(st.sampled_from(FLOATS + INTEGERS))
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 3), (0,), (2, 0), (4, 1, 2)]))
    size = int(np.prod(shape))
    if dtype in FLOATS:
        values = [draw(st.sampled_from(EDGES) | st.floats(width=16)) for _ in range(size)]
    else:
        values = [draw(st.integers(0, 1 if dtype is torch.bool else 100)) for _ in range(size)]
    expected = torch.tensor(values, dtype=torch.float64 if dtype in FLOATS else torch.int64).to(dtype).reshape(shape)
    actual = expected.clone()
    for _ in range(draw(st.integers(0, 2)) if size else 0):
        place = draw(st.integers(0, size - 1))
        new = draw(st.sampled_from(EDGES)) if dtype in FLOATS else draw(st.integers(0, 1))
        actual.view(-1)[place] = new
    other = draw(st.integers(0, 9))
    if other == 0:
        actual = actual.to(draw(st.sampled_from(FLOATS + INTEGERS)))
    elif other == 1:
        actual = actual.reshape(1, *shape)
    return expected, actual


@given(st.lists(pairs(), min_size=1, max_size=3), st.sampled_from([1, 1, 10**6, 10**12]))
def test_alike_on_any_tensors(found, terms):
    require_alike([expected for expected, _ in found], [actual for _, actual in found], terms=terms)


@given(pairs(), st.sampled_from([0.0, 1e-3, 1.0]), st.sampled_from([None, 0.0, 0.5]))
def test_alike_within_given_bounds(pair, rtol, atol):
    require_alike([pair[0]], [pair[1]], rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    ("expected", "actual", "status"),
    [
        ([torch.tensor(2**62 + 1)], [torch.tensor(2**62)], "differs"),
        ([torch.tensor([nan, inf, 1.0])], [torch.tensor([nan, inf, 1.0])], "equal"),
        ([torch.tensor([nan, 1.0])], [torch.tensor([1.0, nan])], "differs"),
        ([torch.empty(0, 4)], [torch.empty(0, 4)], "equal"),
        ([torch.empty(0)], [torch.empty(0, 1)], "differs"),
        ([torch.ones(2), torch.ones(1)], [torch.ones(2)], "differs"),
        ([torch.ones(2, dtype=torch.bfloat16)], [torch.ones(2, dtype=torch.bfloat16) * 1.01], "equal"),
        ([torch.tensor(True)], [torch.tensor(False)], "differs"),
    ],
)
def test_alike_at_the_edges(expected, actual, status):
    if len(expected) != len(actual):
        first, second = both(expected, actual)
        assert first == second
    else:
        second = require_alike(expected, actual)
    assert second.status == status


def test_a_tolerance_that_was_scaled_by_a_sum_is_said():
    expected, actual = torch.ones(2), torch.ones(2) + 3e-4
    assert require_alike([expected], [actual], terms=10**6).terms == 10**6
    assert require_alike([expected], [actual]).status == "differs"


@given(
    st.lists(pairs(), min_size=1, max_size=2),
    st.sampled_from([0.0, 1e-3, 10.0, float("inf")]),
    st.sampled_from([1, 10**8]),
)
def test_alike_where_rounding_is_known(found, size, terms):
    spread = [torch.full(expected.shape, size, dtype=torch.float64) for expected, _ in found]
    require_alike([expected for expected, _ in found], [actual for _, actual in found], spread=spread, terms=terms)


def test_what_rounding_moves_is_said():
    expected, actual = torch.ones(2), torch.ones(2) + 0.25
    result = require_alike([expected], [actual], spread=[torch.full((2,), 0.3, dtype=torch.float64)])
    assert (result.status, result.rounding) == ("equal", 0.25)
    assert require_alike([expected], [actual], spread=[torch.zeros(2, dtype=torch.float64)]).status == "differs"


def test_what_rounding_makes_infinite_is_tolerated_there_alone():
    expected, actual = torch.tensor([-16.6, 1.0]), torch.tensor([-torch.inf, 1.0])
    for spread, status in (([torch.inf, 0.0], "equal"), ([0.0, torch.inf], "differs"), ([1e300, 0.0], "differs")):
        assert require_alike([expected], [actual], spread=[torch.tensor(spread, dtype=torch.float64)]).status == status
