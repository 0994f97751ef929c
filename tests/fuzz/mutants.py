"""Wrong files: each branch's condition negated, each comparison turned, each constant changed, each write dropped.

``python tests/fuzz/mutants.py [--search 20 --only NAME]`` makes them of the samples and of models with copies, and says
which a check does not find whose inputs cover all paths, and which of these any other input tells from the right file.
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

import dy2st  # noqa: E402
import dy2st.onnx  # noqa: E402
from dy2st.parity import stage_runs  # noqa: E402
from dy2st.parity.dynamic import inferred_dynamic_shapes  # noqa: E402
from dy2st.parity.inputs import InputSet, input_sets  # noqa: E402
from dy2st.parity.missing_paths import find_missing, searchable  # noqa: E402
from dy2st.parity.space import space_of_examples  # noqa: E402
from dy2st.parity.stage_runs import StageRuns  # noqa: E402
from dy2st.parity.stages import eager_reference  # noqa: E402

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
    constants = {each.name: each for graph in graphs(model.graph) for each in graph.initializer}
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
    for name, constant in constants.items():
        if _is_value(constant, name in numbers):
            yield f"{name}: changed", lambda constant=constant: _change(constant)


def _negate(graph: onnx.GraphProto, i: int) -> None:
    node = graph.node[i]
    inverse = helper.make_node("Not", [node.input[0]], [f"{node.input[0]}_negated_{i}"])
    node.input[0] = inverse.output[0]
    graph.node.insert(i, inverse)


def _negate_result(graph: onnx.GraphProto, i: int) -> None:
    node = graph.node[i]
    before, node.output[0] = node.output[0], f"{node.output[0]}_equal"
    graph.node.insert(i + 1, helper.make_node("Not", [node.output[0]], [before]))


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


def judge(model: Any, inputs: Any, seconds: float, others: int = 200) -> Verdict:
    """Make the wrong files of a model, and see which of them inputs find that cover all its paths."""
    sets = input_sets(inputs)
    shapes = inferred_dynamic_shapes(model, sets)
    program = dy2st.export(model, sets[0].args, sets[0].kwargs, dynamic_shapes=shapes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        dy2st.onnx.export(program, f=file, dynamic_shapes=shapes)
        references = [eager_reference(model, each) for each in sets]
        report = dy2st.check(model, inputs)
        if searchable(model, inputs):
            sets += find_missing(model, references, program, seconds=seconds).sets
            report = dy2st.check(model, [(each.args, each.kwargs) if each.kwargs else each.args for each in sets])
        verdict = Verdict(report.covered)
        references = [eager_reference(model, each) for each in sets]
        fresh: list[InputSet] = []
        if searchable(model, inputs):
            space = space_of_examples(model, sets, 7, program)
            fresh = [space.as_set(str(i), space.fresh()) for i in range(others)]
        more = [each for each in (eager_reference(model, inputs) for inputs in fresh) if not each.problem]
        # Eager may broadcast along a size that the file declares to be another one's: such a set is refused by its run.
        more = [each for each in more if not _refused(model, file, each)]
        if not _equal(model, file, [*references, *more]):
            verdict.alarms.append("the file itself")
        whole = onnx.load(file)
        for what, wrong in mutants(whole):
            changed = Path(folder) / "wrong.onnx"
            onnx.save(wrong, changed)
            if not _equal(model, changed, references):
                verdict.found += 1
            elif not _equal(model, changed, more):
                verdict.missed.append(what)
            else:
                verdict.same.append(what)
    return verdict


def _refused(model: Any, file: Path, reference: Any) -> bool:
    stages = StageRuns(model, onnx_file=file, localise=False).results(reference, lambda _: None)
    return any(stage.status == "error" for stage in stages)


def _equal(model: Any, file: Path, references: list[Any]) -> bool:
    try:
        runs = StageRuns(model, onnx_file=file, localise=False)
    except Exception:  # noqa: BLE001  no file that can be run
        return False
    return all(stage.status == "equal" for each in references for stage in runs.results(each, lambda _: None))


def targets() -> Iterator[tuple[str, Any, Any]]:
    """The models: those of this folder, and the samples."""
    from mutated_models import MODELS

    for name, (model, inputs) in MODELS.items():
        yield name, model, inputs
    for path in sorted((HERE.parents[1] / "samples").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"sample_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        yield path.stem, module.model, module.example_inputs()


def main() -> int:
    """Judge all models, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", type=float, default=20.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    stage_runs.LEAST_LIMIT = 2.0  # what a wrong file never leaves
    total = missed = 0
    for name, model, inputs in targets():
        if options.only not in name:
            continue
        try:
            verdict = judge(model, inputs, options.search)
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
