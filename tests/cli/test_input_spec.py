"""Input specs: their grammar, the tensors and the dynamic dimensions made from them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dy2st.errors import InputSpecError
from dy2st.input_spec import (
    DTYPES,
    SET_COUNT,
    DimensionSpec,
    InputSpec,
    dynamic_shapes,
    example_tensors,
    parse_input_spec,
)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("f32[]", InputSpec(None, "float32", ())),
        ("x=f32[3]", InputSpec("x", "float32", (DimensionSpec(size=3),))),
        (" x = int64 [ 2 , n ] ", InputSpec("x", "int64", (DimensionSpec(size=2), DimensionSpec(name="n")))),
        ("x=bool[n:2..9]", InputSpec("x", "bool", (DimensionSpec(name="n", low=2, high=9),))),
        ("x=i64[4]:-1..9", InputSpec("x", "int64", (DimensionSpec(size=4),), -1, 9)),
        ("x=f32[4]:0.5..1.5", InputSpec("x", "float32", (DimensionSpec(size=4),), 0.5, 1.5)),
        ("x=f32[0]:0..1e-3", InputSpec("x", "float32", (DimensionSpec(size=0),), 0, 1e-3)),
    ],
)
def test_parses(text, spec):
    assert parse_input_spec(text) == spec


@pytest.mark.parametrize(
    "text",
    ["", "x", "x=", "x=f32", "x=f32[", "x=f32[3", "x=f32[3,]", "x=f32[3 4]", "x=f32[3]]", "x=f32[-3]", "x=f32[1.5]",
     "x=f32[3]:1", "x=f32[3]:1..", "x=f32[3]:2..1", "x=f32[n:-1..2]", "x=f32[n:1.5..2]", "=f32[3]", "x=y=f32[3]", "3"],
)  # fmt: skip
def test_refuses(text):
    with pytest.raises(InputSpecError, match="input spec"):
        parse_input_spec(text)


@given(st.text(alphabet="xf32i64bool[],=:. -#n1", max_size=20))
def test_any_text_parses_or_is_refused(text):
    try:
        parse_input_spec(text)
    except InputSpecError as error:
        assert repr(text) in error.what  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_makes_tensors(name):
    for number in range(SET_COUNT):
        (tensor,) = example_tensors([parse_input_spec(f"{name}[n,3]")], number)
        assert tensor.dtype == getattr(torch, DTYPES[name])
        assert tensor.shape[1] == 3


def test_sizes_agree_by_name_and_differ_by_set():
    specs = [parse_input_spec("x=f32[n,m]"), parse_input_spec("y=f32[m,n]")]
    seen = []
    for number in range(SET_COUNT):
        x, y = example_tensors(specs, number)
        assert x.shape == y.T.shape
        seen.append(tuple(x.shape))
    assert len(set(seen)) == SET_COUNT
    assert min(seen[0]) > 1


def test_bounds_hold():
    specs = [parse_input_spec("x=i64[n:3..3,50]:-2..2")]
    for number in range(SET_COUNT):
        (x,) = example_tensors(specs, number)
        assert x.shape[0] == 3
        assert (x.min(), x.max()) == (-2, 2)


def test_tensors_are_reproducible():
    spec = [parse_input_spec("f32[n]")]
    assert torch.equal(example_tensors(spec, 1)[0], example_tensors(spec, 1)[0])


def test_dynamic_shapes():
    specs = [parse_input_spec(text) for text in ("x=f32[n:1..8,3]", "y=f32[4]", "z=i64[3,n]")]
    shapes = dynamic_shapes(specs)
    assert set(shapes) == {0, 2}
    assert shapes[0][0] is shapes[2][1]
    dim = shapes[0][0]
    assert (dim.__name__, dim.min, dim.max) == ("n", 1, 8)


def test_one_name_has_one_range():
    with pytest.raises(InputSpecError, match="two ranges"):
        dynamic_shapes([parse_input_spec("f32[n:1..2]"), parse_input_spec("f32[n:1..3]")])
