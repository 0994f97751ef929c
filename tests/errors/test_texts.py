"""What an error shows of the user's source, and how it names values."""

from __future__ import annotations

import linecache

import pytest
import torch

from dy2st.errors import Location, StagingError
from dy2st.source.assigning_lines import by_path
from dy2st.source.user_frames import node_location, spot
from dy2st.values.describing import alternatives, describe, shown, sides


@pytest.fixture
def source():
    """A function that makes a file of the given text, as far as ``linecache`` knows."""
    made = []

    def make(text):
        name = f"/source_{len(made)}.py"
        made.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return name

    yield make
    for name in made:
        del linecache.cache[name]


def test_mark_stands_below_the_column():
    place = Location("model.py", 3, 7, "    if x > 0:", 12)
    error = StagingError("what was met", hint="what to write", location=place)
    assert str(error).splitlines() == [
        "model.py:3: D2S201: what was met",
        "    if x > 0:",
        "       ^^^^^",
        "  instead: what to write",
    ]


def test_mark_of_one_column():
    assert Location("model.py", 3, 5, "\t\tif x:\n").excerpt() == ["    if x:", "       ^"]


def test_mark_does_not_pass_the_end_of_the_line():
    assert Location("model.py", 1, 0, "f(x,", 40).excerpt() == ["    f(x,", "    ^^^^"]


@pytest.mark.parametrize("column", [None, 1, 99])
def test_no_mark_outside_of_the_line(column):
    assert Location("model.py", 1, column, "    f(x)").excerpt() == ["    f(x)"]


def test_nothing_without_a_line():
    assert Location("model.py", 1, 3).excerpt() == []
    assert Location("model.py", 1, 3, "  \n").excerpt() == []


def test_columns_count_characters(source):
    name = source("größe = ä + f(x)\n")
    start = "größe = ä + ".encode()
    assert spot(name, 1, len(start), len(start) + 4).excerpt() == ["    größe = ä + f(x)", "                ^^^^"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(2, 3), "a float32[2, 3] tensor"),
        (torch.ones((), dtype=torch.int64), "an int64[] tensor"),
        (3, "the int 3"),
        (None, "None"),
        ("up", "the str 'up'"),
        ("x" * 99, "the str '" + "x" * 38 + "…"),
        ([1], "a list"),
    ],
)
def test_values_in_words(value, words):
    assert describe(value) == words


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1, 2], [1, 2, 3], ("a list of length 2", "a list of length 3")),
        ({"a": 1}, {"a": 1, "b": 2}, ("a dict with the key 'a'", "a dict with the keys 'a', 'b'")),
        ({}, {"b": 2}, ("a dict without keys", "a dict with the key 'b'")),
        (dict.fromkeys(range(9)), dict.fromkeys(range(8)), ("a dict with the key 8", "a dict with 8 keys")),
        ({1}, {1, 2}, ("a set of 1", "a set of 1, 2")),
        (object(), object(), ("one object", "another object")),
        (1, 1.0, ("the int 1", "the float 1.0")),
    ],
)
def test_differences_in_words(a, b, words):
    assert sides(a, b) == words


def test_alternatives():
    assert alternatives([None, 3, "up"]) == "None, the int 3 or the str 'up'"
    assert alternatives([[1], [1, 2]]) == "a list of length 1 or a list of length 2"


def test_returned_values_have_words_for_a_name():
    assert shown(("return", object())) == shown(("value", ("return", object()))) == "the returned value"
    assert shown("h") == "h"


BRANCH = """def f(x):
    h = 0
    if x:
        h = 1
    else:
        h = 2
    if x:
        h = 3
    while x:
        h = 4
    return h if x else None
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (3, "'h' is A on one path (line 4) and B on the other (line 6)"),
        (7, "'h' is A on one path (line 8) and B on the other (from before line 7)"),
        (9, "'h' is A before the loop at line 9 and B after an iteration (line 10)"),
        (11, "'h' is A on one path and B on the other of the conditional expression at line 11"),
        (2, "'h' is A on one path and B on the other of line 2"),
    ],
)
def test_lines_of_both_paths(source, line, words):
    place = Location(source(BRANCH), line)
    assert by_path("h", ("A", "B"), place) == words


def test_lines_of_children_and_attributes(source):
    place = Location(source("if x:\n    h = [1]\n    self.y = 2\nelse:\n    h = [2]\n    self.y = 1\n"), 1)
    assert by_path("h[0]", ("A", "B"), place) == "'h[0]' is A on one path (line 2) and B on the other (line 5)"
    assert by_path("Net.y", ("A", "B"), place) == "'Net.y' is A on one path (line 3) and B on the other (line 6)"


def test_place_of_a_node(source):
    import ast

    text = "x = (1 +\n  f(y))\n"
    call = ast.parse(text).body[0].value.right
    place = node_location(source(text), call)
    assert (place.line, place.column, place.end_column) == (2, 2, 6)
