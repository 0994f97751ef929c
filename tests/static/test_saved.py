"""Saved programs: what was saved is what runs, without its source; a damaged file is refused in one line."""

from __future__ import annotations

import collections
import copy
import itertools
import json
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
from dy2st.errors import Dy2stError, SavedCallError, SavedFileError, UnsavableError, UsageError
from dy2st.static import weights_file
from dy2st.static.saved_format import decoded, encoded, target_of

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = [
    path if path.stem in ("newton", "gru_decoder") else pytest.param(path, marks=pytest.mark.slow)
    for path in sorted((ROOT / "samples").glob("*.py"))
    if path.stem != "streaming_vad"  # which counts in a Python int, as no program does
]

# Both run in processes of their own: one that knows the sample, and one that can't.
SAVING = """
import importlib.util, sys, warnings, torch, dy2st
warnings.simplefilter("ignore")
source, folder = sys.argv[1:]
spec = importlib.util.spec_from_file_location("sample", source)
sample = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sample)
sets = sample.example_inputs()
dy2st.save(sample.model, folder + "/model.dy2st", sets)
with torch.no_grad():
    torch.save([(args, sample.model(*[each.clone() for each in args])) for args in sets], folder + "/results.pt")
"""
LOADING = """
import sys, torch, dy2st
from torch.utils import _pytree as pytree
folder, = sys.argv[1:]
loaded = dy2st.load(folder + "/model.dy2st")
for args, wanted in torch.load(folder + "/results.pt", weights_only=True):
    got = loaded(*args)
    (a, spec), (b, other) = pytree.tree_flatten(got), pytree.tree_flatten(wanted)
    assert spec == other, (spec, other)
    for one, two in zip(a, b, strict=True):
        assert type(one) is type(two), (one, two)
        torch.testing.assert_close(one, two, equal_nan=True)
assert "sample" not in sys.modules
print("equal")
"""


def run(code, *arguments, cwd):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_run_without_their_source(sample, tmp_path):
    done = run(SAVING, sample, tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(LOADING, tmp_path, cwd=tmp_path)
    assert done.stdout == "equal\n", done.stderr


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(()))
        self.scale = 2

    def forward(self, x, times=1):
        y = self.linear(x)
        while y.abs().sum() > times:
            y = y / self.scale
        return y

    def decode(self, x):
        return {"y": self.linear(x) if x.sum() > 0 else -x, "sign": x.sum() > 0, "n": int(x.sum())}

    def count(self, x):
        self.seen += x.sum()
        return self.seen * 1


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.dy2st"


def round_trip(path, function, examples):
    dy2st.save(function, path, examples)
    return dy2st.load(path)


X = torch.tensor([1.0, 2.0, 3.0])


def test_methods_of_one_object(path):
    net = Net()
    decode, count = dy2st.to_static(net.decode), dy2st.to_static(net.count)
    functions = {"forward": net, "decode": decode, "count": count}
    loaded = round_trip(path, functions, {"forward": [(X,)], "decode": [(X,)], "count": [(X,)]})
    assert torch.equal(loaded(X), net(X))
    for x in (X, -X):
        got, want = loaded.decode(x), net.decode(x)
        assert list(got) == list(want)
        assert torch.equal(got["y"], want["y"])
        assert got["n"] == want["n"]
        assert type(got["n"]) is int
    assert float(loaded.count(X)) == 6
    assert float(loaded.count(X)) == 12
    assert float(dy2st.load(path).seen) == 0, "what a program writes to a buffer stays out of the file"
    assert sorted(loaded.state_dict()) == ["linear.bias", "linear.weight", "seen"]
    assert "decode" in dir(loaded)
    assert "decode: 1 programs" in repr(loaded)


def test_several_without_a_forward(path):
    net = Net()
    loaded = round_trip(path, {"decode": net.decode, "count": net.count}, {"decode": [(X,)], "count": [(X,)]})
    with pytest.raises(UsageError, match="call one of decode, count"):
        loaded(X)


