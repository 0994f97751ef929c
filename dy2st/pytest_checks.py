"""What the pytest fixture ``dy2st_check`` gives: the checks of one test, with the paths that they took together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.errors import Dy2stError, ExampleInputsError
from dy2st.report.coverage import counted, merged
from dy2st.report.file_arms import FileSite, merged_arms, untaken
from dy2st.report.model import never_compared
from dy2st.report.parity_report import summary

if TYPE_CHECKING:
    from dy2st.capture.stateful_program import StateOption
    from dy2st.parity.tolerances import Bound
    from dy2st.report.model import InputResult, PathSite
    from dy2st.report.parity_report import ParityReport


class Checks:
    """Call it to check a model; a test has one of its own.

    ``settings`` gives the tolerances and the opset of checks that name none; paths are shown from the folder ``root``;
    ``search`` lets each check look for inputs, for so many seconds. ``records`` and ``properties`` tell what was done.
    """

    def __init__(self, root: Path, settings: Callable[[], Mapping[str, Any]], search: float | None = None) -> None:
        self._root, self._settings, self._search = root, settings, search
        self.records: list[dict[str, Any]] = []  # plain values, which pytest-xdist can send
        self.properties: list[tuple[str, object]] = []
        self._required: list[PathSite] = []
        self._taken: list[PathSite] = []
        self._inputs: dict[str, list[InputResult]] = {}
        # By the model's name and the shape of its file.
        self._arms: dict[Any, list[Sequence[FileSite]]] = {}

    def __call__(
        self,
        model: Any,
        args: Any,
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: Any = None,
        rtol: Bound = None,
        atol: Bound = None,
        opset_version: int | None = None,
        allow_specialize: Iterable[int | str] = (),
        drop_guards: bool = False,
        state: StateOption = None,
        allow_uncovered: bool = False,
    ) -> ParityReport:
        """Compare eager with the exported program and with the ONNX file, as ``dy2st.check`` does.

        Args:
            model: an ``nn.Module``, a function, a bound method or a callable object.
            args: a tuple of arguments of one call; or a list or dict of sets, as for ``dy2st.check``.
            kwargs: keyword arguments of that one call.
            dynamic_shapes: as for ``torch.export.export``.
            rtol: relative tolerance; without it, that of ``[tool.dy2st]``, or of the dtype.
            atol: absolute tolerance, likewise.
            opset_version: of the ONNX file; without it, that of ``[tool.dy2st]``.
            allow_specialize: lines at which a dynamic size may be fixed.
            drop_guards: leave out the tests at which eager may raise.
            state: what becomes of state: ``"io"``, ``"forget"`` or ``"refuse"``, as for ``dy2st.onnx.export``.
            allow_uncovered: let paths pass that no input takes.

        Raises:
            AssertionError: a value differs, an input is unusable, or the model is refused; its text is the report,
                or what is refused. Paths that no check of the test took fail the test at its end.
        """
        __tracebackhide__ = True
        name = str(getattr(model, "__qualname__", type(model).__qualname__))
        refused = ""
        try:
            settings = self._settings()
            report = self._run(
                model,
                _sets(args, kwargs),
                dynamic_shapes=dynamic_shapes,
                rtol=settings.get("rtol") if rtol is None else rtol,
                atol=settings.get("atol") if atol is None else atol,
                opset_version=settings.get("opset") if opset_version is None else opset_version,
                allow_specialize=allow_specialize,
                drop_guards=drop_guards,
                state=settings.get("state") if state is None else state,
            )
        except Dy2stError as error:
            if error.location is not None:
                error.location = replace(error.location, filename=shown(error.location.filename, self._root))
            refused = str(error)
            self._record(name, model, "refused")
        if refused:
            raise AssertionError(f"{name} can't be checked\n{refused}")
        self._record(name, model, report.outcome, report)
        if not report.ok:
            raise AssertionError(f"{name} {summary(report)}\n{report}")
        self._taken += report.paths
        if not allow_uncovered:
            self._required += report.paths
            self._inputs.setdefault(name, []).extend(report.inputs)
            self._arms.setdefault((name, _form(report.arms)), []).append(report.arms)
            for problem in filter(None, (report.paths_problem, report.arms_problem)):
                raise AssertionError(f"{name}: {problem}")
        return report

    def uncovered(self) -> list[str]:
        """One line for each output that no check of this test has a value of, and each path that none takes."""
        required = {(site.file, site.line, site.column, site.kind) for site in self._required}
        sites = merged(self._taken)
        missing = [site for site in sites if (site.file, site.line, site.column, site.kind) in required]
        lines = [line for arms in self._arms.values() for line in self._arms_missed(arms, sites)]
        blanks = [f"{name}: {line}" for name, inputs in self._inputs.items() for line in never_compared(inputs)]
        return blanks + missed(missing, self._root) + lines

    def _arms_missed(self, arms: Sequence[Sequence[FileSite]], paths: Sequence[PathSite]) -> list[str]:
        """What no check took of the files of a model that have the same form."""
        found = untaken(merged_arms(arms), paths)
        return [replace(site, file=shown(site.file, self._root)).missed([way])[0] for site, way in found]

    def _run(self, model: Any, inputs: Any, **options: Any) -> ParityReport:
        from dy2st.parity.checking import check
        from dy2st.parity.missing_paths import searchable

        searches = self._search is not None and searchable(model, inputs)
        with _without_traces():
            return check(model, inputs, search=self._search if searches else None, isolated=True, **options)

    def _record(self, name: str, model: Any, outcome: str, report: ParityReport | None = None) -> None:
        sites = report.paths if report is not None else ()
        module = getattr(model, "__module__", "") if hasattr(model, "__qualname__") else type(model).__module__
        record = {"model": f"{module}.{name}", "outcome": outcome, "paths": [asdict(site) for site in sites]}
        self.records.append(record)
        taken, there_are = counted(sites)
        inputs = f" on {len(report.inputs)} input{'' if len(report.inputs) == 1 else 's'}" if report else ""
        paths = f"; {taken} of {there_are} paths" if sites else ""
        self.properties.append(("dy2st", f"{name}: {outcome}{inputs}{paths}"))


def missed(sites: Iterable[PathSite], root: Path) -> list[str]:
    """One line for each path that was not taken and should have been, its file as seen from ``root``."""
    return [line for site in sites for _, line in replace(site, file=shown(site.file, root)).missed()]


def shown(file: str, root: Path) -> str:
    """A path from the root of the tests, if it lies there."""
    return file.removeprefix(f"{root}/")


def _form(arms: Sequence[FileSite]) -> tuple[tuple[str, int | None, tuple[tuple[str, str], ...]], ...]:
    """What two files have in common that are one model's, made for other inputs: their branches and loops."""
    return tuple((site.node, site.line, site.inside) for site in arms)


@contextmanager
def _without_traces() -> Iterator[None]:
    """Keep torch's trace out of what pytest shows below a test that fails: a record for each step of an export.

    Without a handler torch does not even make the records.
    """
    traces = logging.getLogger("torch.__trace")
    removed = [handler for handler in traces.handlers if type(handler).__module__.startswith("_pytest.")]
    for handler in removed:
        traces.removeHandler(handler)
    try:
        yield
    finally:
        for handler in removed:
            traces.addHandler(handler)


def _sets(args: Any, kwargs: Mapping[str, Any] | None) -> Any:
    """The sets of a call of the fixture, in a form that ``dy2st.check`` takes."""
    from dy2st.parity.inputs import InputSet, input_sets

    if isinstance(args, tuple):
        return [InputSet("0", args, dict(kwargs or {}))]
    if kwargs is not None:
        raise ExampleInputsError("kwargs are for the arguments of one call", hint="args as a tuple")
    return input_sets(args)
