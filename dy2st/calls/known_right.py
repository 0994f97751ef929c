"""What is known to be right for data-dependent values, of the code that dy2st does not convert.

Each of these hands such values on as they are, or does with them what Python's operators do, which answer for them or
refuse. Whether something is here is a fact about it: it asks for no type, no bits and no text of a value.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions and classes, by the module that they say they are of, without a leading underscore.
FUNCTIONS: dict[str, frozenset[str]] = {
    "builtins": _names(
        "abs aiter anext bool bytearray bytes callable classmethod complex delattr dict dir divmod enumerate filter "
        "float format frozenset getattr hasattr int isinstance issubclass iter len list map max memoryview min "
        "next object pow print property range repr reversed round set setattr slice sorted staticmethod str sum super "
        "tuple type vars zip"
    ),
    "collections": _names("ChainMap Counter OrderedDict UserDict UserList defaultdict deque namedtuple"),
    "contextlib": _names("AsyncExitStack ExitStack closing contextmanager nullcontext redirect_stdout suppress"),
    "contextvars": _names("Context ContextVar copy_context"),
    "copy": _names("copy deepcopy replace"),
    "dataclasses": _names("asdict astuple dataclass field fields is_dataclass make_dataclass replace"),
    "enum": _names("auto unique"),
    "functools": _names(
        "cache cached_property cmp_to_key lru_cache partial partialmethod reduce singledispatch singledispatchmethod "
        "total_ordering update_wrapper wraps"
    ),
    "heapq": _names("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "bisect": _names("bisect bisect_left bisect_right insort insort_left insort_right"),
    "inspect": _names("signature unwrap isfunction ismethod isclass ismodule isbuiltin"),
    "itertools": _names(
        "accumulate chain combinations combinations_with_replacement compress cycle dropwhile filterfalse "
        "groupby pairwise permutations product repeat starmap takewhile tee zip_longest"
    ),
    "operator": _names(
        "abs add and_ attrgetter concat delitem eq floordiv ge getitem gt iadd iand iconcat ifloordiv ilshift imatmul "
        "imod imul index inv invert ior ipow irshift isub itemgetter itruediv ixor le lshift lt matmul methodcaller "
        "mod mul ne neg or_ pos pow rshift setitem sub truediv xor"
    ),
    "optree._C": _names("flatten flatten_with_path is_leaf all_leaves make_from_collection"),
    "types": _names("MappingProxyType MethodType SimpleNamespace new_class prepare_class resolve_bases"),
    "typing": _names("assert_type cast reveal_type"),
    "warnings": _names("warn warn_explicit catch_warnings simplefilter filterwarnings"),
    "weakref": _names("ref proxy WeakKeyDictionary WeakValueDictionary WeakSet finalize"),
}
# Of these, the functions that change a container that they are given.
CHANGING: dict[str, frozenset[str]] = {
    "builtins": _names("delattr next setattr"),
    "bisect": _names("insort insort_left insort_right"),
    "heapq": _names("heapify heappop heappush heappushpop heapreplace"),
    "functools": _names("update_wrapper wraps"),
    "operator": _names(
        "delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor "
        "methodcaller setitem"
    ),
}
# Of these, the functions that take a list as a whole, however many elements one of its parts stands for.
WHOLE: dict[str, frozenset[str]] = {
    "builtins": _names(
        "callable delattr getattr hasattr isinstance issubclass list object print property repr setattr slice str "
        "super tuple type"
    ),
    "collections": _names("defaultdict deque"),
    "contextvars": _names("ContextVar"),
    "copy": _names("copy deepcopy replace"),
    "dataclasses": _names("asdict astuple dataclass field fields is_dataclass make_dataclass replace"),
    "functools": _names("partial partialmethod update_wrapper wraps"),
    "types": _names("MethodType SimpleNamespace"),
    "typing": _names("assert_type cast reveal_type"),
    "warnings": _names("warn warn_explicit"),
}
# Functions that know a tensor as an object, whatever its values are.
FOR_TENSORS: dict[str, frozenset[str]] = {"builtins": _names("hash id"), "numpy": _names("isscalar ndim shape")}
# Modules whose functions and methods make texts for people, in which such a value may stand.
TELLING = _names("logging warnings pdb traceback")

# Methods of types that are not converted, by the type.
METHODS: dict[str, frozenset[str]] = {
    "builtins.object": _names("__init__ __new__ __setattr__ __delattr__ __getattribute__ __init_subclass__"),
    "builtins.list": _names(
        "append clear copy count extend index insert pop remove reverse sort __add__ __contains__ __delitem__ __eq__ "
        "__getitem__ __iadd__ __iter__ __init__ __len__ __ne__ __new__ __reversed__ __setitem__"
    ),
    "builtins.tuple": _names("count index __add__ __contains__ __eq__ __getitem__ __iter__ __len__ __ne__ __new__"),
    "builtins.dict": _names(
        "clear copy fromkeys get items keys pop popitem setdefault update values __contains__ __delitem__ __eq__ "
        "__getitem__ __init__ __ior__ __iter__ __len__ __ne__ __new__ __or__ __setitem__"
    ),
    "builtins.set": _names(
        "add clear copy difference difference_update discard intersection intersection_update isdisjoint issubset "
        "issuperset pop remove symmetric_difference symmetric_difference_update union update __init__ __new__"
    ),
    "builtins.frozenset": _names(
        "copy difference intersection isdisjoint issubset issuperset symmetric_difference union __new__"
    ),
    "builtins.str": _names("format format_map join"),
    "builtins.slice": _names("indices"),
    "inspect.BoundArguments": _names("apply_defaults"),
    "inspect.Signature": _names("bind bind_partial"),
    "builtins.mappingproxy": _names("copy get items keys values"),
    "builtins.BaseException": _names("add_note with_traceback __init__"),
    "builtins.generator": _names("close send throw __next__"),
    "collections.deque": _names(
        "append appendleft clear copy count extend extendleft index insert pop popleft remove reverse rotate "
        "__getitem__ __setitem__ __delitem__ __iadd__ __init__ __iter__ __len__ __new__ __reversed__"
    ),
    "collections.OrderedDict": _names(
        "__init__ __new__ clear copy fromkeys items keys move_to_end pop popitem setdefault update values __delitem__ "
        "__eq__ __ior__ __iter__ __ne__ __or__ __reversed__ __setitem__"
    ),
    "collections.defaultdict": _names("copy __init__ __new__"),
    "collections.Counter": _names("__init__ update subtract total copy"),
    "contextlib.ExitStack": _names("callback close enter_context pop_all push"),
    "contextvars.ContextVar": _names("get reset set"),
    "functools.KeyWrapper": _names("__call__"),
    "functools.partial": _names("__call__"),
    "itertools.chain": _names("from_iterable"),
    "operator.attrgetter": _names("__call__"),
    "operator.itemgetter": _names("__call__"),
    "operator.methodcaller": _names("__call__"),
    "optree.PyTreeSpec": _names("broadcast_to_common_suffix flatten_up_to unflatten"),
    "queue.Queue": _names("empty full get get_nowait put put_nowait qsize"),
    "queue.SimpleQueue": _names("empty get get_nowait put put_nowait"),
    "threading.Event": _names("clear is_set set"),
    "threading.local": _names("__init__"),
}
