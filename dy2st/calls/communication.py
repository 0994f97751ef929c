"""Talk with other processes, which no program can carry.

A collective that runs while its function is traced would run once, with stand-ins for tensors, and never again. What
torch itself wraps around a module to spread it over processes (``DistributedDataParallel``, sharding, tensor parallel,
pipelines) talks in its forward and in its hooks. All of this is refused; ``to_static`` runs such a function itself.

The functional collectives (``torch.distributed._functional_collectives``) are operators like others. Those that write
in place torch would turn into functional ones, whose gradients are not eager's. What has the same answer in every call
(which rank this is, how many there are) is asked once.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from dy2st.errors import CommunicationError
from dy2st.source.user_frames import location_of, module_of, users_frame
from dy2st.tracing.replaced import replaced
from dy2st.tracing.subgraph import refuse_sparse

_COLLECTIVES = "torch.distributed.distributed_c10d"
# Modules and packages all of whose functions may talk.
_TALKING = (
    *("torch.distributed.nn", "torch.distributed.tensor", "torch.distributed.fsdp", "torch.distributed.pipelining"),
    *("torch.distributed._composable", "torch.distributed.rpc", "torch.nn.parallel.distributed"),
)
# How functions of the module of collectives begin that only ask.
_ASKING = ("get_", "is_", "supports_", "_")


def check_communicating(function: Any) -> None:
    """``function`` is about to be called while a program is captured.

    Raises:
        CommunicationError: it talks with other processes, or may.
    """
    talking = function.forward if isinstance(function, torch.nn.Module) else function
    if _talks(talking):
        name = type(function).__name__ if isinstance(function, torch.nn.Module) else function.__name__
        _refuse(f"{name}()")


def check_spread(state: Mapping[str, Any]) -> None:
    """What a program is captured with, by name.

    Raises:
        CommunicationError: there is a tensor among it that stands for others (``DTensor``).
        SparseTensorError: there is a sparse one.
    """
    for name, value in state.items():
        kind = type(value).__name__
        if is_traceable_wrapper_subclass(value):
            raise CommunicationError(
                f"{name} is a {kind}, which stands for other tensors",
                hint="capture with plain tensors; to_static runs a function that reads such a tensor as it is",
            )
        if isinstance(value, torch.Tensor):
            refuse_sparse(value, name)


def without_communication() -> AbstractContextManager[None]:
    """Refuse the operators of process groups, from whatever code, while something is traced."""
    tracing: Any = get_proxy_mode()
    assert tracing is not None
    native = tracing.__torch_dispatch__

    def dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "namespace", "") == "c10d":
            _refuse(str(func))
        return native(func, types, args, kwargs or {})

    return replaced([(tracing, "__torch_dispatch__", dispatch)])


def _talks(function: Any) -> bool:
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        return False
    home = module_of(function)
    if home == _COLLECTIVES:
        return not function.__name__.startswith(_ASKING)
    return any(home == each or home.startswith(f"{each}.") for each in _TALKING)


def _refuse(what: str) -> None:
    raise CommunicationError(
        f"{what} talks with other processes, which a program can't",
        hint="capture what is between two such calls, or call torch.distributed._functional_collectives; to_static runs"
        " such a function as it is",
        location=location_of(users_frame()),
    )
