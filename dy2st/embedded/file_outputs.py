"""Outputs of a file that are not one tensor of numbers in each call, as pieces that can be compared.

Where a file has such, its metadata has under ``dy2st.outputs`` a JSON list of what each output is. ``form`` is

- ``tensor``: what there always is;
- ``sequence``: a list, piece by piece;
- ``optional``: nothing, or a tensor;
- ``flag``: a tensor that counts where the bool output that ``present`` names says so; that output is ``present``;
- ``text``: a string, as its UTF-8 bytes.

``place`` is where it is in what the model returns (``output['rows']``), ``inner`` where each piece is in an element of
the list that stands there. A piece has a place of its own: ``output['rows'][2].score``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dy2st.embedded.array_file import Array

OUTPUTS = "dy2st.outputs"
_STEP = re.compile(r"\['([^']*)'\]|\.(\w+)|\[(\d+)\]", re.ASCII)


@dataclass(frozen=True)
class FileOutput:
    """What an output of a file is."""

    output: str
    form: str
    place: str
    inner: str = ""
    present: str = ""


def as_json(outputs: Sequence[FileOutput]) -> str:
    """The text for a file's metadata."""
    return json.dumps([asdict(each) for each in outputs])


def told_outputs(metadata: Mapping[str, str]) -> dict[str, FileOutput]:
    """What a file says of its outputs, by name; of a file that has tensors alone, nothing."""
    return {each["output"]: FileOutput(**each) for each in json.loads(metadata.get(OUTPUTS, "[]"))}


def steps(place: str) -> str:
    """A place as its keys, fields and numbers alone: a program may give a dict in place of a dataclass."""
    return _STEP.sub(r".\1\2\3", place)


def is_plain(session: Any) -> bool:
    """Whether all outputs of a session of onnxruntime are tensors of numbers."""
    kinds = [str(each.type) for each in session.get_outputs()]
    return all(kind.startswith("tensor(") and kind != "tensor(string)" for kind in kinds)


@dataclass(frozen=True)
class Piece:
    """A tensor of an output, its ``name`` among the pieces of a run (``rows[2]``), and its place; "" if not told."""

    output: str
    name: str
    place: str
    value: Any


def pieces(told: Mapping[str, FileOutput], names: Sequence[str], values: Sequence[Any]) -> Iterator[Piece]:
    """The tensors among the outputs of a run.

    Args:
        told: what the file says of its outputs.
        names: of the outputs.
        values: arrays or tensors; lists of these, or None.
    """
    by_name = dict(zip(names, values, strict=True))
    for name, value in by_name.items():
        said = told.get(name, FileOutput(name, "tensor", ""))
        if value is None or said.form == "present" or (said.form == "flag" and not _is_true(by_name[said.present])):
            continue
        if isinstance(value, list):
            for number, each in enumerate(value):
                place = said.place and f"{said.place}[{number}]{said.inner}"
                yield Piece(name, f"{name}[{number}]", place, each)
        else:
            yield Piece(name, name, said.place, value)


def _is_true(flag: Any) -> bool:
    return bool(flag.bits if isinstance(flag, Array) else flag)


def piece_at(told: Mapping[str, FileOutput], place: str) -> tuple[str, str] | None:
    """The output, and the name of its piece, that is at a place of what a model returns, if it is in the file."""
    wanted = steps(place)
    for each in told.values():
        if each.form == "sequence":
            found = re.fullmatch(rf"{re.escape(steps(each.place))}\.(\d+){re.escape(steps(each.inner))}", wanted)
            if found:
                return each.output, f"{each.output}[{found[1]}]"
        elif each.form != "present" and steps(each.place) == wanted:
            return each.output, each.output
    return None


def text_bytes(text: str) -> np.ndarray[Any, Any]:
    """A text as an array of numbers: its UTF-8 bytes."""
    return np.frombuffer(text.encode(), np.uint8)


def as_numbers(value: Any) -> Any:
    """An array as it is; one of texts as the bytes of its only text."""
    if isinstance(value, (str, bytes)) or value.dtype.kind in "OSU":
        text = value if isinstance(value, (str, bytes)) else value.item()
        return text_bytes(text.decode() if isinstance(text, bytes) else text)
    return value
