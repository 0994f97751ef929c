"""Data-dependent values, given to code that is not converted: as eager, or refused at the user's line."""

from __future__ import annotations

import bisect
import collections
import copy
import decimal
import functools
import heapq
import itertools
import json
import math
import numbers
import operator
import pickle
import random
import re
import statistics
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import StagedNumberError, UnconvertedCallError

sys.path.insert(0, str(Path(__file__).parent))

from sweeping import CALLS, VALUES, program, sweep, verdict

BY_NAME = {value.__name__: value for value in VALUES}
SWEPT = (
    "array bisect builtins cmath collections collections.abc copy decimal fractions functools heapq inspect itertools "
    "json math numbers numpy.linalg operator pickle random re string struct textwrap types typing"
).split()
# A function, a value, how it is called, and whether it converts; else it is refused.
REPRESENTATIVES: list[tuple[Any, str, str, bool]] = [
    (np.isscalar, "a_float", "f(v)", True),
    (np.isscalar, "a_size", "f(v)", True),
    (np.isscalar, "a_tensor", "f(v)", True),
    (np.ndim, "an_int", "f(v)", True),
    (np.sqrt, "an_int", "f(v)", True),
    (np.floor, "a_float", "f(v)", True),
    (np.floor, "an_int", "f(v)", False),
    (np.clip, "a_float", "f(v, 1, 2)", True),
    (np.maximum, "a_float", "f(v, 2)", True),
    (np.round, "a_float", "f(v, 2)", True),
    (np.asarray, "a_float", "f(v)", False),
    (np.asarray, "a_tuple", "f(v)", False),
    (np.array_equal, "a_tensor", "f(v, v)", False),
    (np.atleast_3d, "a_grown_list", "f(v)", False),
    (np.full_like, "a_float", "f(v, 2)", False),
    (math.floor, "a_float", "f(v)", True),
    (math.gamma, "a_bool", "f(v)", False),
    (operator.index, "a_bool", "f(v)", True),
    (operator.is_, "an_int", "f(v, 2)", False),
    (operator.add, "a_float", "f(v, 2)", True),
    (divmod, "a_float", "f(v, 2)", True),
    (copy.copy, "a_float", "f(v)", True),
    (copy.deepcopy, "a_dict", "f(v)", True),
    (pickle.dumps, "a_tuple", "f(v)", False),
    (json.dumps, "a_dict", "f(v)", False),
    (decimal.Decimal, "a_float", "f(v)", False),
    (statistics.mean, "a_list", "f(v)", False),
    (functools.partial, "a_float", "f(abs, v)", True),
    (itertools.accumulate, "a_list", "f(v)", True),
    (collections.Counter, "a_grown_list", "f(v)", False),
    (heapq.nlargest, "a_list", "f(2, v)", True),
    (bisect.bisect, "a_float", "f([1.0, 2.0], v)", True),
    (random.Random, "an_int", "f(v)", False),
    (re.escape, "a_text", "f(v)", False),
    (textwrap.dedent, "a_text", "f(v)", False),
    (str, "a_tensor", "f(v)", False),
    (repr, "a_grown_list", "f(v)", False),
    (id, "an_int", "f(v)", False),
    (OSError, "an_int", "f(v, 2)", False),
    (zip, "a_grown_list", "f(v, v)", False),
    (typing.cast, "a_float", "f(abs, v)", True),
]


@pytest.mark.parametrize(
    ("function", "value", "call", "converts"),
    [pytest.param(*each, id=f"{each[0].__name__}-{each[1]}-{each[2]}") for each in REPRESENTATIVES],
)
def test_functions_of_libraries_are_as_in_eager_or_refused(
    function: Any, value: str, call: str, converts: bool
) -> None:
    found = verdict(program(function, BY_NAME[value], CALLS[call]), may_go_on=True)
    assert found is not None
    assert (found == "equal") if converts else found.startswith("refused D2S2")


@pytest.mark.slow
@pytest.mark.parametrize("module", SWEPT)
def test_every_function_is_as_in_eager_or_refused(module: str) -> None:
    found = list(sweep(module))
    assert found or module in ("array", "collections.abc", "string", "typing")
    assert [each for each in found if each[1] != "equal" and not each[1].startswith("refused D2S")] == []


