"""The solve as a function of JAX arrays: derivatives, batches, data types, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.jax
from jax import test_util

from support.counted_client import CountedClient
from support.scenes import balls_on_floor, linked_balls
from support.sliding_block import SlidingBlock

check_grads: Any = test_util.check_grads  # these have no types
set_option: Any = jax.config.update
EXACT = sap.Options(relative_tolerance=1e-14)
RNG = np.random.default_rng(1)
MASS = np.array([1.0, 1.1, 1.2])
FRICTION = np.array([0.5, 0.4, 0.3])
FRICTIONS = RNG.uniform(0.1, 1.0, (4, 3))
INERTIA = np.array([[0.004, 0.005, 0.006, 3e-4, -2e-4, 4e-4]] * 3)
IMPULSE = RNG.normal(size=18) / 100
WEIGHTS = RNG.normal(size=18)


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    set_option("jax_enable_x64", True)
    yield
    set_option("jax_enable_x64", False)


def balls() -> sap.Problem:
    """One ball that slides, one that nearly sticks, one that sticks."""
    return balls_on_floor([1.0, 0.3, 0.02], gap=-1e-4)


Solve = Callable[..., sap.jax.Outputs]


def solver(client: sap.Client, *paths: str, solve: Solve = sap.jax.solve) -> Solve:
    def function(*arrays: Any) -> sap.jax.Outputs:
        return solve(client, balls(), dict(zip(paths, arrays, strict=True)), options=EXACT)

    return function


def loss(client: sap.Client, *paths: str) -> Callable[..., jax.Array]:
    function = solver(client, *paths)

    def weighted(*arrays: Any) -> jax.Array:
        outputs = function(*arrays)
        return jnp.sum(outputs.velocity * WEIGHTS) + jnp.sum(outputs.impulse) + outputs.cost

    return weighted


@pytest.mark.parametrize(("mode", "solve"), [("rev", sap.jax.solve), ("fwd", sap.jax.solve_jvp)])
def test_derivatives_agree_with_differences(client: sap.Client, mode: str, solve: Solve) -> None:
    paths = ("body_contacts.friction", "bodies.mass", "bodies.inertia", "applied_impulse")
    function = solver(client, *paths, "time_step", solve=solve)
    arguments = (FRICTION, MASS, INERTIA, IMPULSE, 0.01)
    check_grads(function, arguments, order=1, modes=[mode], atol=1e-3, rtol=1e-3, eps=1e-6)


def test_derivatives_of_rows_and_every_law_agree_with_differences(client: sap.Client) -> None:
    problem = linked_balls(3, count=6)

    def outputs(bound: Any, dissipation: Any) -> tuple[jax.Array, ...]:
        inputs = {
            "rows.force_upper": bound,
            "body_contacts.hunt_crossley.dissipation": dissipation,
        }
        solved = sap.jax.solve(client, problem, inputs, options=EXACT)
        return solved.row_impulse, solved.row_velocity, solved.angular_impulse

    arguments = (problem.rows.force_upper, 0.2)
    check_grads(outputs, arguments, order=1, modes=["rev"], atol=1e-4, rtol=1e-4, eps=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_of_a_sliding_block_is_its_slope(client: sap.Client, compiled: bool) -> None:
    block = SlidingBlock()

    def velocity(friction: Any, impulse: Any) -> jax.Array:
        inputs = {"body_contacts.friction": friction, "applied_impulse": impulse}
        return sap.jax.solve(client, block.problem(), inputs).velocity[0]

    function = jax.value_and_grad(velocity, argnums=(0, 1))
    arguments = (jnp.array(block.friction), jnp.zeros(6))
    value, (friction, impulse) = (jax.jit(function) if compiled else function)(*arguments)
    slopes = block.slopes_of_velocity()
    assert float(value) == pytest.approx(block.velocity, rel=1e-12)
    assert float(friction) == pytest.approx(slopes["body_contacts.friction"][0], rel=1e-9)
    assert np.asarray(impulse) == pytest.approx(slopes["applied_impulse"], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("path", ["body_contacts.friction", "bodies.mass"])
def test_vmap_is_a_loop(client: sap.Client, path: str) -> None:
    function = loss(client, path)
    batched = jax.jit(jax.vmap(function))(FRICTIONS)
    assert np.asarray(batched) == pytest.approx(
        np.array([function(value) for value in FRICTIONS]), rel=1e-13
    )
    gradients = jax.jit(jax.vmap(jax.grad(function)))(FRICTIONS)
    expected = np.array([jax.grad(function)(value) for value in FRICTIONS])
    assert np.asarray(gradients) == pytest.approx(expected, rel=1e-13)


def test_vmap_sums_gradients_of_what_it_shares(client: sap.Client) -> None:
    function = loss(client, "body_contacts.friction", "bodies.inertia")

    def total(inertia: Any) -> jax.Array:
        return jnp.sum(jax.vmap(lambda friction: function(friction, inertia))(FRICTIONS))

    gradients = [jax.grad(function, argnums=1)(value, INERTIA) for value in FRICTIONS]
    assert np.asarray(jax.grad(total)(INERTIA)) == pytest.approx(np.sum(gradients, 0), rel=1e-12)


def test_nested_vmap_is_a_nested_loop(client: sap.Client) -> None:
    function = loss(client, "body_contacts.friction", "time_step")
    steps = np.array([0.01, 0.02])
    nested = jax.vmap(jax.vmap(function, in_axes=(0, None)), in_axes=(None, 0))
    expected = [[function(value, step) for value in FRICTIONS] for step in steps]
    assert np.array_equal(nested(FRICTIONS, steps), expected)


def test_a_batch_is_one_call_and_a_jacobian_one_request(client: sap.Client) -> None:
    counted: Any = CountedClient(client)
    jax.vmap(jax.grad(loss(counted, "body_contacts.friction")))(FRICTIONS)
    assert counted.solved == [4]
    assert [len(requests) for requests in counted.requests] == [4]
    function = solver(counted, "body_contacts.friction")
    jax.jacrev(lambda friction: function(friction).impulse)(FRICTION)
    assert counted.cotangents == [9]
    assert len(counted.requests) == 1


def test_jacobians_of_both_modes_agree(client: sap.Client) -> None:
    paths = ("body_contacts.friction", "bodies.mass", "applied_impulse")
    arguments = (FRICTION, MASS, IMPULSE)

    def outputs(solve: Solve) -> Callable[..., tuple[jax.Array, ...]]:
        return lambda *arrays: tuple(solver(client, *paths, solve=solve)(*arrays))

    reverse = jax.jacrev(outputs(sap.jax.solve), argnums=(0, 1, 2))(*arguments)
    forward = jax.jacfwd(outputs(sap.jax.solve_jvp), argnums=(0, 1, 2))(*arguments)
    leaves = zip(jax.tree.leaves(reverse), jax.tree.leaves(forward), strict=True)
    for a, b in ((np.asarray(a), np.asarray(b)) for a, b in leaves):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9 * abs(b).max(initial=0))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_data_type_of_the_inputs_is_that_of_outputs_and_gradients(
    client: sap.Client, dtype: Any
) -> None:
    function = solver(client, "body_contacts.friction")
    friction = jnp.asarray(FRICTION, dtype)
    assert {output.dtype for output in function(friction)} == {jnp.dtype(dtype)}
    gradient = jax.grad(lambda f: jnp.sum(function(f).velocity))
    assert gradient(friction).dtype == dtype
    exact = np.asarray(gradient(FRICTION))
    assert np.asarray(gradient(friction), np.float64) == pytest.approx(exact, rel=1e-5)


def test_single_precision_of_jax_is_enough(client: sap.Client) -> None:
    function = solver(client, "body_contacts.friction")
    gradient = jax.grad(lambda f: jnp.sum(function(f).velocity))
    exact = gradient(FRICTION)
    set_option("jax_enable_x64", False)
    found = gradient(jnp.asarray(FRICTION))
    assert found.dtype == jnp.float32
    assert np.asarray(found, np.float64) == pytest.approx(np.asarray(exact), rel=1e-5)


def test_outputs_are_those_of_the_client(client: sap.Client) -> None:
    problem = balls()
    problem.bodies.mass = MASS
    solution = client.solve(problem, EXACT)
    for name, output in solver(client, "bodies.mass")(MASS)._asdict().items():
        assert np.array_equal(output, getattr(solution, name))


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("body_contacts.fritcion", 0.5, "is no input with a derivative"),
        ("body_contacts.friction", [0.5, 0.4], r"has shape \(2,\); \(3,\) is needed"),
        ("bodies.free_motion_velocity", [[0.0] * 3] * 6, r"has shape \(6, 3\); \(3, 6\)"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name(
    client: sap.Client, path: str, value: Any, error: str
) -> None:
    with pytest.raises(sap.InvalidArgument, match=error) as caught:
        jax.jit(lambda x: sap.jax.solve(client, balls(), {path: x}))(jnp.array(value))
    assert caught.value.field == path


def test_errors_of_the_server_are_in_the_message(client: sap.Client) -> None:
    with pytest.raises(Exception, match=r"body_contacts\.friction\[0\] is -0\.5"):
        solver(client, "body_contacts.friction")(-FRICTION).cost.block_until_ready()
