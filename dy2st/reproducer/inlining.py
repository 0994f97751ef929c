"""The user's code that one name needs, out of all modules that it comes from, as the source of one module.

A top-level statement is needed if it binds a needed name, or does something to one. What it mentions is needed too:
names of the same module and, through imports, of other modules of the user's. Imports of libraries stay imports.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from dy2st.errors import UsageError
from dy2st.reproducer.names import absolute, acts_on, bound, declared_global, global_names, modules_of, place_of_name
from dy2st.source.user_frames import is_own


def inlined(module: ModuleType, name: str) -> tuple[str, str]:
    """The source of one module that has all that ``module``'s ``name`` needs, and what the name is there.

    Raises:
        UsageError: something can't be put into one file; the message names it.
    """
    inliner = _Inliner()
    inliner.need(module, name)
    return inliner.source(), inliner.names[module.__name__, name]


def is_users(module: ModuleType | None) -> bool:
    """Whether a module is the user's own: a Python file that belongs to no library."""
    file = getattr(module, "__file__", None)
    places = [file] if file is not None else list(getattr(module, "__path__", ()))  # a folder without __init__.py
    return bool(places) and all(is_own(place) and (file is None or place.endswith(".py")) for place in places)


@dataclass
class _Module:
    """A module's top-level statements, and which of them bind each name."""

    module: ModuleType
    text: str
    statements: list[ast.stmt]
    binders: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    stars: list[str] = field(default_factory=list)
    needed: set[int] = field(default_factory=set)


