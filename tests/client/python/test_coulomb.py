"""Exact Coulomb friction: closed forms and reports, in this process and by a server."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sap_islands as sap
from sap_islands._library.c_requests import OptionsBlock, options_at

from support.scenes import same_bits

MU, MASS, R_N, GRAVITY, TIME_STEP = 0.5, 2.0, 7e-3, 9.81, 0.01
EXACT = sap.Options(relative_tolerance=1e-12, coulomb=sap.CoulombFriction())


def sliding_point(speed: float = 3.0) -> sap.Problem:
    """A point mass that slides along t1 on a floor under its weight."""
    return sap.Problem(
        TIME_STEP,
        trees=sap.Trees(
            dofs=[3],
            dynamics_matrix=MASS * np.eye(3).ravel(),
            free_motion_velocity=[speed, 0.0, -GRAVITY * TIME_STEP],
        ),
        contacts=sap.Contacts(
            tree_a=[0],
            tree_b=[sap.WORLD],
            jacobian=np.eye(3).ravel(),
            signed_distance=[0.0],
            stiffness=[1e5],
            relaxation_time=[0.0],
            friction=[MU],
            regularization_t=[5e-4],
            regularization_n=[R_N],
        ),
    )


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
def test_a_sliding_point_does_not_drift_apart(address: str) -> None:
    normal = MASS * GRAVITY * TIME_STEP / (1 + MASS * R_N)
    with sap.connect(address) as client:
        convex = client.solve(sliding_point())
        exact = client.solve(sliding_point(), EXACT)
        with client.session(EXACT) as session:
            assert same_bits(session.step(sliding_point()), exact)
        outcomes = client.solve_batch([sliding_point(), sliding_point(5.0)], EXACT)
    assert convex.velocity[2] > 0.5 * MU * convex.velocity[0]
    assert exact.impulse[0] == pytest.approx([-MU * normal, 0, normal], abs=1e-9)
    island = exact.islands[0]
    assert island.status is sap.IslandStatus.CONVERGED
    assert island.coulomb_rounds > 0
    assert 0 < island.coulomb_defect < 1e-9
    assert island.optimality_gap_bound == np.inf
    assert convex.islands[0].coulomb_rounds == 0
    assert convex.islands[0].coulomb_defect == 0
    # A batch may hold errors, which same_bits would refuse.
    assert same_bits(outcomes[0], exact)  # type: ignore[arg-type]
    assert same_bits(pickle.loads(pickle.dumps(exact)), exact)


def test_rounds_that_are_used_up_are_no_solution() -> None:
    options = sap.Options(coulomb=sap.CoulombFriction(max_rounds=0))
    with sap.connect("embedded:") as client:
        solution = client.solve(sliding_point(), options)
    assert not solution.solved
    assert solution.islands[0].status is sap.IslandStatus.COULOMB_LIMIT
    assert solution.islands[0].coulomb_defect > 0.1


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
def test_options_out_of_range_and_derivatives_are_refused_by_name(address: str) -> None:
    with sap.connect(address) as client:
        for friction, field in (
            (sap.CoulombFriction(tolerance=1.0), "options.coulomb.tolerance"),
            (sap.CoulombFriction(max_rounds=10_001), "options.coulomb.max_rounds"),
        ):
            with pytest.raises(sap.InvalidArgument) as refused:
                client.solve(sliding_point(), sap.Options(coulomb=friction))
            assert refused.value.field == field
        with pytest.raises(sap.InvalidArgument, match="convex model") as refused:
            client.differentiate(
                sliding_point(), [sap.Cotangent(velocity=np.ones(3))], options=EXACT
            )
        assert refused.value.field == "options.coulomb"


def test_options_are_what_their_struct_was_made_of() -> None:
    for friction in (None, sap.CoulombFriction(), sap.CoulombFriction(3, 1e-4)):
        options = sap.Options(coulomb=friction)
        assert options_at(OptionsBlock(options).address) == options
