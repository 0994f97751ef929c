"""Tests beside an ONNX file: what is recorded is read again, run without the model, and notices what has changed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, external_data_helper, helper, numpy_helper

import dy2st
from dy2st.embedded import array_file, recorded
from dy2st.embedded.array_file import Array
from dy2st.embedded.fingerprints import PROOF, loaded, metadata_of, weights_sha256
from dy2st.embedded.recorded import path_of_tests
from dy2st.errors import EmbeddedTestsError, OnnxError, ParityError, SaveError, UsageError

nan = float("nan")


class Net(torch.nn.Module):
    """A loop, a branch that raises, and results of many dtypes."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([0.5, 2.0]))

    def forward(self, x, h, ids, flag):
        if x.sum() < 0:
            raise ValueError("a negative sum")
        y = x * self.scale
        while y.sum() < 5:
            y = y + 1
        wide = h.to(torch.float64) / 3
        return {"y": y, "h": h * 2, "b": h.to(torch.bfloat16), "wide": wide, "ids": ids + 1, "flag": ~flag, "n": 1.5}


def given(*x, h=(1.0, nan), ids=(2**53 + 1,), flag=True):
    return torch.tensor(x), torch.tensor(h, dtype=torch.float16), torch.tensor(ids), torch.tensor(flag)


