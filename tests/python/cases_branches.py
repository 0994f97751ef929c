"""Branches, ternaries, logic and comparisons."""

from differential import Truth, Unsure, case, note

T, F = Truth(True, "t"), Truth(False, "f")


@case(1, 0, -1)
def if_only(x):
    y = 0
    if x > 0:
        y = 1
    return y


@case(1, 0, -1)
def if_else(x):
    if x > 0:
        y = 1
    else:
        y = 2
    return y


@case(1, 2, 3, 4)
def elif_chain(x):
    if x == 1:
        y = "one"
    elif x == 2:
        y = "two"
    elif x == 3:
        y = "three"
    else:
        y = "many"
    return y


@case(1, 2, 3, 4)
def elif_no_else(x):
    y = None
    if x == 1:
        y = "one"
    elif x == 2:
        y = "two"
    return y


@case(1, 0)
def unbound_after_if(x):
    if x:
        y = 1
    return y


@case(1, 0)
def unbound_in_else(x):
    if x:
        y = 1
    else:
        return y
    return y


@case((1, 2), (0, 2), (1, 0), (0, 0))
def nested_if(a, b):
    r = []
    if a:
        if b:
            r.append("ab")
        else:
            r.append("a")
    else:
        if b:
            r.append("b")
        else:
            r.append("none")
    return r


@case(T, F, Unsure(), None, [], [0], "", "x", 0.0)
def if_truth(x):
    if x:
        return "yes"
    return "no"


@case((T, T), (T, F), (F, T), (F, F), (Unsure(), T), (T, Unsure()), (F, Unsure()))
def if_and(a, b):
    if a and b:
        return "yes"
    return "no"


@case((T, T), (T, F), (F, T), (F, F), (Unsure(), T), (F, Unsure()))
def if_or(a, b):
    if a or b:
        return "yes"
    return "no"


@case((T, T, F), (T, F, T), (F, T, T), (F, F, F), (F, F, T), (T, T, T))
def if_mixed(a, b, c):
    if a and b or c:
        x = 1
    else:
        x = 2
    if a and (b or c):
        x += 10
    if not (a or b) and c:
        x += 100
    if not a and not b and not c:
        x += 1000
    return x


@case((T, T, F), (T, F, T), (F, T, T), (F, F, F), (0, "", []), (1, 2, 3), (1, 0, 3))
def value_logic(a, b, c):
    return [a and b, a or b, a and b and c, a or b or c, note("lazy") and a]


@case((1, 0, 2), (0, 0, 2), (0, 3, 2), (0, 0, 0))
def value_of_nested_logic(a, b, c):
    return (a or b) or c, (a and b) or c, (a or b) and c, not (a or b), (a or b) + 1, [a or b] and [(a and b) or 5]


@case((T, T), (T, F), (F, T), (F, F))
def value_and_counts(a, b):
    x = a and b
    return x is a


@case((1, 5), (5, 1), (3, 3))
def lazy_operands(a, b):
    return note(a) > 2 and note(b) > 2, note(a) > 2 or note(b) > 2


@case((1, 2, 3), (3, 2, 1), (2, 2, 2), (1, 3, 2))
def chain(a, b, c):
    return note(a) < note(b) < note(c), a <= b <= c, a < b > c, a == b != c


@case((1, 2, 3, 4), (1, 2, 2, 4), (4, 3, 2, 1))
def long_chain(a, b, c, d):
    if note(a) < note(b) < note(c) < note(d):
        return "rising"
    return "not"


@case((1, [1, 2], 0), (3, [1], 0), (1, [1], [1]))
def chain_in(a, b, c):
    return a in b, a not in b, a in b != c, None is a, a is not None


@case((1, [1, 2]), (1, 5), ("a", "abc"), (2, {1: 2}))
def membership(a, b):
    if a in b:
        return "in"
    if a not in b:
        return "out"


@case(None, 0, 1)
def is_none(x):
    if x is None:
        return "none"
    if None is not x:
        y = x
    if x is not None and x > 0:
        y = -x
    return y


@case(1, 0, -1)
def ternary(x):
    return "pos" if x > 0 else "neg" if x < 0 else "zero"


@case(1, 0)
def ternary_order(x):
    return note("a") if note(x) else note("b")


@case((T, F), (F, T), (F, F))
def ternary_conditions(a, b):
    y = 1 if a and b else 2 if a or b else 3
    return y, (a if b else not a), not (a if b else b)


@case(1, 0, 5)
def ternary_in_call(x):
    return max(x if x > 2 else -x, 0 if not x else 1, *([x] if x else [7, 8]))


