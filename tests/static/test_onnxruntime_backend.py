"""The onnxruntime backend of ``to_static``: eager's results from a file, of the tensors as they are in each call."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
from dy2st.errors import BackendError, ParityError
from dy2st.static import onnxruntime_backend, session_values
from dy2st.static.session_values import DTYPES, Session
from tests.benchmarks.static import load

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
X = torch.tensor([1.0, -2.0, 3.5])


def on_onnxruntime(function: Any, **options: Any) -> Any:
    return dy2st.to_static(function, backend="onnxruntime", **options)


def same(got: Any, want: Any) -> None:
    """The same structures, types, dtypes and values."""
    left, right = pytree.tree_flatten(got), pytree.tree_flatten(want)
    assert left[1] == right[1]
    assert [type(each) for each in left[0]] == [type(each) for each in right[0]]
    for a, b in zip(left[0], right[0], strict=True):
        if isinstance(a, Tensor):
            torch.testing.assert_close(a, b, equal_nan=True)
        else:
            assert a == b


class Counting(nn.Module):
    """A loop, weights, a buffer that counts, and numbers among the results."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.scale = torch.ones(3)

    def forward(self, x: Tensor) -> tuple[Tensor, int, Tensor]:
        self.calls += 1
        y, steps = self.linear(x) * self.scale, 0
        while y.abs().sum() < 20:
            y = y * 2 + 0.1
            steps += 1
        return y, steps, self.calls


@pytest.mark.parametrize("name", [pytest.param("ctc_greedy", marks=pytest.mark.slow), "newton"])
def test_samples(name: str) -> None:
    module = load(SAMPLES / f"{name}.py")
    examples = module.example_inputs
    static = on_onnxruntime(module.model)
    with torch.no_grad():
        for args in examples() if callable(examples) else examples:
            same(static(*args), module.model(*args))


def halved(x: Tensor) -> tuple[Tensor, int, float, bool, str, None, tuple[Tensor, ...]]:
    steps = 0
    while x.abs().sum() > 1:
        x = x / 2
        steps += 1
    y = x.sin() if x.sum() > 0 else x.cos()
    return y, steps, x.sum().item(), bool(x.sum() > 0), "text", None, (y, x)


def test_branches_loops_and_numbers() -> None:
    static = on_onnxruntime(halved)
    for x in (X, -X, X * 100, X * 0):
        same(static(x), halved(x))
    assert static.cache_info().misses == 1
    assert "(onnxruntime)" in repr(static)


def test_weights_are_those_of_now() -> None:
    module = Counting()
    static, other = on_onnxruntime(module), Counting()

    def agree() -> None:
        other.load_state_dict(module.state_dict())
        other.scale = module.scale
        same(static(X)[0], other(X)[0])

    with torch.no_grad():
        agree()
        module.linear.weight.mul_(-2)
        agree()
        module.linear.weight.data += 1  # which no counter of versions tells
        agree()
        module.linear.bias.detach().numpy()[:] = 7
        agree()
        module.linear.weight = nn.Parameter(torch.eye(3))
        agree()
        module.linear.weight.data = torch.ones(3, 3)
        agree()
        module.load_state_dict({name: each * 2 for name, each in module.state_dict().items()})
        agree()
        module.scale = torch.tensor([3.0, 1.0, 2.0])
        agree()
    assert static.forward.cache_info().misses == 1


def test_globals_and_closures_are_those_of_now() -> None:
    held = [torch.ones(3)]
    static = on_onnxruntime(lambda x: x * held[0] if x.sum() > 0 else x)
    same(static(X), X)
    held[0].mul_(4)
    same(static(X), X * 4)
    held[0] = torch.zeros(3)
    same(static(X), X * 0)


def test_buffers_are_written() -> None:
    module, plain = Counting().eval(), Counting().eval()
    plain.load_state_dict(module.state_dict())
    static = on_onnxruntime(module)
    with torch.no_grad():
        for i in range(1, 4):
            got, want = static(X * i), plain(X * i)
            same(got, want)
            assert got[2] is module.calls
            assert module.calls == i


def test_arguments_are_written() -> None:
    def fill(cache: Tensor, x: Tensor, at: Tensor) -> Tensor:
        if x.sum() > 0:
            cache[at] = x
        cache.mul_(2)
        return cache.sum()

    static = on_onnxruntime(fill)
    ours, plain = torch.ones(4, 3), torch.ones(4, 3)
    for x in (X, -X, X):
        same(static(ours, x, torch.tensor(1)), fill(plain, x, torch.tensor(1)))
        same(ours, plain)
    turned, plain = torch.ones(3, 4).t(), torch.ones(4, 3)
    same(static(turned, X, torch.tensor(1)), fill(plain, X, torch.tensor(1)))
    same(turned, plain)


