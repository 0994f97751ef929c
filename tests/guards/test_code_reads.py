"""What code can read: names of globals with what is asked of them, names of attributes, and what is left out."""

# ruff: noqa: PLW0108, C417 - lambdas are the functions under test, and look things up in each call

from __future__ import annotations

import pytest
import torch

import dy2st
from dy2st.guards.code_reads import code_reads

NUMBER = 3
THING: list[int] = []


def of(function):
    return code_reads(function.__code__)


def test_globals_and_chains():
    def model(x):
        return torch.nn.functional.relu(x) * NUMBER + len(THING)

    reads = of(model)
    assert set(reads.globals) == {"torch", "NUMBER", "len", "THING"}
    assert reads.globals["torch"] == {("nn", "functional", "relu")}
    assert reads.globals["NUMBER"] == {()}
    assert reads.attributes >= {"nn", "functional", "relu"}
    assert not reads.computed


def test_functions_inside():
    def model(x):
        def inner(y):
            return y * NUMBER

        return [inner(each.sum()) for each in x] + list(map(lambda v: v.mean(), x))

    reads = of(model)
    assert {"NUMBER", "map", "list"} <= set(reads.globals)
    assert {"sum", "mean"} <= reads.attributes


@pytest.mark.parametrize(
    ("function", "computed"),
    [
        (lambda thing: getattr(thing, "weight"), False),  # noqa: B009
        (lambda thing: getattr(thing.part, "weight", None), False),
        (lambda thing: hasattr(thing, "weight"), False),
        (lambda thing, name: getattr(thing, name), True),
        (lambda thing: getattr(thing, "we" + str(NUMBER)), True),
        (lambda thing: [getattr(thing, name) for name in ("weight", "bias")], True),
        (lambda thing: vars(thing), True),
        (lambda thing: thing.__dict__, True),
    ],
)
def test_names_that_are_computed(function, computed):
    reads = of(function)
    assert reads.computed is computed
    if not computed:
        assert "weight" in reads.attributes


def test_what_is_read_once_is_left_out():
    def model(x):
        return x * dy2st.constant(NUMBER + THING.count(1)) * x.shape[0]

    reads = of(model)
    assert "NUMBER" not in reads.globals
    assert "THING" not in reads.globals
    assert "count" not in reads.attributes
    assert "shape" in reads.attributes


def test_names_that_no_source_has_are_left_out():
    code = compile("x = 1", "somewhere.py", "exec").replace(co_names=("@name", "x"))
    assert "@name" not in code_reads(code).globals


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda: globals()["NUMBER"], {"globals", "NUMBER"}),
        (lambda: (globals()["NUMBER"], globals()["THING"]), {"globals", "NUMBER", "THING"}),
        (lambda name: globals()[name], None),
        (lambda: globals().get("NUMBER"), None),
        (lambda: eval("NUMBER"), None),
        (lambda thing: thing.__globals__, None),
    ],
)
def test_globals_that_are_asked_for_by_texts(function, names):
    reads = of(function)
    assert reads.any_global is (names is None)
    if names is not None:
        assert set(reads.globals) == names


def test_imports_inside_of_functions():
    def model():
        import os.path
        from importlib import import_module

        return os.path, import_module("json.decoder")

    given = {(0, "os.path", None), (0, "importlib", ("import_module",)), (0, "json.decoder", None)}
    assert given <= of(model).imports
