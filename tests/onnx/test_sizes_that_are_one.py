"""Sizes of a program that turn out to be one when it is lowered, which torch's own bookkeeping refuses."""

from __future__ import annotations

import pytest
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from dy2st.sizes.lowering import sizes_that_are_one


def test_two_sizes_of_a_program_are_one() -> None:
    env = ShapeEnv()
    first, second, now = (env.create_unbacked_symint().node.expr for _ in range(3))
    with sizes_that_are_one(env):
        env._rename_unbacked_to(now, first)
        env._rename_unbacked_to(now, second)
        env._rename_unbacked_to(now, second)
    assert env.replace(first) == env.replace(second) == env.replace(now)


def test_torch_itself_still_refuses_them() -> None:
    """Where this fails, torch has learned it, and the code that stands in for it can go."""
    env = ShapeEnv()
    first, second, now = (env.create_unbacked_symint().node.expr for _ in range(3))
    env._rename_unbacked_to(now, first)
    with pytest.raises(AssertionError):
        env._rename_unbacked_to(now, second)
