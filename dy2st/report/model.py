"""The data model of a check: a report holds inputs, an input holds stages, a stage holds differences.

Everything is a plain value (strings, numbers, tuples), so that a report can be written as JSON and rendered without
torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["equal", "differs", "unusable"]
# What the problem of an input begins with on which rounding alone decides which way eager goes.
NO_EVIDENCE = "no evidence: "


@dataclass(frozen=True)
class Tolerance:
    """Two numbers agree if ``abs(actual - expected) <= atol + rtol * abs(expected)``."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class Difference:
    """One output that differs.

    ``output`` names it (``"output"``, ``"output[1]"``, ``"output.scores"``); ``kind`` is ``count``, ``dtype``,
    ``shape``, ``nan`` (NaN or infinity in other places), ``value``, ``raises`` (one side raises, the other does
    not), or ``state`` (a next call would start from another output); ``index`` is where the largest difference lies.
    """

    output: str
    kind: Literal["count", "dtype", "shape", "nan", "value", "raises", "state"]
    message: str
    index: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Picture:
    """How the error of one output is spread, small enough to be drawn.

    The error of an element is the absolute difference from eager's. ``counts[i]`` elements have one from ``edges[i]``
    up to, but not with, ``edges[i + 1]``; ``exact`` have none, and ``special`` are NaN or infinite. ``grid`` covers the
    output in rows and columns: each cell has the largest error of the elements it stands for. It is seen as a matrix of
    ``shape``'s last dimension and all others; one dimension is laid out in rows.
    """

    output: str
    shape: tuple[int, ...]
    largest: float
    exact: int
    special: int
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    grid: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class OutputMetrics:
    """How far one output is from eager's.

    ``max_ulps`` counts the numbers of the dtype between the two (None for integers); ``cosine`` is that of the angle
    between the two as vectors (None if one is zero); ``mismatched`` is the share of elements beyond the tolerance;
    ``worst`` is where the largest difference lies. ``of_tolerance`` is the largest difference as a share of what is
    tolerated there (up to 1 passes; None where nothing is, or it can't be said).
    """

    output: str
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulps: float | None = None
    cosine: float | None = None
    mismatched: float = 0.0
    worst: tuple[int, ...] = ()
    dtype: str = ""
    shape: tuple[int, ...] = ()
    of_tolerance: float | None = None


@dataclass(frozen=True)
class Culprit:
    """The first line whose value in a stage is not eager's.

    ``variable`` is what the line assigns to or asks, ``message`` both values, ``node`` the name of the ONNX file's or
    the program's node (none in the converted model), ``inside`` the arms and trips of loops that it lies in, if any.
    """

    file: str
    line: int
    variable: str
    message: str
    node: str
    inside: str = ""

    def __str__(self) -> str:
        inside = f" ({self.inside})" if self.inside else ""
        node = f"; node {self.node}" if self.node else ""
        return f"{self.file}:{self.line}: {self.variable}: {self.message}{inside}{node}"


@dataclass(frozen=True)
class StageResult:
    """How one stage (``converted``, ``program`` or ``onnxruntime``) did on one input.

    ``max_abs`` and ``max_rel`` are the largest absolute and relative difference over all outputs, also where they are
    within the tolerance; ``message`` is the error of a stage that did not run, or what is known of the cause.
    ``pictures`` are those of the outputs that have any difference; ``outputs`` measures all that can be compared.
    ``culprit`` is the line at which the ONNX file departs from the program, if it is known. ``terms`` are those of the
    model's largest sum, where the tolerance had to be scaled by them for the stage to be equal; else 0. ``rounding`` is
    the largest difference, where it is beyond the tolerance and no more than rounding does to eager itself; else 0.
    """

    stage: str
    status: Literal["equal", "differs", "error"]
    max_abs: float = 0.0
    max_rel: float = 0.0
    differences: tuple[Difference, ...] = ()
    message: str = ""
    pictures: tuple[Picture, ...] = ()
    outputs: tuple[OutputMetrics, ...] = ()
    culprit: Culprit | None = None
    terms: int = 0
    rounding: float = 0.0


@dataclass(frozen=True)
class InputResult:
    """One set of inputs: its name, what it looks like (``x: f32[4, 3]``), and its stages.

    ``problem`` says why the set is unusable, if so: eager rejects it, or its outputs are all NaN. ``seconds`` is
    how long its stages took, if known. ``raises`` says what eager raises, where the graph has a guard for it: stages
    that are equal fail there, too. ``blank`` are the outputs without a value that could be compared, with what they are
    instead: ``empty`` or ``NaN throughout``.
    """

    name: str
    description: str
    stages: tuple[StageResult, ...] = ()
    problem: str = ""
    seconds: float | None = field(default=None, compare=False)
    raises: str = ""
    blank: dict[str, str] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """``unusable`` if there is a problem, else ``equal`` if every stage is equal."""
        if self.problem:
            return "unusable"
        return "equal" if self.stages and all(stage.status == "equal" for stage in self.stages) else "differs"


