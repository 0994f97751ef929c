"""Files of inputs: ``.npz``, ``.pt`` and ``.safetensors``, folders of these, and functions in Python files."""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import torch

from dy2st.cli.target import let_pass, load_module, raised, split_target
from dy2st.errors import ExampleInputsError, InputFileError

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


def called(value: Any, what: str) -> Any:
    """A value, or what a function without parameters returns (a generator is run to its end)."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            result = value() if callable(value) else value
            return list(result) if hasattr(result, "__next__") else result
        except BaseException as error:
            let_pass(error)
            raise ExampleInputsError(f"{what} raises {raised(error)}") from error


def sets_from_file(text: str) -> Any:
    """The sets of a file or folder.

    Raises:
        InputFileError: it is missing, unreadable, empty or of an unknown kind.
    """
    where, name = split_target(text)
    if where.endswith(".py"):
        given = getattr(load_module(where), name if where != text else "example_inputs", None)
        if given is None:
            raise InputFileError(f"{where} has no {name!r}")
        return called(given, text)
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
        found = sets_from_file(str(file))
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
