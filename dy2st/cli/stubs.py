"""Example inputs to begin with: for each model of a folder that has none, a file that says what its arguments may be.

Nothing is imported. A model is what a file calls ``model``: a function, a class or an instance of one, or what a
function without parameters returns. In a file that calls nothing so, it is each class below a ``Module`` that needs no
arguments; and where there is no such class at all, each public function that is annotated to take tensors. What the
arguments are is read off the annotations: ``Tensor``, ``int``, ``list[Tensor]``, and jaxtyping's
``Float[Tensor, "batch 3"]``, whose names become dynamic sizes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dy2st.cli.folders import NO_INPUTS, NO_MODEL, is_others, read_folder
from dy2st.cli.target import DEFAULT_NAME

FOLDER = "dy2st_models"
_SIZES = (2, 3)  # of a tensor of which nothing is known
_VALUES = {"int": "1", "float": "1.0", "bool": "True", "str": '""'}
_TENSORS = {
    "Tensor": "torch.randn{}",
    "FloatTensor": "torch.randn{}",
    "DoubleTensor": "torch.randn({}, dtype=torch.float64)",
    "LongTensor": "torch.ones({}, dtype=torch.int64)",
    "IntTensor": "torch.ones({}, dtype=torch.int32)",
    "BoolTensor": "torch.ones({}, dtype=torch.bool)",
}
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


def stubs_in(folder: Path, below: Path | None = None, *, named: bool = False) -> dict[Path, str]:
    """The files to write into a folder for the models in it, or in the part of it that lies ``below``.

    With ``named`` they are those of files that call something ``model``, and no others.
    """
    found: dict[Path, str] = {}
    for file, reason in read_folder(str(below or folder)).left_out.items():
        module = _module(Path(file).relative_to(folder))
        reasons = (NO_INPUTS,) if named else (NO_MODEL, NO_INPUTS)
        if module is None or reason not in reasons or is_others(folder, Path(file)):
            continue
        for name, function in _models(ast.parse(Path(file).read_bytes()), named=reason == NO_INPUTS):
            stem = re.sub(r"\W", "_", module if name == DEFAULT_NAME else f"{module}_{name}").lower()
            # never the name of the module, which it would hide
            found[Path(FOLDER) / f"{stem}_inputs.py"] = _text(module, name, _arguments(function))
    return found


def _module(file: Path) -> str | None:
    """The name under which a file is imported, from the folder or from ``src``; None if it has none."""
    parts = list(file.with_suffix("").parts)
    parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _models(tree: ast.Module, *, named: bool) -> Iterator[tuple[str, ast.FunctionDef | None]]:
    """The models that a file defines, with the function that takes the arguments; None where it is not in the file.

    ``named``: it calls something ``model``.
    """
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    modules = [each for each in classes.values() if any(_last(base).endswith("Module") for base in each.bases)]
    made = _made(tree, functions.get(DEFAULT_NAME))
    if DEFAULT_NAME in functions and made is None:
        yield DEFAULT_NAME, functions[DEFAULT_NAME]
    elif named:
        name = DEFAULT_NAME if made is None else _last(made)
        yield DEFAULT_NAME, functions.get(name) or _method(classes.get(name), "forward")
    elif modules:
        for each in modules:
            forward, maker = _method(each, "forward"), _method(each, "__init__")
            if forward is not None and (maker is None or not _required(maker)):
                yield each.name, forward
    else:
        for function in functions.values():
            if not function.name.startswith("_") and any(map(_takes_tensors, _required(function))):
                yield function.name, function


def _made(tree: ast.Module, factory: ast.FunctionDef | None) -> ast.expr | None:
    """What ``model`` is made of: the class or function of ``model = Net(3)``, or of what a factory returns."""
    found: ast.expr | None = None
    if factory is not None and not ast.unparse(factory.args):
        returned = [each.value for each in ast.walk(factory) if isinstance(each, ast.Return)]
        found = returned[-1] if returned else None
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found = statement.value if DEFAULT_NAME in map(_last, targets) else found
    while isinstance(found, ast.Call):
        method = isinstance(found.func, ast.Attribute) and isinstance(found.func.value, ast.Call)  # Net(3).eval()
        found = found.func.value if method and isinstance(found.func, ast.Attribute) else found.func
    return found


def _method(owner: ast.ClassDef | None, name: str) -> ast.FunctionDef | None:
    methods = [] if owner is None else [each for each in owner.body if isinstance(each, ast.FunctionDef)]
    return next((each for each in methods if each.name == name), None)


def _takes_tensors(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and "Tensor" in ast.unparse(parameter.annotation)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _required(function: ast.FunctionDef) -> list[ast.arg]:
    """The parameters that a call has to give, without ``self``."""
    given = [*function.args.posonlyargs, *function.args.args]
    given = given[: len(given) - len(function.args.defaults)]
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    needed = [*given, *(each for each, default in keywords if default is None)]
    return needed[1:] if needed and needed[0].arg == "self" else needed


def _arguments(function: ast.FunctionDef | None) -> list[_Argument]:
    if function is None:
        return [_Argument("x", "what its forward takes is not in this file", f"torch.randn{_SIZES}")]
    return [_argument(each) for each in _required(function)]


def _argument(parameter: ast.arg) -> _Argument:
    annotation = _written(parameter.annotation)
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


def _written(annotation: ast.expr | None) -> ast.expr | None:
    """An annotation that stands as a text, as what the text says."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        with suppress(SyntaxError):
            return ast.parse(annotation.value, mode="eval").body
    return annotation


def _value(annotation: ast.expr | None) -> str:
    """A value of an annotation; a tensor where there is none, and None for what is not known."""
    annotation = _written(annotation)
    if annotation is None or _last(annotation) in _TENSORS:
        return _TENSORS["Tensor" if annotation is None else _last(annotation)].format(_SIZES)
    if isinstance(annotation, ast.Subscript):
        of, parts = _last(annotation.value), annotation.slice
        inner = parts.elts if isinstance(parts, ast.Tuple) else [parts]
        if of in ("list", "List", "Sequence"):
            return f"[{_value(parts)}]"
        if of in ("tuple", "Tuple"):
            return f"({', '.join(_value(each) for each in inner if not _is_ellipsis(each))},)"
        if of in ("dict", "Dict", "Mapping"):
            return f'{{"key": {_value(inner[-1])}}}'
    return _VALUES.get(_last(annotation), "None")


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


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
