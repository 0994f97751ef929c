"""``match``: a chain of branches, each on what a native ``match`` found in the structure of the subject."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst import matchers

from dy2st.transforms import build
from dy2st.transforms.analysis.facts import plain_pattern
from dy2st.transforms.analysis.patterns import alternatives, compared, compares_only, parts, whole
from dy2st.transforms.branches import lower_branch
from dy2st.transforms.logic import lazy
from dy2st.transforms.tree import Pass, on

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Step:
    """A pattern that the value of a variable has to match; ``compares`` if it is only compared with it."""

    variable: str
    pattern: cst.MatchPattern
    origin: ast.pattern

    @property
    def compares(self) -> bool:
        """Whether the step is an expression, rather than a native ``match``."""
        return compares_only(self.origin)


class LowerMatch(Pass):
    """Each ``case`` is a branch: on comparisons, on its guard, and on what only Python can tell of the structure.

    A native ``match`` of one case looks at the structure, with the values in it replaced by captures; these are then
    compared, in Python's order. What follows a comparison is looked at only if that holds.

    Before:
        def f(n):
            match n:
                case 1:
                    return "one"
                case (0, [a]):
                    return a
                case [other, _] if other > 1:
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
                    value_5 = False
                    match d2s.subject(subject_2):
                        case (value_5_2, value_5_3):
                            and_5 = d2s.lazy_and(value_5_2 == 0)
                            if and_5.more():
                                match d2s.subject(value_5_3):
                                    case [value_5_4]:
                                        value_5 = True
                            value_5 = d2s.and_test(and_5, value_5)
                    if_5 = d2s.if_(value_5)
                    if if_5.then():
                        with if_5.arm():
                            a = value_5_4
                            return a
                    if if_5.orelse():
                        with if_5.arm():
                            value_7 = False
                            match d2s.subject(subject_2):
                                case [other, _]:
                                    value_7 = other > 1
                            if_7 = d2s.if_(value_7)
                            if if_7.then():
                                with if_7.arm():
                                    return "many"
                            if_7.join()
                    if_5.join()
            if_3.join()

    Order: before branches; its own branches are lowered as they are made.
    Refuses: nothing; a ``match`` on structure alone stays native. So do, inside the small ``match``, alternatives that
        have structure if they stand inside of another pattern, bind names or have a guard, values beside ``**rest``,
        and values before others in a sequence with ``*_``. A comparison is watched if a name that its case binds for
        the guard may be read when either fails.
    Source: Python reference, 8.6 The match statement.
    """

    constructs = (ast.Match,)

    @on(cst.Match)
    def match_(self, node: cst.Match) -> cst.Match | list[cst.BaseStatement]:
        """Rewrite one ``match``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.Match) or any(case not in self.facts.branches for case in origin.cases):
            if not isinstance(origin, ast.Match) or origin not in self.facts.active:
                return node
            watched = self.structured(node.subject, [c.pattern for c in origin.cases], [c.pattern for c in node.cases])
            seen = self.unit.at(watched, self.unit.place(node.subject))
            return node.with_changes(subject=seen, whitespace_after_match=cst.SimpleWhitespace(" "))
        subject = self.unit.names.of(origin, "subject")
        start = build.line(build.assign(subject, node.subject), node.leading_lines)
        return [self.unit.at(start, origin.subject), *self._cases(subject, list(node.cases), origin.cases)]

    def structured(
        self, subject: cst.BaseExpression, origins: list[ast.pattern], patterns: list[cst.MatchPattern]
    ) -> cst.BaseExpression:
        """The subject of a native ``match``; the run time is told whether classes, or True or False, are asked for."""
        kinds = any(isinstance(n, ast.MatchClass) for pattern in origins for n in ast.walk(pattern))
        flags = [cst.Name("True")] if kinds or any(map(_tells_truth, patterns)) else []
        return self.operator("subject", self.unit.fit(build.argument, subject), *flags)

    def _cases(
        self, subject: str, cases: list[cst.MatchCase], origins: list[ast.match_case]
    ) -> list[cst.BaseStatement]:
        if not cases:
            return []
        case, origin = cases[0], origins[0]
        if not plain_pattern(origin.pattern):
            start, test, then = _Case(self, case, origin).lowered(subject)
            leading = () if start else case.leading_lines
            return start + self._branch(subject, cases, origins, test, then, leading)
        lowered: list[cst.BaseStatement] = []
        if isinstance(origin.pattern, ast.MatchAs) and origin.pattern.name is not None:
            bound = build.line(build.assign(origin.pattern.name, cst.Name(subject)))
            lowered.append(self.unit.at(bound, origin.pattern))
        tests = [] if isinstance(origin.pattern, ast.MatchAs) else [self.test(subject, case.pattern, origin.pattern)]
        if case.guard is not None:
            tests.append(case.guard)
        if not tests:
            return [*lowered, *build.body_of(case.body)]
        test = self.all(tests, origin.pattern)
        return lowered + self._branch(subject, cases, origins, test, case.body, case.leading_lines)

    def _branch(
        self,
        subject: str,
        cases: list[cst.MatchCase],
        origins: list[ast.match_case],
        test: cst.BaseExpression,
        then: cst.BaseSuite,
        leading: Sequence[cst.EmptyLine],
    ) -> list[cst.BaseStatement]:
        origin = origins[0]
        rest = self._cases(subject, cases[1:], origins[1:])
        orelse = build.block(rest) if rest else None
        name = self.unit.names.of(origin, "if")
        facts = self.facts.branches[origin]
        return lower_branch(self.unit, name, facts, test, then, orelse, origin.pattern, leading)

    def all(self, tests: list[cst.BaseExpression], place: ast.pattern) -> cst.BaseExpression:
        """The conjunction of tests."""
        return self.unit.at(lazy(self, "and", tests, place.lineno, test=True), place) if len(tests) > 1 else tests[0]

    def test(self, subject: str, pattern: cst.MatchPattern, origin: ast.pattern) -> cst.BaseExpression:
        """The comparison that a pattern makes."""
        test: cst.BaseExpression
        if isinstance(pattern, cst.MatchOr):
            alternatives = origin.patterns if isinstance(origin, ast.MatchOr) else []
            tests = [self.test(subject, p.pattern, a) for p, a in zip(pattern.patterns, alternatives, strict=True)]
            test = lazy(self, "or", tests, origin.lineno, test=True)
        elif isinstance(pattern, cst.MatchSingleton):
            value = pattern.value.with_changes(lpar=[], rpar=[])
            test = self.operator("is_", cst.Name(subject), value)
        elif isinstance(pattern, cst.MatchValue):
            target = cst.ComparisonTarget(cst.Equal(), _on_one_line(pattern.value))
            test = cst.Comparison(cst.Name(subject), [target])
        elif isinstance(pattern, cst.MatchAs):  # the `_` of `0 | _`
            test = cst.Name("True")
        else:
            raise TypeError(type(pattern).__name__)
        return self.unit.at(test, origin)


