"""Which calls are followed into converted code, and what stands for builtins on tensors."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.hooks import RemovableHandle

from dy2st.calls.absent_arguments import absent_key, with_defaults
from dy2st.calls.asked_again import is_asking, noting, noting_registries
from dy2st.calls.border import checked
from dy2st.calls.builtins.context_stores import bound_context_method
from dy2st.calls.builtins.overloads import elements
from dy2st.calls.builtins.python_builtins import seed
from dy2st.calls.builtins.tensor_methods import bound_stand_in
from dy2st.calls.caches import cached
from dy2st.calls.caller_frames import asking_for_frame
from dy2st.calls.class_calls import constructor, maker
from dy2st.calls.communication import check_communicating
from dy2st.calls.decorated import decorated, looks_at_its_caller
from dy2st.calls.gradients import checkpoints, functional_calls, transforms  # noqa: F401  register stand-ins
from dy2st.calls.gradients.flags import may_want_gradients
from dy2st.calls.held_classes import convert_classes_around, convert_classes_of
from dy2st.calls.library_calls import LOOKING, hashable, marking, method_caller, recording
from dy2st.calls.module_calls import MOVING, converted_module, moved, register_buffer, through_module_call
from dy2st.calls.outside_world import Constants, check_asking, check_place, noting_identity
from dy2st.calls.progress_bars import bar_maker, is_progress_bar
from dy2st.calls.randomness import check_drawing
from dy2st.calls.spoken_calls import spoken
from dy2st.conversion import is_left_alone
from dy2st.errors import ModeSwitchError
from dy2st.operators.export_session import current
from dy2st.source.call_places import is_entered
from dy2st.source.rewriting import is_rewritten
from dy2st.source.torch_made import behind_a_compiler
from dy2st.source.user_frames import location_of, module_of, users_frame
from dy2st.staging.branches.case_distribution import by_presence
from dy2st.staging.cases import all_there, has_maybe_keys
from dy2st.staging.containers.attributes import storing
from dy2st.staging.containers.data_keyed import CALLED, gather_by_data, key_by_data, making
from dy2st.staging.containers.data_lists import DataRow
from dy2st.staging.containers.dicts import bound_method
from dy2st.staging.containers.list_functions import ITERATORS, ON_DATA, ON_LISTS
from dy2st.staging.containers.list_methods import bound_list_method
from dy2st.staging.containers.list_values import has_staged_parts
from dy2st.staging.containers.referred_objects import referring
from dy2st.staging.containers.selection import chosen, entry, is_staged_key
from dy2st.staging.loops.iterables import StagedIterable, as_iterable
from dy2st.staging.loops.staged_iterators import staged_iter
from dy2st.staging.memory.heap import CACHED
from dy2st.staging.session import Session
from dy2st.staging.untracked_mutation import refuse_method, refuse_registering
from dy2st.staging.users_code import of_the_user, python_function, should_follow
from dy2st.tracing.custom_functions import Context, has_own_setup, operator_of
from dy2st.tracing.grad_mode import gradient_mode, inside_function, stopped
from dy2st.values.container_structure import Listed
from dy2st.values.journal import CONTAINERS, Slot
from dy2st.values.number import Number
from dy2st.values.tagged_union import TaggedUnion, any_unions, distributed
from dy2st.values.undefined import Undefined

MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard appendleft popleft "
    "rotate extendleft difference_update intersection_update symmetric_difference_update move_to_end __setitem__ "
    "__delitem__".split()
)


# Methods of dicts and sets whose first argument is a key or a member.
KEYED = frozenset("pop remove setdefault add discard move_to_end __setitem__ __delitem__".split())


# What ``Box[int]`` is, of a class of the user's and of one of Python's.
_GENERIC_ALIASES = (type(typing.List[int]), types.GenericAlias)  # noqa: UP006  the class has no public name


def followed(capture: Session, function: Any) -> Any:
    """What to call in place of ``function`` while ``capture`` runs."""
    found = _followed(capture, function)
    constants = current().part(Constants)
    if constants.everything or isinstance(function, TaggedUnion):
        return found
    if function is isinstance or function is issubclass:
        return noting_registries(found, constants.answers)
    if function is id:
        return noting_identity(capture, found)
    return noting(function, found, constants.answers) if is_asking(function) else found


def _followed(capture: Session, function: Any) -> Any:  # noqa: C901, PLR0912  one case for each kind of callable
    if isinstance(function, Undefined):
        function.refuse()
    if isinstance(function, TaggedUnion):
        return function
    python = behind_a_compiler(function)
    if python is not None:
        return followed(capture, python)
    check_drawing(capture, function)
    says = spoken(capture, function) if hashable(function) else None
    if says is not None:
        return says
    asks = asking_for_frame(function) if hashable(function) else None
    if asks is not None:
        return asks
    check_asking(function)
    check_communicating(function)
    stand_in = capture.overloads.get(function) if hashable(function) else None
    stand_in = stand_in or decorated(capture, function) or storing(capture, function)
    if stand_in is not None:
        return stand_in
    if hashable(function) and function in ON_LISTS:
        return _on_lists(capture, function)
    if getattr(function, "__name__", "") in ("manual_seed", "seed") and "torch" in module_of(function):
        return seed
    switches = capture.depth > 1 and getattr(function, "__name__", "") in GLOBAL_MODES and not of_the_user(function)
    # As a manager it switches back where the statement ends.
    if switches and not (function is torch.set_grad_enabled and is_entered(location_of(users_frame()))):
        raise ModeSwitchError(
            f"{function.__name__}() is called under a tensor condition or in a staged loop",
            hint="it changes all that follows: call it before the model runs",
        )
    if isinstance(function, torch.nn.Module):
        return converted_module(capture, function)
    if isinstance(function, types.MethodType):
        return _bound_method(capture, function)
    if isinstance(function, types.FunctionType):
        if function in MOVING:
            return functools.partial(moved, function)
        rewritten = python_function(function)
        if rewritten is not function or is_rewritten(function):
            convert_classes_around(capture, function)
        return marking(capture, function) if rewritten is function and not is_rewritten(function) else rewritten
    if isinstance(function, functools.partial):
        return functools.partial(followed(capture, function.func), *function.args, **function.keywords)
    if isinstance(function, (types.BuiltinMethodType, types.MethodWrapperType)):
        check_place(capture, function)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, dict) and has_maybe_keys(owner):
            stand_in = bound_method(capture, owner, function.__name__)
            if stand_in is not None:
                return stand_in
        if isinstance(owner, dict) and function.__name__ == "get":
            return _getter(capture, owner, function)
        if isinstance(owner, CONTAINERS) and function.__name__ in MUTATORS:
            if isinstance(owner, (dict, set)) and function.__name__ in KEYED:
                return _of_each_key(capture, function, owner)
            return _touching(capture, owner, _method_of(capture, owner, function))
        return _method_of(capture, owner, function)
    if isinstance(function, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return marking(capture, function)
    if isinstance(function, type):
        return _class(capture, function)
    if isinstance(function, operator.methodcaller):
        return method_caller(capture, function)
    if isinstance(function, _GENERIC_ALIASES) and isinstance(typing.get_origin(function), type):
        return functools.partial(_made_by_alias, capture, function)
    if type(function).__module__ == "numpy":
        return marking(capture, function)
    method = getattr(type(function), "__call__", None)  # noqa: B004  # the method itself is wanted
    if isinstance(method, types.FunctionType) and should_follow(method) and not is_left_alone(function):
        convert_classes_of(capture, function)
        return types.MethodType(python_function(method), function)
    return checked(function)


def _on_lists(capture: Session, function: Any) -> Callable[..., Any]:
    """A function of Python's library, where an argument is of data-dependent length or is compared; else itself."""
    native = _class(capture, function) if isinstance(function, type) else marking(capture, function)

    def call(*args: Any, **kwargs: Any) -> Any:
        if function is collections.deque:  # it takes all elements of a generator at once
            args = tuple(elements(each) if isinstance(each, types.GeneratorType) else each for each in args)
        is_open = any(isinstance(each, Listed) or _is_open(each, function) for each in args)
        if not is_open and not (function in ON_DATA and (kwargs.get("key") or any(map(has_staged_parts, args)))):
            return native(*args, **kwargs)
        made = capture.call(ON_LISTS[function])(*args, **kwargs)
        if function not in ITERATORS:
            return made
        found = staged_iter(made)
        return capture.call(iter)(made) if found is None else found.watching(*args)

    return call


