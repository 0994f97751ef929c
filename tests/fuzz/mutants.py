"""Wrong files: each condition negated, each comparison turned or loosened, each constant changed, each write dropped.

``python tests/fuzz/mutants.py [--search 20 --only NAME]`` makes them of the samples, of models with copies and of
streams, and says which a check with a search does not find, and which of these other inputs tell from the right file.
"""

# ruff: noqa: T201 - what a script prints is its result
from __future__ import annotations

import argparse
import copy
import importlib.util
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from dy2st.parity import stage_runs  # noqa: E402
from dy2st.parity.calls_in_a_row import CallsInARow  # noqa: E402
from dy2st.parity.checking import compare_stages, eager_references, export_for  # noqa: E402
from dy2st.parity.inputs import InputSet, sequence_of  # noqa: E402
from dy2st.parity.long_streams import Streams  # noqa: E402
from dy2st.parity.missing_paths import find_missing, searchable  # noqa: E402
from dy2st.parity.more_sets import MoreSets  # noqa: E402
from dy2st.parity.space import space_of_examples  # noqa: E402
from dy2st.parity.stage_runs import StageRuns  # noqa: E402
from dy2st.parity.stages import Reference, eager_reference  # noqa: E402
from dy2st.parity.stateful_calls import continued  # noqa: E402

LOOSENED = {"Less": "LessOrEqual", "LessOrEqual": "Less", "Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater"}
TURNED = {"Less": "Greater", "Greater": "Less", "LessOrEqual": "GreaterOrEqual", "GreaterOrEqual": "LessOrEqual"}
# Where a whole number is a value, and no axis or shape.
_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Div", "Mod", "Equal", "Where", "Min", "Max", *TURNED))
Change = Callable[[], None]


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside of its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def changes(model: onnx.ModelProto) -> Iterator[tuple[str, Change]]:
    """What can be made wrong in a file: in words, and a function that does it, once."""
    numbers = {
        name
        for graph in graphs(model.graph)
        for node in graph.node
        if node.op_type in _ARITHMETIC
        for name in node.input
    }
    for graph in graphs(model.graph):
        for i, node in enumerate(graph.node):
            name = node.name or node.output[0]
            if node.op_type == "If":
                yield f"{name}: negated", lambda graph=graph, i=i: _negate(graph, i)
            elif node.op_type in TURNED:
                yield f"{name}: turned", lambda node=node: setattr(node, "op_type", TURNED[node.op_type])
                yield f"{name}: loosened", lambda node=node: setattr(node, "op_type", LOOSENED[node.op_type])
            elif node.op_type == "Equal":
                yield f"{name}: not equal", lambda graph=graph, i=i: _negate_result(graph, i)
            elif (
                node.op_type == "Constant"
                and node.attribute[0].name == "value"
                and _is_value(node.attribute[0].t, node.output[0] in numbers)
            ):
                yield f"{name}: changed", lambda node=node: _change(node.attribute[0].t)
            elif node.op_type == "Loop":
                body = next(each.g for each in node.attribute if each.name == "body")
                for k in range(len(node.input) - 2):
                    yield f"{name}: write {k} dropped", lambda body=body, k=k: _drop(body, k)
                if node.input[0]:
                    for more in (1, -1):
                        yield f"{name}: trips {more:+}", lambda graph=graph, i=i, more=more: _limit(graph, i, more)
    yield from _changes_of_values(model, numbers)


def _changes_of_values(model: onnx.ModelProto, numbers: set[str]) -> Iterator[tuple[str, Change]]:
    """``numbers`` are what arithmetic takes; the first values of what is state are numbers as well."""
    constants = {each.name: each for graph in graphs(model.graph) for each in graph.initializer}
    given = {each.name for each in model.graph.input}
    for name, constant in constants.items():
        if name in given and numpy_helper.to_array(constant).dtype == np.bool_:
            yield f"{name}: first value changed", lambda constant=constant: _turn(constant)
        elif _is_value(constant, name in numbers or name in given):
            yield f"{name}: changed", lambda constant=constant: _change(constant)
    for output in model.graph.output:
        if output.name.removesuffix("_next") in given:
            yield f"{output.name}: not written", lambda name=output.name: _forget(model, name)