@dataclass(frozen=True)
class Drift:
    """A call in production on which eager and the static side differed.

    ``call`` is its number, from 1; ``arguments`` is what they looked like (``x: f32[4, 3]``); ``file`` holds them, if
    they were saved.
    """

    call: int
    arguments: str
    differences: tuple[Difference, ...]
    file: str | None = None

    def __str__(self) -> str:
        first = self.differences[0]
        saved = f"; its arguments are in {self.file}" if self.file else ""
        return f"call {self.call} ({self.arguments}): {first.output}: {first.message}{saved}"


@dataclass
class ShadowCounts:
    """What has happened to a shadow: all calls, those that were compared, and those that could not be."""

    calls: int = 0
    compared: int = 0
    equal: int = 0
    different: int = 0
    failed: int = 0


@dataclass(frozen=True)
class PathCopy:
    """One of the branches or loops of a program that stand on one line: the way to it, in words, and its ways."""

    name: str
    ways: tuple[str, ...]
    taken: tuple[str, ...]


def ways_of(copies: Sequence[PathCopy]) -> tuple[str, ...]:
    """All ways that some of them have."""
    return tuple(dict.fromkeys(way for copy in copies for way in copy.ways))


@dataclass(frozen=True)
class PathSite:
    """A place where a program's paths part: a staged ``if`` or ``loop``, or an ``and`` or ``or`` of conditions.

    ``source`` is its line; ``ways`` are those that it can go (``then`` and ``else``; ``no trip``, ``one trip``,
    ``more trips``, and ``all trips`` for a ``for`` that a jump may leave; ``left false`` and ``right false`` for an
    ``and`` that one side makes false, ``left true`` and ``right true`` for an ``or``), ``taken`` those that eager took
    on some input, ``accepted`` those that the comment ``# dy2st: uncovered ok`` on the line takes out.

    Where it is several branches or loops of the program (in an unrolled loop, in a helper that is called twice),
    ``copies`` has each, and ``taken`` are the ways that inputs took in all of them.
    """

    file: str
    line: int
    column: int | None
    kind: str
    source: str
    ways: tuple[str, ...]
    taken: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    copies: tuple[PathCopy, ...] = ()

    @classmethod
    def of_copies(
        cls,
        file: str,
        line: int,
        column: int | None,
        kind: str,
        source: str,
        copies: Sequence[PathCopy],
        accepted: tuple[str, ...],
    ) -> PathSite:
        """A construct that is these branches or loops; of a single one it is that."""
        ways = ways_of(copies)
        taken = tuple(way for way in ways if all(way in copy.taken for copy in copies if way in copy.ways))
        return cls(file, line, column, kind, source, ways, taken, accepted, tuple(copies) if len(copies) > 1 else ())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PathSite:
        """From what a report holds as JSON."""
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        copies = (PathCopy(each["name"], tuple(each["ways"]), tuple(each["taken"])) for each in plain.get("copies", ()))
        plain["copies"] = tuple(copies)
        return cls(**plain)

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The ways that were never taken, and should have been."""
        return tuple(way for way in self.ways if way not in self.taken and way not in self.accepted)

    def missed(self) -> list[tuple[str, str]]:
        """Each way that was never taken, and should have been, with a line that says so; one for each copy."""
        where = f"{self.file}:{self.line}: {self.code}"
        words = {
            "then": "its then-arm never ran",
            "else": "its else-arm never ran",
            "all trips": "it never ran to its end",
        }
        for way in self.ways if self.kind in ("and", "or") else ():
            side, truth = way.split()
            words[way] = f"the {side} side of its {self.label} was never what makes it {truth}"
        return [
            (way, f"{where}{f', {name}' if name else ''}: {words.get(way, f'it never ran with {way}')}")
            for way in self.uncovered
            for name in self.missed_in(way)
        ]

    def missed_in(self, way: str) -> list[str]:
        """The names of the copies in which a way was not taken; of a single one the empty name."""
        return [copy.name for copy in self.copies if way in copy.ways and way not in copy.taken] or [""]

    @property
    def code(self) -> str:
        """The line without its comment and its colon."""
        return self.source.partition("  # ")[0].rstrip().rstrip(":")

    @property
    def label(self) -> str:
        """What stands for it in a table: its line, or the ``and`` or ``or`` of it, and where that begins."""
        if self.kind not in ("and", "or"):
            return self.code
        return f"{self.kind!r}" if self.column is None else f"{self.kind!r} at column {self.column + 1}"


def never_compared(inputs: Iterable[InputResult]) -> list[str]:
    """One line for each output that is empty, or NaN throughout, on every input that was compared."""
    blanks = [result.blank for result in inputs if result.stages and not result.raises]
    names = [name for name in blanks[0] if all(name in each for each in blanks)] if blanks else []
    lines = []
    for name in names:
        reasons = sorted({each[name] for each in blanks})
        lines.append(f"{name} is {' or '.join(reasons)} on every input: no value of it is compared")
    return lines
