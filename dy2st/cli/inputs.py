"""Where a command's example inputs come from: ``--input`` specs, an ``--inputs`` file, or the target's own module."""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dy2st.cli.target import load_module, split_target
from dy2st.errors import ExampleInputsError, InputFileError, InputSpecError, UsageError
from dy2st.input_spec import SET_COUNT, InputSpec, dynamic_shapes, example_tensors, parse_input_spec
from dy2st.parity.inputs import signature_of
from dy2st.parity.strategies import drawn_sets

if TYPE_CHECKING:
    import argparse

    from dy2st.cli.target import Target

# safetensors' names of dtypes; the file is a JSON header and raw little-endian data.
_SAFETENSORS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_LARGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class ExampleInputs:
    """Sets of inputs in any form that ``dy2st.check`` takes, and the dynamic shapes that go with them, if known.

    ``specs`` are those that the sets were made from, by parameter.
    """

    sets: Any
    dynamic_shapes: Any = None
    specs: dict[str, InputSpec] = field(default_factory=dict)


def example_inputs(target: Target, options: argparse.Namespace) -> ExampleInputs:
    """The example inputs of a command.

    Raises:
        UsageError: ``--input`` and ``--inputs`` are both given.
        InputSpecError: a spec does not parse or does not fit the signature.
        InputFileError: the file is missing, unreadable or of an unknown kind.
        ExampleInputsError: neither option is given and the module has no ``example_inputs``.
    """
    if options.input and options.inputs:
        raise UsageError("--input and --inputs exclude each other")
    if options.input:
        return _from_specs(target, [parse_input_spec(text) for text in options.input])
    declared = _called(getattr(target.module, "dynamic_shapes", None), f"dynamic_shapes of {target.module.__name__}")
    if options.inputs:
        return ExampleInputs(_from_file(options.inputs), declared)
    given = getattr(target.module, "example_inputs", None)
    strategies = getattr(target.module, "input_strategies", None)
    if given is None and strategies is not None:
        return ExampleInputs(drawn_sets(strategies, seed=0, count=SET_COUNT), declared)
    if given is None:
        raise ExampleInputsError(
            f"{target.text}: there are no example inputs",
            hint="--input 'x=f32[batch,3]', --inputs FILE, or a function example_inputs() beside the model",
        )
    return ExampleInputs(_called(given, f"example_inputs of {target.module.__name__}"), declared)


def _called(value: Any, what: str) -> Any:
    """A value, or what a function without parameters returns (a generator is run to its end)."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = value() if callable(value) else value
            return list(result) if hasattr(result, "__next__") else result
        except Exception as error:
            raise ExampleInputsError(f"{what} raises {type(error).__name__}: {error}") from error


def _from_specs(target: Target, specs: list[InputSpec]) -> ExampleInputs:
    """Named specs go to the parameters of that name, unnamed ones to the parameters that are left, in order."""
    signature = signature_of(target.model)
    names = [] if signature is None else list(signature.parameters)
    for spec in specs:
        if spec.name is not None and names and spec.name not in names:
            raise InputSpecError(f"{target.text} has no parameter {spec.name!r}", hint=f"one of {', '.join(names)}")
    free = iter([name for name in names if name not in {spec.name for spec in specs}])
    placed = [spec.name or next(free, None) for spec in specs]
    if None in placed or len(set(placed)) < len(placed):
        raise InputSpecError(f"{target.text}: {len(specs)} input specs for the parameters {', '.join(names)}")
    if signature is not None:
        try:
            signature.bind(**dict.fromkeys([str(name) for name in placed]))
        except TypeError as error:
            raise InputSpecError(f"{target.text}: the input specs do not fit: {error}") from error
    shapes = dynamic_shapes(specs)
    # in the order of the signature, so that the file's inputs have it too
    order = sorted(range(len(specs)), key=lambda i: names.index(str(placed[i])) if names else i)
    sets = []
    for number in range(SET_COUNT if shapes else 2):
        tensors = example_tensors(specs, number)
        sets.append({str(placed[i]): tensors[i] for i in order})
    by_name = {str(placed[i]): specs[i] for i in order}
    return ExampleInputs(sets, {str(placed[i]): shapes.get(i) for i in order} if shapes else None, by_name)


def _from_file(text: str) -> Any:
    where, name = split_target(text)
    if where.endswith(".py"):
        given = getattr(load_module(where), name if where != text else "example_inputs", None)
        if given is None:
            raise InputFileError(f"{where} has no {name!r}")
        return _called(given, text)
    path = Path(text)
    readers = {".npz": _npz, ".pt": _pt, ".safetensors": _safetensors}
    if path.is_dir():
        return _from_folder(path, tuple(readers))
    if path.suffix not in readers:
        raise InputFileError(f"{text}: unknown kind of input file", hint=f"{', '.join(readers)} or file.py:function")
    if not path.is_file():
        raise InputFileError(f"{text}: no such file")
    try:
        found = readers[path.suffix](path)
    except InputFileError:
        raise
    except pickle.UnpicklingError as error:
        raise InputFileError(f"{text} can't be read: not made by torch.save, or holds more than plain data") from error
    except Exception as error:  # damaged archives raise whatever the place of the damage leads to
        first = next(iter(str(error).splitlines()), "")
        raise InputFileError(f"{text} can't be read: {type(error).__name__}: {first}") from error
    if not found:
        raise InputFileError(f"{text} is empty")
    one_set = isinstance(found, dict) and any(isinstance(value, torch.Tensor) for value in found.values())
    return [found] if one_set else found


def _from_folder(folder: Path, suffixes: tuple[str, ...]) -> dict[str, Any]:
    """The sets of all files of a folder, named after the files, in their order."""
    files = sorted(file for file in folder.iterdir() if file.suffix in suffixes)
    if not files:
        raise InputFileError(f"{folder}: no input file in this folder", hint=", ".join(suffixes))
    sets: dict[str, Any] = {}
    for file in files:
        found = _from_file(str(file))
        named = found.items() if isinstance(found, dict) else enumerate(found)
        inside = list(named)
        sets |= {file.stem if len(inside) == 1 else f"{file.stem}_{name}": each for name, each in inside}
    return sets


def _npz(path: Path) -> dict[str, torch.Tensor]:
    import numpy as np

    # opened here, since numpy leaves the file open when it is damaged
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return {name: torch.from_numpy(archive[name]) for name in archive.files}


def _pt(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    if length > min(len(data) - 8, _LARGEST_HEADER):
        raise InputFileError(f"{path} can't be read: not a safetensors file, or cut short")
    header = json.loads(data[8 : 8 + length])
    body = bytearray(data[8 + length :])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = _SAFETENSORS[entry["dtype"]]
        if not 0 <= begin <= end <= len(body):
            raise InputFileError(f"{path} can't be read: {name!r} lies outside of the file")
        flat = (
            torch.frombuffer(body, dtype=dtype, count=(end - begin) // dtype.itemsize, offset=begin)
            if end > begin
            else torch.empty(0, dtype=dtype)
        )
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors
