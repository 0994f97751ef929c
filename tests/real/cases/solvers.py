"""Solvers of differential equations: how many steps are taken depends on the error."""

from __future__ import annotations

import torch

from tests.real.case import Given, case
from tests.real.data import Field, randn


def starts(scale=1.0):
    return randn(2, 3, seed=1, scale=scale)


def spans():
    """A start and the times: few steps, many of them with rejections, backwards, and no step of its own."""
    return [
        (starts(), torch.tensor([0.0, 0.5, 1.0])),
        (starts(30.0), torch.tensor([0.0, 4.0, 9.0])),
        (starts(), torch.tensor([1.0, 0.5, 0.0])),
        (starts(0.1), torch.tensor([0.0, 0.01, 0.02])),
    ]


def torchdiffeq_with(method, **more):
    import torchdiffeq

    field = Field(3, gain=2.0)

    def model(y, t):
        return torchdiffeq.odeint(field, y, t, method=method, **more)

    return model


@case("torchdiffeq", "torchdiffeq.odeint(method='dopri5')", "steps are accepted or tried again by their error")
def torchdiffeq_dopri5():
    return Given(torchdiffeq_with("dopri5", rtol=1e-4, atol=1e-6), spans())


@case("torchdiffeq", "torchdiffeq.odeint(method='bosh3')", "the same of third order")
def torchdiffeq_bosh3():
    return Given(torchdiffeq_with("bosh3", rtol=1e-3, atol=1e-4), spans())


@case("torchdiffeq", "torchdiffeq.odeint(method='adaptive_heun')", "the same of second order")
def torchdiffeq_adaptive_heun():
    return Given(torchdiffeq_with("adaptive_heun", rtol=1e-2, atol=1e-3), spans())


@case("torchdiffeq", "torchdiffeq.odeint(method='rk4')", "a grid made of the times, results where it passes them")
def torchdiffeq_rk4_grid():
    times = ([0.0, 0.4, 1.0], [0.0, 1.3, 2.6], [0.0, 0.05, 0.1], [2.0, 1.2, 0.9])
    model = torchdiffeq_with("rk4", options={"step_size": 0.25})
    return Given(model, [(starts(), torch.tensor(each)) for each in times])


@case("torchdiffeq", "torchdiffeq.odeint(method='implicit_adams')", "fixed-point rounds in each step until they agree")
def torchdiffeq_implicit_adams():
    times = ([0.0, 0.4, 1.0], [0.0, 1.3, 2.6], [0.0, 0.3, 0.5])
    model = torchdiffeq_with("implicit_adams", options={"step_size": 0.25}, rtol=1e-4, atol=1e-6)
    return Given(model, [(starts(), torch.tensor(each)) for each in times])


@case("torchdiffeq", "torchdiffeq.odeint_event", "steps until an event, then bisection for its time")
def torchdiffeq_event():
    import torchdiffeq

    field = Field(3, gain=0.5)

    def model(y, level):
        return torchdiffeq.odeint_event(
            field, y, torch.tensor(0.0), event_fn=lambda t, y: y[0, 0] - level, method="dopri5", rtol=1e-4, atol=1e-5
        )

    return Given(model, [(torch.full((2, 3), 4.0), torch.tensor(at)) for at in (3.0, 3.9, 1.5)])


@case("torchdyn", "torchdyn.numerics.odeint(solver='dopri5')", "adaptive steps, with interpolation between them")
def torchdyn_dopri5():
    from torchdyn.numerics import odeint

    field = Field(3, gain=2.0)

    def model(y, t):
        return odeint(field, y, t, solver="dopri5", rtol=1e-4, atol=1e-5)

    return Given(model, [each for each in spans() if each[1][0] == 0])


@case("torchdyn", "torchdyn.numerics.odeint(solver='tsit5')", "another tableau of the same loop")
def torchdyn_tsit5():
    from torchdyn.numerics import odeint

    field = Field(3, gain=2.0)

    def model(y, t):
        return odeint(field, y, t, solver="tsit5", rtol=1e-4, atol=1e-5)

    return Given(model, [each for each in spans() if each[1][0] == 0])


@case("torchdyn", "torchdyn.numerics.odeint(solver='rk4', save_at=...)", "a fixed grid, results where a time is near")
def torchdyn_save_at():
    from torchdyn.numerics import odeint

    field = Field(3)

    def model(y, t, at):
        return odeint(field, y, t, solver="rk4", save_at=at)

    grid = torch.linspace(0, 1, 6)
    return Given(model, [(starts(), grid, grid[[2, 5]]), (starts(3.0), grid * 2, grid[[0, 3]] * 2)])


@case("xitorch", "xitorch.integrate.solve_ivp(method='rk45')", "a step is tried again until it is accepted")
def xitorch_rk45():
    from xitorch.integrate import solve_ivp

    field = Field(3, gain=2.0)

    def model(y, t):
        return solve_ivp(field, t, y, method="rk45", rtol=1e-4, atol=1e-5)

    return Given(model, spans()[:3])


@case("xitorch", "xitorch.integrate.solve_ivp(method='rk23')", "the same of third order")
def xitorch_rk23():
    from xitorch.integrate import solve_ivp

    field = Field(3, gain=2.0)

    def model(y, t):
        return solve_ivp(field, t, y, method="rk23", rtol=1e-3, atol=1e-4)

    return Given(model, spans()[:3])


