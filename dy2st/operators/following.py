"""Which calls are followed into converted code, and what stands for builtins on tensors."""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.conversion import is_left_alone
from dy2st.errors import ModeSwitchError
from dy2st.graph.journal import CONTAINERS, Slot
from dy2st.graph.numbers import Number
from dy2st.graph.one_of import MADE, OneOf, distributed
from dy2st.graph.poison import Poison
from dy2st.operators.builtins_on_tensors import bound_stand_in, seed
from dy2st.operators.caches import cached
from dy2st.operators.class_calls import constructor
from dy2st.operators.decorated import decorated, looks_at_its_caller
from dy2st.operators.dicts import all_there, bound_method, has_maybe_keys
from dy2st.operators.held_classes import convert_classes_around, convert_classes_of
from dy2st.operators.list_methods import bound_list_method
from dy2st.operators.lists import counts_elements, refuse_rows
from dy2st.operators.module_calls import converted_module, through_module_call
from dy2st.operators.observed import CACHED, is_buffer
from dy2st.operators.python_functions import OWN_PACKAGES, of_the_user, python_function, should_follow
from dy2st.operators.randomness import check_drawing, is_source
from dy2st.operators.selection import chosen, entry, is_staged_key
from dy2st.operators.special_methods import storing
from dy2st.operators.unseen import refuse_method, refuse_registering, watched
from dy2st.source import is_rewritten

if TYPE_CHECKING:
    from dy2st.operators.capture import Capture

MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard appendleft popleft "
    "rotate extendleft difference_update intersection_update symmetric_difference_update move_to_end __setitem__ "
    "__delitem__".split()
)


# Methods of dicts and sets whose first argument is a key or a member.
KEYED = frozenset("pop remove setdefault add discard move_to_end __setitem__ __delitem__".split())


def followed(capture: Capture, function: Any) -> Any:  # noqa: C901, PLR0912  one case for each kind of callable
    """What to call in place of ``function`` while ``capture`` runs."""
    if isinstance(function, Poison):
        function.refuse()
    if isinstance(function, OneOf):
        return function
    python = behind_a_compiler(function)
    if python is not None:
        return followed(capture, python)
    check_drawing(capture, function)
    stand_in = capture.stand_ins.get(function) if _hashable(function) else None
    stand_in = stand_in or decorated(capture, function) or storing(capture, function)
    if stand_in is not None:
        return stand_in
    if getattr(function, "__name__", "") in ("manual_seed", "seed") and "torch" in (
        getattr(function, "__module__", "") or ""
    ):
        return seed
    if capture.depth > 1 and getattr(function, "__name__", "") in GLOBAL_MODES:
        raise ModeSwitchError(
            f"{function.__name__}() is called under a tensor condition or in a staged loop",
            hint="it changes all that follows: call it before the model runs",
        )
    if isinstance(function, torch.nn.Module):
        return converted_module(capture, function)
    if isinstance(function, types.MethodType):
        return _bound_method(capture, function)
    if isinstance(function, types.FunctionType):
        rewritten = python_function(function)
        if rewritten is not function or is_rewritten(function):
            convert_classes_around(capture, function)
        return _marking(capture, function) if rewritten is function and not is_rewritten(function) else rewritten
    if isinstance(function, functools.partial):
        return functools.partial(followed(capture, function.func), *function.args, **function.keywords)
    if isinstance(function, (types.BuiltinMethodType, types.MethodWrapperType)):
        owner = getattr(function, "__self__", None)
        if isinstance(owner, dict) and has_maybe_keys(owner):
            stand_in = bound_method(capture, owner, function.__name__)
            if stand_in is not None:
                return stand_in
        if isinstance(owner, dict) and function.__name__ == "get":
            return _getter(capture, owner)
        if isinstance(owner, CONTAINERS) and function.__name__ in MUTATORS:
            if isinstance(owner, (dict, set)) and function.__name__ in KEYED:
                return _of_each_key(capture, function, owner)
            capture.touch(Slot.of("content", owner))
        if isinstance(owner, (list, collections.deque)):
            stand_in = bound_list_method(capture, owner, function.__name__)
            if stand_in is not None:
                return stand_in
        refuse_method(capture, owner, function.__name__)
        return bound_stand_in(function) or _marking(capture, function)
    if isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _marking(capture, function)
    if isinstance(function, type):
        return _class(capture, function)
    if isinstance(function, operator.methodcaller):
        return _method_caller(capture, function)
    if type(function).__module__ == "numpy":
        return _marking(capture, function)
    method = getattr(type(function), "__call__", None)  # noqa: B004  # the method itself is wanted
    if isinstance(method, types.FunctionType) and should_follow(method) and not is_left_alone(function):
        convert_classes_of(capture, function)
        return types.MethodType(python_function(method), function)
    return function