@case(3, "a", None, 2.5)
def python_tests(x):
    if isinstance(x, int) and not hasattr(x, "nope"):
        return "int"
    elif isinstance(x, str) or callable(x):
        return "str"
    else:
        y = x if isinstance(x, float) else "?"
    return y


@case(3, "a", None)
def python_test_then_value(x):
    if isinstance(x, int) and x > 2:
        return "big"
    if not isinstance(x, str):
        return "other"
    return x


@case(True, False, None, 1)
def identity_with_constants(x):
    if x is True:
        return 1
    if x is not False and x is not ...:
        return 2
    return 3


@case([], [1], [1, 2])
def walrus_in_test(xs):
    if (n := len(xs)) > 1:
        return n
    elif m := n:
        return m, n
    return n


@case((1, 2), (0, 2), (0, 0))
def walrus_in_logic(a, b):
    if (x := a) and (y := b):
        return x, y
    if (y := b) or (x := 5):
        return x, y
    return "none"


@case(1, 0)
def walrus_unbound(a):
    a and (x := 1)
    return x


@case(0, 1, 2)
def if_with_pass(x):
    if x == 1:
        pass
    elif x == 2:
        ...
    else:
        pass


@case(0, 1)
def one_line_if(x):
    if x: y = 1; z = 2
    else: y = 3; z = 4
    return y, z


@case(0, 1)
def partial_update(x):
    d = {"a": 1}
    if x:
        d["b"] = 2
        d["c"] = 1 / 0
    return d


@case([1], [])
def update_before_error(xs):
    if not xs:
        xs.append(1)
        xs.append(note(2))
        raise KeyError("after")
    return xs


@case(1, 2)
def multiline_test(x):
    if (
        x  # first
        > 1  # second
        and x < 10
    ):
        return "yes"
    return "no"


@case(1, 2)
def backslash_test(x):
    if x > 1 \
            and x < 5:
        return "yes"
    return "no"


@case(0, 1, 2, 3)
def assert_simple(x):
    assert x
    assert x > 1, "small"
    assert x != 2 and x, f"two: {note(x)}"
    return x


@case(T, F, Unsure())
def assert_truth(x):
    assert x, note("message")


@case((T, F), (F, T), (T, T), (Unsure(), T))
def assert_logic(a, b):
    assert a and not b, "no"
    return "fine"


@case(5, -5, 0)
def not_values(x):
    return not x, not not x, not (x > 0), [not x for _ in range(2)]


@case((1, 2), (2, 1))
def del_in_branch(a, b):
    x = 1
    if a > b:
        del x
    return x


@case(0, 1)
def nested_ternary_lambda(x):
    f = lambda a: a if a else -1
    g = lambda a, b=x or 3: (a and b) or (not a)
    return f(x), g(x), g(2), (lambda: x if x else "none")()


@case(3, 12)
def if_in_if_with_returns(x):
    if x > 10:
        if x > 11:
            return "very"
        y = "ten"
    else:
        if x < 0:
            return "neg"
        y = "small"
    return y


@case("a", "b", "c")
def string_compare(mode):
    if mode == "a":
        return 1
    elif mode in ("b", "d"):
        return 2
    raise ValueError(f"unknown mode {mode!r}")


@case((1, 0), (0, 1))
def error_in_test(a, b):
    if a / b > 1:
        return 1
    return 2


@case((1, 0), (0, 1))
def error_in_elif(a, b):
    if a > 5:
        return 1
    elif a / b > 1:
        return 2
    return 3


@case(1, 0)
def error_in_ternary(a):
    return 1 / a if a else [][a]


@case((None, 1), (1, None), (1, 2))
def error_in_chain(a, b):
    return 0 < a < b


@case(0, 1)
def if_in_suite_of_class(x):
    class A:
        if x:
            y = 1
        else:
            y = 2
        z = y if x else -y
        w = x and y or z

        def m(self):
            if self.y > 1:
                return "big"
            return "small"

    return A.y, A.z, A.w, A().m()


@case(0, 1, 2)
def constant_tests(x):
    if 1:
        y = 1
    if 0:
        y = 2
    if True and x:
        y = 3
    if __debug__:
        y += 10
    return y


@case((1, 2), (0, 3))
def tuple_swaps(a, b):
    if a:
        a, b = b, a
    else:
        a, *b = [b, 1, 2]
    return a, b


@case(0, 1)
def augmented(x):
    n = 1
    s = [1]
    if x:
        n += 2
        s += [n]
    else:
        n **= 3
        s *= 2
    return n, s


@case(0, 1)
def shadowed_builtin(x):
    isinstance = lambda a, b: note("mine") and a
    if isinstance(x, int):
        return "yes"
    return "no"


@case((0, [1]), (1, [1]))
def augmented_unbound(x, xs):
    if x:
        y = [0]
    y += xs
    return y
