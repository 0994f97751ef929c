"""Markdown: tables that are tables, and no text that becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from dy2st.report import markdown
from dy2st.report.markdown import render


def tokens(text):
    return MarkdownIt("commonmark").enable("table").parse(text)


def test_text(runs, snapshot):
    snapshot("full.md", render(runs["full"]))
    snapshot("bad.md", render(runs["bad"]))


def test_rows_are_as_wide_as_their_table(any_run):
    width = None
    for token in tokens(render(any_run)):
        if token.type == "thead_open":
            width = 0
        elif token.type == "th_open":
            width += 1
        elif token.type == "tr_open":
            cells = 0
        elif token.type == "td_open":
            cells += 1
        elif token.type == "tr_close" and width and cells:
            assert cells == width


def test_texts_stay_texts(runs):
    text = render(runs["hostile"])
    kinds = set()
    markup = ""
    for token in tokens(text):
        for each in token.children or []:
            kinds.add(each.type)
            if each.type == "html_inline":
                markup += each.content
        if token.type == "html_block":
            markup += token.content
    assert kinds <= {"text", "code_inline", "html_inline", "strong_open", "strong_close", "text_special"}
    assert set(re.findall(r"<[^>]*>", markup)) <= {
        "<details>",
        "<details open>",
        "</details>",
        "<summary>",
        "</summary>",
        "<br>",
    }
    assert "@" not in re.sub(r"\\@", "", text)


@pytest.mark.parametrize("count", [1, 3])
def test_details_that_do_not_fit_are_left_out(runs, monkeypatch, count):
    (target,) = runs["bad"].targets
    run = replace(runs["bad"], targets=(runs["good"].targets[0], *[target] * count))
    whole = render(run)
    monkeypatch.setattr(markdown, "MOST_BYTES", len(whole.encode()) - 10)
    short = render(run)
    assert len(short.encode()) < len(whole.encode())
    assert short.endswith("\nThe details of 1 target are left out: they are too long.\n")
    assert short.count("<details open>") == count  # those that fail stay
