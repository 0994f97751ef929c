"""The file of saved programs: named tensors and a text, in the format of safetensors.

A file is the length of a header (8 bytes, little-endian), the header (JSON: for each tensor its dtype, shape and place;
under ``__metadata__`` texts by name), and the tensors' bytes one after the other. Any reader of safetensors finds the
weights. Here the metadata is that of this module: what kind of file it is, the version of its format, the text, and
checksums of the header and of the tensors. The format is short enough to be written here, so that neither saving nor
loading asks for another package. Source: https://huggingface.co/docs/safetensors.
"""

from __future__ import annotations

import json
import mmap
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dy2st.errors import SavedFileError, UnsavableError
from dy2st.parity.saving import written_whole

KIND = "dy2st programs"
# A file of a newer version is refused; all older versions are read.
VERSION = 1
# safetensors' names of dtypes.
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_BY_NAME = {name: dtype for dtype, name in _DTYPES.items()}
_LARGEST_HEADER = 100_000_000  # safetensors' own bound
_ALIGNED = 64


def write(path: Path, text: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write a file, whole or not at all.

    Raises:
        UnsavableError: a tensor has a dtype that files have no name for, or the text is too long.
        SavedFileError: the file can't be written.
    """
    # Those of large elements first, so that each lies where its dtype may lie.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {}
    place = checksum = 0
    for name in order:
        tensor = tensors[name]
        if tensor.dtype not in _DTYPES:
            raise UnsavableError(f"{name} is a tensor of {tensor.dtype}", hint="keep it in another dtype")
        size = tensor.numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + size],
        }
        place += size
        checksum = zlib.crc32(_bytes(tensor), checksum)
    metadata = {"format": KIND, "version": str(VERSION), "programs": text, "tensors_crc32": f"{checksum:08x}"}
    metadata["header_crc32"] = _header_checksum({"__metadata__": metadata, **header})
    encoded = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":")).encode()
    encoded += b" " * (-(8 + len(encoded)) % _ALIGNED)
    if len(encoded) > _LARGEST_HEADER:
        raise UnsavableError(f"the programs take {len(encoded)} bytes, more than a file's header may have")
    try:
        with written_whole(path) as stream:
            stream.write(len(encoded).to_bytes(8, "little"))
            stream.write(encoded)
            for name in order:
                stream.write(_bytes(tensors[name]))
    except OSError as error:
        raise SavedFileError(f"{path} can't be written: {error.strerror or error}") from error


def read(path: Path, *, verify: bool) -> tuple[str, dict[str, torch.Tensor]]:
    """The text and the tensors of a file. They lie in the file, copied where they are written to.

    With ``verify`` all bytes are compared with their checksum.

    Raises:
        SavedFileError: the file is missing, damaged, foreign, or of a newer version.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SavedFileError(f"{path} can't be read: it is no file")
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise SavedFileError(f"{path} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise SavedFileError(f"{path} can't be read: it is empty, or no path of a file") from error
    foreign = SavedFileError(f"{path} can't be read: it is not what dy2st.save writes, or it is damaged")
    length = int.from_bytes(mapped[:8], "little")
    if length > min(len(mapped) - 8, _LARGEST_HEADER):
        raise foreign
    try:
        header = json.loads(mapped[8 : 8 + length])
        metadata = header["__metadata__"]
        version = int(metadata["version"]) if metadata["format"] == KIND else 0
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise foreign from error
    if version < 1:
        raise foreign
    if version > VERSION:
        raise SavedFileError(
            f"{path} can't be read: it is of version {version} of the format, and this dy2st knows {VERSION}",
            hint="load it with the dy2st that saved it, or a newer one",
        )
    try:
        return _content(header, mapped, 8 + length, verify=verify)
    except (ValueError, KeyError, TypeError, RuntimeError, OverflowError, AttributeError) as error:
        raise SavedFileError(f"{path} can't be read: it is damaged, or cut short") from error


def _content(
    header: dict[str, Any], mapped: mmap.mmap, start: int, *, verify: bool
) -> tuple[str, dict[str, torch.Tensor]]:
    metadata = header["__metadata__"]
    if metadata.pop("header_crc32") != _header_checksum(header):
        raise ValueError
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    end = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    if start + end != len(mapped):
        raise ValueError
    if verify:
        with memoryview(mapped) as whole, whole[start:] as body:
            if f"{zlib.crc32(body):08x}" != metadata["tensors_crc32"]:
                raise ValueError
    return metadata["programs"], {name: _tensor(entry, mapped, start) for name, entry in entries.items()}


def _tensor(entry: Mapping[str, Any], mapped: mmap.mmap, start: int) -> torch.Tensor:
    begin, end = entry["data_offsets"]
    dtype, count = _BY_NAME[entry["dtype"]], (end - begin) // _BY_NAME[entry["dtype"]].itemsize
    if count == 0:
        return torch.empty(entry["shape"], dtype=dtype)
    return torch.frombuffer(mapped, dtype=dtype, count=count, offset=start + begin).reshape(entry["shape"])


def _bytes(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous tensor of the CPU, as they lie in memory."""
    if tensor.numel() == 0:
        return memoryview(b"")
    array: Any = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    return memoryview(array)


def _header_checksum(header: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(header, sort_keys=True).encode()):08x}"
