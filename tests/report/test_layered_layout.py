"""Laws of the picture's layout: boxes never overlap, edges go down, and what can be straight is."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dy2st.report.layered_layout import _spread, layered


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    widths = draw(st.lists(st.floats(1, 300), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = {(a, b) for a, b in draw(st.lists(pairs, max_size=30)) if a < b}
    sinks = [place for place in range(count) if all(a != place for a, _ in edges)]
    return widths, sorted(edges), [place for place in sinks if draw(st.booleans())]


@given(graphs())
def test_boxes_lie_apart_and_inside_and_edges_go_down(graph):
    widths, edges, last = graph
    layout = layered(widths, edges, last=last, gap=10)
    for (place, (x, layer)), (other, (other_x, other_layer)) in combinations(enumerate(layout.centres), 2):
        if layer == other_layer:
            assert abs(x - other_x) >= (widths[place] + widths[other]) / 2 + 10 - 1e-6
    for place, (x, layer) in enumerate(layout.centres):
        assert widths[place] / 2 - 1e-6 <= x <= layout.width - widths[place] / 2 + 1e-6
        assert 0 <= layer < layout.layers
    for (above, below), route in zip(edges, layout.routes, strict=True):
        assert (route[0], route[-1]) == (layout.centres[above], layout.centres[below])
        assert all(second[1] == first[1] + 1 for first, second in pairwise(route))
    bottoms = {layout.centres[place][1] for place in last}
    assert all(layer < min(bottoms) for place, (_, layer) in enumerate(layout.centres) if bottoms and place not in last)


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0, 100)), min_size=1))
def test_spreading_keeps_the_order_and_what_is_apart_already(pairs):
    wanted, apart = [x for x, _ in pairs], [d for _, d in pairs][1:]
    found = _spread(wanted, apart)
    assert all(b - a >= d - 1e-6 for (a, b), d in zip(pairwise(found), apart, strict=True))
    assert _spread(found, apart) == pytest.approx(found, abs=1e-6)


def test_a_chain_is_a_straight_line():
    layout = layered([100, 20, 60], [(0, 1), (1, 2)], last=[2], gap=10)
    assert {x for x, _ in layout.centres} == {50}
    assert [layer for _, layer in layout.centres] == [0, 1, 2]


def test_what_reads_nothing_lies_right_above_its_reader():
    layout = layered([50] * 5, [(0, 1), (1, 2), (2, 3), (4, 3)], last=[], gap=10)
    assert [layer for _, layer in layout.centres] == [0, 1, 2, 3, 2]


def test_nothing_at_all():
    assert layered([], [], last=[], gap=10).layers == 0
