"""Runs a file call after call, each from where the last one ended."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import onnxruntime

from dy2st.embedded.array_session import STATE, taken_value, told
from dy2st.embedded.file_outputs import is_plain
from dy2st.embedded.session_kernels import session_options
from dy2st.errors import OnnxError, UsageError
from dy2st.onnx.given_arrays import as_numpy, as_ort_value, copied, dtype_of, given_array, require_shape


class Runner:
    """A file of ``dy2st.onnx.export`` as a callable that keeps its state between calls, on onnxruntime.

    ``runner(x)`` runs the file on arrays, by position or by the names of the file's inputs, and gives the model's own
    outputs: a list of arrays in the order of the file's outputs, as ``InferenceSession.run`` does, without those that
    are state. These are what the next call starts from. A file without state runs as it is, each call by itself.
    ``copy.copy`` and ``copy.deepcopy`` give a runner of the same session whose state is its own from then on.

    Args:
        path: the file.
        providers: onnxruntime's execution providers, ``["CPUExecutionProvider"]`` by default.
        options: ``SessionOptions`` of onnxruntime.

    Raises:
        OnnxError: onnxruntime can't load the file.

    Needs onnxruntime and numpy, no torch: ``from dy2st.onnx.session_runner import Runner`` imports neither torch nor
    anything else that needs it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        providers: Sequence[Any] | None = None,
        options: onnxruntime.SessionOptions | None = None,
    ) -> None:
        if options is None:
            # onnxruntime warns that inputs with default values are no constants.
            options = session_options(severity=3)
        try:
            self.session = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=list(providers or ["CPUExecutionProvider"])
            )
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise OnnxError(f"onnxruntime can't load the file: {told(error)}") from error
        carried = json.loads(self.session.get_modelmeta().custom_metadata_map.get(STATE, "[]"))
        self._following: dict[str, str] = {each["output"]: each["input"] for each in carried}
        inputs = (*self.session.get_inputs(), *self.session.get_overridable_initializers())
        self._inputs = {each.name: Wanted(dtype_of(each.type), _sizes_of(each)) for each in inputs}
        # numpy has no such type, and ``run`` knows no other arrays.
        kinds = {each.type for each in (*self.session.get_inputs(), *self.session.get_outputs())}
        kinds |= {each.type for each in self.session.get_overridable_initializers()}
        self._has_bfloat16 = "tensor(bfloat16)" in kinds and is_plain(self.session)
        state = set(self._following.values())
        self.input_names = [each.name for each in self.session.get_inputs() if each.name not in state]
        self.output_names = [each.name for each in self.session.get_outputs() if each.name not in self._following]
        wanted = {name: self._inputs[name] for name in self._following.values()}
        self._state = State(wanted, {each["input"]: _parts_of(each, carried) for each in carried if _is_flag(each)})

    @property
    def state(self) -> State:
        """What the next call starts from, by the names of the file's inputs, as numpy arrays.

        Before the first call, and after ``reset``, it is empty: the file's own initial values hold. A value that is put
        there is what the next call starts from; ``runner.state = {...}`` puts several, and leaves the others at their
        initial values. It can be copied, stored and put back: ``saved = dict(runner.state)``.
        """
        return self._state

    @state.setter
    def state(self, values: Mapping[str, Any]) -> None:
        """Start the next call from these values.

        Raises:
            UsageError: a name is none of the file's state, or an array has another dtype or shape.
        """
        new = State(self._state.wanted, self._state.flags)
        new.update(values)
        self._state = new

    def reset(self) -> None:
        """Start the next call from the initial values of the file."""
        self._state.clear()

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        made._state = State(self._state.wanted, self._state.flags)
        made._state.update(self._state)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy.copy(self)

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Run the file once, and keep the new state; where the file fails, the state stays as it was.

        Args:
            args: arrays, numbers or anything that numpy makes arrays of, in the order of ``input_names``. A Python
                number gets the dtype that the file wants, unless it would be another value there; an array has to have
                it. An array of bfloat16 is one of ``ml_dtypes``.
            kwargs: the same by name.

        Returns:
            The outputs in the order of ``output_names``, as numpy arrays of the shapes and dtypes that the model's
            tensors have.

        Raises:
            UsageError: an argument is missing, there is one too many, it is none of the file's inputs, or it has
                another dtype or shape; or a part of a state was put that the other parts are missing for.
        """
        self._state.require_whole()
        names = [*self.output_names, *self._following]
        found = self._run(names, {**self._state, **self._feed(args, kwargs)})
        count = len(self.output_names)
        self._state.go_on(
            {self._following[name]: value for name, value in zip(names[count:], found[count:], strict=True)}
        )
        return list(found[:count])

    def _run(self, names: Sequence[str], feed: Mapping[str, Any]) -> Sequence[Any]:
        if not self._has_bfloat16:
            found: Sequence[Any] = self.session.run(names, feed)
            return found
        values = {name: as_ort_value(value) for name, value in feed.items()}
        return [as_numpy(taken_value(each)) for each in self.session.run_with_ort_values(names, values)]

    def _feed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        known = ", ".join(self.input_names) or "none"
        if len(args) > len(self.input_names):
            raise UsageError(f"{len(args)} arguments are given, and the file's inputs are {known}")
        given = {**dict(zip(self.input_names, args, strict=False)), **kwargs}
        twice = set(self.input_names[: len(args)]) & set(kwargs)
        if twice:
            raise UsageError(f"the input {min(twice)!r} is given twice, by position and by name")
        if set(given) != set(self.input_names):
            wrong = sorted(set(given) ^ set(self.input_names))
            raise UsageError(
                f"{wrong[0]!r} is {'missing' if wrong[0] in self.input_names else 'no input'}; the inputs are {known}",
                hint="what is state is put into runner.state" if wrong[0] in self._inputs else "",
            )
        return {name: self._inputs[name].taken(name, value) for name, value in given.items()}


@dataclass(frozen=True)
class Wanted:
    """What a file takes as an input: a dtype, and sizes, which are names where any size will do; None if any shape."""

    dtype: Any
    sizes: Sequence[Any] | None

    def taken(self, name: str, value: Any) -> Any:
        """What was given for the input, as an array.

        Raises:
            UsageError: it has another dtype or shape.
        """
        array = given_array(name, value, self.dtype)
        if self.sizes is not None:
            require_shape(name, array, self.sizes)
        return array


def _sizes_of(graph_input: Any) -> Sequence[Any] | None:
    """The sizes of a tensor; onnxruntime has none of a sequence."""
    return list(graph_input.shape) if graph_input.type.startswith("tensor(") else None


def _is_flag(entry: Mapping[str, Any]) -> bool:
    """Whether a state says if another one is there."""
    return entry.get("kind") == "presence"


def _parts_of(flag: Mapping[str, Any], carried: Sequence[Mapping[str, Any]]) -> list[str]:
    path = str(flag["path"]).removesuffix("_is_set")
    return [
        each["input"] for each in carried if each is not flag and re.match(rf"{re.escape(path)}([.\[]|$)", each["path"])
    ]


class State(MutableMapping[str, Any]):
    """Arrays by the names of a file's inputs that are state; other names are refused. What is put here is copied.

    ``flags`` are the names that say whether a state is there at all, with those of its parts.
    """

    def __init__(self, wanted: Mapping[str, Wanted], flags: Mapping[str, Sequence[str]]) -> None:
        self.wanted, self.flags = wanted, flags
        self._values: dict[str, Any] = {}
        self._is_put = False

    def __getitem__(self, name: str) -> Any:
        """The array of a name, if there has been a call or it was put there."""
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Put an array, or what numpy makes one of.

        Raises:
            UsageError: the file has no state of that name, or it has another dtype or shape.
        """
        if name not in self.wanted:
            known = ", ".join(self.wanted) or "none"
            raise UsageError(f"the file has no state {name!r}", hint=f"its state: {known}")
        # The caller's own array may change before the next call.
        self._values[name] = copied(self.wanted[name].taken(name, value))
        self._is_put = True

    def require_whole(self) -> None:
        """Accept what was put; a state all parts of which were put is there.

        Raises:
            UsageError: some parts of a state were put, or it was said to be there, and others are missing.
        """
        for flag, parts in self.flags.items() if self._is_put else ():
            there = [each for each in parts if each in self._values]
            told = self._values.get(flag)
            if (told is None and there) or (
                told is not None and bool(told.numpy() if isinstance(told, onnxruntime.OrtValue) else told)
            ):
                missing = [each for each in parts if each not in self._values]
                if missing:
                    known = there[0] if there else flag
                    raise UsageError(
                        f"{known!r} was put into the state, and {missing[0]!r} was not: they come together"
                    )
                self._values[flag] = np.asarray(True)
        self._is_put = False

    def go_on(self, values: Mapping[str, Any]) -> None:
        """Take what a call has given, which nobody else has."""
        self._values.update(values)

    def __delitem__(self, name: str) -> None:
        """Let a name have its initial value again."""
        del self._values[name]
        self._is_put = True

    def __iter__(self) -> Iterator[str]:
        """The names that have a value."""
        return iter(self._values)

    def __len__(self) -> int:
        """How many have a value."""
        return len(self._values)

    def __repr__(self) -> str:
        return f"State({self._values!r})"