class _Inliner:
    """Collects what is needed. ``names`` has the name of each needed thing in the one module."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str], str] = {}
        self._modules: dict[str, _Module] = {}  # in the order in which their statements can run
        self._imports: dict[str, str] = {}
        self._futures: set[str] = set()

    def need(self, module: ModuleType, name: str) -> str:
        """Collect what a name of a module needs; what the name is in the one module."""
        key = (module.__name__, name)
        if key in self.names:
            return self.names[key]
        known = self._module(module)
        for place in known.binders.get(name, []):
            statement = known.statements[place]
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self.names[key] = self._imported(known, statement, name)
                return self.names[key]
        if name not in known.binders:
            return self._from_stars(known, name)
        self.names[key] = self._free_name(name, module)
        for place in known.binders[name]:
            self._need_statement(known, place)
        for place, statement in enumerate(known.statements):  # what is done to it: net.eval(), table["a"] = 1
            if place not in known.needed and acts_on(statement, name):
                self._need_statement(known, place)
        return self.names[key]

    def source(self) -> str:
        """The one module."""
        parts = [f"from __future__ import {', '.join(sorted(self._futures))}"] if self._futures else []
        parts += ["\n".join(dict.fromkeys(self._imports.values()))] if self._imports else []
        for known in self._modules.values():
            parts += [self._text(known, known.statements[place]) for place in sorted(known.needed)]
        text = parts[0] if parts else ""
        for before, part in pairwise(parts):
            text += ("\n\n\n" if "\n" in before + part else "\n") + part
        return f"{text}\n"

    def _module(self, module: ModuleType) -> _Module:
        found = self._modules.get(module.__name__)
        if found is not None:
            return found
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        found = _Module(module, text, ast.parse(text).body)
        for place, statement in enumerate(found.statements):
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                self._futures |= {alias.name for alias in statement.names}
                continue
            for name in bound(statement):
                if name == "*" and isinstance(statement, ast.ImportFrom):
                    found.stars.append(absolute(module, statement))
                else:
                    found.binders[name].append(place)
        self._modules[module.__name__] = found
        return found

    def _free_name(self, name: str, module: ModuleType) -> str:
        taken = {*self.names.values(), *self._imports}
        while name in taken:
            name = f"{name}_{module.__name__.rpartition('.')[2]}"
        return name

    def _imported(self, known: _Module, statement: ast.Import | ast.ImportFrom, name: str) -> str:
        """What an import binds: a thing of another module of the user's, or the import itself."""
        alias = next(each for each in statement.names if (each.asname or each.name.partition(".")[0]) == name)
        if isinstance(statement, ast.ImportFrom):
            origin = sys.modules.get(absolute(known.module, statement))
            if origin is not None and is_users(origin):
                if isinstance(vars(origin).get(alias.name), ModuleType):
                    raise UsageError(f"{known.module.__name__} uses the module {alias.name} as a value")
                found = self.need(origin, alias.name)
                self._runs_before(origin, known)
                return found
            line = f"from {absolute(known.module, statement)} import {alias.name}"
            plain = alias.name
        else:
            line, plain = f"import {alias.name}", alias.name
            if is_users(sys.modules.get(alias.name)):
                raise UsageError(f"{known.module.__name__} uses the module {alias.name} as a value")
        if alias.asname is None and "." in plain:
            self._imports[alias.name] = line
            return name
        same = {"", line, f"{line} as {name}"}
        used = name if self._imports.get(name, "") in same else self._free_name(name, known.module)
        self._imports[used] = line if used == plain else f"{line} as {used}"
        return used

    def _runs_before(self, first: ModuleType, then: _Module) -> None:
        """Statements of an imported module come before those of the one that imports it."""
        order = list(self._modules)
        if order.index(first.__name__) > order.index(then.module.__name__):
            moved = self._modules.pop(then.module.__name__)
            self._modules[then.module.__name__] = moved

    def _from_stars(self, known: _Module, name: str) -> str:
        for origin in known.stars:
            module = sys.modules.get(origin)
            if module is not None and hasattr(module, name):
                if is_users(module):
                    found = self.need(module, name)
                    self._runs_before(module, known)
                    return found
                self._imports[name] = f"from {origin} import {name}"
                return name
        return name  # a builtin, or a name that nothing has bound yet

    def _need_statement(self, known: _Module, place: int) -> None:
        if place in known.needed:
            return
        known.needed.add(place)
        for module, name in self._mentioned(known, known.statements[place]).values():
            self.need(module, name)
            if module is not known.module:
                self._runs_before(module, known)

    def _mentioned(self, known: _Module, statement: ast.stmt) -> dict[ast.expr, tuple[ModuleType, str]]:
        """The expressions of a statement that are global names, or names of modules of the user's."""
        found: dict[ast.expr, tuple[ModuleType, str]] = {}
        for node, names in global_names(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                if any(is_users(sys.modules.get(each)) for each in modules_of(known.module, node)):
                    where = f"{known.module.__file__}:{node.lineno}"
                    raise UsageError(f"{where}: an import inside of a function can't be put into one file")
                continue
            module = self._as_module(known, names[0])
            steps = 1
            while module is not None and steps < len(names):
                inner = vars(module).get(names[steps])
                if not (isinstance(inner, ModuleType) and is_users(inner)):
                    break
                module, steps = inner, steps + 1
            if module is None:
                root = node
                while isinstance(root, ast.Attribute):
                    root = root.value
                found[root] = known.module, names[0]
            elif steps < len(names):
                expression: ast.expr = node
                for _ in range(len(names) - steps - 1):
                    assert isinstance(expression, ast.Attribute)
                    expression = expression.value
                found[expression] = module, names[steps]
            else:
                raise UsageError(f"{known.module.__file__}:{node.lineno}: the module {names[-1]} is used as a value")
        return found

    def _as_module(self, known: _Module, name: str) -> ModuleType | None:
        """The module of the user's that a global name is bound to by an import, if so."""
        value = vars(known.module).get(name)
        places = known.binders.get(name, [])
        imported = places and isinstance(known.statements[places[0]], (ast.Import, ast.ImportFrom))
        return value if imported and isinstance(value, ModuleType) and is_users(value) else None

    def _text(self, known: _Module, statement: ast.stmt) -> str:
        """A statement as it is written, with what it mentions by the names of the one module."""
        lines = known.text.splitlines(keepends=True)
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        text = lines[first - 1 : statement.end_lineno]
        changes = []
        for node, (module, name) in self._mentioned(known, statement).items():
            new = self.names.get((module.__name__, name), name)
            if new != ast.get_source_segment(known.text, node):
                changes.append((node.lineno - first, node.col_offset, node.end_lineno, node.end_col_offset, new))
        for name in declared_global(statement):
            if self.names.get((known.module.__name__, name), name) != name:
                raise UsageError(f"{known.module.__file__}: {name} is global, and another module has the name too")
        place = place_of_name(statement)
        if place is not None:
            (name,) = bound(statement)
            width = len(name.encode())
            new = self.names.get((known.module.__name__, name), name)
            changes.append((place[0] - first, place[1], place[0], place[1] + width, new))
        for line, begin, end_line, end, new in sorted(changes, key=lambda each: each[:2], reverse=True):
            if end_line != line + first:
                raise UsageError(f"{known.module.__file__}:{line + first}: a name that spans lines")
            encoded = text[line].encode()
            text[line] = (encoded[:begin] + new.encode() + encoded[end:]).decode()
        return "".join(text).rstrip("\n")
