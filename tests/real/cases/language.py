"""Language models: decoding until the end token, beams, tagging, caches."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import frozen, randint, randn


def gpt(**more):
    """GPT-2 of one layer, with weights so large that its words differ."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=17, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2, pad_token_id=0
    )
    return frozen(GPT2LMHeadModel(config), scale=4.0), config


def generating(length=8, **more):
    net, _ = gpt()

    def model(ids):
        return net.generate(ids, max_new_tokens=length, **more)

    return Given(model, [(randint(3, 17, 2, 4, seed=seed),) for seed in (0, 1, 5)])


@case("transformers", "GenerationMixin.generate (greedy)", "a while until all sequences have ended, with a cache")
def transformers_greedy():
    return generating(do_sample=False)


@case("transformers", "GenerationMixin.generate (greedy, use_cache=False)", "the same without a cache")
def transformers_greedy_uncached():
    return generating(do_sample=False, use_cache=False)


@case("transformers", "GenerationMixin.generate (num_beams=3)", "beams that are ranked, finished and refilled")
def transformers_beams():
    return generating(6, do_sample=False, num_beams=3)


@case("transformers", "GenerationMixin.generate (repetition_penalty, no_repeat_ngram_size)", "logits are processed")
def transformers_processors():
    return generating(do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=2)


@case("transformers", "RwkvModel, rwkv_linear_attention_cpu", "a for over the length of the sequence")
def transformers_rwkv():
    from transformers import RwkvConfig, RwkvModel

    sizes = {"hidden_size": 16, "attention_hidden_size": 16, "intermediate_size": 16}
    net = frozen(RwkvModel(RwkvConfig(vocab_size=20, context_length=64, num_hidden_layers=2, **sizes)))

    def model(ids):
        return net(ids, use_cache=False).last_hidden_state

    sets = [(randint(0, 20, 1, n, seed=n),) for n in (9, 17, 3)]
    return Given(model, sets, ({1: torch.export.Dim.DYNAMIC},))


@case("transformers", "TopPLogitsWarper", "tokens are kept until their probabilities reach a share")
def transformers_top_p():
    from transformers import TopPLogitsWarper

    warper = TopPLogitsWarper(0.8, min_tokens_to_keep=2)
    return Given(
        warper, [(randint(0, 9, 2, 3), randn(2, 9, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 9.0), (3, 0.0))]
    )


@case("transformers", "NoRepeatNGramLogitsProcessor", "n-grams of the past in a dict of tuples")
def transformers_no_repeat():
    from transformers import NoRepeatNGramLogitsProcessor

    ids = [torch.tensor([[3, 4, 3, 4, 3]]), torch.tensor([[3, 4, 5, 6, 7]]), torch.tensor([[3, 3, 3, 3, 3]])]
    return Given(NoRepeatNGramLogitsProcessor(2), [(each, randn(1, 9)) for each in ids])


@case(
    "transformers", "MinLengthLogitsProcessor, ForcedEOSTokenLogitsProcessor", "what is allowed depends on the length"
)
def transformers_forced_eos():
    from transformers import ForcedEOSTokenLogitsProcessor

    forced = ForcedEOSTokenLogitsProcessor(6, 2)
    return Given(forced, [(randint(3, 9, 1, n, seed=n), randn(1, 9)) for n in (3, 5, 6)])


@case("transformers", "StoppingCriteriaList (EosTokenCriteria)", "which sequences have ended")
def transformers_stopping():
    from transformers import EosTokenCriteria, MaxLengthCriteria, StoppingCriteriaList

    criteria = StoppingCriteriaList([EosTokenCriteria(2), MaxLengthCriteria(6)])
    return Given(criteria, [(randint(1, 4, 3, n, seed=n), randn(3, 9)) for n in (3, 5, 6)])


@case("x-transformers", "AutoregressiveWrapper.generate", "a break when every sequence has its end token")
def xtransformers_generate():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    net = TransformerWrapper(num_tokens=17, max_seq_len=40, attn_layers=layers)
    wrapper = frozen(AutoregressiveWrapper(net, pad_value=0), scale=3.0)

    def model(ids):
        return wrapper.generate(ids, 10, eos_token=2, temperature=0.0, cache_kv=False)

    return Given(model, [(randint(3, 17, 2, 4, seed=seed),) for seed in (0, 7, 1, 4)])


@case("x-transformers", "AutoregressiveWrapper.generate (cache_kv=True)", "the same, with keys and values kept")
def xtransformers_generate_cached():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    net = TransformerWrapper(num_tokens=17, max_seq_len=40, attn_layers=layers)
    wrapper = frozen(AutoregressiveWrapper(net, pad_value=0), scale=3.0)

    def model(ids):
        return wrapper.generate(ids, 6, eos_token=2, temperature=0.0, cache_kv=True)

    return Given(model, [(randint(3, 17, 2, 4, seed=seed),) for seed in (0, 7, 1)])


@case("x-transformers", "AutoregressiveWrapper.beam_search", "beams without sampling, a fixed number of rounds")
def xtransformers_beams():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    net = TransformerWrapper(num_tokens=17, max_seq_len=40, attn_layers=layers)
    wrapper = frozen(AutoregressiveWrapper(net, pad_value=0), scale=3.0)

    def model(ids):
        return wrapper.beam_search(ids, 5, beams=2, stochastic=False)

    return Given(model, [(randint(3, 17, 1, 4, seed=seed),) for seed in (0, 7, 1)])


