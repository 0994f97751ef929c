"""Recording ONNX nodes: what translations and passes are written with.

``op("Add", x, 1)`` records a node and gives its output. Numbers among the inputs become constants of the dtype of the
first value, lists become int64 constants. The output has a dtype at once: that of the inputs, or what the operator's
kind says; so a translation can go on from it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import onnx_ir as ir
import torch
from torch.onnx._internal.exporter import _core

INT64, INT32, BOOL = ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL
FLOAT, DOUBLE, FLOAT16, BFLOAT16 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16
FLOATS = frozenset((FLOAT, DOUBLE, FLOAT16, BFLOAT16))

# Where a float32 keeps the double that it was rounded from; torch's exporter calls all symbolic floats float32.
DOUBLE_OF = "dy2st.double"

# The kinds whose first output has another dtype than their first input.
_BOOLEAN = frozenset(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf"))
_INT64 = frozenset(("Shape", "Size", "ArgMax", "ArgMin", "NonZero"))

# The kinds that work element by element, on operands stretched to one shape.
_ELEMENTWISE = _BOOLEAN | frozenset(
    """Abs Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Clip Cos Div Exp Floor Identity Log Max
    Min Mod Mul Neg Not Or Pow Reciprocal Round Sigmoid Sign Sin Sqrt Sub Tanh Where Xor""".split()
)


class Recorder:
    """Where nodes go while a pass, not torch's exporter, builds them."""

    def __init__(self, version: int) -> None:
        self.nodes: list[ir.Node] = []
        self.constant_farm: dict[Any, ir.Value] = {}
        self.version = version


# The innermost one of this thread; torch's exporter has a slot of its own.
_RECORDER: ContextVar[Recorder | None] = ContextVar("dy2st_recorder", default=None)


@contextlib.contextmanager
def recording(version: int) -> Iterator[Recorder]:
    """Record nodes of opset ``version`` into a list of our own."""
    made = Recorder(version)
    token = _RECORDER.set(made)
    try:
        yield made
    finally:
        _RECORDER.reset(token)


def recorder() -> Any:
    """What records now: ours, or torch.onnx's for the node that is being translated."""
    found: Any = _RECORDER.get()
    if found is not None:
        return found
    found = _core.current_tracer
    assert found is not None
    return found


def version() -> int:
    """The opset that is being written."""
    found = recorder()
    return found.version if isinstance(found, Recorder) else int(found.opset.version)


def op(kind: str, *inputs: Any, dtype: Any = None, **attributes: Any) -> ir.Value:
    """Record a node; its first output.

    Args:
        kind: the ONNX operator.
        inputs: values, numbers (constants of the dtype of the first value among them), lists of ints (int64), None.
        dtype: the output's, where it is neither the first input's nor fixed by the operator.
        attributes: ints, floats, strings and lists of them.
    """
    return ops(kind, *inputs, dtypes=(dtype,), **attributes)[0]


def ops(kind: str, *inputs: Any, dtypes: Sequence[Any], **attributes: Any) -> Sequence[ir.Value]:
    """Record a node with as many outputs as ``dtypes`` has entries; None stands for the first input's dtype."""
    like = next((v for v in inputs[kind == "Where" :] if isinstance(v, ir.Value)), None)
    values = [_value(v, like) for v in inputs]
    found = recorder()
    node = ir.Node(
        "",
        kind,
        values,
        attributes=ir.convenience.convert_attributes(attributes),
        num_outputs=len(dtypes),
        version=version(),
    )
    found.nodes.append(node)
    first = values[kind == "Where"] if values else None
    default = BOOL if kind in _BOOLEAN else INT64 if kind in _INT64 else first.dtype if first is not None else None
    for out, dtype in zip(node.outputs, dtypes, strict=True):
        found_dtype = default if dtype is None else ir.DataType(dtype)
        assert found_dtype is not None, f"the dtype of {kind} is not known"
        out.dtype = found_dtype
    if kind in _ELEMENTWISE:
        node.outputs[0].shape = _stretched(values)
    return node.outputs


