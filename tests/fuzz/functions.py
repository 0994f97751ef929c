"""Statements that define and call functions."""

from __future__ import annotations

from kinds import (
    INT,
    Function,
    Scope,
    Tensor,
    Together,
)
from suites import Lines, Suites, indented


class Functions(Suites):
    """Writes nested functions, lambdas, partials, recursion, and calls."""

    def call_for_effect(self, depth: int) -> Lines:
        """A call, whose result is kept or not."""
        place = self.pick(self.callable())
        function = self.scope.kinds[place]
        text = self.call(place, 1)
        if function.gives is None or self.choices.chance(20):
            return [text]
        kind = function.gives
        if isinstance(kind, Together):
            return self.bound_all(list(kind.items), f"{', '.join('{}' for _ in kind.items)} = {text}")
        return [f"{self.target(kind)} = {text}"]

    def inner_function(self, depth: int) -> Lines:
        """A nested function, which may assign some of the variables around it."""
        name = self.name("inner")
        changed = [p for p in self.choices.some(self.assignable(*self.scope.kinds.values()), 0, 2) if p.isidentifier()]
        changed = [p for p in changed if p not in self.foreign]
        takes = tuple(self.pick([Tensor(), Tensor("2"), INT]) for _ in range(self.choices.number(0, 2)))
        gives = self.pick([Tensor(), Tensor("2"), INT, None])
        self.capture()
        scope = self.scope.copy()
        scope.frozen |= set(scope.kinds)
        inner = type(self)(self.choices, scope, self.shared, gives)
        inner.foreign = set(scope.kinds) - set(changed)
        parameters = [self.name("p") for _ in takes]
        for parameter, kind in zip(parameters, takes, strict=True):
            scope.kinds[parameter] = kind
        body = [f"nonlocal {', '.join(changed)}"] if changed else []
        body += inner.suite(min(depth - 1, 2))
        if gives is not None and not inner.dead:
            body += [f"return {inner.of(gives, 1)}"]
        self.scope.kinds[name] = Function(takes, gives)
        self.scope.fixed.add(name)
        return [f"def {name}({', '.join(parameters)}):", *indented(body)]

    def lambda_(self, depth: int) -> Lines:
        """A lambda, which sees what it names when it is called."""
        kind = self.pick([Tensor(), Tensor("2"), INT])
        name, parameter = self.name("g"), self.name("p")
        outer = self.scope
        self.scope = outer.copy()
        self.scope.kinds[parameter] = kind
        text = self.of(kind, 2)
        self.scope = outer
        self.capture()
        self.scope.kinds[name] = Function((kind,), kind)
        self.scope.fixed.add(name)
        return [f"{name} = lambda {parameter}: {text}"]

    def capture(self) -> None:
        """A function was made that may see all that is in scope: nothing of it changes its kind or goes."""
        self.scope.frozen |= set(self.scope.kinds)

    def partial(self, depth: int) -> Lines:
        """A partial, or a method as a value."""
        found = [p for p in self.callable() if len(self.scope.kinds[p].takes) > 1]
        if not found:
            return self.assign(depth)
        place, name = self.pick(found), self.name("g")
        function = self.scope.kinds[place]
        text = f"functools.partial({place}, {self.of(function.takes[0], 1)})"
        if self.is_named(function.names, 0):
            text = f"functools.partial({place}, {function.names[0][1:]}={text.partition(', ')[2]}"
        self.scope.kinds[name] = Function(function.takes[1:], function.gives, function.names[1:])
        self.scope.fixed.add(name)
        return [f"{name} = {text}"]

    def recursion(self, depth: int) -> Lines:
        """A recursive function, to a depth that is plain Python."""
        name, value, left, result = self.name("again"), self.name("p"), self.name("i"), self.name("y")
        outer, self.scope = self.scope, Scope({value: Tensor(), left: INT}, {value, left}, {left})
        test, step = self.truth(1), self.of(Tensor(), 2)
        self.scope = outer
        start = self.of(Tensor(), 1)
        self.bind(result, Tensor())
        return [
            f"def {name}({value}, {left}):",
            f"    if {left} == 0:",
            f"        return {value}",
            f"    if {test}:",
            f"        {value} = {step}",
            f"    return {name}({value}, {left} - 1)",
            f"{result} = {name}({start}, {self.pick('123')})",
        ]

    def count_global(self, depth: int) -> Lines:
        """A function that counts in a global variable."""
        self.shared.uses_global = True
        name = self.name("k")
        lines = [f"if {self.truth(1)}:", "    count_up()"] if self.choices.chance(70) else ["count_up()"]
        self.bind(name, INT)
        return [*lines, f"{name} = COUNT[0]" if self.choices.chance(50) else f"{name} = counted()"]