def test_gradients_and_training(path):
    net = Net()
    loaded = round_trip(path, net, [(X,)])
    loaded(X).sum().backward()
    net(X).sum().backward()
    for one, two in zip(loaded.parameters(), net.parameters(), strict=True):
        assert torch.equal(one.grad, two.grad)
    with torch.no_grad():
        assert not loaded(X).requires_grad
    optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in (loaded, net)]
    for optimizer in optimizers:
        optimizer.step()
    assert torch.equal(loaded(X), net(X))
    assert not torch.equal(dy2st.load(path)(X), net(X)), "the file stays as it was"
    dy2st.save(loaded, path)
    assert torch.equal(dy2st.load(path)(X), net(X))
    loaded.load_state_dict(Net().state_dict(), strict=False)
    assert torch.equal(loaded(X), Net()(X))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_of_what_was_loaded(path, copied):
    loaded = round_trip(path, Net(), [(X,)])
    with torch.no_grad():
        loaded.linear.weight.zero_()
    twin = copied(loaded)
    assert torch.equal(twin(X), loaded(X))
    assert twin.linear.weight is not loaded.linear.weight
    assert twin.linear.weight.requires_grad


def test_dynamic_dimensions(path):
    @dy2st.to_static(input_spec=["x=f32[batch:1..8,3]", "y=f32[batch]"])
    def f(x, y):
        return x * y[:, None] if x.sum() > 0 else x

    loaded = round_trip(path, f, None)
    for n in (1, 2, 5):
        x, y = torch.ones(n, 3), torch.arange(n, dtype=torch.float32)
        assert torch.equal(loaded(x, y), f(x, y))
    for x, y, told in [
        (
            torch.ones(9, 3),
            torch.ones(9),
            "x is a float32[9, 3] tensor, and not float32[batch, 3] with batch from 1 to 8",
        ),
        (torch.ones(2, 3), torch.ones(3), "y is a float32[3] tensor: its dimension 0 is not batch, which is 2"),
        (torch.ones(2, 4), torch.ones(2), "x is a float32[2, 4] tensor, and not float32[batch, 3]"),
        (torch.ones(2), torch.ones(2), "x is a float32[2] tensor, and not float32[batch, 3]"),
        (torch.ones(2, 3).double(), torch.ones(2), "x is a float64[2, 3] tensor, and not float32[batch, 3]"),
        (torch.ones(3, 2).T, torch.ones(2), "x is of strides (1, 2), and not contiguous"),
        (2, torch.ones(2), "x is the int 2, and not float32[batch, 3]"),
    ]:
        with pytest.raises(SavedCallError) as caught:
            loaded(x, y)
        assert caught.value.what == f"f was not saved for this call: {told}"


def test_programs_captured_so_far(path):
    net = dy2st.to_static(Net())
    net(X)
    net.eval()
    net(X, 2)
    net(X, times=3)
    dy2st.save(net, path)
    loaded = dy2st.load(path)
    assert torch.equal(loaded(X, 2), net(X, 2))
    assert torch.equal(loaded(X, times=3), net(X, 3))
    with pytest.raises(SavedCallError, match="times is the int 1, and not the int 2; or times is the int 1, and not"):
        loaded(X)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        loaded()
    net.linear.weight = nn.Parameter(torch.zeros(3, 3))
    dy2st.save(net, path)
    assert not dy2st.load(path).linear.weight.any(), "weights are those of now"


WEIGHT = torch.ones(3)
Pair = collections.namedtuple("Pair", "left right")  # noqa: PYI024


def structures(x, table):
    a, b = table["a"]
    value, index = (x + WEIGHT).topk(2)
    return (
        Pair(a, [b * 2, None]),
        x.max(0),
        {"ordered": collections.OrderedDict(k=value), 3: index},
        "text",
        torch.float64,
    )


