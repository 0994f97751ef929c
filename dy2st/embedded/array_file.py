"""Named arrays and texts in one file, in the format of safetensors.

A file is the length of a header (8 bytes, little-endian), the header (JSON: for each array its dtype, shape and place;
under ``__metadata__`` texts by name), and the arrays' bytes one after the other. Nothing of a file is run. It is read
whole or not at all: checksums of the header and of the arrays stand among its texts.
Source: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

BFLOAT16 = "bfloat16"
# safetensors' names of dtypes, and the bytes of an element.
_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    BFLOAT16: "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
DTYPES = frozenset(_NAMES)
_BY_NAME = {name: dtype for dtype, name in _NAMES.items()}
_LARGEST_HEADER = 100_000_000  # safetensors' own bound
_ALIGNED = 64


@dataclass(frozen=True, eq=False)
class Array:
    """An array with the name of its dtype: numpy has no bfloat16, whose ``bits`` are uint16 here."""

    dtype: str
    bits: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.bits.shape)

    def numbers(self) -> np.ndarray[Any, Any]:
        """The values; those of bfloat16 as float32."""
        if self.dtype != BFLOAT16:
            return self.bits
        wide: np.ndarray[Any, Any] = (self.bits.astype(np.uint32) << 16).view(np.float32)
        return wide


class DamagedFileError(ValueError):
    """A file is not what :func:`write` writes, or not as it has written it. ``foreign`` if it is of another kind."""

    def __init__(self, *, foreign: bool = False) -> None:
        super().__init__("the file is foreign" if foreign else "the file is damaged, or cut short")
        self.foreign = foreign


def write(stream: IO[bytes], texts: Mapping[str, str], arrays: Mapping[str, Array]) -> None:
    """Write a file to a stream.

    Raises:
        OSError: there is no room.
        ValueError: the texts are too long for a header.
    """
    # Those of large elements first, so that each lies where its dtype may lie.
    order = sorted(arrays, key=lambda name: (-arrays[name].bits.itemsize, name))
    entries: dict[str, Any] = {}
    place = checksum = 0
    for name in order:
        data = _bytes(arrays[name])
        entries[name] = {
            "dtype": _NAMES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [place, place + len(data)],
        }
        place += len(data)
        checksum = zlib.crc32(data, checksum)
    metadata = {**texts, "arrays_crc32": f"{checksum:08x}"}
    metadata["header_crc32"] = _header_checksum({"__metadata__": metadata, **entries})
    encoded = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":")).encode()
    encoded += b" " * (-(8 + len(encoded)) % _ALIGNED)
    if len(encoded) > _LARGEST_HEADER:
        raise ValueError(f"a header of {len(encoded)} bytes is too long")
    stream.write(len(encoded).to_bytes(8, "little"))
    stream.write(encoded)
    for name in order:
        stream.write(_bytes(arrays[name]))


def read(path: Path, kind: tuple[str, str]) -> tuple[dict[str, str], dict[str, Array]]:
    """The texts and the arrays of a file, among whose texts is ``kind``, a name and its text.

    Raises:
        OSError: the file can't be read.
        DamagedFileError: it is damaged, or of another kind.
    """
    content = path.read_bytes()
    header, start = _header(content, kind)
    try:
        texts = dict(header["__metadata__"])
        if texts.pop("header_crc32") != _header_checksum({**header, "__metadata__": texts}):
            raise DamagedFileError
        if f"{zlib.crc32(memoryview(content)[start:]):08x}" != texts.pop("arrays_crc32"):
            raise DamagedFileError
        arrays = {name: _array(entry, content, start) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise DamagedFileError from error
    return texts, arrays


def texts_of(path: Path, kind: tuple[str, str]) -> dict[str, str]:
    """The texts of a file alone, which may be of a newer version: nothing else is looked at.

    Raises:
        OSError: the file can't be read.
        DamagedFileError: it is damaged, or of another kind.
    """
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > _LARGEST_HEADER:
            raise DamagedFileError(foreign=True)
        stream.seek(0)
        header, _ = _header(stream.read(8 + length), kind)
    return dict(header["__metadata__"])


def _header(content: bytes, kind: tuple[str, str]) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    length = int.from_bytes(content[:8], "little")
    if length > _LARGEST_HEADER:
        raise DamagedFileError(foreign=True)
    if len(content) < 8 + length:
        name, text = (json.dumps(each).encode() for each in kind)
        raise DamagedFileError(foreign=name not in content or text not in content)
    try:
        header = json.loads(content[8 : 8 + length])
        texts = header["__metadata__"]
        ours = texts[kind[0]] == kind[1] and all(isinstance(text, str) for text in texts.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFileError(foreign=True) from error
    if not ours:
        raise DamagedFileError(foreign=True)
    return header, 8 + length


def _array(entry: Mapping[str, Any], content: bytes, start: int) -> Array:
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    if not all(isinstance(size, int) and size >= 0 for size in [begin, end, *shape]):
        raise DamagedFileError
    dtype = _BY_NAME[entry["dtype"]]
    kind = np.dtype(np.uint16 if dtype == BFLOAT16 else dtype)
    if end - begin != math.prod(shape) * kind.itemsize or start + end > len(content):
        raise DamagedFileError
    bits = np.frombuffer(content, kind, math.prod(shape), start + begin) if end > begin else np.empty(0, kind)
    return Array(dtype, bits.reshape(shape))


def _bytes(array: Array) -> memoryview:
    """The bytes of an array, in C's order and little-endian, as the machines that torch runs on have them."""
    flat: Any = np.ascontiguousarray(array.bits).reshape(-1).view(np.uint8)
    return memoryview(flat)


def _header_checksum(header: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(header, sort_keys=True).encode()):08x}"
