"""try, with, raise, match."""

import contextlib
import enum

from differential import Truth, case, note


@case(1, 0, "a")
def try_except(x):
    try:
        y = 1 / x
    except ZeroDivisionError:
        y = "zero"
    except TypeError as e:
        y = str(e)
    return y


@case(1, 0)
def try_else_finally(x):
    r = []
    try:
        r.append(1 / x)
    except ZeroDivisionError:
        r.append("except")
    else:
        r.append("else")
    finally:
        r.append("finally")
    return r


@case(1, 0, "a")
def return_in_try(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return "zero"
    finally:
        note("finally")


@case(1, 0)
def return_in_finally(x):
    try:
        if x:
            return "try"
        1 / 0
    finally:
        return "finally"


@case(1, 0)
def return_in_else(x):
    try:
        1 / x
    except ZeroDivisionError:
        pass
    else:
        return "else"
    return "end"


@case(3)
def break_in_finally(n):
    for i in range(n):
        try:
            if i == 1:
                1 / 0
        finally:
            if i:
                break
    return i


@case(3)
def continue_in_except(n):
    r = []
    for i in range(n):
        try:
            r.append(1 / (i - 1))
        except ZeroDivisionError:
            continue
        r.append("after")
    return r


@case(3)
def break_in_try_bare_except(n):
    r = []
    for i in range(n):
        try:
            if i == 1:
                break
            raise ValueError
        except:
            r.append(i)
    else:
        r.append("else")
    return r


@case(0, 1)
def return_in_try_base_exception(x):
    try:
        if x:
            return "returned"
        raise KeyboardInterrupt
    except BaseException as e:
        return type(e).__name__


@case(ValueError, KeyError, OSError)
def handler_from_variable(kind):
    kinds = (ValueError, KeyError)
    try:
        if kind is OSError:
            return "early"
        raise kind("x")
    except kinds as e:
        return repr(e)


@case(0, 1, 2)
def nested_try(x):
    r = []
    try:
        try:
            if x == 0:
                raise KeyError("inner")
            if x == 1:
                raise ValueError("outer")
        except KeyError:
            r.append("inner")
            raise TypeError("from inner")
        finally:
            r.append("f1")
    except (ValueError, TypeError) as e:
        r.append(repr(e))
        r.append(repr(e.__context__))
    finally:
        r.append("f2")
    return r


@case(1)
def reraise(x):
    try:
        [][x]
    except IndexError:
        note("caught")
        raise


@case(1)
def raise_from(x):
    try:
        [][x]
    except IndexError as e:
        raise KeyError("new") from e


@case(1)
def raise_from_none(x):
    try:
        [][x]
    except IndexError:
        raise KeyError("new") from None


@case(0, 1)
def exception_name_is_deleted(x):
    e = "before"
    try:
        1 / x
    except ZeroDivisionError as e:
        note(str(e))
    return e


@case(0, 1)
def variable_from_try(x):
    try:
        y = 1 / x
        z = 1
    except ZeroDivisionError:
        pass
    return y, z


@case(0, 1)
def error_in_handler(x):
    try:
        1 / x
    except ZeroDivisionError:
        undefined()
    return x


@case(0, 1)
def error_in_finally(x):
    try:
        1 / x
    finally:
        [][0]


class Manager:
    def __init__(self, swallow=False):
        self.swallow = swallow

    def __enter__(self):
        note("enter")
        return self

    def __exit__(self, kind, value, tb):
        note(("exit", kind and kind.__name__))
        return self.swallow


@case((0, True), (0, False), (1, True))
def with_statement(x, swallow):
    with Manager(swallow) as m:
        y = 1 / x
    return y, m.swallow


@case(0, 1)
def return_in_with(x):
    with Manager() as a, Manager(True) as b:
        if x:
            return "inside"
        raise ValueError
    return "after"


@case(3)
def jumps_in_with(n):
    for i in range(n):
        with Manager():
            if i == 0:
                continue
            if i == 1:
                break
    else:
        return "else"
    return i


@case()
def with_targets():
    class O:
        pass

    o, d = O(), {}
    with Manager() as o.m, Manager() as d["k"], contextlib.nullcontext((1, 2)) as (a, o.b):
        pass
    return type(o.m).__name__, list(d), a, o.b


@case(0, 1)
def suppress(x):
    with contextlib.suppress(ZeroDivisionError):
        y = "before"
        y = 1 / x
    return y


@case()
def with_error():
    with None:
        pass


@case(0)
def with_multi_line(x):
    with (
        Manager() as a,
        Manager() as b,
    ):
        return 1 / x


@case(0, 1, 2, 3, None, "s")
def match_values(x):
    match x:
        case 0:
            r = "zero"
        case 1 | 2:
            r = "few"
        case None:
            r = "none"
        case "s":
            return "string"
        case _:
            r = "other"
    return r


@case(True, False, 1, 0, None)
def match_singletons(x):
    match x:
        case True:
            return "T"
        case False:
            return "F"
        case None | 1:
            return "N1"
    return "end"


@case(1, 5, 50, -3, -1.5)
def match_guards(x):
    match x:
        case -3 | -1.5:
            y = "neg"
        case n if n > 10 and n < 100:
            y = n, "big"
        case 5 if note(x) == 5:
            y = "five"
        case n:
            y = n
    return y, n


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@case(Color.RED, Color.BLUE, 3)
def match_dotted(x):
    match x:
        case Color.RED:
            return "red"
        case Color.BLUE | 3:
            return "blue or 3"


@case([1, 2], (3,), {"k": 1}, "ab", [], 5)
def match_structures(x):
    match x:
        case [a, b] if a and b:
            return a, b
        case [a, *rest]:
            return a, rest
        case {"k": v, **others}:
            return v, others
        case str() as s:
            return s
        case int(n):
            return n
        case []:
            return "empty"


@case(1, 2, 3)
def match_unbound(x):
    match x:
        case 1:
            y = 1
        case 2:
            z = 2
    return y


@case(3)
def match_in_loop(n):
    r = []
    for i in range(n):
        match i:
            case 0:
                continue
            case 1:
                r.append("one")
            case _:
                break
    return r


@case((1, 2), (2, 2))
def match_tuple_subject(a, b):
    match a, b:
        case x:
            return x


@case(Truth(True), Truth(False))
def match_guard_truth(t):
    match 5:
        case 5 if t:
            return "yes"
        case 5 if not t:
            return "no"


class Same:
    def __repr__(self):
        return "Same()"

    def __eq__(self, other):
        note(("eq", other))
        return Truth(other == 2, "eq")


@case()
def match_evaluates_once():
    match note(Same()):
        case 1 | 2:
            return "found"
        case 3:
            return "three"


@case([1, [2, [3, None]]])
def recursive_sum(tree):
    def total(t):
        try:
            value, rest = t
        except TypeError:
            return 0
        return value + total(rest)

    return total(tree)


@case(0, 1)
def try_in_branch(x):
    if x:
        try:
            raise ValueError("v")
        except ValueError as error:
            message = str(error)
        finally:
            done = True
    else:
        message, done = "none", False
    return message, done


@case(4)
def while_try_return(n):
    while True:
        try:
            n -= 1
            if 10 / n == 10:
                return "ten"
        except ZeroDivisionError:
            return "zero"
        finally:
            note(n)


@case(0, 1)
def exception_groups(x):
    try:
        if x:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as g:
        r = g.exceptions
    except* KeyError:
        note("key")
    return repr(r)


@case(2)
def nested_with_exceptions(n):
    @contextlib.contextmanager
    def manager(name):
        note(f"enter {name}")
        try:
            yield name
        finally:
            note(f"exit {name}")

    with manager("a") as a:
        for i in range(n):
            with manager(i) as b:
                if i:
                    raise RuntimeError(f"{a}{b}")


@case(0, 1)
def assert_in_try(x):
    try:
        assert x, "no x"
    except AssertionError as e:
        return str(e)
    return "fine"


@case(3)
def system_exit(x):
    try:
        raise SystemExit(x)
    except Exception:
        return "wrong"
    finally:
        note("cleanup")