SETS = {
    "one": given(3.0, 1.0),
    "many": given(0.0, 0.0),
    "none": given(3.0, 9.0, flag=False),
    "negative": given(-1.0, 0.0),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a file and its tests."""
    folder = tmp_path_factory.mktemp("made")
    torch.manual_seed(0)
    dy2st.onnx.export(Net(), SETS["one"], folder / "net.onnx")
    report = dy2st.embed_tests(Net(), SETS, folder / "net.onnx")
    assert report.ok
    return folder


@pytest.fixture
def net(made, tmp_path):
    """A copy of the file; its tests lie beside it."""
    for path in made.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path / "net.onnx"


def test_round_trip(net):
    assert sorted(path.name for path in net.parent.iterdir()) == ["net.onnx", "net.onnx.tests.safetensors"]
    report = dy2st.check_embedded(net)
    assert report.ok
    assert [result.name for result in report.inputs] == list(SETS)
    assert [result.raises.partition(" at ")[0] for result in report.inputs][-1] == "ValueError: a negative sum"
    assert {stage.stage for result in report.inputs for stage in result.stages} == {"onnxruntime"}
    assert report.changed == ()
    assert set(report.recorded) == {"dy2st", "python", "torch", "onnx", "onnxruntime", "platform"}
    assert report.covered
    assert {site.kind: site.taken for site in report.paths} == {
        "if": ("then", "else"),
        "loop": ("no trip", "one trip", "more trips"),
    }


def test_all_dtypes_are_recorded_as_they_are(net):
    tests = recorded.read(path_of_tests(net))
    first = tests.tests[0]
    assert {name: array.dtype for name, array in first.inputs.items()} == {
        "x": "float32",
        "h": "float16",
        "ids": "int64",
        "flag": "bool",
    }
    outputs = {each.file_name.removesuffix("_out"): each.value for each in first.outputs}
    dtypes = {name: array.dtype for name, array in outputs.items()}
    assert dtypes["b"] == "bfloat16"
    assert dtypes["wide"] == "float64"
    assert dtypes["ids"] == "int64"
    assert dtypes["flag"] == "bool"
    assert outputs["ids"].bits.tolist() == [2**53 + 2]
    assert outputs["b"].numbers()[0] == 1.0
    assert np.isnan(outputs["b"].numbers()[1])


def test_which_input_took_which_way_is_recorded(net):
    tests = recorded.read(path_of_tests(net))
    by_kind = {site.kind: taken for site, taken in zip(tests.paths, tests.taken, strict=True)}
    assert by_kind["if"] == {"then": ("negative",), "else": ("one", "many", "none")}
    assert by_kind["loop"]["more trips"] == ("many",)
    # As from the working folder: where that lies is nobody's business.
    assert not any(Path(site.file).is_absolute() for site in tests.paths)
    assert str(Path.cwd()) not in str(tests)


def test_the_files_metadata_says_what_was_proved(net):
    proof = json.loads(metadata_of(loaded(net), PROOF))
    assert (proof["outcome"], proof["tests"], proof["covered"]) == ("equal", 4, True)
    assert proof["versions"]["torch"] == recorded.read(path_of_tests(net)).versions["torch"]
    assert proof["weights_sha256"] == weights_sha256(loaded(net), net.parent)
    onnx.checker.check_model(str(net))


def test_any_reader_of_safetensors_finds_the_tensors(net):
    load_file = pytest.importorskip("safetensors.numpy", reason="it is not installed: dy2st[safetensors]").load_file
    assert load_file(path_of_tests(net))["0.input.x"].tolist() == [3.0, 1.0]


def test_tests_are_recorded_anew(net):
    dy2st.embed_tests(Net(), {"again": SETS["one"]}, net)
    assert [result.name for result in dy2st.check_embedded(net).inputs] == ["again"]
    assert sum(entry.key == PROOF for entry in loaded(net).metadata_props) == 1


@pytest.mark.parametrize(
    ("model", "sets"),
    [
        (lambda x: x * 2, [(torch.ones(2, 0),), (torch.empty(0, 2),)]),
        (lambda x: (x.sum(), x.shape[0]), [(torch.ones(3),), (torch.ones(5),)]),
        (lambda x: x * x, [(torch.tensor([1 + 2j, 3.0]),)]),
        (lambda x: x.to(torch.float32) * 2, [(torch.ones(3, dtype=torch.bfloat16),)]),
        (lambda x: x.to(torch.bfloat16), [(torch.ones(2, 3),)]),
        (lambda x, n: x * n, [(torch.ones(3), 4), (torch.zeros(3), 4)]),
    ],
    ids=["empty", "sizes", "complex", "bf16 input", "bf16 output", "number"],
)
def test_round_trip_of(model, sets, tmp_path):
    file = tmp_path / "net.onnx"
    rows = {0: torch.export.Dim.AUTO} if len({each[0].shape for each in sets}) > 1 else None
    if sets[0][0].numel() == 0:
        rows, sets = None, sets[:1]
    dy2st.onnx.export(model, sets[0], file, dynamic_shapes=None if rows is None else (rows,))
    eager = dy2st.embed_tests(model, sets, file)
    report = dy2st.check_embedded(file)
    assert report.ok, report
    assert [each.blank for each in report.inputs] == [each.blank for each in eager.inputs]


def scaled(file, factor):
    """The file with other weights."""
    model = onnx.load(str(file))
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and list(tensor.dims) == [2]:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))
    onnx.save(model, str(file))


def test_another_weight_is_noticed_and_compared(net):
    scaled(net, 3)
    report = dy2st.check_embedded(net)
    assert report.outcome == "differs"
    assert report.changed == ("its weights are not those with which the tests were recorded",)
    assert report.problems()[0].startswith("input one (")


def test_another_weight_within_the_tolerance_is_noticed(net):
    scaled(net, 1 + 1e-6)
    report = dy2st.check_embedded(net)
    assert report.ok
    assert report.changed == ("its weights are not those with which the tests were recorded",)


def test_another_file_with_the_same_weights_is_noticed(net):
    model = onnx.load(str(net))
    model.doc_string = "deployed"
    for tensor in model.graph.initializer:  # stored in another field
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor)
            tensor.CopyFrom(helper.make_tensor(tensor.name, TensorProto.FLOAT, values.shape, values.ravel().tolist()))
    onnx.save(model, str(net))
    report = dy2st.check_embedded(net)
    assert report.ok
    assert report.changed == ("it is not the file with which the tests were recorded; its weights are the same",)


def test_weights_beside_the_file(net):
    before = weights_sha256(loaded(net), net.parent)
    model = onnx.load(str(net))
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and list(tensor.dims) == [2]:
            external_data_helper.set_external_data(tensor, "net.onnx.data")
    external_data_helper.write_external_data_tensors(model, str(net.parent))
    onnx.save(model, str(net))
    assert net.with_name("net.onnx.data").stat().st_size == 8
    assert weights_sha256(loaded(net), net.parent) == before
    dy2st.embed_tests(Net(), SETS, net)
    assert dy2st.check_embedded(net).changed == ()
    data = net.with_name("net.onnx.data")
    content = bytearray(data.read_bytes())
    content[3] ^= 1
    data.write_bytes(content)
    assert dy2st.check_embedded(net).changed == ("its weights are not those with which the tests were recorded",)


def test_moved_under_another_name(net, tmp_path):
    other = tmp_path / "elsewhere" / "other.onnx"
    other.parent.mkdir()
    path_of_tests(net).replace(path_of_tests(other))
    net.replace(other)
    report = dy2st.check_embedded(other)
    assert (report.ok, report.changed) == (True, ())


def test_tolerances_are_recorded_and_replaced(net):
    dy2st.embed_tests(Net(), SETS, net, rtol={"y": 0.5, "": 0.25})
    outputs = {each.name: each for each in recorded.read(path_of_tests(net)).tests[0].outputs}
    assert outputs["output['y']"].tolerance.rtol == 0.5
    assert outputs["output['h']"].tolerance.rtol == 0.25
    assert outputs["output['ids']"].tolerance.rtol == 0.0
    scaled(net, 1.1)
    assert dy2st.check_embedded(net).ok
    assert not dy2st.check_embedded(net, rtol={"y": 1e-3}).ok
    assert not dy2st.check_embedded(net, rtol=1e-3, atol=0.0).ok


def test_what_rounding_moves_is_recorded_where_it_decides(tmp_path):
    """What is left where large terms cancel: another machine's kernels may leave something else."""
    torch.manual_seed(0)
    weight = torch.randn(4096, 8)

    def model(x):
        return (x @ weight) - (x.flip(-1) @ weight.flip(0))

    file, x = tmp_path / "net.onnx", torch.randn(2, 4096) * 100
    dy2st.onnx.export(model, (x,), file)
    dy2st.embed_tests(model, [(x,), (torch.zeros(2, 4096),)], file)
    tests = recorded.read(path_of_tests(file)).tests
    assert tests[0].outputs[0].rounding.shape == (2, 8)
    assert tests[1].outputs[0].rounding is None
    report = dy2st.check_embedded(file)
    assert report.ok, report
    assert not dy2st.check_embedded(file, rtol=1e-4, atol=1e-7).ok


def test_copies_of_a_construct(tmp_path):
    def model(x):
        for i in range(2):
            if x[i] > 0:
                x = x + 1
        return x

    file, sets = tmp_path / "net.onnx", [(torch.tensor([1.0, -5.0]),), (torch.tensor([-5.0, -5.0]),)]
    dy2st.onnx.export(model, sets[0], file)
    eager = dy2st.embed_tests(model, sets, file)
    report = dy2st.check_embedded(file)
    assert [replace(site, file="") for site in report.paths] == [replace(site, file="") for site in eager.paths]
    assert len(report.paths[0].copies) == 2
    assert [line.partition(".py")[2] for line in report.uncovered] == [
        line.partition(".py")[2] for line in eager.uncovered
    ]


def test_levels_and_providers(net):
    report = dy2st.check_embedded(net, levels=True, providers=["CPU"])
    names = [stage.stage for stage in report.inputs[0].stages]
    assert names == ["onnxruntime", "no optimisation", "basic", "extended", "CPU"]
    assert report.ok
    with pytest.raises(UsageError, match="no provider 'moon'"):
        dy2st.check_embedded(net, providers=["moon"])


def test_a_file_that_differs_gets_no_tests(tmp_path):
    file = tmp_path / "net.onnx"
    dy2st.onnx.export(lambda x: x * 2, (torch.ones(3),), file)
    before = file.read_bytes()
    with pytest.raises(ParityError, match="eager has 3"):
        dy2st.embed_tests(lambda x: x * 3, [(torch.ones(3),)], file)
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]
    assert file.read_bytes() == before


