"""The page ``docs/life-of-a-while.md``: what it says is printed at each station is printed there."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import pytest
import torch
from torch.export import Dim

import dy2st
from dy2st import operators
from dy2st.capture.program import capture_program
from dy2st.source.rewriting import rewrite
from dy2st.staging.lattice.join import join
from dy2st.staging.loops.driver import CapturedLoop
from dy2st.staging.loops.loop_emission import LoopEmission
from dy2st.staging.loops.loop_state import LoopState
from dy2st.staging.loops.placeholders import LoopPlaceholders
from dy2st.values.describing import describe

PAGE = Path(__file__).resolve().parents[2] / "docs" / "life-of-a-while.md"
ROOT = PAGE.parents[1]
STATION = re.compile(r"<!-- station: (\w+) -->\n```(\w+)\n(.*?)```\n", re.DOTALL)
SHAPES = ({0: Dim("n")}, None)


def blocks():
    return {name: text for name, _, text in STATION.findall(PAGE.read_text())}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("life") / "halving.py"
    file.write_text(blocks()["model"])
    spec = importlib.util.spec_from_file_location("halving", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.halved


def described(values):
    return ", ".join(f"{name} is {describe(value)}" for name, value in values.items() if isinstance(name, str))


def watched(patch, seen):
    """Let each station say what it has, while a program is captured."""

    def around(cls, name, after):
        native = getattr(cls, name)

        def method(self, *args, **kwargs):
            before = getattr(self, "phase", None)
            result = native(self, *args, **kwargs)
            after(self, args, before, result)
            return result

        patch.setattr(cls, name, method)

    def test(loop, args, before, result):
        names = ", ".join(f'"{name}"' for name in loop.names)
        # A wrapper around what makes the driver would stand between it and the user's frame.
        seen.setdefault("session", [f"loop({names}) gives a {type(loop).__name__} in the phase {before.name}"])
        seen.setdefault("driver", []).append(
            f"{before.name}: test(a bool tensor) is answered {result}, and the phase is {loop.phase.name}"
        )
        assert args[0].dtype is torch.bool

    def placed(heads, _args, _before, _result):
        lines = seen.setdefault("placeholders", [])
        inputs = ", ".join(node.name for node in heads.inputs)
        lines.append(f"run {len(lines) + 1}: {described(heads.values)}; the body's graph takes {inputs}")

    def ended(state, _args, _before, stable):
        lines = seen.setdefault("state", [])
        end = "nothing new" if stable else "new, so the body is traced again"
        lines.append(f"after run {len(lines) + 1}: {', '.join(state.template)} are carried; {end}")

    def emitted(_emission, _args, _before, result):
        seen["results"] = [f"behind the loop: {described(result[0])}"]

    around(CapturedLoop, "test", test)
    around(LoopPlaceholders, "__init__", placed)
    around(LoopState, "end", ended)
    around(LoopEmission, "run", emitted)


def program_of(model):
    return capture_program(model, (torch.tensor([3.0, 4.0]), 1.0), None, dynamic_shapes=SHAPES)


def shown_node(node):
    body, trips, go, carried, read, *_ = node.args
    names = [[each.name for each in part] for part in (carried, read)]
    return f"loop({body.target}, trips={trips}, go={go}, carried=[{', '.join(names[0])}], read=[{', '.join(names[1])}])"


def printed(model):
    """What each station has to show."""
    found = {"model": blocks()["model"].splitlines(), "rewritten": dy2st.code(model).splitlines()}
    code = rewrite(model).__code__
    lines = {line for _, _, line in code.co_lines() if line is not None}
    assert code.co_filename == model.__code__.co_filename
    assert 3 in lines
    found["compiled"] = [f"{code.co_name}, of the user's file: line {code.co_firstlineno}, its while at line 3"]
    driver = operators.loop("steps", "x")
    found["eager"] = [f"{type(driver).__name__}: staged is {driver.staged}, test(3 > 1) is {driver.test(3 > 1)}"]
    with pytest.MonkeyPatch.context() as patch:
        watched(patch, found)
        program = program_of(model)
    (node,) = [node for node in program.graph.nodes if "loop" in str(node.target)]
    found["node"] = [shown_node(node)]
    body = getattr(program.graph_module, node.args[0].target)
    inputs = ", ".join(each.name for each in body.graph.nodes if each.op == "placeholder")
    steps = [
        f"    {each.name} = {each.target}({', '.join(map(str, each.args))})"
        for each in body.graph.nodes
        if each.op == "call_function" and str(each.target).startswith("aten.") and "full" not in str(each.target)
    ]
    found["body"] = [f"{node.args[0].target}({inputs}):", *steps]
    found["join"] = [f"join(0, 1) is {join(0, 1)}", f"join(7, 7) is {join(7, 7)}"]
    file = dy2st.onnx.export(model, (torch.tensor([3.0, 4.0]), torch.tensor(1.0)), dynamic_shapes=SHAPES)
    graph = file.model.graph
    (loop,) = [each for each in graph if each.op_type == "Loop"]
    inner = ", ".join(each.op_type for each in loop.attributes["body"].value)
    found["onnx"] = [", ".join(each.op_type for each in graph), f"the Loop's body: {inner}"]
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def test_each_station_prints_what_the_page_says(model):
    """``UPDATE_SNAPSHOTS=1`` writes the page instead."""
    found = printed(model)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        text = STATION.sub(
            lambda m: f"<!-- station: {m[1]} -->\n```{m[2]}\n{found[m[1]]}```\n",
            PAGE.read_text(),
        )
        PAGE.write_text(text)
    assert blocks() == found


def test_it_passes_through_twelve_files_on_its_way_to_the_program():
    text = PAGE.read_text()
    numbered = re.findall(r"\*\*(\d+)\. `([\w/]+\.py)`\*\*", text)
    assert [int(number) for number, _ in numbered] == list(range(1, 13))
    named = set(re.findall(r"`((?:dy2st|transforms)/[\w/]+\.py)`", text))
    assert {name for name in named if not (ROOT / name).is_file()} == set()
