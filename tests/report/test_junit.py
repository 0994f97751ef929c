"""JUnit XML: what Ant's and Jenkins' schemas ask of elements and attributes, and what stands in them."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from dy2st.report.junit import render

# By element: the attributes that must and those that may be there; below, the order of its children.
SUITE = {"id", "name", "package", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}
ATTRIBUTES = {
    "testsuites": (set(), set()),
    "testsuite": (SUITE, SUITE),
    "properties": (set(), set()),
    "property": ({"name", "value"}, {"name", "value"}),
    "testcase": ({"name", "classname", "time"}, {"name", "classname", "time"}),
    "failure": ({"type"}, {"type", "message"}),
    "error": ({"type"}, {"type", "message"}),
    "skipped": (set(), {"message"}),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}
CHILDREN = {
    "testsuites": r"(testsuite )*",
    "testsuite": r"properties (testcase )*system-out system-err ",
    "properties": r"(property )*",
    "testcase": r"((failure|error|skipped) )?",
}


def require_valid(element):
    required, allowed = ATTRIBUTES[element.tag]
    assert required <= set(element.attrib) <= allowed, element.tag
    assert re.fullmatch(CHILDREN.get(element.tag, ""), "".join(f"{child.tag} " for child in element)), element.tag
    if element.tag in CHILDREN:
        assert not (element.text or "").strip()
    for attribute in {"tests", "failures", "errors", "skipped", "id"} & set(element.attrib):
        assert re.fullmatch(r"\d+", element.get(attribute))
    if "time" in element.attrib:
        assert re.fullmatch(r"\d+\.\d{3}", element.get("time"))
    if "timestamp" in element.attrib:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.get("timestamp"))
    for child in element:
        require_valid(child)


def test_structure(any_run):
    suites = ET.fromstring(render(any_run).encode())
    require_valid(suites)
    for suite in suites:
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases) >= 1
        for attribute, cause in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute)) == sum(case.find(cause) is not None for case in cases)
    assert len(suites) == len(any_run.targets)


def test_text(runs, snapshot):
    snapshot("full.xml", render(runs["full"]))


def test_a_case_for_each_input(runs):
    suite = ET.fromstring(render(runs["bad"])).find("testsuite")
    causes = {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}
    assert causes == {
        "input 0 (x: f32[3])": ["failure"],
        "input 1 (x: f32[4])": ["failure"],
        "input up (x: f32[5])": ["error"],
        "input 3 (x: f32[6])": ["skipped"],
        "paths": ["failure"],
    }
    assert [case.get("time") for case in suite.findall("testcase")][:2] == ["0.500", "0.000"]


def test_uncovered_paths_that_are_allowed_are_told_and_do_not_fail(runs):
    from dataclasses import replace

    target = replace(runs["bad"].targets[0], uncovered_fails=False)
    suite = ET.fromstring(render(replace(runs["bad"], targets=(target,)))).find("testsuite")
    (case,) = suite.findall("testcase[@name='paths']")
    assert list(case) == []
    assert "not covered: models/net.py:12: if x.sum() > 0: its else-arm never ran\n" in suite.findtext("system-out")


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\ud800", "\ufffe"])
def test_what_xml_cannot_hold_is_replaced(runs, character):
    from dataclasses import replace

    target = replace(runs["good"].targets[0], target=f"a{character}b")
    suite = ET.fromstring(render(replace(runs["good"], targets=(target,))).encode()).find("testsuite")
    assert suite.get("name") == "a\ufffdb"
