"""Row 42: an exception that a path raises, where a ``try`` statement takes it."""

# ruff: noqa: TRY301  an exception is raised where the model raises it

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor, nn

import dy2st

ROWS = [(torch.tensor(v),) for v in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, -9.0, 3.0], [0.3, 0.6, 0.9])]
MATRICES = [(torch.eye(3) * v,) for v in (2.0, -1.0, 0.0, -4.5)]


class BadError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def jittered(a: Tensor) -> Any:
    n = 0
    try:
        factor = torch.linalg.cholesky(a)
        n = n + 1
    except RuntimeError:
        factor = a * 0
        n = 5
    return factor, n


def tried_again(a: Tensor) -> Any:
    jitter = 0.0
    for _ in range(4):
        try:
            return torch.linalg.cholesky(a + jitter * torch.eye(a.shape[0]))
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            jitter = 0.5 if jitter == 0 else jitter * 10
    raise ValueError("no factor")


def told_by_its_words(a: Tensor) -> Any:
    try:
        return torch.linalg.cholesky(a)
    except RuntimeError as error:
        if "singular" in str(error):
            return a
        if "positive-definite" in error.args[0]:
            return a - 7
        raise


def of_another_type(a: Tensor) -> Any:
    try:
        try:
            return torch.linalg.lu_factor(a)[0]
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            return a + 1
    except RuntimeError:
        return a + 2


def of_two_places(a: Tensor) -> Any:
    try:
        x = torch.linalg.inv(a)
        y = torch.linalg.cholesky(a)
    except RuntimeError:
        x, y = a, a
    return x, y


def tried_in_a_handler(a: Tensor) -> Any:
    try:
        try:
            y = torch.linalg.cholesky(a)
        except RuntimeError:
            y = torch.linalg.cholesky(a + 1.5 * torch.eye(3))
    except RuntimeError:
        y = a * 0
    return y


