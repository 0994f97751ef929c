"""``dy2st.onnx.export`` with every parameter of ``torch.onnx.export``."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import OptionWarning, ParityError, SaveError, SpecializedError, UsageError


class Gate(nn.Module):
    """A parameter and a buffer, each used in both arms; equal weights, and a transposed one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.first, self.second = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        if x.sum() > 0:
            z = self.linear(x) * self.first + self.shift
        else:
            z = (x @ self.linear.weight) * self.second - self.shift
        return z if y is None else z + y


def gate() -> Gate:
    torch.manual_seed(0)
    return Gate().eval()


X, Y = torch.ones(2, 4), torch.full((2, 4), -3.0)


def names(program: torch.onnx.ONNXProgram) -> tuple[list[str | None], list[str | None]]:
    graph = program.model.graph
    return [value.name for value in graph.inputs], [value.name for value in graph.outputs]


def shapes(program: torch.onnx.ONNXProgram) -> list[list[str]]:
    return [[str(size) for size in value.shape or ()] for value in program.model.graph.inputs]


def run(program: torch.onnx.ONNXProgram, **feed: Any) -> Any:
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    return session.run(None, {name: np.asarray(value) for name, value in feed.items()})[0]


def test_it_has_every_parameter_of_torch() -> None:
    ours, theirs = inspect.signature(dy2st.onnx.export), inspect.signature(torch.onnx.export)
    assert list(theirs.parameters)[:3] == list(ours.parameters)[:3]
    assert {n: p.kind for n, p in ours.parameters.items() if n in theirs.parameters} == {
        name: each.kind for name, each in theirs.parameters.items()
    }
    differ = {n for n, p in theirs.parameters.items() if p.default != ours.parameters[n].default}
    assert not differ


@pytest.mark.parametrize("args", [X, (X,), [X], (X, {}), (), (X, {"y": Y}), (X, Y)])
def test_the_forms_of_arguments(args: Any) -> None:
    kwargs = {"x": X} if args == () else None
    program = dy2st.onnx.export(gate(), args, kwargs=kwargs)
    assert names(program)[0] == (
        ["x", "y"] if len(args) == 2 and args[1] != {} and not torch.is_tensor(args) else ["x"]
    )


def test_a_dict_that_is_no_keywords_is_an_argument() -> None:
    def total(x: Tensor, parts: dict[str, Tensor]) -> Tensor:
        return x + parts["a"] if x.sum() > 0 else x

    assert names(dy2st.onnx.export(total, (X, {"a": Y})))[0] == ["x", "parts_a"]
    assert names(dy2st.onnx.export(total, (X, {"a": Y}, {})))[0] == ["x", "parts_a"]


def test_arguments_of_another_form_are_refused() -> None:
    for args in (3, "x", {"x": X}):
        with pytest.raises(UsageError, match="no tuple of arguments"):
            dy2st.onnx.export(gate(), args)


def test_dynamic_axes_are_by_the_names_of_inputs() -> None:
    program = dy2st.onnx.export(
        gate(),
        (X, Y),
        input_names=["left", "right"],
        output_names=["out"],
        dynamic_axes={"left": {0: "batch size"}, "right": {-2: "batch size"}, "out": [0]},
    )
    assert names(program) == (["left", "right"], ["out"])
    assert shapes(program) == [["batch_size", "4"]] * 2
    for rows in (0, 1, 5):
        x = torch.randn(rows, 4)
        np.testing.assert_allclose(run(program, left=x, right=x), gate()(x, x).detach(), rtol=1e-5)


def test_dynamic_axes_of_nested_arguments_and_of_one_tensor_twice() -> None:
    def total(x: Tensor, parts: list[Tensor], *more: Tensor) -> Tensor:
        y = parts[0] + parts[1]
        return x.sum() + y.sum() + more[0].sum() if x.sum() > 0 else y.sum()

    program = dy2st.onnx.export(
        total,
        (X, [X, X], X),
        input_names=["a", "b", "c", "d"],
        dynamic_axes={"a": [0, 1], "b": {1: "n"}, "c": {1: "n"}, "d": None},
    )
    axes = [["a_dynamic_axes_1", "a_dynamic_axes_2"], ["2", "n"], ["2", "n"], ["2", "4"]]
    assert shapes(program) == axes


