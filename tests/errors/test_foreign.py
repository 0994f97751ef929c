"""Exceptions of Python, torch and other code that a capture meets: ours, at the user's line, with their cause."""

from __future__ import annotations

import heapq
import itertools
import json
import math
import pickle
import sys
from decimal import Decimal

import numpy as np
import pytest
import torch

import dy2st
from dy2st import errors

# ruff: noqa: F821 - the functions are wrong on purpose


def missing_key(x):
    found = {"a": x}
    if x.sum() > 0:
        x = found["b"]  # here
    return x


def missing_name(x):
    if x.sum() > 0:
        x = undefined + 1  # here
    return x


def missing_attribute(x):
    if x.sum() > 0:
        x = x.no_such_method()  # here
    return x


def divided_by_zero(x):
    zero = 0
    if x.sum() > 0:
        x = x * (1 // zero)  # here
    return x


def wrong_call(x):
    def helper(a):
        return a

    while x.sum() < 10:
        x = helper(x, x)  # here
    return x


def leaves_the_process(x):
    if x.sum() > 0:
        sys.exit("no")  # here
    return x


def raises_on_every_path(x):
    if x.sum() > 0:
        raise ValueError("up")  # here
    else:  # noqa: RET506
        raise TypeError("down")


def power_with_modulus(x):
    return x * pow(int(x.sum()), 2, 7)  # here


def number_for_other_code(x):
    return x * float(Decimal(int(x.sum())))  # here


def number_for_json(x):
    return x * len(json.dumps({"a": int(x.sum())}))  # here


def number_for_a_c_function(x):
    return x * math.comb(5, int(x.sum()))  # here


def number_for_islice(x):
    return sum(itertools.islice([x, x * 2], int(x.sum())))  # here


def number_for_pickle(x):
    return x * len(pickle.dumps(int(x.sum())))  # here


def numpy_through_its_protocol(x):
    return torch.as_tensor(np.sin(x))  # here


def condition_in_other_code(x):
    return x * next(heapq.merge([1, 2], [x.sum()]))  # here


def without_memory(x):
    return x * (x.data_ptr() % 2)  # here


def gradients_inside(x):
    y, z = x.detach().requires_grad_(True), torch.ones(1, requires_grad=True)
    value = y.sum() if x.sum() > 0 else z.sum()
    found = torch.autograd.grad(value, [y], allow_unused=True)  # here
    return x if found[0] is None else found[0]


@dy2st.not_to_static
def derivative(x):
    return torch.func.jvp(lambda y: y.square().sum(), (x,), (x,))[0]  # here


def wrapped_tensors(x):
    return derivative(x)


def sparse_constant(x):
    return torch.eye(3).to_sparse() + x  # here


def returned_set(x):
    return {x.sum()}  # here


CASES = {
    missing_key: (errors.StagedPathError, KeyError, "KeyError: 'b'"),
    missing_name: (errors.StagedPathError, NameError, "name 'undefined' is not defined"),
    missing_attribute: (errors.StagedPathError, AttributeError, "'Tensor' object has no attribute 'no_such_method'"),
    divided_by_zero: (errors.StagedPathError, ZeroDivisionError, "modulo by zero"),
    wrong_call: (errors.StagedPathError, TypeError, "takes 1 positional argument but 2 were given"),
    leaves_the_process: (errors.RaiseError, SystemExit, "SystemExit: no is raised under a tensor condition"),
    raises_on_every_path: (errors.RaiseError, BaseException, "raises an exception on every path"),
    power_with_modulus: (errors.StagedNumberError, type(None), "in pow() with a modulus"),
    number_for_other_code: (errors.UnconvertedCallError, type(None), "is given a number that is known only when"),
    number_for_json: (errors.UnconvertedCallError, type(None), "json.dumps(), which dy2st does not convert, is given"),
    number_for_a_c_function: (errors.UnconvertedCallError, type(None), "math.comb(), which dy2st does not convert"),
    number_for_islice: (errors.UnconvertedCallError, type(None), "itertools.islice(), which dy2st does not convert"),
    number_for_pickle: (errors.UnconvertedCallError, type(None), "pickle.dumps(), which dy2st does not convert"),
    numpy_through_its_protocol: (errors.NumpyError, type(None), "numpy.sin() is used on a data-dependent tensor"),
    condition_in_other_code: (errors.UnconvertedConditionError, RuntimeError, "next() needs the value of"),
    without_memory: (errors.RaisedError, RuntimeError, "Cannot access data pointer"),
    gradients_inside: (errors.NoGradientError, type(None), "whether there is a gradient, or None in its place"),
    wrapped_tensors: (errors.RaisedError, NotImplementedError, "torch.func or torch.vmap has wrapped"),
    sparse_constant: (errors.SparseTensorError, type(None), "a sparse tensor is given to add()"),
    returned_set: (errors.OutputError, RuntimeError, "returns a set"),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # by torch.func.jvp
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_foreign_exception(function):
    kind, cause, words = CASES[function]
    with pytest.raises(errors.Dy2stError) as caught:
        dy2st.export(function, (torch.ones(3),))
    error = caught.value
    assert type(error) is kind, error
    assert words in error.what
    assert error.hint
    assert error.location.filename == __file__
    assert error.location.text.rstrip().endswith("# here"), error
    assert error.location.column is not None
    assert isinstance(error.__cause__, cause)


class Counter:
    count = 0


def test_attribute_of_a_class_may_change():
    def model(x):
        if x.sum() > 0:
            Counter.count = Counter.count + 1
        return x * Counter.count

    program = dy2st.export(model, (torch.ones(3),)).module()
    assert program(torch.ones(3)).tolist() == [1, 1, 1]
    assert program(-torch.ones(3)).tolist() == [0, 0, 0]
    assert Counter.count == 0


@pytest.mark.parametrize(
    ("args", "shapes"),
    [
        ((torch.ones(3), torch.ones(3)), None),
        ((object(),), None),
        ((torch.ones(3),), {"y": {0: torch.export.Dim("n")}}),
        ((torch.ones(3),), 3),
    ],
)
def test_wrong_arguments_of_an_export(args, shapes):
    with pytest.raises(errors.UsageError, match=r"torch\.export does not take"):
        dy2st.export(torch.nn.Linear(3, 3), args, dynamic_shapes=shapes)


@pytest.mark.parametrize(
    ("args", "kwargs", "text", "hint"),
    [
        (3, None, "args is the int 3, and no tuple", "(x,)"),
        ([torch.ones(3)], None, "and no tuple", "(x,)"),
        ((torch.ones(3),), "model.onnx", "kwargs is the str 'model.onnx', and no dict", "dy2st.onnx.export"),
        ((torch.ones(3),), [1], "and no dict", '{"x": x}'),
    ],
)
def test_arguments_of_another_form(args, kwargs, text, hint):
    with pytest.raises(errors.UsageError) as caught:
        dy2st.export(torch.nn.Linear(3, 3), args, kwargs)
    assert text in str(caught.value)
    assert hint in caught.value.hint


def test_no_model():
    with pytest.raises(errors.UsageError, match="of type int is neither a module nor a function"):
        dy2st.export(3, (torch.ones(3),))


def test_function_without_source():
    namespace = {}
    exec("def helper(x):\n    return x if x.sum() > 0 else -x\n", namespace)

    def model(x):
        return namespace["helper"](x) + 1  # here

    with pytest.raises(errors.UnconvertedConditionError, match=r"helper\(\), whose source can't be found") as caught:
        dy2st.export(model, (torch.ones(3),))
    assert caught.value.location.text.endswith("# here")
    with pytest.raises(errors.UnconvertedConditionError, match=r"helper\(\), whose source can't be found"):
        dy2st.export(namespace["helper"], (torch.ones(3),))


# Where the recursion limit stops torch while it reads source lines, the file is left to the garbage collector.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io.FileIO:pytest.PytestUnraisableExceptionWarning")
def test_recursion_names_the_function_and_its_call():
    def halve(x):
        return halve(x / 2) if x.abs().sum() > 1 else x  # here

    with pytest.raises(errors.RecursionDepthError, match=r"halve\(\) calls itself") as caught:
        dy2st.export(halve, (torch.ones(3),))
    place = caught.value.location
    assert place.text[place.column : place.end_column] == "halve(x / 2)"


@pytest.mark.slow
def test_value_that_nests_ever_more_deeply():
    def model(x):
        nested = ()
        while x.sum() < 10:
            x = x + 1
            nested = (nested, x)  # here
        return x if not nested else nested[1]

    with pytest.raises(errors.UnsettledStateError):
        dy2st.export(model, (torch.ones(3),))