def _of_each_key(capture: Capture, method: Any, owner: Any) -> Callable[..., Any]:
    """A method that takes a key or a member: for each case of one that is one of several."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], OneOf):
            return chosen(capture, args[0], lambda case: followed(capture, method)(case, *args[1:], **kwargs))
        capture.touch(Slot.of("content", owner))
        return _marking(capture, method)(*args, **kwargs)

    return call


def _getter(capture: Capture, owner: dict[Any, Any]) -> Callable[..., Any]:
    """``owner.get``."""

    def get(key: Any, default: Any = None) -> Any:
        if isinstance(key, OneOf):
            return chosen(capture, key, lambda case: owner.get(case, default))
        return entry(capture, owner, key, default) if is_staged_key(key) else owner.get(key, default)

    return get


def behind_a_compiler(function: Any) -> Any:
    """The Python function behind one that ``torch.jit.script`` or ``torch.compile`` has made, or None.

    The attributes are torch's own (2.13), private to its compilers.
    """
    if isinstance(function, torch.jit.ScriptFunction):
        return getattr(function, "_torchdynamo_inline", None)
    if isinstance(function, types.FunctionType):
        return function.__dict__.get("_torchdynamo_orig_callable")
    return None


def takes_cases(function: Any, found: Any) -> bool:
    """Whether ``found``, called in place of ``function``, knows what to do with a value of one of several kinds."""
    if isinstance(function, functools.partial) or getattr(found, "takes_cases", False):
        return True
    if isinstance(function, torch.nn.Module):
        forward = getattr(function.forward, "__func__", None)
        return isinstance(forward, types.FunctionType) and python_function(forward) is not forward
    if isinstance(function, type):
        return function.__module__ != "builtins"
    if isinstance(getattr(function, "__self__", None), (*CONTAINERS, str)):
        return True
    plain = getattr(found, "__func__", found)
    return isinstance(plain, types.FunctionType) and is_rewritten(plain)


def _names_its_caller(function: Any) -> bool:
    """Whether a function looks for its caller, so that no frame may come between."""
    module = getattr(function, "__module__", None)
    return module in ("warnings", "_warnings", "logging") or any(function is each for each in looks_at_its_caller())


def with_cases(capture: Capture, function: Any, found: Any) -> Any:
    """``found``, called for each case of the values of one of several kinds among its arguments.

    A dict of which only the graph knows the keys is not for code that would look at them.
    """
    if isinstance(function, OneOf) or _names_its_caller(function):
        return found
    gathers = isinstance(getattr(function, "__self__", None), CONTAINERS) and function.__name__ in GATHERERS
    takes = takes_cases(function, found)

    def run(*args: Any, **kwargs: Any) -> Any:
        if not MADE.any:  # asked when the arguments have been evaluated
            return found(*args, **kwargs)
        all_there(capture, kwargs)
        if takes and not gathers:
            return found(*args, **kwargs)
        if gathers or not (function in LOOKING if _hashable(function) else False):
            for value in args:
                if has_maybe_keys(value):
                    all_there(capture, value)
        if not gathers and any(isinstance(leaf, OneOf) for leaf in pytree.tree_leaves((args, kwargs))):
            return distributed(function, *args, **kwargs)
        return found(*args, **kwargs)

    return run


def _marking(capture: Capture, function: Callable[..., Any]) -> Callable[..., Any]:
    """Call code that isn't followed; a container or object that nobody else refers to was made by it."""
    takes_functions = _hashable(function) and function in HIGHER_ORDER
    counts = counts_elements(function)

    def run(*args: Any, **kwargs: Any) -> Any:
        if counts:
            refuse_rows(function, (*args, *kwargs.values()))
        if takes_functions:
            place = HIGHER_ORDER[function]
            args = tuple(_given(capture, each) if i == place else each for i, each in enumerate(args))
            kwargs = {name: _given(capture, each) if name in CALLBACKS else each for name, each in kwargs.items()}
        if (capture.depth > 1 or capture.aliases.objects) and not (
            isinstance(getattr(function, "__self__", None), torch.Tensor)
            or (getattr(function, "__module__", None) or "").startswith("torch")
        ):
            # Code that isn't converted may change a container that it is given (heapq, list.append(rows, x)).
            for value in (*args, *kwargs.values()):
                if isinstance(value, CONTAINERS) and function not in PURE:
                    capture.touch(Slot.of("content", value))
        if function not in LOOKING:
            args = tuple(map(capture.advances.watched, args))
        if len(args) > 1 and isinstance(args[0], Number) and function.__name__ in FACTORIES:
            # torch looks at the first of several sizes to know that they are sizes.
            args = tuple(_size(a) if isinstance(a, Number) else a for a in args)
        with watched(capture, function, args, kwargs):
            made = capture.advances.noted(function(*args, **kwargs))
        holds = isinstance(made, CONTAINERS) or (hasattr(made, "__dict__") and not isinstance(made, torch.Tensor))
        if (holds or is_source(made) or is_buffer(made)) and sys.getrefcount(made) <= ONLY_OURS:
            capture.new(made)
        return made

    return run


