"""Loops and jumps."""

from differential import Truth, case, note


@case(0, 1, 5)
def while_simple(n):
    s = 0
    while n > 0:
        s += n
        n -= 1
    return s, n


@case(0, 3, 7)
def while_else(n):
    while n > 0:
        n -= 1
        if n == 5:
            break
    else:
        return "else", n
    return "break", n


@case(0, 3, 12)
def while_true(n):
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if i > 10:
            return "many"
    return i


@case(0, 5, 9)
def while_continue(n):
    r = []
    while n:
        n -= 1
        if n % 2:
            continue
        r.append(n)
    return r


@case([], [1], [1, 2, 3])
def for_simple(xs):
    s = 0
    for x in xs:
        s += x
    return s


@case([], [1], [1, 2])
def for_variable_after(xs):
    for x in xs:
        pass
    return x


@case([], [1], [1, 2])
def body_variable_after(xs):
    for x in xs:
        y = x * 2
    return y


@case([], [1], [3, 1], [1, 2, 3])
def for_else(xs):
    for x in xs:
        if x == 3:
            break
    else:
        x = "else"
    return x


@case([], [1, 2], [5, 1])
def for_else_return(xs):
    for x in xs:
        if x > 4:
            return "big"
    else:
        return "none big"


@case(0, 1, 4)
def nested_loops(n):
    r = []
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            if (i + j) % 2:
                continue
            r.append((i, j))
        else:
            r.append(i)
            continue
        r.append("broke")
    return r


@case(0, 1, 4)
def nested_while(n):
    r = []
    i = 0
    while i < n:
        j = 0
        while True:
            if j >= i:
                break
            r.append((i, j))
            j += 1
        else:
            r.append("never")
        i += 1
    else:
        r.append("end")
    return r, i


@case(0, 3, 5)
def return_from_nested(n):
    for i in range(n):
        for j in range(n):
            if i * j == 6:
                return i, j
    return None


@case([(1, 2), (3, 4)], [], [(1,)], [(1, 2, 3)])
def for_unpack(pairs):
    r = 0
    for a, b in pairs:
        r += a * b
    return r, a, b


@case([[1, 2, 3], [4]], [])
def for_star(rows):
    for first, *rest in rows:
        note((first, rest))
    return first, rest


@case([(1, (2, 3))])
def for_nested_target(rows):
    for a, (b, [c]) in [(1, (2, [3])), *[]]:
        pass
    for a, (b, c) in rows:
        pass
    return a, b, c


class Box:
    def __repr__(self):
        return f"Box({vars(self)})"


@case([1, 2, 3], [])
def for_attribute_target(xs):
    box = Box()
    for box.x in xs:
        note(box.x)
        if box.x == 2:
            continue
    return box


@case([1, 2, 3], [])
def for_item_target(xs):
    d = {}
    i = 0
    for d[i] in xs:
        i += 1
    return d, i


@case([(1, 2), (3, 4)], [(1,)], [])
def for_mixed_target(xs):
    box, d = Box(), [0, 0]
    for a, box.b in xs:
        d[0] += a
    for box.c, (d[1]) in xs:
        if box.c > 2:
            break
    else:
        d.append("else")
    return box, d, a


@case(3)
def mutate_while_iterating(n):
    xs = [1]
    for x in xs:
        if x < n:
            xs.append(x + 1)
    return xs


@case(4)
def rebinding_iterable(n):
    xs = range(n)
    for x in xs:
        xs = note(x)
        x = "changed"
    return xs, x


@case({"a": 1, "b": 2})
def dict_loops(d):
    r = []
    for k in d:
        r.append(k)
    for k, v in d.items():
        r.append((k, v))
    for i, (k, v) in enumerate(d.items()):
        r.append((i, k, v))
    return r, i, k, v


@case({"a": 1})
def dict_changed_during_loop(d):
    for k in d:
        d[k + "x"] = 1
    return d


@case(5, None, [0])
def not_iterable(x):
    for y in x:
        return y
    return "empty"


@case([1, 0, 2])
def error_in_body(xs):
    done = []
    for x in xs:
        done.append(1 / x)
    return done


@case([1, 0, 2])
def error_in_test(xs):
    i = 0
    while 1 / xs[i]:
        i += 1
    return i