def test_running_statistics() -> None:
    module, plain = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    static = on_onnxruntime(module)
    with torch.no_grad():
        for i in range(3):
            x = torch.randn(5, 3) + i
            same(static(x), plain(x))
            same(dict(module.state_dict()), dict(plain.state_dict()))


def test_what_is_written_to_under_two_names_is_refused() -> None:
    def add(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return x + y

    static = on_onnxruntime(add)
    same(static(X.clone(), X), X * 2 + 1)
    both = X.clone()
    with pytest.raises((BackendError, dy2st.errors.StagingError)):
        static(both, both)
    assert torch.equal(both, X)


def test_parts_of_one_memory_that_do_not_overlap() -> None:
    def add(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return x + y

    static = on_onnxruntime(add)
    ours, plain = torch.ones(4, 3), torch.ones(4, 3)
    same(static(ours[0], ours[1]), add(plain[0], plain[1]))
    same(ours, plain)


def test_results_are_memory_of_their_own() -> None:
    def views(x: Tensor) -> tuple[Tensor, ...]:
        y = x
        while y.sum() > 100:
            y = y / 2
        z = x if x.sum() > 0 else x * 2
        return x.view(3, 1), y, z, x[1:], torch.tensor([1.0, 2.0]), x.clone(), x * 1

    static = on_onnxruntime(views)
    given = X.clone()
    first = static(given)
    kept = [each.clone() for each in first]
    second = static(given * 2)
    for each, value in zip(first, kept, strict=True):
        assert torch.equal(each, value), "the second run has written to it"
        each.add_(100)
    assert torch.equal(given, X)
    same(second, views(X * 2))
    same(static(X), views(X))


def test_what_is_given_back_is_the_same_tensor() -> None:
    static = on_onnxruntime(lambda x: (x, x * 2, 3))
    same(static(X), (X, X * 2, 3))
    assert static(X)[0] is X
    assert on_onnxruntime(lambda x: x)(X) is X


def test_results_outlive_the_program() -> None:
    static = on_onnxruntime(lambda x: x * 2)
    result = static(X)
    session = weakref.ref(static._programs.entries[0].executable.forward._session)
    del static
    gc.collect()
    assert session() is None
    assert torch.equal(result, X * 2)


def test_gradients_are_refused() -> None:
    linear = nn.Linear(3, 3)
    static = on_onnxruntime(linear)
    for _ in range(2):
        with pytest.raises(BackendError, match="does not differentiate") as raised:
            static(X)
        assert "no_grad" in raised.value.hint
    with torch.no_grad():
        same(static(X), linear(X))
    with torch.inference_mode():
        same(static(X), linear(X))
    linear.requires_grad_(False)
    same(static(X), linear(X))
    with pytest.raises(BackendError, match="does not differentiate"):
        static(X.clone().requires_grad_())


class Deciding(nn.Module):
    """Weights only decide, or are used without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = self.linear(x)
            while y.sum() < 10:
                y = y.abs() * 2 + 1
        return y, self.linear(x).argmax()


def test_what_has_no_gradient_in_eager_runs() -> None:
    module = Deciding()
    static = on_onnxruntime(module)
    same(static(X), module(X))
    assert not static(X)[0].requires_grad


class Grown(nn.Module):
    """A gradient that comes by a loop, a branch, or a write."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.weight = way, nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(3)
        if self.way == "loop":
            while y.sum() < 5:
                y, x = x, x * self.weight + 1
        elif self.way == "branch":
            y = x * self.weight if x.sum() > 100 else x
        else:
            y[0:2] = self.weight[0:2]
        return y


@pytest.mark.parametrize("way", ["loop", "branch", "write"])
def test_ways_to_a_gradient(way: str) -> None:
    with pytest.raises(BackendError, match="does not differentiate"):
        on_onnxruntime(Grown(way))(X)


def test_functions_with_a_backward_of_their_own() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 2

    same(on_onnxruntime(lambda x: Double.apply(x) + 1)(X), X * 2 + 1)


@pytest.mark.parametrize(
    "function", [lambda x: x + torch.rand(3), lambda x: nn.functional.dropout(x, 0.5), lambda x: x.clone().normal_()]
)
def test_random_numbers_are_refused(function: Any) -> None:
    with pytest.raises(BackendError, match="random numbers are drawn") as raised:
        on_onnxruntime(function)(X)
    assert raised.value.location.filename == __file__


def test_dropout_that_does_nothing_runs() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).eval()
    with torch.no_grad():
        same(on_onnxruntime(module)(X), module(X))


def test_other_devices_and_dtypes_are_refused() -> None:
    with pytest.raises(BackendError, match="runs on the CPU"):
        on_onnxruntime(lambda x: x * 2)(X.to("meta"))
    with pytest.raises(BackendError, match="float8"):
        on_onnxruntime(lambda x: x.to(torch.float32))(X.to(torch.float8_e5m2))


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool], ids=str
)
def test_dtypes(dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 0, 3], [0, 2, 0]]).to(dtype)

    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return torch.cat([x, x]), x.t(), x == x

    static = on_onnxruntime(model)
    for each in (x, x[:1], x.t(), x[:, ::2], x[:0]):
        same(static(each), model(each))