def test_a_file_of_texts_gets_no_tests(tmp_path):
    kinds = [helper.make_tensor_value_info(name, TensorProto.STRING, ["n"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "texts", kinds[:1], kinds[1:])
    proof = dy2st.parity.embedding.Proof(None, [], dy2st.ParityReport("texts", ()))
    onnx.save(helper.make_model(graph), str(tmp_path / "texts.onnx"))
    with pytest.raises(EmbeddedTestsError, match="the input x is a tensor of string, which a file of tests can't hold"):
        proof.write(tmp_path / "texts.onnx", tmp_path / "other.onnx")


def test_a_file_with_other_results_gets_no_tests(tmp_path):
    file = tmp_path / "net.onnx"
    dy2st.onnx.export(lambda x: (x, x * 2), (torch.ones(3),), file)
    references = dy2st.parity.checking.eager_references(lambda x: x * 2, [(torch.ones(3),)])
    proof = dy2st.parity.embedding.Proof(lambda x: x * 2, references, dy2st.ParityReport("net", ()))
    with pytest.raises(EmbeddedTestsError, match="eager returns 1 tensors, the file 2"):
        proof.write(file, tmp_path / "other.onnx")


def test_a_model_that_is_not_captured_says_so(tmp_path):
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", kinds[:1], kinds[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), tmp_path / "f.onnx")

    def model(x):
        return x * (f"{x.sum()}" != "4.0")

    dy2st.embed_tests(model, [(torch.ones(3),)], tmp_path / "f.onnx")
    report = dy2st.check_embedded(tmp_path / "f.onnx")
    assert report.ok
    assert not report.covered
    assert report.uncovered[0].startswith("the paths are not known, since the model can't be captured: D2S")


def cut(content):
    return content[:-5]


def header_cut(content):
    return content[:100]


def flipped(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def flipped_header(content):
    place = content.index(b"float32")
    return content[:place] + b"float64" + content[place + 7 :]


def longer(content):
    return content + b"\0"


def newer(content):
    return content.replace(b'"version":"1"', b'"version":"2"')


def empty(content):
    return b""


def noise(content):
    return np.random.default_rng(0).bytes(len(content))


def another_kind(content):
    return content.replace(b'"dy2st tests"', b'"dy2st world"')


def deep(content):
    header = b"[" * 100_000
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut, "it is damaged, or cut short"),
        (header_cut, "it is damaged, or cut short"),
        (flipped, "it is damaged, or cut short"),
        (flipped_header, "it is damaged, or cut short"),
        (longer, "it is damaged, or cut short"),
        (newer, "it is of version 2 of the format, and this dy2st knows 1"),
        (empty, "it is no file of tests, or it is damaged"),
        (noise, "it is no file of tests, or it is damaged"),
        (another_kind, "it is no file of tests, or it is damaged"),
        (deep, "it is no file of tests, or it is damaged"),
    ],
)
def test_damaged_tests(net, damage, says):
    path = path_of_tests(net)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(EmbeddedTestsError) as caught:
        dy2st.check_embedded(net)
    assert caught.value.what == f"{path} can't be read: {says}"


