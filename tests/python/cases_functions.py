"""Functions, closures, classes, scopes."""

import functools

from differential import case, note

STATE_COUNT = 0
STATE_LIST = []


@case(1)
def early_return(x):
    """Documented."""
    if x:
        return note("early")
    note("late")


@case(1, 0)
def return_none(x):
    if x:
        return
    note(1)
    return None


@case(1, 0)
def no_return_at_end(x):
    if x:
        return 1


@case((1, 2), (0, 0))
def return_tuple(a, b):
    if a:
        return a, b
    return *[a, b], 3


@case(5)
def recursion(n):
    if n <= 1:
        return 1
    return n * recursion(n - 1)


@case(6)
def local_recursion(n):
    def fib(k):
        if k < 2:
            return k
        return fib(k - 1) + fib(k - 2)

    return [fib(i) for i in range(n)]


@case(1, 0)
def global_store(x):
    global STATE_COUNT
    if x:
        STATE_COUNT = STATE_COUNT + 5
    else:
        STATE_COUNT += 1
    return STATE_COUNT


@case(2)
def global_del(x):
    global STATE_TEMP
    STATE_TEMP = x
    for STATE_TEMP in range(3):
        note(STATE_TEMP)
    y = STATE_TEMP
    del STATE_TEMP
    try:
        STATE_TEMP
    except NameError as e:
        return y, str(e)


@case(3)
def nonlocal_store(n):
    total = 0

    def add(k):
        nonlocal total
        if k % 2:
            total += k
        else:
            total = total - 1
        return total

    return [add(i) for i in range(n)], total


@case(3)
def nonlocal_deep(n):
    x = 0

    def outer():
        def inner():
            nonlocal x
            for x in range(n):
                pass
            if (y := x) > 1:
                x = y * 10
            with open("/dev/null") as fh:
                x += 1

        inner()
        return x

    return outer(), x


@case(1)
def unbound_free_variable(x):
    def f():
        return y

    if not x:
        y = 1
    return f()


@case((1, 2), (3, 4))
def defaults(a, b=note("default"), *args, c=3, **kw):
    if a > b:
        return a
    return b, args, c, kw


@case(2)
def default_values_in_order(n):
    def f(a=note(1), b=note(2) if n else note(3), *, c=note(4) or note(5)):
        return a, b, c

    return f(), f(7, c=9)


@case()
def star_calls():
    def f(*args, **kwargs):
        return args, sorted(kwargs.items())

    xs, d = [1, 2], {"k": 3}
    return f(*xs), f(0, *xs, 3, **d), f(**d, z=1), f(*xs, *xs), f(*xs, a=1, **d)


@case(5, "x")
def star_errors(x):
    def f(*args):
        return args

    return f(*x)


@case({"a": 1}, {1: 2}, 5)
def double_star_errors(x):
    return dict(**x)


@case()
def wrong_arguments():
    def f(a, b):
        return a

    return f(1)


@case()
def call_order():
    return note(print)(note(""), *note([]), end=note(""), **note({}))


