"""Pictures of errors: where they are, and how many of which size."""

from __future__ import annotations

import math

import pytest
import torch

from dy2st.parity.compare import compare
from dy2st.parity.outputs import Output
from dy2st.parity.pictures import COLUMNS, MOST_PICTURES, ROWS, picture


def test_same_values_have_no_picture():
    value = torch.tensor([1.0, math.nan, math.inf])
    assert picture("output", value, value.clone()) is None
    assert picture("output", value, torch.ones(4)) is None
    assert picture("output", torch.ones(0), torch.ones(0)) is None


def test_every_element_is_counted_once():
    want = torch.zeros(100, dtype=torch.float64)
    got = want.clone()
    got[3], got[7], got[90] = 2e-6, 2.0, math.nan
    drawn = picture("output", want, got)
    assert (drawn.exact, drawn.special, drawn.largest) == (97, 1, 2.0)
    assert drawn.edges[0] == 1e-6
    assert drawn.edges[-1] == 10.0
    assert drawn.counts == (1, 0, 0, 0, 0, 0, 1)
    assert drawn.exact + drawn.special + sum(drawn.counts) == 100
    assert sorted({cell for row in drawn.grid for cell in row}) == [0.0, 2e-6, 2.0, math.inf]


@pytest.mark.parametrize("shape", [(), (1,), (5,), (33,), (1000,), (3, 4), (2, 3, 500), (1, 40), (700, 2)], ids=str)
def test_the_grid_is_coarse_and_has_the_largest_error(shape):
    want = torch.zeros(shape)
    got = want.clone()
    got.view(-1)[-1] = 4.0
    drawn = picture("output", want, got)
    assert len(drawn.grid) <= ROWS
    assert {len(row) for row in drawn.grid} == {len(drawn.grid[0])}
    assert len(drawn.grid[0]) <= COLUMNS
    assert max(map(max, drawn.grid)) == 4.0
    assert sum(cell > 0 for row in drawn.grid for cell in row) <= 4  # neighbouring cells may share the element


def test_errors_of_very_different_size_share_the_first_bin():
    drawn = picture("output", torch.zeros(3), torch.tensor([1e-40, 1e-38, 1.0]))
    assert drawn.edges[0] == 0.0
    assert drawn.counts[0] == 2
    assert drawn.counts[-1] == 1


def test_other_dtypes():
    assert picture("output", torch.tensor([True, False]), torch.tensor([False, False])).largest == 1.0
    assert picture("output", torch.tensor([3]), torch.tensor([5])).largest == 2.0
    assert picture("output", torch.tensor([3 + 4j]), torch.tensor([[0.0, 0.0]])).largest == 5.0


def test_a_stage_carries_those_that_are_furthest_off_in_order():
    count = MOST_PICTURES + 3
    want = [Output(f"output[{i}]", torch.zeros(2)) for i in range(count)]
    got = [Output(f"o{i}", torch.full((2,), 1e-7 * (i + 1))) for i in range(count)]
    drawn = compare("program", want, got).pictures
    assert [each.output for each in drawn] == [f"output[{i}]" for i in range(3, count)]


def test_the_width_of_a_python_float_is_no_error():
    want = [Output("output", torch.tensor(0.1, dtype=torch.float64), is_number=True)]
    assert compare("program", want, [Output("output", torch.tensor(0.1))]).pictures == ()
