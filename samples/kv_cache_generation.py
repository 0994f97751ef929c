"""Greedy generation with a key/value cache on a small transformer.

The prompt goes through the decoder once; after that, each new token attends to the keys and values kept from before,
which grow by one position per step. A sequence that has produced the stop token goes on with padding; generation ends
when all have, or at the maximal length.

Source: Vaswani et al., "Attention Is All You Need", 2017; the cache is described by Pope et al., "Efficiently Scaling
Transformer Inference", 2022.

============================================  ===============================================
``while ids.shape[1] < max_length``           1 ``Loop`` (ids, keys and values grow)
``if finished.all(): break``                  1 ``If``
``for`` over the layers                       none: Python, the layers differ
============================================  ===============================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim

Cache = list[tuple[Tensor, Tensor]]


class Layer(nn.Module):
    """Pre-norm self-attention with a cache, and a feed-forward network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, new, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, new, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        start = keys.shape[2]
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)

        position = torch.arange(start, start + new)
        future = torch.arange(start + new) > position[:, None]
        weights = (q @ keys.transpose(-1, -2)) / q.shape[-1] ** 0.5
        weights = weights.masked_fill(future, float("-inf")).softmax(-1)
        x = x + self.merge((weights @ values).transpose(1, 2).reshape(batch, new, width))
        return x + self.mlp(self.norm2(x)), keys, values


class Generator(nn.Module):
    """A prompt ``[batch, length]`` to the prompt with its continuation, padded with the stop token."""

    def __init__(self, vocabulary: int = 11, width: int = 16, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.max_length, self.stop = 14, 3
        self.heads, self.head_width = heads, width // heads
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(self.max_length, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def decode(self, new: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Logits after the last of the new tokens, and the cache with their keys and values."""
        start = cache[0][0].shape[2]
        x = self.tokens(new) + self.positions(torch.arange(start, start + new.shape[1]))
        grown = []
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            x, k, v = layer(x, keys, values)
            grown.append((k, v))
        return self.out(self.norm(x[:, -1])), grown

    def forward(self, prompt: Tensor) -> Tensor:
        empty = self.out.weight.new_empty(prompt.shape[0], self.heads, 0, self.head_width)
        cache = [(empty, empty) for _ in self.layers]
        ids = new = prompt
        finished = torch.zeros(prompt.shape[0], dtype=torch.bool)
        while ids.shape[1] < self.max_length:
            logits, cache = self.decode(new, cache)
            token = logits.argmax(-1).masked_fill(finished, self.stop)
            new = token[:, None]
            ids = torch.cat([ids, new], 1)
            finished = finished | (token == self.stop)
            if finished.all():
                break
        return ids


torch.manual_seed(0)
model = Generator().eval()
dynamic_shapes = ({0: Dim("batch"), 1: Dim("length")},)
control_flow = {"If": 0, "Loop": 1}


def example_inputs() -> list[tuple[Tensor]]:
    """Prompts that stop at once, after some steps and never; one token; nothing left to generate."""
    generator = torch.Generator().manual_seed(4)
    sizes = [(2, 3), (1, 1), (3, 5), (1, 6), (1, 8), (4, 2), (2, 14)]
    return [(torch.randint(0, 11, size, generator=generator),) for size in sizes]
