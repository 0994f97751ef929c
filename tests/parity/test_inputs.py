"""Forms of example inputs, their names, copies, and the dynamic dimensions read off them."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.export import Dim

import dy2st
from dy2st.errors import ExampleInputsError
from dy2st.parity.dynamic import best_example, inferred_dynamic_shapes
from dy2st.parity.inputs import InputSet, called_alike, describe, input_sets, named_leaves

x = torch.ones(2, 3)


def two(a, b=None, *rest, scale=1.0, **more):
    return a


def test_forms():
    listed = input_sets([(x,), [x, x], {"a": x}])
    assert [(each.name, len(each.args), list(each.kwargs)) for each in listed] == [
        ("0", 1, []),
        ("1", 2, []),
        ("2", 0, ["a"]),
    ]
    assert [each.name for each in input_sets({"short": (x,), "long": {"a": x}})] == ["short", "long"]
    assert len(input_sets((t,) for t in (x, x))) == 2


@pytest.mark.parametrize("wrong", [x, 3, None, [], {}, [x], [3], {"a": x}, [{1: x}], iter(())])
def test_wrong_forms(wrong):
    with pytest.raises(ExampleInputsError):
        input_sets(wrong)


def test_leaves_are_named_as_the_inputs_of_a_program():
    (given,) = input_sets([(x, {"k": (x, 5)}, x)])
    assert [name for name, _ in named_leaves(two, given)] == ["a", "b_k_0", "b_k_1", "rest_0"]
    assert describe(two, given) == "a: f32[2, 3], b_k_0: f32[2, 3], b_k_1: 5, rest_0: f32[2, 3]"
    (given,) = input_sets([{"a": x, "extra": x}])
    assert [name for name, _ in named_leaves(two, given)] == ["a", "extra"]
    program = dy2st.export(lambda a, **more: a + more["extra"], (x,), {"extra": x})
    assert list(program.graph_signature.user_inputs) == ["a", "extra"]


def test_copies_are_deep_and_keep_sharing():
    shared = torch.zeros(3)
    (given,) = input_sets([(shared, [shared], {"k": [1]})])
    copied = given.copied()
    copied.args[0].add_(1)
    copied.args[2]["k"].append(2)
    assert shared.sum() == 0
    assert given.args[2] == {"k": [1]}
    assert copied.args[1][0] is copied.args[0]


def test_dynamic_dimensions_are_those_that_differ():
    sets = input_sets([(torch.ones(2, 3), [torch.ones(4)], 5), (torch.ones(7, 3), [torch.ones(4)], 6)])
    assert inferred_dynamic_shapes(two, sets) == {"a": {0: Dim.DYNAMIC}, "b": [None], "rest": (Dim.DYNAMIC,)}
    assert inferred_dynamic_shapes(two, sets[:1]) is None


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((x,), (x, x), "other arguments"),
        ((x,), (x[0],), "of rank 2 in input 0, but torch.float32 of rank 1"),
        ((x,), (x.long(),), "torch.int64"),
        ((x, 0.5), (x, 0.6), "Python float that differs"),
        ((x, "mean"), (x, "sum"), "Python str that differs"),
        ((x, True), (x, False), "Python bool that differs"),
        ((x, None), (x, x), "None in input 0"),
    ],
)
def test_sets_that_can_not_share_a_program(first, second, words):
    with pytest.raises(ExampleInputsError, match=words):
        inferred_dynamic_shapes(two, input_sets([first, second]))


def test_the_example_has_no_small_sizes_if_it_can():
    sets = input_sets([(torch.ones(1, 3),), (torch.ones(0, 3),), (torch.ones(5, 3),)])
    assert best_example(sets).name == "2"


def test_sets_of_one_program_may_be_called_in_other_forms():
    def model(x, y=2, *, z):
        return x * y + z

    first = InputSet("0", (1,), {"y": 2, "z": 3})
    assert called_alike(model, [first, InputSet("1", (), {"z": 6, "y": 5, "x": 4})])[1] == InputSet(
        "1", (4,), {"y": 5, "z": 6}
    )
    assert called_alike(model, [first, InputSet("1", (4, 5), {"z": 6})])[1] == InputSet("1", (4,), {"y": 5, "z": 6})
    other = InputSet("1", (4,), {"z": 6})
    assert called_alike(model, [first, other]) == [first, other]
    assert called_alike(lambda *args, **kwargs: 0, [first, other]) == [first, other]
    x = torch.ones(3)
    assert dy2st.check(lambda x, y: x - y, [(x, x * 2), {"y": x, "x": x}, (x,) * 2]).ok


def by_name(x, a, *, b):
    return x - a * b if x.sum() > 0 else a


def by_any_name(x, **others):
    return x - others["a"] * others["b"] if x.sum() > 0 else others["a"]


@pytest.mark.parametrize("model", [by_name, by_any_name])
@pytest.mark.parametrize("order", list(itertools.permutations("xab")))
def test_arguments_by_name_may_come_in_any_order(model, order):
    x = torch.arange(1.0, 4.0)
    values = {"x": x * 2, "a": x * 3, "b": x * 5}
    sets = [{name: values[name] for name in order}, {name: -values[name] for name in reversed(order)}]
    assert dy2st.check(model, sets).ok


def test_arguments_by_any_name_beside_state():
    class Summed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x, **others):
            self.total += x.sum()
            return x + others["a"] * self.total if self.total > 0 else x - others["others"]

    x = torch.ones(3)
    calls = [{"x": x, "a": x * 2, "others": x * 3}, {"x": -torch.ones(5), "others": torch.ones(5), "a": torch.ones(5)}]
    assert dy2st.check(Summed(), calls).ok
