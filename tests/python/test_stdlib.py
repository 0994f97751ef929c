"""The standard library's own algorithms, rewritten function by function, under CPython's own tests of them.

Each row runs in a process of its own, since it changes modules that everything else uses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

pytestmark = pytest.mark.skipif(find_spec("test.support") is None, reason="this interpreter ships no test package")

# The frame itself is what these tests look at, and a rewritten frame has more in it.
TRACED = "sys.settrace also sees the frames of the operators"
CELLS = "a rewritten function has one more cell"
SKIPPED = {
    "test.test_patma": {
        f"TestTracing.test_{name}": TRACED
        for name in (
            "default_wildcard",
            "default_capture",
            "no_default",
            "only_default_wildcard",
            "only_default_capture",
            "unreachable_code",
            "parser_deeply_nested_patterns",
        )
    },
    "test.test_exceptions": {"ExceptionTests.test_recursion_in_except_handler": "counts frames down to the last ten"},
    "test.test_funcattrs": {
        "FunctionPropertiesTest.test___closure__": CELLS,
        "FunctionPropertiesTest.test_invalid___code___assignment": CELLS,
    },
}

# Algorithms: the modules are rewritten.
ALGORITHMS = {
    "test.test_bisect": ["bisect"],
    "test.test_contextlib": ["contextlib"],
    "test.test_heapq": ["heapq"],
}
MORE_ALGORITHMS = {
    "test.test_argparse": ["argparse"],
    "test.test_calendar": ["calendar"],
    "test.test_collections": ["collections"],
    "test.test_colorsys": ["colorsys"],
    "test.test_configparser": ["configparser"],
    "test.test_copy": ["copy"],
    "test.test_csv": ["csv"],
    "test.test_dataclasses": ["dataclasses"],
    "test.test_difflib": ["difflib"],
    "test.test_enum": ["enum"],
    "test.test_fractions": ["fractions"],
    "test.test_graphlib": ["graphlib"],
    "test.test_ipaddress": ["ipaddress"],
    "test.test_json": ["json", "json.encoder", "json.decoder", "json.scanner"],
    "test.test_pprint": ["pprint"],
    "test.test_random": ["random"],
    "test.test_shlex": ["shlex"],
    "test.test_statistics": ["statistics"],
    "test.test_string": ["string"],
    "test.test_textwrap": ["textwrap"],
}
# Language: the test functions themselves are rewritten.
LANGUAGE = ["test.test_generators", pytest.param("test.test_patma", marks=pytest.mark.slow), "test.test_with"]
MORE_LANGUAGE = [
    "test.test_augassign",
    "test.test_bool",
    "test.test_call",
    "test.test_class",
    "test.test_compare",
    "test.test_decorators",
    "test.test_descr",
    "test.test_exceptions",
    "test.test_fstring",
    "test.test_funcattrs",
    "test.test_grammar",
    "test.test_iter",
    "test.test_keywordonlyarg",
    "test.test_named_expressions",
    "test.test_positional_only_arg",
    "test.test_raise",
    "test.test_scope",
    "test.test_super",
]
# `a[i]: 1/0` is Python that libcst does not parse.
UNPARSED = {"test_grammar.GrammarTests.test_var_annot_basic_semantics"}


def run(test: str, names: list[str]) -> None:
    if find_spec(test) is None:
        pytest.skip(f"this interpreter has no {test}")
    job = json.dumps({"test": test, "names": names, "skipped": list(SKIPPED.get(test, ()))})
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(HERE / "rewritten_modules.py"), job]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.strip().splitlines()[-1])
    assert not report["problems"], "\n\n".join(report["problems"])
    failed = [f for f in report["failed"] if not any(name in f for name in UNPARSED)]
    assert not failed, "\n".join(failed)
    assert report["run"] > 0
    assert report["rewritten"] > 0
    assert report["calls"] > 0, "no rewritten code ran"


@pytest.mark.parametrize("test", ALGORITHMS)
def test_algorithms(test: str) -> None:
    run(test, ALGORITHMS[test])


@pytest.mark.slow
@pytest.mark.parametrize("test", MORE_ALGORITHMS)
def test_more_algorithms(test: str) -> None:
    run(test, MORE_ALGORITHMS[test])


@pytest.mark.parametrize("test", LANGUAGE)
def test_language(test: str) -> None:
    run(test, [test])


@pytest.mark.slow
@pytest.mark.parametrize("test", MORE_LANGUAGE)
def test_more_of_the_language(test: str) -> None:
    run(test, [test])
