"""Speech and series: durations that say how long the result is, dynamic time warping."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import frozen, randn


@case(
    "espnet", "espnet.nets.pytorch_backend.fastspeech.length_regulator", "frames are repeated as often as is predicted"
)
def espnet_length_regulator():
    from espnet.nets.pytorch_backend.fastspeech.length_regulator import LengthRegulator

    regulator = LengthRegulator()
    durations = ([[1, 2, 3], [2, 1, 1]], [[0, 0, 0], [0, 0, 0]], [[0, 5, 0], [1, 1, 1]])
    return Given(regulator, [(randn(2, 3, 4), torch.tensor(each)) for each in durations])


@case("espnet", "espnet.nets.pytorch_backend.nets_utils.make_pad_mask", "a mask as long as the longest")
def espnet_pad_mask():
    from espnet.nets.pytorch_backend.nets_utils import make_pad_mask

    return Given(lambda n: make_pad_mask(n), [(torch.tensor(each),) for each in ([3, 5, 2], [1, 1, 1], [7, 2, 4])])  # noqa: PLW0108


@case("espnet", "espnet.nets.pytorch_backend.nets_utils.pad_list / make_non_pad_mask", "what is not padding")
def espnet_non_pad_mask():
    from espnet.nets.pytorch_backend.nets_utils import make_non_pad_mask

    def model(x, n):
        return x.masked_select(make_non_pad_mask(n, x, 1))

    return Given(model, [(randn(3, 7), torch.tensor(each)) for each in ([3, 7, 2], [7, 1, 1], [7, 7, 7])])


@case("espnet", "espnet.nets.pytorch_backend.rnn.attentions.AttLoc", "attention over a sequence with a mask")
def espnet_attention():
    from espnet.nets.pytorch_backend.rnn.attentions import AttLoc

    attention = frozen(AttLoc(4, 3, 5, 2, 2))

    def model(x, state):
        attention.reset()
        return attention(x, [6, 4], state, None)

    return Given(model, [(randn(2, 6, 4, seed=s), randn(2, 3, seed=s)) for s in (1, 2, 3)])


@case("pysdtw", "pysdtw.SoftDTW (CPU)", "a recursion over a matrix, in numba")
def pysdtw_soft():
    import pysdtw

    warping = pysdtw.SoftDTW(gamma=0.5, use_cuda=False)
    return Given(warping, [(randn(1, 5, 2, seed=s), randn(1, 6, 2, seed=s + 1)) for s in (1, 3, 5)])


@case("TorchCRF", "TorchCRF.CRF.forward", "a likelihood over the time, with a mask")
def torchcrf_other_likelihood():
    from TorchCRF import CRF

    tags = frozen(CRF(4, use_gpu=False))

    def until(n):
        return torch.arange(6).expand(2, 6) < n

    return Given(tags, [(randn(2, 6, 4, seed=n), torch.ones(2, 6, dtype=torch.int64), until(n)) for n in (6, 3, 1)])


@case("transformers", "Wav2Vec2Model._get_feature_vector_attention_mask", "lengths after convolutions, as a mask")
def transformers_wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    convolutions = {"conv_dim": (8, 8), "conv_stride": (2, 2), "conv_kernel": (3, 3), "num_feat_extract_layers": 2}
    positions = {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
    net = frozen(Wav2Vec2Model(Wav2Vec2Config(**sizes, **convolutions, **positions)))

    def model(x, lengths):
        mask = torch.arange(64) < lengths[:, None]
        return net(x, attention_mask=mask.long()).last_hidden_state

    return Given(
        model, [(randn(2, 64, seed=s), torch.tensor(n)) for s, n in ((1, [64, 64]), (2, [40, 64]), (3, [9, 30]))]
    )
