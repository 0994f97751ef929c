"""The code of graph modules is generated where it is read, and is what torch would have generated at once."""

from __future__ import annotations

import copy
import inspect
import io

import pytest
import torch
from torch import Tensor, fx, nn

import dy2st
import dy2st.onnx
from dy2st.tracing import generated_code
from dy2st.tracing.generated_code import generated_on_demand

ONES = torch.ones(3)


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[fx.GraphModule]:
    """The modules whose code is generated, one by one."""
    found, generate = [], generated_code._generate

    def noting(module: fx.GraphModule) -> object:
        found.append(module)
        return generate(module)

    monkeypatch.setattr(generated_code, "_generate", noting)
    return found


def nested() -> fx.GraphModule:
    """``(x + 1) * y``, where the sum is a module of its own."""
    root, graph = nn.Module(), fx.Graph()
    root.add_module("inner", fx.symbolic_trace(lambda x: x + 1))
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output(graph.call_function(torch.mul, (graph.call_module("inner", (x,)), y)))
    return fx.GraphModule(root, graph)


def test_nothing_is_generated_before_it_is_read(generated: list[fx.GraphModule]) -> None:
    plain = nested().code
    with generated_on_demand():
        module = nested()
        for _ in range(3):
            module.recompile()
        assert not generated
        assert module.code == plain
        assert generated == [module]
    assert torch.equal(module(ONES, 3 * ONES), 6 * ONES)
    assert generated == [module, module.inner]


def test_the_signature_is_that_of_the_graph(generated: list[fx.GraphModule]) -> None:
    with generated_on_demand():
        module = nested()
        assert list(inspect.signature(module.forward).parameters) == ["x", "y"]
        assert list(inspect.signature(type(module).forward).parameters) == ["self", "x", "y"]
    assert generated == [module]


def test_a_graph_that_changes_is_generated_anew() -> None:
    with generated_on_demand():
        module = nested()
        assert torch.equal(module(ONES, 3 * ONES), 6 * ONES)
        (times,) = [node for node in module.graph.nodes if node.op == "call_function"]
        times.target = torch.sub
        module.recompile()
        assert torch.equal(module(ONES, 3 * ONES), -ONES)
        assert "torch.sub" in module.code
    times.target = torch.add
    assert torch.equal(module(ONES, 3 * ONES), -ONES), "torch's own: what changes later needs recompile()"
    module.recompile()
    assert torch.equal(module(ONES, 3 * ONES), 5 * ONES)


def test_torchs_own_way_is_back_after_the_last_of_several() -> None:
    own = fx.GraphModule.recompile
    first, second = generated_on_demand(), generated_on_demand()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert fx.GraphModule.recompile is not own
    second.__exit__(None, None, None)
    assert fx.GraphModule.recompile is own


def test_programs_and_their_copies_have_their_code() -> None:
    def model(x: Tensor) -> Tensor:
        while x.sum() < 20:
            x = x * 2 if x[0] > 2 else x + 1
        return x

    program = dy2st.export(model, (ONES,))
    stored = io.BytesIO()
    torch.export.save(program, stored)
    dy2st.onnx.export(program)
    copied = copy.deepcopy(program.graph_module)
    assert "while_loop" in program.graph_module.guarded_0.code
    assert copied.code == program.graph_module.code
    assert torch.equal(program.module()(ONES), model(ONES))
