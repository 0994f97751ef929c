"""What a case is: one function of a public package, with inputs that take its different ways."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Given:
    """What a check takes: a model without control flow of its own around the package's code, and 3 to 6 inputs.

    ``may_raise`` says that the package itself raises for some of the inputs.
    """

    model: Any
    inputs: Sequence[tuple[Any, ...]]
    dynamic_shapes: Any = None
    may_raise: bool = False


@dataclass(frozen=True)
class Case:
    """One case. ``make`` imports the package and makes the model: nothing of a package is needed to list the cases."""

    name: str
    package: str
    where: str
    why: str
    field: str
    make: Callable[[], Given]

    @property
    def installed(self) -> str:
        """The package with its version, as ``pip`` writes it."""
        try:
            return f"{self.package}=={version(self.package)}"
        except PackageNotFoundError:
            return self.package


CASES: dict[str, Case] = {}


def case(package: str, where: str, why: str) -> Callable[[Callable[[], Given]], Callable[[], Given]]:
    """Register a function that makes a case, under its own name.

    Args:
        package: the distribution that the code is of; ``requirements.txt`` has its version.
        where: the module and function whose control flow is meant.
        why: what there is in it, in one line.
    """

    def register(make: Callable[[], Given]) -> Callable[[], Given]:
        name = make.__name__
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        CASES[name] = Case(name, package, where, why, make.__module__.rpartition(".")[2], make)
        return make

    return register


def load_cases(package: str = "tests.real.cases") -> dict[str, Case]:
    """Import all modules of cases; what they register is in the order of fields, then of lines."""
    folder = Path(import_module(package).__path__[0])
    for path in sorted(folder.glob("*.py")):
        import_module(f"{package}.{path.stem}")
    return CASES
