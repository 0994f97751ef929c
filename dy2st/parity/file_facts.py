"""What can be read off an ONNX file without running it: its nodes, and what the user has allowed of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dy2st.capture.program import DROPPED, SPECIALIZED
from dy2st.embedded.array_session import STATE
from dy2st.embedded.fingerprints import loaded, node_counts


def specialized_in(file: Path) -> tuple[str, ...]:
    """What the user has allowed to be fixed in an ONNX file: the line, and what holds in the file.

    Raises:
        ValueError: the entry of the metadata is no JSON.
    """
    return tuple(f"{found['line']}: {found['fixed']}" for found in _metadata(file, SPECIALIZED))


def dropped_in(file: Path) -> tuple[str, ...]:
    """The places at which eager may raise and an ONNX file does not, as the user has allowed."""
    return tuple(_metadata(file, DROPPED))


def state_in(file: Path) -> tuple[dict[str, Any], ...]:
    """The inputs and outputs of an ONNX file that are its model's state: see ``dy2st.onnx.passes.state_values``."""
    return tuple(_metadata(file, STATE))


def _metadata(file: Path, key: str) -> list[Any]:
    found: list[Any] = [json.loads(entry.value) for entry in loaded(file).metadata_props if entry.key == key]
    return [each for entries in found for each in entries]


def graph_counts(file: Path) -> tuple[dict[str, int], int | None]:
    """The nodes of an ONNX file by operator, those of subgraphs and functions included, and its opset.

    Raises:
        OnnxError: it is no ONNX file.
    """
    return node_counts(loaded(file))
