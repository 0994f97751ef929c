"""Every case, original against rewritten: values, errors, tracebacks, order of evaluation, effects."""

from __future__ import annotations

import cases_branches
import cases_functions
import cases_loops
import cases_matches
import cases_tries
import pytest
from differential import CASES, Case, compare

from dy2st.source.rewriting import is_rewritten, original, rewrite, rewritten_source

assert cases_branches, cases_functions
assert cases_loops, cases_matches
assert cases_tries


def test_there_are_hundreds_of_runs() -> None:
    assert len(CASES) > 200
    assert sum(len(c.arguments) for c in CASES) > 400


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case: Case) -> None:
    for arguments in case.arguments:
        compare(case.function, arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_shape(case: Case) -> None:
    function = case.function
    made = rewrite(function)  # type: ignore[arg-type]
    if made is function:
        return
    assert is_rewritten(made)
    assert original(made) is function
    assert rewrite(made) is made
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__", "__globals__"):
        assert getattr(made, name) is getattr(function, name) or getattr(made, name) == getattr(function, name)
    code, old = made.__code__, function.__code__
    for name in ("co_filename", "co_firstlineno", "co_name", "co_qualname", "co_argcount", "co_kwonlyargcount"):
        assert getattr(code, name) == getattr(old, name), name
    assert code.co_varnames[: old.co_argcount] == old.co_varnames[: old.co_argcount]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_text_compiles(case: Case) -> None:
    text = rewritten_source(case.function)  # type: ignore[arg-type]
    compile(text, "<text>", "exec")