def _stretched(values: Sequence[ir.Value | None]) -> ir.Shape | None:
    """The shape of an elementwise result; a size that is not known at once is left open."""
    shapes = [value.shape for value in values if value is not None]
    if None in shapes:
        return None
    dims = max(len(shape) for shape in shapes if shape is not None)
    sizes = []
    for d in range(-dims, 0):
        found = {shape[d] for shape in shapes if shape is not None and len(shape) >= -d} - {1}
        sizes.append(1 if not found else found.pop() if len(found) == 1 else None)
    return ir.Shape(sizes)


def _value(given: Any, like: ir.Value | None) -> ir.Value | None:
    if given is None or isinstance(given, ir.Value):
        return given
    if isinstance(given, (list, tuple)):
        return constant(list(given), INT64)
    kind = like.dtype if like is not None else None
    if kind is None:
        kind = BOOL if isinstance(given, bool) else INT64 if isinstance(given, int) else FLOAT
    return constant(given, kind)


def constant(value: Any, dtype: ir.DataType | None = INT64) -> ir.Value:
    """A number, or a list of numbers, as a constant; equal ones are one."""
    assert dtype is not None
    key = (tuple(value) if isinstance(value, list) else value, dtype)
    farm = recorder().constant_farm
    # Zeros with different signs are equal as keys.
    shared = not (isinstance(value, float) and value == 0 and math.copysign(1, value) < 0)
    made = farm.get(key) if shared else None
    if made is None:
        made = op("Constant", value=ir.tensor(value, dtype=dtype), dtype=dtype)
    # torch's exporter puts its own there, of which it says neither.
    made.dtype, made.shape = dtype, ir.Shape([len(value)] if isinstance(value, list) else [])
    if shared:
        farm[key] = made
    return made


def cast(x: Any, dtype: Any) -> ir.Value:
    """``x`` as another dtype."""
    if x.dtype == dtype:
        return x  # type: ignore[no-any-return]
    kept = _double_behind(x) if dtype == DOUBLE else None
    return op("Cast", x, to=int(dtype), dtype=dtype) if kept is None else kept


def _double_behind(x: ir.Value) -> ir.Value | None:
    """The double that a float32 was rounded from, if it stands for a Python float."""
    if DOUBLE_OF not in x.meta and is_symbolic_input(x):
        x.meta[DOUBLE_OF] = ir.Value(name=f"{x.name}_double", type=ir.TensorType(DOUBLE), shape=ir.Shape([]))
    found: ir.Value | None = x.meta.get(DOUBLE_OF)
    return found


def is_symbolic_input(x: ir.Value) -> bool:
    """Whether it is a Python float that a subgraph takes from around."""
    node = x.meta.get("node")
    return x.producer() is None and isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.SymFloat)


def shape_of(x: ir.Value) -> ir.Shape:
    """The sizes, of which a program always knows the number."""
    assert x.shape is not None
    return x.shape


def rank(x: ir.Value) -> int:
    """The number of dimensions."""
    return len(shape_of(x))


def size(x: ir.Value, dim: int) -> int | None:
    """The size of a dimension, if it is fixed."""
    found = shape_of(x)[dim]
    return found if isinstance(found, int) else None


def is_float(x: ir.Value) -> bool:
    """Whether the values are floating-point numbers."""
    return x.dtype in FLOATS


def length(x: ir.Value, dim: int) -> ir.Value:
    """The size of a dimension as an int64 vector of one element."""
    known = size(x, dim)
    if known is not None:
        return constant([known])
    dim %= rank(x)
    return op("Shape", x, start=dim, end=dim + 1)


def vector(value: Any) -> ir.Value:
    """A number, fixed or known only when the graph runs, as an int64 vector of one element."""
    if isinstance(value, ir.Value):
        return op("Reshape", cast(value, INT64), [-1])
    return constant([int(value)])


