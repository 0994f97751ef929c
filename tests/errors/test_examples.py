"""Every error has a help page whose *Before* raises exactly that error, and whose *After* works.

The full text of each error is kept in snapshots/.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from examples import BASES, KINDS, examples, run

from dy2st.errors import Dy2stError
from dy2st.report import ParityReport

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture
def failure(folder, capsys):
    """A function that runs an example; the code of the error that it raises or prints, and the text."""

    def of(text):
        try:
            run(text)
        except Dy2stError as error:
            code, printed = error.code, f"{error}\n"
        else:
            printed = capsys.readouterr().err
            found = re.search(r"D2S\d{3}", printed)
            code = found[0] if found else None
        return code, printed.replace(str(folder), "<tmp>")

    return of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_before_raises_it(kind, failure, snapshot):
    code, text = failure(examples(kind)["Before"])
    below = [each.code for each in KINDS if issubclass(each, kind)] if kind in BASES else [kind.code]
    assert code in below, text
    snapshot(kind.code, text)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_after_works(kind, folder, capsys):
    done = run(examples(kind)["After"])
    if isinstance(done, ParityReport):
        assert done.ok, str(done)
    else:
        assert done in (None, 0), capsys.readouterr().err


@pytest.mark.parametrize("kind", [each for each in KINDS if each.code.startswith("D2S2")], ids=lambda kind: kind.code)
def test_text_shows_the_place(kind):
    """What can't be staged is shown with its line, a mark under the column, and what to write instead."""
    text = (SNAPSHOTS / f"{kind.code}.txt").read_text()
    first, line, mark, *_ = text.splitlines()
    assert re.match(r"<tmp>/example.py:\d+: D2S\d{3}: ", first), text
    assert set(mark.strip()) == {"^"}, text
    assert len(mark) <= len(line), text
    assert "  instead: " in text, text
