"""The paths of the samples: an input that is needed is missed, and a search finds inputs from a spec alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from dy2st.capture.program import export
from dy2st.cli.main import main
from dy2st.parity.checking import eager_references
from dy2st.parity.paths import path_coverage

if TYPE_CHECKING:
    from types import ModuleType

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
SPECS = {
    "adaptive_computation": ["x=f32[batch:0..4,time:0..6,4]"],
    "beam_search": ["source=i64[length:0..9]:2..8"],
    "ctc_greedy": ["features=f32[frames:0..9,6]"],
    "early_exit": ["image=f32[batch:0..3,3,height:8..20,width:8..20]"],
    "gru_decoder": [
        "tokens=i64[time:0..6,batch:0..4]:0..11",
        "lengths=i64[batch:0..4]:0..6",
        "context=f32[batch:0..4,16]",
    ],
    "ista": ["y=f32[batch:0..3,6]"],
    "kv_cache_generation": ["prompt=i64[batch:1..4,length:1..14]:0..10"],
    "newton": ["a=f32[n:0..4]"],
    "ode_solver": ["y=f32[batch:1..3,2]", "mu=f32[batch:1..3]", "end=f32[]"],
    "streaming_vad": ["frame=f32[160]"],
    "viterbi": ["features=f32[time:1..9,batch:1..4,4]", "mask=bool[time:1..9,batch:1..4]"],
}


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sample_paths_{name}", SAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_a_spec_for_each_sample() -> None:
    assert sorted(SPECS) == sorted(path.stem for path in SAMPLES.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_a_search_reaches_all_paths(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [part for spec in SPECS[name] for part in ("--input", spec)]
    code = main(["check", str(SAMPLES / f"{name}.py"), "--search=20", *inputs])
    told = capsys.readouterr()
    assert code == 0, told.out + told.err
    assert "not reached" not in told.out


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SPECS if name != "streaming_vad"])  # whose inputs are streams
def test_inputs_that_are_missing_are_missed(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the inputs that take one way of a line, a check fails and names the line."""
    sample = loaded(name)
    program = export(sample.model, sample.example_inputs()[0], dynamic_shapes=sample.dynamic_shapes)
    references = eager_references(sample.model, sample.example_inputs())
    lost: dict[tuple[Any, str], list[Any]] = {}
    for site in path_coverage(sample.model, references, program)[0]:
        for way in site.taken:
            lost[site, way] = [each for each in references if way not in taken(sample, each, program)[site.line]]
    (site, way), kept = max(lost.items(), key=lambda each: len(each[1]))
    torch.save([each.inputs.args for each in kept], tmp_path / "kept.pt")
    assert main(["check", str(SAMPLES / f"{name}.py"), "--inputs", str(tmp_path / "kept.pt")]) == 1
    missed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not covered: ")]
    assert any(f"{name}.py:{site.line}: {site.code}: " in line for line in missed), (way, missed)


def taken(sample: ModuleType, reference: Any, program: Any) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for site in path_coverage(sample.model, [reference], program)[0]:
        found[site.line] = (*found.get(site.line, ()), *site.taken)
    return found
