"""From an eager model to a ``torch.export.ExportedProgram`` in which tensor control flow is part of the graph."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import torch
from torch.utils import _pytree as pytree

from dy2st.calls.call_conversion import followed
from dy2st.calls.caller_frames import users_code_begins
from dy2st.calls.communication import without_communication
from dy2st.calls.gradients.leaves import answering
from dy2st.calls.held_classes import convert_classes_of
from dy2st.calls.module_calls import ModelModules, called_as_a_whole
from dy2st.calls.outside_world import Constants
from dy2st.calls.spoken_calls import Messages
from dy2st.calls.torch_functions.dispatch import NumbersMode
from dy2st.capture.assigned_buffers import ASSIGNED, assigned_buffers
from dy2st.capture.carried_inputs import apart, with_inputs, with_named_keywords, with_shapes
from dy2st.capture.carried_state import CarriedState
from dy2st.capture.diagnosis import at_the_users_line, diagnosing, refuse_other_types, warn_of_results
from dy2st.capture.export_sizes import ExportedSizes
from dy2st.capture.given_tensors import note_given
from dy2st.capture.global_hooks import hooks_for_models
from dy2st.capture.lost_state import all_lost, returned
from dy2st.capture.number_inputs import InputsAs, as_numbers, as_tensors
from dy2st.capture.record_inputs import know_records
from dy2st.capture.recovering import capturing
from dy2st.capture.result_parts import fields_as_dicts, is_plain, taken_apart
from dy2st.capture.results import checked_output, drop_grad_mode, tie_guards, write_buffers
from dy2st.capture.returned_names import RETURNED, returned_names
from dy2st.capture.root_module import FunctionModule, Shell, attributes_put_back, state_of, viewed
from dy2st.capture.sizes_apart import take_excluded_sizes_apart, with_sizes_apart
from dy2st.capture.unexportable import require_call, require_capturable
from dy2st.capture.varying_results import with_forms
from dy2st.operators.export_session import begun, current
from dy2st.plan import Plan, plan
from dy2st.sizes.allowed_lines import AllowedLines
from dy2st.sizes.call_shapes import leaves_by_name, shapes_of_call
from dy2st.sizes.shape_formulas import closed_forms
from dy2st.sizes.symbolic_operators import as_python_numbers
from dy2st.source.muting import Muting
from dy2st.source.torch_made import in_python
from dy2st.staging.branches.paths import consumed_elsewhere
from dy2st.staging.memory.shared_inputs import own_tensors
from dy2st.tracing.custom_functions import without_foreign_functions
from dy2st.tracing.generated_code import generated_on_demand
from dy2st.tracing.grad_mode import GradientMode, mode_left, watching_gradients
from dy2st.tracing.gradients import detached_results
from dy2st.tracing.input_names import inputs_apart, parameters_apart, state_apart
from dy2st.tracing.layouts import Layouts
from dy2st.tracing.named_tuples import constructors_unasked
from dy2st.tracing.other_threads import left_alone
from dy2st.tracing.outside_tensors import outside_tensors
from dy2st.tracing.size_facts import LOCAL_FACTS
from dy2st.tracing.torch_control_flow import to_standard
from dy2st.tracing.tracer import zero_is_a_size
from dy2st.tracing.unchanged_process import unchanged_process
from dy2st.tracing.wanted_gradients import Carried
from dy2st.values.dtype_provenance import LowerKinds
from dy2st.values.staged_text import TextParts

# Where it keeps what the model stores that a program doesn't: pairs of a description and a place.
LOST = "dy2st.lost"
# What it prints and logs, which it keeps.
MESSAGES = "dy2st.messages"
# Where it keeps the branches and loops that are staged: see ``dy2st.staging.sites``.
SITES = "dy2st.sites"

P = ParamSpec("P")
T = TypeVar("T")

# Where a program's graph module keeps what the user has allowed to be fixed: a list of dicts of line and fixed.
SPECIALIZED = "dy2st.specialized"
# Of the leaves of its result, which are numbers in eager: bool, int, float, or None for what is none.
NUMBERS = "dy2st.numbers"
# A function that makes the result of what the program gives, where torch.export can't; or None.
BUILD = "dy2st.build"
# Whether it runs with gradients on, since its code switches them on and off in a call that begins without; and the mode
# that its code leaves, or None if that is the caller's.
SWITCHED = "dy2st.switches_gradients_on"
# The places at which eager may raise and the program does not, as the user has allowed.
DROPPED = "dy2st.dropped_guards"


def _captured(
    model: Any,
    call: Callable[..., Any],
    sizes: ExportedSizes,
    *,
    drop_guards: bool,
    given: dict[str, Any],
    held: dict[str, Any],
    module: torch.nn.Module,
    whole: bool,
    rebuilt: bool,
    carried: CarriedState | None,
    inputs_as: InputsAs,
) -> Callable[..., Any]:
    """A forward that runs ``call`` under a capture, with the signature of the model's own.

    ``given`` are the arguments of the call by their paths, ``held`` the parameters and buffers of ``module`` by name.
    With ``carried`` it takes the state as well, and gives pairs of the result and the new state.
    """
    callee = model if whole else call
    ambient = torch.is_grad_enabled()

    def forward(*args: Any, **kwargs: Any) -> Any:
        if not current().is_here():  # another thread runs the model meanwhile
            return call(*args, **kwargs)
        with (
            carried.capturing(model, module) if carried is not None else contextlib.nullcontext(),
            capturing() as capture,
            outside_tensors(capture.tracing),
            watching_gradients(ambient),
            answering(),
            NumbersMode(),
            without_communication(),
            without_foreign_functions(),
            at_the_users_line(capture, call),
        ):
            users_code_begins()
            capture.guards.drop = drop_guards
            current().part(TextParts).wanted = current().part(Constants).speaks
            current().part(ModelModules).known = frozenset(map(id, module.modules()))
            current().part(LowerKinds).exact = current().part(Layouts).by_path = rebuilt
            inputs_of_all = [(tensor, found.proxy.node) for tensor, found in capture.tracing.root.tensors.items()]
            current().part(Carried).note_inputs(inputs_of_all)
            convert_classes_of(capture, (model, args, kwargs))
            pairs = [(leaf, given.get(path)) for path, leaf in leaves_by_path((args, kwargs)).items()]
            state = [(tensor, held.get(name)) for name, tensor in state_of(module).items()]
            note_given(capture, (args, kwargs), pairs, state)
            with sizes.watching(capture, args, kwargs, tests=not rebuilt):
                kinds: list[type | None] = []
                checked = functools.partial(checked_output, kinds)
                if carried is not None:
                    carried.declared = sizes.by_expression(args, kwargs)
                    kwargs, inputs = apart(kwargs)
                    carried.put(inputs)
                    capture.shared_inputs.held |= carried.storages()
                args, kwargs = as_numbers(call, *sizes.as_given(args, kwargs), inputs_as)
                found = returned(with_sizes_apart(followed(capture, callee))(*args, **kwargs))
                noted.build = None
                found = with_forms(capture, found if rebuilt else fields_as_dicts(found), exact=rebuilt)
                if rebuilt and not is_plain(found):
                    found, noted.build = taken_apart(found)
                result = pytree.tree_map(checked, found)
                if rebuilt and capture.cautions:
                    refuse_other_types(next(iter(capture.cautions)), call)
                capture.compare_sizes()
                capture.shared_inputs.check_constants(vars(capture.tracing.tracer.root).values())
                noted.assigned = assigned_buffers(capture)
                result = tie_guards(capture, result)
                following = None if carried is None else carried.taken(capture)
                result = write_buffers(capture, result, *([] if carried is None else [carried.carries]))
                noted.numbers, noted.lost = kinds, all_lost(capture, call, (args, kwargs))
                _note(noted, capture)
                take_excluded_sizes_apart(capture.size_branches, capture.tracing.shape_env, capture.sites)
            if following:
                result = result, following
            leaves, spec = pytree.tree_flatten(detached_results(result, capture.tracing.node_of))
            drop_grad_mode(capture)
        # Only now, when nothing is put back any more, the containers of the user's own classes are made.
        return pytree.tree_unflatten(leaves, spec)

    noted: Any = forward
    with contextlib.suppress(TypeError, ValueError):
        noted.__signature__ = inspect.signature(sizes.call)
    return forward


def _note(noted: Any, capture: Any) -> None:
    """Keep what a capture has found out."""
    if capture.comprehensions:
        raise consumed_elsewhere(capture)
    assert capture.depth == 1, "a branch has been left open: what it computes would be lost"
    noted.sites = capture.sites.found
    noted.dropped, noted.cautions = capture.guards.dropped, capture.cautions
    noted.switched = plan().switches_gradients_on, mode_left()
    noted.messages = current().part(Messages).said
    noted.layouts, noted.local_facts = current().part(Layouts), capture.tracing.has_local_facts


def _noted(forward: Any) -> dict[str, Any]:
    """What a capture has found out, as a program's graph module keeps it."""
    return {
        LOST: forward.lost,
        MESSAGES: forward.messages,
        BUILD: forward.build,
        NUMBERS: forward.numbers,
        SITES: forward.sites,
        DROPPED: forward.dropped,
        SWITCHED: forward.switched,
        LOCAL_FACTS: forward.local_facts,
    }


