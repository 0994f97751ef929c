"""A captured program as a Python function of tensors, with eager's results: a number is a number."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec, OutputKind
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import _StopRecomputationError

from dy2st.capture.program import BUILD, NUMBERS, SWITCHED
from dy2st.errors import CaptureError, Dy2stError, UnguardedError
from dy2st.static.subgraphs import body_of, inputs_of
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.known_values import FRESH

# An input of a graph: the number of a tensor among those that the program was captured with, or any other value.
Input = tuple[bool, Any]
# What a run raises that eager's run of the code is not asked about; a checkpoint says so that it has all it wants.
NOT_OF_THE_CODE = (Dy2stError, _StopRecomputationError)
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


class Executable:
    """How a program is run.

    ``tensors`` are those that it was captured with; ``run`` of :meth:`bound` takes the others that stand at the
    same places in another call. ``forward`` runs the program's graph, on its inputs; ``whole`` says that a run of it
    that fails has written nothing.
    """

    forward: Callable[..., Any]
    whole = False

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        arguments: Any,
        tensors: Sequence[torch.Tensor],
        name: str,
        held: Sequence[Any] = (),
    ) -> None:
        """``arguments`` are those of the call that it was captured in; ``name`` is the function's.

        What it reads of ``held`` are the very tensors in that, as long as it holds: what functions with a cache give.
        """
        numbers = {id(tensor): i for i, tensor in enumerate(tensors)}
        places = {_place(tensor): i for i, tensor in enumerate(tensors)}
        leaves, constant = pytree.tree_leaves(arguments), set(map(id, pytree.tree_leaves(held)))
        self.inputs: list[Input] = []
        for spec in program.graph_signature.input_specs:
            value = _value(program, spec, leaves)
            number = numbers.get(id(value))
            if isinstance(value, torch.Tensor) and number is None and not _is_fresh(program, spec):
                # torch.export holds a parameter that is no parameter of its module by another tensor of its memory.
                number = places.get(_place(value))
            known = number is not None or id(value) in constant
            if isinstance(value, torch.Tensor) and not known and not _is_fresh(program, spec):
                raise UnguardedError(
                    f"{name} reads a tensor that is found on a path which can't be followed ({spec.target})",
                    hint="pass it in, or keep it in a parameter, a buffer, an attribute, a global or a closure",
                )
            self.inputs.append((False, value) if number is None else (True, number))
        assert all(spec.kind is OutputKind.USER_OUTPUT for spec in program.graph_signature.output_specs)
        self.results = _results(program)

    def bound(self, fixed: dict[int, torch.Tensor], given: Sequence[int]) -> Callable[[Sequence[Any]], Any]:
        """A function of the tensors with the numbers ``given``; ``fixed`` are the others, by number."""
        places = {number: at for at, number in enumerate(given)}
        takes = [places.get(value) if is_tensor else None for is_tensor, value in self.inputs]
        values = [fixed.get(value) if is_tensor else value for is_tensor, value in self.inputs]
        forward, results = self.forward, self.results
        moving = [at for at in takes if at is not None]
        first = next((i for i, at in enumerate(takes) if at is not None), len(takes))
        if moving == list(range(len(given))) and all(at is not None for at in takes[first:]):
            whole = functools.partial(forward, *values[:first])
            return lambda tensors: results(whole(*tensors))

        def run(tensors: Sequence[Any]) -> Any:
            return results(forward(*[v if at is None else tensors[at] for v, at in zip(values, takes, strict=True)]))

        return run


def _place(tensor: torch.Tensor) -> Any:
    """Where a tensor lies, and what it is."""
    if tensor.layout is not torch.strided or tensor.numel() == 0:
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def _value(program: torch.export.ExportedProgram, spec: InputSpec, leaves: list[Any]) -> Any:
    """What the program was captured with at an input."""
    if spec.kind is InputKind.USER_INPUT:
        return leaves.pop(0)
    held = program.state_dict if spec.target in program.state_dict else program.constants
    return held[str(spec.target)]


def _is_fresh(program: torch.export.ExportedProgram, spec: InputSpec) -> bool:
    """Whether an input stands for a tensor that is written out in the code (``torch.tensor([1, 2])``)."""
    node = next(n for n in program.graph.nodes if n.op == "placeholder" and n.name == spec.arg.name)
    return _only_copied(program.graph_module, node)


def _only_copied(module: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """Whether all that is made of a value are copies, in branches and loops too."""
    for user in node.users:
        if user.target in FRESH:
            continue
        if user.target not in (branch_op, loop_op):
            return False
        operands: Any = user.args[3] if user.target is branch_op else user.args[4]
        places = [i for i, each in enumerate(operands) if each is node]
        named = [arg for arg in user.args if isinstance(arg, torch.fx.Node) and arg.op == "get_attr"]
        for body in (body_of(module, each) for each in named):
            inputs = inputs_of(body)[-len(operands) :]
            if not all(_only_copied(body, inputs[i]) for i in places):
                return False
        if len(places) != [*user.all_input_nodes].count(node):
            return False
    return True


def _results(program: torch.export.ExportedProgram) -> Callable[[Sequence[Any]], Any]:
    """From the flat results of the graph to what the function returns."""
    numbers = program.graph_module.meta.get(NUMBERS) or []
    build = program.graph_module.meta.get(BUILD)
    spec = program.call_spec.out_spec
    count = spec.num_leaves if spec is not None else 0
    if spec is None:
        return lambda flat: flat
    space: dict[str, Any] = {"unflatten": pytree.tree_unflatten, "spec": spec}
    leaves = iter(range(count))

    def leaf(i: int) -> str:
        kind = numbers[i] if i < len(numbers) else None
        return f"flat[{i}]" if kind is None else f"{kind.__name__}(flat[{i}])"

    def text(node: Any) -> str | None:
        if node.is_leaf():
            return leaf(next(leaves))
        parts = [text(child) for child in node.children()]
        if None in parts:
            return None
        inner = ", ".join(str(part) for part in parts)
        if node.type is tuple:
            return f"({inner},)" if parts else "()"
        if node.type is list:
            return f"[{inner}]"
        if node.type is dict:
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(node.context, parts, strict=True)) + "}"
        return None

    plain = text(spec)
    if plain is None or not _are_texts(spec):
        plain = f"unflatten([{', '.join(leaf(i) for i in range(count))}], spec)"
    found: Callable[[Sequence[Any]], Any] = eval(f"lambda flat: {plain}", space)  # noqa: S307  built from a structure
    return found if build is None else lambda flat: build(found(flat))


def _are_texts(spec: Any) -> bool:
    """Whether all keys of the dicts can be written out."""
    if spec.is_leaf():
        return True
    keys = spec.type is not dict or all(type(key) in (str, int) for key in spec.context)
    return keys and all(_are_texts(child) for child in spec.children())


def compiled(run: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """``run``, compiled on its first call.

    Raises (the function that it gives):
        CaptureError: the backend can't compile the program.
    """
    by_torch = torch.compile(run, backend=backend)

    @functools.wraps(run)
    def call_compiled(*args: Any, **kwargs: Any) -> Any:
        try:
            return by_torch(*args, **kwargs)
        except Exception as error:
            if "TorchDynamoException" not in {kind.__name__ for kind in type(error).__mro__}:
                raise
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            gradients = " with gradients" if torch.is_grad_enabled() else ""
            hint = "torch 2.13 compiles no gradients of loops: call it under no_grad, or train with the backend eager"
            raise CaptureError(
                f"{backend} can't compile the program{gradients}: {lines[0]}", hint=hint if gradients else ""
            ) from error

    return call_compiled


def with_mode_of(program: torch.export.ExportedProgram, forward: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a graph, with gradients on if the code switches them on; it leaves the mode that eager does."""
    switched, left = program.graph_module.meta[SWITCHED]
    inner: Callable[..., Any] = torch.enable_grad()(forward) if switched else forward
    if left is None:
        return inner

    @functools.wraps(forward)
    def leaving(*args: Any) -> Any:
        found = inner(*args)
        torch.set_grad_enabled(left)
        return found

    return leaving