class _Case:
    """One ``case`` that looks at structure, or captures what it compares."""

    def __init__(self, lowering: LowerMatch, case: cst.MatchCase, origin: ast.match_case) -> None:
        self.lowering = lowering
        self.unit = lowering.unit
        self.case = case
        self.origin = origin
        # Where comparisons are taken out of the pattern, its captures wait for them in variables of their own.
        self.apart = compared(origin.pattern)
        self.captures: dict[str, str] = {}
        self.flag = ""

    def lowered(self, subject: str) -> tuple[list[cst.BaseStatement], cst.BaseExpression, cst.BaseSuite]:
        """The statements that decide the case, the test of its branch, and its suite."""
        pattern, origin = self.case.pattern, self.origin.pattern
        while self.apart and isinstance(pattern, cst.MatchAs) and isinstance(origin, ast.MatchAs):
            assert pattern.pattern is not None
            assert origin.pattern is not None
            if origin.name is not None:
                self.captures[origin.name] = subject
            pattern, origin = pattern.pattern, origin.pattern
        guarded = self.case.guard is not None
        if (
            isinstance(pattern, cst.MatchOr)
            and isinstance(origin, ast.MatchOr)
            and alternatives(origin)
            and not guarded
        ):
            return self._alternatives(subject, pattern, origin)
        first = Step(subject, pattern, origin)
        if first.compares and not guarded:
            return [], self.lowering.test(subject, pattern, origin), self._suite()
        self.flag = self._fresh(origin)
        undecided = build.line(build.assign(self.flag, cst.Name("False")), self.case.leading_lines)
        decide = [self.unit.at(undecided, self.origin.pattern), *self._decide([first])]
        test = self.unit.at(cst.Name(self.flag), self.origin.guard or self.origin.pattern)
        return decide, test, self.case.body if guarded else self._suite()

    def _alternatives(
        self, subject: str, pattern: cst.MatchOr, origin: ast.MatchOr
    ) -> tuple[list[cst.BaseStatement], cst.BaseExpression, cst.BaseSuite]:
        """As ``lowered``: each alternative is tried where those before it did not match."""
        self.apart = True
        decide: list[cst.BaseStatement] = []
        for element, alternative in zip(pattern.patterns, origin.patterns, strict=True):
            before, self.flag = self.flag, self._fresh(alternative)
            leading = () if decide else self.case.leading_lines
            start = build.line(build.assign(self.flag, cst.Name("False")), leading)
            found = self._decide([Step(subject, element.pattern, alternative)])
            decide.append(self.unit.at(start, alternative))
            if not before:
                decide += found
                continue
            name = self.unit.names.fresh("or", alternative.lineno)
            either = self.lowering.operator("or_test", cst.Name(name), cst.Name(self.flag))
            decide += [
                self._assign(name, self.lowering.wrapped("lazy_or", cst.Name(before)), alternative),
                self.unit.at(build.if_(build.method(name, "more"), found), alternative),
                self._assign(self.flag, either, alternative),
            ]
        return decide, self.unit.at(cst.Name(self.flag), origin), self.case.body

    def _fresh(self, origin: ast.pattern) -> str:
        return self.unit.names.fresh("value", origin.lineno)

    def _assign(self, target: str, value: cst.BaseExpression, place: ast.AST | None = None) -> cst.BaseStatement:
        return self.unit.at(build.line(build.assign(target, value)), place or self.origin.pattern)

    def _binds(self) -> list[cst.BaseStatement]:
        return [self._assign(name, cst.Name(value)) for name, value in self.captures.items()]

    def _suite(self) -> cst.BaseSuite:
        if not self.captures:
            return self.case.body
        header = build.comment_of(self.case.body)
        return build.like(self.case.body, [*self._binds(), *build.body_of(self.case.body)], header)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _decide(self, steps: list[Step]) -> list[cst.BaseStatement]:
        """Set the flag if the steps, and the guard, hold: comparisons first, all else inside of what they allow."""
        leading = list(takewhile(lambda step: step.compares, steps))
        tests = [self.lowering.test(s.variable, s.pattern, s.origin) for s in leading]
        rest = steps[len(leading) :]
        guard = self.case.guard
        if not rest and guard is None:
            place = self.origin.pattern
            return [self._assign(self.flag, self.lowering.all(tests, place) if tests else cst.Name("True"))]
        if rest:
            body = [self._structure(rest[0], rest[1:])]
        else:
            assert guard is not None
            body = [*self._binds(), self._assign(self.flag, guard, self.origin.guard)]
        if not tests:
            return body
        place = leading[0].origin
        name = self.unit.names.fresh("and", place.lineno)
        test = self.lowering.all(tests, place)
        if self.origin in self.lowering.facts.native_patterns:
            test = self.lowering.wrapped("truth", test)
        more = build.if_(build.method(name, "more"), body)
        both = self.lowering.operator("and_test", cst.Name(name), cst.Name(self.flag))
        return [
            self._assign(name, self.lowering.wrapped("lazy_and", test), place),
            self.unit.at(more, place),
            self._assign(self.flag, both, place),
        ]

    def _structure(self, step: Step, rest: list[Step]) -> cst.BaseStatement:
        later: list[Step] = []
        pattern = self._shape(step.pattern, step.origin, later, nested=False) if self.apart else step.pattern
        if pattern is not step.pattern:
            self.unit.at(pattern, step.origin)
        case = cst.MatchCase(pattern, build.block(self._decide([*later, *rest])))
        watched = self.lowering.structured(cst.Name(step.variable), [step.origin], [pattern])
        subject = self.unit.at(watched, step.origin)
        return self.unit.at(cst.Match(subject, [case]), step.origin)

    # -- patterns ----------------------------------------------------------------------------------------------------

    def _shape(
        self, pattern: cst.MatchPattern, origin: ast.pattern, later: list[Step], *, nested: bool = True
    ) -> cst.MatchPattern:
        """The part of a pattern that is matched now; what comes after it, in order, goes to ``later``."""
        if isinstance(pattern, cst.MatchAs) and isinstance(origin, ast.MatchAs) and origin.name is not None:
            inner = None
            if pattern.pattern is not None and origin.pattern is not None:
                inner = self._shape(pattern.pattern, origin.pattern, later, nested=nested)
                if isinstance(inner, cst.MatchAs) and inner.pattern is None and inner.name is not None:
                    self.captures[origin.name] = inner.name.value
                    return inner
            return pattern.with_changes(pattern=inner, name=self.capture(origin.name))
        if isinstance(origin, ast.MatchAs):
            return pattern
        # A class runs code of the user's: a ``match`` of its own shows its place.
        if compares_only(origin) or later or (nested and isinstance(origin, ast.MatchClass)):
            step = Step(self._fresh(origin), pattern, origin)
            later.append(step)
            return cst.MatchAs(name=cst.Name(step.variable))
        if whole(origin):
            renamed = pattern.visit(_Renamed(self))
            assert isinstance(renamed, cst.MatchPattern)
            return renamed
        inside = iter(parts(origin))
        changes: dict[str, Any] = {}
        for field in ("patterns", "elements", "kwds"):
            if hasattr(pattern, field):
                changes[field] = [self._part(item, next(inside), later) for item in getattr(pattern, field)]
        if isinstance(pattern, cst.MatchMapping) and pattern.rest is not None:
            changes["rest"] = self.capture(pattern.rest.value)
        return pattern.with_changes(**changes)

    def _part(self, item: cst.CSTNode, origin: ast.pattern, later: list[Step]) -> cst.CSTNode:
        if isinstance(item, cst.MatchStar):
            return item if item.name is None else item.with_changes(name=self.capture(item.name.value))
        if isinstance(item, cst.MatchSequenceElement):
            return item.with_changes(value=self._shape(item.value, origin, later))
        assert isinstance(item, cst.MatchMappingElement | cst.MatchKeywordElement)
        return item.with_changes(pattern=self._shape(item.pattern, origin, later))

    def capture(self, name: str) -> cst.Name:
        """The variable in which a capture waits."""
        if name not in self.captures:
            self.captures[name] = self._fresh(self.origin.pattern)
        return cst.Name(self.captures[name])


