"""From a rewritten tree to a code object that fits the original's globals, cells and class."""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING

from dy2st.source.find import FUTURES, Definition, Found

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIMIZED = 0x1  # the flag of a function's code; a class body has it not
# A class whose name is all underscores mangles nothing, and no class body is a scope for the functions in it.
OUTER = "_" * 40
# What the operators are given that make a set or a dict of a list.
_LISTED = {"set_of": "<setcomp>", "dict_of": "<dictcomp>"}


def compile_definition(tree: Definition, found: Found, code: types.CodeType, operators: str | None) -> types.CodeType:
    """The code object of ``tree``, compiled as if it stood where the original stood.

    A factory function makes the free variables; a class around the definition keeps the definition's own name (and
    the class's, which mangles private names) from hiding the globals of these names.
    """
    body: list[ast.stmt] = [_bare(tree, found.node)]
    if found.owner is not None:
        body = [_class(found.owner, body)]
    free = [*code.co_freevars, *([operators] if operators is not None else [])]
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in free], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    factory = ast.FunctionDef(name=OUTER, args=arguments, body=[_class(OUTER, body)], decorator_list=[])
    _no_type_parameters(factory)
    # The compiler writes calls of an imported module's functions in another way than calls of methods.
    imports: list[ast.stmt] = [ast.Import([ast.alias(name) for name in sorted(found.imports)])] if found.imports else []
    module = ast.Module([*imports, factory], [])
    _locate(module)
    names = _comprehension_names(tree)
    compiled = compile(module, code.co_filename, "exec", code.co_flags & FUTURES, dont_inherit=True)
    new = next(c for c in _codes(compiled) if c.co_name == code.co_name)
    prefix = new.co_qualname
    made = requalified(new, prefix, code.co_qualname)
    return _with_names(made, names) if names else made


def _comprehension_names(tree: ast.AST) -> dict[tuple[int | None, ...], str]:
    """By their places: what a traceback calls comprehensions that are lists now, of members or pairs."""
    found: dict[tuple[int | None, ...], str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LISTED:
            for made in node.args:
                if isinstance(made, ast.ListComp):
                    place = made.lineno, made.end_lineno, made.col_offset, made.end_col_offset
                    found[place] = _LISTED[node.func.attr]
    return found


def _with_names(code: types.CodeType, names: dict[tuple[int | None, ...], str]) -> types.CodeType:
    """The code with other names for the comprehensions at these places, of which Python 3.12 makes no code objects."""
    constants = tuple(_with_names(each, names) if isinstance(each, types.CodeType) else each for each in code.co_consts)
    name = names.get([*code.co_positions()][-1]) if code.co_name == "<listcomp>" else None
    if name is None:
        return code.replace(co_consts=constants)
    qualified = code.co_qualname.removesuffix(code.co_name) + name
    return code.replace(co_consts=constants, co_name=name, co_qualname=qualified)


def _bare(tree: Definition, original: Definition) -> ast.stmt:
    """The definition without what is evaluated outside it; its first line stays the first decorator's."""
    args = tree.args
    tree.args = ast.arguments(
        posonlyargs=[_plain(a) for a in args.posonlyargs],
        args=[_plain(a) for a in args.args],
        vararg=_plain(args.vararg) if args.vararg else None,
        kwonlyargs=[_plain(a) for a in args.kwonlyargs],
        kw_defaults=[None] * len(args.kwonlyargs),
        kwarg=_plain(args.kwarg) if args.kwarg else None,
        defaults=[],
    )
    if isinstance(tree, ast.Lambda):
        statement = ast.Assign([ast.Name(OUTER, ast.Store())], tree)
        return ast.copy_location(statement, tree)
    tree.returns = None
    tree.decorator_list = []
    _no_type_parameters(tree)
    if not isinstance(original, ast.Lambda) and original.decorator_list:
        # Its value is never used: the code object's first line is where the first decorator stands.
        first = min(original.decorator_list, key=lambda d: (d.lineno, d.col_offset))
        tree.decorator_list = [ast.copy_location(ast.Constant(None), first)]
    return tree


def _plain(argument: ast.arg) -> ast.arg:
    return ast.copy_location(ast.arg(argument.arg), argument)


def _class(name: str, body: list[ast.stmt]) -> ast.ClassDef:
    node = ast.ClassDef(name=name, bases=[], keywords=[], body=body, decorator_list=[])
    _no_type_parameters(node)
    return node


def _no_type_parameters(node: ast.AST) -> None:
    # Since Python 3.12; their values come as cells, like those of all free variables.
    if "type_params" in node._fields:
        node.type_params = []  # type: ignore[attr-defined]


def _locate(module: ast.Module) -> None:
    """The scaffolding has no place of its own."""
    for node in ast.walk(module):
        if not hasattr(node, "lineno") and isinstance(node, ast.stmt | ast.expr | ast.arg | ast.alias):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """All code objects inside a compiled module, classes and the factory last."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_flags & OPTIMIZED and constant.co_name != OUTER:
                yield constant
            yield from _codes(constant)


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects of a function, its own first."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def requalified(code: types.CodeType, old: str, new: str) -> types.CodeType:
    """A code object under the original's qualified name, nested ones too; a class body stores its name itself."""

    def renamed(name: str) -> str:
        return new + name[len(old) :] if name.startswith(old) else name

    constants: list[object] = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            constants.append(requalified(constant, old, new))
        elif constant == code.co_qualname and not code.co_flags & OPTIMIZED:
            constants.append(renamed(code.co_qualname))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants), co_qualname=renamed(code.co_qualname))