def leaves_by_path(values: Any) -> dict[str, Any]:
    """The leaves of arguments, by where they are."""
    return {pytree.keystr(path): leaf for path, leaf in pytree.tree_flatten_with_path(values)[0]}


@contextlib.contextmanager
def quiet_torch() -> Iterator[None]:
    """Torch logs a traceback before it raises an error of a fake tensor or a symbol; the error says it all.

    It also warns of tensors that are stored in attributes, as a recurrent layer does: what is lost of these is our own
    to say.
    """
    names = ("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="The tensor attribute.* assigned during export", category=UserWarning
            )
            # It looks at the gradients of all tensors that it makes fake ones of.
            warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def export(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    allow_specialize: Iterable[int | str] | AllowedLines = (),
    drop_guards: bool = False,
    inputs_as: InputsAs = MappingProxyType({}),
) -> torch.export.ExportedProgram:
    """Capture ``model`` on example arguments, as ``torch.export.export`` does.

    ``model`` is a module, a function, a bound method or a callable object; ``args`` and ``kwargs`` are one set of
    example inputs, ``dynamic_shapes`` says which of their sizes may change, as for ``torch.export.export``.

    Staged control flow is ``torch.cond`` and ``torch.while_loop`` where these can express it, operators of our own
    where they can't: sizes that differ by arm or change in a loop, rows that a loop stacks.

    A size that is declared dynamic stays so, or the export fails. ``allow_specialize`` lists lines (``12`` of the
    model's own file, ``"models.py:12"``) at which such a size may be fixed at the example's; what was fixed stands in
    ``program.graph_module.meta["dy2st.specialized"]``.

    Where eager raises (a ``raise`` or ``assert`` under a tensor condition), so does the program. With ``drop_guards``
    it computes something instead, which eager never does: for runtimes that have no way to fail, or where the inputs
    are known to be good. What was dropped stands in ``program.graph_module.meta["dy2st.dropped_guards"]``.

    A Python number among the arguments is a constant of the program. With ``inputs_as={"steps": "tensor"}`` the numbers
    of that argument are inputs instead, 0-d tensors of int64, float64 or bool, which the model sees as numbers still.

    Raises ``StagingError`` where control flow or state can't be staged, ``SpecializedError`` where a dynamic size would
    be fixed, another ``CaptureError`` where torch.export fails, ``UsageError`` for arguments of another form and for a
    line at which nothing is fixed.
    """
    know_records((args, kwargs))
    program = capture_program(
        model,
        args,
        kwargs,
        dynamic_shapes=dynamic_shapes,
        allow_specialize=allow_specialize,
        drop_guards=drop_guards,
        inputs_as=inputs_as,
    )
    with generated_on_demand():
        to_standard(program.graph_module)
    return program