def _given(capture: Capture, value: Any) -> Any:
    """What to hand to a function that calls its argument; of a container's own method each call is followed."""
    method = getattr(type(value), "__call__", None)  # noqa: B004  # the method itself is wanted
    calls = isinstance(method, types.FunctionType)
    if calls or isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return followed(capture, value)

    def call(*args: Any, **kwargs: Any) -> Any:
        return followed(capture, value)(*args, **kwargs)

    late = isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, CONTAINERS)
    return call if late or isinstance(value, operator.methodcaller) else value


def _method_caller(capture: Capture, function: Any) -> Callable[..., Any]:
    """``operator.methodcaller(name, ...)``."""
    made, args = function.__reduce__()
    kwargs: dict[str, Any] = {}
    if isinstance(made, functools.partial):
        args, kwargs = (*made.args, *args), made.keywords
    name, *given = args
    return lambda owner: capture.call(getattr(owner, name))(*given, **kwargs)


def _size(number: Number) -> Any:
    size = number.symbolic()
    torch._check(size >= 0)
    return size


# Torch functions that take sizes one by one.
FACTORIES = frozenset("zeros ones empty rand randn new_zeros new_ones new_empty expand".split())
# What changes torch itself, for every path.
GLOBAL_MODES = frozenset(
    "set_default_dtype set_default_device set_grad_enabled set_num_threads use_deterministic_algorithms "
    "set_printoptions set_flush_denormal".split()
)
# Builtins that leave containers as they are.
PURE = (
    map,
    filter,
    functools.reduce,
    tuple,
    set,
    frozenset,
    dict,
    id,
    type,
    hash,
    callable,
    repr,
    str,
    getattr,
    hasattr,
)
# Builtins that only look at an object.
LOOKING = (id, type, hash, callable, repr, str, getattr, hasattr, setattr, delattr, isinstance)
# Methods of containers that take over the elements of another one.
GATHERERS = frozenset("update extend extendleft union difference intersection".split())
# What calls a function that it is given: the place of that function; None if it has a name only.
HIGHER_ORDER: dict[Any, int | None] = {
    map: 0,
    filter: 0,
    functools.reduce: 0,
    functools.cmp_to_key: 0,
    itertools.accumulate: 1,
    itertools.dropwhile: 0,
    itertools.filterfalse: 0,
    itertools.groupby: 1,
    itertools.starmap: 0,
    itertools.takewhile: 0,
    heapq.merge: None,
    heapq.nlargest: 2,
    heapq.nsmallest: 2,
    bisect.bisect_left: None,
    bisect.bisect_right: None,
    bisect.insort_left: None,
    bisect.insort_right: None,
}
CALLBACKS = ("func", "key")
# The local variable, and the argument of getrefcount itself.
ONLY_OURS = 2