@pytest.mark.parametrize("seed", range(60))
def test_tests_that_somebody_has_made_are_read_or_refused(net, seed):
    """The checksums are right, and something of the content is not."""
    path = path_of_tests(net)
    texts, arrays = array_file.read(path, recorded.KIND)
    plain = json.loads(texts["tests"])
    random = np.random.default_rng(seed)
    odd = [None, 1, -1, "x", [], {}, [[]], True, 1e999, {"then": 3}]
    place = plain
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[random.integers(len(keys))]
        if not isinstance(place[key], (dict, list)) or not place[key] or random.random() < 0.2:
            place[key] = odd[random.integers(len(odd))]
            break
        place = place[key]
    with path.open("wb") as stream:
        array_file.write(stream, {**texts, "tests": json.dumps(plain)}, arrays)
    try:
        report = dy2st.check_embedded(net)
    except (EmbeddedTestsError, OnnxError) as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right
    else:
        str(report)
        report.to_json()


def test_an_array_that_lies_outside_of_the_file(tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as stream:
        array_file.write(stream, dict([recorded.KIND]), {"x": Array("float32", np.ones(3, np.float32))})
    content = path.read_bytes().replace(b"[0,12]", b"[4,16]")
    path.write_bytes(content)
    with pytest.raises(array_file.DamagedFileError):
        array_file.read(path, recorded.KIND)


def test_tests_of_another_file(net, tmp_path):
    other = tmp_path / "other.onnx"
    dy2st.onnx.export(lambda a: a * 2, (torch.ones(3),), other)
    shutil.copy(path_of_tests(net), path_of_tests(other))
    with pytest.raises(EmbeddedTestsError, match="has the tests of another file: inputs x, h, ids, flag; this has a"):
        dy2st.check_embedded(other)


def test_a_result_that_is_missing_differs(net):
    model = onnx.load(str(net))
    del model.graph.output[-1]
    onnx.save(model, str(net))
    report = dy2st.check_embedded(net)
    assert report.problems()[0].endswith("eager returns 7 tensors, onnxruntime 6")


def test_a_file_that_no_longer_raises_differs(net):
    model = onnx.load(str(net))
    for node in model.graph.node:
        if node.name.startswith("eager raises here"):
            node.name = "quiet"
    onnx.save(model, str(net))
    report = dy2st.check_embedded(net)
    assert [each.outcome for each in report.inputs] == ["equal", "equal", "equal", "differs"]
    assert report.inputs[-1].stages[0].status == "error"


def test_nothing_is_left_where_there_is_no_room(net, monkeypatch):
    before = {path.name: path.read_bytes() for path in net.parent.iterdir()}

    def write(stream, tests):
        stream.write(b"half")
        with Path("/dev/full").open("w") as device:
            device.write("x" * 100_000)

    monkeypatch.setattr(recorded, "write", write)
    with pytest.raises(SaveError, match=r"the tests of .*net.onnx can't be written: No space left on device"):
        dy2st.embed_tests(Net(), SETS, net)
    assert {path.name: path.read_bytes() for path in net.parent.iterdir()} == before
