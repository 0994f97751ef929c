"""Whole models: experts that get the tokens chosen for them, windows, durations, scans."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import frozen, rand, randint, randn


def small(**more):
    """Sizes of a transformer of one layer."""
    sizes = {"vocab_size": 17, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
    return {**sizes, "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 32, **more}


def reading(net, *lengths, **more):
    """The last hidden state of sentences."""

    def model(ids):
        return net(ids, **more).last_hidden_state

    sets = [(randint(3, 17, 2, length, seed=n),) for n, length in enumerate(lengths or (6, 6, 6))]
    return Given(model, sets)


@case("transformers", "MixtralModel (MixtralExperts)", "a for over the experts that some token is sent to")
def transformers_mixtral():
    from transformers import MixtralConfig, MixtralModel

    return reading(frozen(MixtralModel(MixtralConfig(**small(num_local_experts=4))), scale=3.0), use_cache=False)


@case("transformers", "Qwen2MoeModel (Qwen2MoeExperts)", "the same, with a shared expert")
def transformers_qwen_experts():
    from transformers import Qwen2MoeConfig, Qwen2MoeModel

    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "decoder_sparse_step": 1}
    config = Qwen2MoeConfig(**small(shared_expert_intermediate_size=8, **experts))
    return reading(frozen(Qwen2MoeModel(config), scale=3.0), use_cache=False)


@case("transformers", "SwitchTransformersEncoderModel", "a router with a capacity for each expert")
def transformers_switch():
    from transformers import SwitchTransformersConfig, SwitchTransformersEncoderModel

    sizes = {"vocab_size": 17, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "num_experts": 4}
    return reading(frozen(SwitchTransformersEncoderModel(SwitchTransformersConfig(**sizes)), scale=3.0))


@case("transformers", "OlmoeModel (OlmoeExperts)", "experts once more, with normed queries")
def transformers_olmoe():
    from transformers import OlmoeConfig, OlmoeModel

    config = OlmoeConfig(**small(num_experts=4, num_experts_per_tok=2, pad_token_id=0))
    return reading(frozen(OlmoeModel(config), scale=3.0), use_cache=False)


@case("transformers", "LongformerModel", "global attention, where a mask has some")
def transformers_longformer():
    from transformers import LongformerConfig, LongformerModel

    config = small(attention_window=[4], pad_token_id=0)
    config.pop("num_key_value_heads")
    net = frozen(LongformerModel(LongformerConfig(**config)))

    def model(ids, everywhere):
        return net(ids, global_attention_mask=everywhere).last_hidden_state

    sets = [torch.zeros(1, 8).long(), torch.eye(8)[:1].long(), (torch.arange(8) % 3 == 0).long()[None]]
    return Given(model, [(randint(3, 17, 1, 8, seed=n), each) for n, each in enumerate(sets)])


@case("transformers", "MambaModel (slow_forward)", "a scan over the sequence in Python")
def transformers_mamba():
    from transformers import MambaConfig, MambaModel

    net = frozen(MambaModel(MambaConfig(vocab_size=17, hidden_size=16, state_size=4, num_hidden_layers=1)))
    given = reading(net, 6, 9, 3, use_cache=False)
    return Given(given.model, given.inputs, ({1: torch.export.Dim("time", min=2, max=64)},))


@case("transformers", "T5ForConditionalGeneration.generate", "an encoder, and a decoder until the end token")
def transformers_t5():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"vocab_size": 17, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2}
    config = T5Config(**sizes, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
    net = frozen(T5ForConditionalGeneration(config), scale=4.0)

    def model(ids):
        return net.generate(ids, max_new_tokens=6, do_sample=False, num_beams=1)

    return Given(model, [(randint(3, 17, 2, 5, seed=n),) for n in (0, 1, 2)])


@case("transformers", "FastSpeech2ConformerModel (length_regulator)", "frames as long as durations are predicted")
def transformers_length_regulator():
    from transformers.models.fastspeech2_conformer.modeling_fastspeech2_conformer import length_regulator

    durations = ([[1, 2, 3], [2, 1, 1]], [[0, 0, 0], [0, 0, 0]], [[0, 5, 0], [1, 1, 1]])
    return Given(length_regulator, [(randn(2, 3, 4), torch.tensor(each)) for each in durations])


@case("transformers", "transformers.loss.loss_for_object_detection.HungarianMatcher", "an assignment by scipy")
def transformers_matcher():
    from transformers.loss.loss_for_object_detection import HungarianMatcher

    matcher = HungarianMatcher()

    def model(logits, boxes, classes, truth):
        found = {"logits": logits, "pred_boxes": boxes}
        return matcher(found, [{"class_labels": classes, "boxes": truth}])[0]

    def given(seed):
        return randn(1, 4, 3, seed=seed), rand(1, 4, 4, seed=seed), torch.tensor([0, 2]), rand(2, 4, seed=seed + 1)

    return Given(model, [given(1), given(3), given(5)])


@case("torch", "torch.lobpcg", "eigenpairs, until enough of them have converged")
def torch_lobpcg():
    def model(a, x):
        return torch.lobpcg(a, k=2, X=x, niter=20, tol=1e-4)

    sets = [torch.diag(torch.arange(1.0, 13)) + scale * randn(12, 12, seed=1) for scale in (0.0, 0.02, 0.1)]
    return Given(model, [((a + a.T) / 2, randn(12, 2, seed=3)) for a in sets])


@case("torch", "torch.nn.utils.clip_grad_norm_(error_if_nonfinite=True)", "raises where the norm is not finite")
def torch_clip_gradients():
    def model(gradient):
        point = torch.zeros(4, requires_grad=True)
        point.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([point], 1.0, error_if_nonfinite=True)
        return point.grad

    return Given(model, [(randn(4),), (0.01 * randn(4),), (torch.full((4,), float("inf")),)], may_raise=True)


@case("torch", "torch.nn.TransformerEncoder", "a padding mask, and its shortcuts")
def torch_transformer_encoder():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = frozen(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))

    def model(x, padding):
        return net(x, src_key_padding_mask=padding)

    return Given(model, [(randn(2, 5, 8, seed=n), torch.arange(5).expand(2, 5) >= n) for n in (5, 3, 1)])


@case("kornia", "kornia.enhance.equalize", "a table for each channel, unless it would be flat")
def kornia_equalize():
    from kornia.enhance import equalize

    return Given(equalize, [(rand(1, 2, 8, 8, seed=1),), (torch.zeros(1, 2, 8, 8),), (rand(1, 2, 8, 8) * 0.1,)])


@case("kornia", "kornia.geometry.boxes.Boxes.from_tensor", "raises for boxes without a size")
def kornia_boxes():
    from kornia.geometry.boxes import Boxes

    def model(x):
        return Boxes.from_tensor(x, mode="xyxy").to_mask(8, 8)

    good = torch.tensor([[1.0, 1, 4, 5], [2, 2, 6, 6]])
    return Given(model, [(good,), (good + 1,), (good.flip(1),)], may_raise=True)


@case("torch-kmeans", "torch_kmeans.ConstrainedKMeans", "points in the order of their priority, while there is room")
def torch_kmeans_constrained():
    from torch_kmeans import ConstrainedKMeans

    means = ConstrainedKMeans(n_clusters=3, max_iter=10, num_init=1, verbose=False)

    def model(x, centres):
        return means(x, centers=centres, weights=torch.full((1, 9), 0.3)).labels

    sets = [randn(1, 9, 2, seed=s) + 4 * torch.eye(3, 2).repeat(3, 1) for s in (1, 2, 3)]
    return Given(model, [(x, x[:, [0, 1, 2]]) for x in sets])


@case("torch-geometric", "torch_geometric.utils.is_undirected", "whether each edge has its opposite")
def geometric_is_undirected():
    from torch_geometric.utils import is_undirected

    sets = [[[0, 1, 2], [1, 2, 0]], [[0, 1, 4], [1, 0, 4]], [[3, 2, 3], [2, 3, 3]]]
    return Given(lambda edges: is_undirected(edges, num_nodes=6), [(torch.tensor(each),) for each in sets])


@case("torch-geometric", "torch_geometric.nn.GCNConv", "loops are added where there are none")
def geometric_gcn():
    from torch_geometric.nn import GCNConv

    net = frozen(GCNConv(3, 4))
    sets = [[[0, 1, 2], [1, 2, 0]], [[0, 1, 4], [1, 0, 4]], [[3, 3, 3], [3, 3, 3]]]
    return Given(net, [(randn(5, 3), torch.tensor(each)) for each in sets])


@case("torch-geometric", "torch_geometric.nn.LabelPropagation", "rounds of messages, clamped")
def geometric_labels():
    from torch_geometric.nn import LabelPropagation

    spread = LabelPropagation(num_layers=3, alpha=0.9)
    sets = [[[0, 1, 2], [1, 2, 0]], [[0, 1, 4], [1, 0, 4]], [[3, 2, 3], [2, 3, 3]]]
    return Given(lambda y, edges: spread(y, edges), [(randint(0, 3, 5), torch.tensor(each)) for each in sets])  # noqa: PLW0108


@case("monai", "monai.transforms.utils.generate_spatial_bounding_box", "nothing, or from the first to the last row")
def monai_bounding_box():
    from monai.transforms.utils import generate_spatial_bounding_box

    image = torch.zeros(1, 8, 8)
    one, two = image.clone(), image.clone()
    one[0, 2:5, 3:6] = 1
    two[0, 0, 0] = two[0, 7, 7] = 1
    return Given(lambda x: generate_spatial_bounding_box(x), [(one,), (two,), (image,)])  # noqa: PLW0108


@case("vector-quantize-pytorch", "vector_quantize_pytorch.VectorQuantize (eval)", "the nearest code, with a mask")
def vector_quantize():
    from vector_quantize_pytorch import VectorQuantize

    net = frozen(VectorQuantize(dim=4, codebook_size=8))

    def model(x, mask):
        return net(x, mask=mask)[:2]

    return Given(model, [(randn(2, 5, 4, seed=n), torch.arange(5).expand(2, 5) < n) for n in (5, 3, 1)])