# torch.export patches Python and torch for the whole process, and so does a capture.
CAPTURING = threading.RLock()


def one_at_a_time(function: Callable[P, T]) -> Callable[P, T]:
    """Captures of several threads wait for each other."""

    @functools.wraps(function)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        with CAPTURING:
            return function(*args, **kwargs)

    return waiting


@one_at_a_time
def capture_program(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    allow_specialize: Iterable[int | str] | AllowedLines = (),
    drop_guards: bool = False,
    muting: Muting | None = None,
    forward: Callable[..., Any] | None = None,
    constants: Constants | None = None,
    carried: CarriedState | None = None,
    inputs_as: InputsAs = MappingProxyType({}),
) -> torch.export.ExportedProgram:
    """As ``export``, with all staged control flow in our own operators, which are cheap to lower.

    With ``muting`` the captures look for refusals only. With ``forward``, a function of a module and its arguments, it
    is this alone that is captured: whoever calls the module has run its hooks. With ``carried`` the program takes the
    state that is known as keyword arguments, and gives pairs of a result and the new state, if there is any. It takes
    0-d tensors for the numbers of the arguments that ``inputs_as`` names.
    """
    require_call(model, args, kwargs)
    model = viewed(in_python(model))
    whole = isinstance(model, torch.nn.Module) and forward is None and called_as_a_whole(model)
    if isinstance(model, torch.nn.Module):
        # A method that calls its module calls the module's own forward.
        module = Shell(model) if forward is not None or called_as_a_whole(model) else model
        call = model.forward if forward is None else types.MethodType(forward, model)
    else:
        module, call = FunctionModule(model), model
    dynamic_shapes = shapes_of_call(call, args, kwargs, dynamic_shapes)
    args, kwargs = as_tensors(call, args, kwargs, inputs_as)
    given, held = leaves_by_path((args, kwargs or {})), state_of(module)
    require_capturable({**leaves_by_name(call, args, kwargs or {}), **held}, module)
    # Two arguments are two inputs. And guards on what a view is a view of would be part of the program.
    args, kwargs = own_tensors((args, kwargs), strides=constants is not None)
    signed, dynamic_shapes = with_named_keywords(call, args, kwargs, dynamic_shapes)
    if carried is not None:
        carried.dynamic_shapes = dynamic_shapes = with_shapes(dynamic_shapes, signed, args, kwargs, carried.shapes())
        kwargs = {**(kwargs or {}), **carried.inputs()}
        signed = with_inputs(signed, carried.inputs())
    namespace = module.__dict__
    had, before = "forward" in namespace, namespace.get("forward")
    allowed = allow_specialize if isinstance(allow_specialize, AllowedLines) else AllowedLines(model, allow_specialize)
    sizes = ExportedSizes(signed, dynamic_shapes, allowed, given=(args, kwargs or {}))
    namespace["forward"] = _captured(
        model,
        call,
        sizes,
        drop_guards=drop_guards,
        given=given,
        held=held,
        module=module,
        whole=whole,
        rebuilt=constants is not None,
        carried=carried,
        inputs_as=inputs_as,
    )

    planned, read_once = Plan(), constants or Constants()

    def attempt() -> torch.export.ExportedProgram:
        with (
            diagnosing(call),
            torch.no_grad(),
            zero_is_a_size(),
            closed_forms(),
            inputs_apart(),
            quiet_torch(),
            left_alone(),
            as_python_numbers(),
            generated_on_demand(),
            hooks_for_models(),
            constructors_unasked(),
            begun(planned, muting or Muting(), read_once, GradientMode(differentiated=read_once.differentiated)),
            unchanged_process(),
            attributes_put_back(module),
        ):
            shapes = sizes.declared(args, kwargs)
            return torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=False)

    try:
        program = planned.carry_out(attempt)
        parameters_apart(program, len(args))
        state_apart(program)
        if allowed is not allow_specialize:
            allowed.require_used()
        program.graph_module.meta[RETURNED] = returned_names(call)
        program.graph_module.meta |= _noted(namespace["forward"])
        namespace["forward"].layouts.settle(program.graph_module)
        if constants is not None:
            program.graph_module.meta[ASSIGNED] = namespace["forward"].assigned
        program.graph_module.meta[SPECIALIZED] = [found.to_dict() for found in sizes.specialized]
        warn_of_results(program, namespace["forward"].cautions, call)
        return program
    finally:
        del namespace["forward"]
        namespace.update({"forward": before} if had else {})
