"""Outputs of a file that are a list, a value or none, or a text: ONNX's sequences, optionals and strings.

A program gives tensors for these: the stacked elements of a list, the tag of a value that is one of several beside what
it may be. Here the nodes are written that make one output of them.
Source: ONNX operators SplitToSequence-11, SequenceInsert-11, Optional-15, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import onnx_ir as ir

from dy2st.capture.result_forms import ABSENT, CaseForm
from dy2st.embedded.file_outputs import OUTPUTS, FileOutput, as_json
from dy2st.errors import OnnxError, UsageError
from dy2st.onnx.building import BOOL, INT64, constant, loop, op, ops, recording, version
from dy2st.onnx.passes.result_layout import Result, is_plain

OptionalOutputs = Literal["optional", "flag"]

STRING = ir.DataType.STRING
# Those of which onnxruntime can split a tensor into a sequence.
_SPLIT = frozenset((ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, INT64, ir.DataType.INT32, BOOL))


def require_optional_outputs(given: Any) -> None:
    """Accept what may be said of optional outputs.

    Raises:
        UsageError: it is something else.
    """
    if given not in ("optional", "flag"):
        raise UsageError(f"optional_outputs={given!r} is no way to write them", hint='"optional" or "flag"')


def write_outputs(
    model: ir.Model, layout: Sequence[Result], opset: int, optional_outputs: OptionalOutputs
) -> list[FileOutput]:
    """Make the file's outputs of the program's, in place; what each is, with names that may still change.

    Nothing is told where all are tensors of the program.

    Raises:
        OnnxError: with flags, an output has several numbers of dimensions.
    """
    if is_plain(layout):
        return []
    graph = model.graph
    leaves = list(graph.outputs)
    outputs: list[tuple[ir.Value, FileOutput]] = []
    with recording(opset) as recorder:
        for result in layout:
            values = [leaves[leaf] for leaf in result.leaves]
            if result.text is not None:
                made = op("Constant", value=ir.StringTensor([result.text.encode()], shape=ir.Shape([])), dtype=STRING)
                made.name, made.shape = _unused("text", [*leaves, *graph.inputs, *dict(outputs)]), ir.Shape([])
                outputs.append((made, FileOutput(str(made.name), "text", result.place)))
            elif result.is_list:
                made = _named(_sequence(values[0]) if len(values) == 1 else _uneven(*values), values[0])
                outputs.append((made, FileOutput(str(made.name), "sequence", result.place, result.inner)))
            elif result.form is None:
                outputs.append((values[0], FileOutput(str(values[0].name), "tensor", result.place)))
            else:
                outputs += _by_case(result.place, result.form, values, flag=optional_outputs == "flag")
    graph.extend(recorder.nodes)
    graph.outputs[:] = [value for value, _ in outputs]
    return [told for _, told in outputs]


def with_flags(told: Sequence[FileOutput], names: Sequence[Any] | None) -> list[Any]:
    """Names for the outputs, those of flags included, from the names of the others."""
    flags = [each.form == "present" for each in told]
    if not names or not any(flags) or len(names) >= len(flags):
        return list(names or ())
    found: list[Any] = []
    places = itertools.accumulate(not is_flag for is_flag in flags)
    for is_flag, place in zip(flags, places, strict=True):
        if place > len(names):
            break
        name = names[place - 1]
        found.append(f"{name}_present" if is_flag and name else None if is_flag else name)
    return found


def tell_outputs(model: ir.Model, told: Sequence[FileOutput]) -> None:
    """Say in the metadata what the outputs are, where they are not all tensors, by the names that they have now."""
    if not told:
        return
    names = [str(value.name) for value in model.graph.outputs]
    found = [
        replace(each, output=name, present=names[number + 1] if each.form == "flag" else "")
        for number, (each, name) in enumerate(zip(told, names, strict=True))
    ]
    model.metadata_props[OUTPUTS] = as_json(found)


def _named(made: ir.Value, leaf: ir.Value) -> ir.Value:
    """An output by the name of the program's that it is made of."""
    name = str(leaf.name)
    if leaf.is_graph_input():
        made.name = f"{name}_out"
    else:
        made.name, leaf.name = name, f"{name}_inner"
    return made


