"""From a target that goes wrong to the script that shows it."""

from __future__ import annotations

import contextlib
import inspect
import io
import runpy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from dy2st.errors import UsageError
from dy2st.parity.inputs import InputSet, bound_arguments, input_sets, signature_of
from dy2st.reproducer.inlining import inlined
from dy2st.reproducer.reduction import reduced
from dy2st.reproducer.script import Script
from dy2st.reproducer.trials import Mismatch, Trials


@dataclass(frozen=True)
class Reproduced:
    """What was written: the lines of the script, how many the user's code had at first, and the trials made."""

    lines: int
    lines_at_first: int
    trials: int
    saved: bool


def reproduce(
    file: Path,
    module: ModuleType,
    name: str,
    model: Any,
    inputs: Any,
    *,
    about: Sequence[str] = (),
    by: str = "dy2st",
    dynamic_shapes: Any = None,
    options: Mapping[str, Any] | None = None,
    trials: int = 400,
    seconds: float = 60.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Reproduced:
    """Write a script on which eager and the exported model differ as they do for ``model``; smaller, if that can be.

    Tensors that are too large for text go into a ``.pt`` file of the same name beside it.

    Args:
        file: the script.
        module: the user's module.
        name: what it calls the model, or the class or function that makes it.
        model: the model.
        inputs: the sets, as for ``dy2st.check``.
        about: what is wrong, for the head of the script.
        by: the name and version of who writes it.
        dynamic_shapes: as for ``torch.export.export``.
        options: further arguments of ``dy2st.check``: ``rtol``, ``atol``, ``opset_version``, ``drop_guards``.
        trials: how many smaller scripts to try.
        seconds: how long to try.
        progress: is told each step.

    Raises:
        UsageError: the mismatch does not show in a script of its own.
        UsageError: the code or its inputs can't be put into one file.
    """
    progress("collecting the code")
    source, known_as = inlined(module, name)
    script = Script(
        source,
        _build(module, name, known_as, model),
        tuple(_in_one_form(model, each) for each in input_sets(inputs)),
        state=_state(model),
        training=model.training if isinstance(model, torch.nn.Module) else None,
        dynamic_shapes=dynamic_shapes,
        options=dict(options or {}),
    )
    tried = Trials(most=trials, seconds=seconds)
    progress("trying the script")
    sought = tried.first(script)
    if sought is None:
        raise UsageError(
            "eager and the exported model agree when the model's code runs in a script of its own",
            hint="look for what the model's module does when it is imported, for what is drawn without a seed, and, "
            "where a search has found the inputs, give these: --save-inputs DIR, then --inputs DIR",
        )
    small = reduced(script, tried, progress)
    text, saved = small.text(_head(sought, about, by), f"{file.stem}.pt")
    file.write_text(text, encoding="utf-8")
    if saved:
        torch.save(saved, file.with_suffix(".pt"))
    progress("running the script")
    _require_failing(file)
    return Reproduced(text.count("\n"), source.count("\n"), tried.made, bool(saved))


def _build(module: ModuleType, name: str, known_as: str, model: Any) -> str:
    """The expression that makes the model: the name, or a call of it."""
    root, dot, rest = name.partition(".")
    found: Any = getattr(module, root)
    for step in rest.split(".") if rest else ():
        found = getattr(found, step)
    return f"{known_as}{dot}{rest}{'' if found is model else '()'}"


def _state(model: Any) -> dict[str, torch.Tensor] | None:
    if not isinstance(model, torch.nn.Module):
        return None
    return {key: value.detach().clone() for key, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


def _in_one_form(model: Any, given: InputSet) -> InputSet:
    """All arguments by position or all by name: a set of a script has one of the two."""
    if not (given.args and given.kwargs):
        return given
    signature = signature_of(model)
    if signature is None or any(
        each.kind is inspect.Parameter.POSITIONAL_ONLY for each in signature.parameters.values()
    ):
        raise UsageError("the arguments are given by position and by name, and the model takes them no other way")
    return InputSet(given.name, (), bound_arguments(model, given))


def _head(sought: Mismatch, about: Sequence[str], by: str) -> list[str]:
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "onnx", "onnxruntime"))
    how = "fails" if sought.status == "error" else "differs from eager"
    return [
        f"The {sought.stage} stage of this model {how}, with {by}, {versions}:",
        "",
        *about,
        "",
        "Exits with 1 while it does, else with 0.",
    ]


def _require_failing(file: Path) -> None:
    """Run what was written, as it stands.

    Raises:
        UsageError: it does not exit with 1.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            runpy.run_path(str(file), run_name="__main__")
        code: Any = 0
    except SystemExit as stop:
        code = stop.code
    if code != 1:
        raise UsageError(f"the script that was written exits with {code}")
