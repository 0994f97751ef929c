"""Whole generation loops, ``generate`` as a user calls it: a prompt of any length, a cache, stop tokens."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import frozen, rand, randint, randn

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


ENDS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "decoder_start_token_id": 2}
# Of models with an encoder and a decoder, one layer each.
BOTH = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
}


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return frozen(LlamaForCausalLM(LlamaConfig(**SIZES, **WORDS)), scale=4.0)


@case("transformers", "GenerationMixin.generate (greedy, of BART)", "the last token is forced, and the first")
def transformers_generate_bart():
    from transformers import BartConfig, BartForConditionalGeneration

    ends = {**ENDS, "forced_bos_token_id": 0, "forced_eos_token_id": 1}
    config = BartConfig(vocab_size=30, max_position_embeddings=64, **BOTH, **ends)
    return greedy(frozen(BartForConditionalGeneration(config), scale=4.0))


@case("transformers", "GenerationMixin.generate (greedy, of Marian)", "sinusoidal positions, words that are never said")
def transformers_generate_marian():
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(vocab_size=30, max_position_embeddings=64, bad_words_ids=[[2]], **BOTH, **ENDS)
    return greedy(frozen(MarianMTModel(config), scale=4.0))


@case("transformers", "WhisperForConditionalGeneration.generate", "speech of several kinds, tokens that are suppressed")
def transformers_generate_whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=30,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=32,
        suppress_tokens=[5],
        begin_suppress_tokens=[7],
        **BOTH,
        **ENDS,
    )
    net = frozen(WhisperForConditionalGeneration(config), scale=4.0)

    def model(features):
        return net.generate(features, max_new_tokens=6, do_sample=False)

    return Given(model, [(randn(1, 8, 40, seed=seed),) for seed in (1, 2, 3)])


@case("transformers", "LlavaForConditionalGeneration.generate", "an image, whose features stand in the prompt")
def transformers_generate_llava():
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
    seen = CLIPVisionConfig(image_size=8, patch_size=4, projection_dim=16, **sizes)
    config = LlavaConfig(vision_config=seen, text_config=LlamaConfig(**SIZES, **WORDS), image_token_index=29)
    net = frozen(LlavaForConditionalGeneration(config), scale=4.0)

    def model(ids, pixels):
        ones = ids.new_ones(ids.shape)
        return net.generate(input_ids=ids, pixel_values=pixels, attention_mask=ones, max_new_tokens=5, do_sample=False)

    def prompt(length):
        return torch.cat([torch.full((1, 4), 29), randint(3, 29, 1, length, seed=length)], 1)

    return Given(model, [(prompt(length), rand(1, 3, 8, 8, seed=length)) for length in (3, 5, 7)])


@case("transformers", "GenerationMixin.generate (prompts that are padded)", "a mask with zeros at the left")
def transformers_generate_padded():
    net = llama()

    def model(ids, mask):
        return net.generate(ids, attention_mask=mask, max_new_tokens=6, do_sample=False)

    def padded(*lengths, seed):
        width = max(lengths)
        mask = torch.tensor([[0] * (width - each) + [1] * each for each in lengths])
        return randint(3, 30, len(lengths), width, seed=seed) * mask + (1 - mask), mask

    return Given(model, [padded(5, 3, seed=1), padded(2, 7, seed=2), padded(4, 4, seed=3)])


@case("transformers", "GenerationMixin.generate (eos_token_id of several)", "either of some tokens ends it")
def transformers_generate_stop_tokens():
    net = llama()

    def model(ids):
        ones = ids.new_ones(ids.shape)
        return net.generate(
            ids, attention_mask=ones, max_new_tokens=12, do_sample=False, eos_token_id=list(range(1, 9))
        )

    return Given(model, [(randint(3, 30, 1, length, seed=length),) for length in (5, 7, 3, 9)])


@case("transformers", "GenerationMixin.generate (cache_implementation='static')", "a cache of one size")
def transformers_generate_static_cache():
    net = llama()

    def model(ids):
        ones = ids.new_ones(ids.shape)
        return net.generate(ids, attention_mask=ones, max_new_tokens=6, do_sample=False, cache_implementation="static")

    return Given(model, [(randint(3, 30, 1, length, seed=length),) for length in (5, 7, 3)])


@case("transformers", "GenerationMixin.generate (temperature, top_k, top_p; given noise)", "sampling by Gumbel's trick")
def transformers_generate_sampled():
    from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    net = llama()

    def model(ids, noise):
        def with_noise(tokens, scores):
            return scores + noise[tokens.shape[1] - ids.shape[1]]

        warpers = [TemperatureLogitsWarper(0.7), TopKLogitsWarper(9), TopPLogitsWarper(0.9), with_noise]
        ones = ids.new_ones(ids.shape)
        return net.generate(
            ids,
            attention_mask=ones,
            max_new_tokens=6,
            do_sample=False,
            logits_processor=LogitsProcessorList(warpers),
        )

    def gumbel(seed):
        return -(-rand(6, 30, seed=seed).clamp(1e-6, 1 - 1e-6).log()).log()

    return Given(model, [(randint(3, 30, 1, length, seed=length), gumbel(length)) for length in (5, 7, 3)])


@case("transformers", "GenerationMixin.generate (num_beams=2, of T5)", "beams over an encoder's states")
def transformers_generate_t5_beams():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    ends = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    net = frozen(T5ForConditionalGeneration(T5Config(vocab_size=30, **sizes, **ends)), scale=4.0)

    def model(ids):
        ones = ids.new_ones(ids.shape)
        return net.generate(ids, attention_mask=ones, max_new_tokens=5, num_beams=2, do_sample=False)

    return Given(model, [(randint(3, 30, 1, length, seed=length),) for length in (5, 7, 3)])


@case("transformers", "SpeechT5ForTextToSpeech.generate_speech", "frames until the model says stop")
def transformers_speecht5():
    from transformers import SpeechT5Config, SpeechT5ForTextToSpeech

    config = SpeechT5Config(
        vocab_size=20,
        hidden_size=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        num_mel_bins=8,
        speech_decoder_prenet_units=8,
        speech_decoder_prenet_dropout=0.0,
        speech_decoder_postnet_layers=2,
        speech_decoder_postnet_units=8,
        speaker_embedding_dim=8,
        max_speech_positions=64,
        max_text_positions=32,
        positional_dropout=0.0,
    )
    net = frozen(SpeechT5ForTextToSpeech(config), scale=3.0)

    def model(ids, speaker):
        return net.generate_speech(ids, speaker_embeddings=speaker, threshold=0.7, maxlenratio=4.0)

    return Given(model, [(randint(4, 20, 1, length, seed=length), randn(1, 8, seed=length)) for length in (5, 7, 4)])


def small_whisper():
    """OpenAI's model of one layer, with the words that its tokenizer has."""
    from whisper.model import ModelDimensions, Whisper

    return frozen(Whisper(ModelDimensions(8, 10, 8, 2, 1, 51865, 64, 8, 2, 1)), scale=4.0)


