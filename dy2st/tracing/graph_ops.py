"""The two graph operators of staged code: ``branch`` and ``loop``.

They take the place of ``torch.cond`` and ``torch.while_loop`` while a program is captured and lowered, because torch's
own (2.13) run every arm several times per level (exponential in the nesting depth), want equal shapes in both arms and
can't stack outputs. Their results are described by the subgraphs' own metadata, so that a subgraph is traced once.

``branch(pred, then, orelse, operands)``: ``pred`` is a 0-d bool tensor; both subgraphs take the operands and return the
same number of tensors, equal in dtype and rank. Source: ONNX operator ``If``.

``loop(body, trips, go, carried, operands, vary, stacked)``: ``body(i, *carried, *operands)`` returns
``(go, *carried, *rows)``: whether to go on (0-d bool), the new carried tensors, and ``stacked`` rows that are stacked
over the iterations. ``trips`` (0-d int64 tensor, int or None) bounds the number of iterations, ``go`` (0-d bool tensor
or None) says whether there is a first one; ``vary`` lists for each carried tensor the dimensions whose size changes
from one iteration to the next, as ``Varying`` says.
Source: ONNX operator ``Loop``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._C import DispatchKey
from torch._higher_order_ops.utils import reenter_make_fx
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, disable_functional_mode
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, disable_proxy_modes_tracing, track_tensor_tree
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from dy2st.tracing.size_facts import ASSUMED, expression, holding
from dy2st.tracing.tracer import at_least, same_size

# A dimension of a carried tensor whose size changes from one iteration to the next; its class, in which sizes are apart
# by the same number in every iteration; how large the least size of the class is at least.
Varying = tuple[int, int, int]


class BranchOperator(HigherOrderOperator):
    """``branch(pred, then, orelse, operands)``."""

    def __init__(self) -> None:
        super().__init__("dy2st_branch")  # type: ignore[no-untyped-call]

    def __call__(self, pred: Any, then: Any, orelse: Any, operands: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Run one of the two subgraphs."""
        return super().__call__(pred, then, orelse, operands)  # type: ignore[no-any-return,no-untyped-call]


class LoopOperator(HigherOrderOperator):
    """``loop(body, trips, go, carried, operands, vary, stacked)``."""

    def __init__(self) -> None:
        super().__init__("dy2st_loop")  # type: ignore[no-untyped-call]

    def __call__(
        self,
        body: Any,
        trips: Any,
        go: Any,
        carried: Sequence[torch.Tensor],
        operands: Sequence[Any],
        vary: Sequence[Sequence[Varying]],
        stacked: int,
    ) -> tuple[torch.Tensor, ...]:
        """Run the body as often as told."""
        return super().__call__(body, trips, go, carried, operands, vary, stacked)  # type: ignore[no-any-return,no-untyped-call]


branch_op = BranchOperator()
loop_op = LoopOperator()


# ---- sizes of the results


def _inner(size: Any, count: int) -> bool:
    return isinstance(size, torch.SymInt) and any(
        int(s.name.lstrip("zuf")) >= count for s in free_unbacked_symbols(size)
    )


def sizes_made(shape_env: Any) -> set[Any]:
    """The symbols that stand for sizes of results of branches and loops; others stand for offsets and values."""
    made: set[Any] = shape_env.__dict__.setdefault("dy2st_sizes", set())
    return made


def fresh_size(shape_env: Any, least: int = 0) -> Any:
    """A new unbacked size of ``least`` or more."""
    size = shape_env.create_unbacked_symint()
    torch._check(size >= least)
    sizes_made(shape_env).add(size.node.expr)
    return size