def _hashable(value: Any) -> bool:
    return type(value).__hash__ is not None


def _bound_method(capture: Capture, method: types.MethodType) -> Any:
    function, owner = method.__func__, method.__self__
    if is_left_alone(owner) and not isinstance(owner, type(torch)):
        return method
    if isinstance(owner, type):
        capture.classes.convert(owner)
    convert_classes_of(capture, owner)
    if isinstance(function, types.FunctionType):
        convert_classes_around(capture, function)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) and function.__name__ == "apply":
        return functools.partial(_autograd_function, capture, owner)
    if isinstance(owner, torch.nn.Module) and function is torch.nn.Module.__call__:
        return through_module_call(owner)
    if isinstance(owner, torch.nn.Module) and capture.depth > 1 and function.__name__ in ("train", "eval"):
        raise ModeSwitchError(
            f"{function.__name__}() is called on a module under a tensor condition or in a staged loop",
            hint="switch the module's mode before it is exported",
        )
    if isinstance(owner, torch.nn.Module) and (function.__module__ or "").startswith("torch.nn."):
        refuse_registering(capture, owner, function.__name__)
    if isinstance(function, CACHED):
        return functools.partial(cached(capture, function), owner)
    if isinstance(owner, torch.Tensor) or not isinstance(function, types.FunctionType):
        return bound_stand_in(method) or method
    rewritten = decorated(capture, function) or python_function(function)
    if rewritten is not function:
        return types.MethodType(rewritten, owner)
    return method if of_the_user(function) else _changing(capture, method)


def _changing(capture: Capture, method: types.MethodType) -> Callable[..., Any]:
    """A method that isn't converted: what it may store in its object or arguments is recorded (``Counter.update``)."""
    owner = method.__self__
    package = (method.__func__.__module__ or "").split(".")[0]
    if isinstance(owner, (type, torch.nn.Module)) or package in (*OWN_PACKAGES, "logging", "warnings"):
        return method

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        held = dict(getattr(owner, "__dict__", {}))
        refuse_rows(method, tuple(held.values()))
        for value in held.values():
            if has_maybe_keys(value):
                all_there(capture, value)
        if capture.depth > 1:
            for name, value in held.items():
                capture.touch(Slot.of("attribute", owner, name))
                capture.touch_content(value)
            for value in (owner, *args, *kwargs.values()):
                capture.touch_content(value)
        with watched(capture, method, args, kwargs):
            return method(*args, **kwargs)

    return run


class _Context:
    """What ``autograd.Function.forward`` gets as ``ctx`` when only its forward is traced."""

    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Nothing is differentiated through a captured forward."""

    save_for_forward = mark_non_differentiable = mark_dirty = save_for_backward

    def set_materialize_grads(self, value: bool) -> None:
        """See ``save_for_backward``."""


def _autograd_function(capture: Capture, function: type, *args: Any, **kwargs: Any) -> Any:
    context = capture.new(_Context())
    context.needs_input_grad = (False,) * len(args)
    forward = function.forward  # type: ignore[attr-defined]
    return followed(capture, forward)(context, *args, **kwargs)


def _class(capture: Capture, cls: type[Any]) -> Callable[..., Any]:
    if issubclass(cls, (BaseException, torch.nn.Module)):
        return cls
    capture.classes.convert(cls)
    return constructor(capture, cls) or _marking(capture, cls)