def whisper_decoding(**options):
    from whisper.decoding import DecodingOptions, DecodingTask

    task = DecodingTask(small_whisper(), DecodingOptions(language="en", sample_len=8, fp16=False, **options))

    def model(mel):
        task.decoder.reset()
        features = task._get_audio_features(mel)
        first = torch.tensor([task.initial_tokens]).repeat_interleave(task.n_group, dim=0)
        return task._main_loop(features, first)[:2]

    return Given(model, [(randn(1, 8, 20, seed=seed),) for seed in (1, 2, 3)])


@case("openai-whisper", "whisper.decoding.DecodingTask (greedy)", "its main loop, with filters and a cache in hooks")
def whisper_decoding_greedy():
    return whisper_decoding()


@case("openai-whisper", "whisper.decoding.DecodingTask (beam_size=2)", "sequences as keys of dicts, sorted by score")
def whisper_decoding_beams():
    return whisper_decoding(beam_size=2)


@case("espnet", "espnet.nets.pytorch_backend.tacotron2.decoder.Decoder.inference", "frames until one is the last")
def espnet_tacotron2():
    from espnet.nets.pytorch_backend.rnn.attentions import AttLoc
    from espnet.nets.pytorch_backend.tacotron2.decoder import Decoder

    attention = AttLoc(6, 8, 5, 2, 2)
    sizes = {"dunits": 8, "prenet_layers": 0, "postnet_layers": 2, "postnet_chans": 4, "dropout_rate": 0.0}
    net = frozen(Decoder(6, 4, attention, **sizes), scale=2.0)

    def model(states):
        return net.inference(states, threshold=0.55, maxlenratio=2.0)

    return Given(model, [(randn(length, 6, seed=length),) for length in (5, 7, 4)])


def transducer(**options):
    from espnet2.asr.decoder.transducer_decoder import TransducerDecoder
    from espnet2.asr.transducer.beam_search_transducer import BeamSearchTransducer
    from espnet2.asr_transducer.joint_network import JointNetwork

    decoder = frozen(TransducerDecoder(6, hidden_size=8, embed_pad=0), scale=3.0)
    joint = frozen(JointNetwork(6, 4, 8, joint_space_size=8), scale=3.0)
    search = BeamSearchTransducer(decoder, joint, **options)

    def model(encoded):
        best = search(encoded)[0]
        return torch.tensor(best.yseq), best.score

    return Given(model, [(randn(length, 4, seed=length),) for length in (4, 6, 5)])


@case("espnet", "espnet2.asr.transducer.BeamSearchTransducer (greedy)", "a token or none for each frame")
def espnet_transducer_greedy():
    return transducer(beam_size=1)


@case("espnet", "espnet2.asr.transducer.BeamSearchTransducer (beam_size=2)", "hypotheses in lists, two loops")
def espnet_transducer_beams():
    return transducer(beam_size=2)


@case("espnet", "espnet.nets.ctc_prefix_score.CTCPrefixScoreTH", "prefixes scored by CTC, in beams")
def espnet_ctc_prefixes():
    from espnet.nets.ctc_prefix_score import CTCPrefixScoreTH

    def model(logits):
        scorer = CTCPrefixScoreTH(logits.log_softmax(-1), torch.tensor([logits.shape[1]]), 0, 4)
        prefixes, state, total = torch.full((2, 1), 4), None, torch.zeros(2)
        for _ in range(3):
            scores, new = scorer(list(prefixes), state)
            best, places = (total[:, None] + scores).flatten().topk(2)
            state = scorer.index_select_state(new, places[None])
            prefixes = torch.cat([prefixes[places // 5], (places % 5)[:, None]], 1)
            total = best - best.max()
        return prefixes, total

    return Given(model, [(randn(1, 6, 5, seed=seed, scale=2.0),) for seed in (1, 2, 3)])