def _is_open(value: Any, function: Any) -> bool:
    """Whether a value that a function iterates is a list, or stands for one, of data-dependent length."""
    kinds = (list, tuple, StagedIterable) if function is copy.copy else (list, tuple, StagedIterable, torch.Tensor)
    return isinstance(value, kinds) and as_iterable(value) is not None


def _method_of(capture: Session, owner: Any, function: Any) -> Callable[..., Any]:
    """What stands for a method that is written in C."""
    if isinstance(owner, (list, collections.deque)):
        stand_in = bound_list_method(capture, owner, function)
        if stand_in is not None:
            return stand_in
    refuse_method(capture, owner, function.__name__)
    if isinstance(owner, type) and function.__name__ == "__call__":
        return maker(capture, owner) or marking(capture, function)
    found = bound_context_method(capture, function) or bound_stand_in(function)
    return found or marking(capture, function)


def _touching(capture: Session, owner: Any, found: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes a container: when it is called, since its arguments may open a path of their own."""

    def call(*args: Any, **kwargs: Any) -> Any:
        gather_by_data(capture, owner, args)
        capture.touch(Slot.of("content", owner))
        return found(*args, **kwargs)

    return call


def _of_each_key(capture: Session, method: Any, owner: Any) -> Callable[..., Any]:
    """A method that takes a key or a member: for each case of one that is one of several."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], TaggedUnion):
            return chosen(capture, args[0], lambda case: followed(capture, method)(case, *args[1:], **kwargs))
        if args:
            key_by_data(capture, owner, args[0])
        capture.touch(Slot.of("content", owner))
        return marking(capture, method)(*args, **kwargs)

    return call


def _getter(capture: Session, owner: dict[Any, Any], native: Callable[..., Any]) -> Callable[..., Any]:
    """``owner.get``, or that of a base class of its."""

    def get(key: Any, default: Any = None) -> Any:
        if isinstance(key, TaggedUnion):
            return chosen(capture, key, lambda case: native(case, default))
        return entry(capture, owner, key, default) if is_staged_key(key) else native(key, default)

    return get


def _made_by_alias(capture: Session, alias: Any, *args: Any, **kwargs: Any) -> Any:
    """``Box[int](...)``: an object of the class, which the alias is told of, if the object takes that."""
    made = capture.call(typing.get_origin(alias))(*args, **kwargs)
    with contextlib.suppress(Exception):
        made.__orig_class__ = alias
    return made


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
    return module_of(function) in ("warnings", "_warnings", "logging") or any(
        function is each for each in looks_at_its_caller()
    )


def with_cases(capture: Session, function: Any, found: Any) -> Any:
    """``found``, called for each case of the values of one of several kinds among its arguments.

    A dict with data-dependent keys is not for code that would look at them.
    """
    if isinstance(function, TaggedUnion) or _names_its_caller(function):
        return found
    gathers = isinstance(getattr(function, "__self__", None), CONTAINERS) and function.__name__ in GATHERERS
    takes = takes_cases(function, found)

    def run(*args: Any, **kwargs: Any) -> Any:
        if capture.handed and module_of(function).startswith("torch"):
            args = tuple(each.listed() if isinstance(each, DataRow) else each for each in args)
        if not any_unions():  # asked when the arguments have been evaluated
            return found(*args, **kwargs)
        unsure = absent_key(capture, kwargs)
        if unsure is not None:
            given = with_defaults(capture, function, found, args, kwargs)
            return by_presence(capture, run, args, kwargs, unsure) if given is None else found(*args, **given)
        if takes and not gathers:
            return found(*args, **kwargs)
        if gathers or not (function in LOOKING if hashable(function) else False):
            for value in args:
                if has_maybe_keys(value):
                    all_there(capture, value)
        if not gathers and any(isinstance(leaf, TaggedUnion) for leaf in pytree.tree_leaves((args, kwargs))):
            return distributed(function, *args, **kwargs)
        return found(*args, **kwargs)

    return run


# What changes torch itself, for every path.
GLOBAL_MODES = frozenset(
    "set_default_dtype set_default_device set_grad_enabled set_num_threads use_deterministic_algorithms "
    "set_printoptions set_flush_denormal".split()
)
HOOKS_AND_PARTS = ("torch.nn.", "torch.utils.hooks")
# Methods of containers that take over the elements of another one.
GATHERERS = frozenset("update extend extendleft union difference intersection".split())


def _bound_method(capture: Session, method: types.MethodType) -> Any:
    function, owner = method.__func__, method.__self__
    if is_left_alone(owner) and not isinstance(owner, type(torch)):
        return checked(method)
    if isinstance(owner, type):
        capture.convert_class(owner)
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
    if isinstance(owner, torch.nn.Module) and hashable(function) and function in MOVING:
        return functools.partial(moved, function, owner)
    if function is torch.nn.Module.register_buffer:
        return functools.partial(register_buffer, capture, method)
    if isinstance(owner, (torch.nn.Module, RemovableHandle)) and module_of(function).startswith(HOOKS_AND_PARTS):
        refuse_registering(capture, owner, function.__name__)
    if isinstance(function, CACHED):
        return functools.partial(cached(capture, function), owner)
    if isinstance(owner, torch.Tensor) or not isinstance(function, types.FunctionType):
        return bound_stand_in(method) or checked(method)
    rewritten = decorated(capture, function) or python_function(function)
    if rewritten is not function:
        return types.MethodType(rewritten, owner)
    return method if of_the_user(function) else recording(capture, method)


def _autograd_function(capture: Session, function: Any, /, *args: Any) -> Any:
    """``function.apply``: one operator in a program that is differentiated, where a gradient may be wanted of it.

    Else its forward, which eager runs without gradients.
    """
    if not gradient_mode().differentiated:
        return run_forward(capture, function, *args)
    if not may_want_gradients(capture, args):
        with stopped():
            return run_forward(capture, function, *args)
    tensors = pytree.tree_map_only(Number, lambda number: number.tensor, args)
    return operator_of(function)(*tensors)


def run_forward(capture: Session, function: Any, /, *args: Any) -> Any:
    """The forward of an ``autograd.Function``, converted, where nobody wants gradients."""
    with inside_function(function.__name__):
        if has_own_setup(function):
            return followed(capture, function.forward)(*args)
        context = capture.new(Context())
        context.needs_input_grad = (False,) * len(args)
        return followed(capture, function.forward)(context, *args)


def _taking_all(make: Callable[..., Any]) -> Callable[..., Any]:
    """What takes all elements of a generator expression at once."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return make(*(elements(each) if isinstance(each, types.GeneratorType) else each for each in args), **kwargs)

    return call


def _class(capture: Session, cls: type[Any]) -> Callable[..., Any]:
    native: Callable[..., Any] = checked(cls) if issubclass(cls, BaseException) else cls
    if issubclass(cls, BaseException):
        return native
    if issubclass(cls, torch.nn.Module):
        return constructor(capture, cls) or native
    if is_progress_bar(cls):
        return bar_maker(cls)
    capture.convert_class(cls)
    if cls in CALLED:
        return _taking_all(making(capture, cls, marking(capture, cls)))
    return referring(capture, cls, constructor(capture, cls) or marking(capture, cls))
