"""The pytest plugin: the fixture ``dy2st_check``, the marker ``dy2st``, and a summary of what was checked.

A check fails its test where a value differs from eager, where the model is refused, and where the inputs of that test
leave a path of a staged ``if`` or loop untaken. Paths are those of all checks of one test, so a test may check one set
of inputs after the other; each test stands for itself, however the tests are chosen and wherever they run. The summary
tells which paths no test took. Tolerances and the opset come from ``[tool.dy2st]``, as for ``dy2st check``.

Nothing of dy2st, and no torch, is imported before a test checks something.
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Callable, Generator, Mapping
from typing import Any

import pytest

from dy2st.cli.settings import load_settings
from dy2st.pytest_checks import Checks, missed
from dy2st.report.coverage import counted, merged
from dy2st.report.model import PathSite

MARKER = "dy2st"
_FORM = "@pytest.mark.dy2st(inputs, dynamic_shapes=…, rtol=…, …)"


_CHECKS = pytest.StashKey[Checks]()
_SETTINGS = pytest.StashKey[Mapping[str, Any]]()
_SUMMARY = pytest.StashKey["Summary"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("dy2st", "dy2st: eager against the exported program and onnxruntime")
    group.addoption(
        "--dy2st-allow-uncovered", action="store_true", help="let dy2st's checks pass if no input takes some path"
    )
    group.addoption(
        "--dy2st-search",
        type=float,
        metavar="SECONDS",
        help="let each of dy2st's checks look for inputs that take the paths which none takes, for so long",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker, for ``--strict-markers`` and ``pytest --markers``."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(inputs, *, dynamic_shapes, rtol, atol, opset_version, allow_specialize, drop_guards, "
        "state, allow_uncovered): the test returns a model, which is checked on the inputs: sets as for dy2st.check, "
        "or a function that returns them.",
    )
    config.stash[_SUMMARY] = Summary(config)
    config.pluginmanager.register(config.stash[_SUMMARY], "dy2st-summary")


@pytest.fixture
def dy2st_check(request: pytest.FixtureRequest) -> Checks:
    """Check a model: ``dy2st_check(model, (x,))`` fails the test unless the exported model is equal to eager."""
    return _checks(request.node)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin anew, also where a plugin runs a test once more; refuse the marker where it would do nothing."""
    if _CHECKS in item.stash:
        del item.stash[_CHECKS]
    kind = getattr(item, "cls", None)
    if item.get_closest_marker(MARKER) and isinstance(kind, type) and issubclass(kind, unittest.TestCase):
        pytest.fail("the marker dy2st is for functions that return a model, not for methods of unittest", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that has passed if its checks leave paths untaken."""
    yield
    checks = item.stash.get(_CHECKS, None)
    allowed = item.config.getoption("dy2st_allow_uncovered")
    missing = [] if checks is None or allowed else checks.uncovered()
    if missing:
        lines = "\n".join(f"not covered: {line}" for line in missing)
        hint = "inputs that take it (or give the output a value), or on its line: # dy2st: uncovered ok"
        pytest.fail(f"{lines}\n  instead: {hint}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A marked test returns a model: check it."""
    marker = pyfuncitem.get_closest_marker(MARKER)
    if marker is None:
        return (yield)
    bound = _bound(marker)
    test: Callable[..., Any] = pyfuncitem.obj
    model: Any = None

    @functools.wraps(test)
    def calling(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        nonlocal model
        model = test(*args, **kwargs)

    pyfuncitem.obj = calling
    try:
        result = yield
    finally:
        pyfuncitem.obj = test
    if not callable(model):
        if inspect.iscoroutine(model):
            model.close()
        met = "nothing" if model is None else f"a value of type {type(model).__name__}"
        pytest.fail(f"a test marked dy2st returns the model to check; {pyfuncitem.name} returned {met}", pytrace=False)
    given = bound.pop("inputs")
    sets = given() if callable(given) else given
    problem = ""
    try:
        _checks(pyfuncitem)(model, list(sets) if isinstance(sets, tuple) else sets, **bound)
    except AssertionError as error:
        problem = str(error)
    if problem:
        pytest.fail(problem, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Send what was checked with the test's report, for the summary and for ``--junitxml``."""
    checks = item.stash.get(_CHECKS, None) if call.when == "call" else None
    if checks is not None:
        item.user_properties.extend(checks.properties)
    report = yield
    if checks is not None:
        report.dy2st = checks.records
    return report


class Summary:
    """Collects what all tests have checked, also those that pytest-xdist runs in other processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._records: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has ended, here or in a worker."""
        self._records += getattr(report, "dy2st", [])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The section ``dy2st``, if a test has checked something."""
        if not self._records:
            return
        sites = merged(PathSite.from_dict(site) for record in self._records for site in record["paths"])
        outcomes = [record["outcome"] for record in self._records]
        words = {"equal": "equal to eager", "differs": "different", "unusable": "without use", "refused": "refused"}
        found = ", ".join(f"{outcomes.count(each)} {words[each]}" for each in words if each in outcomes)
        models = len({record["model"] for record in self._records})
        checks = f"{len(outcomes)} check{'' if len(outcomes) == 1 else 's'}"
        taken, there_are = counted(sites)
        paths = f"; {taken} of {there_are} paths taken" if sites else ""
        terminalreporter.write_sep("=", "dy2st")
        terminalreporter.write_line(f"{checks} of {models} model{'' if models == 1 else 's'}: {found}{paths}")
        for line in missed(sites, self._config.rootpath):
            terminalreporter.write_line(f"not covered by any test: {line}")


def _checks(item: pytest.Item) -> Checks:
    config = item.config
    made = Checks(config.rootpath, functools.partial(_settings, config), config.getoption("dy2st_search"))
    return item.stash.setdefault(_CHECKS, made)


def _bound(marker: pytest.Mark) -> dict[str, Any]:
    """The marker's arguments by name."""
    try:
        return dict(inspect.signature(_marked).bind(*marker.args, **marker.kwargs).arguments)
    except TypeError as error:
        problem = str(error)
    pytest.fail(f"@pytest.mark.dy2st: {problem}; it is written {_FORM}", pytrace=False)


def _marked(
    inputs: Any,
    *,
    dynamic_shapes: Any = None,
    rtol: Any = None,
    atol: Any = None,
    opset_version: Any = None,
    allow_specialize: Any = (),
    drop_guards: Any = False,
    state: Any = None,
    allow_uncovered: Any = False,
) -> None:
    """What the marker takes."""


def _settings(config: pytest.Config) -> Mapping[str, Any]:
    """What ``[tool.dy2st]`` says of all targets, from the root of the tests upward."""
    if _SETTINGS not in config.stash:
        config.stash[_SETTINGS] = load_settings(config.rootpath).options
    return config.stash[_SETTINGS]
