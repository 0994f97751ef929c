"""What a file of tests holds: inputs by the names of the ONNX file, what eager returns for them, and what was covered.

The format is described in ``docs/embedded-tests.md``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from dy2st.embedded import array_file
from dy2st.embedded.array_file import Array, DamagedFileError
from dy2st.errors import EmbeddedTestsError
from dy2st.report.model import PathCopy, PathSite, Tolerance

KIND = ("format", "dy2st tests")
# A file of a newer version is refused; all older versions are read.
VERSION = 1
SUFFIX = ".tests.safetensors"


@dataclass(frozen=True)
class RecordedOutput:
    """One output: eager's name for it and the file's, what eager returned, and how close the file has to come.

    ``scaled`` is the tolerance with the terms of the model's largest sum in it, which is asked where ``tolerance`` is
    not enough. ``rounding`` says how far rounding may move each element, if that was looked at: float64, of the shape
    of the value.
    """

    name: str
    file_name: str
    value: Array
    tolerance: Tolerance
    scaled: Tolerance
    rounding: Array | None = None


@dataclass(frozen=True)
class RecordedTest:
    """One call: the file's inputs by name, and the outputs; or what eager raises, where the file has to fail.

    ``description`` is what the arguments look like (``x: f32[4, 3]``), ``terms`` are those of the model's largest sum.
    """

    name: str
    description: str
    inputs: Mapping[str, Array]
    outputs: tuple[RecordedOutput, ...] = ()
    raises: str = ""
    terms: int = 1


@dataclass(frozen=True)
class RecordedTests:
    """All tests of a file.

    ``onnx_sha256`` is that of the file, ``weights_sha256`` that of its weights, however they are stored. ``guards`` are
    the texts of which a failing file says one where eager raises. ``paths`` are the staged branches and loops; for each
    of them ``taken`` has the names of the inputs that took a way, by the way. ``versions`` are those of what took part:
    dy2st, python, torch, onnx, onnxruntime, platform. ``state`` has the output that each input which is state goes on
    with, by the input's name; None in older files. The rest is as in a report of a check.
    """

    model: str
    onnx_sha256: str
    weights_sha256: str
    tests: tuple[RecordedTest, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    guards: tuple[str, ...] = ()
    paths: tuple[PathSite, ...] = ()
    taken: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    paths_problem: str = ""
    searched: str = ""
    specialized: tuple[str, ...] = ()
    dropped_guards: tuple[str, ...] = ()
    state: Mapping[str, str] | None = None


def path_of_tests(file: Path) -> Path:
    """The file of tests beside an ONNX file."""
    return file.with_name(file.name + SUFFIX)


def write(stream: IO[bytes], tests: RecordedTests) -> None:
    """Write a file of tests to a stream.

    Raises:
        OSError: there is no room.
        ValueError: the tests are too many for a file's header.
    """
    arrays: dict[str, Array] = {}

    def held(key: str, array: Array) -> dict[str, Any]:
        arrays[key] = array
        return {"tensor": key, "dtype": array.dtype, "shape": list(array.shape)}

    plain = []
    for number, test in enumerate(tests.tests):
        inputs = {name: held(f"{number}.input.{name}", array) for name, array in test.inputs.items()}
        outputs = [
            {
                "name": each.name,
                "file_name": each.file_name,
                **held(f"{number}.output.{each.file_name}", each.value),
                "tolerance": asdict(each.tolerance),
                "scaled_tolerance": asdict(each.scaled),
                "rounding": None
                if each.rounding is None
                else held(f"{number}.rounding.{each.file_name}", each.rounding),
            }
            for each in test.outputs
        ]
        facts = {"name": test.name, "description": test.description, "raises": test.raises, "terms": test.terms}
        plain.append({**facts, "inputs": inputs, "outputs": outputs})
    text = {
        "model": tests.model,
        "onnx_sha256": tests.onnx_sha256,
        "weights_sha256": tests.weights_sha256,
        "versions": dict(tests.versions),
        "tests": plain,
        "guards": list(tests.guards),
        "paths": [
            {**asdict(site), "taken": {way: list(names) for way, names in taken.items()}}
            for site, taken in zip(tests.paths, tests.taken, strict=True)
        ],
        "paths_problem": tests.paths_problem,
        "searched": tests.searched,
        "specialized": list(tests.specialized),
        "dropped_guards": list(tests.dropped_guards),
        "state": None if tests.state is None else dict(tests.state),
    }
    texts = {KIND[0]: KIND[1], "version": str(VERSION), "tests": json.dumps(text, allow_nan=False)}
    array_file.write(stream, texts, arrays)


def read(path: Path) -> RecordedTests:
    """The tests of a file.

    Raises:
        EmbeddedTestsError: it can't be read, is damaged, foreign or of a newer version.
    """
    try:
        version = array_file.texts_of(path, KIND).get("version", "")
        if version.isdecimal() and int(version) > VERSION:
            raise EmbeddedTestsError(
                f"{path} can't be read: it is of version {version} of the format, and this dy2st knows {VERSION}",
                hint="run it with the dy2st that wrote it, or a newer one",
            )
        texts, arrays = array_file.read(path, KIND)
        return _tests(json.loads(texts["tests"]), arrays)
    except OSError as error:
        raise EmbeddedTestsError(f"{path} can't be read: {error.strerror or error}") from error
    except DamagedFileError as error:
        what = "it is no file of tests, or it is damaged" if error.foreign else "it is damaged, or cut short"
        raise EmbeddedTestsError(f"{path} can't be read: {what}") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise EmbeddedTestsError(f"{path} can't be read: it has other content than its format says") from error


def _tests(plain: Any, arrays: Mapping[str, Array]) -> RecordedTests:
    sites = [dict(each) for each in plain["paths"]]
    taken = [{_text(way): _texts(names) for way, names in each.pop("taken").items()} for each in sites]
    return RecordedTests(
        _text(plain["model"]),
        _text(plain["onnx_sha256"]),
        _text(plain["weights_sha256"]),
        tuple(_test(each, arrays) for each in plain["tests"]),
        {_text(name): _text(version) for name, version in plain["versions"].items()},
        _texts(plain["guards"]),
        tuple(_site(site, ways) for site, ways in zip(sites, taken, strict=True)),
        tuple(taken),
        _text(plain["paths_problem"]),
        _text(plain["searched"]),
        _texts(plain["specialized"]),
        _texts(plain["dropped_guards"]),
        _state(plain.get("state")),
    )


def _test(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> RecordedTest:
    return RecordedTest(
        _text(plain["name"]),
        _text(plain["description"]),
        {_text(name): _held(each, arrays) for name, each in plain["inputs"].items()},
        tuple(
            RecordedOutput(
                _text(each["name"]),
                _text(each["file_name"]),
                _held(each, arrays),
                _tolerance(each["tolerance"]),
                _tolerance(each["scaled_tolerance"]),
                None if each["rounding"] is None else _rounding(each, arrays),
            )
            for each in plain["outputs"]
        ),
        _text(plain["raises"]),
        _whole(plain["terms"]),
    )


def _site(plain: Mapping[str, Any], taken: Mapping[str, Any]) -> PathSite:
    ways = _texts(plain["ways"])
    return PathSite(
        _text(plain["file"]),
        _whole(plain["line"]),
        None if plain["column"] is None else _whole(plain["column"]),
        _text(plain["kind"]),
        _text(plain["source"]),
        ways,
        tuple(way for way in ways if way in taken),
        _texts(plain["accepted"]),
        tuple(PathCopy(_text(each["name"]), _texts(each["ways"]), _texts(each["taken"])) for each in plain["copies"]),
    )


def _state(plain: Any) -> dict[str, str] | None:
    return None if plain is None else {_text(name): _text(output) for name, output in plain.items()}


def _held(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> Array:
    array = arrays[plain["tensor"]]
    if (array.dtype, list(array.shape)) != (plain["dtype"], plain["shape"]):
        raise ValueError(plain["tensor"])
    return array


def _rounding(plain: Mapping[str, Any], arrays: Mapping[str, Array]) -> Array:
    array = _held(plain["rounding"], arrays)
    if array.dtype != "float64" or list(array.shape) != plain["shape"]:
        raise ValueError(plain["rounding"])
    return array


def _tolerance(plain: Mapping[str, Any]) -> Tolerance:
    found = Tolerance(float(plain["rtol"]), float(plain["atol"]))
    if not all(math.isfinite(each) and each >= 0 for each in (found.rtol, found.atol)):
        raise ValueError(found)
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(value)
    return tuple(map(_text, value))