@case("zuko", "zuko.utils.odeint", "two nested loops: until the time is reached, until the step is good")
def zuko_odeint():
    from zuko.utils import odeint

    field = Field(3, gain=2.0)

    def model(y, start, end):
        return odeint(field, y, start, end, atol=1e-4, rtol=1e-4)

    times = ((0.0, 1.0), (0.0, 8.0), (1.0, 0.0), (0.0, 0.01))
    return Given(model, [(starts(), torch.tensor(t0), torch.tensor(t1)) for t0, t1 in times])


@case("torchode", "torchode.AutoDiffAdjoint.solve", "each of the batch has its own step; until all are done")
def torchode_dopri5():
    import torchode

    term = torchode.ODETerm(Field(3, gain=2.0))
    controller = torchode.IntegralController(atol=1e-4, rtol=1e-3, term=term)
    solver = torchode.AutoDiffAdjoint(torchode.Dopri5(term=term), controller)

    def model(y, t):
        return solver.solve(torchode.InitialValueProblem(y0=y, t_eval=t)).ys

    times = torch.tensor([[0.0, 0.5, 1.0], [0.0, 0.1, 0.3]])
    return Given(model, [(starts(), times), (starts(30.0), times * 8), (starts(0.1), times * 0.02)])


@case("torchsde", "torchsde.sdeint(adaptive=True)", "adaptive steps along given noise")
def torchsde_adaptive():
    import torchsde

    class Diffusion(torch.nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.drift = Field(3)

        def f(self, t, y):
            return self.drift(t, y)

        def g(self, t, y):
            return 0.3 * torch.cos(y)

    diffusion = Diffusion()

    class Path:
        shape, dtype, device, levy_area_approximation = (2, 3), torch.float32, torch.device("cpu"), "none"

        def __call__(self, ta, tb=None, return_U=False, return_A=False):  # noqa: N803 - the names are torchsde's
            return torch.sin(3 * tb) - torch.sin(3 * ta) + torch.zeros(2, 3)

    path = Path()

    def model(y, t):
        return torchsde.sdeint(diffusion, y, t, bm=path, dt=0.1, method="milstein", adaptive=True, rtol=0.05, atol=0.01)

    return Given(
        model, [*[each for each in spans() if each[1][0] == 0][:2], (starts(3.0), torch.tensor([0, 0.3, 2.0]))]
    )


@case("torchcde", "torchcde.natural_cubic_coeffs", "series with gaps are filled one by one, whole ones at once")
def torchcde_cubic_gaps():
    import torchcde

    whole = randn(2, 7, 2, seed=3)
    gaps, edge = whole.clone(), whole.clone()
    gaps[0, 2:4, 0] = gaps[1, 5, 1] = float("nan")
    edge[:, 0, 0] = edge[0, -1, 1] = float("nan")
    return Given(lambda x: torchcde.natural_cubic_coeffs(x), [(whole,), (gaps,), (edge,)])  # noqa: PLW0108


@case("torchcde", "torchcde.linear_interpolation_coeffs", "the same with lines between the points")
def torchcde_linear_gaps():
    import torchcde

    whole = randn(2, 7, 2, seed=3)
    gaps, edge = whole.clone(), whole.clone()
    gaps[0, 2:4, 0] = gaps[1, 5, 1] = float("nan")
    edge[:, 0, 0] = edge[0, -1, 1] = float("nan")
    return Given(lambda x: torchcde.linear_interpolation_coeffs(x), [(whole,), (gaps,), (edge,)])  # noqa: PLW0108


@case("torchdde", "torchdde.integrate (adaptive)", "steps by a controller until the end, with a limit")
def torchdde_adaptive():
    import torchdde

    field = Field(3, gain=2.0)

    def model(y, end):
        controller = torchdde.AdaptiveStepSizeController(atol=1e-3, rtol=1e-3)
        at = torch.linspace(0, 1, 3) * end
        return torchdde.integrate(
            lambda t, y, args: field(t, y),
            torchdde.Dopri5(),
            torch.tensor(0.0),
            end,
            at,
            y,
            None,
            controller,
            dt0=torch.tensor(0.1),
            discretize_then_optimize=True,
        )

    return Given(
        model, [(starts(), torch.tensor(1.0)), (starts(9.0), torch.tensor(4.0)), (starts(), torch.tensor(0.05))]
    )


@case("fdeint", "FDEint.FDEint", "a predictor and corrector with memory of all steps before")
def fdeint_fractional():
    from FDEint import FDEint

    field = Field(3)

    def model(t, y):
        return FDEint(field, t, y, torch.tensor(0.8), h=torch.tensor(0.1))

    return Given(model, [(torch.linspace(0, end, 4).expand(2, 4)[..., None], starts()) for end in (1.0, 2.0, 0.3)])


@case("torchdae", "torchdae.solve_bdf1", "Newton's rounds in each implicit step")
def torchdae_bdf():
    import torchdae

    def model(y):
        return torchdae.solve_bdf1(lambda t, y, yp: yp + 2 * y + y**3, (0.0, 1.0), y, n_steps=5, max_iter_for_events=5)

    return Given(model, [(starts(),), (starts(9.0),), (starts(0.1),)])
