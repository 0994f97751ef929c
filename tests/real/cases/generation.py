"""Whole generation loops, ``generate`` as a user calls it: a prompt of any length, a cache, stop tokens."""

from __future__ import annotations

from tests.real.case import Given, case
from tests.real.data import frozen, randint

WORDS = {"vocab_size": 30, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
# Two heads share one head of keys and values.
SIZES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


def greedy(net):
    """Prompts of several lengths, with the mask that a tokenizer gives."""

    def model(ids):
        return net.generate(ids, attention_mask=ids.new_ones(ids.shape), max_new_tokens=6, do_sample=False)

    return Given(model, [(randint(3, 30, 1, length, seed=length),) for length in (5, 7, 3, 9)])


@case("transformers", "GenerationMixin.generate (greedy, of GPT-2)", "prompts of several lengths")
def transformers_generate_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return greedy(
        frozen(GPT2LMHeadModel(GPT2Config(n_positions=64, n_embd=16, n_layer=1, n_head=2, **WORDS)), scale=4.0)
    )


@case("transformers", "GenerationMixin.generate (greedy, of Llama)", "the same, with keys that heads share")
def transformers_generate_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return greedy(frozen(LlamaForCausalLM(LlamaConfig(**SIZES, **WORDS)), scale=4.0))


@case("transformers", "GenerationMixin.generate (greedy, of Qwen2)", "the same")
def transformers_generate_qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return greedy(frozen(Qwen2ForCausalLM(Qwen2Config(**SIZES, **WORDS)), scale=4.0))


@case("transformers", "GenerationMixin.generate (greedy, of Gemma)", "the same")
def transformers_generate_gemma():
    from transformers import GemmaConfig, GemmaForCausalLM

    return greedy(frozen(GemmaForCausalLM(GemmaConfig(head_dim=8, **SIZES, **WORDS)), scale=4.0))


@case("transformers", "GenerationMixin.generate (greedy, of Mistral)", "the same, with a window that slides")
def transformers_generate_mistral():
    from transformers import MistralConfig, MistralForCausalLM

    return greedy(frozen(MistralForCausalLM(MistralConfig(**SIZES, **WORDS)), scale=4.0))


@case("transformers", "GenerationMixin.generate (greedy, of T5)", "an encoder, and a decoder with two caches")
def transformers_generate_t5():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    ends = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    return greedy(frozen(T5ForConditionalGeneration(T5Config(vocab_size=30, **sizes, **ends)), scale=4.0))