def test_every_dtype_crosses_as_it_is() -> None:
    class Handing:
        """A session whose outputs are its inputs."""

        def run_with_ortvaluevector(
            self, options: Any, names: Any, given: Any, outputs: Any, made: Any, _: Any
        ) -> None:
            for i, tensor in enumerate(given.to_dlpacks(torch.from_dlpack)):
                is_bool = i in given.bool_tensor_indices()
                made.push_back(torch.utils.dlpack.to_dlpack(tensor), is_bool)

    for dtype in DTYPES:
        for x in (torch.ones(2, 3).to(dtype), torch.ones(()).to(dtype), torch.ones(0, 2).to(dtype)):
            session = Session.__new__(Session)
            session._session, session._options, session._devices = Handing(), None, []
            session._inputs, session._outputs = ["x"], ["y"]
            session._complex = [0] if dtype.is_complex else []
            (found,) = session.run([x])
            same(found, x)


def test_conjugates_and_strides() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    static = on_onnxruntime(lambda z: z * z)
    same(static(z), z * z)
    same(static(z.conj()), (z.conj() * z.conj()).resolve_conj())
    real = on_onnxruntime(lambda x: x * 2)
    same(real(z.conj().imag), z.conj().imag * 2)
    same(real(torch.ones(1).expand(4)), torch.full((4,), 2.0))


def test_sizes_share_a_program() -> None:
    def model(x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[1])
        for row in x:
            total = total * 0.5 + row
        return total

    static = on_onnxruntime(model, input_spec=["f32[rows,3]"])
    for rows in (2, 5, 1, 0):
        x = torch.randn(rows, 3)
        same(static(x), model(x))
    assert static.cache_info().misses == 1
    grown = on_onnxruntime(lambda x: x.sum(0))
    for rows in (2, 3, 4, 5):
        same(grown(torch.ones(rows, 3)), torch.full((3,), float(rows)))
    assert grown.cache_info().misses == 2


def raising(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("positive")
    return x * 2


def test_exceptions_are_eagers() -> None:
    static = on_onnxruntime(raising)
    for _ in range(2):
        with pytest.raises(ValueError, match="positive"):
            static(X)
        same(static(-X), -X * 2)


def test_a_run_that_fails_has_written_nothing() -> None:
    def model(buffer: Tensor, x: Tensor) -> Tensor:
        buffer.add_(1)
        if x.sum() > 0:
            raise ValueError("positive")
        return x + buffer

    static = on_onnxruntime(model)
    buffer = torch.zeros(3)
    same(static(buffer, -X), 1 - X)
    with pytest.raises(ValueError, match="positive"):
        static(buffer, X)
    assert torch.equal(buffer, torch.full((3,), 2.0)), "written once, by eager"


def test_a_wrong_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Session.run
    monkeypatch.setattr(Session, "run", lambda *a: [each + 1 for each in right(*a)])
    static = on_onnxruntime(lambda x: x * 2)
    for _ in range(2):
        with pytest.raises(ParityError, match=r"output\[0\]: eager has"):
            static(X)
    monkeypatch.setattr(Session, "run", lambda *_: 1 / 0)
    with pytest.raises(ParityError, match="ZeroDivisionError"):
        on_onnxruntime(lambda x: x * 3)(X)


def test_each_program_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    compare = onnxruntime_backend.compare
    monkeypatch.setattr(onnxruntime_backend, "compare", lambda *a, **k: calls.append(a) or compare(*a, **k))
    static = on_onnxruntime(lambda x: x * 2)
    for i in range(4):
        static(X * i)
    assert len(calls) == 1


def test_threads() -> None:
    module = nn.Sequential(nn.Linear(8, 8), nn.Tanh()).eval()
    static, wrong = on_onnxruntime(module), []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for _ in range(50):
                x = torch.randn(4, 8, generator=generator)
                if not torch.allclose(static(x), module(x), atol=1e-5):
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_files_that_are_too_large_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_values, "is_large", lambda _: True)
    same(on_onnxruntime(lambda x: x * torch.arange(3.0) + 0.5)(X), X * torch.arange(3.0) + 0.5)


def test_sessions_have_the_threads_that_torch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    static = on_onnxruntime(lambda x: x * 2)
    static(X)
    session = static._programs.entries[0].executable.forward._session._session
    assert session.get_session_options().intra_op_num_threads == 3


def test_saved_programs_need_no_backend(tmp_path: Path) -> None:
    static = on_onnxruntime(lambda x: x * 2 if x.sum() > 0 else x)
    static(X)
    dy2st.save(static, tmp_path / "f.dy2st", examples=[(X,)])
    same(dy2st.load(tmp_path / "f.dy2st")(X), X * 2)
