"""What a target's result depends on: the user's modules that it has loaded, and the files that were opened.

Source: PEP 578, Python runtime audit hooks, https://peps.python.org/pep-0578; the events are those of
https://docs.python.org/3/library/audit_events.html. What a library opens without Python is not seen; the packages known
to do so are named, and where a target imports one, its result is not sure.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from dy2st.source.user_frames import is_own
from dy2st.sweep.isolation import is_users_module

_FOLDERS = {"os.listdir", "os.scandir"}
# What makes a result depend on more than files.
_OUTSIDE = {"socket.connect": "a connection", "os.system": "a process", "subprocess.Popen": "a process"}
# Packages that read files in ways that no event tells of.
_UNSEEN = ("safetensors", "h5py", "zarr", "pyarrow", "lmdb", "cv2", "netCDF4", "tokenizers", "tables", "sentencepiece")
# Who looks for modules and for the versions of packages.
_IMPORTLIB = os.path.join(os.path.dirname(os.__file__), "importlib", "")  # noqa: PTH118, PTH120 - a prefix
# onnxruntime's process, which we start.
_ONNXRUNTIME = str(Path(__file__).resolve().parents[1] / "onnx" / "runtime" / "child.py")
# Devices, and what the system tells of itself.
_SYSTEM = ("/dev/", "/proc/", "/sys/")


class Watch:
    """A context that sees which files are opened in it. There is at most one at a time in a process."""

    _current: ClassVar[Watch | None] = None
    _hooked: ClassVar[bool] = False

    def __init__(self) -> None:
        self._opened: set[str] = set()
        self._unsure = ""
        self._ours = os.path.join(os.path.realpath(tempfile.gettempdir()), "")  # noqa: PTH118 - a prefix

    def __enter__(self) -> Self:
        if not Watch._hooked:
            sys.addaudithook(_heard)  # it stays as long as the process
            Watch._hooked = True
        Watch._current = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Watch._current = None

    def found(self) -> tuple[tuple[str, ...], str]:
        """The files and folders, by their absolute paths, and why there may be more, if so."""
        Watch._current = None
        # those that were there before, too: the target may have used them
        modules = [each for each in list(sys.modules.values()) if is_users_module(each)]
        sources = {os.path.realpath(str(each.__file__)) for each in modules if getattr(each, "__file__", None)}
        unseen = next((name for name in _UNSEEN if name in sys.modules), "")
        unsure = self._unsure or (f"the package {unseen} reads files unseen" if unseen else "")
        return tuple(sorted(sources | {path for path in self._opened if self._counts(path)})), unsure

    def _counts(self, path: str) -> bool:
        ours = path.startswith((self._ours, *_SYSTEM)) or f"{os.sep}__pycache__{os.sep}" in path
        return not ours and is_own(path)

    def opened(self, path: Any) -> None:
        """A file was opened for reading, or a folder listed."""
        if isinstance(path, (str, bytes, os.PathLike)):
            self._opened.add(os.path.realpath(os.fsdecode(path)))

    def left(self, event: str, command: Any) -> None:
        """Something else was asked."""
        if not (isinstance(command, (list, tuple)) and _ONNXRUNTIME in command):
            self._unsure = self._unsure or f"it has asked {_OUTSIDE[event]}"


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    watch = Watch._current  # noqa: SLF001 - of this module
    if watch is None:
        return
    if event == "open":
        path, mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR) if isinstance(flags, int) else 0
        if not writes and not (isinstance(mode, str) and set(mode) & set("wax+")):
            watch.opened(path)
    elif event in _FOLDERS:
        caller = sys._getframe(1).f_code.co_filename  # noqa: SLF001 - there is no other way to know who asks
        if not caller.startswith(("<frozen importlib", _IMPORTLIB)):
            watch.opened("." if arguments[0] is None else arguments[0])
    elif event in _OUTSIDE:
        watch.left(event, arguments[1] if len(arguments) > 1 else None)
