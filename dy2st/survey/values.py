"""Which expressions of a function hold tensors, or numbers made of their values: an abstract reading of its source.

Parameters are what their annotations say; those of ``forward`` are tensors unless their default is a constant; others
are tensors if the function asks of them what only tensors have. Assignments are followed in any order, to the end: a
name holds what any of its assignments gives. Calls within a file give what the functions return there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dy2st.survey import value_kinds
from dy2st.survey.value_kinds import Kind

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_ROUNDS = 6


def own(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function, without what is in functions and classes inside of it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from own(child)


def dotted(node: ast.AST) -> str:
    """``torch.nn.functional.relu`` of a chain of names; nothing of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


class Values:
    """What the expressions of one function hold.

    ``torch_names`` are the names that stand for torch and its modules, ``fields`` what attributes of ``self`` hold,
    ``returns`` what functions of the file give, by ``name`` and ``self.name``.
    """

    def __init__(
        self,
        function: Function,
        *,
        torch_names: frozenset[str],
        fields: Mapping[str, Kind],
        returns: Mapping[str, Kind],
        outer: Mapping[str, Kind],
        is_forward: bool,
    ) -> None:
        self.function, self.torch_names, self.fields, self.returns = function, torch_names, fields, returns
        self.names: dict[str, Kind] = dict(outer)
        self._expressions: tuple[tuple[Any, Callable[[Any], Kind]], ...] = (
            (ast.Name, lambda node: self.names.get(node.id, Kind.PLAIN)),
            (ast.Attribute, self._attribute),
            (ast.Call, self._call),
            (ast.Subscript, self._subscript),
            (ast.Compare, self._comparison),
            (ast.BinOp, lambda node: self._any((node.left, node.right))),
            (ast.UnaryOp, self._unary),
            (ast.BoolOp, lambda node: self._any(node.values)),
            (ast.IfExp, lambda node: self._any((node.body, node.orelse))),
            ((ast.Tuple, ast.List, ast.Set), lambda node: self._held(node.elts)),
            (ast.Dict, lambda node: self._held(node.values)),
            ((ast.ListComp, ast.SetComp, ast.GeneratorExp), lambda node: self._held([node.elt])),
            (ast.DictComp, lambda node: self._held([node.value])),
            ((ast.Starred, ast.NamedExpr, ast.Await), lambda node: self.kind(node.value)),
        )
        self.nodes = list(own(function))
        self._parameters(is_forward)
        for _ in range(_MOST_ROUNDS):
            before = dict(self.names)
            for node in self.nodes:
                self._assign(node)
            if self.names == before:
                break

    # ---- names

    def _parameters(self, is_forward: bool) -> None:
        arguments = self.function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        positional = [*arguments.posonlyargs, *arguments.args]
        last = positional[len(positional) - len(arguments.defaults) :]
        pairs = [*zip(last, arguments.defaults, strict=True)]
        pairs += [
            (each, default)
            for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        ]
        defaults = dict(pairs)
        asked = self._asked_of()
        for parameter in every:
            if parameter.arg in ("self", "cls"):
                continue
            kind = annotated(parameter.annotation)
            if kind is None:
                default = defaults.get(parameter)
                constant = isinstance(default, ast.Constant) and default.value is not None
                likely = parameter.arg in asked or (is_forward and not constant)
                kind = Kind.TENSOR if likely and not isinstance(default, (ast.List, ast.Tuple)) else Kind.PLAIN
            self.names[parameter.arg] = kind
        if arguments.vararg is not None and is_forward:
            self.names[arguments.vararg.arg] = Kind.HOLDS

    def _asked_of(self) -> set[str]:
        """The names of which something is asked that only tensors have, or that are given to torch's functions."""
        found = set()
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and node.attr in value_kinds.ONLY_TENSORS:
                found.add(dotted(node.value))
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                whole = dotted(node.func)
                last = whole.rpartition(".")[2]
                takes_tensors = last not in value_kinds.FACTORIES and not value_kinds.gives_no_tensor(last)
                if self._is_torch(whole) and takes_tensors:
                    found.add(node.args[0].id)
        return found

    def _assign(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            if node.value is not None:
                self._bind(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._raise(node.target, self.kind(node.value))
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._loop(node.target, node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            gathers = node.func.attr in value_kinds.GATHERS
            if gathers and any(self.kind(each) in (Kind.TENSOR, Kind.HOLDS) for each in node.args):
                self._raise(node.func.value, Kind.HOLDS)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for one, each in zip(target.elts, value.elts, strict=True):
                    self._bind(one, each)
            else:
                self._raise(target, self.element(value))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            if self.kind(value) is Kind.TENSOR and self.names.get(target.value.id) is not Kind.TENSOR:
                self._raise(target.value, Kind.HOLDS)
        else:
            self._raise(target, self.kind(value))

    def _loop(self, target: ast.expr, iterable: ast.expr) -> None:
        """The target of a loop; of ``enumerate``, ``zip`` and ``items`` each part by itself."""
        called = iterable if isinstance(iterable, ast.Call) else None
        name = called.func.id if called is not None and isinstance(called.func, ast.Name) else ""
        method = called.func.attr if called is not None and isinstance(called.func, ast.Attribute) else ""
        given = [] if called is None else called.args
        parts = target.elts if isinstance(target, ast.Tuple) else []
        if name == "enumerate" and parts and given:
            self._loop(parts[-1], given[0])
        elif name == "zip" and parts and len(parts) == len(given):
            for one, each in zip(parts, given, strict=True):
                self._loop(one, each)
        elif method == "items" and parts:
            self._raise(parts[-1], self.element(iterable))
        elif method != "keys":
            self._raise(target, self.element(iterable))

    def _raise(self, target: ast.AST, kind: Kind) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = max(self.names.get(target.id, Kind.PLAIN), kind)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._raise(each, kind)
        elif isinstance(target, ast.Starred):
            self._raise(target.value, Kind.HOLDS if kind else kind)

    # ---- expressions

    def _is_torch(self, whole: str) -> bool:
        return whole.partition(".")[0] in self.torch_names

    def element(self, node: ast.expr) -> Kind:
        """What the elements of an iterable are."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "range":
                return Kind.NUMBER if any(self.kind(each) >= Kind.NUMBER for each in node.args) else Kind.PLAIN
            if node.func.id in ("enumerate", "zip", "reversed", "sorted", "list", "tuple"):
                return max((self.element(each) for each in node.args), default=Kind.PLAIN)
        kind = self.kind(node)
        return Kind.TENSOR if kind is Kind.HOLDS else kind

    def kind(self, node: ast.expr | None) -> Kind:
        """What an expression holds."""
        for types, of in self._expressions:
            if isinstance(node, types):
                return of(node)
        return Kind.PLAIN

    def _any(self, parts: Iterable[ast.expr]) -> Kind:
        return max((self.kind(each) for each in parts), default=Kind.PLAIN)

    def _subscript(self, node: ast.Subscript) -> Kind:
        kind = self.kind(node.value)
        if kind is Kind.HOLDS:
            return Kind.TENSOR
        return max(kind, Kind.NUMBER) if self.kind(node.slice) >= Kind.NUMBER else kind

    def _comparison(self, node: ast.Compare) -> Kind:
        if all(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):
            return Kind.PLAIN
        found = self._of_values(self._any([node.left, *node.comparators]))
        if not all(isinstance(each, (ast.In, ast.NotIn)) for each in node.ops):
            return found
        by_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        return Kind.PLAIN if by_text else min(found, Kind.NUMBER)

    def _unary(self, node: ast.UnaryOp) -> Kind:
        kind = self.kind(node.operand)
        return self._of_values(min(kind, Kind.NUMBER)) if isinstance(node.op, ast.Not) else kind

    @staticmethod
    def _of_values(kind: Kind) -> Kind:
        return kind if kind >= Kind.NUMBER else Kind.PLAIN

    def _held(self, parts: Iterable[ast.expr]) -> Kind:
        return Kind.HOLDS if any(self.kind(each) is not Kind.PLAIN for each in parts) else Kind.PLAIN

    def _attribute(self, node: ast.Attribute) -> Kind:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.fields.get(node.attr, Kind.PLAIN)
        if self._is_torch(dotted(node)):
            return Kind.PLAIN
        kind = self.kind(node.value)
        if kind is Kind.TENSOR:
            return Kind.PLAIN if node.attr in value_kinds.OF_THE_FORM else Kind.TENSOR
        return kind if kind is Kind.NUMBER else Kind.PLAIN

    def _call(self, node: ast.Call) -> Kind:
        whole = dotted(node.func)
        last = whole.rpartition(".")[2]
        given = [*node.args, *(each.value for each in node.keywords)]
        if self._is_torch(whole):
            if last in value_kinds.SEVERAL:
                return Kind.HOLDS
            return Kind.PLAIN if value_kinds.gives_no_tensor(last) else Kind.TENSOR
        if whole in self.returns:
            return self.returns[whole]
        if isinstance(node.func, ast.Name):
            return self._builtin(node.func.id, given)
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, given)
        return Kind.TENSOR if any(self.kind(each) is Kind.TENSOR for each in given) else Kind.PLAIN

    def _builtin(self, name: str, given: list[ast.expr]) -> Kind:
        found = max((self.kind(each) for each in given), default=Kind.PLAIN)
        if name in value_kinds.ASKS_FORM:
            return Kind.PLAIN
        if name == "range":
            return Kind.HOLDS if found >= Kind.NUMBER else Kind.PLAIN
        if name in value_kinds.MAKES_NUMBERS:
            elements = max((self.element(each) for each in given), default=Kind.PLAIN)
            keeps = name in ("abs", "sum", "max", "min", "round", "pow") and elements is Kind.TENSOR
            return Kind.TENSOR if keeps else Kind.NUMBER if elements >= Kind.NUMBER else Kind.PLAIN
        if name in value_kinds.KEEPS:
            return Kind.HOLDS if found is not Kind.PLAIN else Kind.PLAIN
        # A function or class from elsewhere: most of those that take tensors give some.
        return Kind.TENSOR if found is Kind.TENSOR and not name[:1].isupper() else Kind.PLAIN

    def _method(self, method: ast.Attribute, given: list[ast.expr]) -> Kind:
        owner = self.kind(method.value)
        if owner is Kind.TENSOR:
            if method.attr in value_kinds.TO_NUMBERS:
                return Kind.NUMBER
            if method.attr in value_kinds.SEVERAL:
                return Kind.HOLDS
            return Kind.PLAIN if method.attr in value_kinds.OF_THE_FORM else Kind.TENSOR
        if owner is Kind.HOLDS:
            return Kind.HOLDS if method.attr in ("items", "keys", "values", "copy") else Kind.TENSOR
        if owner is Kind.NUMBER:
            return Kind.NUMBER
        takes = any(self.kind(each) is Kind.TENSOR for each in given)
        return Kind.TENSOR if takes and method.attr not in ("append", "extend", "add", "update") else Kind.PLAIN


def annotated(annotation: ast.expr | None) -> Kind | None:
    """What an annotation says; None without one, or where it says nothing."""
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value
    else:
        text = ast.unparse(annotation)
    words = set(text.replace("[", " ").replace("]", " ").replace(",", " ").replace("|", " ").replace(".", " ").split())
    if any(word.endswith("Tensor") for word in words):
        holds = words & {"list", "List", "Sequence", "tuple", "Tuple", "dict", "Dict", "Iterable", "Mapping"}
        return Kind.HOLDS if holds else Kind.TENSOR
    return Kind.PLAIN if words & value_kinds.PLAIN_TYPES else None
