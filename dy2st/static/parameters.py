"""The parameters of a function: arguments by parameter, in one order however a call gives them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_Kind = inspect.Parameter


class Parameters:
    """Of a signature. ``bound`` is generated code: it binds as fast as a call, and fails as one does."""

    def __init__(self, signature: inspect.Signature, name: str) -> None:
        self.signature = signature
        self.names = list(signature.parameters)
        self._kinds = [each.kind for each in signature.parameters.values()]
        self._bind = _binder(signature, name)
        plain = all(kind in (_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD) for kind in self._kinds)
        self._count = len(self.names) if plain else -1

    def are_of(self, signature: inspect.Signature) -> bool:
        """Whether these are the parameters of a signature, with the same defaults."""
        mine, others = self.signature.parameters.values(), signature.parameters.values()
        return len(mine) == len(others) and all(
            (a.name, a.kind) == (b.name, b.kind) and a.default is b.default for a, b in zip(mine, others, strict=True)
        )

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The value of each parameter, defaults included.

        Raises:
            TypeError: the function would not take these arguments; the message is Python's.
        """
        return args if not kwargs and len(args) == self._count else self._bind(*args, **kwargs)

    def parted(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``args`` and ``kwargs`` of a call with these values."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, kind, value in zip(self.names, self._kinds, values, strict=True):
            if kind is _Kind.VAR_POSITIONAL:
                args += value
            elif kind is _Kind.VAR_KEYWORD:
                kwargs.update(value)
            elif kind is _Kind.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return tuple(args), kwargs

    def placed(self, found: Mapping[str, T], shown: inspect.Signature, kwargs: Mapping[str, Any]) -> dict[str, T]:
        """What is known by paths from the parameters that are ``shown``, by paths from those here, in a call.

        ``x['a']`` is at ``args[0]['a']`` where a decorator takes ``*args``, and at ``kwargs['x']['a']`` if the call has
        it among its ``kwargs``.
        """
        spread = {kind: name for name, kind in zip(self.names, self._kinds, strict=True)}
        places = {}
        for i, name in enumerate(shown.parameters):
            if name not in self.names:
                before = sum(kind in (_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD) for kind in self._kinds)
                by_name = f"{spread.get(_Kind.VAR_KEYWORD)}[{name!r}]"
                places[name] = by_name if name in kwargs else f"{spread.get(_Kind.VAR_POSITIONAL)}[{i - before}]"
        roots = {path: re.split(r"\W", path, maxsplit=1)[0] for path in found}
        return {places.get(root, root) + path[len(root) :]: found[path] for path, root in roots.items()}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a callable; any arguments, of one of C's that does not tell."""
    try:
        return inspect.signature(function)
    except ValueError:
        kinds = (("args", _Kind.VAR_POSITIONAL), ("kwargs", _Kind.VAR_KEYWORD))
        return inspect.Signature([_Kind(name, kind) for name, kind in kinds])


def called_signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature by which a callable takes its arguments.

    What a decorator has put around a function looks like that, and may take ``*args`` and ``**kwargs``: it sees in
    which form each argument is given, and which are not.
    """
    try:
        return inspect.signature(function, follow_wrapped=False)
    except ValueError:
        return signature_of(function)


def signatures_of(function: Callable[..., Any], name: str) -> tuple[inspect.Signature, Parameters]:
    """What a callable shows as its signature, and the parameters that it is called by."""
    return signature_of(function), Parameters(called_signature_of(function), name)


def _binder(signature: inspect.Signature, name: str) -> Callable[..., tuple[Any, ...]]:
    defaults = {f"default_{each.name}": each.default for each in signature.parameters.values()}
    bare = [
        each.replace(annotation=_Kind.empty, default=_Kind.empty if each.default is _Kind.empty else _Named(each.name))
        for each in signature.parameters.values()
    ]
    header = str(inspect.Signature(bare))
    names = "".join(f"{each}, " for each in signature.parameters)
    exec(f"def bind{header}: return ({names})", defaults)  # noqa: S102  names of parameters alone
    found: Any = defaults["bind"]
    found.__code__ = found.__code__.replace(co_name=name, co_qualname=name)
    found.__qualname__ = name
    return found  # type: ignore[no-any-return]


class _Named:
    """A default in the text of a signature: the name under which its value is found."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"default_{self.name}"
