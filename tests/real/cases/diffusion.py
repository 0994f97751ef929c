"""Samplers of diffusion models: where in the schedule a time lies is looked up in it."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import randn


def step_of(name, **more):
    """One step of a scheduler, at a time that is a tensor."""
    import diffusers

    kind = getattr(diffusers, name)

    def model(noise, time, sample):
        scheduler = kind(num_train_timesteps=20, **more)
        scheduler.set_timesteps(5)
        return scheduler.step(noise, time, sample, return_dict=False)[0]

    scheduler = kind(num_train_timesteps=20, **more)
    scheduler.set_timesteps(5)
    times = scheduler.timesteps
    return Given(model, [(randn(1, 2, 3, 3, seed=n), times[n], randn(1, 2, 3, 3, seed=n + 9)) for n in (0, 2, 4)])


@case("diffusers", "diffusers.DDIMScheduler.step", "the last step has no product before it")
def diffusers_ddim():
    return step_of("DDIMScheduler")


@case("diffusers", "diffusers.EulerDiscreteScheduler.step", "the index of a time, by nonzero and item")
def diffusers_euler():
    return step_of("EulerDiscreteScheduler")


@case("diffusers", "diffusers.DPMSolverMultistepScheduler.step", "the order of a step depends on where it is")
def diffusers_dpm():
    return step_of("DPMSolverMultistepScheduler")


@case("diffusers", "diffusers.HeunDiscreteScheduler.step", "a state that says which half of a step it is")
def diffusers_heun():
    return step_of("HeunDiscreteScheduler")


@case("diffusers", "diffusers.UniPCMultistepScheduler.step", "a corrector where there is a step before")
def diffusers_unipc():
    return step_of("UniPCMultistepScheduler")


@case("diffusers", "diffusers.DDPMScheduler.add_noise / get_velocity", "coefficients by time")
def diffusers_add_noise():
    import diffusers

    scheduler = diffusers.DDPMScheduler(num_train_timesteps=20)
    sets = [torch.tensor(each) for each in ([0, 19], [5, 5], [19, 1])]
    return Given(scheduler.add_noise, [(randn(2, 2, 3, 3), randn(2, 2, 3, 3, seed=1), each) for each in sets])


@case("torch-optimizer", "torch_optimizer.Lamb.step", "a ratio of norms, unless one is zero")
def torch_optimizer_lamb():
    import torch_optimizer

    def model(weight, gradient):
        point = weight.clone().requires_grad_()
        optimiser = torch_optimizer.Lamb([point], lr=0.1)
        point.grad = gradient.clone()
        optimiser.step()
        return point.detach()

    w, g = randn(4, seed=1), randn(4, seed=2)
    return Given(model, [(w, g), (0 * w, g), (w, 0 * g)])


@case("torch-optimizer", "torch_optimizer.Yogi.step", "an initial accumulator, and bias corrections")
def torch_optimizer_yogi():
    import torch_optimizer

    def model(weight, gradient):
        point = weight.clone().requires_grad_()
        optimiser = torch_optimizer.Yogi([point], lr=0.1)
        point.grad = gradient.clone()
        optimiser.step()
        return point.detach()

    w, g = randn(4, seed=1), randn(4, seed=2)
    return Given(model, [(w, g), (0 * w, g), (w, 0 * g)])


@case("pytorch-optimizer", "pytorch_optimizer.LARS.step", "a trust ratio where both norms are positive")
def pytorch_optimizer_lars():
    import pytorch_optimizer

    def model(weight, gradient):
        point = weight.clone().requires_grad_()
        optimiser = pytorch_optimizer.LARS([point], lr=0.1)
        point.grad = gradient.clone()
        optimiser.step()
        return point.detach()

    w, g = randn(4, 4, seed=1), randn(4, 4, seed=2)
    return Given(model, [(w, g), (0 * w, g), (w, 0 * g)])
