"""Images, boxes and geometry: suppression, propagation until nothing changes, robust fits."""

from __future__ import annotations

import math

import torch

from tests.real.case import Given, case
from tests.real.data import boxes, rand, randn


def picture(seed=1, size=12):
    return rand(1, 1, size, size, seed=seed)


def blocks(size=10):
    """Binary images: two blobs, a snake, and nothing."""
    two, snake = torch.zeros(1, 1, size, size), torch.zeros(1, 1, size, size)
    two[..., 1:4, 1:4] = two[..., 6:9, 5:9] = 1
    snake[..., 1, 1:9] = snake[..., 1:9, 8] = snake[..., 8, 2:9] = snake[..., 3:9, 2] = 1
    return two, snake, torch.zeros(1, 1, size, size)


@case("kornia", "kornia.geometry.bbox.nms", "a while over the boxes that are left, a result as long as the loop")
def kornia_nms():
    from kornia.geometry.bbox import nms

    sets = [(boxes(12, seed=s, spread=d), rand(12, seed=s + 200)) for s, d in ((1, 10.0), (2, 60.0), (3, 2.0))]
    return Given(lambda found, scores: nms(found, scores, 0.5), sets)


@case("kornia", "kornia.contrib.connected_components_union_find", "labels are merged until none changes, in two loops")
def kornia_union_find():
    from kornia.contrib.connected_components import connected_components_union_find

    return Given(connected_components_union_find, [(each,) for each in blocks()])


@case("kornia", "kornia.contrib.distance_transform", "rounds until no pixel is left, looked at now and then")
def kornia_distance_transform():
    from kornia.contrib import distance_transform

    return Given(distance_transform, [(each,) for each in blocks()])


@case("kornia", "kornia.morphology.morphology._reconstruct_up", "dilation under a mask until it no longer grows")
def kornia_reconstruct():
    from kornia.morphology.morphology import _reconstruct_up

    def model(seed, mask):
        return _reconstruct_up(seed, mask, torch.ones(3, 3), None, 2, "unfold")

    seed = torch.zeros(1, 1, 10, 10)
    seed[..., 1, 1] = 1
    return Given(model, [(seed, mask) for mask in blocks()[:2]] + [(torch.zeros_like(seed), blocks()[0])])


@case("kornia", "kornia.filters.canny", "edges grow along weak ones until nothing changes")
def kornia_canny():
    from kornia.filters import canny

    return Given(canny, [(picture(1),), (blocks()[1],), (torch.zeros(1, 1, 10, 10),)])


@case("kornia", "kornia.metrics.mean_average_precision", "detections are matched one by one, each truth once")
def kornia_average_precision():
    from kornia.metrics import mean_average_precision

    def model(found, labels, scores, truth, classes):
        return mean_average_precision([found], [labels], [scores], [truth], [classes], 3)[0]

    truth, classes = boxes(4, seed=1, spread=40.0), torch.tensor([1, 2, 1, 2])
    near = truth + 0.3
    sets = [near, near.flip(0), boxes(4, seed=5, spread=40.0)]
    return Given(model, [(each, classes, rand(4, seed=3), truth, classes) for each in sets])


@case("kornia", "kornia.metrics.mean_iou_bbox", "raises for boxes that are none")
def kornia_iou_bbox():
    from kornia.metrics import mean_iou_bbox

    good = boxes(4, seed=1, spread=10.0)
    return Given(mean_iou_bbox, [(good, good + 1), (good, good), (good, good.flip(1))], may_raise=True)


@case("kornia", "kornia.geometry.bbox.validate_bbox", "four corners that are a rectangle, or not")
def kornia_validate_bbox():
    from kornia.geometry.bbox import validate_bbox

    square = torch.tensor([[[1.0, 1], [3, 1], [3, 3], [1, 3]]])
    bent = square.clone()
    bent[0, 2, 0] = 5
    return Given(validate_bbox, [(square,), (bent,), (square * math.nan,)], may_raise=True)


