"""One target to be checked, and what came of it: plain data that can be sent to another process."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dy2st.report.plain import from_plain, to_plain
from dy2st.report.run import TargetResult

# The step of a process that has not begun.
STARTING = "starting"
# How many seconds longer than its time a target may take before its process is ended from outside: the process itself
# knows better what it was doing, but can't stop in the middle of a call into a library.
GRACE = 5.0


def how_ended(code: int) -> str:
    """How a process has ended, in words; ``code`` is negative for a signal."""
    signals = {each.value: each.name for each in signal.Signals}
    return f"ended with exit code {code}" if code >= 0 else f"was killed by {signals.get(-code, -code)}"


@dataclass(frozen=True)
class Job:
    """A target and its options, those of the command line and of the settings in one.

    ``options`` are plain values by the names of ``dy2st check``; ``about`` is put before messages, to name the target;
    ``listings`` says whether sources are wanted; ``folder`` is where imports may begin, beside the working folder.
    """

    target: str
    options: Mapping[str, Any]
    about: str = ""
    listings: bool = False
    folder: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = to_plain(self)
        return found

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Job:
        """Of what :meth:`to_plain` gave, through JSON or not."""
        return cls(**plain)


@dataclass(frozen=True)
class Answer:
    """What a process has found.

    ``said`` is what was printed meanwhile, which belongs on stderr. ``files`` are those that the result depends on:
    the user's modules and what was opened, by their absolute paths. ``unsure`` says why the result may depend on more
    than these, if so.
    """

    result: TargetResult
    said: str = ""
    files: tuple[str, ...] = ()
    unsure: str = ""

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        found: dict[str, Any] = to_plain(self)
        return found

    @classmethod
    def from_plain(cls, plain: Any) -> Answer:
        """Of what :meth:`to_plain` gave, through JSON or not.

        Raises:
            ValueError: it is no answer.
        """
        return from_plain(cls, plain)


@dataclass(frozen=True)
class Death:
    """A process that has ended, or had to be ended, before it had an answer.

    ``how`` says it in words, ``step`` what it was doing; ``timed_out`` if it was ended for its time.
    """

    how: str
    step: str = ""
    said: str = ""
    timed_out: bool = False
    seconds: float = field(default=0.0, compare=False)
