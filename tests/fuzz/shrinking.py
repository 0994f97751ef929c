"""Makes a program smaller: removes and simplifies parts of its source while the same comes of it."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator

from oracle import Outcome, judge

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
KEPT = {"SETS", "DYNAMIC", "model"}


def shrink(source: str, found: Outcome, *, seconds: float = 600) -> str:
    """The smallest program found in the time that has the same outcome."""
    onnx = found.what.partition(":")[0] in ("writing ONNX", "onnxruntime", "too long")

    def same(candidate: str) -> bool:
        outcome = judge(candidate, onnx=onnx, seconds=20)
        return (outcome.kind, outcome.what) == (found.kind, found.what)

    return smaller(source, same, time.monotonic() + seconds)


def smaller(source: str, fails: Callable[[str], bool], end: float) -> str:
    """Apply whatever reduction leaves ``fails`` true, the largest first, until none does."""
    best = ast.unparse(ast.parse(source))
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        tried: set[str] = set()
        position = 0
        while time.monotonic() < end:
            candidates = list(reductions(ast.parse(best)))[position:]
            for index, change in enumerate(candidates):
                text = changed(best, change)
                if text is None or text == best or text in tried:
                    continue
                tried.add(text)
                if time.monotonic() > end:
                    break
                if fails(text):
                    best, position, progress = text, position + index, True
                    break
            else:
                break
    return best


Change = tuple[int, str, str, int]
"""Which node of the walk, what to do, in which field, at which index."""


def reductions(tree: ast.Module) -> Iterator[Change]:
    """All single changes: input sets and whole statements first, then blocks for their statement, then expressions."""
    nodes = list(ast.walk(tree))
    data: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in KEPT:
            data |= {id(inner) for inner in ast.walk(node)}
            if isinstance(node.value, ast.List):
                number = nodes.index(node.value)
                yield from ((number, "drop", "elts", index) for index in reversed(range(len(node.value.elts))))
    for number, node in enumerate(nodes):
        yield from removals(number, node)
    for number, node in enumerate(nodes):
        for block, items in blocks(node):
            for index, item in enumerate(items):
                if isinstance(item, (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)):
                    yield number, "open", block, index
                    yield number, "otherwise", block, index
    for number, node in enumerate(nodes):
        if id(node) not in data:
            yield from simplifications(number, node)


def blocks(node: ast.AST) -> list[tuple[str, list[ast.AST]]]:
    """The blocks of a statement: bodies, else clauses, handlers, cases."""
    return [(name, items) for name in BLOCKS if isinstance(items := getattr(node, name, None), list)]


def removals(number: int, node: ast.AST) -> Iterator[Change]:
    """Fewer statements, several at a time first."""
    for block, items in blocks(node):
        for length in (8, 4, 2):
            starts = reversed(range(0, len(items) - length + 1, length))
            yield from ((number, "several", block, 1000 * length + start) for start in starts)
        yield from ((number, "remove", block, index) for index in reversed(range(len(items))))


def simplifications(number: int, node: ast.AST) -> Iterator[Change]:
    """A part of an expression, or a constant, in its place; fewer operands and arguments."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            yield from ((number, "child", field, index) for index, _ in enumerate(parts(value)))
            yield number, "zero", field, 0
        elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
            yield from ((number, "drop", field, index) for index in reversed(range(len(value))))
            for index, item in enumerate(value):
                yield from ((number, "inner", field, 100 * index + inner) for inner, _ in enumerate(parts(item)))


def parts(node: ast.expr) -> list[ast.expr]:
    """The expressions directly within one."""
    found = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return found[:20]


def changed(source: str, change: Change) -> str | None:
    """The source after a change, or None if it does not apply."""
    number, action, field, index = change
    tree = ast.parse(source)
    node = list(ast.walk(tree))[number]
    value = getattr(node, field)
    match action:
        case "remove" | "several":
            length, start = divmod(index, 1000) if action == "several" else (1, index)
            gone = [child for item in value[start : start + length] for child in ast.walk(item)]
            if {n.id for n in gone if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} & KEPT:
                return None
            del value[start : start + length]
            if not value and field == "body" and not isinstance(node, ast.Module):
                value.append(ast.Pass())
        case "open" | "otherwise":
            item = value[index]
            inner = getattr(item, "body" if action == "open" else "orelse", None)
            if isinstance(item, ast.Match):
                inner = item.cases[0].body
            if not inner:
                return None
            value[index : index + 1] = inner
        case "child":
            setattr(node, field, copy.deepcopy(parts(value)[index]))
        case "inner":
            value[index // 100] = copy.deepcopy(parts(value[index // 100])[index % 100])
        case "zero":
            if isinstance(value, ast.Constant) or not isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
                return None
            setattr(node, field, ast.Constant(1))
        case "drop":
            if isinstance(node, (ast.Assign, ast.BoolOp)) and len(value) <= (2 if isinstance(node, ast.BoolOp) else 1):
                return None
            del value[index]
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        compile(text, "<smaller>", "exec")
    except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError):
        return None
    return text
