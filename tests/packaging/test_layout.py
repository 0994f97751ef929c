"""The map of the code: how large modules are, what they are called, and where they import."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(
    path
    for top in ("dy2st", "transforms")
    for path in (ROOT / top).rglob("*.py")
    if path.relative_to(ROOT).parts[:2] != ("dy2st", "transforms") and path.name != "__init__.py"
)

SMALLEST, LARGEST = 40, 400
# Smaller ones, and why each stands alone.
SMALL = {
    "dy2st/__main__.py": "what `python -m dy2st` runs",
    "dy2st/calls/builtins/asking_for_compilers.py": "one family of stand-ins",
    "dy2st/calls/builtins/context_stores.py": "one family of stand-ins",
    "dy2st/calls/builtins/torch_control_flow_calls.py": "one family of stand-ins",
    "dy2st/calls/hooks.py": "rewritten like the user's code, which what is around it is not",
    "dy2st/cli/code.py": "a command, loaded when it is asked for",
    "dy2st/cli/explain.py": "a command, loaded when it is asked for",
    "dy2st/errors/cautions.py": "warnings, each beside its help, as the errors are",
    "dy2st/parity/budget.py": "raised through several modules, none of which owns it",
    "dy2st/parity/optimiser.py": "one question, asked of a session that is made for it",
    "dy2st/report/formats.py": "the list of formats",
    "dy2st/report/json_text.py": "shared by the formats that are JSON",
    "dy2st/errors/backends.py": "one family of errors",
    "dy2st/errors/borders.py": "one family of errors",
    "dy2st/values/numpy_floats.py": "one question, asked of numbers from two folders",
    "dy2st/tracing/row_reads.py": "one operator, for values, calls, staging and derivatives",
    "dy2st/tracing/replaced.py": "one context manager, for all that is put in place of something of torch's",
    "dy2st/tracing/other_threads.py": "one patch of torch, held by one test",
    "dy2st/errors/places.py": "how files are named, for all layers",
    "transforms/analysis/python_tests.py": "one question, asked by several passes",
}

# Names that two folders share, because both are about the same construct or the same thing.
SHARED = {
    "branches.py": "the pass, and the operator that it calls, are named after the construct",
    "calls.py": "the same",
    "jumps.py": "the same",
    "logic.py": "the same",
    "loops.py": "the same",
    "stores.py": "the same",
    "muting.py": "the pass, and which statements it is told to mute",
    "names.py": "what a name is, of the passes and of the reproducer",
    "literals.py": "values as source text, in the reproducer and in a search",
    "inputs.py": "the sets of a check, and the options that give them",
    "formats.py": "the formats of a report, and the options that ask for them",
    "exporting.py": "to ONNX, and the errors of that",
    "saving.py": "whole or not at all",
    "source.py": "errors of sources",
    "comparing.py": "sources that are equal, and targets that differ between two runs",
    "paths.py": "the ways through a program: as they are staged, and as they are covered",
    "registry.py": "what is registered, by identity or by function",
    "objects.py": "errors of objects",
    "containers.py": "errors of containers",
}


def lines(path):
    return len(path.read_text().splitlines())


def named(path):
    return path.relative_to(ROOT).as_posix()


def test_modules_are_of_a_size_that_one_reads():
    assert [named(path) for path in MODULES if lines(path) > LARGEST] == []
    small = {named(path) for path in MODULES if lines(path) < SMALLEST}
    assert small - set(SMALL) == set()


def test_reasons_are_given_of_what_is_small_only():
    assert {name for name in SMALL if not (ROOT / name).exists() or lines(ROOT / name) >= SMALLEST} == set()


def test_one_name_means_one_thing():
    by_name = defaultdict(list)
    for path in MODULES:
        by_name[path.name].append(path)
    assert {name for name, paths in by_name.items() if len(paths) > 1} - set(SHARED) == set()


# Where a command or a test begins: what it needs is loaded when it is known what that is.
EDGE = (
    "dy2st/__init__.py",
    "dy2st/__main__.py",
    "dy2st/cli/",
    "dy2st/pytest_plugin.py",
    "dy2st/pytest_checks.py",
    "dy2st/sweep/",
)


def inner_imports(path):
    """The modules of ours that functions of a module import."""
    for outer in ast.walk(ast.parse(path.read_text())):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(outer):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dy2st":
                    yield node.module
                elif isinstance(node, ast.Import):
                    yield from (each.name for each in node.names if each.name.partition(".")[0] == "dy2st")


def test_functions_import_nothing_of_ours_but_at_the_edge():
    found = {(named(path), module) for path in MODULES for module in inner_imports(path)}
    assert {pair for pair in found if not pair[0].startswith(EDGE)} == set()
