"""``dy2st.load``: saved programs as a module, without the source that they were captured from."""

from __future__ import annotations

import inspect
import json
import keyword
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from dy2st.errors import SavedCallError, SavedFileError, UsageError
from dy2st.guards.ambient import modes
from dy2st.static.generated import generated
from dy2st.static.parameters import Parameters
from dy2st.static.saved_arguments import TensorRule, mismatch, tree_from_json
from dy2st.static.saved_format import decoded, encoded, graph_from_json, is_name
from dy2st.static.saved_results import result_from_json
from dy2st.static.saved_tensors import restored
from dy2st.static.subgraphs import inputs_of, results_of
from dy2st.static.weights_file import read
from dy2st.tracing.generated_code import generated_on_demand

# How many of the programs that don't fit a message tells of.
_MOST_TOLD = 3


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Loaded:
    """The programs of a file of ``dy2st.save``, as a module. No code of the file is run: it has none.

    The module is called as the function or module was that was saved; of several, each is a method by its name.
    Weights are its parameters and buffers: they are trained, moved into an optimizer and put into a ``state_dict`` as
    those of any module. They lie in the file until they are written to, which leaves the file as it is.

    A program runs where the arguments are those that it was saved for: another structure, dtype, rank or fixed size is
    refused. Where eager code would raise, the program raises a ``RuntimeError`` that names the line.

    Args:
        path: the file. Files of all versions of the format up to this dy2st's own are read.
        verify: read the whole file once and compare it with its checksums. Without it weights are read when they are
            needed, and a damaged one goes unnoticed.

    Raises:
        SavedFileError: the file is missing, damaged, something else, or of a newer version of the format.
        SavedCallError: (on a call) no program of the file takes these arguments.
    """
    text, tensors = read(Path(path), verify=verify)
    try:
        return loaded(text, tensors)
    except Exception as error:  # a file that is made to mislead fails wherever it leads to
        first = next(iter(str(error).splitlines()), "")
        raise SavedFileError(f"{path} can't be read: {type(error).__name__}: {first}") from error


def loaded(text: str, tensors: Mapping[str, torch.Tensor]) -> Loaded:
    """The module of a file's text and tensors."""
    return Loaded(text, tensors)


def may_be_called(name: Any) -> bool:
    """Whether a saved function may have this name, beside those that every module has."""
    if not is_name(name) or keyword.iskeyword(name):
        return False
    return name == "forward" or not (name.startswith("_") or hasattr(torch.nn.Module, name))