class _Renamed(cst.CSTTransformer):
    """Gives the captures of a pattern that stays whole the names in which they wait."""

    def __init__(self, case: _Case) -> None:
        super().__init__()
        self.case = case

    def _of(self, name: cst.Name | None) -> cst.Name | None:
        return None if name is None else self.case.capture(name.value)

    def leave_MatchAs(self, original_node: cst.MatchAs, updated_node: cst.MatchAs) -> cst.MatchAs:
        return updated_node.with_changes(name=self._of(original_node.name))

    def leave_MatchStar(self, original_node: cst.MatchStar, updated_node: cst.MatchStar) -> cst.MatchStar:
        return updated_node.with_changes(name=self._of(original_node.name))

    def leave_MatchMapping(self, original_node: cst.MatchMapping, updated_node: cst.MatchMapping) -> cst.MatchMapping:
        return updated_node.with_changes(rest=self._of(original_node.rest))


def _tells_truth(pattern: cst.MatchPattern) -> bool:
    """Whether a pattern asks whether something is True or False, which no number of the graph is."""
    return bool(matchers.findall(pattern, matchers.MatchSingleton(matchers.Name("True") | matchers.Name("False"))))


def _on_one_line(value: cst.BaseExpression) -> cst.BaseExpression:
    """The parentheses around a pattern no longer let its values span lines."""
    if not value.lpar and "\n" in cst.Module([]).code_for_node(value):
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return value