def _unused(name: str, values: Sequence[ir.Value]) -> str:
    """A name that none of the values has."""
    taken = {value.name for value in values}
    numbered = (f"{name}_{count}" for count in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def _sequence(column: ir.Value) -> ir.Value:
    """The rows of a tensor as a sequence."""
    assert column.dtype is not None
    kind = ir.SequenceType(ir.TensorType(column.dtype))
    if column.dtype in _SPLIT:
        made = op("SplitToSequence", column, axis=0, keepdims=0)
    else:
        begun = _no_sequence(column)

        def body(step: ir.Value, state: Sequence[ir.Value]) -> Any:
            return None, [op("SequenceInsert", state[0], op("Gather", column, step, axis=0))], []

        trips = op("Squeeze", op("Shape", column, start=0, end=1), [0])
        made = loop(trips, [begun], body)[0]
    made.type = kind
    made.shape = None if column.shape is None else ir.Shape(column.shape[1:])
    return made


def _no_sequence(like: ir.Value) -> ir.Value:
    """A sequence of no tensors of a dtype."""
    assert like.dtype is not None
    made = op("SequenceEmpty", dtype=like.dtype)
    made.producer().attributes["dtype"] = ir.AttrInt64("dtype", int(like.dtype))  # type: ignore[union-attr]
    made.type = ir.SequenceType(ir.TensorType(like.dtype))
    return made


def _uneven(flat: ir.Value, sizes: ir.Value) -> ir.Value:
    """The tensors whose numbers are in one row, of the sizes that the rows of the other one say, as a sequence."""

    def body(step: ir.Value, state: Sequence[ir.Value]) -> Any:
        found, begin = state
        size = op("Gather", sizes, step, axis=0)
        end = op("Add", begin, op("ReduceProd", size, keepdims=1))
        piece = op("Reshape", op("Slice", flat, begin, end, [0]), size, allowzero=1)
        return None, [op("SequenceInsert", found, piece), end], []

    trips = op("Squeeze", op("Shape", sizes, start=0, end=1), [0])
    begun = _no_sequence(flat)
    made = loop(trips, [begun, constant([0])], body)[0]
    made.type = begun.type
    return made


def _by_case(
    place: str, form: CaseForm, leaves: Sequence[ir.Value], *, flag: bool
) -> list[tuple[ir.Value, FileOutput]]:
    """The outputs of a value that is one of several."""
    tag, *values = leaves
    texts = any(isinstance(each, str) for each in form.constants)
    absent = [
        tag
        for tag, (where, constant) in enumerate(zip(form.places, form.constants, strict=True))
        if where == ABSENT and constant is None
    ]
    leaf = tag if texts else values[0]
    choices = [_text(form, tag)] if texts else values
    places = [0 if texts else max(where, 0) for where in form.places]
    ranks = {len(value.shape) for value in choices if value.shape is not None}
    if len(ranks) > 1 and flag:
        raise OnnxError(
            f"the model returns tensors of {' and '.join(map(str, sorted(ranks)))} dimensions, depending on the path",
            hint='only an optional may be either: leave out optional_outputs="flag", or reshape it on one path',
        )
    # ONNX wants to know the number of dimensions of an output, but for an optional.
    if not absent and len(ranks) <= 1:
        made = _named(_chosen(tag, places, choices), leaf)
        return [(made, FileOutput(str(made.name), "text" if texts else "tensor", place))]
    if flag:
        present = op("Not", _is_among(tag, absent))
        made = _named(_chosen(tag, places, choices), leaf)
        present.name = f"{made.name}_present"
        present.shape = ir.Shape([])
        return [(made, FileOutput(str(made.name), "flag", place)), (present, FileOutput("", "present", place))]
    made = _named(_optional(tag, absent, places, choices), leaf)
    return [(made, FileOutput(str(made.name), "optional", place))]


def _text(form: CaseForm, tag: ir.Value) -> ir.Value:
    """The text of a case."""
    words = [(each if isinstance(each, str) else "").encode() for each in form.constants]
    table = op("Constant", value=ir.StringTensor(words, shape=ir.Shape([len(words)])), dtype=STRING)
    made = op("Gather", table, tag, axis=0, dtype=STRING)
    made.shape = ir.Shape([])
    return made


def _is_among(tag: ir.Value, cases: Sequence[int]) -> ir.Value:
    """Whether it is one of these cases."""
    found = [op("Equal", tag, case) for case in cases]
    return functools.reduce(lambda a, b: op("Or", a, b), found)


def _chosen(tag: ir.Value, places: Sequence[int], values: Sequence[ir.Value]) -> ir.Value:
    """The value of the case that it is, of any number of dimensions."""
    if len(values) == 1:
        made = op("Identity", values[0])
        made.shape = values[0].shape
        return made
    last = len(values) - 1
    here = _is_among(tag, [case for case, place in enumerate(places) if place == last])
    others = [min(place, last - 1) for place in places]
    made = _if(here, lambda: op("Identity", values[-1]), lambda: _chosen(tag, others, values[:-1]))
    made.type = values[-1].type
    return made


def _optional(tag: ir.Value, absent: Sequence[int], places: Sequence[int], values: Sequence[ir.Value]) -> ir.Value:
    """The value of the case that it is, or none."""
    inner = ir.TensorType(values[0].dtype or STRING)
    kind = ir.OptionalType(inner)
    shape = values[0].shape if len(values) == 1 else None

    def nothing() -> ir.Value:
        made = op("Optional", dtype=inner.dtype, type=ir.AttrTypeProto("type", ir.TypeAndShape(inner, shape)))
        made.type = kind
        return made

    def something() -> ir.Value:
        made = op("Optional", _chosen(tag, places, values))
        made.type, made.shape = kind, shape
        return made

    made = _if(_is_among(tag, absent), nothing, something) if absent else something()
    made.type, made.shape = kind, shape
    return made


def _if(pred: ir.Value, then: Callable[[], ir.Value], orelse: Callable[[], ir.Value]) -> ir.Value:
    """An ``If`` of one result."""
    graphs = {}
    for name, arm in (("then_branch", then), ("else_branch", orelse)):
        with recording(version()) as inside:
            result = arm()
        graphs[name] = ir.Graph((), [result], nodes=inside.nodes, name=name)
    return ops("If", pred, dtypes=(BOOL,), **graphs)[0]