class SizeTable:
    """Fresh symbols for sizes that aren't known outside; the same symbol for what is known to be the same size.

    Sizes of one class that a loop carries change alike: two that differ by a number before it differ so in each
    iteration. The symbol stands for the least of them.
    """

    def __init__(self, shape_env: Any) -> None:
        self.shape_env = shape_env
        self.made: dict[Any, Any] = {}
        # By class, the least size before the loop.
        self.least: dict[int, Any] = {}

    def note(self, sizes: Sequence[Any], varying: Sequence[Varying]) -> None:
        """Of a tensor before the loop, with the classes of its dimensions."""
        for d, number, _ in varying:
            apart = size_apart(sizes[d], self.least.setdefault(number, sizes[d]))
            if apart is not None and apart < 0:
                self.least[number] = sizes[d]

    def carried(self, number: int, before: Any, least: int) -> Any:
        """The size of a class that is ``before`` in front of the loop; the least of the class is ``least`` or more.

        Classes that are known from another run of the loop may not be those of this one, which will then be found out.
        """
        apart = size_apart(before, self.least[number])
        return self.size((number, expression(before))) if apart is None else self.size(number, least) + apart

    def size(self, key: Any, least: int = 0) -> Any:
        """The symbol for ``key``, which is known to be ``least`` or more."""
        if key not in self.made:
            self.made[key] = fresh_size(self.shape_env, least)
        return self.made[key]


def size_apart(size: Any, other: Any) -> int | None:
    """``size - other``, if that is a number."""
    found = expression(size) - expression(other)
    return found if isinstance(found, int) else int(found) if found.is_Integer else None


def branch_results(shape_env: Any, then: Sequence[Any], orelse: Sequence[Any], count: int) -> tuple[torch.Tensor, ...]:
    """Fake results of a branch, from the fake results of its arms (made when ``count`` symbols existed before).

    A size on which the arms don't agree, or that is born in an arm, becomes a new symbol.
    """
    table = SizeTable(shape_env)

    def joined(a: Any, b: Any) -> Any:
        if not _inner(a, count) and not _inner(b, count) and same_size(a, b):
            return a
        return table.size((expression(a), expression(b)), int(at_least(a, 1) and at_least(b, 1)))

    return tuple(
        torch.empty([joined(i, j) for i, j in zip(a.shape, b.shape, strict=True)], dtype=a.dtype, device=a.device)
        for a, b in zip(then, orelse, strict=True)
    )


def carried_like(table: SizeTable, carried: Sequence[Any], vary: Sequence[Sequence[Varying]]) -> list[Any]:
    """Fake tensors with the carried tensors' types, sizes that change from one iteration to the next being symbols."""
    like = []
    for tensor, varying in zip(carried, vary, strict=True):
        table.note(tensor.shape, varying)
    for tensor, varying in zip(carried, vary, strict=True):
        classes = {d: (number, least) for d, number, least in varying}
        size = []
        for d, s in enumerate(tensor.shape):
            number, least = classes.get(d, (None, 0))
            size.append(s if number is None else table.carried(number, s, least))
        like.append(torch.empty(size, dtype=tensor.dtype, device=tensor.device))
    return like


def loop_results(
    shape_env: Any,
    trips: Any,
    go: Any,
    carried: Sequence[Any],
    body_results: Sequence[Any],
    vary: Sequence[Sequence[Varying]],
    stacked: int,
    can_stop: bool,
) -> tuple[torch.Tensor, ...]:
    """Fake results of a loop: the carried tensors, then the stacked rows."""
    table = SizeTable(shape_env)
    results = carried_like(table, carried, vary)
    if stacked:
        known = isinstance(trips, (int, torch.SymInt)) and go is None and not can_stop
        length = trips if known else table.size("trips")
        for row in body_results[1 + len(carried) :]:
            # Not the symbols of the body: only ``sized`` says that they are the same.
            size = [s if isinstance(s, int) else table.size(("row", expression(s))) for s in row.shape]
            results.append(torch.empty([length, *size], dtype=row.dtype, device=row.device))
    return tuple(results)


# ---- eager


