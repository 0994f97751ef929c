"""``shadow``: eager and static side by side in production, on a sample of the real calls."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from dy2st.errors import DriftError, UsageError
from dy2st.onnx.session_runner import Runner
from dy2st.parity.answering_file import AnsweringFile
from dy2st.parity.compare import compare
from dy2st.parity.inputs import InputSet, bound_arguments, describe
from dy2st.parity.outputs import Output, flat_outputs, placed
from dy2st.parity.reductions import largest_sum
from dy2st.parity.saving import save_whole
from dy2st.parity.stages import OnnxSession, one_line
from dy2st.parity.state import State, preserved
from dy2st.parity.tolerances import require_bounds
from dy2st.report.model import Difference, Drift, ShadowCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOGGER = logging.getLogger("dy2st.shadow")

Answer = Literal["static", "eager"]
OnDifference = Literal["log", "raise"] | Callable[[Drift], None]


def shadow(
    eager: Any,
    static: Any,
    *,
    rate: float = 0.01,
    seed: int | None = None,
    answer: Answer = "static",
    on_difference: OnDifference = "log",
    save: str | Path | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Shadow:
    """A callable for production: one side answers, and on a sample of the calls both run and are compared.

    Calls that aren't sampled cost a random number. A sampled one costs both sides, one after the other, and a copy of
    the arguments; one whose values differ costs eager once more. Nothing that the other side, the comparison or the
    saving does ever reaches the caller, unless ``on_difference`` is ``"raise"``. What the answering side raises does;
    it is a difference where the other does not.

    Where the file has state (``dy2st.onnx.export`` with ``state="io"``), both sides run in each call, so that both come
    as far: the caller's model changes as it would alone, the file carries its own state on, and ``rate`` only says
    which calls are compared. ``Shadow.reset`` lets the file start anew.

    Args:
        eager: the model: a module, function, bound method or callable object. It runs without gradients on copies of
            the arguments, from the state and the random numbers that the answering side had, and leaves no state.
        static: an ONNX file, a ``dy2st.onnx.Runner`` or ``onnxruntime.InferenceSession`` of one, a
            ``torch.export.ExportedProgram``, or anything callable (what ``dy2st.to_static`` made). A file, runner or
            session answers with tensors, in the dicts, lists and tuples that eager has them in: to know these, eager
            runs once at the first call. Where a result's length or presence is data-dependent, it answers with its
            outputs in order.
        rate: the share of the calls that are compared, from 0 to 1.
        seed: of the choice of calls; None for another one in each process.
        answer: whose outputs (and changes of state and arguments) the caller gets.
        on_difference: ``"log"`` (a warning of the logger ``dy2st.shadow``), ``"raise"`` (``DriftError``, in place of
            the answer), or a function that is called with the :class:`~dy2st.report.Drift`. It is told of each.
        save: a folder for the arguments of the first difference: a ``.pt`` file that ``dy2st check --inputs`` takes.
        rtol: relative tolerance in place of the table's (:mod:`dy2st.parity.tolerances`).
        atol: absolute tolerance, likewise.

    Raises:
        UsageError: an option has no meaning, or ``save`` is no folder that can be written to.
        OnnxError: onnxruntime can't load the file.
    """
    if not 0 <= rate <= 1:
        raise UsageError(f"rate is {rate}, which is no share of calls", hint="a number from 0 to 1")
    if answer not in ("static", "eager"):
        raise UsageError(f"answer is {answer!r}", hint="'static' or 'eager'")
    if on_difference not in ("log", "raise") and not callable(on_difference):
        raise UsageError(f"on_difference is {on_difference!r}", hint="'log', 'raise' or a function")
    require_bounds(rtol=rtol, atol=atol)
    folder = None if save is None else Path(save)
    if folder is not None and not folder.is_dir():
        raise UsageError(f"save: there is no folder {folder}", hint="make it first")
    if folder is not None and not os.access(folder, os.W_OK):
        raise UsageError(f"save: the folder {folder} can't be written to")
    return Shadow(eager, _runner(eager, static), rate, seed, answer, on_difference, folder, (rtol, atol))


class Shadow:
    """What :func:`shadow` returns. ``counts`` says what has happened, ``first`` is the first difference."""

    def __init__(
        self,
        eager: Any,
        static: Callable[..., Any],
        rate: float,
        seed: int | None,
        answer: Answer,
        on_difference: OnDifference,
        folder: Path | None,
        bounds: tuple[float | None, float | None],
    ) -> None:
        self._eager = eager
        self._static_answers = answer == "static"
        self._static = static
        self._file = static if isinstance(static, AnsweringFile) and static.has_state else None
        self._answering: Callable[..., Any] = static if self._static_answers else eager
        self._other: Callable[..., Any] = eager if self._static_answers else static
        self._rate = rate
        self._random = random.Random(seed)  # noqa: S311 - which calls are looked at is no secret
        self._on_difference = on_difference
        self._folder = folder
        self._rtol, self._atol = bounds
        self._counting, self._comparing = threading.Lock(), threading.Lock()
        self._counts = ShadowCounts()
        self.first: Drift | None = None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The answer of one side; now and then the other is compared with it.

        Raises:
            DriftError: they differ, and ``on_difference`` is ``"raise"``.
        """
        with self._counting:
            self._counts.calls += 1
            number = self._counts.calls
            chosen = self._random.random() < self._rate
        if self._file is not None:
            return self._in_step(InputSet(f"call_{number}", args, kwargs), number, chosen=chosen)
        if not chosen:
            return self._answering(*args, **kwargs)
        before = _Before.of(self._eager, self._other, number, args, kwargs, self._failed)
        try:
            answer = self._answering(*args, **kwargs)
        except Exception as error:
            self._look_at_failure(before, error)
            raise
        drift = None
        if before is not None:
            try:
                drift = self._difference(before, answer)
            except Exception as error:  # noqa: BLE001 - no failure of ours may reach the caller
                self._failed("the comparison", error)
        if drift is not None:
            self._tell(drift)
        return answer

    def reset(self) -> None:
        """Let a file with state start from its initial values again; eager's state is the caller's to put back."""
        if self._file is not None:
            self._file.state.clear()

    def _in_step(self, given: InputSet, number: int, *, chosen: bool) -> Any:
        """The answer of one side where both have state: the other runs in each call, so that it comes as far."""
        beside, kept = given.copied(), given.copied()
        try:
            answer = self._answering(*given.args, **given.kwargs)
        except Exception:
            with contextlib.suppress(Exception), torch.no_grad():
                self._other(*beside.args, **beside.kwargs)
            raise
        answered = [each.copied() for each in self._outputs(answer, static=self._static_answers)] if chosen else []
        differences: tuple[Difference, ...] = ()
        try:
            with torch.no_grad():
                other = self._other(*beside.args, **beside.kwargs)
            if self._file is not None and self._static_answers:
                answer = self._file.formed_like(other, answer)
            outputs = self._outputs(other, static=not self._static_answers) if chosen else []
            expected, actual = (outputs, answered) if self._static_answers else (answered, outputs)
            texts = self._texts(expected)
            found = compare("the static side", expected, actual, rtol=self._rtol, atol=self._atol, texts=texts)
            differences = found.differences
        except Exception as error:  # noqa: BLE001 - no failure of the other side may reach the caller
            name = "eager" if self._static_answers else "the static side"
            differences = (Difference("the call", "raises", f"{name} raises {one_line(error)}; the other does not"),)
        if not chosen:
            return answer
        if not differences:
            self._counted(equal=True)
        else:
            self._tell(self._noted_at(number, kept, differences))
        return answer

    def _look_at_failure(self, before: _Before | None, error: Exception) -> None:
        """The answering side raises, which is the caller's: it is a difference where the other side does not."""
        if before is None:
            return
        given = before.arguments.copied()
        try:
            with self._comparing, before.state_of_the_call():
                self._other(*given.args, **given.kwargs)
        except Exception:  # noqa: BLE001 - as the answering side does
            self._counted(equal=True)
            return
        names = ("the static side", "eager") if self._static_answers else ("eager", "the static side")
        difference = Difference("the call", "raises", f"{names[0]} raises {one_line(error)}; {names[1]} does not")
        drift = self._noted(before, (difference,))
        if self._on_difference != "raise":
            self._tell(drift)

    def _outputs(self, answer: Any, *, static: bool) -> list[Output]:
        """The tensors of an answer; a file says itself where each is in what eager returns."""
        if not isinstance(self._static, AnsweringFile):
            return placed(flat_outputs(answer))
        return self._static.outputs_of(answer) if static else flat_outputs(answer)

    def _texts(self, expected: Sequence[Output]) -> list[str]:
        """The places of texts that the static side has to return."""
        return self._static.places() if isinstance(self._static, AnsweringFile) else [each.name for each in expected]

    @property
    def counts(self) -> ShadowCounts:
        """How many calls there were, and what came of the comparisons; a copy."""
        with self._counting:
            return replace(self._counts)

    def __str__(self) -> str:
        counts = self.counts
        text = f"{counts.compared} of {counts.calls} calls compared: {counts.equal} equal, {counts.different} different"
        if counts.failed:
            text += f"; {counts.failed} comparisons failed"
        return text if self.first is None else f"{text}; the first difference: {self.first}"

    def _difference(self, before: _Before, answer: Any) -> Drift | None:
        """Run the other side from where the answering one started, and compare."""
        answered = [each.copied() for each in self._outputs(answer, static=self._static_answers)]
        given = before.arguments.copied()
        with self._comparing, before.state_of_the_call():
            other = self._other(*given.args, **given.kwargs)
            outputs = [each.copied() for each in self._outputs(other, static=not self._static_answers)]
        expected, actual = (outputs, answered) if self._static_answers else (answered, outputs)
        terms = partial(self._terms, before)
        texts = self._texts(expected)
        result = compare(
            "the static side", expected, actual, rtol=self._rtol, atol=self._atol, terms=terms, texts=texts
        )
        if result.status == "equal":
            self._counted(equal=True)
            return None
        return self._noted(before, result.differences)

    def _terms(self, before: _Before) -> int:
        with self._comparing, before.state_of_the_call():
            return largest_sum(self._eager, before.arguments)

    def _counted(self, *, equal: bool) -> bool:
        """Count a comparison; whether it is the first that differs."""
        with self._counting:
            self._counts.compared += 1
            self._counts.equal += equal
            self._counts.different += not equal
            return not equal and self._counts.different == 1

    def _noted(self, before: _Before, differences: tuple[Difference, ...]) -> Drift:
        return self._noted_at(before.number, before.arguments, differences)

    def _noted_at(self, number: int, arguments: InputSet, differences: tuple[Difference, ...]) -> Drift:
        """A difference, counted; of the first the arguments are saved."""
        is_first = self._counted(equal=False)
        file = self._saved(arguments) if is_first else None
        drift = Drift(number, describe(self._eager, arguments), differences, file)
        if is_first:
            self.first = drift
        return drift

    def _saved(self, arguments: InputSet) -> str | None:
        """The file of the arguments, written whole or not at all."""
        if self._folder is None:
            return None
        given = dict(bound_arguments(self._eager, arguments)) if arguments.kwargs else arguments.args
        try:
            file, count = self._folder / f"{arguments.name}.pt", 2
            while file.exists():  # of another process, or an earlier one
                file, count = self._folder / f"{arguments.name}_{count}.pt", count + 1
            return str(save_whole(file, [given]))
        except Exception as error:  # noqa: BLE001 - a full disk is no reason to stop
            self._failed("saving the arguments", error)
            return None

    def _tell(self, drift: Drift) -> None:
        if self._on_difference == "raise":
            raise DriftError(str(drift), hint=f"dy2st check --inputs {drift.file} shows it again" if drift.file else "")
        if self._on_difference == "log":
            LOGGER.warning("eager and static differ: %s", drift)
            return
        try:
            assert callable(self._on_difference)
            self._on_difference(drift)
        except Exception as error:  # noqa: BLE001 - nor does a callback's failure reach the caller
            self._failed("on_difference", error)

    def _failed(self, what: str, error: BaseException) -> None:
        with self._counting:
            self._counts.failed += 1
            first = self._counts.failed == 1
        LOGGER.log(logging.WARNING if first else logging.DEBUG, "%s failed: %s", what, one_line(error))


