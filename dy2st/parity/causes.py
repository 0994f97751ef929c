"""Why a stage differs: a model that is not the same twice, a near tie, or rounding that float32 itself amplifies.

Eager runs once more in float64, with everything that is a float widened. Where eager in float32 is as far from that as
the stage is, neither is wrong. A condition or an index that comes out differently in float64 was within rounding, and
so was one that does where the inputs, or what operators round, change in the last place.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.observing import Listener, observing
from dy2st.capture.program import CAPTURING
from dy2st.parity.exact_runs import ExactDecisions
from dy2st.parity.gradient_mode import gradients_as_asked
from dy2st.parity.inputs import InputSet
from dy2st.parity.lost_paths import Lost, keeps_path, lost_path, moved_by_noise
from dy2st.parity.margins import Roundings
from dy2st.parity.near_ties import changed, takes_first_of_equals, tied
from dy2st.parity.outputs import Output, flat_outputs, widened
from dy2st.parity.rounding_noise import rounding_spread
from dy2st.parity.stages import SEED, Reference, run_model
from dy2st.parity.state import preserved
from dy2st.parity.stateful_calls import called
from dy2st.staging.routes import Copy

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
# Eager counts as rounding as much as the stage if its own error is at least this share of the difference.
_SHARE = 0.1
_TIE = "a near tie: "
_NO_ORDER = "torch's topk, sort, kthvalue and mode have no order for these (sort(stable=True) has)"
# How long ties are looked for by changing inputs, in all of a check.
_TIE_SECONDS = 10.0


class _Events(Listener):
    """Every way that was taken, with how often."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Copy, str]] = Counter()

    def branch(self, site: Copy, way: str) -> None:
        """An ``if`` has gone one way."""
        self.counts[site, way] += 1

    def ended(self, site: Copy, trips: int) -> None:
        """A loop has ended."""
        self.counts[site, "trips"] += trips


class _Tracking(_Events):
    """Has Python's numbers remember whether they were rounded."""

    def __init__(self, margins: Roundings) -> None:
        super().__init__()
        self.margins = margins

    def number(self, function: Any) -> Any:
        """What is called in place of ``int`` and ``float``."""
        return self.margins.tracking(function)


class Causes:
    """What can be said of a model that differs; everything is computed when it is first asked for."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._wide: dict[str, tuple[list[Output], str] | None] = {}
        self._unsteady: dict[str, str] = {}
        self._spread: dict[str, Sequence[torch.Tensor] | None] = {}
        self._lost: dict[str, Lost | None] = {}
        self._exact: dict[str, bool] = {}
        self._left = _TIE_SECONDS

    def rounding(self, inputs: InputSet) -> Sequence[torch.Tensor] | None:
        """How far rounding may move each element of each output, on the paths that eager takes; None if unknown."""
        if inputs.name not in self._spread:
            self._spread[inputs.name] = rounding_spread(lambda: _observed(self.model, inputs))
        return self._spread[inputs.name]

    def no_evidence(self, reference: Reference, actual: Sequence[Output]) -> str:
        """Why it says nothing that ``actual`` is not what eager returned: rounding takes eager to other paths, too."""
        if reference.raises or self.unsteady(reference):
            return ""
        inputs = reference.inputs
        if inputs.name not in self._lost:
            self._lost[inputs.name] = lost_path(
                lambda: _observed(self.model, inputs), lambda way: _observed(self.model, changed(inputs, way))
            )
        lost = self._lost[inputs.name]
        excused = lost is not None and lost.covers(reference.outputs, actual) and not self.exact(inputs)
        return lost.text if lost is not None and excused else ""

    def exact(self, inputs: InputSet) -> bool:
        """Whether nothing was rounded on the way to what is decided on a set: a tie is no luck there."""
        if inputs.name not in self._exact:
            self._exact[inputs.name] = decides_exactly(self.model, inputs) and self.keeps_path(inputs)
        return self._exact[inputs.name]

    def keeps_path(self, inputs: InputSet) -> bool:
        """Whether eager takes the same path on a set however its operators round."""
        return keeps_path(lambda: _observed(self.model, inputs))

    def may_be_rounding(self, reference: Reference, actual: Sequence[Output]) -> bool:
        """Whether ``actual`` may differ for how numbers are rounded: beyond a tie, or as float32 itself does."""
        if self.exact(reference.inputs):
            return bool(self._rounding(reference, actual))
        return bool(self.explain(reference, actual)) or self._within_noise(reference, actual)

    def _within_noise(self, reference: Reference, actual: Sequence[Output]) -> bool:
        """Whether noise moves eager about as far: a solver that chooses its steps may go other ways to other ends."""
        inputs = reference.inputs
        noise = moved_by_noise(
            lambda: _observed(self.model, inputs), lambda way: _observed(self.model, changed(inputs, way))
        )
        return noise is not None and noise.covers(reference.outputs, actual)

    def explain(self, reference: Reference, actual: Sequence[Output]) -> str:
        """One line on why ``actual`` is not what eager returned, or nothing."""
        cause = self.unsteady(reference) or self._rounding(reference, actual)
        if cause.startswith(_TIE) or len(actual) != len(reference.outputs):
            return cause
        if not self.unsteady(reference) and takes_first_of_equals(self.model, reference, actual):
            return f"{_TIE}eager returns this, too, where it takes the first of equal elements; {_NO_ORDER}"
        if not self.unsteady(reference) and self._tied(reference, actual):
            return f"{_TIE}eager returns this, too, when numbers change in their last place"
        return cause

    def _tied(self, reference: Reference, actual: Sequence[Output]) -> bool:
        begun = time.perf_counter()
        try:
            return tied(self.model, reference, actual, seconds=self._left)
        finally:
            self._left = max(0.0, self._left - (time.perf_counter() - begun))

    def unsteady(self, reference: Reference) -> str:
        """Whether eager itself returns something else the next time, and what that depends on."""
        name = reference.inputs.name
        if name not in self._unsteady:
            self._unsteady[name] = self._twice(reference)
        return self._unsteady[name]

    def _twice(self, reference: Reference) -> str:
        try:
            again = run_model(self.model, self.model, reference.inputs)
            other = run_model(self.model, self.model, reference.inputs, seed=SEED + 1)
        except Exception:  # noqa: BLE001 - a model that raises the second time is not the same twice
            return "eager raises when it runs for the second time: it keeps state outside of the model"
        if not _same(reference.outputs, again):
            return "eager itself returns something else each time it runs: it keeps state outside of the model"
        if not _same(again, other):
            what = "the model draws random numbers, which differ between eager and onnxruntime"
            return f"{what}; random_inputs=True (--random-inputs) gives both the same"
        return ""

    def _rounding(self, reference: Reference, actual: Sequence[Output]) -> str:
        name = reference.inputs.name
        if name not in self._wide:
            self._wide[name] = _in_float64(self.model, reference.inputs)
        found = self._wide[name]
        if found is None or len(found[0]) != len(reference.outputs) or len(actual) != len(reference.outputs):
            return ""
        exact, flipped = found
        if flipped:
            return f"{_TIE}{flipped}"
        worst = ""
        for want, got, true in zip(reference.outputs, actual, exact, strict=True):
            if want.tensor.shape != true.tensor.shape or want.tensor.shape != got.tensor.shape or want.is_number:
                continue
            if not want.tensor.is_floating_point():
                if torch.equal(true.tensor, got.tensor) and not torch.equal(want.tensor, got.tensor):
                    return f"{_TIE}in float64 eager's {want.name} is what this stage returns"
                continue
            apart = _largest(want.tensor, got.tensor)
            own = _largest(want.tensor, true.tensor)
            if apart > 0 and own >= _SHARE * apart:
                others = _largest(got.tensor, true.tensor)
                worst = (
                    f"rounding, perhaps: eager's {want.name} is {own:.2g} away from eager's in float64, "
                    f"this stage's {others:.2g}"
                )
        return worst


def decides_exactly(model: Any, inputs: InputSet) -> bool:
    """Whether nothing is rounded on the way to what a run decides; False where that can't be said."""
    margins = Roundings()
    mode = ExactDecisions()
    try:
        with margins, mode:
            _observed(model, inputs, _Tracking(margins))
    except Exception:  # noqa: BLE001 - whatever the user's code raises: nothing is known
        return False
    return mode.exact and not margins.rounded


