"""Targets: ``file.py:name`` and ``package.module:name``, imported and made into a model."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import os
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.errors import Location, TargetError
from dy2st.errors.places import from_here
from dy2st.source.torch_made import in_python

if TYPE_CHECKING:
    from types import ModuleType

DEFAULT_NAME = "model"
# So many targets that a file has instead are named.
_SHOWN = 3


@dataclass(frozen=True)
class Target:
    """A model that the user named: the text, the module that holds it, and the model itself."""

    text: str
    name: str
    module: ModuleType
    model: Any


def default_output(text: str) -> str:
    """The name of a target's ONNX file if none is given: its module's, or the model's where it has one of its own."""
    where, name = split_target(text)
    stem = Path(where).stem if where.endswith(".py") else where.rpartition(".")[2]
    return f"{stem if name == DEFAULT_NAME else name}.onnx"


def load_target(text: str, folder: str | None = None) -> Target:
    """Import the target's module, look the name up, and build the model if it is a class or a factory.

    Modules are also looked for in ``folder``, after all other places.

    Raises:
        TargetError: no such file, module or name; the import fails; the name is no model.
    """
    where, name = split_target(text)
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
    module = load_module(where)
    return Target(text, name, module, _model(_lookup(module, name, where), text))


def split_target(text: str) -> tuple[str, str]:
    """``file.py:name`` as ``("file.py", "name")``. A colon in a path (a drive letter) is no separator."""
    where, colon, name = text.rpartition(":")
    if text and (not colon or "/" in name or os.sep in name):
        return text, DEFAULT_NAME
    if not where or not name:
        raise TargetError(f"{text!r} is no target", hint="file.py:name or package.module:name")
    return where, name


def require_file(where: str) -> None:
    """Accept what is a file, or may be a module's name.

    Raises:
        TargetError: there is no such file, or it is a folder.
    """
    path = Path(where)
    if path.is_dir():
        raise TargetError(f"{where} is a folder", hint="name a file in it")
    if not path.is_file() and (path.suffix == ".py" or "/" in where or os.sep in where):
        raise TargetError(f"{where}: no such file")


def load_module(where: str) -> ModuleType:
    """Import a file under its own name (its package's name included), or a module by its dotted name.

    The file's folder, or that of its outermost package, goes first on ``sys.path``, the working folder last; what the
    import prints goes to stderr.

    Raises:
        TargetError: the file or module does not exist, or its code raises.
    """
    require_file(where)
    if Path(where).is_file():
        return _import_file(Path(where).resolve(), where)
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds strings
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the same
    try:
        found = importlib.util.find_spec(where)
    except (ImportError, ValueError, AttributeError):
        found = None
    except BaseException as error:  # a parent package's own code may raise anything
        let_pass(error)
        raise _import_error(error, where, Path.cwd()) from error
    if found is None:
        raise TargetError(f"there is no module {where!r}", hint="a file's name ends in .py")
    with contextlib.redirect_stdout(sys.stderr):
        try:
            return importlib.import_module(where)
        except BaseException as error:
            let_pass(error)
            raise _import_error(error, where, Path(found.origin or ".").parent) from error


def _import_file(path: Path, shown: str) -> ModuleType:
    root, name = path.parent, path.stem
    while (root / "__init__.py").is_file():
        root, name = root.parent, f"{root.name}.{name}"
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    for folder in dict.fromkeys((str(path.parent), str(root))):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last: a project's own packages, without hiding anything
    if "." in name:  # in a package: relative imports need the parents, so the import system does it
        return _guarded(lambda: importlib.import_module(name), shown, root)
    if known is not None or name in sys.stdlib_module_names:
        name = f"{name}_{abs(hash(str(path))):x}"  # another module has the name: do not replace it for everyone
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{shown}: not a Python file", hint="file.py:name")
    module, loader = importlib.util.module_from_spec(spec), spec.loader
    sys.modules[name] = module

    def execute() -> ModuleType:
        loader.exec_module(module)
        return module

    try:
        return _guarded(execute, shown, root)
    except TargetError:
        del sys.modules[name]
        raise


