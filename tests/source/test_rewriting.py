"""Finding a function's source, and giving a function back."""

from __future__ import annotations

import importlib.util
import linecache
import pickle
import sys
import textwrap
import traceback
import types
from pathlib import Path
from typing import Any

import definitions
import pytest

from dy2st.errors import Dy2stError, SourceError
from dy2st.source.rewriting import is_rewritten, original, rewrite, rewritten_source


def load(folder: Path, text: str, name: str = "written") -> types.ModuleType:
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(text))
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_same_shape() -> None:
    made = rewrite(definitions.Owner.static)
    function = definitions.Owner.static
    assert made is not function
    assert made.__defaults__ == (1,)
    assert made.__kwdefaults__ == {"y": 2}
    assert made.__doc__ == "Documented."
    assert made.__annotations__ == {"y": "int"}
    assert made.__qualname__ == "Owner.static"
    assert made.__globals__ is function.__globals__
    assert (made(), made(0), made(y=5)) == (2, 0, 5)


def test_repeated_calls_share_the_code_and_not_the_function() -> None:
    first, second = rewrite(definitions.plain), rewrite(definitions.plain)
    assert first is not second
    assert first.__code__ is second.__code__


def test_nothing_to_rewrite() -> None:
    assert rewrite(definitions.nothing) is definitions.nothing
    assert rewrite(definitions.coroutine) is definitions.coroutine
    assert not is_rewritten(definitions.nothing)
    assert rewritten_source(definitions.coroutine) == textwrap.dedent(
        """\
        async def coroutine(x):
            if x:
                yield x
        """
    )


def test_attributes_are_copied() -> None:
    def function(x: Any) -> Any:
        return x or 1

    function.mark = "kept"  # type: ignore[attr-defined]
    assert rewrite(function).mark == "kept"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "expected"), [("one", 1), ("two", 2), ("several", 3)])
def test_lambdas_of_one_line(name: str, expected: int) -> None:
    function = getattr(definitions, name)
    made = rewrite(function)
    assert made is not function
    assert made(0) == expected
    assert str(expected) in rewritten_source(function)


def test_lambdas_that_look_alike() -> None:
    assert rewrite(definitions.same)(2) == rewrite(definitions.other)(2) == 1


def test_lambdas_in_a_lambda() -> None:
    either, both = (rewrite(f) for f in definitions.nested(0))
    assert (either(5), both(5)) == (5, 0)
    either, both = rewrite(definitions.nested)(3)
    assert is_rewritten(either)
    assert (either(5), both(5)) == (3, 5)


def test_closures_share_their_cells() -> None:
    add, get = definitions.closure(1)
    new_add, new_get = rewrite(add), rewrite(get)
    assert new_add(2) == 3
    assert add(2) == 5
    assert new_get() == get() == 5
    other, _ = definitions.closure(10)
    assert rewrite(other)(1) == 11
    assert get() == 5


def test_functions_made_by_rewritten_ones() -> None:
    add, get = rewrite(definitions.closure)(1)
    assert is_rewritten(add)
    assert rewrite(add) is add
    old = original(add)
    assert not is_rewritten(old)
    assert old(4) == add(0) == get() == 5


def test_original() -> None:
    made = rewrite(definitions.plain)
    assert original(made) is definitions.plain
    assert original(definitions.plain) is definitions.plain
    copied = types.FunctionType(made.__code__, made.__globals__, "copied", None, made.__closure__)
    assert original(copied).__code__ is definitions.plain.__code__


def test_private_names_and_class_cell() -> None:
    owner = definitions.Owner()
    assert rewrite(definitions.Owner.method)(owner, 1) == 3
    assert rewrite(definitions.Owner.method)(owner, 0) == "Owner"
    assert rewrite(definitions.Owner.Inner.method)(definitions.Owner.Inner()) == ["name", "name"]
    assert rewrite(definitions.Owner.maker)(owner)() == 3
    assert rewrite(definitions.Owner.maker(owner))() == 3
    assert rewrite(definitions.Owner.__dict__["value"].fget)(owner) == 3
    assert isinstance(rewrite(definitions.Owner.__dict__["of"].__func__)(definitions.Owner, 1), definitions.Owner)


def test_decorated_function_is_its_wrapper() -> None:
    made = rewrite(definitions.decorated)
    assert made.__code__.co_name == "wrapper"
    assert made() is None
    inner = rewrite(definitions.decorated.__wrapped__.__wrapped__)
    assert (
        inner.__code__.co_firstlineno == inner.__wrapped__.__code__.co_firstlineno
        if hasattr(inner, "__wrapped__")
        else inner(0) == 2
    )
    code = definitions.decorated.__wrapped__.__wrapped__.__code__
    assert inner.__code__.co_firstlineno == code.co_firstlineno
    with pytest.raises(LookupError) as caught:
        inner(1)
    assert caught.tb.tb_next is not None
    assert caught.tb.tb_next.tb_lineno == code.co_firstlineno + 4


def test_columns_are_bytes_of_the_users_text() -> None:
    def frames(function: Any) -> list[tuple[Any, ...]]:
        try:
            function(0)
        except ValueError as error:
            return [(f.lineno, f.colno, f.end_colno, f.line) for f in traceback.extract_tb(error.__traceback__)[1:]]
        raise AssertionError

    assert frames(rewrite(definitions.nonlatin)) == frames(definitions.nonlatin)


def test_pickled_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = rewrite(definitions.plain)
    monkeypatch.setattr(definitions, "plain", made)
    assert pickle.loads(pickle.dumps(made)) is made


def test_future_annotations_are_kept(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        """
        from __future__ import annotations

        def f(x):
            def g(y: Missing) -> Missing:
                return y or x
            return g
        """,
    )
    assert rewrite(module.f)(1).__annotations__ == {"y": "Missing", "return": "Missing"}