def test_a_condition_on_a_numpy_predicate_is_the_one_of_eager() -> None:
    def model(x: Tensor) -> Tensor:
        scale = x.std().item()
        if np.isscalar(scale):  # noqa: SIM102  two conditions, of which one is Python's
            if scale == 0:
                scale = 1.0
        return x / scale

    for x in (torch.tensor([1.0, 2.0, 3.0]), torch.ones(3)):
        exported = dy2st.export(model, (torch.tensor([1.0, 2.0, 3.0]),)).module()
        assert torch.equal(exported(x), model(x))


# ---- questions about the class of a number


def _class_of_attribute(number: Any) -> bool:
    return number.__class__ is float and number.__class__.__name__ == "float"


def _of_a_union(number: Any) -> bool:
    return isinstance(number, int | float)


def _of_a_nested_tuple(number: Any) -> bool:
    return isinstance(number, (str, (bytes, (float,))))


def _of_the_tower(number: Any) -> bool:
    return isinstance(number, numbers.Real) and not isinstance(number, numbers.Integral)


def _of_a_protocol(number: Any) -> bool:
    return isinstance(number, typing.SupportsFloat) and not isinstance(number, typing.SupportsIndex)


def _without_our_attributes(number: Any) -> bool:
    return not hasattr(number, "tensor") and getattr(number, "kind", None) is None and hasattr(number, "hex")


def _no_float_of_numpy(number: Any) -> bool:
    return not isinstance(number, np.floating)


QUESTIONS = (
    _class_of_attribute,
    _of_a_union,
    _of_a_nested_tuple,
    _of_the_tower,
    _of_a_protocol,
    _without_our_attributes,
    _no_float_of_numpy,
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_staged_number_answers_as_a_number(question: Any) -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if question(x.std().item()) else x

    x = torch.tensor([1.0, 2.0])
    assert torch.equal(model(x), x * 2)
    assert torch.equal(dy2st.export(model, (x,)).module()(x), x * 2)


@dy2st.not_to_static
def _left_alone(value: Any) -> Any:
    return value * 2


def test_code_that_is_left_alone_gets_tensors_but_no_numbers() -> None:
    def tensors(x: Tensor) -> Any:
        return _left_alone(x)

    def given_numbers(x: Tensor) -> Any:
        return x * _left_alone(x.sum().item())

    x = torch.tensor([1.0, 2.0])
    assert torch.equal(dy2st.export(tensors, (x,)).module()(x), x * 2)
    with pytest.raises(UnconvertedCallError) as caught:
        dy2st.export(given_numbers, (x,))
    assert caught.value.location is not None
    assert "_left_alone(x.sum().item())" in str(caught.value.location.text)


class Box:
    """Holds a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


def test_a_number_inside_an_object_does_not_cross_the_border() -> None:
    def model(x: Tensor) -> Any:
        box = Box([x.sum().item()])
        return x * len(pickle.dumps(box))

    with pytest.raises(UnconvertedCallError, match=r"pickle\.dumps"):
        dy2st.export(model, (torch.ones(2),))


def test_a_question_that_tells_numpys_floats_from_pythons_is_refused_where_both_are_made() -> None:
    def model(x: Tensor) -> Any:
        root = np.sqrt(x.sum().item())
        return x * 2 if isinstance(root, np.floating) else x

    with pytest.raises(StagedNumberError, match="numpy's"):
        dy2st.export(model, (torch.ones(2),))


def test_an_array_times_a_number_is_refused() -> None:
    def model(x: Tensor) -> Any:
        return x * float((np.array([1.0, 2.0]) * x.sum().item()).sum())

    with pytest.raises(StagedNumberError):
        dy2st.export(model, (torch.ones(2),))


@pytest.mark.parametrize("place", ["list", "object", "closure", "generator", "iterator", "partial", "slice", "views"])
def test_the_border_looks_into_what_it_is_given(place: str) -> None:
    def model(x: Tensor) -> Any:
        number = x.sum().item()
        held: dict[str, Any] = {
            "list": [[number]],
            "object": Box((number,)),
            "closure": lambda: number,
            "generator": (each for each in [number]),
            "iterator": iter([number]),
            "partial": functools.partial(max, number),
            "slice": slice(number),
            "views": {"a": number}.values(),
        }
        return x * statistics.fmean(held[place])

    with pytest.raises(UnconvertedCallError, match=r"statistics\.fmean"):
        dy2st.export(model, (torch.ones(2),))