@case("kornia", "kornia.geometry.solvers.solve_cubic", "the three formulas of a cubic, by its discriminant")
def kornia_cubic():
    from kornia.geometry.solvers import solve_cubic

    rows = [[1.0, -6, 11, -6], [1.0, 0, 1, 1], [0.0, 1, -3, 2], [0.0, 0, 2, -4], [1.0, -3, 3, -1]]
    return Given(solve_cubic, [(torch.tensor(rows[:2]),), (torch.tensor(rows[2:4]),), (torch.tensor(rows[3:]),)])


@case("kornia", "kornia.geometry.solvers.solve_quartic", "a quartic with its special cases: lower degree, biquadratic")
def kornia_quartic():
    from kornia.geometry.solvers import solve_quartic

    rows = [[1.0, -10, 35, -50, 24], [1, 0, -5, 0, 4], [0, 1, -6, 11, -6], [1, -4, 6, -4, 1]]
    return Given(solve_quartic, [(torch.tensor([each, rows[0]]),) for each in rows])


@case("kornia", "kornia.geometry.calibration.solve_pnp_dlt", "raises where the points lie badly")
def kornia_pnp():
    from kornia.geometry.calibration import solve_pnp_dlt

    camera = torch.tensor([[[400.0, 0, 100], [0, 400, 100], [0, 0, 1]]])

    def seen(points):
        flat = (points + torch.tensor([0.0, 0, 6])) @ camera[0].T
        return points, flat[..., :2] / flat[..., 2:], camera

    world = randn(1, 8, 3, seed=1)
    return Given(solve_pnp_dlt, [seen(world), seen(randn(1, 8, 3, seed=2)), seen(world * 0)], may_raise=True)


@case("kornia", "kornia.geometry.quaternion.average_quaternions", "negative weights are refused")
def kornia_average_quaternions():
    from kornia.geometry.quaternion import Quaternion, average_quaternions

    def model(data, weights):
        return average_quaternions(Quaternion(data / data.norm(dim=-1, keepdim=True)), weights).data

    sets = [(randn(4, 4, seed=1), rand(4)), (randn(4, 4, seed=2), torch.ones(4)), (randn(4, 4), -rand(4))]
    return Given(model, sets, may_raise=True)


@case("kornia", "kornia.geometry.fit_plane", "raises for points on a line, or in one place")
def kornia_fit_plane():
    from kornia.geometry.plane import fit_plane
    from kornia.geometry.vector import Vector3

    def model(points):
        plane = fit_plane(Vector3(points))
        return plane.normal.data, plane.offset.data

    line = torch.linspace(0, 1, 6)[:, None] * torch.tensor([1.0, 2, 3])
    return Given(model, [(randn(6, 3, seed=1),), (line,), (torch.ones(6, 3),)], may_raise=True)


@case("kornia", "kornia.image.draw_line", "steep and flat lines, and points outside")
def kornia_draw_line():
    from kornia.utils import draw_line

    def model(image, start, end):
        return draw_line(image, start, end, torch.tensor([1.0]))

    ends = [((0, 0), (7, 3)), ((1, 6), (2, 0)), ((4, 4), (4, 4)), ((0, 5), (7, 5))]
    return Given(model, [(torch.zeros(1, 8, 8), torch.tensor(a), torch.tensor(b)) for a, b in ends])


@case("kornia", "kornia.image.draw_convex_polygon", "closes a polygon that is open")
def kornia_draw_polygon():
    from kornia.utils import draw_convex_polygon

    def model(image, polygon):
        return draw_convex_polygon(image, polygon, torch.tensor([[1.0]]))

    corners = torch.tensor([[[1.0, 1], [6, 2], [5, 6], [1, 1]]])
    open_ones = torch.tensor([[[1.0, 1], [6, 1], [6, 6], [1, 6]]])
    return Given(model, [(torch.zeros(1, 1, 8, 8), each) for each in (corners, open_ones, open_ones * 0.5)])


