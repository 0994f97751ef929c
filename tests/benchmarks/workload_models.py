"""The models of ``workloads.py``, as a user of PyTorch writes them, with the inputs they are timed on.

All are small enough that what a runtime does around the arithmetic counts, and large enough that the arithmetic does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

BATCH, WIDTH = 4, 64


@dataclass
class Workload:
    """A model, the inputs of its timed call, and which of their sizes may change."""

    name: str
    model: nn.Module
    args: tuple[Tensor, ...]
    dynamic_shapes: tuple[Any, ...]
    more: list[tuple[Tensor, ...]] = field(default_factory=list)  # other inputs on which all have to be equal


class GRUDecoder(nn.Module):
    """``[time, batch, inputs]`` and lengths to the state after every step, zero behind the end, and the last one."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(x.shape[1], self.cell.hidden_size)
        out = []
        for t in range(x.shape[0]):
            alive = (t < lengths).unsqueeze(1)
            h = torch.where(alive, self.cell(x[t], h), h)
            out.append(h * alive)
        return torch.stack(out), h


class LSTMDecoder(nn.Module):
    """The same with two states."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(width, width)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = torch.zeros(x.shape[1], self.cell.hidden_size)
        c = torch.zeros(x.shape[1], self.cell.hidden_size)
        out = []
        for t in range(x.shape[0]):
            alive = (t < lengths).unsqueeze(1)
            new_h, new_c = self.cell(x[t], (h, c))
            h, c = torch.where(alive, new_h, h), torch.where(alive, new_c, c)
            out.append(h * alive)
        return torch.stack(out), h, c


class GRUByHand(nn.Module):
    """The equations of a gated recurrent unit, a product of matrices for each of their terms.

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014.
    """

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.w = nn.ParameterList(nn.Parameter(torch.randn(width, width) / width**0.5) for _ in range(3))
        self.u = nn.ParameterList(nn.Parameter(torch.randn(width, width) / width**0.5) for _ in range(3))
        self.b = nn.ParameterList(nn.Parameter(torch.randn(width) / 4) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros_like(x[0])
        out = torch.zeros_like(x)
        for t in range(x.shape[0]):
            r = torch.sigmoid(x[t] @ self.w[0] + h @ self.u[0] + self.b[0])
            z = torch.sigmoid(x[t] @ self.w[1] + h @ self.u[1] + self.b[1])
            n = torch.tanh(x[t] @ self.w[2] + (r * h) @ self.u[2] + self.b[2])
            h = (1 - z) * n + z * h
            out[t] = h
        return out, h


class DecoderLayer(nn.Module):
    """Pre-norm self-attention of one new token with all before it, and a feed-forward network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        qkv = self.qkv(self.norm1(x)).view(x.shape[0], 1, 3, self.heads, self.head_width).permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([keys, qkv[1]], 2), torch.cat([values, qkv[2]], 2)
        weights = (qkv[0] @ keys.transpose(-1, -2) / self.head_width**0.5).softmax(-1)
        x = x + self.merge((weights @ values).transpose(1, 2).reshape(x.shape[0], 1, self.heads * self.head_width))
        return x + self.shrink(torch.relu(self.grow(self.norm2(x)))), keys, values