def tagger():
    from torchcrf import CRF

    tags = CRF(4, batch_first=True)
    with torch.no_grad():
        for number, parameter in enumerate(tags.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=number))
            parameter.requires_grad_(False)
    return tags


@case("pytorch-crf", "torchcrf.CRF.decode", "Viterbi's algorithm, the way back in Python lists")
def torchcrf_decode():
    tags = tagger()

    def model(emissions, mask):
        return torch.tensor(tags.decode(emissions, mask))

    def until(n):
        return torch.arange(7).expand(2, 7) < n

    return Given(model, [(randn(2, 7, 4, seed=n), until(n)) for n in (7, 4, 1)])


@case("pytorch-crf", "torchcrf.CRF.forward", "the forward algorithm over the length of the sequence")
def torchcrf_likelihood():
    tags = tagger()

    def model(emissions, labels):
        return tags(emissions, labels, reduction="none")

    sizes = torch.export.Dim("n", min=2, max=512)
    sets = [(randn(2, n, 4, seed=n), randint(0, 4, 2, n, seed=n)) for n in (6, 13, 2)]
    return Given(model, sets, ({1: sizes}, {1: sizes}))


@case("TorchCRF", "TorchCRF.CRF.viterbi_decode", "another CRF, with a mask and a loop over time")
def torchcrf_other_decode():
    from TorchCRF import CRF

    tags = CRF(4, use_gpu=False)
    frozen(tags)

    def model(emissions, mask):
        return torch.tensor(tags.viterbi_decode(emissions, mask))

    def until(n):
        return torch.arange(6).expand(2, 6) < n

    return Given(model, [(randn(2, 6, 4, seed=n), until(n)) for n in (6, 3, 1)])


@case("entmax", "entmax.sparsemax(k=2)", "calls itself with twice the k on the rows that are not solved")
def entmax_sparsemax():
    import entmax

    x = randn(4, 16, seed=1)
    return Given(lambda x: entmax.sparsemax(x, dim=-1, k=2), [(x,), (x * 20,), (x * 0.05,)])


@case("entmax", "entmax.entmax15(k=2)", "the same of another family")
def entmax_entmax15():
    import entmax

    x = randn(4, 16, seed=1)
    return Given(lambda x: entmax.entmax15(x, dim=-1, k=2), [(x,), (x * 20,), (x * 0.05,)])


@case("entmax", "entmax.entmax_bisect", "a fixed number of halvings")
def entmax_bisect():
    import entmax

    x = randn(4, 8, seed=1)
    return Given(lambda x: entmax.entmax_bisect(x, alpha=1.3, n_iter=20), [(x,), (x * 20,), (x * 0.05,)])


@case("torch", "torch.nn.AdaptiveLogSoftmaxWithLoss.predict", "three ways to return, by where the largest lies")
def torch_adaptive_softmax():
    softmax = frozen(torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 12], div_value=2.0))
    pool = randn(400, 8, seed=1, scale=3.0)
    head = softmax.head(pool).argmax(1)
    short, tail = pool[head < 5], pool[head >= 5]
    return Given(softmax.predict, [(short[:6],), (torch.cat([short[:3], tail[:3]]),), (tail[:6],)])


@case("torch", "torch.nn.AdaptiveLogSoftmaxWithLoss.forward", "a cluster at a time, and only if there are rows for it")
def torch_adaptive_softmax_loss():
    softmax = frozen(torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 12], div_value=2.0))
    sets = [torch.tensor([1, 2, 3, 4]), torch.tensor([1, 7, 3, 15]), torch.tensor([13, 17, 19, 15])]

    def model(x, target):
        found = softmax(x, target)
        return found.output, found.loss

    return Given(model, [(randn(4, 8), each) for each in sets])


@case("torch", "torch.nn.utils.rnn.pad_sequence / pack_padded_sequence, GRU", "lengths that are data")
def torch_packed_gru():
    net = frozen(torch.nn.GRU(3, 4, batch_first=True))

    def model(x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return torch.nn.utils.rnn.pad_packed_sequence(net(packed)[0], batch_first=True, total_length=6)[0]

    return Given(model, [(randn(3, 6, 3), torch.tensor(each)) for each in ([6, 4, 2], [1, 1, 1], [3, 6, 5])])


@case("openai-whisper", "whisper.decoding.GreedyDecoder.update", "sequences that have ended stay so")
def whisper_greedy_decoder():
    from whisper.decoding import GreedyDecoder

    decoder = GreedyDecoder(temperature=0.0, eot=2)

    def model(tokens, logits, sums):
        return decoder.update(tokens, logits, sums.clone())

    return Given(model, [(randint(1, 5, 3, 4, seed=s), randn(3, 9, seed=s), torch.zeros(3)) for s in (1, 2, 3)])


@case("speculative-decoding", "speculative_decoding.base_decoding", "tokens one by one, with a cache, without noise")
def speculative_base_decoding():
    from speculative_decoding import Decoder, base_decoding

    net = frozen(Decoder(num_tokens=17, dim=16, depth=1, heads=2, dim_head=8), scale=3.0)
    sets = [(randint(0, 17, 1, 4, seed=s),) for s in (1, 2, 3)]
    return Given(lambda ids: base_decoding(net, ids, 8, temperature=0.0), sets)
