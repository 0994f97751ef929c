"""``convert`` keeps the kind of what it is given; ``code`` and ``not_to_static``."""

from __future__ import annotations

import copy
import functools
import pickle

import pytest
import torch
from torch import nn

import dy2st
from dy2st.errors import SourceError, UsageError
from dy2st.source.rewriting import is_rewritten


def sign(x, scale=1):
    """Minus or plus."""
    if x.sum() > 0:
        return x * scale
    return -x * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        if x.sum() > 0:
            return self.linear(x)
        return self.helper(x)

    def helper(self, x):
        return -x if x.numel() > 3 else x


class Child(Net):
    def forward(self, x):
        if x.numel() == 0:
            return x
        return super().forward(x) + 1


class Scale:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        if x > 0:
            return x * self.factor
        return x


x = torch.ones(2, 3)


def test_function():
    converted = dy2st.convert(sign)
    assert is_rewritten(converted)
    assert not is_rewritten(sign)
    assert (converted.__name__, converted.__doc__, converted.__module__) == ("sign", sign.__doc__, __name__)
    assert torch.equal(converted(-x, scale=2), sign(-x, scale=2))
    assert dy2st.convert(converted) is converted


def test_bound_method():
    net = Net()
    converted = dy2st.convert(net.helper)
    assert converted.__self__ is net
    assert is_rewritten(converted.__func__)
    assert torch.equal(converted(x), net.helper(x))


def test_partial():
    converted = dy2st.convert(functools.partial(sign, scale=3))
    assert isinstance(converted, functools.partial)
    assert is_rewritten(converted.func)
    assert torch.equal(converted(x), x * 3)


@pytest.mark.parametrize("cls", [Net, Child])
def test_module(cls):
    net = cls()
    converted = dy2st.convert(net)
    assert isinstance(converted, cls)
    assert type(converted).__name__ == cls.__name__
    assert is_rewritten(type(converted).forward)
    assert not is_rewritten(cls.forward)
    assert torch.equal(converted(x), net(x))
    assert torch.equal(converted(-x), net(-x))
    assert converted.linear is net.linear
    assert [name for name, _ in converted.named_parameters()] == [name for name, _ in net.named_parameters()]
    assert dy2st.convert(converted) is converted


def test_module_copy_is_a_module_of_its_own():
    net = Net()
    converted = dy2st.convert(net)
    converted.register_buffer("more", torch.zeros(1))
    converted.extra = nn.Linear(1, 1)
    converted.eval()
    assert not hasattr(net, "more")
    assert not hasattr(net, "extra")
    assert net.training


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_converted_module_copies_and_pickles(duplicate):
    converted = dy2st.convert(Child())
    again = duplicate(converted)
    assert type(again) is type(converted)
    assert torch.equal(again(x), converted(x))
    assert (again.linear is converted.linear) == (duplicate is copy.copy)


def test_forward_that_was_set_on_the_instance():
    net = Net()
    net.forward = net.helper
    converted = dy2st.convert(net)
    assert is_rewritten(converted.forward.__func__)
    assert converted.forward.__self__ is converted
    assert torch.equal(converted(x), net(x))


def test_hooks_run():
    net, seen = Net(), []
    net.register_forward_hook(lambda module, args, output: seen.append(type(module).__name__))
    dy2st.convert(net)(x)
    assert seen == ["Net"]


def test_class():
    converted = dy2st.convert(Child)
    assert issubclass(converted, Child)
    assert is_rewritten(converted.forward)
    assert torch.equal(converted()(x[:0]), x[:0])


def test_callable_object_with_slots():
    converted = dy2st.convert(Scale(3))
    assert isinstance(converted, Scale)
    assert (converted(2), converted(-2)) == (6, -2)
    assert pickle.loads(pickle.dumps(converted))(2) == 6


def test_static_and_class_methods():
    class Holder:
        @dy2st.convert
        @staticmethod
        def static(v):
            return v if v > 0 else -v

        @dy2st.convert
        @classmethod
        def named(cls, v):
            return (cls.__name__, v) if v else None

    assert Holder.static(-2) == 2
    assert Holder.named(1) == ("Holder", 1)


def test_opt_out():
    @dy2st.not_to_static
    def left_alone(v):
        return v if v > 0 else -v

    assert dy2st.convert(left_alone) is left_alone

    class Quiet(nn.Module):
        @dy2st.not_to_static
        def forward(self, v):
            return v if v.sum() > 0 else -v

    assert type(dy2st.convert(Quiet())) is Quiet


@pytest.mark.parametrize("wrong", [len, torch.relu, "text".upper])
def test_no_source(wrong):
    with pytest.raises(SourceError, match="written in C"):
        dy2st.convert(wrong)


@pytest.mark.parametrize("wrong", [3, "text", object(), object])
def test_not_callable(wrong):
    with pytest.raises(UsageError):
        dy2st.convert(wrong)
    with pytest.raises(UsageError):
        dy2st.code(wrong)


def test_code_is_the_entrys():
    expected = dy2st.code(sign)
    assert "d2s.if_(" in expected
    assert '"""Minus or plus."""' in expected
    assert dy2st.code(dy2st.convert(sign)) == expected
    assert dy2st.code(functools.partial(sign, scale=2)) == expected
    assert dy2st.code(Net()) == dy2st.code(Net) == dy2st.code(Net.forward) == dy2st.code(Net().forward)
    assert dy2st.code(Scale(1)).lstrip().startswith("def __call__(self, x):")
    assert dy2st.code(dy2st.to_static(sign)) == dy2st.to_static(sign).code == expected
    assert dy2st.to_static(Net()).code == dy2st.code(Net)
