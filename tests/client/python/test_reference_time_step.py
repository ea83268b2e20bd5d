"""Steps of any length with the dashpots and springs of one reference time step."""

from __future__ import annotations

import numpy as np
import pytest
import sap_islands as sap

MASS, PULL, WEIGHT, SIGMA, REFERENCE = 2.0, 4.0, 15.0, 0.02, 0.005
# w of a contact that moves a mass alone, and the creep of a dashpot of 1 / (sigma w h).
CREEP = SIGMA * np.sqrt(3) / (3 * MASS) * REFERENCE * PULL


def block(time_step: float, reference_time_step: float | None = REFERENCE) -> sap.Problem:
    """A block that is pulled along the ground, at the speed at which friction balances that."""
    stiffness = 1e4
    return sap.Problem(
        time_step,
        trees=sap.Trees(
            dofs=[3],
            dynamics_matrix=MASS * np.eye(3),
            free_motion_velocity=[
                CREEP + time_step * PULL / MASS,
                0,
                -time_step * WEIGHT / MASS,
            ],
        ),
        contacts=sap.Contacts(
            tree_a=[0],
            tree_b=[sap.WORLD],
            jacobian=np.eye(3),
            signed_distance=[-WEIGHT / stiffness],
            stiffness=[stiffness],
            relaxation_time=[0.0],
            friction=[0.9],
        ),
        regularization=sap.Regularization(
            beta=0.0, sigma=SIGMA, reference_time_step=reference_time_step
        ),
    )


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
@pytest.mark.parametrize("time_step", [0.001, 0.005, 0.25])
def test_a_block_creeps_the_same_in_steps_of_any_length(address: str, time_step: float) -> None:
    options = sap.Options(relative_tolerance=1e-12)
    with sap.connect(address) as client:
        velocity = client.solve(block(time_step), options).velocity
        by_session = client.session(options).step(block(time_step)).velocity
    assert velocity[0] == pytest.approx(CREEP, rel=1e-9)
    np.testing.assert_array_equal(velocity, by_session)


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_others_than_positive_numbers_are_refused(address: str, value: float) -> None:
    with (
        sap.connect(address) as client,
        pytest.raises(sap.InvalidArgument) as error,
    ):
        client.solve(block(0.01, value))
    assert error.value.field == "regularization.reference_time_step"


def test_gradient_is_that_of_the_creep() -> None:
    """The block ends at v = (m v_0 + dt F) / (m + dt c), with the dashpot c = 1 / (sigma w h)."""
    time_step = 0.05
    problem, moved = block(time_step), block(time_step, REFERENCE * (1 + 1e-6))
    options = sap.Options(relative_tolerance=1e-13)
    with sap.connect("embedded:") as client:
        derivatives = client.differentiate(
            problem, [sap.Cotangent(velocity=[1, 0, 0])], options=options
        )
        change = client.solve(moved, options).velocity - client.solve(problem, options).velocity
    gradient = derivatives.gradients[0].regularization.reference_time_step
    dashpot = PULL / CREEP
    expected = CREEP * time_step * dashpot / (MASS + time_step * dashpot) / REFERENCE
    assert gradient == pytest.approx(expected, rel=1e-6)
    assert gradient == pytest.approx(change[0] / (REFERENCE * 1e-6), rel=1e-4)
