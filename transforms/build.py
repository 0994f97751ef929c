"""Small builders of libcst nodes, so that passes read like the code they write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Expression = cst.BaseExpression
BARE = cst.ParenthesizedWhitespace


def attribute(owner: str | Expression, attr: str) -> cst.Attribute:
    """``owner.attr``."""
    return cst.Attribute(cst.Name(owner) if isinstance(owner, str) else owner, cst.Name(attr))


def call(function: Expression, *args: Expression | cst.Arg) -> cst.Call:
    """``function(args)``."""
    return cst.Call(function, [a if isinstance(a, cst.Arg) else cst.Arg(parenthesized(a)) for a in args])


def method(owner: str, attr: str, *args: Expression | cst.Arg) -> cst.Call:
    """``owner.attr(args)``."""
    return call(attribute(owner, attr), *args)


def keyword(word: str, value: Expression) -> cst.Arg:
    """``word=value`` as an argument."""
    space = cst.SimpleWhitespace("")
    return cst.Arg(value, keyword=cst.Name(word), equal=cst.AssignEqual(space, space))


def parenthesized(value: Expression) -> Expression:
    """``value`` as it may stand in an argument list: a bare tuple, ``:=`` or ``yield`` needs its parentheses."""
    if isinstance(value, (cst.Tuple, cst.GeneratorExp, cst.Yield)) and not value.lpar:
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return value


def grouped(value: Expression) -> Expression:
    """``value`` in parentheses, unless it is an atom."""
    atoms = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber, cst.BaseString, cst.List, cst.Dict)
    if isinstance(value, atoms) or value.lpar:
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def bare(value: Expression) -> Expression:
    """``value`` without redundant parentheses of its own, where they no longer matter (an argument)."""
    needs = isinstance(value, (cst.Tuple, cst.GeneratorExp, cst.Yield, cst.NamedExpr))
    if value.lpar and not needs and not _spans_lines(value):
        return value.with_changes(lpar=[], rpar=[])
    return value


def _spans_lines(value: Expression) -> bool:
    # Comments and line breaks inside parentheses stay where they are.
    return any(isinstance(p.whitespace_after, BARE) for p in value.lpar) or any(
        isinstance(p.whitespace_before, BARE) for p in value.rpar
    )


def string(value: str, quote: str = '"') -> cst.SimpleString:
    """A literal of a plain name."""
    return cst.SimpleString(f"{quote}{value}{quote}")


def strings(values: Sequence[str]) -> cst.Tuple:
    """A tuple of literals of plain names."""
    last = len(values) - 1
    space = cst.SimpleWhitespace(" ")
    comma, end = cst.Comma(whitespace_after=space), cst.Comma()
    return cst.Tuple(
        [
            cst.Element(string(each), comma=end)
            if last == 0
            else cst.Element(string(each), comma=comma)
            if i < last
            else cst.Element(string(each))
            for i, each in enumerate(values)
        ]
    )


def walrus(target: str, value: Expression) -> cst.Arg:
    """``target := value`` as an argument."""
    return cst.Arg(cst.NamedExpr(cst.Name(target), grouped(value) if isinstance(value, cst.NamedExpr) else value))


def argument(value: Expression) -> Expression:
    """``value`` as it stands in an argument list: without parentheses of its own, unless it needs them."""
    return parenthesized(bare(value))


def arm(value: Expression) -> Expression:
    """``value`` as it stands in front of ``if``."""
    loose = (cst.IfExp, cst.Lambda, cst.NamedExpr, cst.Tuple, cst.Yield)
    return grouped(value) if isinstance(value, loose) else value


def ternary(test: Expression, then: Expression) -> cst.IfExp:
    """``then if test else None``."""
    return cst.IfExp(test=test, body=then, orelse=cst.Name("None"))


def rebound(driver: str, how: str, names: Sequence[str]) -> Expression:
    """``driver.staged and [a := driver.how("a")]``."""
    again = [cst.Element(cst.NamedExpr(cst.Name(each), method(driver, how, string(each)))) for each in names]
    return cst.BooleanOperation(attribute(driver, "staged"), cst.And(), cst.List(again))


def pair(first: Expression, second: Expression, chosen: int) -> cst.Subscript:
    """``(first, second)[chosen]``: both are evaluated."""
    both = cst.Tuple(
        [cst.Element(grouped(each) if isinstance(each, cst.NamedExpr) else each) for each in (first, second)]
    )
    return cst.Subscript(both, [cst.SubscriptElement(cst.Index(cst.Integer(str(chosen))))])


def line(
    statement: cst.BaseSmallStatement,
    leading_lines: Sequence[cst.EmptyLine] = (),
    trailing_whitespace: cst.TrailingWhitespace | None = None,
) -> cst.SimpleStatementLine:
    """A statement on a line of its own."""
    if trailing_whitespace is None:
        return cst.SimpleStatementLine([statement], leading_lines)
    return cst.SimpleStatementLine([statement], leading_lines, trailing_whitespace)


def assign(target: str, value: Expression) -> cst.Assign:
    """``target = value``."""
    return cst.Assign([cst.AssignTarget(cst.Name(target))], value)


def unpack(targets: Sequence[str], value: Expression) -> cst.Assign:
    """``a, b = value``; one target keeps its comma."""
    last = len(targets) - 1
    elements = [
        cst.Element(cst.Name(t), comma=cst.Comma(whitespace_after=cst.SimpleWhitespace("" if i == last else " ")))
        if i < last or last == 0
        else cst.Element(cst.Name(t))
        for i, t in enumerate(targets)
    ]
    return cst.Assign([cst.AssignTarget(cst.Tuple(elements, lpar=[], rpar=[]))], value)


def block(body: Iterable[cst.BaseStatement]) -> cst.IndentedBlock:
    """An indented suite."""
    return cst.IndentedBlock(list(body))


def body_of(suite: cst.BaseSuite) -> list[cst.BaseStatement]:
    """The statements of a suite, as lines."""
    if isinstance(suite, cst.IndentedBlock):
        return list(suite.body)
    if isinstance(suite, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)]
    raise TypeError(type(suite).__name__)


def comment_of(suite: cst.BaseSuite) -> cst.TrailingWhitespace | None:
    """The comment behind the colon of an indented suite."""
    if isinstance(suite, cst.IndentedBlock) and suite.header.comment is not None:
        return suite.header
    return None


def like(
    suite: cst.BaseSuite, body: Iterable[cst.BaseStatement], header: cst.TrailingWhitespace | None = None
) -> cst.IndentedBlock:
    """A suite with another body, but the indent and the last comments of the old one."""
    header = header or cst.TrailingWhitespace()
    if isinstance(suite, cst.IndentedBlock):
        return suite.with_changes(body=list(body), header=header)
    return cst.IndentedBlock(list(body), header=header)


def enclosing(suite: cst.BaseSuite, only: cst.BaseStatement) -> cst.IndentedBlock:
    """A suite of one statement that took in all of ``suite``, but the comment behind the colon."""
    return block([only]).with_changes(header=comment_of(suite) or cst.TrailingWhitespace())


def if_(test: Expression, body: Iterable[cst.BaseStatement], leading: Sequence[cst.EmptyLine] = ()) -> cst.If:
    """``if test:`` and a suite."""
    return cst.If(test, block(body), leading_lines=leading)


def if_line(test: Expression, statement: cst.BaseSmallStatement) -> cst.If:
    """``if test: statement`` on one line."""
    return cst.If(test, cst.SimpleStatementSuite([statement]))


def with_(
    context: Expression, body: Iterable[cst.BaseStatement] | cst.BaseSuite, target: str | None = None
) -> cst.With:
    """``with context as target:`` and a suite."""
    asname = None if target is None else cst.AsName(cst.Name(target))
    suite = like(body, body_of(body)) if isinstance(body, cst.BaseSuite) else block(body)
    return cst.With([cst.WithItem(context, asname)], suite)


def enclosed(context: Expression, suite: cst.BaseSuite) -> cst.IndentedBlock:
    """A suite that is all inside ``with context:``."""
    return block([with_(context, suite)])
