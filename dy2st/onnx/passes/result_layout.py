"""Which tensors of a program make an output of its file: one tensor each, or those of a list or of a value by path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.export.graph_signature import ConstantArgument, OutputKind
from torch.utils import _pytree as pytree

from dy2st.capture.result_forms import FORMS, CaseForm, Form, cell_places
from dy2st.capture.stateful_program import carried_by
from dy2st.errors import OnnxError
from dy2st.tracing.named_tuples import with_leaves


@dataclass(frozen=True)
class Result:
    """An output of a file: ``leaves`` are the numbers of the program's tensors that make it, constants left out.

    ``place`` is where it is in what the model returns, ``inner`` where it is in each element of the list that stands
    there. ``form`` has the cases of a value that is one of several; ``is_list`` says that it is a list, ``is_state``
    that it is no result but state; ``text`` is one that all paths give.
    """

    place: str
    leaves: tuple[int, ...]
    inner: str = ""
    is_list: bool = False
    is_state: bool = False
    form: CaseForm | None = None
    text: str | None = None


def result_layout(program: torch.export.ExportedProgram) -> list[Result]:
    """The outputs that a program's file has, in order; those of its state are tensors. Empty where that isn't known.

    Raises:
        OnnxError: a list of data-dependent length has neither tensors nor numbers in it.
    """
    spec = program.call_spec.out_spec
    results = [each for each in program.graph_signature.output_specs if each.kind == OutputKind.USER_OUTPUT]
    if spec is None or spec.num_leaves != len(results):
        return []
    tree = with_leaves(range(len(results)), spec)
    carried = carried_by(program)
    state: list[int] = []
    if carried is not None:
        # Of a program with state, the first of two results is the model's.
        tree, following = tree
        state = pytree.tree_leaves(following)
    constant = [isinstance(each.arg, ConstantArgument) for each in results]
    # Constants are no outputs of a file.
    numbers = {leaf: leaf - sum(constant[:leaf]) for leaf in range(len(results)) if not constant[leaf]}
    found: list[Result] = []
    for path, leaf in pytree.tree_flatten_with_path(tree, is_leaf=lambda each: isinstance(each, FORMS))[0]:
        place = "output" + "".join(map(str, path))
        if isinstance(leaf, FORMS):
            found += _of_form(place, leaf, numbers)
        elif leaf in numbers:
            found.append(Result(place, (numbers[leaf],)))
        elif isinstance(results[leaf].arg.value, str):
            found.append(Result(place, (), text=results[leaf].arg.value))
    parts = [] if carried is None else [f"{part.name}_next" for part in carried.parts]
    return found + [Result(name, (numbers[leaf],), is_state=True) for name, leaf in zip(parts, state, strict=True)]


def _of_form(place: str, form: Form, numbers: dict[int, int]) -> Iterator[Result]:
    if isinstance(form, CaseForm):
        yield Result(place, (numbers[form.tag], *(numbers[value] for value in form.values)), form=form)
        return
    if form.uneven:
        sizes, flat = form.columns
        yield Result(place, (numbers[flat], numbers[sizes]), is_list=True)
        return
    places = cell_places(form.element)
    if not places:
        raise OnnxError(
            "the model returns a list of data-dependent length in which there is neither a tensor nor a number",
            hint="return its length",
        )
    for inner, column in zip(places, form.columns, strict=True):
        yield Result(place, (numbers[column],), inner, is_list=True)


def is_plain(layout: Sequence[Result]) -> bool:
    """Whether each output is a tensor of the program as it is."""
    return not any(each.is_list or each.form is not None or each.text is not None for each in layout)