def _run_branch(pred: Any, then: Any, orelse: Any, operands: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    return tuple(then(*operands) if pred else orelse(*operands))


def _run_loop(
    body: Any, trips: Any, go: Any, carried: Sequence[Any], operands: Sequence[Any], vary: Any, stacked: int
) -> tuple[torch.Tensor, ...]:
    limit = None if trips is None else int(trips)
    going = True if go is None else bool(go)
    state = list(carried)
    rows: list[list[torch.Tensor]] = [[] for _ in range(stacked)]
    i = 0
    while going and (limit is None or i < limit):
        results = body(torch.tensor(i), *state, *operands)
        going = bool(results[0])
        state = list(results[1 : 1 + len(state)])
        for kept, row in zip(rows, results[1 + len(state) :], strict=True):
            kept.append(row)
        i += 1
    stacks = []
    for k, kept in enumerate(rows):
        if kept:
            stacks.append(torch.stack(kept))
        else:
            like = _results(body)[1 + len(state) + k].meta["val"]
            size = [int(s) if isinstance(s, int) else 0 for s in like.shape]
            stacks.append(torch.empty([0, *size], dtype=like.dtype, device=like.device))
    return (*state, *stacks)


def _results(module: Any) -> Any:
    """The nodes of a subgraph's results."""
    return next(n for n in reversed(module.graph.nodes) if n.op == "output").args[0]


branch_op.py_impl(DispatchKey.CompositeExplicitAutograd)(_run_branch)
loop_op.py_impl(DispatchKey.CompositeExplicitAutograd)(_run_loop)


def _with_gradients(operator: Any, run: Any) -> Any:
    """Gradients flow through the eager run of the subgraphs themselves; fake tensors have nothing to run."""

    def autograd(*arguments: Any) -> Any:
        if any(isinstance(leaf, FakeTensor) for leaf in pytree.tree_leaves(arguments)):
            with torch._C._AutoDispatchBelowAutograd():
                return operator(*arguments)
        return run(*arguments)

    return autograd


branch_op.py_autograd_impl(_with_gradients(branch_op, _run_branch))
loop_op.py_autograd_impl(_with_gradients(loop_op, _run_loop))


# ---- fake tensors: the subgraphs' metadata say it all


class Functional:
    """A subgraph made free of in-place operators, that still knows what its results look like."""

    def __init__(self, run: Any, module: Any) -> None:
        self.run = run
        self.graph = module.graph
        self.meta = module.meta

    def __call__(self, *arguments: Any) -> Any:
        """Run the subgraph."""
        return self.run(*arguments)


class InStep(fx.Interpreter):
    """Runs a graph node by node, each tensor's earlier writes done before its size is read.

    torch catches up on those writes late, and what it does while it reads a size is recorded nowhere; nor is how many
    elements there are, unless it is known what they are counted of.
    """

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one node."""
        if target in FunctionalTensor.metadata_fns and isinstance(args[0], FunctionalTensor):
            torch._sync(args[0])  # type: ignore[attr-defined,no-untyped-call]
            if target is torch.ops.aten.sym_numel.default:
                with disable_functional_mode():
                    return target(torch._from_functional_tensor(args[0].elem))
        return super().call_function(target, args, kwargs)


def functional(ctx: Any, module: Any) -> Functional:
    """``module`` without in-place operators; run node by node, so that new nodes know where the old ones came from."""

    def run(*arguments: Any) -> Any:
        return InStep(module).run(*arguments)

    return Functional(ctx.functionalize(run), module)


def _metadata(module: Any) -> tuple[Any, ...]:
    return tuple(n.meta["val"] for n in _results(module))


@branch_op.py_impl(FakeTensorMode)
def _fake_branch(mode: Any, pred: Any, then: Any, orelse: Any, operands: Any) -> tuple[torch.Tensor, ...]:
    with mode:
        return branch_results(mode.shape_env, _metadata(then), _metadata(orelse), _first_symbol(then, orelse))


@loop_op.py_impl(FakeTensorMode)
def _fake_loop(
    mode: Any, body: Any, trips: Any, go: Any, carried: Any, operands: Any, vary: Any, stacked: int
) -> tuple[torch.Tensor, ...]:
    with mode:
        return loop_results(mode.shape_env, trips, go, carried, _metadata(body), vary, stacked, _can_stop(body))


def _first_symbol(*modules: Any) -> int:
    return min(int(m.meta.get("first_symbol", 0)) for m in modules)


def _can_stop(body: Any) -> bool:
    """Whether a body's first result is anything but the constant True."""
    go = _results(body)[0]
    while isinstance(go, fx.Node) and go.target in (torch.ops.aten.clone.default, torch.ops.aten.alias.default):
        go = go.args[0]
    return not (isinstance(go, fx.Node) and go.target is torch.ops.aten.full.default and go.args[1] is True)


# ---- traces: each subgraph once


def _fake_mode() -> Any:
    return torch._guards.detect_fake_mode()


def _subgraph(mode: Any, module: Any, arguments: Sequence[Any], prefix: str) -> fx.GraphModule:
    shape_env = _fake_mode().shape_env
    count = shape_env.unbacked_symint_counter
    assumed = getattr(module, "meta", {}).get(ASSUMED, ())
    with disable_proxy_modes_tracing(), shape_env.ignore_fresh_unbacked_symbols(), holding(shape_env, assumed):
        traced: fx.GraphModule = reenter_make_fx(module)(*arguments)
        ranges = dict(shape_env.var_to_range)
    # What its operators demand of sizes holds where it runs: no two are equal elsewhere for that. The capture has seen
    # to their ranges, which torch asks for again.
    inside = {symbol for fact in assumed for symbol in fact.free_symbols}
    shape_env.var_to_range.update({symbol: found for symbol, found in ranges.items() if symbol not in inside})
    traced.meta["first_symbol"], traced.meta[ASSUMED] = count, assumed
    for node, argument in zip(traced.graph.find_nodes(op="placeholder"), arguments, strict=True):
        # A size that is known by now is a number, of which torch notes nothing.
        node.meta.setdefault("val", argument)
    n = 0
    while hasattr(mode.tracer.root, f"{prefix}_{n}"):
        n += 1
    mode.tracer.root.register_module(f"{prefix}_{n}", traced)
    return traced


def _traced(mode: Any, operator: Any, arguments: tuple[Any, ...], name: str) -> Any:
    """The results of an operator whose subgraphs have been traced, and its node."""
    given = pytree.tree_map(mode.tracer.unwrap_proxy, arguments)
    proxy = mode.tracer.create_proxy("call_function", operator, given, {}, name=name)
    with disable_proxy_modes_tracing():
        results = operator(*arguments)
    return track_tensor_tree(results, proxy, constant=None, tracer=mode.tracer)


@branch_op.py_impl(ProxyTorchDispatchMode)
def trace_branch(mode: Any, pred: Any, then: Any, orelse: Any, operands: Any) -> Any:
    """Trace a branch whose arms are graphs, or functions that are traced here; its results."""
    arms = [_subgraph(mode, m, operands, p) for m, p in ((then, "then"), (orelse, "orelse"))]
    arguments = (pred, *arms, tuple(operands))
    return _traced(mode, branch_op, arguments, "branch")


@loop_op.py_impl(ProxyTorchDispatchMode)
def trace_loop(mode: Any, body: Any, trips: Any, go: Any, carried: Any, operands: Any, vary: Any, stacked: int) -> Any:
    """Trace a loop whose body is a graph, or a function that is traced here; its results."""
    fake_mode = _fake_mode()
    with disable_proxy_modes_tracing(), fake_mode.shape_env.ignore_fresh_unbacked_symbols(), fake_mode:
        inside = carried_like(SizeTable(fake_mode.shape_env), carried, vary)
        i = torch.empty((), dtype=torch.int64)
    traced = _subgraph(mode, body, [i, *inside, *operands], "body")
    arguments = (traced, trips, go, tuple(carried), tuple(operands), vary, stacked)
    return _traced(mode, loop_op, arguments, "loop")


@branch_op.py_functionalize_impl
def _functional_branch(ctx: Any, pred: Any, then: Any, orelse: Any, operands: Any) -> Any:
    pred, operands = ctx.unwrap_tensors(pred), ctx.unwrap_tensors(operands)
    with ctx.redispatch_to_next():
        return ctx.wrap_tensors(branch_op(pred, functional(ctx, then), functional(ctx, orelse), operands))


@loop_op.py_functionalize_impl
def _functional_loop(
    ctx: Any, body: Any, trips: Any, go: Any, carried: Any, operands: Any, vary: Any, stacked: int
) -> Any:
    trips, go, carried, operands = (ctx.unwrap_tensors(v) for v in (trips, go, carried, operands))
    with ctx.redispatch_to_next():
        return ctx.wrap_tensors(loop_op(functional(ctx, body), trips, go, carried, operands, vary, stacked))