def twice(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        if args:
            note("wrapped")
        return function(*args, **kwargs), function(*args, **kwargs)

    return wrapped


@case(2)
def decorated_nested(n):
    @twice
    def f(a):
        """doc of f"""
        if a > 1:
            return "big"
        return "small"

    return f(n), f(0), f.__name__, f.__doc__, f.__qualname__


@case(2)
def decorator_with_arguments(n):
    def repeat(k):
        def decorate(g):
            def call(*a):
                r = None
                for _ in range(k):
                    r = g(*a)
                return r

            return call

        return decorate

    @repeat(3)
    @repeat(k=2)
    def f():
        note("run")
        return n

    return f()


@case(3)
def classes(n):
    class Base:
        kind = "base"

        def __init__(self, x):
            self.x = x
            if x > 2:
                self.big = True

        def double(self):
            return self.x * 2

    class Derived(Base):
        def double(self):
            if self.x > 2:
                return super().double() + 1
            return super(Derived, self).double()

        @property
        def p(self):
            return self.x if self.x else None

        @p.setter
        def p(self, v):
            if v < 0:
                raise ValueError("negative")
            self.x = v

        @staticmethod
        def s(a):
            return a or "none"

        @classmethod
        def c(cls):
            return cls.__name__ if cls.kind else ""

        def who(self):
            return __class__.__name__

    d = Derived(n)
    r = [d.double(), d.p, Derived.s(0), d.c(), d.who(), Derived.__qualname__, d.double.__qualname__]
    d.p = 1
    r.append(d.double())
    try:
        d.p = -1
    except ValueError as e:
        r.append(str(e))
    return r, hasattr(d, "big")


@case(2)
def private_names(n):
    class A:
        __hidden = 5

        def __init__(self):
            self.__x = n

        def get(self):
            if self.__x > 1:
                self.__x += self.__hidden
            return self.__x, [self.__x for _ in range(2)], (lambda: self.__x)()

        def __private(self, __arg=1):
            return __arg or 2

        def call(self):
            return self.__private(), self.__private(0), self._A__private()

    a = A()
    return a.get(), vars(a), a.call()


@case(1, 0)
def visible_locals(x):
    y = 2
    if x:
        z = 3
    return sorted(locals().items())


@case(1)
def visible_dir(x):
    for i in range(2):
        if i and x:
            pass
    return dir(), sorted(vars())


@case(1)
def locals_in_comprehension(x):
    return [sorted(k for k in locals() if k != ".0" and k not in ("x", "i")) for i in range(2) if i or x]


@case("1 + 1")
def evaluating(text):
    y = 3
    if text:
        return eval(text), eval("y")
    return None


@case("z = y")
def executing(text):
    y = 3
    if y > 2:
        exec(text, globals(), d := {"y": y})
    return d["z"]


@case(4)
def generators(n):
    def gen(k):
        for i in range(k):
            if i == 2:
                continue
            got = yield i
            if got:
                return "stopped"
        else:
            yield "else"

    g = gen(n)
    r = [next(g), g.send(None)]
    try:
        g.send(1)
    except StopIteration as e:
        r.append(e.value)

    def delegating():
        v = yield from gen(1)
        return v

    return r, list(gen(n)), list(delegating()), list(x if x else -x for x in gen(2))


@case(4)
def generator_protocol(n):
    log = []

    def gen(k):
        log.append("start")
        try:
            for i in range(k):
                try:
                    got = yield i
                except ValueError as error:
                    log.append(str(error))
                    if i > 2:
                        return "left"
                    got = yield -1
                while got:
                    got = yield got - 1
                if i == 1 and k > 3:
                    return i
        finally:
            log.append("end")

    g = gen(n)
    r = [next(g, None), g.throw(ValueError, ValueError("thrown")) if n else None]
    for sent in (2, None, 0):
        try:
            r.append(g.send(sent))
        except StopIteration as stop:
            r.append(("stop", stop.value))
    g.close()
    h = gen(n)
    if n:
        next(h)
        try:
            h.throw(KeyError("out"))
        except KeyError as error:
            r.append(error.args)
    return r, log, [*gen(n)]


@case(3)
def generator_managers(n):
    import contextlib

    log = []

    @contextlib.contextmanager
    def entered(k):
        log.append(("in", k))
        try:
            yield k * 2
        except ValueError:
            log.append("swallowed")
        finally:
            log.append(("out", k))

    class Manager:
        def __enter__(self):
            log.append("enter")
            return self

        def __exit__(self, kind, error, trace):
            log.append((kind, str(error), trace is None))
            return kind is KeyError

    for i in range(3):
        with entered(i) as doubled, Manager() as m:
            if doubled > 2:
                break
            if i == n:
                continue
            if n > 1:
                raise ValueError(doubled) if i else KeyError(i)
        with contextlib.suppress(ZeroDivisionError), contextlib.ExitStack() as stack:
            stack.callback(log.append, "callback")
            log.append(stack.enter_context(entered(1 / (i - n))))
    return log


@case(3)
def generator_method(n):
    class A:
        def __iter__(self):
            i = 0
            while i < n:
                yield i
                i += 1

    return list(A()), sum(A()), [x for x in A() if x]


@case(3)
def comprehensions(n):
    a = [i * j for i in range(n) for j in range(i) if i and j]
    b = {i: i or "zero" for i in range(n)}
    c = {i % 2 if i else None for i in range(n)}
    d = list(i for i in range(n) if 0 < i < 5)
    e = [[j for j in range(i)] for i in range(n)]
    f = [x for x in ([1, 2] if n else [3]) if not x == 2]
    g = [x for x in (lambda: [n and 1])()]
    return a, b, c, d, e, f, g


@case([1, 2, 3])
def comprehension_scope(xs):
    x = "outer"
    ys = [x for x in xs]
    zs = [last := v for v in xs]
    return x, ys, zs, last


@case([3, 0, 1], [])
def comprehension_errors(xs):
    return [1 / x for x in xs]


@case([1, "a"], 5)
def comprehension_errors_in_condition(xs):
    return {x for x in xs if x > 0}


@case(3)
def genexp_late_binding(n):
    g = (i + k for i in range(n))
    k = 10
    return list(g)


@case(4)
def genexp_any_all(n):
    return any(i > 2 for i in range(n)), all(note(i) < 2 for i in range(n)), next((i for i in range(n) if i > 1), None)


@case(3)
def nested_lambdas(n):
    add = lambda a: lambda b: a + b if a else b
    fs = [lambda x, k=k: x and k for k in range(n)]
    return add(1)(2), add(0)(5), [f(1) for f in fs], (lambda *a, **k: (a, k))(1, x=2)


@case(2)
def mutable_default(n):
    def f(x, acc=[]):
        acc.append(x)
        if len(acc) > n:
            return "full"
        return list(acc)

    return f(1), f(2), f(3)


@case(3)
def closure_cells(n):
    x = 1
    get = lambda: x
    a = get()
    if n > 2:
        x = 2
    b = get()
    for x in range(n):
        pass
    return a, b, get(), get.__closure__[-1].cell_contents is not None


@case("v")
def fstrings(x):
    w = 10
    d = {"k": 1}
    return (
        f"{x}{x!r:>{w}}|{d['k']}|{x if x else 'none'}|{w=}|{x and w:>5}"
        f"{'a' if w > 5 else 'b'}" "plain" f'{x or "?"}' f"""{d["k"] or 'z'}"""
    )


@case(1, 0)
def fstring_unbound(x):
    if x:
        y = 1
    return f"{y}" + f'{y!r}' + f"""{y}"""


@case(3)
def star_assignments(n):
    a, *b = range(n)
    *c, d = b or [0]
    (e, f), g = (1, 2), [a, b][0]
    h = i = [n]
    h[0] += 1
    x: int = 5
    y: "nonsense"
    return a, b, c, d, e, f, g, h, i, x


class Thing:
    def __init__(self):
        self.d = {}
        self.child = None

    def __setattr__(self, k, v):
        note(("set", k))
        object.__setattr__(self, k, v)

    def __delattr__(self, k):
        note(("del", k))
        object.__delattr__(self, k)

    def __setitem__(self, k, v):
        note(("setitem", k, v))

    def __delitem__(self, k):
        note(("delitem", k))

    def __getitem__(self, k):
        note(("getitem", k))
        return k

    def __contains__(self, k):
        note(("contains", k))
        return k

    def __repr__(self):
        return "Thing"


@case()
def object_stores():
    t = Thing()
    t.a = 1
    t.a += note(1)
    t.b, t.c = t.a, 3
    t[note(0)] = note("v")
    t[1], (t[2:3], *t.rest) = 5, [6, 7, 8]
    t[0] += 1
    del t.a, t[1:2]
    del (t.b)
    t.x: int = 3
    t.child = Thing()
    t.child.child = t
    t.child.child[9] = 1
    return vars(t).keys(), 5 in t, 0 in t, 0 not in t, t[1, 2], t[::2]


@case(None, 1)
def store_errors(x):
    if not x:
        x.attr = 1
    x[0] = 2


@case(None, {})
def del_errors(x):
    if x is None:
        del x.attr
    del x["missing"]


@case([1, 2], (1, 2), None, {})
def load_errors(x):
    return x[5]


@case()
def multi_line_method_chain():
    return (
        "a b c"
        .split()
        .copy()
        .missing()
    )


@case()
def multi_line_call():
    def f(*a):
        raise RuntimeError("in f")

    return f(
        1,
        2 if True
        else 3,
    )


@case("x", None)
def multi_line_chain_in_arguments(x):
    return max(
        [1, 2],
        key=lambda v:
            x.upper()
             .lower()
             .index(v),
    )


@case(3)
def kwonly_and_posonly(n):
    def f(a, /, b, *, c=1):
        return a, b, c if c else None

    return f(1, 2), f(1, b=2, c=0)


@case(1)
def annotations(x):
    def f(a: "A" = 1, *b: int, c: "x if x else y" = 2, **d: 1) -> "r":
        v: list[int] = [a]
        return v if a else c

    return f(), sorted(f.__annotations__.items(), key=str), f.__defaults__, f.__kwdefaults__


@case(1)
def type_hints_evaluated(x):
    def f(a: note("annotation") = note("value")) -> note("return"):
        return a

    return f()


@case(3)
def user_names_like_generated(n):
    if_1 = loop_1 = fn_1 = d2s = and_1 = n
    if d2s > 2 and if_1:
        for loop_2 in range(d2s):
            if loop_2 == 1:
                return loop_2, fn_1, and_1
    return None


@case(2)
def import_inside(n):
    if n > 1:
        import os.path as p
        from math import (floor,
                          ceil as up)
    return p.basename("a/b"), floor(1.5), up(1.5)


@case(2)
def class_body_with_loop(n):
    class A:
        xs = []
        for i in range(n):
            if i:
                xs.append(i)
        ys = [j for j in range(n) if j]
        f = lambda self, a=n: a if a else None

    return A.xs, A.i, A.ys, A().f()


@case(2)
def metaclass_and_keywords(n):
    class Meta(type):
        def __new__(m, name, bases, ns, flag=False):
            if flag:
                ns["flag"] = True
            return super().__new__(m, name, bases, ns)

    class A(metaclass=Meta, flag=n > 1):
        pass

    return A.flag, type(A).__name__


@case()
def returns_function():
    def make(k):
        def inner():
            return k if k else "none"

        return inner

    return make(0)(), make(1)(), make(1).__qualname__, make.__code__.co_firstlineno


@case(10)
def deep_recursion(n):
    def down(k):
        if k == 0:
            raise LookupError("bottom")
        return down(k - 1)

    return down(n)


@case(5)
def lambda_errors(n):
    f = lambda x: x / 0 if x else 1
    return f(0), f(n)


@case([1])
def method_errors(xs):
    return xs.nope(1)


@case()
def name_errors():
    return undefined_name + 1


@case()
def unbound_local():
    note(1)
    return later
    later = 1


@case()
def builtin_calls():
    return len([1]), abs(-1), sorted([2, 1], key=lambda v: -v), list(map(str, [1])), isinstance(1, int), type(1)


@case(1)
def conditional_def(x):
    if x:
        def f():
            return "first"
    else:
        def f():
            return "second"
    return f()


@case()
def ellipsis_and_slices():
    class S:
        def __getitem__(self, k):
            return k

    s = S()
    return s[...], s[1:2, ::3], s[None], s["key"], s[()], s[1,], s[-1:], s[s[0] : s[1]]
