"""A fast guard fails wherever the walk finds another world; the walk alone decides that it is the same.

These are the tests that fail if torch changes the guard managers that are used here, which are private to it.
"""

# ruff: noqa: PLW0108 - lambdas are the functions under test, and look things up in each call

from __future__ import annotations

import gc
import types
from collections import OrderedDict, deque
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import nn

from dy2st.guards.ambient import modes, modes_unchanged
from dy2st.guards.names import Names
from dy2st.guards.sources import observe
from dy2st.guards.torch_guards import FastGuard


class Thing:
    shared = 1

    def __init__(self) -> None:
        self.number = 2
        self.items = [1, 2]
        self.table = {"a": 1, "b": [3]}


class Fixed:
    """A world that is walked from some roots, and its fast guard."""

    def __init__(self, *roots: Any, **names: Any) -> None:
        self.roots = tuple((f"root {i}", root) for i, root in enumerate(roots))
        self.names = Names(everything=True, **names)
        self.world = observe(self.roots, self.names, {}, learn=True)
        self.guard = FastGuard(self.world.sources[: len(roots)])
        space: dict[str, Any] = {}
        self._test = eval(f"lambda roots: {self.guard.unchanged(space)}", space)

    def quick(self) -> bool:
        return bool(self._test(tuple(root for _, root in self.roots)))

    def same(self) -> bool:
        return observe(self.roots, self.names, {}, learn=False).key == self.world.key


def test_each_kind_of_value_is_guarded():
    function_of = types.FunctionType((lambda x: x).__code__, {}, "f")
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    thing, queue, order = Thing(), deque([1]), OrderedDict(a=1, b=2)
    numbers = torch.ones(2)
    fixed = Fixed(thing, module, function_of, queue, order, {1, 2}, [numbers])
    assert fixed.quick()
    assert fixed.same()
    weight = module[0].weight
    changes: list[tuple[Any, Any]] = [
        (lambda: setattr(thing, "number", 3), lambda: setattr(thing, "number", 2)),
        (lambda: thing.items.append(1), lambda: thing.items.pop()),
        (lambda: thing.table.update(b=4), lambda: thing.table.update(b=[3])),
        (lambda: setattr(thing, "more", 1), lambda: delattr(thing, "more")),
        (lambda: setattr(Thing, "shared", 2), lambda: setattr(Thing, "shared", 1)),
        (lambda: module.eval(), lambda: module.train()),
        (lambda: module[1].eval(), lambda: module[1].train()),
        (lambda: weight.requires_grad_(False), lambda: weight.requires_grad_(True)),
        (lambda: queue.append(2), lambda: queue.pop()),
        (lambda: order.move_to_end("a"), lambda: order.move_to_end("b")),
        (lambda: setattr(function_of, "__defaults__", (1,)), lambda: setattr(function_of, "__defaults__", None)),
    ]
    for there, back in changes:
        there()
        assert not fixed.quick()
        assert not fixed.same()
        back()
        assert fixed.same()


def test_many_modules_are_skipped_by_the_versions_of_their_dicts():
    module = nn.Sequential(*[nn.Linear(2, 2) for _ in range(20)])
    fixed = Fixed(module)
    assert all(fixed.quick() for _ in range(3))
    module[7].weight.data = module[7].weight.data.double()
    assert not fixed.quick()
    module[7].weight.data = module[7].weight.data.float()
    assert fixed.quick()
    module[3].__class__ = nn.Identity
    assert not fixed.quick()
    module[3].__class__ = nn.Linear
    assert fixed.quick()
    module[5].bias = nn.Parameter(torch.ones(2))
    assert not fixed.quick()
    assert fixed.same()


def test_what_is_gone_is_no_longer_the_same():
    held = [Thing()]
    fixed = Fixed(held)
    assert fixed.quick()
    held[0] = Thing()
    gc.collect()
    assert not fixed.quick()
    assert fixed.same()


def test_modes():
    space: dict[str, Any] = {}
    expression, before = modes_unchanged(space), modes()

    def unchanged() -> bool:
        return bool(eval(expression, space))

    assert unchanged()
    for other in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu"), torch.device("meta")):
        with other:
            assert not unchanged()
            assert modes() != before
        assert unchanged()
        assert modes() == before


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.one_of(st.integers(-2, 2), st.booleans(), st.none(), st.sampled_from([0.0, -0.0, 1.0, "x", (1, 2)])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)


def alike(a: Any, b: Any) -> bool:
    """The same types and values: 1 is neither True nor 1.0, 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    return repr(a) == repr(b)


@given(before=VALUES, after=VALUES)
def test_a_guard_never_holds_in_another_world(before: Any, after: Any):
    thing = Thing()
    thing.number = before
    fixed = Fixed(thing)
    assert fixed.quick()
    thing.number = after
    # Which of the parts are one object is a part of the world, too; those drawn here are told apart by value alone.
    assert fixed.same() or not alike(before, after) or not isinstance(before, (int, float, str, type(None)))
    if not alike(before, after):
        assert not fixed.same()
        assert not fixed.quick()
    thing.number = before
    assert fixed.same()


@pytest.mark.parametrize("value", [iter([1]), (i for i in range(2)), map(abs, [1])])
def test_what_changes_as_it_is_read_is_refused(value: Any):
    from dy2st.errors import UnguardedError

    with pytest.raises(UnguardedError, match="root 0"):
        observe((("root 0", value),), Names(everything=True), {}, learn=True)