def _negate(graph: onnx.GraphProto, i: int) -> None:
    node = graph.node[i]
    inverse = helper.make_node("Not", [node.input[0]], [f"{node.input[0]}_negated_{i}"])
    node.input[0] = inverse.output[0]
    graph.node.insert(i, inverse)


def _negate_result(graph: onnx.GraphProto, i: int) -> None:
    node = graph.node[i]
    before, node.output[0] = node.output[0], f"{node.output[0]}_equal"
    graph.node.insert(i + 1, helper.make_node("Not", [node.output[0]], [before]))


def _limit(graph: onnx.GraphProto, i: int, more: int) -> None:
    node, name = graph.node[i], f"{graph.node[i].input[0]}_{i}"
    made = [
        helper.make_node("Constant", [], [f"{name}_more"], value=numpy_helper.from_array(np.array(more))),
        helper.make_node("Constant", [], [f"{name}_none"], value=numpy_helper.from_array(np.array(0))),
        helper.make_node("Add", [node.input[0], f"{name}_more"], [f"{name}_sum"]),
        helper.make_node("Max", [f"{name}_sum", f"{name}_none"], [f"{name}_limit"]),
    ]
    node.input[0] = f"{name}_limit"
    for k, each in enumerate(made):
        graph.node.insert(i + k, each)


def _forget(model: onnx.ModelProto, name: str) -> None:
    """The new state is the old one."""
    for graph in graphs(model.graph):
        for node in graph.node:
            for names in (node.input, node.output):
                for k, each in enumerate(names):
                    names[k] = f"{name}_lost" if each == name else each
    model.graph.node.append(helper.make_node("Identity", [name.removesuffix("_next")], [name]))


def _turn(tensor: onnx.TensorProto) -> None:
    tensor.CopyFrom(numpy_helper.from_array(~numpy_helper.to_array(tensor), tensor.name))


def _is_value(tensor: onnx.TensorProto, is_number: bool) -> bool:
    value = numpy_helper.to_array(tensor)
    return 0 < value.size <= 16 and (
        value.dtype.kind == "f" or (value.dtype.kind == "i" and is_number and value.size == 1)
    )


def _change(tensor: onnx.TensorProto) -> None:
    value = numpy_helper.to_array(tensor)
    step = np.ones((), value.dtype) if value.dtype.kind == "i" else value.dtype.type(0.25)
    tensor.CopyFrom(numpy_helper.from_array((value + step).reshape(value.shape), tensor.name))


def _drop(body: onnx.GraphProto, k: int) -> None:
    """What an iteration gives in place of a carried value is what it was given."""
    given, result = body.input[2 + k].name, body.output[1 + k].name
    if given == result:
        return
    body.node.append(helper.make_node("Identity", [given], [f"{result}_dropped"]))
    body.output[1 + k].name = f"{result}_dropped"


