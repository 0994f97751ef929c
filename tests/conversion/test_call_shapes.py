"""What is said of a call by its signature: ``dynamic_shapes`` in every form of ``torch.export.export``, and names."""

from __future__ import annotations

import pytest
import torch
from torch.export import AdditionalInputs, Dim, ShapesCollection

import dy2st
import dy2st.onnx
from dy2st.errors import Dy2stError, ExampleInputsError, UsageError

DEFAULT = torch.ones(2)


def model(x, others=None, scale=1.0, *, shift=None, given=DEFAULT):
    if x.sum() > 0:
        x = x * scale
    for other in others or ():
        x = x + other
    return x if shift is None else x + shift + given.sum()


def sizes(program):
    return [[str(size) for size in value.shape] for value in program.model.graph.inputs]


@pytest.mark.parametrize("size", [Dim("rows"), "rows"])
def test_a_collection_knows_the_users_own_tensors(size):
    x, other = torch.ones(3, 2), torch.ones(3, 2)
    shapes = ShapesCollection()
    shapes[x] = shapes[other] = {0: size}
    for inner in ([other], [other, torch.ones(2)]):
        program = dy2st.export(model, (x, inner), dynamic_shapes=shapes)
        rest = [torch.ones(5, 2), *inner[1:]]
        torch.testing.assert_close(program.module()(torch.ones(5, 2), rest), model(torch.ones(5, 2), rest))
    assert sizes(dy2st.onnx.export(model, (x, [other]), dynamic_shapes=shapes)) == [["rows", "2"]] * 2
    dy2st.onnx.export(model, (x, [other]), dynamic_shapes=shapes, verify=True)


def test_a_collection_of_other_tensors_is_refused():
    shapes, another = ShapesCollection(), torch.ones(3)
    shapes[another] = {0: "n"}
    for export in (dy2st.export, dy2st.onnx.export):
        with pytest.raises(UsageError, match="ShapesCollection does not fit the arguments"):
            export(model, (torch.ones(3),), dynamic_shapes=shapes)


def test_more_inputs_say_which_sizes_change():
    more = AdditionalInputs()
    more.add((torch.ones(5, 2), [torch.ones(5, 2)]))
    first, second = sizes(dy2st.onnx.export(model, (torch.ones(3, 2), [torch.ones(3, 2)]), dynamic_shapes=more))
    assert first == second
    assert not first[0].isdecimal()
    assert first[1] == "2"


ENTRIES = [{"scale": None}, {"others": None, "shift": None}, {"shift": {0: "n"}}, {"others": [{0: "n"}], "given": None}]


@pytest.mark.parametrize("more", ENTRIES)
def test_an_entry_for_what_a_call_leaves_out_says_nothing(more):
    shapes = {"x": {0: "n"}, **more}
    for export in (dy2st.export, dy2st.onnx.export):
        export(model, (torch.ones(3),), dynamic_shapes=shapes)
    assert sizes(dy2st.onnx.export(model, (torch.ones(3),), dynamic_shapes=shapes)) == [["n"]]
    assert dy2st.check(model, [(torch.ones(3),), (-torch.ones(4),)], dynamic_shapes=shapes).ok


@pytest.mark.parametrize("more", [{"given": {0: "n"}}, {"unknown": None}])
def test_a_default_that_has_sizes_and_an_unknown_name_are_refused(more):
    shapes = {"x": {0: "n"}, **more}
    with pytest.raises(Dy2stError):
        dy2st.export(model, (torch.ones(3),), dynamic_shapes=shapes)
    with pytest.raises(ExampleInputsError, match=r"dynamic_shapes is for x, .*; the arguments are x"):
        dy2st.check(model, [(torch.ones(3),)], dynamic_shapes=shapes)


@pytest.mark.parametrize("shapes", [{}, (), []])
def test_nothing_declared_is_no_dynamic_size(shapes):
    dy2st.export(model, (torch.ones(3),), dynamic_shapes=shapes)
    assert dy2st.check(model, [(torch.ones(3),), (-torch.ones(3),)], dynamic_shapes=shapes).ok


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"0": "n"}, "names dimension '0' of x, but the tensor has rank 1"),
        ({0: "n", 3: "m"}, "names dimension 3 of x, but the tensor has rank 1"),
        ("n", "dynamic_shapes of x is 'n', and x is a tensor of rank 1"),
        (3, "dynamic_shapes of x is the int 3, and x is a tensor"),
        (("n", None), "dynamic_shapes of x has 2 entries, but the tensor has rank 1"),
    ],
)
def test_what_does_not_fit_a_tensor(shape, message):
    with pytest.raises(ExampleInputsError, match=message.replace("(", r"\(")):
        dy2st.check(model, [(torch.ones(3),)], dynamic_shapes={"x": shape})


@pytest.mark.parametrize(
    ("args", "name"),
    [((torch.eye(3).to_sparse(),), "x"), ((torch.ones(3), [torch.ones(3), torch.eye(3).to_sparse()]), r"others\[1\]")],
)
def test_an_argument_that_no_program_takes_is_named_as_in_the_signature(args, name):
    with pytest.raises(Dy2stError, match=f"^D2S307: {name} is sparse"):
        dy2st.export(model, args)
