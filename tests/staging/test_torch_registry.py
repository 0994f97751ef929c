"""Laws of the registry of torch functions: what is asked where, and that torch still has what is replaced."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import dy2st
from dy2st.calls.torch_functions import dispatch  # noqa: F401  it imports the families
from dy2st.calls.torch_functions.registry import REPLACEMENTS, known, replaces
from dy2st.values.number import Number

NUMBER = Number(torch.tensor(2), int)
plain = st.one_of(st.none(), st.integers(), st.text(), st.builds(torch.zeros, st.integers(0, 3)))
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=6)


@pytest.mark.slow
@given(st.lists(values, max_size=4))
def test_values_of_python_are_known(given_values):
    assert known(given_values)


@given(st.lists(values, max_size=3), st.lists(values, max_size=3), st.integers(0, 3))
def test_one_number_of_the_graph_is_not_however_deep(before, after, depth):
    value = NUMBER
    for _ in range(depth):
        value = [1, value]
    assert not known([*before, value, *after])


def test_functions_are_replaced_under_all_their_names():
    for functions in (
        (torch.chunk, torch.Tensor.chunk),
        (torch.split, torch.functional.split, torch.Tensor.split),
        (torch.linalg.inv, torch.inverse, torch.Tensor.inverse),
    ):
        assert len({REPLACEMENTS[function] for function in functions}) == 1
    assert functional.pad in REPLACEMENTS


def test_a_form_that_is_registered_is_found():
    def function():
        pass

    try:

        @replaces(function, sized=True)
        def form():
            return 1

        assert REPLACEMENTS[function] == (form, True)
    finally:
        del REPLACEMENTS[function]


def test_a_name_that_torch_no_longer_has_shows():
    with pytest.raises(AttributeError, match="no_such_function"):
        replaces("no_such_function")(lambda: None)


MATRIX = torch.tensor([[2.0, 0.5], [0.5, 3.0]])
BY_KEYWORD = {
    "tensor": lambda x: torch.tensor(data=[1, 3], dtype=torch.float32) * x.sum(),
    "unbind": lambda x: torch.unbind(input=x)[0],
    "chunk": lambda x: torch.chunk(input=x, chunks=2)[0].sum(),
    "narrow": lambda x: torch.narrow(input=x, dim=0, start=0, length=x.shape[0] - 1).sum(),
    "one_hot": lambda x: torch.nn.functional.one_hot(input=x.long().clamp(0, 3), num_classes=4).sum(0),
    "inv": lambda x: torch.linalg.inv(A=MATRIX * x[0].exp()),
    "solve": lambda x: torch.linalg.solve(A=MATRIX, B=x[:2]),
    "cholesky": lambda x: torch.linalg.cholesky(input=MATRIX * x[0].exp()),
    "addmv": lambda x: torch.addmv(input=x, mat=x[:, None] * x, vec=x, beta=2),
    "addmm": lambda x: torch.addmm(input=x[:, None], mat1=x[:, None] * x, mat2=x[:, None]),
}


@pytest.mark.parametrize("name", BY_KEYWORD)
def test_arguments_by_the_names_that_torch_gives_them(name):
    report = dy2st.check(BY_KEYWORD[name], [(torch.tensor([1.0, 2.0, 0.5]),), (torch.tensor([3.0, 1.0]),)])
    assert report.ok, str(report)
