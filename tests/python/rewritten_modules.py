"""Rewrites whole modules in place, and runs CPython's own tests of them: a program of its own, told what by JSON."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import signal
import sys
import types
import unittest
from typing import TYPE_CHECKING, Any

from dy2st import operators
from dy2st.errors import SourceError
from dy2st.source.rewriting import is_rewritten, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable


class Rewriter:
    """Replaces functions where they are stored: in modules, classes, and descriptors."""

    def __init__(self) -> None:
        self.rewritten: dict[types.FunctionType, types.FunctionType] = {}
        self.failed: list[str] = []
        self.seen: set[int] = set()

    def function(self, function: types.FunctionType) -> types.FunctionType:
        """The rewritten function, or the function itself if it has no source."""
        if function not in self.rewritten:
            try:
                self.rewritten[function] = rewrite(function)
            except SourceError as error:
                if error.code != "D2S101":
                    self.failed.append(f"{function.__module__}.{function.__qualname__}: {error}")
                self.rewritten[function] = function
        return self.rewritten[function]

    def value(self, value: Any, module: str) -> Any:
        """What replaces a value found in a namespace."""
        match value:
            case types.FunctionType() if value.__module__ == module and not is_rewritten(value):
                wrapped = value.__dict__.get("__wrapped__")
                if (
                    isinstance(wrapped, types.FunctionType)
                    and value.__code__.co_filename != wrapped.__code__.co_filename
                ):
                    return value
                return self.function(value)
            case staticmethod():
                return staticmethod(self.value(value.__func__, module))
            case classmethod():
                return classmethod(self.value(value.__func__, module))
            case property():
                parts = (value.fget, value.fset, value.fdel)
                return property(*(self.value(p, module) for p in parts), value.__doc__)
            case functools.cached_property():
                value.func = self.value(value.func, module)
                return value
            case type() if value.__module__ == module:
                self.namespace(value, module)
        return value

    def namespace(self, owner: Any, module: str, only: Iterable[str] | None = None) -> None:
        """Rewrite what a module or class holds."""
        if id(owner) in self.seen:
            return
        self.seen.add(id(owner))
        for name, value in list(vars(owner).items()):
            if only is not None and name not in only:
                continue
            new = self.value(value, module)
            if new is not value:
                setattr(owner, name, new)

    def references(self) -> None:
        """Rewrite what classes and dicts elsewhere took from a module before (`from heapq import heappush`)."""
        for old, new in list(self.rewritten.items()):
            if old is new:
                continue
            for holder in gc.get_referrers(old):
                if isinstance(holder, dict) and holder is not self.rewritten:
                    for key, value in list(holder.items()):
                        if value is old and key != "__wrapped__":
                            holder[key] = new


def modules_of(names: list[str]) -> list[types.ModuleType]:
    """All module objects of these names that are alive: tests import fresh ones, without the accelerators."""
    found = [importlib.import_module(name) for name in names]
    for candidate in gc.get_objects():
        if isinstance(candidate, types.ModuleType) and candidate.__name__ in names and candidate not in found:
            found.append(candidate)
    return found


def count_calls() -> list[int]:
    """Count the operators that rewritten code runs, so that a suite that never entered any is noticed."""
    count = [0]

    def counted(operator: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            return operator(*args, **kwargs)

        return run

    for name in ("if_", "loop", "call", "item", "target", "lazy_and", "lazy_or", "each"):
        setattr(operators, name, counted(getattr(operators, name)))
    return count


def main(test: str, names: list[str], skipped: list[str]) -> dict[str, Any]:
    """Rewrite the modules, run the tests, and say how it went."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4000))
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromName(test)
    rewriter = Rewriter()
    for module in modules_of(names):
        rewriter.namespace(module, module.__name__)
    if test in names:
        rewriter.namespace(sys.modules[test], test)
        suite = loader.loadTestsFromName(test)
    rewriter.references()
    calls = count_calls()
    result = unittest.TestResult()
    for case in flatten(suite):
        if not any(case.id().endswith(name) for name in skipped):
            case.run(result)
    problems = [f"{case.id()}\n{text[-1500:]}" for case, text in [*result.failures, *result.errors]]
    changed = sum(old is not new for old, new in rewriter.rewritten.items())
    return {
        "run": result.testsRun,
        "problems": problems,
        "skipped": len(result.skipped),
        "functions": len(rewriter.rewritten),
        "rewritten": changed,
        "failed": rewriter.failed,
        "calls": calls[0],
    }


def flatten(suite: Any) -> Iterable[unittest.TestCase]:
    """The test cases of a suite."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


if __name__ == "__main__":
    # A shell starts what runs in the background with interrupts ignored, and some of these tests raise them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(main(**arguments)) + "\n")
