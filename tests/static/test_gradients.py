"""Gradients of a static program are eager's, or it is refused with a code."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacrev, jvp, vmap
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

import dy2st
from dy2st.errors import Dy2stError, UnconvertedConditionError

torch.manual_seed(0)


def random(*size: int) -> Tensor:
    return torch.randn(*size, dtype=torch.float64)


PARAMETER = nn.Parameter(random(3))
LEAVES = [nn.Parameter(random(3)), random(3).requires_grad_()]


class Holder:
    def __init__(self) -> None:
        self.weight = random(3).requires_grad_()


HOLDER = Holder()


class Square(torch.autograd.Function):
    """Its backward is not the derivative of its forward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 10 * x


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        return (x * scale).round() / scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class TwoResults(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        return first * 7 + second * 11


class WithSetup(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.exp()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * ctx.saved_tensors[0] * 2


class SignDependent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x * 2
        return x * 3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class SignDependentModel(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = SignDependent.apply(x) + 1
        return result


def test_a_condition_in_the_forward_of_a_function_of_its_own() -> None:
    static = dy2st.to_static(lambda x: SignDependent.apply(x) + 1)
    with pytest.raises(UnconvertedConditionError, match="one operator where gradients may be wanted") as refused:
        static(random(3).requires_grad_())
    assert "torch.where" in refused.value.hint
    for x in (random(3).abs(), -random(3).abs()):
        assert torch.equal(static(x), SignDependent.apply(x) + 1)
        with torch.no_grad():
            assert torch.equal(static(x.requires_grad_()), SignDependent.apply(x) + 1)
    exported = dy2st.export(SignDependentModel(), (random(3),)).module()
    for x in (random(3).abs(), -random(3).abs()):
        torch.testing.assert_close(exported(x), SignDependent.apply(x) + 1)


FACTOR, WEIGHT = 2.0, nn.Parameter(torch.ones(3))


def scaled(x: Tensor) -> Tensor:
    return x * FACTOR


class Scaling(torch.autograd.Function):
    """Reads the world in its forward, and has an argument that is no tensor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, options: dict[str, float]) -> Tensor:
        return scaled(x) * WEIGHT + options["more"]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * 5, None


SCALE = Scaling.apply


def test_the_world_of_the_forward_of_a_function_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(x: Tensor) -> Tensor:
        result: Tensor = Scaling.apply(x, {"more": 1.0}) + SCALE(x, {"more": 2.0})
        return result

    static, module = dy2st.to_static(model), sys.modules[__name__]
    changes: list[tuple[Any, str, Any]] = [
        (module, "FACTOR", 3.0),
        (module, "scaled", lambda x: x - 1),
        (Scaling, "forward", staticmethod(lambda ctx, x, options: x * 7)),
    ]
    for wanted in (False, True):
        with monkeypatch.context() as patching:
            for change in (None, *changes):
                if change is not None:
                    patching.setattr(*change)
                x = random(3).requires_grad_(wanted)
                result, expected = static(x), model(x)
                assert torch.equal(result, expected)
                assert result.requires_grad is expected.requires_grad is wanted
                if wanted:
                    assert torch.equal(*(torch.autograd.grad(each.sum(), x)[0] for each in (result, expected)))


def closure() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    weight = random(3).requires_grad_()

    def model(x: Tensor) -> Tensor:
        return (x * weight).sum() if x.sum() > 0 else weight.sum()

    return model, weight


CLOSURE, OF_CLOSURE = closure()


def until_large(x: Tensor) -> Tensor:
    while x.abs().sum() < 100:
        x = x * 2
    return x


def rounded_until_large(x: Tensor) -> Tensor:
    while x.abs().sum() < 10:
        x = Rounded.apply(x * 1.5, 4.0)
    return x


def some_of_three(x: Tensor) -> Tensor:
    for _ in range(3):
        x = torch.tanh(x) if x.sum() > 0 else x * x
    return x


def rows(x: Tensor) -> Tensor:
    h, out = torch.zeros((), dtype=x.dtype), []
    for t in range(x.shape[0]):
        h = torch.tanh(h + x[t]) if x[t] > 0 else h * 0.5
        out.append(h)
    return torch.stack(out)


def in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[0] = y[1] * 2
    if y.sum() > 0:
        y.mul_(x)
    return y


def partly_without(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * x
    return y * x


@torch.no_grad()
def without(x: Tensor) -> Tensor:
    return x * 2


def leaf_made_inside(x: Tensor) -> Tensor:
    return x * torch.ones(3, dtype=x.dtype).requires_grad_(True)


def hooked(x: Tensor) -> Tensor:
    y = x * 2
    y.register_hook(lambda gradient: gradient * 5)
    return y * 3


def differentiated_inside(x: Tensor) -> Tensor:
    with torch.enable_grad():
        y = x.detach().requires_grad_(True)
        (found,) = torch.autograd.grad((y**3).sum(), y)
    return found * x


CASES: dict[str, tuple[Any, Sequence[Tensor]]] = {
    "a parameter of a global": (lambda x: x * PARAMETER, [PARAMETER]),
    "leaves in a list": (lambda x: x * LEAVES[0] + LEAVES[1] if x.sum() > 0 else x * LEAVES[1], LEAVES),
    "a leaf of an object": (lambda x: x * HOLDER.weight, [HOLDER.weight]),
    "a leaf in a closure": (CLOSURE, [OF_CLOSURE]),
    "a function of its own": (lambda x: Square.apply(x) + x, []),
    "a function in a branch": (lambda x: Square.apply(x) if x.sum() > 0 else x * 3, []),
    "a function in a loop": (rounded_until_large, []),
    "a function of two results": (lambda x: TwoResults.apply(x)[1], []),
    "a function with a setup": (WithSetup.apply, []),
    "straight through": (lambda x: x + (torch.round(x) - x).detach(), []),
    "straight through in a branch": (lambda x: x + (x.round() - x).detach() if x.sum() > -9 else x, []),
    "detached": (lambda x: x.detach() * x, []),
    "data": (lambda x: x * x.data, []),
    "a number": (lambda x: x * x.sum().item(), []),
    "a number in a condition": (lambda x: x * x.sum().item() if x.sum() > 0 else x * float(x.detach().max()), []),
    "partly without": (partly_without, []),
    "a function without": (lambda x: without(x) + x, []),
    "whether there are gradients": (lambda x: x * 2 if torch.is_grad_enabled() else x, []),
    "a while loop": (until_large, []),
    "branches in a loop": (some_of_three, []),
    "rows": (rows, []),
    "in place": (in_place, []),
    "checkpoint": (lambda x: checkpoint(lambda v: torch.sin(v) * v, x, use_reentrant=False), []),
    "casts": (lambda x: x.float().double() * x, []),
    "where": (lambda x: torch.where(x > 0, torch.sqrt(x.clamp(min=1e-9)), x), []),
    "an index from data": (lambda x: x[x.argmax()] * x, []),
    "sorting": (lambda x: x.sort().values * x, []),
    "the input": (lambda x: x, []),
    "some results without": (lambda x: (x * 2, x.detach(), x.sum()), []),
    "a tensor of tensors": (lambda x: torch.tensor([x[0], x[1] * 2, 3.0]) * x, []),
    "a float tensor of tensors": (lambda x: torch.Tensor([x[0], x[1], 3.0]).to(x.dtype) * x, []),
    "a new tensor of tensors": (lambda x: x.new_tensor([x[0], x[1], 3.0]) * x, []),
    "a tensor of a list that grows": (lambda x: torch.tensor([v for v in x if v > 0], dtype=x.dtype).sum() * x, []),
    "ends of a range": (lambda x: torch.linspace(x[0], x[1], 3, dtype=x.dtype) * x, []),
    "a leaf that is made": (leaf_made_inside, []),
    "a gradient inside": (differentiated_inside, []),
    # What is not chosen has no gradient, rather than zeros: an optimiser leaves it alone.
    "the greater one": (lambda x: max(x.sum(), LEAVES[0].sum()) * min(x.max(), LEAVES[1].max()), LEAVES),
    "one of a list": (lambda x: [*LEAVES, x][x.argmax()] * 2, LEAVES),
    "one of a dict": (lambda x: {0: LEAVES[0], 2: x}.get(int(x.argmax()), LEAVES[1]) * 2, LEAVES),
    "the best of some": (lambda x: max([x * 2, *LEAVES], key=lambda each: (each * x).sum()), LEAVES),
    "a key of the best": (lambda x: (table := {"a": x, "b": x + 1})[min(table, key=lambda k: table[k].sum())], []),
}
REFUSED = {"a hook": hooked}


def _results(model: Any, x: Tensor, parameters: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor | None]]:
    given = x.clone().requires_grad_()
    outputs = [leaf for leaf in pytree.tree_leaves(model(given)) if isinstance(leaf, Tensor)]
    differentiable = [each for each in outputs if each.requires_grad]
    if not differentiable:
        return outputs, []
    total = sum((each * each).sum() for each in differentiable)
    return outputs, list(torch.autograd.grad(total, [given, *parameters], allow_unused=True))


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True:UserWarning")  # eager's own
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_eagers(name: str) -> None:
    model, parameters = CASES[name]
    static = dy2st.to_static(model)
    for x in (random(3).abs(), -random(3).abs(), random(3)):
        for _ in range(2):
            expected, actual = _results(model, x, parameters), _results(static, x, parameters)
            assert [each.requires_grad for each in actual[0]] == [each.requires_grad for each in expected[0]]
            for a, b in zip((*actual[0], *actual[1]), (*expected[0], *expected[1]), strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(a, b)


def asked(x: Tensor) -> tuple[Tensor, Tensor]:
    """Code that asks what autograd makes of its values."""
    y = x * 2
    if y.requires_grad and not y.is_leaf and y.grad_fn is not None:
        y = y * 3
    z = x * 5
    z = z + 1 if z.requires_grad else z
    z = z if (x * 2).requires_grad is (y * 2).requires_grad else z.detach()
    if x.sum() > 0:
        with torch.no_grad():
            y = y * 7 if (y * 2).requires_grad else y - 1
    return y, z * 2 if torch.is_grad_enabled() else z


def test_what_autograd_makes_of_values() -> None:
    """With and without gradients, of an input that wants one and of one that does not."""
    static = dy2st.to_static(asked)
    for enabled in (True, False, True):
        for wanting in (True, False):
            for x in (random(3).abs(), -random(3).abs()):
                x.requires_grad_(wanting)
                with torch.set_grad_enabled(enabled):
                    for actual, expected in zip(static(x), asked(x), strict=True):
                        assert actual.requires_grad == expected.requires_grad
                        torch.testing.assert_close(actual, expected)


def test_a_gradient_of_the_world_is_no_part_of_a_program() -> None:
    parameter = nn.Parameter(random(3))

    @dy2st.to_static
    def model(x: Tensor) -> Tensor:
        return x * 2 if parameter.grad is None else x * parameter.grad

    x = random(3)
    assert torch.equal(model(x), x * 2)
    parameter.grad = random(3)
    with pytest.raises(Dy2stError, match="D2S229"):
        model(x)
    parameter.grad = None
    assert torch.equal(model(x), x * 2)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_program_can_not_differentiate_is_refused_at_its_line(name: str) -> None:
    with pytest.raises(Dy2stError) as caught:
        dy2st.to_static(REFUSED[name])(random(3).requires_grad_())
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


# Those whose gradient is their derivative.
SMOOTH = (
    *("a parameter of a global", "leaves in a list", "a leaf of an object", "a leaf in a closure", "a while loop"),
    *("branches in a loop", "in place", "checkpoint", "where", "an index from data", "sorting", "a leaf that is made"),
)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradcheck(name: str) -> None:
    static = dy2st.to_static(CASES[name][0])
    torch.autograd.gradcheck(static, (random(3).abs().requires_grad_(),))


def smooth(x: Tensor) -> Tensor:
    return (torch.sin(x) * x).sum()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own derivatives of derivatives use it
def test_transforms_of_torch() -> None:
    static = dy2st.to_static(smooth)
    x, batch = random(3), random(4, 3)
    static(x)
    torch.testing.assert_close(grad(static)(x), grad(smooth)(x))
    torch.testing.assert_close(vmap(static)(batch), vmap(smooth)(batch))
    torch.testing.assert_close(jacrev(static)(x), jacrev(smooth)(x))
    torch.testing.assert_close(jvp(static, (x,), (x,)), jvp(smooth, (x,), (x,)))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        actual, expected = (forward_ad.unpack_dual(model(dual)).tangent for model in (static, smooth))
    torch.testing.assert_close(actual, expected)


def test_functional_call() -> None:
    module = nn.Linear(3, 3).double()
    static = dy2st.to_static(module)
    x, other = random(3), {name: value * 2 for name, value in module.named_parameters()}
    for _ in range(2):
        torch.testing.assert_close(static(x), module(x))
        torch.testing.assert_close(functional_call(static, other, (x,)), functional_call(module, other, (x,)))
    weight = other["weight"].detach().requires_grad_()
    functional_call(static, {"weight": weight}, (x,)).sum().backward()
    assert weight.grad is not None


def test_a_program_that_was_captured_without_gradients_is_another_one() -> None:
    static = dy2st.to_static(partly_without)
    x = random(3).requires_grad_()
    with torch.no_grad():
        assert not static(x).requires_grad
    with torch.inference_mode():
        assert static(x).is_inference()
    assert static(x).requires_grad
    assert static.cache_info().currsize == 3


def test_threads_capture_once_and_have_gradients() -> None:
    static, x = dy2st.to_static(until_large), random(3)
    found: list[Tensor | None] = []

    def run() -> None:
        given = x.clone().requires_grad_()
        static(given).sum().backward()
        found.append(given.grad)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert static.cache_info().misses == 1
    given = x.clone().requires_grad_()
    until_large(given).sum().backward()
    assert len(found) == 8
    assert all(torch.equal(each, given.grad) for each in found)
