"""What torch decides from a dynamic size while a program is lowered to ONNX's operators.

An operator that ONNX does not have is written with others, and torch may choose them by the example's sizes. What it
asks in the rule of an operator that stays says something of that operator's result only, which the capture has looked
at. What it asks while it replaces an operator chooses the replacement: that is refused, except for the operators of
``EQUIVALENT``, whose replacements compute the same.

Source: ``ExportedProgram.run_decompositions`` and ``FunctionalTensorMode`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    _suppress_guards,
    free_unbacked_symbols,
)
from torch.onnx._internal.fx.passes import InsertTypePromotion

from dy2st.errors import Location, SpecializedError
from dy2st.sizes.declared import Declared
from dy2st.sizes.guard_hooks import asking
from dy2st.sizes.guard_origin import TestingCode, testing_frame
from dy2st.sizes.policy import Specialization
from dy2st.sizes.rules import guard_of, is_nonempty, operator_name
from dy2st.source.user_frames import frames
from dy2st.tracing.replaced import replaced
from dy2st.tracing.size_facts import ASSUMED, holding

aten = torch.ops.aten
# Operators that are replaced in different ways that compute the same: with or without a copy, in one step or two. Those
# that write to a tensor are replaced by the operator that makes a new one, whose sizes torch compares.
EQUIVALENT = frozenset(
    "reshape view flatten unflatten contiguous squeeze expand_as matmul linear cdist max_pool1d max_pool2d avg_pool1d "
    "avg_pool2d batch_norm instance_norm group_norm layer_norm scaled_dot_product_attention einsum bmm conv1d conv2d "
    "conv3d multi_head_attention pad cross_entropy_loss index_add index_put permute transpose movedim pixel_shuffle "
    "pixel_unshuffle tensordot kron chunk split narrow copy copy_ clone select slice lstm_cell gru_cell rnn_tanh_cell "
    "rnn_relu_cell add_ sub_ mul_ div_ pow_ remainder_ fill_ zero_ clamp_ clamp_min_ clamp_max_ masked_fill_ scatter_ "
    "gradient scatter_add_ index_put_ index_add_ index_copy_ bitwise_and_ bitwise_or_ "
    "bitwise_xor_ logical_and_ logical_or_".split()
)

OF_SHAPE = frozenset((aten.size.default, aten.stride.default, aten.storage_offset.default))


def _in_its_arm(env: ShapeEnv) -> Callable[..., Any]:
    """``InsertTypePromotion.run``, which runs a branch's arm by itself: with the sizes for which it is taken."""
    run = InsertTypePromotion.run

    def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with holding(env, self.module.meta.get(ASSUMED, ())):
            return run(self, *args, **kwargs)

    return _run


@contextlib.contextmanager
def watching_lowering(
    program: torch.export.ExportedProgram, allows: Callable[[Location], bool]
) -> Iterator[list[Specialization]]:
    """Look at every decision that is made; what the user allows is listed.

    Raises:
        SpecializedError: an operator's replacement depends on a size that is dynamic.
    """
    found: list[Specialization] = []
    env = shape_env_of(program)
    if env is None:
        yield found
        return
    declared = Declared.of(env)
    demands = Demands()

    def decided(expr: Any, run: Callable[[], Any]) -> Any:
        if free_unbacked_symbols(expr):
            return _of_data(expr, run, demands)
        with _suppress_guards(env):
            value = run()
        node = _replaced_node()
        guard = guard_of(expr, value)
        # What is done with something does for nothing too; what the program demands of its inputs is no operator.
        if node is not None and node.op != "call_module" and not _is_equivalent(node) and not is_nonempty(guard):
            place, fixed = place_of(node), declared.spoken(guard)
            if place is not None and allows(place):
                found.append(Specialization(place, fixed))
            else:
                raise SpecializedError(
                    f"a size that is declared dynamic decides how {operator_name(node.target)} is written with ONNX's "
                    f"operators: the file would be right for {fixed} only",
                    hint="make the dimension static, or compute it with simpler functions; --allow-specialize LINE "
                    "accepts what is fixed at this line",
                    location=place,
                )
        return value

    with asking(env, decided), sizes_that_are_one(env), replaced([(InsertTypePromotion, "run", _in_its_arm(env))]):
        yield found


