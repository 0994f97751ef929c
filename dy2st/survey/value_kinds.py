"""What an expression may hold, as far as the source tells: the tables of what torch's names give."""

from __future__ import annotations

import enum


class Kind(enum.IntEnum):
    """From what decides nothing to what decides when the graph runs; the join of two is the greater one."""

    PLAIN = 0  # known while the graph is made: an option, a shape, a module
    HOLDS = 1  # a container of Python's in which tensors are
    NUMBER = 2  # a Python number or bool that was made of a tensor's values
    TENSOR = 3


# Attributes and methods of tensors that tell nothing of their values.
OF_THE_FORM = frozenset(
    "shape ndim dtype device layout requires_grad is_cuda is_leaf names grad_fn itemsize nbytes is_sparse "
    "is_quantized size dim numel nelement stride type is_floating_point is_complex is_contiguous get_device "
    "element_size data_ptr ndimension storage_offset is_pinned is_shared type_as_string has_names".split()
)
TO_NUMBERS = frozenset("item tolist __int__ __float__ __bool__ __len__".split())
# What only tensors have among what code asks of a value: a name of which this is asked holds one.
ONLY_TENSORS = frozenset(
    "unsqueeze squeeze detach cpu cuda numpy view reshape permute transpose contiguous expand expand_as new_zeros "
    "new_ones new_empty new_tensor new_full masked_fill masked_fill_ scatter_ gather index_select argmax argmin "
    "amax amin softmax sigmoid log_softmax clamp clamp_ float long double half bool int flatten unflatten "
    "repeat_interleave cumsum nonzero requires_grad_ zero_ fill_ add_ mul_ sub_ div_ copy_ item tolist dim numel "
    "ndim dtype device mT matmul bmm mean std norm isnan isinf isfinite t T topk chunk narrow roll tril triu".split()
)
# Functions of torch that answer something else than a tensor; those that ask or set something begin so.
NO_TENSOR = frozenset(
    "device dtype Size finfo iinfo no_grad enable_grad inference_mode autocast manual_seed promote_types "
    "result_type can_cast device_count save load numel compile script export checkpoint synchronize "
    "current_device memory_allocated are_deterministic_algorithms_enabled".split()
)
ASKING = ("is_", "get_", "set_", "has_", "use_", "register_", "_check")
# Functions of torch that make a tensor of something else.
FACTORIES = frozenset("tensor as_tensor zeros ones full arange empty from_numpy rand randn eye linspace".split())
# Methods by which a container takes in what it is given.
GATHERS = frozenset("append extend insert add update appendleft setdefault".split())
# Functions and methods that give several tensors.
SEVERAL = frozenset("chunk split unbind tensor_split hsplit vsplit dsplit meshgrid broadcast_tensors".split())


def gives_no_tensor(name: str) -> bool:
    """Whether a function of torch, by the last part of its name, gives something else than tensors."""
    return name in NO_TENSOR or name.startswith(ASKING) or name[:1].isupper()


# Builtins that make a number of what they are given, and those whose answer says nothing of a tensor's values.
MAKES_NUMBERS = frozenset("int float bool abs round sum max min pow divmod complex any all".split())
ASKS_FORM = frozenset(
    "len isinstance issubclass hasattr getattr type callable id repr str format print super vars dir hash".split()
)
KEEPS = frozenset("list tuple sorted reversed enumerate zip map filter iter next set frozenset".split())
# Classes of annotations that are no tensors.
PLAIN_TYPES = frozenset(
    "int float bool str bytes None Callable type device dtype Module Optimizer Path slice Any Size Generator".split()
)