def _guarded(load: Any, shown: str, root: Path) -> ModuleType:
    with contextlib.redirect_stdout(sys.stderr):
        try:
            module: ModuleType = load()
        except BaseException as error:
            let_pass(error)
            raise _import_error(error, shown, root) from error
    return module


def let_pass(error: BaseException) -> None:
    """Raise again what tells this process to end, rather than being what the user's code has raised."""
    if isinstance(error, KeyboardInterrupt) or getattr(error, "code", None) == 128 + signal.SIGTERM:
        raise error


def _import_error(error: BaseException, shown: str, root: Path) -> TargetError:
    """What the import raised, at the innermost line that lies in the user's folder."""
    if isinstance(error, SyntaxError) and error.filename:
        location = Location(from_here(error.filename), error.lineno or 1, text=error.text)
        return TargetError(f"{shown} does not parse: {error.msg}", location=location)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(str(root))]
    location_of = Location(from_here(frames[-1].filename), frames[-1].lineno or 1) if frames else None
    return TargetError(f"{shown} can't be imported: {raised(error)}", location=location_of)


def raised(error: BaseException) -> str:
    """What the user's code has raised, in one line."""
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")


def _lookup(module: ModuleType, name: str, where: str) -> Any:
    found: Any = module
    for step in name.split("."):
        try:
            there = hasattr(found, step)
        except Exception as error:  # a property, or a module's __getattr__
            raise TargetError(f"{where}:{name} raises {raised(error)}") from error
        if not there:
            names = [known for known in vars(found) if not known.startswith("_")] if hasattr(found, "__dict__") else []
            close = difflib.get_close_matches(step, names, n=1)
            hint = f"{close[0]!r}, perhaps" if close else _own_models(module, where) if found is module else ""
            raise TargetError(f"{where} has no {name!r}", hint=hint)
        found = getattr(found, step)
    return found


def _own_models(module: ModuleType, where: str) -> str:
    """Targets that a module has: the functions, classes and modules that it defines itself."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            getattr(value, "__module__", None) == module.__name__
            if inspect.isroutine(value) or inspect.isclass(value)
            else callable(getattr(value, "forward", None))
        )
    ]
    shown = [f"{where}:{name}" for name in own[:_SHOWN]]
    return " or ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def _model(found: Any, text: str) -> Any:
    model = _made(found, text)
    call = getattr(model, "forward", model)
    for kind, is_one in (
        ("a generator", inspect.isgeneratorfunction(call)),
        ("a coroutine", inspect.iscoroutinefunction(call)),
        ("an asynchronous generator", inspect.isasyncgenfunction(call)),
    ):
        if is_one:
            raise TargetError(f"{text} is {kind}: a call of it computes nothing yet", hint="a function that returns")
    return model


def _made(found: Any, text: str) -> Any:
    """The model that a name stands for: itself, or what a class or a factory makes."""
    import torch

    found = in_python(found)
    if isinstance(found, torch.nn.Module):
        return found
    if isinstance(found, type):
        if not issubclass(found, torch.nn.Module):
            raise TargetError(f"{text} is the class {found.__name__}, which is no torch.nn.Module")
        return _built(found, text)
    if not callable(found):
        raise TargetError(f"{text} is of type {type(found).__name__}: neither a module nor a function")
    if inspect.isfunction(found) and not inspect.signature(found).parameters:
        built = _built(found, text)
        if not callable(built):
            raise TargetError(f"{text}() returns {type(built).__name__}: neither a module nor a function")
        return in_python(built)
    return found


def _built(make: Any, text: str) -> Any:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(make).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]
    if needed:
        raise TargetError(
            f"{text} is a class that needs the arguments {', '.join(needed)}", hint="a function that builds the model"
        )
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return make()
    except BaseException as error:
        let_pass(error)
        frames = traceback.extract_tb(error.__traceback__)
        location = Location(from_here(frames[-1].filename), frames[-1].lineno or 1)
        raise TargetError(f"{text}() raises {raised(error)}", location=location) from error
