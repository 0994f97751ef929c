"""A target without inputs, told from its source alone: before its module, and torch, are imported."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli import suggesting
from dy2st.cli.folders import INPUTS
from dy2st.cli.planning import options_for
from dy2st.cli.settings import load_settings
from dy2st.cli.target import require_file, split_target
from dy2st.errors import ExampleInputsError

if TYPE_CHECKING:
    from argparse import Namespace

# Ways to make a name that stands nowhere in the source.
_HIDDEN = re.compile(r"\bimport\s*\(?\s*\*|\b(?:globals|vars|exec|eval|setattr|__getattr__|__dict__)\b")


def require_inputs(target: str, options: Namespace) -> None:
    """Accept a target for which inputs are given, or may be in its module.

    Raises:
        TargetError: there is no such file.
        ExampleInputsError: its file defines the model, and none.
    """
    settings = load_settings(Path.cwd())
    own = options_for(target, options, settings)
    recorded = settings.baseline or getattr(options, "baseline", None) or getattr(options, "update_baseline", False)
    if own["input"] or own["inputs"] or recorded or Path(target).is_dir():  # what a baseline knows is no failure
        return
    where, name = split_target(target)
    require_file(where)
    try:
        text = Path(where).read_text(encoding="utf-8") if where.endswith(".py") else ""
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):  # what is wrong with it is said when it is imported
        return
    if _HIDDEN.search(text) or any(each in text for each in INPUTS):
        return
    parameters = _parameters(tree, name)
    if parameters is not None:
        raise ExampleInputsError(
            f"{target}: there are no example inputs",
            hint=suggesting.inputs_hint(suggesting.options(parameters)),
        )


def _parameters(tree: ast.Module, name: str) -> list[tuple[str, str]] | None:
    """Those of a model without defaults, with the texts of their annotations; None where the source leaves it open.

    A model is a function with parameters, a module's class that needs none to be made, or what is made from that.
    """
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return _needed(statement, 0) if not statement.decorator_list else None
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            names = [ast.unparse(each) for each in statement.targets]
            if names == [name]:
                return _of_class(classes.get(ast.unparse(statement.value.func)))
    return _of_class(classes.get(name), plain=True)


def _of_class(found: ast.ClassDef | None, *, plain: bool = False) -> list[tuple[str, str]] | None:
    """Those of a class's ``forward``; with ``plain`` it has to be one that can be made without arguments."""
    if found is None or found.decorator_list:
        return None
    methods = {each.name: each for each in found.body if isinstance(each, ast.FunctionDef)}
    if "forward" not in methods or (plain and "__init__" in methods and _needed(methods["__init__"], 1)):
        return None
    return _needed(methods["forward"], 1)


def _needed(function: ast.FunctionDef, skipped: int) -> list[tuple[str, str]] | None:
    """The parameters without defaults, behind the first; None if there are none."""
    given = function.args
    by_place = [*given.posonlyargs, *given.args]
    needed = by_place[skipped : len(by_place) - len(given.defaults)]
    needed += [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return [(each.arg, "" if each.annotation is None else ast.unparse(each.annotation)) for each in needed] or None