def scalar_like(value: Any, x: ir.Value) -> ir.Value:
    """A number, fixed or known only when the graph runs, in the dtype of ``x``."""
    if isinstance(value, ir.Value):
        return cast(value, x.dtype) if value.dtype is not None else op("CastLike", value, x, dtype=x.dtype)
    return constant(value if is_float(x) else int(value), x.dtype)


def loop(
    trips: ir.Value | None,
    state: Sequence[ir.Value],
    body: Callable[[ir.Value, Sequence[ir.Value]], tuple[ir.Value | None, Sequence[ir.Value], Sequence[ir.Value]]],
    go: ir.Value | None = None,
) -> Sequence[ir.Value]:
    """An ONNX ``Loop``; ``body(i, state)`` gives whether to go on (None: always), the new state, and rows.

    The results are the state at the end, and the rows stacked in front. ``trips`` is a 0-d int64 value; with no trip
    at all stacked rows have no known shape.
    """
    with recording(version()) as inner:
        step, going = (ir.Value(shape=ir.Shape([]), type=ir.TensorType(dtype)) for dtype in (INT64, BOOL))
        inside = [ir.Value(type=value.type) for value in state]
        go_on, after, rows = body(step, inside)
        results = [op("Identity", going) if go_on is None else go_on, *after, *rows]
    for count, value in enumerate((step, going, *inside)):
        value.name = f"loop_input_{count}"
    graph = ir.Graph([step, going, *inside], results, nodes=inner.nodes, name="body")
    dtypes = [value.dtype for value in (*after, *rows)]
    if trips is None and go is None:
        go = constant(True, BOOL)
    return ops("Loop", trips, go, *state, dtypes=dtypes, body=graph)


def put_in_place(node: ir.Node, nodes: Sequence[ir.Node], values: Sequence[ir.Value]) -> None:
    """Let ``nodes`` take the place of a node of a graph, and ``values`` that of its outputs.

    They get names after the node's outputs, and its metadata beside their own.
    """
    stem = next(out.name for out in node.outputs if out.name)
    results = {id(value) for value in values}
    count = 0
    for made in nodes:
        made.metadata_props.update({**node.metadata_props, **made.metadata_props})
        for out in made.outputs:
            if id(out) not in results:
                out.name = f"{stem}_{count}"
                count += 1
        made.name = f"node_{next(out.name or '' for out in made.outputs)}"
    graph = node.graph
    assert graph is not None
    ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, node.outputs, values)
    for made in nodes:
        made.name = f"node_{made.outputs[0].name}"


def arm(nodes: Sequence[ir.Node], values: Sequence[ir.Value], *, like: ir.Node, name: str) -> ir.Graph:
    """A graph of recorded nodes that gives ``values``, for an arm of a branch that takes the place of ``like``.

    Its nodes have that node's metadata and names after its outputs. All ``values`` are theirs, and none is there twice.
    """
    stem = next(out.name for out in like.outputs if out.name)
    outs = [out for made in nodes for out in made.outputs]
    for count, out in enumerate(outs):
        out.name = f"{stem}_{name}_{count}"
    for made in nodes:
        made.metadata_props.update({**like.metadata_props, **made.metadata_props})
        made.name = f"node_{made.outputs[0].name}"
    return ir.Graph([], values, nodes=nodes, name=name)


def put_before(node: ir.Node, nodes: Sequence[ir.Node], *, stem: str) -> None:
    """Put ``nodes`` before one of a graph, with names that begin with ``stem``, and with its metadata."""
    for count, made in enumerate(nodes):
        made.metadata_props.update({**node.metadata_props, **made.metadata_props})
        for place, out in enumerate(made.outputs):
            out.name = f"{stem}_{count}_{place}" if place else f"{stem}_{count}"
        made.name = f"node_{made.outputs[0].name}"
    graph = node.graph
    assert graph is not None
    graph.insert_before(node, nodes)
