"""Every sample becomes an ONNX file that computes what its model does, with the control flow of its source."""

from __future__ import annotations

import copy
import importlib.util
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st.onnx
from dy2st.onnx.passes.node_constructs import LOOP_OR_NONE, RERUN, UNUSUAL
from dy2st.onnx.runtime.stepping import metadata

if TYPE_CHECKING:
    from types import ModuleType

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.py"))


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda path: path.stem)
def sample(request: pytest.FixtureRequest) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sample_{request.param.stem}", request.param)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def exported(sample: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("onnx") / "model.onnx"
    dy2st.onnx.export(sample.model, sequences(sample)[0][0], file, dynamic_shapes=sample.dynamic_shapes)
    return file


def sequences(sample: ModuleType) -> list[list[tuple[Tensor, ...]]]:
    """The calls that follow each other; most samples have no state, and each set is a call of its own."""
    return [each if isinstance(each, list) else [each] for each in sample.example_inputs()]


def eager(model: nn.Module, args: tuple[Tensor, ...]) -> list[Tensor]:
    with torch.no_grad():
        outputs = model(*[arg.clone() for arg in args])
    return [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(outputs)]


def control_flow(file: Path) -> dict[str, int]:
    """The number of control-flow nodes in a file, at any depth; a Scan counts as a Loop."""
    model = onnx.load(file)
    found: Counter[str] = Counter()

    def count(nodes: list[onnx.NodeProto]) -> None:
        for node in nodes:
            # A loop that runs once more where there was NaN is one loop.
            if metadata(node, RERUN):
                continue
            # A branch around a loop, for no rows or beside an operator, is part of the loop.
            around = metadata(node, LOOP_OR_NONE) or any(each.g.name == UNUSUAL for each in node.attribute)
            if node.domain in {"", "ai.onnx"} and not around:
                found[{"Scan": "Loop"}.get(node.op_type, node.op_type)] += 1
            for attribute in node.attribute:
                for graph in [attribute.g, *attribute.graphs]:
                    count(graph.node)

    count(model.graph.node)
    for function in model.functions:
        count(function.node)
    return {kind: found[kind] for kind in ("If", "Loop")}


def test_there_are_samples() -> None:
    assert len(SAMPLES) >= 10


def test_runs_eagerly(sample: ModuleType) -> None:
    for calls in sequences(sample):
        model = copy.deepcopy(sample.model)
        for args in calls:
            assert eager(model, args)


def test_first_input_has_ordinary_sizes(sample: ModuleType) -> None:
    args = sequences(sample)[0][0]
    for arg, dims in zip(args, sample.dynamic_shapes, strict=True):
        assert all(arg.shape[dim] > 1 for dim in dims or {})


def test_onnxruntime_equals_eager(sample: ModuleType, exported: Path) -> None:
    runner = dy2st.onnx.Runner(exported)
    for calls in sequences(sample):
        runner.reset()
        model = copy.deepcopy(sample.model)
        for args in calls:
            got = runner(*[arg.numpy() for arg in args])
            want = eager(model, args)
            assert len(got) == len(want)
            for left, right in zip(got, want, strict=True):
                # A Python float may come out as float32 or float64, so numbers are compared by value.
                torch.testing.assert_close(
                    torch.as_tensor(left), right, rtol=1e-4, atol=1e-5, equal_nan=True, check_dtype=right.dim() > 0
                )


def test_control_flow_is_that_of_the_source(sample: ModuleType, exported: Path) -> None:
    assert control_flow(exported) == sample.control_flow