@case("kornia", "kornia.geometry.transform.crop_by_indices", "crops of one size at once, of several one by one")
def kornia_crop_by_indices():
    from kornia.geometry.transform import crop_by_indices

    def box(left, top, right, bottom):
        return torch.tensor([[left, top], [right, top], [right, bottom], [left, bottom]])

    image = rand(2, 1, 8, 8)
    same, other = box(1, 1, 4, 4), box(0, 2, 5, 4)
    sets = [(same, same + 1), (same, other), (other, other)]
    return Given(
        lambda image, corners: crop_by_indices(image, corners, (4, 4)), [(image, torch.stack(s)) for s in sets]
    )


@case("kornia", "kornia.geometry.RANSAC", "samples until it is confident enough, then refined while it gets better")
def kornia_ransac():
    from kornia.geometry.ransac import RANSAC

    ransac = RANSAC("homography", inl_th=0.5, batch_size=16, max_iter=3, max_lo_iters=2, seed=0)
    left = rand(12, 2, seed=1) * 10
    good, bad = left + 1, left + 1
    bad[:4] += 5 * rand(4, 2, seed=2)
    return Given(ransac, [(left, good), (left, bad), (left, rand(12, 2, seed=9) * 10)])


@case("kornia", "kornia.feature.laf.laf_is_inside_image", "features inside the image only")
def kornia_reject_outside():
    from kornia.feature.laf import laf_is_inside_image

    def model(points):
        frames = torch.cat([torch.eye(2).expand(1, 5, 2, 2), points[None, :, :, None]], -1)
        return frames[laf_is_inside_image(frames, torch.zeros(1, 1, 16, 16))]

    return Given(model, [(rand(5, 2, seed=s) * scale,) for s, scale in ((1, 16), (2, 30), (3, 1000))])


@case("kornia", "kornia.feature.match_snn", "no descriptors, one, or enough for a second neighbour")
def kornia_match_snn():
    from kornia.feature import match_snn

    return Given(
        lambda a, b: match_snn(a, b, 0.9),
        [
            (randn(5, 8, seed=1), randn(6, 8, seed=2)),
            (randn(5, 8, seed=3), randn(5, 8, seed=3)),
            (randn(2, 8), randn(9, 8)),
        ],
    )


@case(
    "kornia", "kornia.losses.HausdorffERLoss", "raises for labels that are too large; erosion a fixed number of times"
)
def kornia_hausdorff():
    from kornia.losses import HausdorffERLoss

    sets = [(rand(1, 2, 8, 8, seed=s), (rand(1, 1, 8, 8, seed=s + 9) > 0.5).long()) for s in (1, 2)]
    return Given(HausdorffERLoss(k=3), [*sets, (sets[0][0], sets[0][1] * 3)], may_raise=True)


@case("nms_3d", "nms_3d.nms_3d", "a while over what remains, in three dimensions")
def nms_three_dimensions():
    from nms_3d import nms_3d

    def cubes(seed, spread):
        corner = rand(8, 3, seed=seed) * spread
        return torch.cat([corner, corner + 3, rand(8, 1, seed=seed + 50)], 1)

    return Given(lambda x: nms_3d(x, 0.3), [(cubes(1, 4.0),), (cubes(2, 40.0),), (cubes(3, 0.5),)])


@case("torch-tps", "torch_tps.ThinPlateSpline", "a spline through the points, and its values elsewhere")
def torch_tps_spline():
    from torch_tps import ThinPlateSpline

    def model(points, values, at):
        spline = ThinPlateSpline(0.1)
        spline.fit(points, values)
        return spline.transform(at)

    return Given(model, [(randn(6, 2, seed=s), randn(6, 2, seed=s + 1), randn(4, 2, seed=s + 2)) for s in (1, 5, 9)])