def sizes_that_are_one(env: Any) -> contextlib.AbstractContextManager[None]:
    """Two sizes of the program may turn out to be one when it is traced again; torch knows of no such thing."""
    native = env._rename_unbacked_to

    def renamed(now: sympy.Symbol, before: sympy.Symbol) -> None:
        known = env.replacements.get(now)
        if known is None or not free_unbacked_symbols(known):
            native(now, before)
        elif known != before:
            env._set_replacement(before, known, "two sizes are one")

    return replaced([(env, "_rename_unbacked_to", renamed)])


def _is_equivalent(node: fx.Node) -> bool:
    """Whether all replacements of an operator compute the same."""
    name = operator_name(node.target)
    # A pooling into one window is a mean, whose strides differ.
    whole = name.startswith("adaptive_avg_pool") and all(size == 1 for size in node.args[1])  # type: ignore[union-attr]
    return name in EQUIVALENT or whole


class Demands:
    """Tests that had to hold, each with the function of torch that goes on with what holds then."""

    def __init__(self) -> None:
        self._held: dict[Any, list[FrameType]] = {}

    def holds(self, expr: Any) -> bool:
        """Whether torch raises now if a test fails, or the same function has called what would have."""
        if TestingCode.running(True).raises:
            asking = testing_frame()
            if asking is not None and asking.f_back is not None:
                self._held.setdefault(expr, []).append(asking.f_back)
            return True
        callers = self._held.get(expr, [])
        return any(frame is caller for frame in frames(sys._getframe(1)) for caller in callers)


def _of_data(expr: Any, run: Any, demands: Demands) -> Any:
    """A test of a size that is data: what torch does with nothing at all is what it does with something.

    Two sizes that are compared are equal, and what torch raises without holds: the capture has made sure, or the
    program tests it.
    """
    if isinstance(expr, (sympy.Eq, sympy.Ne)) and all(side.free_symbols for side in expr.args):
        return sympy.true if isinstance(expr, sympy.Eq) else sympy.false
    if is_nonempty(sympy.Not(expr)):
        return sympy.false
    if is_nonempty(expr):
        return sympy.true
    try:
        return run()
    except GuardOnDataDependentSymNode:
        if demands.holds(expr):
            return sympy.true
        raise


def shape_env_of(program: torch.export.ExportedProgram) -> Any:
    """What knows the sizes of a program; None if it has no tensors."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and hasattr(value, "fake_mode"):
            return value.fake_mode.shape_env
    return None


def _replaced_node() -> fx.Node | None:
    """The node that is being replaced by others right now; None inside an operator's own rule."""
    replacing = False
    for frame in frames(sys._getframe(1)):
        name = frame.f_code.co_name
        # A replacement that is written in Python runs while its operator is about to be recorded.
        replacing = replacing or name == "maybe_handle_decomp"
        rule = name == "dispatch" and "fake_tensor" in frame.f_code.co_filename
        # An operator that is written in C++ with others asks for a tensor's sizes in this way: those of the example.
        if (name == "proxy_call" and not replacing) or (rule and frame.f_locals.get("func") not in OF_SHAPE):
            return None
        if name == "proxy_call":
            replacing = False
        if name == "run_node" and isinstance(frame.f_locals.get("n"), fx.Node):
            return frame.f_locals["n"]  # type: ignore[no-any-return]
    return None


def place_of(node: fx.Node) -> Location | None:
    """The user's line that a node comes from."""
    found = re.findall(r'File "([^"]+)", line (\d+)[^\n]*\n\s*([^\n]*)', node.meta.get("stack_trace") or "")
    if not found:
        return None
    filename, line, text = found[-1]
    return Location(filename, int(line), None, text or None)
