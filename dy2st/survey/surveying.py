"""The survey of some files: for each function its control flow on tensors, and what of it would be refused.

Only functions are listed whose source shows control flow on tensors. A file is read in three steps: what it imports
and what its classes hold, what its functions give (twice, since they call each other), and then each function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dy2st.survey.likely_causes import COMPILED, Cause, Context, causes
from dy2st.survey.python_files import Source
from dy2st.survey.staged_constructs import Construct, constructs
from dy2st.survey.value_kinds import Kind
from dy2st.survey.values import Function, Values, annotated, dotted


@dataclass(frozen=True)
class Surveyed:
    """A function with control flow on tensors. ``file`` is its path as it is shown, ``name`` with that of its class."""

    file: str
    name: str
    line: int
    constructs: tuple[Construct, ...]
    causes: tuple[Cause, ...]


@dataclass
class Survey:
    """What was found: the functions with control flow on tensors, how many there are in all, files left out."""

    functions: list[Surveyed] = field(default_factory=list)
    files: int = 0
    read: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


def survey(sources: Iterable[Source]) -> Survey:
    """Survey files."""
    found = Survey()
    for source in sources:
        found.files += 1
        if source.tree is None:
            found.problems.append((source.name, source.problem))
            continue
        module = _Module(source.tree)
        for name, function, values in module.functions():
            found.read += 1
            if not module.uses_torch:
                continue
            staged = tuple(constructs(values))
            if staged:
                context = Context(values, staged, module.numpy, module.compiled)
                found.functions.append(Surveyed(source.name, name, function.lineno, staged, tuple(causes(context))))
    return found


class _Module:
    """What a file's functions are read with."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        torch, numpy, compiled = {"torch"}, set[str](), set[str]()
        self.uses_torch = False
        for name, module in _imported(tree):
            first = module.partition(".")[0]
            if first == "torch":
                self.uses_torch = True
                torch |= set() if name[:1].isupper() else {name}
            elif first == "numpy":
                numpy.add(name)
            elif first in COMPILED:
                compiled.add(name)
        self.torch, self.numpy, self.compiled = frozenset(torch), frozenset(numpy), frozenset(compiled)

    def functions(self) -> Iterator[tuple[str, Function, Values]]:
        """Each function of the file with its values; a function inside another one sees what that holds."""
        returns: dict[str, Kind] = {}
        for last in (False, True) if self.uses_torch else (True,):
            found = list(self._below(self.tree, "", {}, {}, returns))
            if last:
                yield from found
            for name, function, values in found:
                given = annotated(function.returns)
                if given is None:
                    returned = (node.value for node in values.nodes if isinstance(node, ast.Return))
                    given = max(map(values.kind, returned), default=Kind.PLAIN)
                *_, plain = name.split(".")
                returns |= {plain if "." not in name else f"self.{plain}": given}

    def _below(
        self, node: ast.AST, prefix: str, fields: dict[str, Kind], outer: dict[str, Kind], returns: dict[str, Kind]
    ) -> Iterator[tuple[str, Function, Values]]:
        of_module = isinstance(node, ast.ClassDef) and any("Module" in dotted(base) for base in node.bases)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from self._below(child, f"{prefix}{child.name}.", _fields(child, self.torch), outer, returns)
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                is_forward = child.name in ("forward", "__call__") and (of_module or bool(prefix))
                values = Values(
                    child,
                    torch_names=self.torch,
                    fields=fields,
                    returns=returns,
                    outer=outer,
                    is_forward=is_forward,
                )
                yield f"{prefix}{child.name}", child, values
                yield from self._below(child, f"{prefix}{child.name}.", fields, values.names, returns)
            elif isinstance(child, (ast.If, ast.Try, ast.With, ast.For)):
                yield from self._below(child, prefix, fields, outer, returns)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that imports bind, each with what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name.partition(".")[0], each.name) for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)


def _fields(cls: ast.ClassDef, torch_names: frozenset[str]) -> dict[str, Kind]:
    """The attributes of a class that hold tensors: parameters, buffers, what is made by torch's functions."""
    found: dict[str, Kind] = {}
    for node in ast.walk(cls):
        if isinstance(node, ast.Call) and dotted(node.func) == "self.register_buffer" and node.args:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                found[node.args[0].value] = Kind.TENSOR
        elif isinstance(node, ast.AnnAssign) and annotated(node.annotation):
            name = dotted(node.target).removeprefix("self.")
            found[name] = annotated(node.annotation) or Kind.PLAIN
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            whole = dotted(node.value.func)
            made = whole.partition(".")[0] in torch_names and (
                whole.endswith("Parameter") or not whole.rpartition(".")[2][:1].isupper()
            )
            if made and not whole.endswith(("device", "Generator", "compile")):
                found |= {
                    dotted(target).removeprefix("self."): Kind.TENSOR
                    for target in node.targets
                    if dotted(target).startswith("self.")
                }
    return found
