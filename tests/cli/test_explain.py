"""Every error has a code of its own and a help page whose examples are Python."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap

import pytest

from dy2st import errors

KINDS = list(errors.kinds().values())


def every_class():
    pending = [errors.Dy2stError]
    while pending:
        kind = pending.pop()
        yield kind
        pending += kind.__subclasses__()


def test_codes_are_unique_and_of_their_family():
    own = [kind for kind in every_class() if kind.__module__.startswith("dy2st.")]
    assert len({kind.code for kind in own}) == len(own), sorted(kind.code + " " + kind.__qualname__ for kind in own)
    families = {"Source": "1", "Staging": "2", "Capture": "3", "Onnx": "4", "Parity": "5", "Usage": "9", "Dy2st": "9"}
    for kind in own:
        base = next(each for each in kind.__mro__ if each.__name__.removesuffix("Error") in families)
        assert re.fullmatch(rf"D2S{families[base.__name__.removesuffix('Error')]}\d\d", kind.code), kind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_page_has_examples_that_parse(kind, dy2st_command):
    page = dy2st_command("explain", kind.code.lower()).out
    assert page.startswith(f"{kind.code} {kind.__name__}\n\n")
    examples = re.findall(r"^(Before|After):\n((?:    .*\n|\n)+)", page + "\n", flags=re.MULTILINE)
    assert [title for title, _ in examples] == ["Before", "After"]
    for _, example in examples:
        ast.parse(textwrap.dedent(example))
    assert all(len(line) <= 120 for line in page.splitlines())


def test_every_page_says_what_and_why():
    for kind in KINDS:
        summary, _, rest = inspect.cleandoc(kind.__doc__).partition("\n\n")
        assert summary.endswith(".")
        assert rest


def test_json(dy2st_command):
    page = json.loads(dy2st_command("explain", "D2S201", "--json").out)
    assert page["code"] == "D2S201"
    assert page["text"].startswith("D2S201 StagingError\n")


def test_list(dy2st_command):
    lines = dy2st_command("explain").out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(errors.kinds())
    assert list(json.loads(dy2st_command("explain", "--json").out)) == sorted(errors.kinds())


def test_one_line_errors_read_well():
    place = errors.Location("model.py", 3, 4, "    if x > 0:")
    error = errors.StagingError(
        "'y' is a tensor on one path and a str on the other", hint="give it one kind", location=place
    )
    assert str(error).splitlines() == [
        "model.py:3: D2S201: 'y' is a tensor on one path and a str on the other",
        "    if x > 0:",
        "    ^",
        "  instead: give it one kind",
    ]