class GreedyDecoder(nn.Module):
    """First tokens ``[batch]`` to the sequences they begin, until each has had an end token."""

    def __init__(self, tokens: int, vocabulary: int = 50, width: int = WIDTH, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.end, self.limit = 1, 2 * tokens
        self.heads, self.head_width = heads, width // heads
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(self.limit, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        # What is added to the scores at each place: no end before the last one wanted, and nothing else there.
        forced = torch.zeros(self.limit, vocabulary)
        forced[: tokens - 1, self.end] = -1000.0
        forced[tokens - 1, self.end] = 1000.0
        self.forced: Tensor
        self.register_buffer("forced", forced)

    def forward(self, first: Tensor) -> Tensor:
        empty = torch.zeros(first.shape[0], self.heads, 0, self.head_width)
        keys = [empty for _ in self.layers]
        values = [empty for _ in self.layers]
        token, ids = first, first[:, None]
        finished = torch.zeros(first.shape[0], dtype=torch.bool)
        step = 0
        while step < self.limit and not bool(finished.all()):
            x = (self.tokens(token) + self.positions.weight[step])[:, None]
            for i, layer in enumerate(self.layers):
                x, keys[i], values[i] = layer(x, keys[i], values[i])
            scores = self.out(self.norm(x[:, 0])) + self.forced[step]
            token = torch.where(finished, torch.full_like(token, self.end), scores.argmax(-1))
            ids = torch.cat([ids, token[:, None]], 1)
            finished = finished | (token == self.end)
            step += 1
        return ids


class BeamSearch(nn.Module):
    """Source token ids ``[length]`` to the best hypothesis and its score, as in ``samples/beam_search.py``."""

    def __init__(self, vocabulary: int = 200, width: int = WIDTH, beams: int = 4, steps: int = 40) -> None:
        super().__init__()
        self.vocabulary, self.beams, self.steps, self.begin, self.end = vocabulary, beams, steps, 0, 1
        self.embedding = nn.Embedding(vocabulary, width)
        self.encode, self.cell = nn.Linear(width, width), nn.GRUCell(width, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(self.encode(self.embedding(source))).sum(0).expand(self.beams, -1)
        hypotheses = torch.full((self.beams, 1), self.begin)
        scores = torch.full((self.beams,), float("-inf"))
        scores[0] = 0.0
        finished = torch.zeros(self.beams, dtype=torch.bool)
        length = torch.zeros(self.beams)
        only_end = torch.full((self.vocabulary,), float("-inf"))
        only_end[self.end] = 0.0
        while hypotheses.shape[1] <= self.steps:
            h = self.cell(self.embedding(hypotheses[:, -1]), h)
            log_probs = torch.where(finished[:, None], only_end, self.out(h).log_softmax(-1))
            scores, index = (scores[:, None] + log_probs).flatten().topk(self.beams)
            parent, token = index // self.vocabulary, index % self.vocabulary
            h = h[parent]
            hypotheses = torch.cat([hypotheses[parent], token[:, None]], 1)
            length = length[parent] + (~finished[parent]).float()
            finished = finished[parent] | (token == self.end)
            if bool(finished.all()):
                break
        normalised = scores / ((5 + length) / 6) ** 0.6
        best = normalised.argmax()
        return hypotheses[best], normalised[best]


class NonMaximumSuppression(nn.Module):
    """Boxes ``[n, 4]`` (two corners) and scores ``[n]`` to the indices of those that are kept, best first."""

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        order = scores.argsort(descending=True)
        kept = []
        while order.numel() > 0:
            best, rest = order[0], order[1:]
            kept.append(best)
            low = torch.maximum(boxes[best, :2], boxes[rest, :2])
            high = torch.minimum(boxes[best, 2:], boxes[rest, 2:])
            common = (high - low).clamp(min=0).prod(1)
            overlap = common / (areas[best] + areas[rest] - common)
            order = rest[overlap <= self.threshold]
        return torch.stack(kept)


# Dormand, Prince, "A family of embedded Runge-Kutta formulae", 1980: what each stage takes of those before it, and the
# difference between the formulas of orders 5 (the last row of STAGES) and 4.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class NeuralODE(nn.Module):
    """``y' = f(y)`` with a small network, from 0 to ``end``, by steps that are as long as the error allows."""

    def __init__(self, width: int = 8, hidden: int = 32, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.rtol, self.atol = rtol, atol

    def field(self, y: Tensor) -> Tensor:
        found: Tensor = self.second(torch.tanh(self.first(y)))
        return found

    def forward(self, y: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        t, h = torch.zeros_like(end), torch.full_like(end, 0.5)
        while end - t > 1e-5:
            h = torch.minimum(h, end - t)
            slopes = [self.field(y)]
            new = y
            for weights in STAGES:
                change = torch.zeros_like(y)
                for weight, slope in zip(weights, slopes, strict=True):
                    if weight:
                        change = change + weight * slope
                new = y + h * change
                slopes.append(self.field(new))
            error = torch.zeros_like(y)
            for weight, slope in zip(ERROR, slopes, strict=True):
                if weight:
                    error = error + weight * slope
            allowed = self.atol + self.rtol * torch.maximum(y.abs(), new.abs())
            ratio = (h * error / allowed).square().mean().sqrt()
            if ratio <= 1:
                y, t = new, t + h
            h = h * (0.9 * ratio.clamp(min=1e-6) ** -0.2).clamp(0.2, 5.0)
        return y, t


class Newton(nn.Module):
    """Cube roots by Newton's iteration, until all are good to a relative tolerance."""

    def forward(self, a: Tensor) -> tuple[Tensor, int]:
        x = torch.where(a > 1, a, torch.ones_like(a))
        steps = 0
        while bool(((x * x * x - a).abs() > 1e-5 * a).any()):
            x = (2 * x + a / (x * x)) / 3
            steps += 1
        return x, steps


class EarlyExit(nn.Module):
    """Residual layers, until the classifier after one of them is sure of the whole batch."""

    def __init__(self, width: int = WIDTH, layers: int = 8, classes: int = 10, threshold: float = 0.6) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.exit, self.threshold = nn.Linear(width, classes), threshold

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.exit(x)
        for layer in self.layers:
            x = x + torch.relu(layer(x))
            logits = self.exit(x)
            if bool((logits.softmax(-1).amax(-1) > self.threshold).all()):
                break
        return logits


class Viterbi(nn.Module):
    """Emissions ``[time, batch, tags]`` and a mask to the best tags and their score, as in ``samples/viterbi.py``."""

    def __init__(self, tags: int = 16) -> None:
        super().__init__()
        self.start, self.end = nn.Parameter(torch.randn(tags)), nn.Parameter(torch.randn(tags))
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        score = self.start + emissions[0]
        stay = torch.arange(emissions.shape[2])
        history = []
        for t in range(1, emissions.shape[0]):
            best, previous = (score[:, :, None] + self.transitions).max(1)
            here = mask[t][:, None]
            score = torch.where(here, best + emissions[t], score)
            history.append(torch.where(here, previous, stay))
        total, tag = (score + self.end).max(1)
        path = [tag]
        for previous in history[::-1]:
            tag = previous.gather(1, tag[:, None])[:, 0]
            path.append(tag)
        return torch.stack(path).flip(0), total


class ConnectedComponents(nn.Module):
    """Labels ``[n]`` and directed edges ``[2, m]``: each node gets the least label that reaches it."""

    def forward(self, labels: Tensor, edges: Tensor) -> Tensor:
        changed = torch.ones((), dtype=torch.bool)
        while bool(changed):
            new = labels.scatter_reduce(0, edges[1], labels[edges[0]], "amin")
            changed = (new != labels).any()
            labels = new
        return labels


def boxes(count: int) -> tuple[Tensor, Tensor]:
    """Boxes around fewer centres, so that about one in six is kept."""
    centres = torch.rand(count // 8, 2).repeat(8, 1) * 40 + torch.randn(count // 8 * 8, 2) * 0.15
    size = 1.2 + 0.6 * torch.rand(len(centres), 2)
    return torch.cat([centres - size / 2, centres + size / 2], 1), torch.rand(len(centres))


def graph(nodes: int) -> tuple[Tensor, Tensor]:
    """A random graph with many components, each edge in both directions."""
    one = torch.randint(0, nodes, (2, nodes * 7 // 10))
    return torch.arange(nodes), torch.cat([one, one.flip(0)], 1)


def recurrent(steps: int, *, masked: bool) -> tuple[Tensor, ...]:
    """A sequence, and lengths of which the first is the whole."""
    x = torch.randn(steps, BATCH, WIDTH)
    return (x, torch.tensor([steps, *torch.randint(1, steps + 1, (BATCH - 1,)).tolist()])) if masked else (x,)


def workloads(steps: int = 128) -> list[Workload]:
    """All of them; ``steps`` is the length of the sequences."""
    torch.manual_seed(0)
    time, batch, n, m = Dim("time"), Dim("batch"), Dim("n"), Dim("m")
    masked = ({0: time, 1: batch}, {0: batch})
    emissions = torch.randn(steps, BATCH, 16)
    mask = torch.arange(steps)[:, None] < torch.tensor([steps, steps // 2, steps - 5, 3])
    beams = BeamSearch()
    with torch.no_grad():
        beams.out.weight.mul_(4)
        beams.out.bias[beams.end] = -4.0
        ode, layers = NeuralODE(), EarlyExit()
        ode.first.weight.mul_(3)
        ode.second.weight.mul_(3)
        layers.exit.weight.mul_(4)  # sure after three layers
    found = [
        Workload("gru_cell", GRUDecoder(), recurrent(steps, masked=True), masked, [recurrent(7, masked=True)]),
        Workload("lstm_cell", LSTMDecoder(), recurrent(steps, masked=True), masked, [recurrent(7, masked=True)]),
        Workload("gru_by_hand", GRUByHand(), recurrent(steps, masked=False), masked[:1], [recurrent(7, masked=False)]),
        *(
            Workload(f"greedy_{tokens}", GreedyDecoder(tokens), (torch.tensor([3, 7]),), ({0: batch},))
            for tokens in (64, 512)
        ),
        Workload("beam_search", beams, (torch.randint(2, 200, (12,)),), ({0: Dim("length")},)),
        *(
            Workload(f"nms_{count}", NonMaximumSuppression(), boxes(count), ({0: n}, {0: n}), [boxes(40)])
            for count in (500, 2000)
        ),
        Workload("ode_rk45", ode, (torch.randn(16, 8), torch.tensor(10.0)), ({0: batch}, None)),
        Workload("newton", Newton(), (torch.rand(1000) * 1e6 + 1,), ({0: n},), [(torch.ones(3),)]),
        Workload("early_exit", layers, (torch.randn(BATCH, WIDTH),), ({0: batch},)),
        Workload("viterbi", Viterbi(), (emissions, mask), ({0: time, 1: batch}, {0: time, 1: batch})),
        Workload("components", ConnectedComponents(), graph(500), ({0: n}, {1: m}), [graph(10)]),
    ]
    for each in found:
        each.model.eval()
    return found
