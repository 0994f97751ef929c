"""``match`` on values: a chain of branches."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.branches import lower_branch
from dy2st.transforms.logic import lazy
from dy2st.transforms.tree import Pass, on


class LowerMatch(Pass):
    """A ``match`` whose patterns are values, ``None``/``True``/``False``, alternatives of these, or take everything.

    Before:
        def f(n):
            match n:
                case 1:
                    return "one"
                case other if other > 1:
                    return "many"

    After:
        def f(n):
            subject_2 = n
            if_3 = d2s.if_(subject_2 == 1)
            if if_3.then():
                with if_3.arm():
                    return "one"
            if if_3.orelse():
                with if_3.arm():
                    other = subject_2
                    if_5 = d2s.if_(other > 1)
                    if if_5.then():
                        with if_5.arm():
                            return "many"
                    if_5.join()
            if_3.join()

    Order: before branches; its own branches are lowered as they are made.
    Refuses: any other pattern: the statement stays native, and its guards are watched.
    Source: Python reference, 8.6 The match statement.
    """

    constructs = (ast.Match,)

    @on(cst.Match)
    def match_(self, node: cst.Match) -> cst.Match | list[cst.BaseStatement]:
        """Rewrite one ``match``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.Match) or any(case not in self.facts.branches for case in origin.cases):
            return node
        subject = self.unit.names.of(origin, "subject")
        start = build.line(build.assign(subject, node.subject), node.leading_lines)
        return [self.unit.at(start, origin.subject), *self._cases(subject, list(node.cases), origin.cases)]

    def _cases(
        self, subject: str, cases: list[cst.MatchCase], origins: list[ast.match_case]
    ) -> list[cst.BaseStatement]:
        if not cases:
            return []
        case, origin = cases[0], origins[0]
        lowered: list[cst.BaseStatement] = []
        if isinstance(origin.pattern, ast.MatchAs) and origin.pattern.name is not None:
            bound = build.line(build.assign(origin.pattern.name, build.name(subject)))
            lowered.append(self.unit.at(bound, origin.pattern))
        tests = [] if isinstance(origin.pattern, ast.MatchAs) else [self._test(subject, case.pattern, origin.pattern)]
        if case.guard is not None:
            tests.append(case.guard)
        if not tests:
            return [*lowered, *build.body_of(case.body)]
        rest = self._cases(subject, cases[1:], origins[1:])
        line = origin.pattern.lineno
        test = self.unit.at(lazy(self, "and", tests, line, test=True), origin.pattern) if len(tests) > 1 else tests[0]
        orelse = build.block(rest) if rest else None
        name = self.unit.names.of(origin, "if")
        facts = self.facts.branches[origin]
        return lowered + lower_branch(
            self.unit, name, facts, test, case.body, orelse, origin.pattern, case.leading_lines
        )

    def _test(self, subject: str, pattern: cst.MatchPattern, origin: ast.pattern) -> cst.BaseExpression:
        test: cst.BaseExpression
        if isinstance(pattern, cst.MatchOr):
            alternatives = origin.patterns if isinstance(origin, ast.MatchOr) else []
            tests = [self._test(subject, p.pattern, a) for p, a in zip(pattern.patterns, alternatives, strict=True)]
            test = lazy(self, "or", tests, origin.lineno, test=True)
        elif isinstance(pattern, cst.MatchSingleton):
            value = pattern.value.with_changes(lpar=[], rpar=[])
            if value.value == "None":
                test = self.operator("is_", build.name(subject), value)
            else:
                test = cst.Comparison(build.name(subject), [cst.ComparisonTarget(cst.Is(), value)])
        elif isinstance(pattern, cst.MatchValue):
            test = cst.Comparison(build.name(subject), [cst.ComparisonTarget(cst.Equal(), pattern.value)])
        else:
            raise TypeError(type(pattern).__name__)
        return self.unit.at(test, origin)
