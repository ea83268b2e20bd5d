"""The solve as a function of PyTorch tensors: derivatives, batches, data types, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.torch
import torch
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

from support.counted_client import CountedClient
from support.scenes import balls_on_floor, linked_balls
from support.sliding_block import SlidingBlock

# PyTorch itself calls what it deprecates when forward mode is first used.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:FutureWarning")

EXACT = sap.Options(relative_tolerance=1e-14)
MASS = torch.tensor([1.0, 1.1, 1.2], dtype=torch.float64)
FRICTION = torch.tensor([0.5, 0.4, 0.3], dtype=torch.float64)
INERTIA = torch.tensor([[0.004, 0.005, 0.006, 3e-4, -2e-4, 4e-4]] * 3, dtype=torch.float64)
IMPULSE = torch.tensor(np.random.default_rng(1).normal(size=18) / 100)
WEIGHTS = torch.tensor(np.random.default_rng(2).normal(size=18))


def balls() -> sap.Problem:
    """One ball that slides, one that nearly sticks, one that sticks."""
    return balls_on_floor([1.0, 0.3, 0.02], gap=-1e-4)


def solver(client: sap.Client, *paths: str) -> Callable[..., sap.torch.Outputs]:
    def function(*tensors: torch.Tensor) -> sap.torch.Outputs:
        inputs = dict(zip(paths, tensors, strict=True))
        return sap.torch.solve(client, balls(), inputs, options=EXACT)

    return function


def loss(client: sap.Client, *paths: str) -> Callable[..., torch.Tensor]:
    function = solver(client, *paths)

    def weighted(*tensors: torch.Tensor) -> torch.Tensor:
        outputs = function(*tensors)
        return (outputs.velocity * WEIGHTS).sum() + outputs.impulse.sum() + outputs.cost

    return weighted


def test_gradcheck_in_both_modes(client: sap.Client) -> None:
    paths = ("body_contacts.friction", "bodies.mass", "bodies.inertia", "applied_impulse")
    function = solver(client, *paths, "time_step")

    def smooth_outputs(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = function(*tensors)
        return outputs.velocity, outputs.impulse, outputs.contact_velocity, outputs.cost

    step = torch.tensor(0.01, dtype=torch.float64)
    tensors = [t.clone().requires_grad_() for t in (FRICTION, MASS, INERTIA, IMPULSE, step)]
    assert torch.autograd.gradcheck(
        smooth_outputs, tensors, check_forward_ad=True, atol=2e-4, rtol=2e-4
    )


def test_gradcheck_of_rows_and_every_law(client: sap.Client) -> None:
    problem = linked_balls(3, count=6)
    bound = torch.tensor(problem.rows.force_upper, requires_grad=True)
    dissipation = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)

    def outputs(bound: torch.Tensor, dissipation: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inputs = {
            "rows.force_upper": bound,
            "body_contacts.hunt_crossley.dissipation": dissipation,
        }
        solved = sap.torch.solve(client, problem, inputs, options=EXACT)
        return solved.row_impulse, solved.row_velocity, solved.angular_impulse

    assert torch.autograd.gradcheck(outputs, [bound, dissipation], atol=1e-5, rtol=1e-4)


def test_gradient_of_a_sliding_block_is_its_slope(client: sap.Client) -> None:
    block = SlidingBlock()
    friction = torch.tensor(block.friction, dtype=torch.float64, requires_grad=True)
    impulse = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    inputs = {"body_contacts.friction": friction, "applied_impulse": impulse}
    outputs = sap.torch.solve(client, block.problem(), inputs)
    assert outputs.velocity[0].item() == pytest.approx(block.velocity, rel=1e-12)
    torch.autograd.backward(outputs.velocity[0])
    slopes = block.slopes_of_velocity()
    assert friction.grad is not None
    assert impulse.grad is not None
    assert friction.grad.item() == pytest.approx(slopes["body_contacts.friction"][0], rel=1e-9)
    assert impulse.grad.numpy() == pytest.approx(slopes["applied_impulse"], rel=1e-9, abs=1e-12)


def test_an_applied_impulse_adds_to_the_momentum(client: sap.Client) -> None:
    problem = balls()
    pushed = solver(client, "applied_impulse", "bodies.mass")(IMPULSE, MASS)
    change = IMPULSE.reshape(3, 6).clone()
    change[:, :3] /= MASS[:, None]
    change[:, 3:] /= 0.004
    problem.bodies.mass = MASS.numpy()
    problem.bodies.free_motion_velocity = problem.bodies.free_motion_velocity + change.numpy()
    assert pushed.velocity.numpy() == pytest.approx(
        client.solve(problem, EXACT).velocity, abs=1e-12
    )


@pytest.mark.parametrize("path", ["body_contacts.friction", "bodies.mass"])
def test_vmap_is_a_loop(client: sap.Client, path: str) -> None:
    function = loss(client, path)
    values = torch.rand(5, 3, dtype=torch.float64) + 0.1
    batched = vmap(function)(values)
    assert torch.equal(batched, torch.stack([function(value) for value in values]))
    gradients = vmap(grad(function))(values)
    assert torch.equal(gradients, torch.stack([grad(function)(value) for value in values]))


def test_vmap_sums_gradients_of_what_it_shares(client: sap.Client) -> None:
    function = loss(client, "body_contacts.friction", "bodies.inertia")
    values = torch.rand(4, 3, dtype=torch.float64)

    def total(inertia: torch.Tensor) -> torch.Tensor:
        return vmap(lambda friction: function(friction, inertia))(values).sum()

    of_inertia: Any = grad(function, argnums=1)
    expected = torch.stack([of_inertia(value, INERTIA) for value in values]).sum(0)
    assert torch.allclose(grad(total)(INERTIA), expected, rtol=1e-12)


def test_nested_vmap_is_a_nested_loop(client: sap.Client) -> None:
    function = loss(client, "body_contacts.friction", "time_step")
    values = torch.rand(3, 3, dtype=torch.float64)
    steps = torch.tensor([0.01, 0.02], dtype=torch.float64)
    found = vmap(lambda step: vmap(lambda value: function(value, step))(values))(steps)
    assert found.shape == (2, 3)
    for i, step in enumerate(steps):
        for j, value in enumerate(values):
            assert found[i, j] == function(value, step)


def test_a_batch_is_one_call_and_a_jacobian_one_request(client: sap.Client) -> None:
    counted: Any = CountedClient(client)
    values = torch.rand(5, 3, dtype=torch.float64)
    vmap(grad(loss(counted, "body_contacts.friction")))(values)
    assert counted.solved == [5]
    assert [len(requests) for requests in counted.requests] == [5]
    jacrev(lambda friction: solver(counted, "body_contacts.friction")(friction).impulse)(FRICTION)
    assert counted.cotangents == [9]
    assert counted.wanted == [["body_contacts.friction"]]
    assert len(counted.requests) == 1


def test_forward_and_reverse_mode_are_transposes(client: sap.Client) -> None:
    function = solver(client, "body_contacts.friction", "bodies.mass", "applied_impulse")
    inputs = (FRICTION, MASS, IMPULSE)
    rng = torch.Generator().manual_seed(3)
    directions = tuple(torch.rand(x.shape, generator=rng, dtype=x.dtype) for x in inputs)
    pushed: Any = jvp(lambda *x: tuple(function(*x)), inputs, directions)
    outputs, tangents = pushed
    cotangents = tuple(torch.rand(x.shape, generator=rng, dtype=x.dtype) for x in outputs)
    pull_back: Any = vjp(lambda *x: tuple(function(*x)), *inputs)[1]
    gradients = pull_back(cotangents)
    forward = sum((a * b).sum() for a, b in zip(cotangents, tangents, strict=True))
    reverse = sum((a * b).sum() for a, b in zip(gradients, directions, strict=True))
    assert float(forward) == pytest.approx(float(reverse), rel=1e-9)


def test_jacobians_of_both_modes_agree(client: sap.Client) -> None:
    def velocity(friction: torch.Tensor) -> torch.Tensor:
        return solver(client, "body_contacts.friction")(friction).velocity

    assert torch.allclose(jacrev(velocity)(FRICTION), jacfwd(velocity)(FRICTION), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_data_type_of_the_inputs_is_that_of_outputs_and_gradients(
    client: sap.Client, dtype: torch.dtype
) -> None:
    friction = FRICTION.to(dtype, copy=True).requires_grad_()
    outputs = solver(client, "body_contacts.friction")(friction)
    assert {output.dtype for output in outputs} == {dtype}
    torch.autograd.backward(outputs.velocity.sum())
    exact = grad(lambda f: solver(client, "body_contacts.friction")(f).velocity.sum())(FRICTION)
    assert friction.grad is not None
    assert friction.grad.dtype == dtype
    assert friction.grad.double().numpy() == pytest.approx(exact.numpy(), rel=1e-5)


def test_a_number_stands_for_all_entries(client: sap.Client) -> None:
    function = loss(client, "body_contacts.friction")
    one = torch.tensor(0.4, dtype=torch.float64)
    assert grad(function)(one).shape == ()
    assert grad(function)(one).item() == pytest.approx(grad(function)(one.expand(3)).sum().item())


def test_outputs_without_gradient_are_those_of_the_client(client: sap.Client) -> None:
    outputs = solver(client, "bodies.mass")(MASS)
    problem = balls()
    problem.bodies.mass = MASS.numpy()
    solution = client.solve(problem, EXACT)
    for name, output in outputs._asdict().items():
        assert np.array_equal(output.numpy(), getattr(solution, name))
        assert not output.requires_grad


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("body_contacts.fritcion", 0.5, "is no input with a derivative"),
        ("bodies.guess_velocity", 0.5, "is no input with a derivative"),
        ("body_contacts.friction", [0.5, 0.4], r"has shape \(2,\); \(3,\) is needed"),
        ("bodies.free_motion_velocity", [[0.0] * 3] * 6, r"has shape \(6, 3\); \(3, 6\)"),
        ("time_step", [0.1, 0.2], r"has shape \(2,\); \(\) is needed"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name(
    client: sap.Client, path: str, value: Any, error: str
) -> None:
    with pytest.raises(sap.InvalidArgument, match=error) as caught:
        sap.torch.solve(client, balls(), {path: torch.tensor(value)})
    assert caught.value.field == path


def test_errors_of_the_server_keep_their_field(client: sap.Client) -> None:
    with pytest.raises(sap.InvalidArgument) as caught:
        solver(client, "body_contacts.friction")(-FRICTION)
    assert caught.value.field == "body_contacts.friction[0]"


def test_options_with_a_mask_are_refused(client: sap.Client) -> None:
    options = sap.Options(response_mask=("velocity",))
    with pytest.raises(sap.InvalidArgument, match="all outputs are needed"):
        sap.torch.solve(client, balls(), {"bodies.mass": MASS}, options=options)


def test_an_unsolved_island_is_reported(client: sap.Client) -> None:
    options = sap.Options(max_iterations=0)
    inputs = {"bodies.mass": MASS.clone().requires_grad_()}
    with pytest.warns(RuntimeWarning, match="islands were not solved; the worst is"):
        outputs = sap.torch.solve(client, balls(), inputs, options=options)
    with pytest.warns(RuntimeWarning, match="no accurate derivatives; the worst is INACCURATE"):
        torch.autograd.backward(outputs.cost)
    with pytest.raises(sap.SapError, match="islands were not solved"):
        sap.torch.solve(client, balls(), inputs, options=options, on_unsolved="raise")


def test_second_derivatives_are_refused(client: sap.Client) -> None:
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        grad(lambda x: grad(loss(client, "body_contacts.friction"))(x).sum())(FRICTION)
