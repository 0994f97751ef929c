"""``to_static`` on functions, methods and modules: one program for each input signature."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import onnx
import pytest
import torch
from torch import nn

import dy2st
from dy2st.errors import InputSpecError, UsageError

x = torch.tensor([[1.0, -2.0, 4.0], [0.5, 0.5, -3.0]])


def sign(value, scale=1):
    if value.sum() > 0:
        return value * scale
    return -value


def halve(value):
    steps = 0
    while value.abs().max() > 1:
        value = value / 2
        steps += 1
    return value, steps


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, value):
        self.count += 1
        if value.sum() > 0:
            return self.dropout(self.linear(value))
        return value


def agree(static, eager, *inputs):
    for given in inputs:
        expected, actual = eager(given), static(given)
        torch.testing.assert_close(actual, expected)


def test_function_takes_both_branches_of_one_program():
    static = dy2st.to_static(sign)
    agree(static, sign, x, -x)
    assert len(static.programs) == 1


def test_loop():
    static = dy2st.to_static(halve)
    for given in (x, x / 100, x * 1000):
        value, steps = static(given)
        assert torch.equal(value, halve(given)[0])
        assert int(steps) == halve(given)[1]
    assert len(static.programs) == 1


def test_signature_is_dtype_shape_and_other_values():
    static = dy2st.to_static(sign)
    static(x)
    static(x + 1)
    static(value=x)
    assert len(static.programs) == 1
    for number, (args, kwargs) in enumerate(
        [((x.double(),), {}), ((x[:1],), {}), ((x, 2), {}), ((x,), {"scale": 3})], start=2
    ):
        assert torch.equal(static(*args, **kwargs), sign(*args, **kwargs))
        assert len(static.programs) == number
    static(x, scale=2)
    assert len(static.programs) == 5


def test_decorator_with_arguments_makes_one_program_for_all_sizes():
    @dy2st.to_static(input_spec=["f32[n,3]"])
    def model(value):
        if value.sum() > 0:
            return value * 2
        return value

    for size in (2, 3, 7):
        given = torch.randn(size, 3)
        assert torch.equal(model(given), given * 2 if given.sum() > 0 else given)
    assert len(model.programs) == 1
    assert model.__name__ == "model"
    model(torch.ones(2, 4))
    assert len(model.programs) == 2


def test_methods_bind():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @dy2st.to_static
        def apply(self, value):
            if value.sum() > 0:
                return value * self.factor
            return value

    two, three = Scale(2), Scale(3)
    assert torch.equal(two.apply(x), x * 2)
    assert torch.equal(three.apply(x), x * 3)
    assert torch.equal(two.apply(-x), -x)
    assert len(two.apply.programs) == len(three.apply.programs) == 1
    assert two.apply.__self__ is two


def test_bound_method():
    net = Net().eval()
    static = dy2st.to_static(net.forward)
    agree(static, net, x, -x)


def test_programs_go_with_their_instance():
    class Plain:
        @dy2st.to_static
        def apply(self, value):
            return value + 1

    thing = Plain()
    thing.apply(x)
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None


def test_module():
    net = Net().eval()
    static = dy2st.to_static(net)
    assert isinstance(static, Net)
    assert static is not net
    agree(static, net, x, -x)
    assert len(static.forward.programs) == 1
    assert static.linear is net.linear
    assert "d2s.if_(" in static.code
    assert list(static.state_dict()) == list(net.state_dict())
    assert dy2st.to_static(static) is static


def test_module_shares_parameters_and_state():
    net = Net().eval()
    static = dy2st.to_static(net)
    static(x)
    assert net.count == 1
    with torch.no_grad():
        net.linear.weight.zero_()
        net.linear.bias.fill_(7)
    assert static(x).eq(7).all()
    assert net.count == 2


def test_train_and_eval_have_programs_of_their_own():
    static = dy2st.to_static(Net())
    static.train()
    torch.manual_seed(0)
    assert (static(x) == 0).any() or (static(x) == 0).any()
    static.eval()
    assert torch.allclose(static(x), static.linear(x))
    assert len(static.forward.programs) == 2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_module_copies(duplicate):
    static = dy2st.to_static(Net().eval())
    static(x)
    again = duplicate(static)
    assert torch.equal(again(x), static(x))
    assert again.forward.__self__ is again
    assert again.linear is not static.linear


@dy2st.to_static
def decorated(value):
    return value if value.sum() > 0 else -value


def test_function_pickles_by_name_and_copies_as_itself():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated


def test_bound_method_copies_with_its_object():
    class Scale:
        def __init__(self, factor):
            self.factor = factor
            self.run = dy2st.to_static(self.apply)

        def apply(self, value):
            return value * self.factor if value.sum() > 0 else value

    first = Scale(2)
    assert torch.equal(first.run(x), x * 2)
    second = copy.deepcopy(first)
    second.factor = 3
    assert torch.equal(second.run(x), x * 3)
    assert torch.equal(first.run(x), x * 2)


def test_gradients_flow_through_the_program():
    net = Net().eval()
    static = dy2st.to_static(net)
    static(x).sum().backward()
    actual, net.linear.weight.grad = net.linear.weight.grad, None
    net(x).sum().backward()
    torch.testing.assert_close(actual, net.linear.weight.grad)


def test_class_decorator():
    @dy2st.to_static
    class Inner(nn.Module):
        def forward(self, value):
            return value if value.sum() > 0 else -value

    net = Inner()
    assert torch.equal(net(x), x)
    assert torch.equal(net(-x), x)
    assert len(net.forward.programs) == 1


def test_static_function_in_a_larger_capture():
    static = dy2st.to_static(sign)

    def outer(value):
        return static(value) + 1

    program = dy2st.export(outer, (x,))
    assert torch.equal(program.module()(x), sign(x) + 1)
    assert torch.equal(program.module()(-x), sign(-x) + 1)
    assert static.programs == []


def test_static_child_in_a_larger_capture():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = dy2st.to_static(Net().eval())

        def forward(self, value):
            return self.inner(value) * 2

    outer = Outer().eval()
    program = dy2st.export(outer, (x,))
    for given in (x, -x):
        torch.testing.assert_close(program.module()(given), outer(given))


def test_export_and_to_onnx(tmp_path):
    static = dy2st.to_static(Net().eval(), input_spec={"value": "f32[n,3]"})
    program = static.export(x)
    assert isinstance(program, torch.export.ExportedProgram)
    assert isinstance(static.export(), torch.export.ExportedProgram)
    stateless = dy2st.to_static(sign, input_spec={"value": "f32[n,3]"})
    stateless.to_onnx(tmp_path / "sign.onnx")
    model = onnx.load(tmp_path / "sign.onnx")
    assert [node.op_type for node in model.graph.node].count("If") == 1
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    stateless.to_onnx(tmp_path / "again.onnx", x)
    assert (tmp_path / "again.onnx").is_file()


def test_backend():
    static = dy2st.to_static(sign, backend="aot_eager")
    agree(static, sign, x, -x)


def test_wrong_use():
    with pytest.raises(UsageError, match="takes a function"):
        dy2st.to_static(3)
    with pytest.raises(UsageError, match="give example arguments"):
        dy2st.to_static(sign).export()
    with pytest.raises(InputSpecError):
        dy2st.to_static(sign, input_spec=["f32["])
    with pytest.raises(InputSpecError, match="no parameter 'y'"):
        dy2st.to_static(sign, input_spec=["y=f32[3]"])(x)


def test_arguments_of_any_type_are_compared():
    def member(value, chosen, key=len):
        return value * key(chosen) if value.sum() > 0 and 2 in chosen else -value

    static = dy2st.to_static(member)
    for chosen in ({2, 3}, {2}, {3}, frozenset((2,)), {2, 3}):
        assert torch.equal(static(x, chosen), member(x, chosen))
    assert len(static.programs) == 4


def test_errors_of_a_call_are_pythons():
    with pytest.raises(TypeError, match=r"^sign\(\) missing 1 required positional argument: 'value'$"):
        dy2st.to_static(sign)()
