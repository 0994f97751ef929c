"""What two processes run for test_distributed.py: five steps of training, eager and static, spread in several ways."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import dy2st

PROCESSES = 2
STEPS = 5
SIZE = 8
# Warnings of torch 2.13 about itself, which nothing of ours can avoid.
OF_TORCH = (
    # A collective in place is not differentiable; eager goes on as if it did nothing.
    ("c10d::.*an autograd kernel was not registered", UserWarning),
    ("FSDP will not all-gather", UserWarning),
    (".*FullyShardedDataParallel.*", FutureWarning),
)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(SIZE, 2 * SIZE)
        self.second = nn.Linear(2 * SIZE, SIZE)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        h = torch.relu(h) if x.mean() > 0 else torch.tanh(h)
        y = self.second(h)
        while y.abs().sum() > 4:
            y = y * 0.7
        return y


@dy2st.to_static
class StaticBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


class Net(nn.Module):
    def __init__(self, block: type[Block] = Block) -> None:
        super().__init__()
        self.one, self.two = block(), block()

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x))


def static_net() -> nn.Module:
    return dy2st.to_static(Net())


def static_children() -> nn.Module:
    net = Net()
    net.one, net.two = dy2st.to_static(net.one), dy2st.to_static(net.two)
    return net


def static_class() -> nn.Module:
    return Net(StaticBlock)


MODELS = {"eager": Net, "module": static_net, "children": static_children, "class": static_class}


# ---- ways to spread a model


def replicated(make: Callable[[], nn.Module]) -> nn.Module:
    return DistributedDataParallel(make())


def replicated_then_static(make: Callable[[], nn.Module]) -> nn.Module:
    spread = DistributedDataParallel(Net())
    return spread if make is Net else dy2st.to_static(spread)


def sharded(make: Callable[[], nn.Module]) -> nn.Module:
    return fully_shard(make(), mesh=init_device_mesh("cpu", (PROCESSES,)))


def sharded_by_block(make: Callable[[], nn.Module]) -> nn.Module:
    net, mesh = make(), init_device_mesh("cpu", (PROCESSES,))
    for block in (net.one, net.two):
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def sharded_flat(make: Callable[[], nn.Module]) -> nn.Module:
    return FullyShardedDataParallel(make(), device_id=torch.device("cpu"), use_orig_params=True)


def tensor_parallel(make: Callable[[], nn.Module]) -> nn.Module:
    plan = {}
    for block in ("one", "two"):
        plan |= {f"{block}.first": ColwiseParallel(), f"{block}.second": RowwiseParallel()}
    return parallelize_module(make(), init_device_mesh("cpu", (PROCESSES,)), plan)


def trained(net: nn.Module, rank: int) -> dict[str, Any]:
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.05)
    losses, gradients = [], []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = (net(batch(step, rank)) - 1).square().mean()
        loss.backward()
        gradients += [whole(parameter.grad) for parameter in net.parameters() if parameter.grad is not None]
        optimiser.step()
        losses.append(loss.detach())
    return told(net, losses, gradients)


def pipelined(make: Callable[[], nn.Module], rank: int) -> dict[str, Any]:
    net = make()
    stage = net.get_submodule("one" if rank == 0 else "two")
    if make is static_net:
        stage = dy2st.to_static(stage)
    schedule = ScheduleGPipe(PipelineStage(stage, rank, PROCESSES, torch.device("cpu")), 2, loss_fn=loss_of)
    optimiser = torch.optim.AdamW(stage.parameters(), lr=0.05)
    losses: list[Tensor] = []
    gradients = []
    for step in range(STEPS):
        optimiser.zero_grad()
        if rank == 0:
            schedule.step(batch(step, 0))
        else:
            schedule.step(target=torch.ones(4, SIZE), losses=(found := []))
            losses += [loss.detach() for loss in found]
        gradients += [whole(parameter.grad) for parameter in stage.parameters()]
        optimiser.step()
    return told(stage, losses, gradients)


def loss_of(y: Tensor, target: Tensor) -> Tensor:
    return (y - target).square().mean()


def batch(step: int, rank: int) -> Tensor:
    generator = torch.Generator().manual_seed(10 * step + rank)
    return torch.randn(4, SIZE, generator=generator)


def whole(tensor: Any) -> Tensor:
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().clone()


def told(net: nn.Module, losses: list[Tensor], gradients: list[Tensor]) -> dict[str, Any]:
    caches = [each.forward.cache_info() for each in net.modules() if hasattr(each.forward, "cache_info")]
    return {
        "losses": losses,
        "gradients": gradients,
        "weights": [whole(parameter) for parameter in net.parameters()],
        "programs": [tuple(info) for info in caches],
    }


# ---- functions that talk


def reduced(x: Tensor) -> Tensor:
    y = x * 2 if x.sum() > 0 else x
    dist.all_reduce(y)
    return y * x


def sent(x: Tensor) -> Tensor:
    y = x * 3 if x.sum() > 0 else x * 2
    if dist.get_rank() == 0:
        dist.send(y, 1)
    else:
        dist.recv(y, 0)
    return y * x


@dy2st.not_to_static
def hidden(x: Tensor) -> Tensor:
    y = x * 1
    dist.broadcast(y, 0)
    return y


def broadcast(x: Tensor) -> Tensor:
    return hidden(x * 2) * x if x.sum() > 0 else x


def by_rank(x: Tensor) -> Tensor:
    y = x * (dist.get_rank() + 1)
    return y if x.sum() > 0 else y / dist.get_world_size()


TALKING = (reduced, sent, broadcast, by_rank)


def talked(function: Callable[[Tensor], Tensor], rank: int) -> dict[str, Any]:
    losses, gradients = [], []
    for step in range(3):
        x = (torch.arange(3.0) + rank + step).requires_grad_()
        y = function(x)
        losses.append(y.detach())
        gradients += torch.autograd.grad(y.sum(), x)
    programs = [tuple(function.cache_info())] if hasattr(function, "cache_info") else []
    return {"losses": losses, "gradients": gradients, "weights": [], "programs": programs}


# ---- the processes


def results(way: str, rank: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if way == "talking":
        for function in TALKING:
            name = function.__name__
            yield f"eager {name}", talked(function, rank)
            yield f"static {name}", talked(dy2st.to_static(copy.copy(function)), rank)
        return
    for name, make in MODELS.items():
        if way == "replicated_then_static" and name not in ("eager", "module"):
            continue
        torch.manual_seed(0)
        yield name, pipelined(make, rank) if way == "pipelined" else trained(globals()[way](make), rank)


def work(rank: int, way: str, folder: str) -> None:
    warnings.simplefilter("error")
    for message, kind in OF_TORCH:
        warnings.filterwarnings("ignore", message=message, category=kind)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=PROCESSES)
    try:
        torch.save(dict(results(way, rank)), Path(folder) / f"{rank}.pt")
        dist.barrier()
    finally:
        dist.destroy_process_group()