def test_names_of_inputs_go_by_the_order_in_which_keywords_are_given() -> None:
    def either(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return (y * 2, z) if x.sum() > 0 else (y, z)

    kwargs = {"z": torch.ones(3, 4), "y": torch.ones(5, 6)}
    program = dy2st.onnx.export(either, (X,), kwargs=kwargs, input_names=["a", "b", "c"], dynamic_axes={"b": {0: "n"}})
    assert names(program)[0] == ["a", "b", "c"]
    assert shapes(program) == [["2", "4"], ["n", "4"], ["5", "6"]]
    program = dy2st.onnx.export(either, (X,), kwargs=kwargs, dynamic_axes={"y": {0: "n"}, "z": {1: "m"}})
    assert dict(zip(names(program)[0], shapes(program), strict=True)) == {
        "x": ["2", "4"],
        "z": ["3", "m"],
        "y": ["n", "6"],
    }


def test_numbers_that_are_inputs_have_names_too() -> None:
    def scaled(parts: dict[str, Tensor], k: int, x: Tensor) -> Tensor:
        return parts["b"] * k if x.sum() > 0 else parts["b"]

    args = ({"b": X, "a": Y}, 3, torch.ones(5))
    for inputs_as, named in (({}, ["p", "q", "r"]), ({"k": "tensor"}, ["p", "q", "k", "r"])):
        program = dy2st.onnx.export(
            scaled, args, input_names=named, dynamic_axes={"q": {0: "n"}, "r": {0: "m"}}, inputs_as=inputs_as
        )
        assert names(program)[0] == named
        sizes = dict(zip(named, shapes(program), strict=True))
        assert [sizes["p"], sizes["q"], sizes["r"]] == [["2", "4"], ["n", "4"], ["m"]]
    with pytest.raises(UsageError, match="dimension 0 of 'k', which has none"):
        dy2st.onnx.export(scaled, args, input_names=named, dynamic_axes={"k": [0]}, inputs_as={"k": "tensor"})


def test_dynamic_axes_of_what_no_parameter_is_called() -> None:
    def either(x: Tensor, **others: Tensor) -> Tensor:
        return others["y"] if x.sum() > 0 else others["z"]

    axes = {"x": {0: "n"}, "y": {0: "m"}}
    program = dy2st.onnx.export(either, (X,), kwargs={"z": Y, "y": Y}, dynamic_axes=axes)
    assert dict(zip(names(program)[0], shapes(program), strict=True)) == {
        "x": ["n", "4"],
        "z": [str(size) for size in Y.shape],
        "y": ["m", "4"],
    }


def test_axes_that_have_to_be_equal_are_named_alike() -> None:
    with pytest.raises(SpecializedError, match=r"x.shape\[0\] == y.shape\[0\]"):
        dy2st.onnx.export(gate(), (X, Y), dynamic_axes={"x": [0], "y": [0]})


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"z": [0]}, "'z', which is no input and no output"),
        ({"x": 0}, "has the int 0 for 'x'"),
        ({"x": {2: "n"}}, "names dimension 2 of 'x', which has 2"),
        ({"x": {"0": "n"}}, "has '0': 'n' for 'x'"),
        ({"x": {0: 3}}, "has 0: 3 for 'x'"),
    ],
)
def test_dynamic_axes_that_name_nothing_are_refused(axes: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dy2st.onnx.export(gate(), (X,), dynamic_axes=axes)


def test_dynamic_shapes_go_before_dynamic_axes() -> None:
    program = dy2st.onnx.export(gate(), (X,), dynamic_axes={"x": [1]}, dynamic_shapes={"x": {0: "rows"}})
    assert shapes(program) == [["rows", "4"]]


def test_artifacts_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = tmp_path / "made" / "here", tmp_path / "gate.onnx"
    dy2st.onnx.export(
        gate(),
        X,
        file,
        verbose=True,
        report=True,
        verify=True,
        profile=True,
        dump_exported_program=True,
        artifacts_dir=folder,
    )
    report, profile = next(folder.glob("*_success.md")), next(folder.glob("*_profile.txt"))
    assert len(list(folder.iterdir())) == 3
    assert "equal to eager on the one input" in report.read_text("utf-8")
    assert "cumulative" in profile.read_text("utf-8")
    program = torch.export.load(next(folder.glob("*.pt2")))
    torch.testing.assert_close(program.module()(Y), gate()(Y))
    lines = capsys.readouterr().out.splitlines()
    passes = [line for line in lines if " nodes to " in line]
    assert passes
    assert [line.partition(" is ")[0] for line in lines if line not in passes] == [
        "[dy2st] capturing",
        "[dy2st] writing ONNX",
        "[dy2st] the profile",
        "[dy2st] the program",
        "[dy2st] checking",
        "[dy2st] the report",
        f"[dy2st] wrote {file}",
    ]


def test_nothing_is_printed_or_left_without_being_asked(tmp_path: Path, capfd: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    dy2st.onnx.export(gate(), X, verify=True)
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_refusal_has_a_report_too(tmp_path: Path) -> None:
    with pytest.raises(SpecializedError):
        dy2st.onnx.export(gate(), (X, Y), dynamic_axes={"x": [0], "y": [0]}, report=True, artifacts_dir=tmp_path)
    assert "D2S303" in next(tmp_path.glob("*_failure.md")).read_text("utf-8")


def test_verify_finds_a_difference_before_the_file_is_written(tmp_path: Path) -> None:
    from onnxscript import opset20

    def wrong(x: Any, y: Any, alpha: float = 1.0) -> Any:
        return opset20.Sub(x, y)

    def model(x: Tensor) -> Tensor:
        return x + x if x.sum() > 0 else x

    options = {"custom_translation_table": {torch.ops.aten.add.Tensor: wrong}, "verify": True}
    with pytest.raises(ParityError, match="eager has 2"):
        dy2st.onnx.export(model, X, tmp_path / "wrong.onnx", report=True, artifacts_dir=tmp_path, **options)
    assert [each.suffix for each in tmp_path.iterdir()] == [".md"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("dynamo", False),
        ("fallback", True),
        ("export_modules_as_functions", True),
        ("export_modules_as_functions", {nn.Linear}),
        ("operator_export_type", torch.onnx.OperatorExportTypes.ONNX_ATEN),
        ("training", torch.onnx.TrainingMode.TRAINING),
        ("f", 3),
        ("opset_version", 17),
    ],
)
def test_what_can_not_be_honoured_is_one_line(option: str, value: Any) -> None:
    with pytest.raises(dy2st.errors.Dy2stError) as info:
        dy2st.onnx.export(gate(), X, **{option: value})
    assert info.value.hint
    assert "\n" not in info.value.what


@pytest.mark.parametrize("option", ["do_constant_folding", "autograd_inlining"])
def test_what_changes_no_value_is_a_warning(option: str) -> None:
    with pytest.warns(OptionWarning, match=f"{option}=False has no effect") as found:
        dy2st.onnx.export(gate(), X, **{option: False})
    assert found[0].filename == __file__


def test_the_mode_is_the_models() -> None:
    for mode in (torch.onnx.TrainingMode.EVAL, torch.onnx.TrainingMode.PRESERVE):
        dy2st.onnx.export(gate(), X, training=mode)
    dy2st.onnx.export(gate().train(), X, training=torch.onnx.TrainingMode.TRAINING)


def test_into_memory() -> None:
    buffer = io.BytesIO()
    dy2st.onnx.export(gate(), X, buffer)
    onnx.checker.check_model(onnx.load_from_string(buffer.getvalue()), full_check=True)


def test_weights_that_are_inputs_take_effect_everywhere(tmp_path: Path) -> None:
    file, model = tmp_path / "gate.onnx", gate()
    dy2st.onnx.export(model, X, file, keep_initializers_as_inputs=True, verify=True, input_names=["a"])
    onnx.checker.check_model(str(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options)
    weights = {name: torch.randn_like(value) for name, value in model.state_dict().items()}
    assert [each.name for each in session.get_inputs()] == ["a"]
    assert {each.name for each in session.get_overridable_initializers()} == set(weights)
    for x in (X, Y):
        np.testing.assert_allclose(session.run(None, {"a": x.numpy()})[0], model(x).detach(), rtol=1e-5)
    feed = {name: value.numpy() for name, value in weights.items()}
    model.load_state_dict(weights)
    for x in (X, Y):
        np.testing.assert_allclose(session.run(None, {"a": x.numpy(), **feed})[0], model(x).detach(), rtol=1e-5)
    # one of two that were equal
    changed = {"second": np.full(4, 7, np.float32)}
    model.second.data.fill_(7.0)
    np.testing.assert_allclose(session.run(None, {"a": Y.numpy(), **feed, **changed})[0], model(Y).detach(), rtol=1e-5)


def test_a_file_without_weights(tmp_path: Path) -> None:
    file, model = tmp_path / "gate.onnx", gate()
    dy2st.onnx.export(model, X, file, export_params=False, verify=True)
    onnx.checker.check_model(str(file), full_check=True)
    session = onnxruntime.InferenceSession(str(file))
    feed = {name: value.numpy() for name, value in model.state_dict().items()}
    assert {each.name for each in session.get_inputs()} == {"x", *feed}
    for x in (X, Y):
        np.testing.assert_allclose(session.run(None, {"x": x.numpy(), **feed})[0], model(x).detach(), rtol=1e-5)


class Counting(nn.Module):
    """A weight, and a buffer that is state."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.count = self.count + 1
        return x * self.scale + self.count


def test_weights_that_are_inputs_beside_state(tmp_path: Path) -> None:
    file = tmp_path / "counting.onnx"
    program = dy2st.onnx.export(Counting(), X, file, keep_initializers_as_inputs=True, verify=True)
    assert names(program) == (["x", "scale", "count"], ["add", "count_next"])
    runner, model = dy2st.onnx.Runner(file), Counting()
    for x in (X, Y, X):
        np.testing.assert_allclose(runner(x.numpy())[0], model(x).detach())


def test_a_program_in_the_models_place() -> None:
    program = dy2st.export(gate(), (X,), dynamic_shapes={"x": {0: "rows"}})
    made = dy2st.onnx.export(program, verify=True)
    np.testing.assert_allclose(run(made, x=Y), gate()(Y).detach(), rtol=1e-5)
    with pytest.raises(UsageError, match="the sizes of a program"):
        dy2st.onnx.export(program, (X,), dynamic_axes={"x": [0]})


def test_an_exportable_module_has_its_own_example() -> None:
    class Absolute(torch.onnx.ExportableModule):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

        def example_arguments(self) -> Any:
            return (X,), None

        def input_names(self) -> Any:
            return ("given",)

        def output_names(self) -> Any:
            return ("found",)

        def dynamic_shapes(self) -> Any:
            return ({0: "rows"},)

    program = dy2st.onnx.export(Absolute(), verify=True)
    assert (names(program), shapes(program)) == ((["given"], ["found"]), [["rows", "4"]])
    assert names(dy2st.onnx.export(Absolute(), (Y,)))[0] == ["x"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_torchscript_is_refused_with_what_to_give_in_its_place() -> None:
    def double(x: Tensor) -> Tensor:
        return x * 2

    for made in (torch.jit.trace(gate(), (X,), check_trace=False), torch.jit.trace(double, (X,))):
        with pytest.raises(dy2st.errors.NoSourceError, match=r"was made by torch\.jit") as info:
            dy2st.onnx.export(made, X)
        assert info.value.hint


def test_the_version_of_a_domain_of_ones_own() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.onnx.ops.symbolic("shop::Half", (x,), {}, dtype=x.dtype, shape=x.shape)
        return y if x.sum() > 0 else x

    program = dy2st.onnx.export(model, X, custom_opsets={"shop": 3})
    assert program.model.opset_imports["shop"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset_version": "18"}, "opset_version is the str '18'"),
        ({"opset_version": True}, "opset_version is the bool True"),
        ({"input_names": ["x", "x"]}, "input_names has 'x' twice"),
        ({"output_names": ["y", "y"]}, "output_names has 'y' twice"),
        ({"output_names": [1]}, "output_names is a list, and no list of texts"),
        ({"input_names": {"x"}}, "input_names is a set, and no list of texts"),
        ({"dynamic_axes": "x"}, "dynamic_axes is the str 'x', and no dict"),
        ({"kwargs": [1]}, "kwargs is a list, and no dict"),
        ({"custom_translation_table": 3}, "custom_translation_table is the int 3, and no dict"),
        ({"custom_opsets": ["mine"]}, "custom_opsets is a list, and no dict"),
    ],
)
def test_options_of_another_form_are_one_line(options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dy2st.onnx.export(gate(), (X,), **options)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match=r"is a folder\n  instead: .*model\.onnx"):
        dy2st.onnx.export(gate(), (X,), tmp_path)
    assert not list(tmp_path.iterdir())
