"""SARIF 2.1.0: what its sections require of each object, and where results point."""

from __future__ import annotations

import json
import re

from dy2st.errors import kinds
from dy2st.report.sarif import render

# What the specification requires and allows of each object that is written here, by its section.
OBJECTS = {
    "sarifLog §3.13": ({"version", "runs"}, {"$schema"}),
    "run §3.14": ({"tool"}, {"invocations", "originalUriBaseIds", "columnKind", "results"}),
    "tool §3.18": ({"driver"}, set()),
    "toolComponent §3.19": ({"name"}, {"version", "rules"}),
    "reportingDescriptor §3.49": (
        {"id"},
        {"name", "shortDescription", "fullDescription", "help", "defaultConfiguration"},
    ),
    "multiformatMessageString §3.12": ({"text"}, {"markdown"}),
    "invocation §3.20": (
        {"executionSuccessful"},
        {"exitCode", "startTimeUtc", "toolExecutionNotifications", "toolConfigurationNotifications"},
    ),
    "notification §3.58": ({"message"}, {"level", "associatedRule"}),
    "result §3.27": (
        {"message"},
        {"ruleId", "ruleIndex", "level", "locations", "partialFingerprints", "properties"},
    ),
    "location §3.28": (set(), {"physicalLocation"}),
    "physicalLocation §3.29": ({"artifactLocation"}, {"region"}),
    "artifactLocation §3.4": (set(), {"uri", "uriBaseId", "description"}),
    "region §3.30": ({"startLine"}, {"startColumn", "endColumn", "snippet"}),
}
LEVELS = {"none", "note", "warning", "error"}


def require(kind, found):
    required, allowed = OBJECTS[kind]
    assert required <= set(found) <= required | allowed, kind
    return found


def log_of(run):
    """The log as a dict, once everything that the specification asks of it is sure."""
    log = require("sarifLog §3.13", json.loads(render(run)))
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    require("run §3.14", one)
    assert one["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    driver = require("toolComponent §3.19", require("tool §3.18", one["tool"])["driver"])
    for rule in driver["rules"]:
        require("reportingDescriptor §3.49", rule)
        for text in ("shortDescription", "fullDescription", "help"):
            assert require("multiformatMessageString §3.12", rule[text])["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for invocation in one["invocations"]:
        require("invocation §3.20", invocation)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", invocation["startTimeUtc"])
        for kind in ("toolExecutionNotifications", "toolConfigurationNotifications"):
            for told in invocation[kind]:
                assert require("notification §3.58", told)["level"] in LEVELS
    for base in one["originalUriBaseIds"].values():
        require("artifactLocation §3.4", base)
    for result in one["results"]:
        require_result(result, driver["rules"], one["originalUriBaseIds"])
    return log


def require_result(result, rules, bases):
    require("result §3.27", result)
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in LEVELS
    assert result["message"]["text"]
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in result["partialFingerprints"].values())
    (place,) = result["locations"]  # a result without one is of no use to code scanning
    physical = require("physicalLocation §3.29", require("location §3.28", place)["physicalLocation"])
    artifact = require("artifactLocation §3.4", physical["artifactLocation"])
    assert re.fullmatch(r"[A-Za-z0-9\-._~!$&'()*+,;=:@%/]+", artifact["uri"])
    if "uriBaseId" in artifact:
        assert artifact["uriBaseId"] in bases
        assert not artifact["uri"].startswith(("/", "file:"))
    else:
        assert artifact["uri"].startswith("file:///")
    region = require("region §3.30", physical["region"])
    assert region["startLine"] >= 1
    assert 1 <= region.get("startColumn", 1) < region.get("endColumn", 1_000_000)


def test_structure(any_run):
    log_of(any_run)


def test_rules_are_the_error_codes_with_their_pages(runs):
    rules = {rule["id"]: rule for rule in log_of(runs["good"])["runs"][0]["tool"]["driver"]["rules"]}
    assert set(kinds()) <= set(rules)
    assert rules["D2S241"]["name"] == kinds()["D2S241"].__name__
    assert "```python\n" in rules["D2S241"]["help"]["markdown"]


def test_results(runs, snapshot):
    (one,) = log_of(runs["full"])["runs"]
    del one["tool"]["driver"]["rules"]
    for result in one["results"]:
        del result["ruleIndex"]  # moves with every new error code
    snapshot("full.sarif", json.dumps(one, indent=2) + "\n")


def test_fingerprints_stay_when_lines_move(runs):
    def prints(run):
        return sorted(each["partialFingerprints"]["dy2st/v1"] for each in log_of(run)["runs"][0]["results"])

    from dataclasses import replace

    before = runs["bad"]
    (target,) = before.targets
    moved = tuple(replace(site, line=site.line + 30) for site in target.report.paths)
    after = replace(before, targets=(replace(target, report=replace(target.report, paths=moved)),))
    assert prints(before) == prints(after)
    assert len(set(prints(before))) == len(prints(before))


def test_an_error_that_has_no_place_is_a_notification(runs):
    (one,) = log_of(runs["missing"])["runs"]
    assert one["results"] == []
    (told,) = one["invocations"][0]["toolConfigurationNotifications"]
    assert told["message"]["text"] == "models/none.py: models/none.py: no such file"
    assert told["associatedRule"] == {"id": "D2S902"}
    assert one["invocations"][0]["executionSuccessful"] is False