def test_without_future_annotations(tmp_path: Path) -> None:
    module = load(tmp_path, "def f(x):\n    def g(y: int):\n        return y or x\n    return g\n")
    assert rewrite(module.f)(1).__annotations__ == {"y": int}


def test_executed_text_with_lines() -> None:
    text = "def f(x):\n    return x or 1\n"
    linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<cell 1>", "exec"), namespace)
    made = rewrite(namespace["f"])
    assert made is not namespace["f"]
    assert made(0) == 1


def test_globals_named_like_the_function_and_its_class(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        """
        from gettext import gettext as _

        class A:
            def A(self):
                return A.__name__ or _

            def f(self):
                return f() if self else 0

        def f():
            return _("found") or f
        """,
    )
    assert rewrite(module.A.A)(module.A()) == "A"
    assert rewrite(module.A.f)(module.A()) == "found"
    assert rewrite(module.f)() == "found"


def test_indented_text_keeps_its_strings(tmp_path: Path) -> None:
    module = load(
        tmp_path,
        '''
        if True:
            class A:
                def f(self, x):
                    text = """first
          second
        third"""
                    return text if x else \\
                        None
        ''',
    )
    assert rewrite(module.A.f)(None, 1) == module.A.f(None, 1)
    assert module.A.f(None, 1).count("\n") == 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_type_parameters(tmp_path: Path) -> None:
    module = load(tmp_path, "def f[T](x: T) -> T:\n    return T.__name__ if x else None\n")
    made = rewrite(module.f)
    assert made(1) == "T"
    assert made.__type_params__ == module.f.__type_params__  # type: ignore[attr-defined]


def test_users_d2s_is_left_alone(tmp_path: Path) -> None:
    module = load(tmp_path, "d2s = 7\ndef f(x):\n    if_3 = x\n    if x: return d2s\n    return if_3\n")
    assert rewrite(module.f)(1) == 7
    assert rewrite(module.f)(0) == 0
    assert "d2s_.if_" in rewritten_source(module.f)


def test_own_names_are_shown_although_they_look_made(tmp_path: Path) -> None:
    module = load(tmp_path, "def f(x):\n    value_1 = x or 2\n    return sorted(locals())\n")
    assert rewrite(module.f)(1) == ["value_1", "x"]


def test_source_after_a_pass() -> None:
    text = rewritten_source(definitions.plain, after="LowerReturn")
    assert "fn_" in text
    assert "if x:" in text
    assert rewritten_source(rewrite(definitions.plain)) == rewritten_source(definitions.plain)


def code_of(function: Any) -> str:
    with pytest.raises(SourceError) as caught:
        rewrite(function)
    assert isinstance(caught.value, Dy2stError)
    return caught.value.code


def test_no_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x): return x or 1", namespace)
    assert code_of(namespace["f"]) == "D2S101"
    assert code_of(len) == "D2S101"
    assert code_of(int) == "D2S101"
    assert code_of("text") == "D2S101"


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x or 3\n",
        "def f(x):\n    return x and 2\n",
        "def f(y):\n    return y or 2\n",
        "\n\ndef f(x):\n    return x or 2\n",
        "def f(x:\n    return x or 2\n",
        "def f(x):\n    print(x)\n    return x or 2\n",
    ],
)
def test_stale_source(tmp_path: Path, text: str) -> None:
    module = load(tmp_path, "def f(x):\n    return x or 2\n")
    assert rewrite(module.f)(0) == 2
    (tmp_path / "written.py").write_text(text + "# another length\n")
    again = types.FunctionType(module.f.__code__.replace(), module.__dict__)
    assert code_of(again) == "D2S102"


def test_error_says_where(tmp_path: Path) -> None:
    module = load(tmp_path, "x = 1\ndef f(x):\n    return x or 2\n")
    (tmp_path / "written.py").write_text("x = 1\ndef f(y):\n    return y\n")
    with pytest.raises(SourceError) as caught:
        rewrite(module.f)
    assert caught.value.location is not None
    assert caught.value.location.line == 2
    assert str(tmp_path / "written.py") + ":2: D2S102" in str(caught.value)


def chain(count: int) -> str:
    lines = ["def f(x):", "    if x == 0:", "        return 0"]
    for i in range(1, count):
        lines += [f"    elif x == {i}:", f"        return {i * 10}"]
    return "\n".join(lines) + "\n    return -1\n"


def nest(count: int) -> str:
    lines = ["def f(x):", *("    " * (i + 1) + f"if x > {i}:" for i in range(count))]
    return "\n".join(lines) + "\n" + "    " * (count + 1) + "return x\n    return -1\n"


def loops(count: int) -> str:
    lines = ["def f(x):", "    n = 0", *("    " * (i + 1) + f"for i{i} in range(x):" for i in range(count))]
    inner = "    " * (count + 1)
    return "\n".join(lines) + f"\n{inner}n += 1\n{inner}if n > 3: break\n    return n\n"


@pytest.mark.parametrize("text", [chain(30), chain(150), nest(30), nest(90), loops(12), loops(18)])
def test_too_deep_to_lower_all(tmp_path: Path, text: str) -> None:
    module = load(tmp_path, text)
    made = rewrite(module.f)
    assert made is not module.f
    for x in (0, 1, 7, 29, 89, 149, 150) if "range" not in text else (0, 1):
        assert made(x) == module.f(x)


def test_long_expressions(tmp_path: Path) -> None:
    terms = " + ".join(f"(x or {i})" for i in range(400))
    module = load(tmp_path, f"def f(x):\n    return {terms}\n")
    assert rewrite(module.f)(0) == module.f(0)
