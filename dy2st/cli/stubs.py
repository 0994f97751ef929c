"""Example inputs to begin with: for each model of a folder that has none, a file that says what its arguments may be.

Nothing is imported: a model is a function ``model``, or a class below a ``Module`` that needs no arguments. What its
arguments are is read off the annotations: ``Tensor``, ``int``, ``list[Tensor]``, and jaxtyping's
``Float[Tensor, "batch 3"]``, whose names become dynamic sizes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dy2st.cli.folders import NO_INPUTS, NO_MODEL, is_others, read_folder
from dy2st.cli.target import DEFAULT_NAME

FOLDER = "dy2st_models"
_SIZES = (2, 3)  # of a tensor of which nothing is known
_VALUES = {"int": "1", "float": "1.0", "bool": "True", "str": '""'}
_KINDS = {
    "Float": "torch.randn({})",
    "Int": "torch.ones({}, dtype=torch.int64)",
    "Bool": "torch.ones({}, dtype=torch.bool)",
}


@dataclass(frozen=True)
class _Argument:
    """A parameter: its name, its annotation as text, a value to begin with, and its sizes that have names."""

    name: str
    annotation: str
    value: str
    dims: tuple[tuple[int, str], ...] = ()


def stubs_in(folder: Path) -> dict[Path, str]:
    """The files to write below a folder, with their texts."""
    found: dict[Path, str] = {}
    for file, reason in read_folder(str(folder)).left_out.items():
        module = _module(Path(file).relative_to(folder))
        if module is None or reason not in (NO_MODEL, NO_INPUTS) or is_others(folder, Path(file)):
            continue
        for name, function in _models(ast.parse(Path(file).read_bytes())):
            stem = re.sub(r"\W", "_", module if name == DEFAULT_NAME else f"{module}_{name}").lower()
            # never the name of the module, which it would hide
            found[Path(FOLDER) / f"{stem}_inputs.py"] = _text(module, name, _arguments(function))
    return found


def _module(file: Path) -> str | None:
    """The name under which a file is imported, from the folder or from ``src``; None if it has none."""
    parts = list(file.with_suffix("").parts)
    parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _models(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The models that a file defines, with the function that takes the arguments."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == DEFAULT_NAME:
            yield statement.name, statement
        elif isinstance(statement, ast.ClassDef) and any(_last(base).endswith("Module") for base in statement.bases):
            methods = {each.name: each for each in statement.body if isinstance(each, ast.FunctionDef)}
            made = methods.get("__init__")
            if "forward" in methods and (made is None or not _required(made)):
                yield statement.name, methods["forward"]


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _required(function: ast.FunctionDef) -> list[ast.arg]:
    """The parameters that a call has to give, without ``self``."""
    given = [*function.args.posonlyargs, *function.args.args]
    given = given[: len(given) - len(function.args.defaults)]
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    needed = [*given, *(each for each, default in keywords if default is None)]
    return needed[1:] if needed and needed[0].arg == "self" else needed


def _arguments(function: ast.FunctionDef) -> list[_Argument]:
    return [_argument(each) for each in _required(function)]


def _argument(parameter: ast.arg) -> _Argument:
    annotation = parameter.annotation
    text = "" if annotation is None else ast.unparse(annotation)
    if isinstance(annotation, ast.Subscript) and _last(annotation.value) in _KINDS:
        sizes = annotation.slice.elts[-1] if isinstance(annotation.slice, ast.Tuple) else None
        if isinstance(sizes, ast.Constant) and isinstance(sizes.value, str):
            words = [word for word in sizes.value.split() if word.lstrip("#*").isidentifier() or word.isdecimal()]
            shape = "".join(f"{word if word.isdecimal() else 2}, " for word in words)
            value = _KINDS[_last(annotation.value)].format(f"({shape.removesuffix(' ')})")
            dims = tuple((d, word.lstrip("#*")) for d, word in enumerate(words) if not word.isdecimal())
            return _Argument(parameter.arg, text, value, dims)
    return _Argument(parameter.arg, text, _value(annotation))


def _value(annotation: ast.expr | None) -> str:
    """A value of an annotation; a tensor where there is none, and None for what is not known."""
    tensor = f"torch.randn{_SIZES}"
    if annotation is None or _last(annotation) == "Tensor":
        return tensor
    if isinstance(annotation, ast.Subscript) and _last(annotation.value) in ("list", "List", "Sequence"):
        return f"[{_value(annotation.slice)}]"
    if isinstance(annotation, ast.Subscript) and _last(annotation.value) in ("tuple", "Tuple"):
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        return f"({', '.join(_value(each) for each in parts if not isinstance(each, ast.Constant))},)"
    return _VALUES.get(_last(annotation), "None")


def _text(module: str, name: str, arguments: list[_Argument]) -> str:
    imported = name if name == DEFAULT_NAME else f"{name} as {DEFAULT_NAME}"
    lines = [
        f'"""Example inputs for {name} of {module}: put in values and sizes that it takes, a tuple for each path."""',
        "",
        "import torch",
        "",
        f"from {module} import {imported}  # noqa: F401",
        "",
        "example_inputs = [",
        "    (",
        *(
            f"        {each.value},  # {each.name}{f': {each.annotation}' if each.annotation else ''}"
            for each in arguments
        ),
        "    ),",
        "]",
    ]
    shapes = {each.name: dict(each.dims) or None for each in arguments}
    if any(shapes.values()):
        lines += ["", f"dynamic_shapes = {shapes}".replace("'", '"')]
    elif arguments and arguments[0].value.startswith("torch."):
        lines += ["", '# Sizes that may change: dynamic_shapes = {"' + arguments[0].name + '": {0: "batch"}}']
    return "\n".join(lines) + "\n"
