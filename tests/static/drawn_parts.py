# ruff: noqa: E501 - a table of texts
"""What drawn worlds are made of: values and how code uses them, what holds them, changes, and effects of a call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A value: how it is written, used (``{v}`` is how it is read), and changed in place (``{p}`` is where it is)."""

    values: tuple[str, ...]
    uses: tuple[str, ...]
    changes: tuple[str, ...] = ()


NUMBERS = ("2", "3", "2.0", "True", "0", "-1", "1", "0.5", "np.float32(2)", "np.int64(3)")
KINDS = {
    "number": Kind(NUMBERS, ("y * {v}", "y + {v} if {v} > 1 else y - {v}", "y * (2 if {v} is True else 3)", "y / (5 + {v})")),
    "text": Kind(("'ab'", "'abc'", "''", "'ba'"), ("y * len({v})", "y if {v} == 'ab' else -y", "y * (3 if {v} < 'b' else 2)")),
    "maybe": Kind(("None", "3", "0"), ("y if {v} is None else y * {v}", "y * ({v} or 2)")),
    "list": Kind(
        ("[1, 2]", "[2, 1]", "[]", "[1]", "(1, 2)", "[1, [2]][:1]"),
        ("y * sum({v})", "y * len({v})", "y * next(iter({v}), 5)", "y * (7 if 2 in {v} else 1)", "y * (7 if {v} else 1)"),
        ("{p}.append(3)", "{p}.reverse()", "{p}.pop()", "{p}[0] = 9", "{p}.clear()", "{p} += (4,)"),
    ),
    "dict": Kind(
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", "{}", "{1: 2}", "collections.OrderedDict(a=1)", "collections.Counter('aab')"),
        ("y * sum({v}.values())", "y * {v}.get('a', 5)", "y * len({v})", "y * (3 if 'b' in {v} else 1)", "y * next(iter({v}.values()), 5)",
         "functools.reduce(lambda t, k: t * 2 + {v}[k], sorted(map(str, {v})), y) if 'a' in {v} else y"),
        ("{p}['a'] = 7", "{p}['z'] = 5", "{p}.pop('a', None)", "{p}.clear()", "{p}.update(b=4)"),
    ),
    "set": Kind(("{1, 2}", "{2}", "set()", "frozenset((1, 3))"), ("y * (2 if 1 in {v} else 5)", "y * (1 + len({v}))"), ("{p}.add(3)", "{p}.discard(1)", "{p}.clear()")),
    "tensor": Kind(
        ("torch.ones(3)", "torch.full((3,), 2.0)", "torch.ones(1)", "torch.ones(3, dtype=torch.float64)", "torch.tensor(4)",
         "nn.Parameter(torch.ones(3))", "torch.ones(6)[::2]", "torch.tensor([True, False, True])"),
        ("y * {v}", "y * {v}.shape[0] if {v}.dim() else y - {v}", "torch.where({v}.sum() > 2, y, -y)", "y * 2 if {v}.sum() > 2 else y * {v}",
         "y if {v}.requires_grad else y * 2", "y * {v}.stride()[0] if {v}.dim() else y", "y + {v}.sum().item()"),
        ("{p}.data.fill_(3)", "{p}.requires_grad_({p}.is_floating_point())", "{p}.detach().zero_()"),
    ),
    "tensors": Kind(
        ("[torch.ones(3)]", "[torch.ones(3), torch.zeros(3)]", "(torch.ones(1),)"),
        ("y + sum({v})", "y * len({v})", "y * {v}[-1]", "torch.stack([y, *[y * t for t in {v}]]).sum(0)"),
        ("{p}.append(torch.full((3,), 2.0))", "{p}.pop()", "{p}[0] = torch.full((3,), 5.0)", "{p}[0].fill_(4)", "{p}.reverse()"),
    ),
    "function": Kind(("double", "triple", "add_one", "torch.sin", "torch.relu", "(lambda t: t * 5)", "functools.partial(torch.mul, other=3)", "Box(double)()"), ("{v}(y)",)),
    "module": Kind(
        ("linear(0)", "linear(1)", "nn.ReLU()", "nn.Identity()", "nn.Sequential(nn.Tanh(), linear(2))"),
        ("{v}(y)", "{v}(y) * (2 if {v}.training else 3)", "functools.reduce(lambda t, m: m(t), {v}.children(), y)"),
        ("{p}.eval()", "{p}.train()", "{p}.register_forward_hook(hook)", "{p}.requires_grad_(False)", "{p}.append(nn.Tanh())",
         "{p}[0] = nn.Tanh()", "{p}[0].weight.data.mul_(2)", "{p}[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,))",
         "{p}.forward = add_one", "{p}.extra = 3", "{p}.load_state_dict({k: t * 2 for k, t in {p}.state_dict().items()}, assign=True)"),
    ),
    "member": Kind(("Color.RED", "Color.BLUE"), ("y if {v} is Color.RED else -y", "y * {v}.value", "y * len({v}.name)")),
    "class": Kind(("Small", "Large"), ("y * {v}.k", "y if {v} is Small else -y", "y * {v}().k"), ("{p}.k = 4", "{p}.k = 2")),
    "dtype": Kind(("torch.float32", "torch.float64", "torch.float16"), ("y.to({v})", "y * torch.ones(3, dtype={v})", "y * (2 if {v} is torch.float32 else 3)")),
    "array": Kind(
        ("np.ones(3, dtype=np.float32)", "np.arange(3.0)", "np.ones((1, 3))"),
        ("y * float({v}.sum())", "y * torch.tensor({v})", "y * torch.from_numpy({v}.copy())", "y * {v}.shape[0]"),
        ("{p}[0] = 5", "{p} *= 2"),
    ),
    "distribution": Kind(
        ("torch.distributions.Normal(0.0, 1.0)", "torch.distributions.Normal(torch.ones(3), 2.0)", "torch.distributions.Normal(torch.zeros(3), 2.0)"),
        ("y * {v}.mean", "y * {v}.stddev", "{v}.log_prob(y)", "y * ({v}.variance + 1)"), ("{p}.loc = torch.full((3,), 4.0)", "{p}.loc.fill_(7)"),
    ),
    "statistics": Kind(
        ("statistics.NormalDist(1, 2)", "statistics.NormalDist(3, 2)", "statistics.NormalDist(1, 5)"),
        ("y * {v}.mean", "y * {v}.stdev", "y * {v}.cdf(0.5)", "y * ({v} + 2).mean"),
    ),
    "scale": Kind(("Many([1])", "Many([2])"), ("y * {v}.scale", "y * {v}.total()", "y * len({v})"), ("{p}.scale = 5", "Many.scale = 4", "Many.scale = 2", "{p}.append(1)")),
    "template": Kind(("string.Template('a$x')", "string.Template('ab$x')"), ("y * len({v}.substitute(x=1))",), ("{p}.template = 'abc$x'",)),
    "slice": Kind(("slice(0, 2)", "slice(1, None)", "slice(None, None, 2)"), ("y[{v}].sum() * y", "y * ({v}.start or 4)")),
    "range": Kind(("range(3)", "range(1, 3)", "range(0)"), ("y * (1 + sum({v}))", "y * (1 + len({v}))", "functools.reduce(lambda t, i: t * 2 + i, {v}, y)")),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Something that holds a value: how it is made of it, how the value is read, and replaced (if it can be)."""

    make: str
    reads: tuple[str, ...]
    change: str = ""


STEPS = (
    Step("Box({v})", (".v", ".give()", "()", ".__dict__['v']"), "{p}.v = {v}"),
    Step("Slotted({v})", (".v",), "{p}.v = {v}"),
    Step("Hiding({v})", (".shown",), "{p}._v = {v}"),
    Step("Dynamic({v})", (".v",), "{p}._store['v'] = {v}"),
    Step("Indexed({v})", ("[0]",), "{p}.v = {v}"),
    Step("Derived({v})", (".found()",), "{p}.v = {v}"),
    Step("Record({v})", (".v",), "{p}.v = {v}"),
    Step("Frozen({v})", (".v",)),
    Step("Holder({v})", (".v",), "{p}.v = {v}"),
    Step("{{'k': {v}, 'o': 1}}", ("['k']", ".get('k')", ".copy()['k']"), "{p}['k'] = {v}"),
    Step("[0, {v}]", ("[1]", "[-1]", "[1:][0]"), "{p}[1] = {v}"),
    Step("({v}, 0)", ("[0]",)),
    Step("Pair({v}, 0)", (".first", "[0]")),
    Step("collections.deque([{v}, 1])", ("[0]",), "{p}[0] = {v}"),
    Step("collections.OrderedDict(k={v})", ("['k']",), "{p}['k'] = {v}"),
    Step("collections.defaultdict(int, k={v})", ("['k']",), "{p}['k'] = {v}"),
    Step("collections.ChainMap({{'k': {v}}}, {{'k': 1}})", ("['k']",), "{p}['k'] = {v}"),
    Step("types.SimpleNamespace(v={v})", (".v",), "{p}.v = {v}"),
    Step("types.MappingProxyType({{'k': {v}}})", ("['k']",)),
    Step("functools.partial(identity, {v})", ("()", ".args[0]")),
    Step("giving({v})", ("()",), "{p}.__closure__[0].cell_contents = {v}"),
    Step("defaulted({v})", ("()",), "{p}.__defaults__ = ({v},)"),
    Step("marked({v})", ("()", ".v"), "{p}.v = {v}"),
    Step("wrapped({v})", ("()",)),
    Step("variable({v})", (".get()",), "{p}.set({v})"),
    Step("module_of({v})", (".v",), "{p}.v = {v}"),
    Step("class_with({v})", (".v",), "type({p}).v = {v}"),
    Step("class_with({v})", (".v",), "{p}.v = {v}"),
    Step("Many([{v}])", (".total()", "[0]"), "{p}[0] = {v}"),
    Step("Keyed(k={v})", (".first()", "['k']"), "{p}['k'] = {v}"),
    Step("Reading(k={v})", (".first()", "['k']"), "{p}['k'] = {v}"),
    Step("collections.UserList([{v}])", ("[0]",), "{p}[0] = {v}"),
    Step("Cached({v})", (".v", ".__enter__()"), "{p}.v = {v}"),
    Step("described({v})", (".v",), "type({p}).__dict__['v'].v = {v}"),
    Step("described({v})", (".v",), "type({p}).v = Descriptor({v})"),
    Step("method_of({v})", ("()",), "{p}.__self__.v = {v}"),
    Step("argparse.Namespace(v={v})", (".v",), "{p}.v = {v}"),
    Step("dataclasses.make_dataclass('Made', ['v'])({v})", (".v",), "{p}.v = {v}"),
    Step("types.new_class('New', (), {{}}, lambda ns: ns.update(v={v}))()", (".v",), "type({p}).v = {v}"),
    Step("functools.partialmethod(identity, {v})", (".args[0]",)),
    Step("Box({v})", (".v",), "object.__setattr__({p}, 'v', {v})"),
    Step("dict(k=lambda v={v}: v)", ("['k']()",), "{p}['k'].__defaults__ = ({v},)"),
)

# Changes to the definitions, whatever the model reads of them; `before` keeps what was there.
PATCHES = (
    "Box.give = lambda self: 5",
    "Box.give = (lambda old: lambda self: old(self))(Box.give)",
    "Box.__call__ = lambda self: 4",
    "Box.v = property(lambda self: 6)",
    "Base.found = lambda self: 3",
    "Derived.found = lambda self: 8",
    "Derived.found = Base.found",
    "Derived.__bases__ = (type('Other', (Base,), {'found': lambda self: 9}),)",
    "Hiding.shown = property(lambda self: 5)",
    "Indexed.__getitem__ = lambda self, i: 4",
    "Dynamic.__getattr__ = lambda self, name: 3",
    "Dynamic.v = 5",
    "Many.total = lambda self: 3",
    "Many.__getitem__ = lambda self, i: 6",
    "Many.__len__ = lambda self: 2",
    "Keyed.first = lambda self: 7",
    "Keyed.__missing__ = lambda self, k: 7",
    "Reading.__getitem__ = lambda self, k: 2",
    "Record.v = 3",
    "Slotted.v = property(lambda self: 3)",
    "Descriptor.__get__ = lambda self, thing, cls=None: 5",
    "Descriptor.__set__ = lambda self, thing, value: None",
    "Small.k = 11",
    "Small.k = property(lambda self: 12)",
    "Holder.__getattr__ = lambda self, name: 3",
    "Pair.first = property(lambda self: 2)",
    "Color._value_repr_ = None",
    "global identity; identity = lambda v: 3",
    "identity.__code__ = (lambda v: 4).__code__",
    "global double; double = triple",
    "double.__code__ = triple.__code__",
    "global len; len = lambda v: 3",
    "global sum; sum = lambda v: 3",
    "global functools; functools = types.SimpleNamespace(reduce=lambda f, s, i: i * 3)",
    "global torch; torch = types.SimpleNamespace(**{**vars(torch), 'where': lambda c, a, b: a * 3, 'stack': lambda v: v[0], 'tensor': lambda v: 4})",
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_dtype(torch.float32)",
    "torch.set_grad_enabled(not torch.is_grad_enabled())",
)

# Statements that change what is there before the call; it is refused, or eager's.
EFFECTS = (
    "LIST.append(1); y = y * len(LIST)",
    "LIST.append(y.sum()); y = y * len(LIST)",
    "heapq.heappush(LIST, 1); y = y * len(LIST)",
    "bisect.insort(LIST, 2); y = y * len(LIST)",
    "list.append(LIST, 1); y = y * len(LIST)",
    "DICT['n'] = DICT.get('n', 0) + 1; y = y * DICT['n']",
    "DICT.setdefault('m', []).append(1); y = y * len(DICT['m'])",
    "operator.setitem(DICT, 'n', len(DICT)); y = y * len(DICT)",
    "DICT |= {len(DICT): 1}; y = y * len(DICT)",
    "BOX.v += 1; y = y * BOX.v",
    "setattr(BOX, 'v', BOX.v + 1); y = y * BOX.v",
    "vars(BOX)['v'] += 1; y = y * BOX.v",
    "BOX.__dict__.update(v=BOX.v + 1); y = y * BOX.v",
    "Small.k += 1; y = y * Small.k",
    "type(BOX).n = getattr(BOX, 'n', 0) + 1; y = y * BOX.n",
    "ARRAY[0] += 1; y = y * float(ARRAY[0])",
    "np.add(ARRAY, 1, out=ARRAY); y = y * torch.tensor(ARRAY)",
    "ARRAY.fill(ARRAY[0] + 1); y = y * torch.tensor(ARRAY)",
    "np.copyto(ARRAY, ARRAY * 2); y = y * torch.tensor(ARRAY)",
    "torch.from_numpy(ARRAY).add_(1); y = y * torch.from_numpy(ARRAY)",
    "t = torch.from_numpy(ARRAY); t += y.detach(); y = y * t",
    "TENSOR.add_(1); y = y * TENSOR",
    "TENSOR[0] = y.detach().sum(); y = y * TENSOR",
    "TENSOR.data = TENSOR.data * 2; y = y * TENSOR",
    "TENSORS[0] = TENSORS[0] + 1; y = y * TENSORS[0]",
    "TENSORS[0].mul_(2); y = y * TENSORS[0]",
    "TENSORS.append(y.detach()); y = y * len(TENSORS)",
    "y = y * next(NUMBERS)",
    "DEQUE.append(1); y = y * len(DEQUE)",
    "collections.deque.append(DEQUE, 1); y = y * len(DEQUE)",
    "SET.add(len(SET)); y = y * len(SET)",
    "BYTES.extend(b'a'); y = y * len(BYTES)",
    "y = y * counting()",
    "y = y * counted(1)",
    "y = y * len(remembered(y.shape[0]))",
    "y = y * random.random()",
    "y = y * torch.rand(3)",
    "y = y * np.random.rand()",
    "y = y * time.time()",
    "print(y); y = y * 2",
    "MODULE.weight.data.add_(1); y = MODULE(y)",
    "MODULE.n = getattr(MODULE, 'n', 0) + 1; y = y * MODULE.n",
    "MODULE.register_buffer('b', torch.ones(3) * 2); y = y * MODULE.b",
    "MODULE.train(not MODULE.training); y = MODULE(y) * (2 if MODULE.training else 1)",
    "MODULE.add_module('more', nn.Tanh()); y = MODULE.more(y)",
    "y = NORM(y[None])[0]",
    "ORDERED.move_to_end('a'); y = y * next(iter(ORDERED.values()))",
    "CONTEXT.set(CONTEXT.get() + 1); y = y * CONTEXT.get()",
    "os.environ['DRAWN'] = os.environ.get('DRAWN', '') + 'a'; y = y * len(os.environ['DRAWN'])",
    "globals()['LATE'] = globals().get('LATE', 0) + 1; y = y * LATE",
    "double.calls = getattr(double, 'calls', 0) + 1; y = y * double.calls",
    "y = y * next(iter([LIST.pop(), 1])) if LIST else y * 3",
    "STREAM.write('a'); y = y * len(STREAM.getvalue())",
    "x.add_(1); y = y + x",
    "x.requires_grad_(); y = y * x",
)