def test_structures(path):
    table = {"a": (X, X * 2), "b": None}
    loaded = round_trip(path, structures, [(X, table)])
    got, want = loaded(X, table), structures(X, table)
    assert type(got[0]).__name__ == "Pair"
    assert got[0]._fields == want[0]._fields
    assert type(got[1]) is type(want[1])
    assert type(got[2]["ordered"]) is collections.OrderedDict
    assert got[3:] == want[3:]
    tensors = [
        [e for e in pytree.tree_leaves(list(each[0]) + list(each[1:])) if isinstance(e, Tensor)] for each in (got, want)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*tensors, strict=True))
    for other, told in [
        ({"a": (X, X), "b": 1}, "two|not the same tensor|the int 1"),
        ({"a": [X, X * 2], "b": None}, "is a list, and not a tuple"),
        ({"a": (X,), "b": None}, "is a tuple of length 1, and not 2"),
        ({"b": None, "a": (X, X * 2)}, "is a dict with the keys"),
    ]:
        with pytest.raises(SavedCallError, match=told):
            loaded(X, other)


def test_one_tensor_twice_and_shared_memory(path):
    def f(x, y):
        x.add_(1)
        return x + y

    loaded = round_trip(path, f, [(torch.ones(3), torch.ones(3))])
    x = torch.ones(3)
    assert torch.equal(loaded(x, torch.ones(3)), torch.full((3,), 3.0))
    assert torch.equal(x, torch.full((3,), 2.0))
    with pytest.raises(SavedCallError, match="one tensor"):
        loaded(x, x)
    with pytest.raises(SavedCallError, match="share memory"):
        loaded(x, x.view(3))


def test_strides_of_weights(path):
    net = nn.Linear(2, 3)
    net.weight = nn.Parameter(torch.randn(2, 3).T)
    net.register_buffer("stretched", torch.ones(1, 3).expand(4, 3))
    loaded = round_trip(path, {"f": lambda x: net(x) + net.stretched}, {"f": [(torch.ones(4, 2),)]})
    assert torch.equal(loaded(torch.ones(4, 2)), net(torch.ones(4, 2)) + 1)
    assert (1, 3) in [each.stride() for each in loaded.state_dict().values()]
    assert (0, 1) in [each.stride() for each in loaded.state_dict().values()]


def test_modes(path):
    def f(x):
        return x * 2 if torch.is_grad_enabled() else x

    loaded = round_trip(path, f, [(X,)])
    assert torch.equal(loaded(X), X * 2)
    with torch.no_grad(), pytest.raises(SavedCallError, match="gradients are off"):
        loaded(X)
    with torch.autocast("cpu"), pytest.raises(SavedCallError, match="autocast"):
        loaded(X)
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(SavedCallError, match=r"the default dtype is torch\.float64"):
            loaded(X)
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(SavedCallError, match="its own tensor weight is another one now"):
        round_trip(path, nn.Linear(3, 3), [(X,)]).double()(X)


def test_no_grad_block_is_kept(path):
    def f(x):
        with torch.no_grad():
            y = x * x
        return y * x

    with torch.no_grad():
        loaded = round_trip(path, f, [(X,)])
    x = X.clone().requires_grad_()
    loaded(x).sum().backward()
    assert torch.equal(x.grad, X * X)


def test_where_eager_raises(path):
    def f(x):
        if x.sum() < 0:
            raise ValueError("negative")
        return x

    loaded = round_trip(path, f, [(X,)])
    with pytest.raises(RuntimeError, match="test_saved"):
        loaded(-X)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def squared(x):
    return Square.apply(x)


class Config:
    scale = 2


