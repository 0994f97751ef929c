"""What of a function is likely to be refused, by the code of the error that would be raised.

These are the causes that can be told from the source alone. Which refusals there are, and what to write instead:
``dy2st explain CODE``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dy2st.survey.staged_constructs import Construct
from dy2st.survey.value_kinds import Kind
from dy2st.survey.values import Values, dotted, own

# Functions of torch.linalg that raise for the values of a matrix.
_MAY_FAIL = frozenset("cholesky inv solve lu_factor inverse ldl_factor solve_ex".split())
# Those that have no form in ONNX: a test asks dy2st.onnx.export of each.
NO_ONNX = frozenset("eig eigvals".split())
COMPILED = frozenset("scipy cv2 sklearn numba PIL skimage pandas".split())
_CAUGHT = frozenset("Exception BaseException RuntimeError LinAlgError _LinAlgError ValueError ArithmeticError".split())


@dataclass(frozen=True)
class Cause:
    """What would be refused: the code of the error, and where."""

    code: str
    what: str
    line: int
    column: int


@dataclass(frozen=True)
class Context:
    """A function with what is known of it; ``compiled`` are the names of modules that are not Python."""

    values: Values
    constructs: Sequence[Construct]
    numpy_names: frozenset[str]
    compiled: frozenset[str]

    def inside(self) -> Iterator[ast.AST]:
        """What stands in the arms and bodies of staged constructs."""
        tests = {id(each.node) for each in self.constructs}
        for node in self.values.nodes:
            if isinstance(node, (ast.If, ast.While)) and id(node.test) in tests:
                yield from _all([*node.body, *node.orelse])
            elif isinstance(node, (ast.For, ast.AsyncFor)) and id(node.iter) in tests:
                yield from _all(node.body)

    def found(self, code: str, what: str, node: ast.AST) -> Cause:
        """A cause at a node."""
        return Cause(code, what, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))


def _all(statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield statement
        yield from own(statement)


def causes(context: Context) -> list[Cause]:
    """What is likely to be refused of a function, each place once."""
    found = {cause: None for rule in _RULES for cause in rule(context)}
    return sorted(found, key=lambda cause: (cause.line, cause.column, cause.code))


def _calls(context: Context) -> Iterator[tuple[ast.Call, str]]:
    for node in context.values.nodes:
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def _numpy(context: Context) -> Iterator[Cause]:
    kind = context.values.kind
    for node, name in _calls(context):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" and kind(node.func.value) is Kind.TENSOR:
            yield context.found("D2S245", "a tensor becomes an array of numpy's", node)
        elif name.partition(".")[0] in context.numpy_names and any(kind(each) is Kind.TENSOR for each in node.args):
            yield context.found("D2S245", f"{name}() is given a tensor", node)


def _compiled(context: Context) -> Iterator[Cause]:
    for node, name in _calls(context):
        given = [*node.args, *(each.value for each in node.keywords)]
        is_class = name.rpartition(".")[2][:1].isupper()  # most are of Python
        foreign = name.partition(".")[0] in context.compiled and not is_class
        if foreign and any(context.values.kind(each) is Kind.TENSOR for each in given):
            yield context.found("D2S246", f"{name}(), which is no Python, is given a tensor", node)


def _caught(context: Context) -> Iterator[Cause]:
    inside = {id(node) for node in context.inside()}
    for node in context.values.nodes:
        if not isinstance(node, ast.Try) or not any(_catches(handler) for handler in node.handlers):
            continue
        for each in _all(node.body):
            if isinstance(each, ast.Raise) and id(each) in inside:
                yield context.found("D2S236", "a tensor decides about an exception that may be caught", each)
            elif isinstance(each, ast.Call) and _is_linalg(dotted(each.func)) in _MAY_FAIL:
                yield context.found("D2S236", f"{dotted(each.func)}() may raise where a try may catch it", each)


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or dotted(kind).rpartition(".")[2] in _CAUGHT for kind in kinds)


def _is_linalg(name: str) -> str:
    """The function of torch.linalg that a name is, or nothing."""
    before, _, last = name.rpartition(".")
    return last if before in ("torch.linalg", "linalg", "torch", "LA", "tl") else ""


def _recursion(context: Context) -> Iterator[Cause]:
    own_name = context.values.function.name
    for node in context.inside():
        if isinstance(node, ast.Call) and dotted(node.func) in (own_name, f"self.{own_name}"):
            yield context.found("D2S231", "a tensor decides how deep a function calls itself", node)


def _generators(context: Context) -> Iterator[Cause]:
    for node in context.inside():
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            yield context.found("D2S232", "a tensor decides about a yield", node)


def _keys(context: Context) -> Iterator[Cause]:
    kind = context.values.kind
    gathered = {
        target.id
        for node in context.values.nodes
        if isinstance(node, ast.Assign) and _is_keyed(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in context.values.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            owner, key = node.func.value, node.args[0]
            changes = node.func.attr in ("add", "setdefault")
        elif isinstance(node, ast.Subscript):
            owner, key, changes = node.value, node.slice, isinstance(node.ctx, ast.Store)
        else:
            continue
        if changes and dotted(owner) in gathered and kind(key) is Kind.NUMBER:
            yield context.found("D2S241", "a number made of a tensor is a key or a set's member", node)


def _is_keyed(value: ast.expr) -> bool:
    """Whether an expression makes a set or a dict."""
    called = dotted(value.func) if isinstance(value, ast.Call) else ""
    return isinstance(value, (ast.Set, ast.Dict)) or called in ("set", "dict")


def _operators(context: Context) -> Iterator[Cause]:
    for node, name in _calls(context):
        last = name.rpartition(".")[2]
        if isinstance(node.func, ast.Attribute) and (last or node.func.attr).startswith(("to_sparse", "sparse_")):
            yield context.found("D2S307", "a sparse tensor", node)
        elif _is_linalg(name) in NO_ONNX:
            yield context.found("D2S403", f"{name}() has no form in ONNX", node)
        elif name in ("torch.manual_seed", "torch.random.manual_seed"):
            yield context.found("D2S251", "the generator of random numbers is seeded inside", node)


_RULES: tuple[Callable[[Context], Iterator[Cause]], ...] = (
    *(_numpy, _compiled, _caught, _recursion, _generators, _keys, _operators),
)
