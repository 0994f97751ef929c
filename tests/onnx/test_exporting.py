"""What the written file is like: names, sizes, weights, lines."""

# ruff: noqa: SIM108 - the model is written as users write it
from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import dy2st
from dy2st.errors import OnnxError, SaveError, UntranslatedError
from dy2st.onnx.passes.source_lines import STACK, frames


class Gate(nn.Module):
    """Both arms and the loop use the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, *, scale: Tensor) -> dict[str, Any]:
        """Names, keyword inputs, a dict output."""
        if x.sum() > 0:
            y = self.linear(x) * scale
        else:
            y = self.linear(-x)
        steps = 0
        while y.abs().sum() > 1:
            y = self.linear(y) * 0.1
            steps += 1
        return {"y": y, "steps": steps, "constant": 3}


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, subgraphs included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes(attribute.g)


@pytest.fixture(scope="module", params=[18, 20, 23])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Gate, Path]:
    """A model and its file, for several opsets."""
    torch.manual_seed(0)
    model = Gate().eval()
    file = tmp_path_factory.mktemp("gate") / "gate.onnx"
    dy2st.onnx.export(
        model,
        (torch.randn(3, 8),),
        file,
        kwargs={"scale": torch.tensor(2.0)},
        dynamic_shapes={"x": {0: Dim("batch")}, "scale": None},
        opset_version=request.param,
    )
    onnx.checker.check_model(str(file), full_check=True)
    return model, file


def test_names_and_dimensions_are_the_users(exported: tuple[Gate, Path]) -> None:
    graph = onnx.load(exported[1]).graph
    assert [i.name for i in graph.input] == ["x", "scale"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_it_computes_what_eager_computes(exported: tuple[Gate, Path]) -> None:
    model, file = exported
    session = onnxruntime.InferenceSession(str(file))
    for batch, sign in ((3, 1.0), (1, -1.0), (5, 30.0), (0, 1.0)):
        x = sign * torch.ones(batch, 8)
        want = model(x, scale=torch.tensor(2.0))
        y, steps, constant = session.run(None, {"x": x.numpy(), "scale": torch.tensor(2.0).numpy()})
        torch.testing.assert_close(torch.as_tensor(y), want["y"])
        assert (steps, constant) == (want["steps"], 3)


def test_weights_are_shared_by_arms_and_loops(exported: tuple[Gate, Path]) -> None:
    model = onnx.load(exported[1])
    large = [i.name for i in model.graph.initializer if len(i.dims) == 2]
    inner = [
        a.g.initializer
        for n in nodes(model.graph)
        for a in n.attribute
        if a.type == onnx.AttributeProto.GRAPH and any(len(i.dims) == 2 for i in a.g.initializer)
    ]
    assert len(large) == 1
    assert not inner


def test_nodes_know_the_users_line(exported: tuple[Gate, Path]) -> None:
    source, first = inspect.getsourcelines(Gate.forward)
    line = first + next(i for i, text in enumerate(source) if "while" in text)
    (loop,) = [n for n in nodes(onnx.load(exported[1]).graph) if n.op_type == "Loop"]
    traces = [p.value for p in loop.metadata_props if p.key.endswith("stack_trace")]
    assert traces
    assert f'{Path(__file__).name}", line {line}' in traces[0]


MODULE = """
import torch

def scaled(x):
    if x.sum() > 0:
        x = x * 2
    while x.sum() > 9:
        x = x / 2
    return x
"""


def test_a_file_is_the_same_wherever_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in ("here", "there"):
        folder = tmp_path / name / "project"
        (folder / "src").mkdir(parents=True)
        (folder / "src" / "net.py").write_text(MODULE)
        monkeypatch.chdir(folder)
        spec = importlib.util.spec_from_file_location("net", folder / "src" / "net.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        dy2st.onnx.export(module.scaled, (torch.ones(3),), folder / "net.onnx")
        made.append((folder / "net.onnx").read_bytes())
    assert made[0] == made[1]
    assert str(tmp_path).encode() not in made[0]
    traces = [p.value for n in nodes(onnx.load_from_string(made[0]).graph) for p in n.metadata_props if p.key == STACK]
    found = [frames(trace)[-1] for trace in traces]
    assert {line for _, line in found} >= {5, 6, 7, 8}
    # A path that a process has written leads it back to the file.
    assert {file for file, _ in found} == {str(tmp_path / "there" / "project" / "src" / "net.py")}


def test_an_opset_that_is_not_supported_is_refused() -> None:
    for opset in (17, 99):
        with pytest.raises(OnnxError, match=f"opset {opset}"):
            dy2st.onnx.export(Gate(), (torch.randn(3, 8),), kwargs={"scale": torch.ones(())}, opset_version=opset)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="missing"):
        dy2st.onnx.export(
            Gate(), (torch.randn(3, 8),), tmp_path / "missing" / "a.onnx", kwargs={"scale": torch.ones(())}
        )
    assert not list(tmp_path.iterdir())


def test_reductions_of_nothing(tmp_path: Path) -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        return (x > 1).any(), (x > 1).all(0), x.mean(), x.mean(0, keepdim=True), x.to(torch.int64).any(1), x.mean(-1)

    dims = {0: Dim("n"), 1: Dim("m")}
    dy2st.onnx.export(model, (torch.randn(3, 2),), tmp_path / "nothing.onnx", dynamic_shapes=(dims,))
    session = onnxruntime.InferenceSession(str(tmp_path / "nothing.onnx"))
    for shape in ((3, 2), (0, 2), (2, 0), (0, 0), (1, 1)):
        x = torch.randn(shape)
        got = session.run(None, {"x": x.numpy()})
        for want, output in zip(model(x), got, strict=True):
            torch.testing.assert_close(torch.as_tensor(output), want, equal_nan=True)


def test_one_program_is_written_twice() -> None:
    def model(x: Tensor) -> Tensor:
        while x.sum() < 9:
            x = torch.cat([x, x])
        return x

    program = dy2st.export(model, (torch.ones(2),), dynamic_shapes=({0: Dim.DYNAMIC},))
    first, second = dy2st.onnx.export(program), dy2st.onnx.export(program)
    kinds = [[node.op_type for node in made.model_proto.graph.node] for made in (first, second)]
    assert kinds[0] == kinds[1]


def test_an_operator_without_a_translation_is_named_at_its_line_in_an_arm() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = torch.special.zeta(x + 2, x)
        return x

    with pytest.raises(UntranslatedError) as caught:
        dy2st.onnx.export(model, (torch.rand(3),))
    assert caught.value.location is not None
    assert "torch.special.zeta" in (caught.value.location.text or "")