def with_an_else(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        y = x * 2
    except ValueError:
        y = x - 1
    else:
        y = y + 10
    return y


def returned_in_the_else(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError
    except ValueError:
        pass
    else:
        return x * 5
    return x


def checked(x: Tensor) -> Any:
    if x.min() < -2.5:
        raise KeyError("low")
    return x.abs().sqrt()


def of_a_callee(x: Tensor) -> Any:
    total = torch.zeros(())
    for value in x:
        try:
            total = total + checked(value)
        except KeyError:
            total = total - 100
            continue
        total = total + 1
    return total


def deep(x: Tensor, depth: int) -> Any:
    if depth == 0:
        if x.sum() > 4:
            raise ValueError("deep")
        return x
    return deep(x + 1, depth - 1) * 2


def of_a_recursion(x: Tensor) -> Any:
    try:
        return deep(x, 2)
    except ValueError:
        return x * 100


def out_of_a_loop(x: Tensor) -> Any:
    k = 0
    try:
        while x.abs().sum() < 100:
            x = x * 2
            k = k + 1
            if x.max() > 20:
                raise OverflowError
    except OverflowError:
        x = -x
    return x, k


def in_a_loop(x: Tensor) -> Any:
    n = 0
    while x.abs().sum() < 500:
        n = n + 1
        try:
            x = x * 2
            if x.max() > 10:
                raise OverflowError
            x = x + 0.1
        except OverflowError:
            x = -x * 3
    return x, n


def found_by_it(x: Tensor) -> Any:
    found = None
    try:
        for value in x:
            if value > 2:
                raise StopIteration
            found = value
    except StopIteration:
        return found, 1
    return x.sum(), 0


def past_an_inner_one(x: Tensor) -> Any:
    try:
        try:
            if x.sum() > 0:
                raise ValueError
            y = x + 1
        except KeyError:
            y = x + 2
    except ValueError:
        y = x + 3
    return y


def of_an_assert(x: Tensor) -> Any:
    try:
        assert x.sum() > 0
        y = x.abs().sqrt()
    except AssertionError:
        y = x.abs()
    return y


def of_a_class_of_its_own(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise BadError(3)
        k = 0
    except BadError as error:
        k = error.code
    return x * k


def of_two_types(x: Tensor) -> Any:
    out = []
    for value in x:
        try:
            if value > 2:
                raise ValueError
            if value < -2:
                raise KeyError
            out.append(value)
        except (ValueError, KeyError):
            out.append(value * 0)
    return torch.stack(out)


def out_of_a_with(x: Tensor) -> Any:
    try:
        with torch.no_grad():
            if x.sum() > 0:
                raise ValueError
            y = x * 3
    except:  # noqa: E722
        y = x
    return y


def raised_again(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError("first")
        y = x + 1
    except ValueError as error:
        if x.max() > 2.5:
            raise RuntimeError("second") from error
        y = x + 2
    return y


def stored_before_and_after(x: Tensor) -> Any:
    found = {"a": x}
    y = x.clone()
    try:
        found["b"] = x + 1
        y[0] = 7
        if x.sum() > 0:
            raise ValueError
        found["a"], found["b"] = x * 0, x + 2
        y[1] = 8
    except ValueError:
        found["b"] = found["b"] * 10
        y[2] = 9
    return found["a"], found["b"], y


def of_what_none_lacks(x: Tensor) -> Any:
    head = None
    if x.sum() > 0:
        head = x[:2]
    try:
        y = head + 1  # type: ignore[operator]
    except (TypeError, KeyError):
        y = x[:2]
    else:
        y = y * 2
    return y


class Counting(nn.Module):
    """Its buffer changes before and after the exception."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Any:
        try:
            self.count = self.count + 1
            if x.sum() > 0:
                raise ValueError
            self.count = self.count + 10
        except ValueError:
            self.count = self.count + 100
        return x + self.count


OF_MATRICES = [jittered, told_by_its_words, of_another_type, of_two_places, tried_in_a_handler]
OF_ROWS = [
    with_an_else,
    returned_in_the_else,
    of_a_callee,
    of_a_recursion,
    out_of_a_loop,
    in_a_loop,
    found_by_it,
    past_an_inner_one,
    of_an_assert,
    of_a_class_of_its_own,
    of_two_types,
    out_of_a_with,
    stored_before_and_after,
    of_what_none_lacks,
]


@row(42)
@pytest.mark.parametrize("model", OF_MATRICES)
def test_what_torch_raises(model: Callable[..., Any]) -> None:
    agree(model, MATRICES, whole=False)  # some handlers are for what no matrix raises


@row(42)
def test_another_try_after_an_exception() -> None:
    agree(tried_again, MATRICES, raising=[(torch.eye(3) * -60,)])


@row(42)
@pytest.mark.parametrize("model", OF_ROWS)
def test_what_the_model_raises(model: Callable[..., Any]) -> None:
    agree(model, ROWS, whole=model is not past_an_inner_one)


@row(42)
def test_a_handler_that_raises() -> None:
    agree(raised_again, ROWS[1:], raising=ROWS[:1])


def not_caught(x: Tensor) -> Any:
    try:
        try:
            if x.sum() > 0:
                raise ValueError("positive")
            y = x + 1
        except BadError:
            y = x
    except (KeyError, AttributeError):
        y = -x
    return y


@row(42, 43)
def test_what_no_handler_is_for() -> None:
    agree(not_caught, ROWS[1:3], raising=ROWS[:1], paths=1, whole=False)


def out_of_bounds(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            y = x[7]
        else:
            raise IndexError
    except IndexError:
        y = x[1]
    return y


@row(42)
def test_what_is_raised_while_it_is_traced_is_no_exception_of_eager_s() -> None:
    assert refuses(out_of_bounds, ROWS[0]).code in {"D2S236", "D2S237"}


@row(42)
def test_buffers() -> None:
    agree(Counting(), ROWS[:3])


@row(42)
@pytest.mark.parametrize("model", [jittered, tried_again, of_two_places])
def test_static_functions(model: Callable[..., Any]) -> None:
    static = dy2st.to_static(model)
    for (matrix,) in MATRICES[:3]:
        torch.testing.assert_close(static(matrix), model(matrix))


def gradient(model: Callable[..., Any], x: Tensor) -> Tensor | None:
    x = x.clone().requires_grad_()
    with contextlib.suppress(RuntimeError):  # nothing to differentiate
        model(x).sum().backward()
    return x.grad


@row(42)
@pytest.mark.parametrize("model", [with_an_else, of_a_callee, of_an_assert])
def test_gradients(model: Callable[..., Any]) -> None:
    static = dy2st.to_static(model)
    for (x,) in ROWS:
        torch.testing.assert_close(gradient(static, x), gradient(model, x))


def seen_by_one_handler(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise BadError(3)
        if x.min() < -2:
            raise BadError(4)
        k = 0
    except BadError as error:
        k = error.code
    return x * k


def with_a_finally(x: Tensor) -> Any:
    try:
        if x.sum() > 0:
            raise ValueError
        y = x + 1
    except ValueError:
        y = x + 2
    finally:
        z = x * 2
    return y + z


def of_an_index(x: Tensor) -> Any:
    try:
        return (x > 2).nonzero()[0]
    except IndexError:
        return torch.tensor([-1])


@row(42)
@pytest.mark.parametrize("model", [seen_by_one_handler, with_a_finally, of_an_index])
def test_what_is_refused(model: Callable[..., Any]) -> None:
    assert refuses(model, ROWS[0]).code == "D2S236"


@row(43, 45)
def test_an_assert_that_fails_on_a_path_is_a_guard() -> None:
    def model(x: Tensor) -> Tensor:
        found = None
        if x.sum() > 0:
            found = x * 2
        if x.max() > 0:
            assert torch.is_tensor(found)
            return found + 1
        return x

    agree(
        model,
        [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),)],
        raising=[(torch.tensor([3.0, -4.0]),)],
    )


@row(43, 45)
def test_asserts_of_a_method_that_a_text_by_path_names() -> None:
    class Checks:
        def nothing(self, values: Any, mask: Any) -> None:
            pass

        def elements(self, values: Any, mask: Any) -> None:
            assert torch.is_tensor(values)
            assert torch.is_tensor(mask)
            assert len(values) == len(mask)

    def model(x: Tensor) -> Tensor:
        found: dict[str, Any] = {"values": 0, "mask": None, "kind": "nothing"}
        if x.sum() > 0:
            found = {"values": x, "mask": x > 0, "kind": "elements"}
        getattr(Checks(), found["kind"])(found["values"], found["mask"])
        if found["kind"] == "nothing":
            return torch.zeros(())
        return (found["values"] * found["mask"]).mean()

    agree(model, [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),), (torch.tensor([3.0, -1.0]),)])