@case(3)
def generator_iterated(n):
    def gen():
        for i in range(n):
            note(f"before {i}")
            yield i
            note(f"after {i}")

    for x in gen():
        if x == 1:
            break
        note(x)
    return list(gen())


@case(3)
def own_iterator(n):
    class It:
        def __init__(self):
            self.i = 0

        def __iter__(self):
            note("iter")
            return self

        def __next__(self):
            note("next")
            self.i += 1
            if self.i > n:
                raise StopIteration
            return self.i

    s = 0
    for x in It():
        s += x
    return s


@case(0, 3)
def loop_in_branch(n):
    if n:
        for i in range(n):
            s = i
    else:
        s = "none"
    return s


@case(0, 6)
def branch_in_loop(n):
    even, odd = [], []
    for i in range(n):
        if i % 2 == 0:
            even.append(i)
            last = "even"
        elif i == 5:
            break
        else:
            odd.append(i)
            last = "odd"
    return even, odd, last


@case(Truth(False))
def while_truth_counts(t):
    while t:
        pass
    while not t:
        break
    while t or note(0):
        pass
    return "done"


@case(0, 2)
def while_walrus(n):
    it = iter(range(n))
    r = []
    while (x := next(it, None)) is not None:
        r.append(x)
    return r, x


@case(10)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@case((48, 18), (7, 0))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@case(30)
def sieve(n):
    flags = [True] * n
    flags[0] = flags[1] = False
    for i in range(2, n):
        if not flags[i]:
            continue
        for j in range(i * i, n, i):
            flags[j] = False
    return [i for i, f in enumerate(flags) if f]


@case([5, 2, 9, 1])
def insertion_sort(xs):
    for i in range(1, len(xs)):
        x = xs[i]
        j = i - 1
        while j >= 0 and xs[j] > x:
            xs[j + 1] = xs[j]
            j -= 1
        xs[j + 1] = x
    return xs


@case([1, 3, 5, 7], 5)
def jump_in_else_of_inner(xs, *rest):
    for x in xs:
        for y in xs:
            if y > x:
                break
        else:
            break
    else:
        return "outer else"
    return x, y


@case(3)
def del_in_loop(n):
    for i in range(n):
        x = i
        if i == 1:
            del x
            break
    return x


@case(2)
def loop_variable_is_global_too(n):
    r = []
    for note_ in range(n):
        r.append(note_)
    return r, note_


@case(3)
def closures_in_loop(n):
    fs = []
    for i in range(n):
        fs.append(lambda: i)
        fs.append(lambda i=i: i)
    return [f() for f in fs]


@case(3)
def while_with_closure_counter(n):
    count = 0

    def bump():
        nonlocal count
        count += 1
        return count < n

    while bump():
        pass
    return count


@case(4)
def continue_in_try(n):
    r = []
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            r.append(i)
        finally:
            r.append(f"finally {i}")
    else:
        r.append("else")
    return r


@case(4)
def return_in_while_else(n):
    while n > 2:
        n -= 1
    else:
        return n
    return "unreachable"


@case("abc")
def for_over_string(s):
    for i, c in enumerate(s): print(i, c) if not s else None
    for c in s: pass
    return i, c


@case(3)
def one_line_loops(n):
    while n: n -= 1
    for i in range(4): n += i; n += 1
    return n


@case([[1, 2], [3, 4]])
def in_place_items(m):
    for row in m:
        for i in range(len(row)):
            row[i] *= 2
            m[0][0] += 1
    return m


@case([3, 1, 2])
def pop_until_empty(xs):
    r = []
    while xs:
        r.append(xs.pop())
        if len(r) > 5:
            raise AssertionError
    return r


@case(3)
def break_out_of_with(n):
    class C:
        def __enter__(self):
            note("enter")
            return self

        def __exit__(self, *exc):
            note("exit")

    for i in range(n):
        with C() as c:
            if i == 1:
                break
            with C(), C():
                continue
    return i


@case(0, 1, 2, 3)
def deep(n):
    for a in range(n):
        while True:
            for b in range(n):
                if b == 1:
                    if a == 2:
                        return "deep", a, b
                    break
            else:
                break
            break
    else:
        return "else"
