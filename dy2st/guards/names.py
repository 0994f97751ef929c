"""The names by which code can read the world, and the rules of whose code that is."""

from __future__ import annotations

import os
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.guards.code_reads import code_reads
from dy2st.guards.executed_code import Code, key_of
from dy2st.guards.source import Same
from dy2st.source.user_frames import TORCH, is_ours, is_pythons, is_users

# What tells where in its memory a tensor begins.
_PLACES = frozenset(("storage_offset", "as_strided", "data_ptr", "untyped_storage", "storage"))
# What tells whether a tensor was computed of others.
_LEAVES = frozenset(("is_leaf", "grad_fn"))
# What functions and classes say of themselves.
TOLD = frozenset(("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"))
# What a call of any module reads of its class.
_OF_CALLS = frozenset(("forward", "__call__", "_call_impl", "_wrapped_call_impl", "__getattr__"))
# What ``apply`` of a torch.autograd.Function reads of it.
_OF_FUNCTIONS = frozenset(("forward", "setup_context"))
_BOOKKEEPING = {
    ("torch.utils.hooks", "RemovableHandle"): ("next_id",),
    ("tqdm.std", "tqdm"): ("monitor", "_instances", "_lock"),
}
_NUMPY = f"{Path(np.__file__).parent}{os.sep}"
_OF_MODULES = tuple(f"{folder}nn/" for folder in TORCH)


@dataclass
class Names:
    """The names that code can read, and the code that has been looked at for them."""

    attributes: set[str] = field(default_factory=set)
    # Those of ``TOLD`` that the user's own code names.
    told: set[str] = field(default_factory=set)
    everything: bool = False
    seen: set[types.CodeType] = field(default_factory=set)
    # Whether where tensors lie in memory is asked for, or matters since something is written to.
    memory: bool = False
    # Whether tuples of constants may have been replaced by equal ones, as torch.export does it with attributes.
    replaced: bool = False
    # Whether it is asked if attributes are there.
    asks: bool = False
    # Whether the code of functions that are found adds to the names.
    learning: bool = False
    # The code that has run, which alone counts; None where all that is found may.
    ran: frozenset[Code] | None = None
    # The objects that the code has asked for their identity.
    identified: frozenset[Same] = frozenset()
    # Names of globals and attributes that the user has declared constant; True for all globals and variables.
    frozen: frozenset[str] | bool = frozenset()

    def add(self, code: types.CodeType) -> None:
        """Code that may run: it counts if it is the user's, or that of a module of torch's."""
        counts = is_users_code(code) or self.of_torchs_modules(code)
        if self.learning and counts and self.has_run(code) and code not in self.seen:
            self.seen.add(code)
            reads = code_reads(code)
            self.attributes |= {name for name in reads.attributes if not self.is_frozen(name)}
            self.everything |= reads.computed
            self.told |= TOLD & reads.attributes if is_users_code(code) else set()
            self.asks |= reads.asks and is_users_code(code)

    def has_run(self, code: types.CodeType) -> bool:
        """Whether what code reads counts."""
        return self.ran is None or key_of(code) in self.ran

    @staticmethod
    def of_torchs_modules(code: types.CodeType) -> bool:
        """Whether code is that of a module of torch's."""
        return code.co_filename.startswith(_OF_MODULES)

    def add_call_of_module(self) -> None:
        """Some module is called."""
        if self.learning:
            self.attributes |= _OF_CALLS

    def add_call_of_function(self) -> None:
        """A ``torch.autograd.Function`` may be applied."""
        if self.learning:
            self.attributes |= _OF_FUNCTIONS

    def size(self) -> tuple[int, int, bool]:
        """What grows when there is more to be read."""
        return len(self.attributes), len(self.told), self.everything

    def identity(self) -> tuple[Any, ...]:
        """What is the same for names by which the same world is read."""
        read = frozenset(self.attributes), frozenset(self.told), self.everything
        return *read, self.memory, self.frozen, self.ran, self.identified

    def has(self, name: str) -> bool:
        """Whether an attribute of this name can be read."""
        return name in self.attributes or (self.everything and not self.is_frozen(name))

    def is_bookkeeping(self, cls: type, name: str) -> bool:
        """Whether a library notes in a member of its class what lives at present: handles of hooks, bars, a thread.

        It comes and goes beside the function. It counts where code names it.
        """
        noted = _BOOKKEEPING.get((cls.__module__, cls.__name__), ())
        return name in noted and name not in self.attributes

    def is_frozen(self, name: str) -> bool:
        """Whether the user has declared what has this name to be constant."""
        return not isinstance(self.frozen, bool) and name in self.frozen

    def asks_for_leaves(self) -> bool:
        """Whether code can ask whether a tensor was computed of others."""
        return not self.attributes.isdisjoint(_LEAVES)

    def asks_for_memory(self) -> bool:
        """Whether code can ask where in its memory a tensor begins."""
        return not self.attributes.isdisjoint(_PLACES)


def is_users_code(code: types.CodeType) -> bool:
    """Whether code is the user's or a package's; that of a prompt and of generated functions, too."""
    name = code.co_filename
    return is_users(name) or (name.startswith("<") and not is_ours(name) and not is_pythons(name))


def is_users_class(cls: type) -> bool:
    """Whether a class is defined in the user's code, or in a package's."""
    if cls.__module__ == types.__name__ and getattr(types, cls.__name__, None) is not cls:
        return True  # by types.new_class
    module = sys.modules.get(cls.__module__)
    return cls.__module__ != "builtins" if module is None else is_users_module(module)


def is_users_module(module: types.ModuleType) -> bool:
    """Whether a module of Python's is the user's or a package's, and not compiled."""
    # Not by getattr: a namespace of torch's takes each name for that of a class to load.
    file = vars(module).get("__file__")
    if not isinstance(file, str):
        # One that is made as the program runs, or at a prompt, has nothing that says where it is from.
        made = type(module) is types.ModuleType and vars(module).get("__spec__") is None
        return module.__name__ == "__main__" or (made and not _is_librarys(module.__name__))
    return file.endswith(".py") and not file.startswith(_NUMPY) and is_users(file)


def _is_librarys(name: str) -> bool:
    return name.partition(".")[0] in ("torch", "numpy", *sys.stdlib_module_names)
