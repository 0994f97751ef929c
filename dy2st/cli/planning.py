"""What ``dy2st check`` has to do: a job for each target, with its options from the command line and the settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.cli.comparing import bounds
from dy2st.cli.folders import read_folder
from dy2st.cli.names import require_name
from dy2st.cli.settings import named_alike
from dy2st.errors import UsageError
from dy2st.errors.places import from_here
from dy2st.sweep.job import Job

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from dy2st.cli.settings import Settings, TargetTable

# The options of one target, and their values where nobody says anything.
DEFAULTS: dict[str, Any] = {
    "input": [],
    "inputs": None,
    "onnx": None,
    "opset": None,
    "opsets": (),
    "rtol": None,
    "atol": None,
    "search": None,
    "seed": 0,
    "save_inputs": None,
    "allow_uncovered": False,
    "timeout": None,
    "all_errors": False,
    "allow_specialize": [],
    "drop_guards": False,
    "state": None,
    "optional_outputs": None,
    "inputs_as": [],
    "random_inputs": False,
    "optimization_levels": False,
    "providers": (),
    "runtimes": (),
    "traceback": False,
}


def planned(options: Namespace, settings: Settings, *, listings: bool = False) -> list[Job]:
    """A job for each target, in order: those of the command line, else those of the settings, each once.

    Raises:
        UsageError: there is none, or a file is given for several.
        TargetError: a folder has no models in it.
    """
    named = list(options.targets)
    given = named or [*settings.targets, *(table.target for table in settings.tables)]
    targets = expanded(given, options, settings)
    if not named:
        first: dict[str, str] = {}
        for each in targets:
            first.setdefault(named_alike(each), each)
        targets = list(first.values())
    single = len(targets) == 1
    if options.onnx is not None and not single:
        raise UsageError(f"--onnx is for one target, and there are {len(targets)}", hint="name one")
    folder = None if settings.folder is None else str(settings.folder)
    return [
        Job(
            each,
            options_for(each, options, settings),
            about="" if single else each,
            listings=listings,
            folder=folder,
        )
        for each in targets
    ]


def options_for(target: str, options: Namespace, settings: Settings) -> dict[str, Any]:
    """The options of one target: defaults, those of all targets, those of its tables, the command line."""
    found = dict(DEFAULTS)
    layers = [settings.options, *(table.options for table in _tables_of(target, settings.tables))]
    for layer in [*layers, _given(options)]:
        if "input" in layer or "inputs" in layer:  # what a layer says of inputs takes the place of all before
            found |= {"input": [], "inputs": None}
        found |= layer
    for name in ("rtol", "atol"):
        found[name] = bounds(getattr(options, name), found[name])
    return found


def _given(options: Namespace) -> dict[str, Any]:
    """What the command line says. Bounds are added to those of the settings, so they aren't among these."""
    found = {name: getattr(options, name, None) for name in DEFAULTS if name not in {"rtol", "atol"}}
    return {name: value for name, value in found.items() if not (value is None or value is False or value in ([], ()))}


def _tables_of(target: str, tables: Sequence[TargetTable]) -> list[TargetTable]:
    """Those that are for a target: of the folders that it lies in, the outermost first, then its own."""
    own = named_alike(target)
    file = Path(own.rpartition(":")[0])
    folders: dict[int, TargetTable] = {}
    exact = []
    for table in tables:
        where = Path(os.path.normpath(Path.cwd() / table.target))
        if named_alike(table.target) == own:
            exact.append(table)
        elif where.is_dir() and file.is_relative_to(where):
            folders[len(where.parts)] = table
    return [*(folders[depth] for depth in sorted(folders)), *exact]


def expanded(given: Sequence[str], options: Namespace, settings: Settings) -> list[str]:
    """The targets, with those in it for each folder. What a folder has beside them is said on stderr.

    Raises:
        UsageError: there are none.
        TargetError: a folder has no models in it; or, with ``--strict``, other files beside them.
    """
    if not given:
        raise UsageError(
            "there is nothing to check", hint="name a target, or `targets` in [tool.dy2st] of pyproject.toml"
        )

    def has_inputs(target: str) -> bool:
        own = options_for(target, options, settings)
        return bool(own["input"] or own["inputs"])

    found: list[str] = []
    for text in given:
        require_name(text)
        if not text or not Path(text).is_dir():
            found.append(text)
            continue
        folder = read_folder(text, has_inputs)
        folder.require_targets(strict=options.strict)
        sys.stderr.writelines(f"dy2st: {from_here(line)}\n" for line in folder.lines())
        found.extend(folder.targets)
    return found


def as_options(given: Mapping[str, Any]) -> Namespace:
    """The options of a job, in the form that commands take them."""
    from argparse import Namespace

    return Namespace(**{**DEFAULTS, **given})
