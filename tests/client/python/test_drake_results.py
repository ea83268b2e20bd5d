"""Contact results and forces of a step are what Drake's ports show of its own update."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.drake as adapter
from pydrake.multibody.tree import ModelInstanceIndex
from pydrake.systems.framework import Context
from sap_islands.arrays import FloatArray

from support import drake_constraint_scenes as scenes
from support.drake_agreement import TIGHT
from support.drake_scenes import Scene, arm_holding_box, clutter

SCENES: dict[str, Callable[[], Scene]] = {
    "arm that holds a box": lambda: arm_holding_box("lagged"),
    "reversed joints": scenes.reversed_tree,
    "effort limits reached": lambda: scenes.arm_with_effort(5.0),
    "balls": scenes.balls,
    "welds": scenes.welds,
    "distances": scenes.distances,
    "couplers": scenes.couplers,
}


def both(scene: Scene, client: sap.Client) -> tuple[Context, adapter.Step]:
    """A context that Drake has updated, and the step of the adapter from the same state."""
    drake = scene.copy()
    scene.plant.ExecuteForcedEvents(drake.plant_context)
    with client.session(TIGHT) as session:
        return drake.plant_context, adapter.step(scene.plant, scene.context, session)


def assert_close(found: FloatArray, expected: FloatArray) -> None:
    """Within 1e-5 of the largest expected value."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("name", SCENES)
def test_reaction_forces_are_those_of_drakes_port(client: sap.Client, name: str) -> None:
    scene = SCENES[name]()
    updated, step = both(scene, client)
    expected = scene.plant.get_reaction_forces_output_port().Eval(updated)
    found = step.results.reaction_forces
    assert len(found) == len(expected)
    assert_close(
        np.array([force.get_coeffs() for force in found]),
        np.array([force.get_coeffs() for force in expected]),
    )


@pytest.mark.parametrize("name", ["arm that holds a box", "effort limits reached"])
def test_net_actuation_is_that_of_drakes_port(client: sap.Client, name: str) -> None:
    scene = SCENES[name]()
    updated, step = both(scene, client)
    expected = scene.plant.get_net_actuation_output_port().Eval(updated)
    assert_close(step.results.net_actuation, expected)


@pytest.mark.parametrize("approximation", ["sap", "lagged", "similar"])
def test_contacts_have_points_forces_and_speeds_of_drake(
    client: sap.Client, approximation: str
) -> None:
    scene = arm_holding_box(approximation)
    updated, step = both(scene, client)
    port = scene.plant.get_contact_results_output_port().Eval(updated)
    contacts = step.results.contacts
    assert port.num_point_pair_contacts() == len(contacts.force) == 8
    pairs = [port.point_pair_contact_info(i) for i in range(8)]
    assert_close(contacts.point, np.array([pair.contact_point() for pair in pairs]))
    assert_close(contacts.force, np.array([pair.contact_force() for pair in pairs]))
    assert_close(contacts.normal, np.array([-pair.point_pair().nhat_BA_W for pair in pairs]))
    assert_close(contacts.slip_speed, np.array([pair.slip_speed() for pair in pairs]))
    assert_close(contacts.separation_speed, np.array([pair.separation_speed() for pair in pairs]))
    bodies = [(int(pair.bodyA_index()), int(pair.bodyB_index())) for pair in pairs]
    assert contacts.bodies.tolist() == [list(pair) for pair in bodies]


def test_generalized_contact_forces_are_those_of_drakes_ports(client: sap.Client) -> None:
    scene = clutter(12, True, "lagged")
    for _ in range(10):
        scene.plant.ExecuteForcedEvents(scene.plant_context)
    updated, step = both(scene, client)
    plant, found = scene.plant, step.results.generalized_contact_forces
    assert np.abs(found).max() > 1.0
    for index in range(plant.num_model_instances()):
        instance = ModelInstanceIndex(index)
        expected = plant.get_generalized_contact_forces_output_port(instance).Eval(updated)
        if len(expected):
            assert_close(plant.GetVelocitiesFromArray(instance, found), expected)


def test_impulses_of_another_problem_are_refused(client: sap.Client) -> None:
    scene = arm_holding_box("lagged")
    built = adapter.build_problem(scene.plant, scene.plant_context)
    solution = client.solve(sap.Problem(0.01, trees=built.problem.trees))
    results = adapter.apply(scene.plant, scene.context, built, solution)
    with pytest.raises(sap.InvalidArgument, match="impulses of 0 contacts; 8 are needed"):
        _ = results.generalized_contact_forces


def test_forces_of_a_step_explain_its_velocities(client: sap.Client) -> None:
    scene = scenes.tendon_with_coupler()
    built = adapter.build_problem(scene.plant, scene.plant_context)
    _, step = both(scene, client)
    (first, *rest), dt = built.problem.trees.blocks(), built.problem.time_step
    A = np.block(
        [
            [first, np.zeros((len(first), len(rest[0])))],
            [np.zeros((len(rest[0]), len(first))), rest[0]],
        ]
    )
    change = step.solution.velocity - built.problem.trees.free_motion_velocity
    forces = step.results.generalized_contact_forces + step.results.generalized_constraint_forces
    assert_close(A @ change / dt, forces[built.velocities])
    assert {"coupler", "distance"} <= {row.kind for row in step.built.rows}


def test_ports_of_the_plant_keep_what_drake_has_sampled(client: sap.Client) -> None:
    scene = arm_holding_box("lagged")
    _, step = both(scene, client)
    port = scene.plant.get_contact_results_output_port()
    assert len(step.results.contacts.force) == 8
    assert port.Eval(scene.plant_context).num_point_pair_contacts() == 0