def mutants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Each wrong file with what is wrong in it."""
    for number, (what, _) in enumerate(changes(copy.deepcopy(model))):
        made = copy.deepcopy(model)
        next(change for i, (_, change) in enumerate(changes(made)) if i == number)()
        yield what, made


@dataclass
class Verdict:
    """What became of the wrong files of one model."""

    covered: bool
    found: int = 0
    same: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)


def judge(model: Any, inputs: Any, seconds: float, others: int = 300, dynamic_shapes: Any = None) -> Verdict:
    """Make the wrong files of a model, and see which of them a check with a search finds.

    ``dynamic_shapes`` are those that are declared, if any: of other sizes a file says that it does not take them.

    Those that it does not find run on ``others`` more inputs at random; where the file itself is right, and the
    wrong one is not, it was missed.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        references = eager_references(model, inputs)
        program = export_for(model, references, file, dynamic_shapes=dynamic_shapes)
        more: list[list[Reference]] = []
        fresh: list[list[Reference]] = []
        sets = [each.inputs for each in references]
        if searchable(model, inputs):
            found = find_missing(model, references, program, seconds=seconds)
            references += [eager_reference(model, each) for each in found.sets]
            more = list(MoreSets(model, found.more, program, seconds).sequences())
            fresh = _fresh(model, sets, program, others)
        called, references = continued(model, references, program)
        report = compare_stages(called, references, program=program, onnx_file=file)
        verdict = Verdict(report.covered, alarms=[] if report.ok else [*report.problems()])
        right = StageRuns(called, onnx_file=file, localise=False)
        verdict.alarms += [f"differs on {each[0].inputs.args}" for each in more if _differs(right, each)]
        fresh = [each for each in fresh if not _differs(right, each)]
        whole = onnx.load(file)
        for what, wrong in mutants(whole):
            changed = Path(folder) / "wrong.onnx"
            onnx.save(wrong, changed)
            if not _equal(called, changed, [references, *more]):
                verdict.found += 1
            elif not _equal(called, changed, fresh):
                verdict.missed.append(what)
            else:
                verdict.same.append(what)
    return verdict


def _fresh(model: Any, sets: list[InputSet], program: Any, count: int) -> list[list[Reference]]:
    """What eager does on sets at random; of a model with state, on sequences of three calls and of twenty."""
    space = space_of_examples(model, sets, 7, program)
    row = CallsInARow.of_program(model, program, sets[0])
    space = space if row is None else row.space(space)
    drawn = [space.as_set(f"fresh_{i}", space.fresh(("random", "wide", "grid"))) for i in range(count)]
    sets = drawn if row is None else [call for each in drawn for call in row.calls(each)]
    found = list(MoreSets(model, sets, program, 60.0).sequences())
    for number in range(0 if row is None else count // 20):
        calls = Streams(row, space, sets[:1], seconds=0.0, limit=1.0).stream(number + 1, most=20)
        following = [Reference(each) for each in sequence_of(f"fresh_stream_{number}", calls)]
        _, references = continued(model, following, program)
        found.append([each for each in references if not each.problem])
    return found


def _differs(runs: StageRuns, sequence: list[Reference]) -> bool:
    return any([runs.disagrees(each) for each in sequence])  # noqa: C419 - each call goes on from the last


def _equal(model: Any, file: Path, sequences: list[list[Reference]]) -> bool:
    try:
        runs = StageRuns(model, onnx_file=file, localise=False)
    except Exception:  # noqa: BLE001  no file that can be run
        return False
    return not any(_differs(runs, each) for each in sequences)


def targets() -> Iterator[tuple[str, Any, Any, Any]]:
    """The models: those of this folder, and the samples; with their inputs, and the sizes that they declare."""
    from mutated_models import MODELS
    from mutated_streams import STREAMS

    for name, (model, inputs) in [*MODELS.items(), *STREAMS.items()]:
        yield name, model, inputs, None
    for path in sorted((HERE.parents[1] / "samples").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"sample_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        yield path.stem, module.model, module.example_inputs(), getattr(module, "dynamic_shapes", None)


def main() -> int:
    """Judge all models, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", type=float, default=20.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stage_runs.LEAST_LIMIT = 2.0  # what a wrong file never leaves
    total = missed = 0
    for name, model, inputs, shapes in targets():
        if options.only not in name:
            continue
        try:
            verdict = judge(model, inputs, options.search, dynamic_shapes=shapes)
        except Exception as error:  # noqa: BLE001  one model is no reason to stop
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        count = verdict.found + len(verdict.same) + len(verdict.missed)
        total, missed = total + count, missed + len(verdict.missed)
        covered = "covered" if verdict.covered else "not covered"
        print(
            f"{name}: {covered}, {count} wrong files: {verdict.found} found, {len(verdict.same)} tell nobody",
            *verdict.alarms,
            flush=True,
        )
        for each in verdict.missed:
            print(f"    missed: {each}")
        for each in verdict.same:
            print(f"    the same: {each}")
    print(f"{total} wrong files, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
