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
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import _suppress_guards, free_unbacked_symbols

from dy2st.errors import Location, SpecializedError
from dy2st.sizes.declared import Declared
from dy2st.sizes.guard_hooks import asking, is_open
from dy2st.sizes.policy import Specialization
from dy2st.sizes.rules import is_nonempty
from dy2st.source.user_frames import frames
from dy2st.tracing.size_facts import forget_answers

aten = torch.ops.aten
# Operators that are replaced in different ways that compute the same: with or without a copy, in one step or two.
EQUIVALENT = frozenset(
    "reshape view flatten unflatten contiguous squeeze expand_as matmul linear cdist max_pool1d max_pool2d avg_pool1d "
    "avg_pool2d batch_norm instance_norm group_norm layer_norm scaled_dot_product_attention einsum bmm conv1d conv2d "
    "conv3d multi_head_attention pad cross_entropy_loss index_add index_put permute transpose movedim pixel_shuffle "
    "pixel_unshuffle tensordot kron chunk split narrow copy clone select slice lstm_cell gru_cell rnn_tanh_cell "
    "rnn_relu_cell gradient".split()
)


@dataclass
class Lowered:
    """What has been decided: what the user has allowed, and whether sizes were taken for equal that may not be.

    ONNX's operators stretch operands as torch's do, so values are right; what is said of inner shapes may not be.
    """

    specialized: list[Specialization] = field(default_factory=list)
    stretches: bool = False


OF_SHAPE = frozenset((aten.size.default, aten.stride.default, aten.storage_offset.default))


@contextlib.contextmanager
def watching_lowering(program: torch.export.ExportedProgram, allows: Callable[[Location], bool]) -> Iterator[Lowered]:
    """Look at every decision that is made.

    Raises:
        SpecializedError: an operator's replacement depends on a size that is dynamic.
    """
    found = Lowered()
    env = _shape_env(program)
    if env is None:
        yield found
        return
    declared = Declared.of(env)

    def decided(expr: Any, run: Callable[[], Any]) -> Any:
        if free_unbacked_symbols(expr):
            return _of_data(expr, run)
        with _suppress_guards(env):
            value = run()
        node = _replaced_node()
        guard = expr if value == sympy.true else sympy.Not(expr) if value == sympy.false else sympy.Eq(expr, value)
        found.stretches = found.stretches or isinstance(guard, sympy.Eq)
        # What is done with something does for nothing too; what the program demands of its inputs is no operator.
        if node is not None and node.op != "call_module" and not _is_equivalent(node) and not is_nonempty(guard):
            place, fixed = place_of(node), declared.spoken(guard)
            if place is not None and allows(place):
                found.specialized.append(Specialization(place, fixed))
            else:
                raise SpecializedError(
                    f"a size that is declared dynamic decides how {operator_name(node)} is written with ONNX's "
                    f"operators: the file would be right for {fixed} only",
                    hint="make the dimension static, or compute it with simpler functions; --allow-specialize LINE "
                    "accepts what is fixed at this line",
                    location=place,
                )
        return value

    defer = env.guard_or_defer_runtime_assert

    def demanded(expr: Any, message: str, fx_node: Any = None) -> bool:
        """What an operator demands of sizes. It holds, or the operand is stretched: nothing is learnt of it."""
        if not is_open(env, expr):
            return bool(defer(expr, message, fx_node))
        found.stretches = found.stretches or isinstance(expr, sympy.Eq)
        return bool(defer(expr, message, fx_node)) if free_unbacked_symbols(expr) else True

    # What has been answered for a part of an operator in the capture is asked anew.
    forget_answers(env)
    env.guard_or_defer_runtime_assert = demanded
    try:
        with asking(env, decided):
            yield found
    finally:
        del env.guard_or_defer_runtime_assert


def _is_equivalent(node: fx.Node) -> bool:
    """Whether all replacements of an operator compute the same.

    One that writes to a tensor is replaced by the one that makes a new tensor and a copy, which has the sizes of what
    is written to: operands are stretched to these when the graph runs.
    """
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.is_mutable:
        return True
    name = operator_name(node)
    # A pooling into one window is a mean, whose strides differ.
    whole = name.startswith("adaptive_avg_pool") and all(size == 1 for size in node.args[1])  # type: ignore[union-attr]
    return name in EQUIVALENT or whole


def _of_data(expr: Any, run: Any) -> Any:
    """A test of a size that is data: what torch does with nothing at all is what it does with something.

    Two sizes that are compared are equal: the capture has made sure, or the program tests it.
    """
    if isinstance(expr, (sympy.Eq, sympy.Ne)) and all(side.free_symbols for side in expr.args):
        return sympy.true if isinstance(expr, sympy.Eq) else sympy.false
    if is_nonempty(sympy.Not(expr)):
        return sympy.false
    if is_nonempty(expr):
        return sympy.true
    return run()


def _shape_env(program: torch.export.ExportedProgram) -> Any:
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


def operator_name(node: fx.Node) -> str:
    """A node's operator: ``reshape``."""
    target = node.target
    return str(getattr(target, "overloadpacket", target)).rpartition(".")[2]


def place_of(node: fx.Node) -> Location | None:
    """The user's line that a node comes from."""
    found = re.findall(r'File "([^"]+)", line (\d+)[^\n]*\n\s*([^\n]*)', node.meta.get("stack_trace") or "")
    if not found:
        return None
    filename, line, text = found[-1]
    return Location(filename, int(line), None, text or None)
