"""Metrics and losses: what is empty, perfect or undefined is another path."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import rand, randint, randn


def mask(*rows, size=8):
    image = torch.zeros(size, size, dtype=torch.bool)
    for top, left, bottom, right in rows:
        image[top:bottom, left:right] = True
    return image


MASKS = ((mask((1, 1, 5, 5)), mask((2, 2, 6, 7))), (mask((1, 1, 5, 5)), mask()), (mask(), mask()))


def labels(n=12, classes=3):
    same = randint(0, classes, n, seed=1)
    return [(randint(0, classes, n, seed=2), same), (same, same), (torch.zeros_like(same), torch.zeros_like(same))]


def retrieval():
    target = torch.tensor([True, False, True, False, False])
    return [(rand(5, seed=1), target), (rand(5, seed=2), ~target), (rand(5, seed=3), torch.zeros(5, dtype=torch.bool))]


@case("torchmetrics", "functional.classification.matthews_corrcoef", "eight branches over the confusion matrix")
def torchmetrics_matthews():
    from torchmetrics.functional.classification.matthews_corrcoef import _matthews_corrcoef_reduce

    tables = [
        ((4, 1), (2, 5)),
        ((3, 0), (0, 4)),
        ((0, 3), (4, 0)),
        ((0, 3), (0, 5)),
        ((5, 0), (3, 0)),
        ((7, 2), (0, 0)),
    ]
    return Given(lambda confusion: _matthews_corrcoef_reduce(confusion), [(torch.tensor(t),) for t in tables])  # noqa: PLW0108


@case("torchmetrics", "functional.segmentation.utils.mask_edges", "no edges where both masks are empty, else cropped")
def torchmetrics_mask_edges():
    from torchmetrics.functional.segmentation.utils import mask_edges

    return Given(lambda a, b: mask_edges(a, b, crop=True)[:2], MASKS)


@case("torchmetrics", "functional.segmentation.utils.surface_distance", "infinite where one is empty")
def torchmetrics_surface_distance():
    from torchmetrics.functional.segmentation.utils import surface_distance

    return Given(lambda a, b: surface_distance(a, b), MASKS)  # noqa: PLW0108


@case("torchmetrics", "functional.clustering.fowlkes_mallows_index", "zero where no pair agrees")
def torchmetrics_fowlkes_mallows():
    from torchmetrics.functional.clustering import fowlkes_mallows_index

    alone = torch.arange(12)
    return Given(fowlkes_mallows_index, [*labels(), (alone, alone.flip(0))])


@case("torchmetrics", "functional.clustering.normalized_mutual_info_score", "zero where the information is")
def torchmetrics_mutual_information():
    from torchmetrics.functional.clustering import normalized_mutual_info_score

    return Given(normalized_mutual_info_score, labels())


@case("torchmetrics", "functional.clustering.v_measure_score", "entropies that may be zero")
def torchmetrics_v_measure():
    from torchmetrics.functional.clustering import v_measure_score

    return Given(v_measure_score, labels())


@case("torchmetrics", "functional.retrieval.retrieval_average_precision", "zero without a hit")
def torchmetrics_retrieval_map():
    from torchmetrics.functional.retrieval import retrieval_average_precision

    return Given(retrieval_average_precision, retrieval())


@case(
    "torchmetrics", "functional.retrieval.retrieval_reciprocal_rank", "the position of the first hit, if there is one"
)
def torchmetrics_retrieval_rank():
    from torchmetrics.functional.retrieval import retrieval_reciprocal_rank

    return Given(retrieval_reciprocal_rank, retrieval())


@case("torchmetrics", "functional.retrieval.retrieval_r_precision", "as many results as there are hits")
def torchmetrics_r_precision():
    from torchmetrics.functional.retrieval import retrieval_r_precision

    return Given(retrieval_r_precision, retrieval())


@case("torchmetrics", "functional.nominal.tschuprows_t", "bias correction, and NaN for a table of one row")
def torchmetrics_tschuprow():
    from torchmetrics.functional.nominal.tschuprows import _tschuprows_t_compute

    tables = ([[4.0, 1], [2, 5]], [[9.0, 9], [9, 9]], [[5.0, 0], [0, 5]])
    return Given(lambda table: _tschuprows_t_compute(table, bias_correction=True), [(torch.tensor(t),) for t in tables])


@case("torchmetrics", "functional.nominal.cramers_v", "the same with another norm")
def torchmetrics_cramer():
    from torchmetrics.functional.nominal.cramers import _cramers_v_compute

    tables = ([[4.0, 1], [2, 5]], [[9.0, 9], [9, 9]], [[5.0, 0], [0, 5]])
    return Given(lambda table: _cramers_v_compute(table, bias_correction=True), [(torch.tensor(t),) for t in tables])


@case("torchmetrics", "functional.regression.r2_score", "constant targets are two cases of their own")
def torchmetrics_r2():
    from torchmetrics.functional.regression import r2_score

    x, flat = randn(6, seed=1), torch.ones(6)
    return Given(r2_score, [(x + 0.1 * randn(6, seed=2), x), (x, flat), (flat, flat)])


@case("torchmetrics", "functional.regression.spearman_corrcoef", "ranks, where equal values share theirs in a loop")
def torchmetrics_spearman():
    from torchmetrics.functional.regression import spearman_corrcoef

    ties = torch.tensor([1.0, 2, 2, 3, 3, 3])
    return Given(spearman_corrcoef, [(randn(6, seed=1), randn(6, seed=2)), (ties, randn(6, seed=3)), (ties, ties)])


@case("torchmetrics", "functional.regression.kendall_rank_corrcoef", "pairs, ties and their corrections")
def torchmetrics_kendall():
    from torchmetrics.functional.regression import kendall_rank_corrcoef

    ties = torch.tensor([1.0, 2, 2, 3, 3, 3])
    return Given(kendall_rank_corrcoef, [(randn(6, seed=1), randn(6, seed=2)), (ties, randn(6, seed=3)), (ties, ties)])


@case("torchmetrics", "functional.classification.binary_auroc", "a curve with as many points as there are scores")
def torchmetrics_auroc():
    from torchmetrics.functional.classification import binary_auroc

    target = torch.tensor([0, 1, 1, 0, 1, 0])
    sets = [
        (rand(6, seed=1), target),
        (torch.tensor([0.5, 0.5, 0.5, 0.2, 0.9, 0.2]), target),
        (rand(6, seed=3), 0 * target),
    ]
    return Given(lambda scores, target: binary_auroc(scores, target, validate_args=False), sets)


@case("torchmetrics", "functional.classification.binary_average_precision", "the same under precision and recall")
def torchmetrics_average_precision():
    from torchmetrics.functional.classification import binary_average_precision

    target = torch.tensor([0, 1, 1, 0, 1, 0])
    sets = [
        (rand(6, seed=1), target),
        (torch.tensor([0.5, 0.5, 0.5, 0.2, 0.9, 0.2]), target),
        (rand(6, seed=3), 0 * target),
    ]
    return Given(lambda scores, target: binary_average_precision(scores, target, validate_args=False), sets)


@case("torchmetrics", "functional.audio.permutation_invariant_training", "the best assignment of sources")
def torchmetrics_permutations():
    from torchmetrics.functional.audio import permutation_invariant_training, scale_invariant_signal_noise_ratio

    def model(found, target):
        return permutation_invariant_training(found, target, scale_invariant_signal_noise_ratio)

    x = randn(2, 2, 16, seed=1)
    return Given(model, [(x, x.flip(1)), (x, randn(2, 2, 16, seed=2)), (x, x + 0.1 * randn(2, 2, 16, seed=3))])


@case("monai", "monai.losses.HausdorffDTLoss", "distance transforms (scipy) of masks that are not empty")
def monai_hausdorff():
    from monai.losses import HausdorffDTLoss

    loss = HausdorffDTLoss(include_background=True)
    return Given(lambda a, b: loss(a[None, None].float(), b[None, None].float()), MASKS)


@case("monai", "monai.metrics.compute_meandice (DiceHelper)", "empty truths are NaN, or one, or zero")
def monai_dice():
    from monai.metrics.meandice import DiceHelper

    helper = DiceHelper(include_background=True, ignore_empty=False, reduction="none", num_classes=1)
    return Given(lambda a, b: helper(a[None, None].float(), b[None, None].float()), MASKS)


@case("monai", "monai.metrics.generalized_dice.compute_generalized_dice", "weights that are infinite for empty classes")
def monai_generalized_dice():
    from monai.metrics import compute_generalized_dice

    return Given(lambda a, b: compute_generalized_dice(a[None, None].float(), b[None, None].float()), MASKS)


@case("monai", "monai.losses.GeneralizedDiceLoss", "the same, of a loss")
def monai_generalized_dice_loss():
    from monai.losses import GeneralizedDiceLoss

    loss = GeneralizedDiceLoss()
    return Given(lambda a, b: loss(a[None, None].float(), b[None, None].float()), MASKS)


@case("monai", "monai.losses.AUCMLoss", "raises for what is not binary, means of classes that may be empty")
def monai_aucm():
    from monai.losses import AUCMLoss

    target = torch.tensor([[0.0], [1], [1], [0]])
    sets = [(rand(4, 1, seed=1), target), (rand(4, 1, seed=2), target * 0), (rand(4, 1, seed=3), target + 0.5)]
    return Given(AUCMLoss(), sets, may_raise=True)


@case("monai", "monai.inferers.sliding_window_inference", "windows over an image, weighted")
def monai_sliding_window():
    from monai.inferers import sliding_window_inference

    net = torch.nn.Conv2d(1, 1, 3, padding=1).requires_grad_(False)
    net.weight.copy_(randn(1, 1, 3, 3))
    net.bias.zero_()
    sets = [(rand(1, 1, 8, 8, seed=s) * c,) for s, c in ((1, 1), (2, 5), (3, 0))]
    return Given(lambda image: sliding_window_inference(image, (4, 4), 2, net, overlap=0.5), sets)


@case("torchsurv", "torchsurv.loss.cox.neg_partial_log_likelihood", "ties, and a loss of zero without events")
def torchsurv_cox():
    from torchsurv.loss.cox import neg_partial_log_likelihood

    event, time = torch.tensor([True, False, True, True]), torch.tensor([1.0, 2, 3, 4])
    sets = [(event, time), (event, torch.tensor([1.0, 1, 2, 2])), (event & False, time)]
    return Given(neg_partial_log_likelihood, [(randn(4), *each) for each in sets])


@case("torchsurv", "torchsurv.metrics.cindex.ConcordanceIndex", "comparable pairs, looked for in order of time")
def torchsurv_concordance():
    from torchsurv.metrics.cindex import ConcordanceIndex

    event, time = torch.tensor([True, False, True, True, False]), torch.tensor([1.0, 2, 3, 4, 5])
    sets = [(event, time), (event, torch.tensor([1.0, 1, 2, 2, 3])), (event, time.flip(0))]
    return Given(ConcordanceIndex(), [(randn(5), *each) for each in sets])


@case("pytorch-metric-learning", "losses.SupConLoss", "a loss only where there are pairs of both kinds")
def metric_learning_supcon():
    from pytorch_metric_learning.losses import SupConLoss

    sets = [torch.tensor(each) for each in ([0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 0, 0])]
    return Given(SupConLoss(), [(randn(4, 6, seed=n), each) for n, each in enumerate(sets)])


@case("pytorch-metric-learning", "losses.FastAPLoss", "zero without positives")
def metric_learning_fastap():
    from pytorch_metric_learning.losses import FastAPLoss

    sets = [torch.tensor(each) for each in ([0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 0, 0])]
    return Given(FastAPLoss(), [(randn(4, 6, seed=n), each) for n, each in enumerate(sets)])


@case(
    "pytorch-metric-learning", "losses.TripletMarginLoss + miners.TripletMarginMiner", "triplets that are hard enough"
)
def metric_learning_triplets():
    from pytorch_metric_learning.losses import TripletMarginLoss
    from pytorch_metric_learning.miners import TripletMarginMiner

    loss, miner = TripletMarginLoss(), TripletMarginMiner(margin=0.2, type_of_triplets="semihard")
    sets = [torch.tensor(each) for each in ([0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 1, 1])]
    return Given(lambda x, y: loss(x, y, miner(x, y)), [(randn(4, 6, seed=n), each) for n, each in enumerate(sets)])


@case("pytorch-metric-learning", "losses.MultiSimilarityLoss + miners.MultiSimilarityMiner", "pairs within a margin")
def metric_learning_multi_similarity():
    from pytorch_metric_learning.losses import MultiSimilarityLoss
    from pytorch_metric_learning.miners import MultiSimilarityMiner

    loss, miner = MultiSimilarityLoss(), MultiSimilarityMiner()
    sets = [torch.tensor(each) for each in ([0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 1, 1])]
    return Given(lambda x, y: loss(x, y, miner(x, y)), [(randn(4, 6, seed=n), each) for n, each in enumerate(sets)])


@case("pytorch-msssim", "pytorch_msssim.ms_ssim", "levels of a pyramid")
def msssim_pyramid():
    from pytorch_msssim import ms_ssim

    def model(a, b):
        return ms_ssim(a, b, data_range=1.0, win_size=3)

    x = rand(1, 1, 40, 40, seed=1)
    return Given(model, [(x, x), (x, rand(1, 1, 40, 40, seed=2)), (x, (x + 0.1).clamp(max=1))])


@case("torch-geometric", "torch_geometric.utils.remove_isolated_nodes", "a graph that is as small as its data says")
def geometric_isolated():
    from torch_geometric.utils import remove_isolated_nodes

    sets = [[[0, 1, 2], [1, 2, 0]], [[0, 0, 4], [1, 0, 4]], [[3, 3, 3], [3, 3, 3]]]
    return Given(lambda edges: remove_isolated_nodes(edges, num_nodes=6)[0], [(torch.tensor(each),) for each in sets])


@case("torch-geometric", "torch_geometric.utils.to_undirected, coalesce", "edges without duplicates")
def geometric_undirected():
    from torch_geometric.utils import to_undirected

    sets = [[[0, 1, 2], [1, 2, 0]], [[0, 1, 4], [1, 0, 4]], [[3, 3, 3], [3, 3, 3]]]
    return Given(lambda edges: to_undirected(edges, num_nodes=6), [(torch.tensor(each),) for each in sets])


@case("torch-geometric", "torch_geometric.utils.k_hop_subgraph", "nodes that are reached in two steps")
def geometric_k_hop():
    from torch_geometric.utils import k_hop_subgraph

    sets = [[[0, 1, 2], [1, 2, 0]], [[0, 1, 4], [1, 0, 4]], [[3, 3, 3], [3, 3, 3]]]
    return Given(lambda edges: k_hop_subgraph(0, 2, edges, num_nodes=6), [(torch.tensor(each),) for each in sets])


@case("torch-geometric", "torch_geometric.nn.pool.select.SelectTopK", "as many nodes as a share of each graph")
def geometric_topk():
    from torch_geometric.nn.pool.select.topk import topk

    sets = [torch.tensor(each) for each in ([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0])]
    return Given(lambda x, batch: topk(x, 0.5, batch), [(randn(6, seed=n), each) for n, each in enumerate(sets)])


@case("torch-geometric", "torch_geometric.utils.dense_to_sparse / to_dense_batch", "the largest graph is the size")
def geometric_dense_batch():
    from torch_geometric.utils import to_dense_batch

    sets = [torch.tensor(each) for each in ([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0])]
    return Given(lambda x, batch: to_dense_batch(x, batch), [(randn(6, 2, seed=n), b) for n, b in enumerate(sets)])  # noqa: PLW0108