class Loaded(torch.nn.Module):
    """Saved programs and the tensors that they read: see ``dy2st.load``."""

    def __init__(self, text: str, tensors: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        whole = json.loads(text)
        self._text = text
        places: dict[str, tuple[dict[str, Any], str]] = {}
        for name, entry in whole["state"].items():
            places[name] = self._add(name, restored(tensors[name], entry), entry)
        constants = {name: tensors[name] for name in whole["constants"]}
        self._constants = [constants]  # in a list: they are no part of its state
        self._methods: dict[str, _Method] = {}
        with generated_on_demand():
            for name, made in whole["methods"].items():
                if not may_be_called(name):
                    raise ValueError(name)
                self._methods[name] = _Method(name, made, places, constants)
        self.__signature__ = self._main().__signature__ if len(self._methods) == 1 else None

    def _add(self, name: str, tensor: torch.Tensor, entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Hold a tensor under a name; where it is held."""
        *above, last = name.split(".")
        owner: torch.nn.Module = self
        for part in above:
            if part not in owner._modules:
                owner.add_module(part, torch.nn.Module())
            owner = owner._modules[part]  # type: ignore[assignment]
        if entry["parameter"]:
            owner.register_parameter(last, torch.nn.Parameter(tensor, requires_grad=bool(entry["gradient"])))
            return owner._parameters, last
        owner.register_buffer(last, tensor)
        return owner._buffers, last

    def _main(self) -> _Method:
        if "forward" not in self._methods and len(self._methods) > 1:
            raise UsageError(f"the file has several functions: call one of {', '.join(self._methods)}")
        return self._methods.get("forward") or next(iter(self._methods.values()))

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the function that was saved, or the one of several that is called ``forward``."""
        return self._main()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_methods", {}).get(name)
        return super().__getattr__(name) if found is None else found

    def __dir__(self) -> list[str]:
        inherited: list[str] = super().__dir__()  # type: ignore[no-untyped-call]
        return [*inherited, *self._methods]

    def extra_repr(self) -> str:
        """The functions, and how many programs each has."""
        return ", ".join(f"{name}: {len(method.programs)} programs" for name, method in self._methods.items())

    def content(self) -> tuple[str, dict[str, torch.Tensor]]:
        """The text and the tensors of a file, as they are now."""
        whole, state = json.loads(self._text), self.state_dict(keep_vars=True)
        for name, entry in whole["state"].items():
            entry["gradient"] = state[name].requires_grad
        tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
        return json.dumps(whole, separators=(",", ":"), allow_nan=False), tensors | self._constants[0]

    def __reduce__(self) -> Any:
        """By its content: what was trained is kept, hooks and gradients are not."""
        return loaded, self.content()


class _Method:
    """A saved function: its parameters and its programs."""

    def __init__(
        self,
        name: str,
        made: Any,
        places: Mapping[str, tuple[dict[str, Any], str]],
        constants: Mapping[str, torch.Tensor],
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.__signature__ = inspect.Signature([_parameter(each) for each in made["parameters"]])
        self._parameters = Parameters(self.__signature__, name)
        self.programs = [_Program(each, self._parameters.names, places, constants) for each in made["programs"]]
        if not self.programs:
            raise ValueError(name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments.

        Raises:
            SavedCallError: there is none.
        """
        arguments = self._parameters.bound(args, kwargs)
        refused = []
        for program in self.programs:
            values = program.inputs_for(arguments)
            if not isinstance(values, str):
                return program.run(values)
            refused.append(values)
        reasons = list(dict.fromkeys(refused))
        told = "; or ".join(reasons[:_MOST_TOLD]) + ("; ..." if len(reasons) > _MOST_TOLD else "")
        raise SavedCallError(
            f"{self.__name__} was not saved for this call: {told}",
            hint="save it with an example of this kind, or with dynamic dimensions (input_spec)",
        )


def _parameter(made: Mapping[str, Any]) -> inspect.Parameter:
    if not str(made["name"]).isidentifier() or keyword.iskeyword(made["name"]):
        raise ValueError(made["name"])
    kind = getattr(inspect.Parameter, made["kind"])
    default = decoded(made["default"]) if "default" in made else inspect.Parameter.empty
    return inspect.Parameter(made["name"], kind, default=default)


class _Program:
    """A program, and what it asks of a call."""

    def __init__(
        self,
        made: Any,
        names: Sequence[str],
        places: Mapping[str, tuple[dict[str, Any], str]],
        constants: Mapping[str, torch.Tensor],
    ) -> None:
        self._trees = [tree_from_json(each) for each in made["arguments"]]
        self._rules = [TensorRule.from_json(each) for each in made["tensors"]]
        if len(self._trees) != len(names):
            raise ValueError(names)
        self._names, self._modes, self._writes = names, made["modes"], bool(made["writes"])
        module = graph_from_json(made["graphs"], 0, constants)
        self._given: list[tuple[str, Any]] = []
        self._state: list[tuple[dict[str, Any], str, Any]] = []
        for kind, value in made["inputs"]:
            if kind == "state":
                held, key = places[value]
                self._state.append((held, key, _facts(held[key])))
                self._given.append((kind, len(self._state) - 1))
            elif kind == "argument" and 0 <= value < len(self._rules):
                self._given.append((kind, value))
            else:
                constant = constants[value] if kind == "constant" else decoded(value)
                self._given.append(("value", constant))
        if len(self._given) != len(inputs_of(module)):
            raise ValueError(made["inputs"])
        self._forward = generated(module, [bool(each) for each in made["numbers"]]).function
        self._result = result_from_json(made["result"], len(results_of(module)))

    def inputs_for(self, arguments: Sequence[Any]) -> list[Any] | str:
        """The inputs of the program's graph for a call, or why it is not for that."""
        found: dict[int, tuple[Any, str]] = {}
        for tree, value, name in zip(self._trees, arguments, self._names, strict=True):
            wrong = mismatch(tree, value, name, found)
            if wrong is not None:
                return wrong
        sizes: dict[str, int] = {}
        for number, (tensor, path) in found.items():
            wrong = self._rules[number].refuses(tensor, sizes)
            if wrong is not None:
                return f"{path} is {wrong}"
        tensors = [found[number][0] for number in range(len(found))]
        state = [held.get(key) for held, key, _ in self._state]
        wrong = self._wrong_mode() or self._wrong_state(state) or self._sharing(tensors, state)
        if wrong is not None:
            return wrong
        chosen = {"argument": tensors, "state": state}
        return [value if kind == "value" else chosen[kind][value] for kind, value in self._given]

    def run(self, values: Sequence[Any]) -> Any:
        """What the function returns."""
        return self._result(self._forward(*values))

    def _wrong_mode(self) -> str | None:
        asked = self._modes
        if asked["gradients"] not in (None, torch.is_grad_enabled()):
            now, then = ("on", "off") if torch.is_grad_enabled() else ("off", "on")
            return f"gradients are {now}, and its code, which asks for that, was captured with them {then}"
        known = dict(modes())
        for key, name in (
            ("default_dtype", "the default dtype"),
            ("default_device", "the default device"),
            ("autocast", "autocast"),
        ):
            if encoded(known[name]) != asked[key]:
                return f"{name} is {known[name]}, and not {decoded(asked[key])}"
        return None

    def _wrong_state(self, state: Sequence[Any]) -> str | None:
        for tensor, (_, key, facts) in zip(state, self._state, strict=True):
            if _facts(tensor) != facts:
                return f"its own tensor {key} is another one now, in its dtype, shape, strides or device"
        return None

    def _sharing(self, tensors: Sequence[torch.Tensor], state: Sequence[Any]) -> str | None:
        """Two tensors may not be one; nor share memory, where the program writes to some of them."""
        if len({id(each) for each in tensors}) < len(tensors):
            return "two of the arguments are one tensor"
        every = [each for each in (*tensors, *state) if each.numel()]
        if self._writes and len({each.untyped_storage().data_ptr() for each in every}) < len({*map(id, every)}):
            return "two tensors share memory, and the program writes to tensors"
        return None


def _facts(tensor: Any) -> Any:
    return None if tensor is None else (tensor.dtype, tensor.shape, tensor.stride(), tensor.device)