def _same(left: Sequence[Output], right: Sequence[Output]) -> bool:
    pairs = zip(left, right, strict=False)
    return len(left) == len(right) and all(
        a.tensor.shape == b.tensor.shape
        and a.tensor.dtype == b.tensor.dtype
        and torch.equal(widened(a.tensor).nan_to_num(), widened(b.tensor).nan_to_num())
        for a, b in pairs
    )


def _largest(left: torch.Tensor, right: torch.Tensor) -> float:
    apart = (left.double() - right.double()).abs().nan_to_num(0.0, 0.0, 0.0)
    return float(apart.max()) if apart.numel() else 0.0


def _in_float64(model: Any, inputs: InputSet) -> tuple[list[Output], str] | None:
    """What eager returns in float64, and a condition that came out differently; None if it can't run so."""
    try:
        wide = copy.deepcopy(model)
        owner = getattr(wide, "__self__", wide)
        if isinstance(owner, torch.nn.Module):
            owner.double()
        given = inputs.copied()
        widened = InputSet(inputs.name, _widened(given.args), _widened(given.kwargs))
        outputs, exact = _observed(wide, widened)
        _, narrow = _observed(model, inputs)
    except Exception:  # noqa: BLE001 - a model that names its dtype can't run in another one
        return None
    flipped = sorted({site for site, _ in (exact - narrow) + (narrow - exact)}, key=lambda site: site[:2])
    if not flipped:
        return outputs, ""
    file, line, _, kind, _ = flipped[0]
    what = "makes another number of trips" if kind == "loop" else "goes another way"
    return outputs, f"the {kind} at {file}:{line} {what} in float64"


def _observed(
    model: Any, inputs: InputSet, listener: _Events | None = None
) -> tuple[list[Output], Counter[tuple[Copy, str]]]:
    events = listener or _Events()
    given = inputs.copied()
    with CAPTURING, observing(events) as observer, gradients_as_asked(model), preserved(model):  # noqa: SIM117  one line would be too long
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            outputs = flat_outputs(called(observer.call, model)(*given.args, **given.kwargs))
            return [each.copied() for each in outputs], events.counts


def _widened(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda t: t.double() if t.dtype in _NARROW else t, value)
