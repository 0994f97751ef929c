"""``python -m tests.real.generation_speed``: whole generation loops against their step in a Python loop.

The loop is ``generate`` as one ONNX file on onnxruntime. The step is a file, too: a token and the cache go in, the
next token and the cache come out, and Python calls it for each token, those of the prompt included. Both give the same
tokens, which is asserted. A row says how long each takes for a prompt, and how many times as fast the one file is.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import onnxruntime
import torch
from torch import Tensor, nn

import dy2st
from tests.real.cases.generation import SIZES, WORDS
from tests.real.data import frozen, randint

PROMPT = 5


class Step(nn.Module):
    """The next token of a model with one layer, and its keys and values: [batch, heads, length, size]."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """One step behind a cache, which may be empty."""
        from transformers import DynamicCache

        cache = DynamicCache()
        cache.update(keys, values, 0)
        places = torch.arange(keys.shape[2], keys.shape[2] + ids.shape[1])[None]
        found = self.net(input_ids=ids, past_key_values=cache, position_ids=places, use_cache=True)
        return found.logits[:, -1:].argmax(-1), cache.layers[0].keys, cache.layers[0].values


def nets() -> dict[str, nn.Module]:
    """Small decoders that never say their last word, so that both sides make as many tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    words = {**WORDS, "eos_token_id": 29}
    return {
        "GPT-2": GPT2LMHeadModel(GPT2Config(n_positions=256, n_embd=64, n_layer=1, n_head=2, **words)),
        "Llama": LlamaForCausalLM(LlamaConfig(**{**SIZES, "hidden_size": 64, "max_position_embeddings": 256}, **words)),
    }


def milliseconds(run: object, repeats: int = 5) -> float:
    """The least time that a call takes."""
    found = []
    for _ in range(repeats):
        begun = time.perf_counter()
        run()  # type: ignore[operator]
        found.append(time.perf_counter() - begun)
    return 1000 * min(found)


def row(name: str, net: nn.Module, tokens: int, folder: Path) -> str:
    """One model: both files, and how long they take."""
    frozen(net, scale=4.0)

    def whole(ids: Tensor) -> Tensor:
        ones = ids.new_ones(ids.shape)
        return net.generate(  # type: ignore[operator, no-any-return]
            ids, attention_mask=ones, min_new_tokens=tokens, max_new_tokens=tokens, do_sample=False
        )

    step, ids = Step(net), randint(3, 29, 1, PROMPT)
    with torch.no_grad():
        shape = cache_shape(net)
        past = torch.zeros(*shape[:2], 3, shape[3])
        dynamic = torch.export.Dim.DYNAMIC
        dy2st.onnx.export(whole, (ids,), folder / "whole.onnx", dynamic_shapes=({1: dynamic},))
        dy2st.onnx.export(
            step, (ids[:, :1], past, past), folder / "step.onnx", dynamic_shapes=({}, {2: dynamic}, {2: dynamic})
        )
    loop, single = (onnxruntime.InferenceSession(folder / f"{each}.onnx") for each in ("whole", "step"))
    names, prompt = [each.name for each in single.get_inputs()], ids.numpy()

    def by_steps() -> list[int]:
        state = [prompt[:, :1], past[:, :, :0].numpy(), past[:, :, :0].numpy()]
        made = []
        for number in range(1, PROMPT + tokens):
            state = single.run(None, dict(zip(names, state, strict=True)))
            if number < PROMPT:
                state[0] = prompt[:, number : number + 1]
            else:
                made.append(int(state[0][0, 0]))
        return made

    def at_once() -> list[int]:
        return loop.run(None, {loop.get_inputs()[0].name: prompt})[0][0, PROMPT:].tolist()  # type: ignore[no-any-return]

    assert by_steps() == at_once(), (by_steps(), at_once())
    apart, together = milliseconds(by_steps), milliseconds(at_once)
    return f"| {name} | {tokens} | {together:.1f} | {apart:.1f} | {apart / together:.2f} |"


def cache_shape(net: nn.Module) -> tuple[int, int, int, int]:
    """Of the keys that the model keeps for one token."""
    found = net(input_ids=torch.zeros(1, 1, dtype=torch.int64), use_cache=True).past_key_values
    return tuple(found.layers[0].keys.shape)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.generation_speed", description=__doc__)
    parser.add_argument("--tokens", type=int, default=64, help="how many each makes (64)")
    asked = parser.parse_args()
    print("| model | tokens | one file, ms | step in Python, ms | ratio |\n|--|--|--|--|--|")  # noqa: T201 - a command
    for name, net in nets().items():
        with tempfile.TemporaryDirectory() as folder:
            print(row(name, net, asked.tokens, Path(folder)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
