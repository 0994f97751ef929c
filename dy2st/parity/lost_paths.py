"""Whether a set of inputs says anything: where rounding alone takes eager to other paths, what it returns is luck.

A solver that stops when a residual is below the noise of its own sums takes 10 rounds here and 11 there. No file can do
what eager does on such a set, and none can be judged by it. What eager does under noise decides that, and never what a
file does: in most runs of one kind of noise it has to leave its path. The kinds are inputs that are changed in their
last place, and operators whose operands and results are.

Of such a set, too, the file has to agree on what noise does not move: a difference is luck only in the elements that
the noisy runs change as well, and only as far as they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from dy2st.parity.rounding_noise import FACTOR, Counted, Noise
from dy2st.parity.tolerances import tolerance_for
from dy2st.report.model import NO_EVIDENCE

if TYPE_CHECKING:
    from dy2st.parity.outputs import Output
    from dy2st.report.model import StageResult
    from dy2st.staging.routes import Copy

    Run = tuple[list[Output], Counter[tuple[Copy, str]]]

# So much of the largest number of an output is far for what noise in the last place does to one.
_FAR = 0.01
# The runs of each kind of noise.
RUNS = 8


@dataclass(frozen=True)
class Lost:
    """What rounding noise makes of eager, on a set on which it leaves its path.

    ``moved`` is how far each element of each output goes, in all runs; None where its shape changes. With ``chaotic``
    what goes far goes anywhere: an error in the seventh digit that becomes one in the second can become any other.
    """

    text: str
    moved: Sequence[torch.Tensor | None]
    chaotic: bool = False

    def covers(self, expected: Sequence[Output], actual: Sequence[Output]) -> bool:
        """Whether all that differs is what noise changes as well, and by no more than some times as much."""
        if len(expected) != len(actual) or len(expected) != len(self.moved):
            return False
        triples = zip(expected, actual, self.moved, strict=True)
        return all(_covered(want, got, moved, chaotic=self.chaotic) for want, got, moved in triples)


def _covered(want: Output, got: Output, moved: torch.Tensor | None, *, chaotic: bool) -> bool:
    narrow = want.is_number and got.tensor.is_floating_point()  # a Python float has no dtype
    if want.tensor.dtype != got.tensor.dtype and not (narrow and want.tensor.is_floating_point()):
        return False
    if moved is None:
        return want.tensor.dim() == got.tensor.dim()
    if want.tensor.shape != got.tensor.shape or want.is_text:
        return False
    bounds = tolerance_for(got.tensor.dtype)
    expected = want.tensor.to(got.tensor.dtype)
    apart, size = _apart(expected, got.tensor), _wide(expected).abs()
    same = (expected == got.tensor) | (expected.isnan() & got.tensor.isnan())
    # A NaN or an infinity where eager has a number is no finite distance away, and integers may be apart by too little.
    near = (apart > 0) & (apart <= bounds.atol + bounds.rtol * size + FACTOR * moved)
    if chaotic and expected.is_floating_point() and size.numel():
        near |= moved > bounds.atol + _FAR * size.nan_to_num(0.0, 0.0, 0.0).max()
    return bool((same | near).all())


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.complex128 if value.is_complex() else torch.float64)


def _apart(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (_wide(one) - _wide(other)).abs()


def no_evidence(stages: Sequence[StageResult]) -> str:
    """Why a set is no evidence for or against any of its stages; empty if one differs for another reason."""
    others = [stage.message for stage in stages if stage.status != "equal"]
    return others[0] if others and all(each.startswith(NO_EVIDENCE) for each in others) else ""


def lost_path(run: Callable[[], Run], nudged: Callable[[int], Run]) -> Lost | None:
    """What noise makes of a set, if it takes eager to another path in most runs of one kind; None if it does not.

    Args:
        run: runs the model, and gives its outputs and the ways that it took.
        nudged: the same on inputs that are changed in their last place, in another way for each number.
    """
    found = _counted(run)
    if found is None:
        return None
    operators, (exact, paths) = found

    kinds = [(each, _runs(each)) for each in (nudged, partial(_noisy, run, operators))]
    counts = [sum(taken != paths for _, taken in runs) for _, runs in kinds]
    if not any(2 * count > RUNS for count in counts):
        return None
    runs = [each for _, found in kinds for each in found]
    count, of = max((count, len(found)) for count, (_, found) in zip(counts, kinds, strict=True))
    site = _first_other(paths, [taken for _, taken in runs])
    text = f"{NO_EVIDENCE}rounding alone takes eager to another path in {count} of {of} runs: {site}"
    return Lost(text, _moved(exact, [outputs for outputs, _ in runs]))


def moved_by_noise(run: Callable[[], Run], nudged: Callable[[int], Run]) -> Lost | None:
    """What noise makes of a set on whatever path it takes; None where that can't be said.

    Nobody has asked for the sets that are judged by this. What is compared is changed by what it was computed with
    alone.
    """
    found = _counted(run)
    if found is None:
        return None
    operators, (exact, _) = found
    runs = [*_runs(nudged), *_runs(partial(_noisy, run, operators, comparisons=False))]
    return Lost("", _moved(exact, [outputs for outputs, _ in runs]), chaotic=True) if runs else None


def keeps_path(run: Callable[[], Run]) -> bool:
    """Whether a run takes the same path however its operators round; False where that can't be said.

    What is rounded far from any limit may be at one after many steps, where each makes an error greater.
    """
    found = _counted(run)
    if found is None:
        return False
    operators, (_, paths) = found
    runs = _runs(partial(_noisy, run, operators, comparisons=False))
    return bool(runs) and all(taken == paths for _, taken in runs)


def _counted(run: Callable[[], Run]) -> tuple[int, Run] | None:
    """How many operators run, and what comes of it; None if that raises, whatever the user's code raises."""
    try:
        with Counted() as counted:
            found = run()
    except Exception:  # noqa: BLE001 - nothing is known
        return None
    return counted.count, found


def _noisy(run: Callable[[], Run], count: int, seed: int, *, comparisons: bool = True) -> Run:
    # A loop that ends without noise may not end with it.
    with Noise(seed, most=10 * count + 1000, comparisons=comparisons):
        return run()


def _runs(run: Callable[[int], Run]) -> list[Run]:
    """The runs of one kind; none if one raises: what can't be followed excuses nothing."""
    try:
        return [run(number) for number in range(RUNS)]
    except Exception:  # noqa: BLE001 - an operator that can't be followed, or the user's code
        return []


def _first_other(paths: Counter[tuple[Copy, str]], others: Sequence[Counter[tuple[Copy, str]]]) -> str:
    sites = {site for other in others for site, _ in (paths - other) + (other - paths)}
    file, line, _, kind, _ = min(sites, key=lambda site: (site[3] != "loop", *site[:2]))
    return f"the {kind} at {file}:{line} {'makes another number of trips' if kind == 'loop' else 'goes another way'}"


def _moved(exact: Sequence[Output], runs: Sequence[Sequence[Output]]) -> list[torch.Tensor | None]:
    if any(len(each) != len(exact) for each in runs):
        return [None] * len(exact)
    return [_furthest(output.tensor, [each[number].tensor for each in runs]) for number, output in enumerate(exact)]


def _furthest(exact: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor | None:
    furthest = torch.zeros(exact.shape, dtype=torch.float64)
    for other in others:
        if other.shape != exact.shape:
            return None
        furthest = torch.maximum(furthest, _apart(exact, other).nan_to_num(0.0, 0.0, 0.0))
    return furthest
