"""What a report shows of the user's code: each function with its rewritten source and the ONNX nodes of its lines."""

from __future__ import annotations

import ast
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.conversion import entry_function
from dy2st.errors import Dy2stError
from dy2st.onnx.passes.source_lines import STACK, innermost
from dy2st.onnx.runtime.side_metadata import load_model
from dy2st.onnx.runtime.stepping import metadata
from dy2st.report.listing import GraphNode, Listing, Mark
from dy2st.source.rewriting import original, rewritten_source
from dy2st.staging.sites import TRIPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dy2st.report.model import PathSite


@dataclass(frozen=True)
class _Definition:
    """A function in a file: its dotted name, ``<locals>`` included as Python writes it, and its lines."""

    name: str
    first: int
    last: int


def source_listings(model: Any, sites: Sequence[PathSite], onnx_file: Path) -> tuple[Listing, ...]:
    """A listing for each function of the user's that an ONNX node or a staged construct comes from, the entry first."""
    nodes = list(_nodes(onnx_file))
    try:
        entry = original(entry_function(model)).__code__
        begins = (entry.co_filename, entry.co_firstlineno)
    except Dy2stError:  # a model that is no Python function
        begins = ("", 0)
    files = dict.fromkeys([begins[0], *(site.file for site in sites), *(file for file, _ in nodes)])
    found = []
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError):  # typed into a console, or gone
            continue
        lines = text.splitlines()
        own_nodes = [node for place, node in nodes if place == file]
        own_sites = [site for site in sites if site.file == file]
        marks = line_marks(tree, own_sites)
        for definition in _outermost(_definitions(tree), own_nodes, own_sites, begins if begins[0] == file else None):
            span = range(definition.first, definition.last + 1)
            listing = Listing(
                definition.name,
                file,
                definition.first,
                tuple(lines[definition.first - 1 : definition.last]),
                _rewritten(file, definition),
                tuple(site for site in own_sites if site.line in span),
                tuple(node for node in own_nodes if node.line in span),
                tuple(sorted((line, mark) for line, mark in marks.items() if line in span)),
            )
            found.append((begins[0] != file or begins[1] not in span, listing))
    return tuple(listing for _, listing in sorted(found, key=lambda each: each[0]))


def _outermost(
    definitions: Sequence[_Definition],
    nodes: Sequence[GraphNode],
    sites: Sequence[PathSite],
    begins: tuple[str, int] | None,
) -> list[_Definition]:
    """The functions with something to show; one that lies in another is shown as part of it."""
    lines = {node.line for node in nodes} | {site.line for site in sites} | ({begins[1]} if begins else set())
    used = [each for each in definitions if lines & set(range(each.first, each.last + 1))]
    return [each for each in used if not any(o is not each and o.first <= each.first <= o.last for o in used)]


def line_marks(tree: ast.Module, sites: Sequence[PathSite]) -> dict[int, Mark]:
    """Of the lines inside of staged arms and loops, whether they ran: what lies in an arm that never did, did not."""
    by_place = {(site.line, site.column): site for site in sites}
    marks: dict[int, Mark] = {}

    def mark(statements: Sequence[ast.AST], ran: bool) -> None:
        for statement in statements:
            for line in range(getattr(statement, "lineno", 1), (getattr(statement, "end_lineno", None) or 0) + 1):
                if marks.get(line) != "never":
                    marks[line] = "ran" if ran else "never"

    def site_of(node: ast.AST) -> PathSite | None:
        asked = getattr(node, "test", getattr(node, "iter", node))
        places = [(each.lineno, each.col_offset) for each in (asked, node) if isinstance(each, (ast.expr, ast.stmt))]
        return next((by_place[place] for place in places if place in by_place), None)

    for node in ast.walk(tree):
        blocks = [
            each for name in ("body", "orelse", "finalbody") if isinstance(each := getattr(node, name, None), list)
        ]
        for statements in blocks:
            for place, statement in enumerate(statements):
                site = site_of(statement)
                if site is not None and isinstance(statement, ast.If):
                    mark(statement.body, "then" in site.taken)
                    leaves = isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue))
                    # behind `if …: return` the rest of the block is what an else-arm would be
                    mark(statement.orelse or (statements[place + 1 :] if leaves else []), "else" in site.taken)
                elif site is not None and isinstance(statement, (ast.While, ast.For)):
                    mark(statement.body, bool(set(site.taken) - {TRIPS[0]}))
    return marks


def _definitions(tree: ast.Module) -> list[_Definition]:
    found: list[_Definition] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                found.append(_Definition(f"{prefix}{child.name}", first, child.end_lineno or child.lineno))
                visit(child, f"{prefix}{child.name}.<locals>.")
            else:
                visit(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)

    visit(tree, "")
    return found


def _rewritten(file: str, definition: _Definition) -> str:
    """The rewritten source of a function or method that a module has under its own name; else nothing."""
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) != file:
            continue
        found: Any = module
        for step in definition.name.split("."):
            found = vars(found).get(step) if isinstance(found, (types.ModuleType, type)) else None
        found = getattr(found, "__func__", getattr(found, "__wrapped__", found))
        if isinstance(found, types.FunctionType):
            try:
                return str(rewritten_source(found))
            except Dy2stError:
                return ""
    return ""


def _nodes(file: Path) -> Iterator[tuple[str, GraphNode]]:
    """The nodes that come from the user's lines, with the file, those of subgraphs after the node that has them."""
    proto = load_model(file, external_data=False)

    def visit(nodes: Any, graph: str) -> Iterator[tuple[str, GraphNode]]:
        for node in nodes:
            place = _place(node)
            if place is not None:
                yield place[0], GraphNode(place[1], node.op_type, node.name, tuple(filter(None, node.output)), graph)
            for attribute in node.attribute:
                for inner in (attribute.g, *attribute.graphs):
                    yield from visit(inner.node, f"{graph} / {node.name or node.op_type}.{attribute.name}")

    yield from visit(proto.graph.node, "main")
    for function in proto.functions:
        yield from visit(function.node, function.name)


def _place(node: Any) -> tuple[str, int] | None:
    """The innermost frame that is the user's own."""
    return innermost(metadata(node, STACK))
