"""Rotations, registration, filters, and returns of reinforcement learning."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import rand, randn

TIME = torch.export.Dim("time", min=2, max=64)


@case("pytorch_kinematics", "pytorch_kinematics.transforms.math.quaternion_slerp", "near or far, and the shorter way")
def kinematics_slerp():
    from pytorch_kinematics.transforms.math import quaternion_slerp

    one = torch.nn.functional.normalize(randn(1, 4, seed=1), dim=1)
    other = torch.nn.functional.normalize(randn(1, 4, seed=2), dim=1)
    return Given(quaternion_slerp, [(one, to, torch.tensor([0.3])) for to in (other, one, -one)])


@case("pytorch_kinematics", "pytorch_kinematics.transforms.so3.so3_log_map", "raises for what is no rotation")
def kinematics_log_map():
    from pytorch_kinematics.transforms.so3 import so3_exp_map, so3_log_map

    turns = [so3_exp_map(randn(2, 3, seed=s, scale=c)) for s, c in ((1, 1.0), (2, 1e-4))]
    return Given(so3_log_map, [*[(each,) for each in turns], (torch.ones(2, 3, 3) * 4,)], may_raise=True)


@case("pypose", "pypose.mat2SO3", "checks that it is a rotation, then four formulas by the largest element")
def pypose_from_matrix():
    import pypose

    def model(matrix):
        return pypose.mat2SO3(matrix).tensor()

    turns = [pypose.so3(randn(2, 3, seed=s, scale=c)).Exp().matrix() for s, c in ((1, 1.0), (2, 3.0), (3, 0.0))]
    return Given(model, [(each,) for each in turns])


@case("pypose", "pypose.module.ICP", "closest points until the error no longer falls")
def pypose_icp():
    import pypose

    icp = pypose.module.ICP(stepper=pypose.utils.ReduceToBason(steps=10, patience=2))

    def model(source, target):
        return icp(source, target).tensor()

    points = randn(8, 3, seed=1)
    return Given(model, [(points, points + 0.1), (points, points), (points, points.flip(0) * 1.1)])


@case("torch-kf", "torch_kf.KalmanFilter.filter", "measurements that are missing are skipped")
def kalman_filter():
    from torch_kf import GaussianState, KalmanFilter

    step = torch.tensor([[1.0, 1], [0, 1]])
    kalman = KalmanFilter(step, torch.tensor([[1.0, 0]]), 0.1 * torch.eye(2), torch.eye(1))

    def model(measures):
        start = GaussianState(torch.zeros(2, 1), torch.eye(2))
        return kalman.filter(start, measures).mean

    gaps = randn(6, 1, 1, seed=1)
    gaps[2:4] = float("nan")
    return Given(model, [(randn(6, 1, 1, seed=1),), (gaps,), (torch.zeros(6, 1, 1),)])


@case("torch-kf", "torch_kf.KalmanFilter.rts_smooth", "back over the states")
def kalman_smoother():
    from torch_kf import GaussianState, KalmanFilter

    step = torch.tensor([[1.0, 1], [0, 1]])
    kalman = KalmanFilter(step, torch.tensor([[1.0, 0]]), 0.1 * torch.eye(2), torch.eye(1))

    def model(measures):
        start = GaussianState(torch.zeros(2, 1), torch.eye(2))
        return kalman.rts_smooth(kalman.filter(start, measures, return_all=True)).mean

    return Given(model, [(randn(n, 1, 1, seed=n),) for n in (6, 9, 2)], ({0: torch.export.Dim.DYNAMIC},))


@case("torchrl", "torchrl.objectives.value.functional.generalized_advantage_estimate", "back over the time")
def torchrl_advantage():
    from torchrl.objectives.value.functional import generalized_advantage_estimate

    def model(value, after, reward, done):
        return generalized_advantage_estimate(0.9, 0.8, value, after, reward, done)

    def given(n):
        return (
            randn(2, n, 1, seed=n),
            randn(2, n, 1, seed=n + 1),
            randn(2, n, 1, seed=n + 2),
            rand(2, n, 1, seed=n) > 0.7,
        )

    return Given(model, [given(6), given(9), given(3)], ({1: TIME},) * 4)


@case("torchrl", "torchrl.objectives.value.functional.vec_generalized_advantage_estimate", "the same as a convolution")
def torchrl_vectorised_advantage():
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate

    def model(value, after, reward, done):
        return vec_generalized_advantage_estimate(0.9, 0.8, value, after, reward, done)

    def given(n):
        return (
            randn(2, n, 1, seed=n),
            randn(2, n, 1, seed=n + 1),
            randn(2, n, 1, seed=n + 2),
            rand(2, n, 1, seed=n) > 0.7,
        )

    return Given(model, [given(6), given(9), given(3)], ({1: TIME},) * 4)


def screws():
    """A chain of two joints, as axes of the body."""
    return torch.tensor([[0.0, 0], [0, 0], [1, 1], [0, 0], [2, 1], [0, 0]])


@case("pytorch-mr", "pytorch_mr.IKinBody", "Newton's steps for what is not solved yet, at most twenty")
def modern_robotics_inverse():
    import pytorch_mr

    home = torch.eye(4)
    home[0, 3] = 2

    def model(goal, start):
        return pytorch_mr.IKinBody(screws(), home, goal, start, 1e-3, 1e-3)

    goals = [pytorch_mr.FKinBody(home, screws(), torch.tensor(q))[0] for q in ([0.3, 0.5], [1.2, -0.4], [0.0, 0.1])]
    return Given(model, [(goal, torch.tensor([0.2, 0.3])) for goal in goals])


@case("pytorch-mr", "pytorch_mr.MatrixLog3", "no turn, half a turn, and what lies between")
def modern_robotics_log():
    import pytorch_mr

    half = torch.diag(torch.tensor([1.0, -1, -1]))
    turn = pytorch_mr.MatrixExp3(pytorch_mr.VecToso3(torch.tensor([0.1, 0.5, -0.3])))
    return Given(pytorch_mr.MatrixLog3, [(turn.reshape(3, 3),), (torch.eye(3),), (half,)])


@case("e3nn", "e3nn.o3.matrix_to_angles", "an assertion that it is a rotation")
def e3nn_angles():
    from e3nn import o3

    turns = [o3.angles_to_matrix(*randn(3, seed=s)) for s in (1, 2)]
    return Given(o3.matrix_to_angles, [*[(each,) for each in turns], (torch.ones(3, 3),)], may_raise=True)
