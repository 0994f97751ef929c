"""The line that says what a command is doing: on a terminal only, and out of the way of what else is written there."""

from __future__ import annotations

import io
import sys

import pytest

from dy2st.cli.console import progress

ERASED = "\r\x1b[2K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes stderr a terminal, from then on."""

    def make():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return make


def test_the_line_is_gone_before_anything_else_is_written(terminal):
    stream = terminal()
    with progress("net.py") as step:
        step("importing")
        print("a model's own words")  # noqa: T201
        print("(Pdb) ", end="", file=sys.stderr)  # noqa: T201
        step("capturing")
        step("capturing")
    line = [f"{ERASED}net.py: {what}" for what in ("importing", "capturing")]
    assert stream.getvalue() == f"{line[0]}{ERASED}a model's own words\n(Pdb) {line[1]}{ERASED}"


def test_elsewhere_there_is_none(capsys):
    with progress("net.py") as step:
        step("importing")
        print("a model's own words")  # noqa: T201
    assert capsys.readouterr() == ("", "a model's own words\n")


def test_the_line_is_no_longer_than_the_terminal_is_wide(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = terminal()
    with progress("net.py") as step:
        step("comparing input 1 of 2")
    assert stream.getvalue() == f"{ERASED}net.py: comparing i{ERASED}"


def test_not_where_it_is_not_wanted(terminal):
    stream = terminal()
    with progress("net.py", enabled=False) as step:
        step("importing")
    assert stream.getvalue() == ""
