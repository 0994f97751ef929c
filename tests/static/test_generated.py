"""The Python that a program is run as computes what the graph computes, and nobody sees what it does not copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional
from torch.utils import _pytree as pytree

import dy2st
from dy2st.capture.program import NUMBERS, capture_program
from dy2st.static.bindings import binding, called, unread_defaults
from dy2st.static.clones import Clones
from dy2st.static.generated import generated
from tests.benchmarks.static import load

FOLDER = Path(__file__).resolve().parents[2] / "samples"
# A function that counts calls in a Python int is none that a program could stand for.
SAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "streaming_vad")
LARGE = {"adaptive_computation", "early_exit", "kv_cache_generation"}


def text_of(function: Any, *args: Any) -> str:
    program = capture_program(function, args)
    numbers = [kind is not None for kind in program.graph_module.meta[NUMBERS]]
    return generated(program.graph_module, numbers).source


def test_branches_and_loops_are_pythons():
    def model(x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while x.abs().sum() > 1:
            x = x / 2
            steps += 1
        if x.sum() > 0:
            x = -x
        return x, steps

    text = text_of(model, torch.ones(2))
    assert "while going_" in text
    assert "if gt" in text
    assert "clone" not in text.replace("clone_", "", 0).partition("return")[0]
    assert "+ 1)" in text, "the counter is a number of Python's"


def test_flags_are_numbers_of_python():
    def model(x: Tensor) -> Tensor:
        for _ in range(10):
            x = x * 0.5
            if x.sum() < 1:
                break
        return x

    text = text_of(model, torch.ones(3))
    assert "logical_not" not in text or "(not " in text
    assert "tensor" not in text.replace("program", "")


def test_a_flag_beside_an_input_stays_a_tensor():
    def model(x: Tensor, flag: Tensor) -> Tensor:
        k = 0
        while x.sum() < 10 and (k > 1) & flag:
            x = x + 1
            k += 1
        return x * 2 if torch.logical_and(torch.tensor(k) != 0, flag) else x

    static = dy2st.to_static(model)
    for flag in (torch.tensor(True), torch.tensor(False)):
        assert torch.equal(static(torch.ones(2), flag), model(torch.ones(2), flag))


def test_results_are_memory_of_their_own():
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = x.clone()
        w = y if y.sum() > 0 else y * 2
        return z, w.clone(), torch.zeros(2)

    static = dy2st.to_static(model)
    x, y = torch.ones(2), torch.ones(2)
    for _ in range(2):
        results = static(x, y)
        for each in results:
            each.fill_(7)
        assert torch.equal(x, torch.ones(2))
        assert torch.equal(y, torch.ones(2))
        assert torch.equal(static(x, y)[2], torch.zeros(2))


def test_writes_in_place_are_kept_apart():
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.clone()
        z = y.clone()
        if x.sum() > 0:
            y += 1
        z[0] = 5
        return y, z

    static = dy2st.to_static(model)
    for x in (torch.ones(3), -torch.ones(3)):
        before = x.clone()
        for actual, expected in zip(static(x), model(x), strict=True):
            assert torch.equal(actual, expected)
        assert torch.equal(x, before)


@pytest.mark.parametrize("function", [torch.relu, torch.exp, torch.sqrt, torch.tanh, torch.softmax, torch.add])
def test_a_copy_that_is_written_to_leaves_what_a_derivative_reads(function: Any):
    def model(x: Tensor) -> Tensor:
        y = function(x, 0).clone() if function in (torch.softmax, torch.add) else function(x).clone()
        y += 1
        return y

    x = torch.arange(1.0, 4.0, requires_grad=True)
    expected, actual = (torch.autograd.grad((f(x) * x).sum(), x) for f in (model, dy2st.to_static(model)))
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(
    ("function", "changes"),
    [
        (lambda x: x.add_(1), True),
        (lambda x: x[0].add_(1) + x, True),
        (lambda x: x.clone().add_(1), False),
        (lambda x: (x + 1).relu_(), False),
        (lambda x: x.view(-1).mul_(2) if x.sum() > 0 else x.view(-1), True),
    ],
)
def test_what_changes_the_world(function: Any, changes: bool):
    assert Clones(capture_program(function, (torch.ones(2, 2),)).graph_module).changes_inputs() is changes


def test_a_guard_that_fails_leaves_the_word_to_eager():
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            raise ValueError("positive")
        return x * 2

    static = dy2st.to_static(model)
    assert torch.equal(static(-torch.ones(2)), -2 * torch.ones(2))
    with pytest.raises(ValueError, match=r"^positive$"):
        static(torch.ones(2))
    assert len(static.programs) == 1


def graphs(module: fx.GraphModule) -> list[fx.Graph]:
    return [each.graph for each in module.modules() if isinstance(each, fx.GraphModule)]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in LARGE)) for path in SAMPLES],
)
def test_samples_compute_what_their_graphs_do(path: Path):
    module = load(path)
    static = dy2st.to_static(module.model)
    with torch.no_grad():
        for args in module.example_inputs():
            expected, actual = module.model(*args), static(*args)
            for a, b in zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=True):
                assert type(a) is type(b)
                torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.slow
def test_functions_that_stand_for_operators_dispatch_to_them():
    """Of each operator in the samples' programs: the binding gives what the overload gives."""
    seen: set[Any] = set()
    for path in SAMPLES:
        module = load(path)
        args = module.example_inputs()[0]
        program = capture_program(module.model, args)
        for graph in graphs(program.graph_module):
            seen |= {n.target for n in graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
    replaced = {target for target in seen if called(target) is not target}
    assert len(replaced) > len(seen) / 2
    x = torch.rand(3, 3)
    for target in replaced:
        arguments = target._schema.arguments
        required = [each for each in arguments if not each.has_default_value() and not each.kwarg_only]
        if [str(each.type) for each in required] == ["Tensor"]:
            given: tuple[Any, ...] = (x.clone(),)
        elif [str(each.type) for each in required] == ["Tensor", "Tensor"]:
            given = (x.clone(), x.clone())
        else:
            continue
        try:
            expected = target(*given)
        except RuntimeError:
            continue
        for a, b in zip(pytree.tree_leaves(called(target)(*given)), pytree.tree_leaves(expected), strict=True):
            assert a.dtype == b.dtype if isinstance(a, Tensor) else a == b
            torch.testing.assert_close(a, b, equal_nan=True)


def test_what_an_operator_leaves_out_is_the_schemas_default():
    """torch's functions read ``reduction=Mean`` as no reduction where it is left out."""
    reducing = 0
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        overloads = [getattr(packet, each) for each in packet.overloads()] if hasattr(packet, "overloads") else []
        for operator in overloads:
            symbolic = {
                each.name: each.default_value for each in operator._schema.arguments if each.name == "reduction"
            }
            if symbolic.get("reduction") is not None:
                assert unread_defaults(operator, 2, ()) == symbolic
                assert unread_defaults(operator, 2, ("reduction",)) == {}
                reducing += 1
    assert reducing > 10


@pytest.mark.parametrize(
    "loss",
    [
        *(functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss),
        *(functional.binary_cross_entropy, functional.binary_cross_entropy_with_logits, functional.kl_div),
        *(functional.soft_margin_loss, functional.poisson_nll_loss, functional.cross_entropy, functional.nll_loss),
        *(functional.multi_margin_loss, functional.multilabel_soft_margin_loss, functional.hinge_embedding_loss),
    ],
)
@pytest.mark.filterwarnings("ignore:.*divides the total loss")
def test_losses(loss: Any):
    of_classes = loss in (functional.cross_entropy, functional.nll_loss, functional.multi_margin_loss)
    target = torch.tensor([1, 2]) if of_classes else torch.rand(2, 3)
    x = torch.rand(2, 3, requires_grad=True)

    def model(x: Tensor) -> Tensor:
        return loss(x, target)

    static = dy2st.to_static(model)
    torch.testing.assert_close(static(x), model(x))
    gradients = [torch.autograd.grad(each(x).sum(), x)[0] for each in (static, model)]
    torch.testing.assert_close(*gradients)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(3, 3, bias=False)
        self.other = nn.Linear(3, 3, bias=False)
        self.other.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.other(self.one(x)) if x.sum() > 0 else x


def test_tied_weights():
    module = Tied()
    static = dy2st.to_static(module)
    x = torch.ones(2, 3)
    static(x).sum().backward()
    actual, module.one.weight.grad = module.one.weight.grad, None
    module(x).sum().backward()
    torch.testing.assert_close(actual, module.one.weight.grad)


@pytest.mark.parametrize("operator", [torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default])
def test_lists_with_gaps_are_given_to_the_operator(operator: Any) -> None:
    image, rows = torch.zeros(1, 4, 4), torch.tensor([1, 2])
    found = binding(operator)(image, [None, rows, rows], torch.ones(1, 1))
    assert found[0, 1, 1] == 1
    assert found.sum() == 2
