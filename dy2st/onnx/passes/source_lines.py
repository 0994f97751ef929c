"""The user's lines that the nodes of a file come from.

torch's exporter writes a traceback beside each node. A file that is given away says nothing of the machine that made
it, and is the same wherever it is made: it keeps the user's frames alone, with paths as Python finds the modules.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import onnx_ir as ir

from dy2st.source.user_frames import is_own, is_users

# The key of a node's metadata under which torch's exporter writes its traceback, the innermost frame last.
STACK = "pkg.torch.onnx.stack_trace"
_FRAME = re.compile(r'^[ \t]*File "([^"\n]+)", line (\d+)([^\n]*(?:\n(?![ \t]*File ")[^\n]*)*)', re.MULTILINE)
# By the path that a file of this process names, where it lies.
_LIES: dict[str, str] = {}


def keep_users_frames(model: ir.Model) -> None:
    """Leave the user's frames in the tracebacks of a model, with relative paths; in place."""
    written: dict[str, str] = {}
    portable = functools.cache(_portable)
    for node in model.graph.all_nodes():
        stack = node.metadata_props.get(STACK)
        if stack is None:
            continue
        if stack not in written:
            frames = [frame for frame in _FRAME.findall(stack) if Path(frame[0]).is_absolute() and is_users(frame[0])]
            written[stack] = "\n".join(f'File "{portable(file)}", line {line}{rest}' for file, line, rest in frames)
        if written[stack]:
            node.metadata_props[STACK] = written[stack]
        else:
            del node.metadata_props[STACK]


def frames(stack: str) -> list[tuple[str, int]]:
    """File and line of each of the user's frames in a traceback, the innermost last."""
    found = ((_found(file), int(line)) for file, line, _ in _FRAME.findall(stack))
    return [(file, line) for file, line in found if is_users(file)]


def _portable(file: str) -> str:
    path = Path(file)
    roots = [Path.cwd(), *sorted({Path(entry).absolute() for entry in sys.path}, key=lambda p: -len(p.parts))]
    root = next((root for root in roots if path.is_relative_to(root)), path.parent)
    relative = path.relative_to(root).as_posix()
    _LIES[relative] = file
    return relative


def _found(file: str) -> str:
    """Where a file lies that a traceback names by a relative path; the path itself if it is nowhere to be found."""
    if file in _LIES or Path(file).is_absolute():
        return _LIES.get(file, file)
    candidates = (Path(root).absolute() / file for root in ("", *sys.path))
    return next((str(candidate) for candidate in candidates if candidate.is_file()), file)


def innermost(stack: str) -> tuple[str, int] | None:
    """The innermost frame of a traceback: one of the user's own, else one of an installed package."""
    found = frames(stack)
    own = [frame for frame in found if is_own(frame[0])]
    return next(reversed(own or found), None)


def text_in(stack: str) -> str:
    """The innermost line of source that a traceback shows, or nothing."""
    last = next(reversed(stack.splitlines()), "").strip()
    return "" if last.startswith('File "') else last