class Holding(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.randn(4, requires_grad=True)
        self.b = self.a.detach()[:3]

    def forward(self, x):
        return x * self.a[1:] + self.b


def hooked():
    net = nn.Linear(3, 3)
    net.register_forward_hook(lambda module, args, result: result * 2)
    return net


def static_net():
    return dy2st.to_static(Net())


@pytest.mark.parametrize(
    ("function", "examples", "told"),
    [
        (squared, [(X.clone().requires_grad_(),)], "the custom autograd function Square"),
        (lambda x, config: x * config.scale, [(X, Config())], "the argument config is a Config"),
        (Holding(), [(X,)], "shares its memory with"),
        (hooked(), [(X,)], "Linear has hooks of its own"),
        (3, None, "to_static takes"),
        (Net, None, "Net is a class"),
        (static_net, None, "no program that holds now"),
        ({}, None, "no function is given"),
        ({"parameters": Net()}, {"parameters": [(X,)]}, "can't be the name"),
        ({"f": Net()}, [(X,)], "a dict by their names"),
        (Net(), [X], "an example is a float32"),
        (Net(), [(X,) * 9], "."),
    ],
)
def test_what_is_refused(path, function, examples, told):
    with pytest.raises((Dy2stError, TypeError), match=told):
        dy2st.save(function, path, examples)
    assert list(path.parent.iterdir()) == []


def test_foreign_operators_are_refused(path):
    library = torch.library.Library("dy2st_test_saved", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake("dy2st_test_saved::twice", torch.empty_like, lib=library)

    def twice(x):
        return torch.ops.dy2st_test_saved.twice(x)

    with pytest.raises(UnsavableError, match="twice"):
        dy2st.save(twice, path, [(X,)])


# ---- files


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    file = tmp_path_factory.mktemp("saved") / "model.dy2st"
    dy2st.save(Net(), file, [(X,)])
    return file.read_bytes()


def load_or_code(path):
    """The result of the program of a file; the error's first line if it is refused."""
    try:
        return dy2st.load(path)(X)
    except Dy2stError as error:
        return f"{error.code}: {error.what}"


def is_refusal(found):
    return isinstance(found, str) and found.startswith("D2S909") and len(found.splitlines()) == 1


@pytest.mark.parametrize("tenth", range(10))
def test_damage(saved, path, tenth):
    at, want = len(saved) * tenth // 10, Net()(X)
    path.write_bytes(saved[:at])
    assert is_refusal(load_or_code(path))
    for offset in range(0, len(saved) // 10, max(1, len(saved) // 400)):
        for bit in (1, 128):
            damaged = bytearray(saved)
            damaged[min(at + offset, len(saved) - 1)] ^= bit
            path.write_bytes(damaged)
            found = load_or_code(path)
            assert is_refusal(found) or torch.equal(found, want)


def parts(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def written(path, header, body):
    header["__metadata__"].pop("header_crc32", None)
    header["__metadata__"]["header_crc32"] = weights_file._header_checksum(header)
    encoded_header = json.dumps(header).encode()
    path.write_bytes(len(encoded_header).to_bytes(8, "little") + encoded_header + body)


def test_newer_version(saved, path):
    header, body = parts(saved)
    header["__metadata__"]["version"] = "2"
    written(path, header, body)
    with pytest.raises(SavedFileError, match="of version 2 of the format, and this dy2st knows 1"):
        dy2st.load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("aten.linear.default", "aten.from_file.default"),
        ("aten.linear.default", "os.system"),
        ("aten.linear.default", "builtins.eval.call"),
        ("aten.linear.default", "aten.__class__.default"),
        ("linear", "x=__import__('os')"),
        ('"op":"placeholder"', '"op":"call_method"'),
        ('"name":"x"', '"name":"x)"'),
        ('"leaf":[0', '"leaf":[9'),
        ('"node":0', '"node":99'),
        ('"dtype":"float32"', '"dtype":"load"'),
        ('"graph":1', '"graph":0'),
        ('"state"', '"stage"'),
        ('"methods"', '"method"'),
    ],
)
def test_misleading_content_is_refused(saved, path, old, new):
    header, body = parts(saved)
    text = header["__metadata__"]["programs"]
    assert old in text
    header["__metadata__"]["programs"] = text.replace(old, new)
    written(path, header, body)
    with pytest.raises(SavedFileError):
        dy2st.load(path)


@pytest.mark.parametrize("name", ["aten.from_file.default", "aten.save.default", "torch.load", "operator.methodcaller"])
def test_operators_that_no_file_may_call(name):
    with pytest.raises((ValueError, AttributeError)):
        target_of(name)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        -0.0,
        1.5,
        float("inf"),
        "a",
        2j,
        (1, [2.0, "b"]),
        slice(1, None),
        ...,
        torch.float32,
        torch.strided,
        torch.contiguous_format,
        torch.device("cpu"),
    ],
    ids=str,
)
def test_constants(value):
    found = decoded(json.loads(json.dumps(encoded(value))))
    assert repr(found) == repr(value)
    assert type(found) is type(value)


