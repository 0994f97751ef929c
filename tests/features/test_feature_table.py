"""docs/features.md and the tests that cite its rows."""

from __future__ import annotations

from feature_table import FILE, TESTS, Row, citations, differences, table

ROWS = {1: Row("if", frozenset("Y")), 2: Row("try", frozenset("YR"))}
CITED = {1: {"test_a.py::test_if"}, 2: {"test_a.py::test_if", "test_b.py::test_try"}}


def test_every_row_is_cited_and_every_citation_has_a_row() -> None:
    assert set(table(FILE.read_text())) == set(citations(TESTS))


def test_every_row_says_yes_or_refused_and_what_is_refused() -> None:
    for line in FILE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if line.startswith("|") and cells[1].isdigit():
            assert cells[7] in {"Y", "R", "Y/R"}, line
            assert bool(cells[8]) == ("R" in cells[7]), line
    assert list(table(FILE.read_text())) == list(range(1, 76))


def test_a_run_that_finds_what_the_table_says() -> None:
    assert not differences(ROWS, CITED, {1: {"test_a.py::test_if": "Y"}})
    both = {"test_a.py::test_if": "Y", "test_b.py::test_try": "RY"}
    assert not differences(ROWS, CITED, {1: {"test_a.py::test_if": "Y"}, 2: both})


def test_a_finding_that_the_table_does_not_say() -> None:
    (told,) = differences(ROWS, CITED, {1: {"test_a.py::test_if": "RY"}})
    assert told == "row 1 says Y, but test_a.py::test_if found R: if"
    (told,) = differences(ROWS, CITED, {3: {"test_a.py::test_if": "Y"}})
    assert "row 3 is cited by test_a.py::test_if" in told


def test_what_the_table_says_and_no_test_finds() -> None:
    (told,) = differences(ROWS, CITED, {2: {"test_a.py::test_if": "Y", "test_b.py::test_try": "Y"}})
    assert told == "row 2 says Y/R, but no test found R: try"
    # A test that did not run, or failed, may be the one that finds it.
    assert not differences(ROWS, CITED, {2: {"test_a.py::test_if": "Y"}})
    assert not differences(ROWS, CITED, {2: {"test_a.py::test_if": "Y", "test_b.py::test_try": ""}})
    assert not differences(ROWS, {}, {2: {"test_a.py::test_if": "Y", "test_b.py::test_try": "Y"}})