@dataclass(frozen=True)
class _Before:
    """A call before it was answered: its arguments, the state of the models, and the random numbers to come."""

    number: int
    arguments: InputSet
    state: State
    random_state: torch.Tensor

    @classmethod
    def of(
        cls,
        eager: Any,
        other: Any,
        number: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        failed: Callable[[str, BaseException], None],
    ) -> _Before | None:
        """What has to be kept, or None if it can't be."""
        try:
            arguments = InputSet(f"call_{number}", args, kwargs).copied()
            return cls(number, arguments, State(eager, other), torch.get_rng_state())
        except Exception as error:  # noqa: BLE001 - then the call isn't compared
            failed("copying the arguments", error)
            return None

    @contextlib.contextmanager
    def state_of_the_call(self) -> Iterator[None]:
        """Inside, all is as it was before the call; afterwards, as it was before this."""
        with torch.no_grad(), preserved(*self.state.models), torch.random.fork_rng(devices=[]):
            self.state.restore()
            torch.set_rng_state(self.random_state)
            yield


def _runner(eager: Any, static: Any) -> Callable[..., Any]:
    """The static side as a callable that takes what eager takes."""
    if isinstance(static, torch.export.ExportedProgram):
        program: Callable[..., Any] = static.module()
        return program
    static = static.session if isinstance(static, Runner) else static
    is_session = hasattr(static, "run_with_ort_values")
    if not is_session and not isinstance(static, (str, Path)):
        if not callable(static):
            raise UsageError(f"a {type(static).__name__} is neither a file, a session, a program nor callable")
        return static  # type: ignore[no-any-return]
    return AnsweringFile(eager, OnnxSession(static))