@pytest.mark.parametrize("name", ["missing.dy2st", "folder", "empty", "foreign", "deep", "\0"])
def test_no_such_file(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "foreign").write_bytes(pickle.dumps({"weights": list(range(100))}))
    deep = b"[" * 100_000
    (tmp_path / "deep").write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(SavedFileError, match="can't be read"):
        dy2st.load(tmp_path / name)


def test_permission(saved, path, monkeypatch):
    path.write_bytes(saved)

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(SavedFileError, match="can't be read: Permission denied"):
        dy2st.load(path)


@pytest.mark.parametrize("name", ["missing/model.dy2st", "folder"])
def test_nowhere_to_write(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(SavedFileError, match="can't be written"):
        dy2st.save(Net(), tmp_path / name, [(X,)])
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_full_disk_leaves_the_old_file(saved, path):
    path.write_bytes(saved)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(SavedFileError, match="can't be written: File too large"):
            dy2st.save(Net(), path, [(X,)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == saved
    assert list(path.parent.iterdir()) == [path]


def test_damaged_weights_without_verifying(saved, path):
    path.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    with pytest.raises(SavedFileError, match="damaged"):
        dy2st.load(path)
    assert dy2st.load(path, verify=False)(X).shape == X.shape


def test_weights_are_those_of_safetensors(saved):
    """By the published layout: offsets without holes, names and dtypes."""
    header, body = parts(saved)
    header.pop("__metadata__")
    places = sorted(each["data_offsets"] for each in header.values())
    assert places[0][0] == 0
    assert places[-1][1] == len(body)
    assert all(a[1] == b[0] for a, b in itertools.pairwise(places))
    begin, end = header["linear.bias"]["data_offsets"]
    assert torch.equal(torch.frombuffer(bytearray(body[begin:end]), dtype=torch.float32), Net().linear.bias)


# ---- static functions themselves, in files of pickle and in other processes


@pytest.mark.slow
@pytest.mark.parametrize(
    "thing", ["function", *(pytest.param(name, marks=pytest.mark.slow) for name in ("module", "method"))]
)
def test_other_processes_capture_anew(thing, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch, dy2st\n"
        "@dy2st.to_static\n"
        "def function(x):\n    return x * 2 if x.sum() > 0 else -x\n"
        "class Net(torch.nn.Linear):\n    def forward(self, x):\n"
        "        return super().forward(x) if x.sum() > 0 else -x\n"
        "    @dy2st.to_static\n    def method(self, x):\n        return self.weight @ x * 2\n"
        "net = Net(3, 3)\nmodule, method = dy2st.to_static(net), net.method\n"
        "def work(pickled, x):\n    import pickle\n    f = pickle.loads(pickled)\n"
        "    static = getattr(f, 'forward', f)\n    before = static.cache_info().misses\n"
        "    return before, f(x).tolist(), static.cache_info().misses\n"
    )
    (tmp_path / "start.py").write_text(
        "import multiprocessing, pickle, sys, torch, mine\n"
        "if __name__ == '__main__':\n"
        "    thing, x = getattr(mine, sys.argv[1]), torch.ones(3)\n    want = thing(x).tolist()\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.apply(mine.work, (pickle.dumps(thing), x)) == (0, want, 1)\n    print('equal')\n"
    )
    command = [sys.executable, str(tmp_path / "start.py"), thing]
    environment = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "equal\n", done.stderr


def test_copies_of_a_static_module_capture_anew(tmp_path):
    net = dy2st.to_static(Net())
    net(X)
    torch.save(net, tmp_path / "net.pt")
    for twin in (
        torch.load(tmp_path / "net.pt", weights_only=False),
        copy.deepcopy(net),
        pickle.loads(pickle.dumps(net)),
    ):
        assert twin.forward.cache_info().currsize == 0
        assert torch.equal(twin(X), net(X))
        assert twin.forward.cache_info().misses == 1
        with torch.no_grad():
            twin.linear.weight.zero_()
        assert not torch.equal(twin(X), net(X))
        assert torch.equal(twin(X), twin.original(X))
