"""The Drake adapter: the same velocities as Drake's own discrete solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.drake as adapter
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce
from pydrake.multibody.plant import ExternallyAppliedSpatialForce
from pydrake.systems.analysis import Simulator

from support.drake_scenes import TIME_STEP, Scene, arm_holding_box, clutter, stacks
from support.norms import relative_error

TIGHT = sap.Options(relative_tolerance=1e-9)

SCENES: dict[str, Callable[[], Scene]] = {
    "clutter": lambda: clutter(18),
    "stacks": lambda: stacks(3, 4),
    "arm": arm_holding_box,
    "hydroelastic boxes": lambda: clutter(12, hydroelastic=True),
    "hydroelastic stack": lambda: stacks(1, 3, hydroelastic=True),
}


def check_steps(scene: Scene, client: sap.Client, steps: int) -> int:
    """Compares each step of a simulation by Drake; returns the largest number of contacts.

    Both solve every step from Drake's state. The velocities agree to 1e-5 by `relative_error`.
    """
    simulator = Simulator(scene.diagram, scene.context)
    simulator.Initialize()
    most_contacts = 0
    for i in range(steps):
        built = adapter.build_problem(scene.plant, scene.plant_context)
        most_contacts = max(most_contacts, built.problem.contacts.count)
        solution = client.solve(built.problem, TIGHT)
        assert solution.solved
        simulator.AdvanceTo((i + 1) * TIME_STEP)
        expected = scene.plant.GetVelocities(scene.plant_context)[built.velocities]
        error = relative_error(built.problem, solution.velocity, expected)
        assert error <= 1e-5, f"step {i}"
    return most_contacts


@pytest.mark.parametrize("name", SCENES)
def test_velocities_of_each_step_are_those_of_drake(client: sap.Client, name: str) -> None:
    assert check_steps(SCENES[name](), client, 60) >= 8


def test_held_box_is_where_drake_holds_it(client: sap.Client) -> None:
    drake = arm_holding_box()
    mine = drake.copy()
    simulator = Simulator(drake.diagram, drake.context)
    simulator.Initialize()
    simulator.AdvanceTo(3.0)
    with client.session() as session:
        while mine.context.get_time() < 3.0 - TIME_STEP / 2:
            _, solution = adapter.step(mine.plant, mine.context, session)
            assert solution.solved
    box = drake.bodies[0]
    expected: RigidTransform = drake.plant.GetFreeBodyPose(drake.plant_context, box)
    found: RigidTransform = mine.plant.GetFreeBodyPose(mine.plant_context, box)
    assert expected.translation()[2] > 0.5  # held, not fallen
    assert np.linalg.norm(found.translation() - expected.translation()) <= 5e-3
    turned = (found.rotation().inverse() @ expected.rotation()).ToAngleAxis()
    assert abs(np.rad2deg(turned.angle())) <= 2.0


def test_geometry_without_material_is_as_stiff_as_in_drake(client: sap.Client) -> None:
    from pydrake.geometry import AddContactMaterial, ProximityProperties, Sphere
    from pydrake.multibody.plant import CoulombFriction
    from pydrake.multibody.tree import SpatialInertia, UnitInertia

    from support import drake_scenes

    builder, plant = drake_scenes._begin(hydroelastic=False)
    plain = ProximityProperties()
    AddContactMaterial(friction=CoulombFriction(0.3, 0.3), properties=plain)
    balls = []
    for i, mass in enumerate((0.5, 7.0)):
        body = plant.AddRigidBody(
            f"ball{i}", SpatialInertia(mass, np.zeros(3), UnitInertia.SolidSphere(0.1))
        )
        plant.RegisterCollisionGeometry(body, RigidTransform(), Sphere(0.1), f"ball{i}", plain)
        balls.append(body)
    scene = drake_scenes._finish(builder, plant, balls)
    for i, body in enumerate(balls):
        plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform([i * 0.199, 0, 0.0995]))
    assert check_steps(scene, client, 5) == 3


def test_applied_forces_act_as_in_drake(client: sap.Client) -> None:
    scene = arm_holding_box()
    plant, context = scene.plant, scene.plant_context
    push = ExternallyAppliedSpatialForce()
    push.body_index = scene.bodies[0].index()
    push.p_BoBq_B = np.array([0.01, 0.0, 0.02])
    push.F_Bq_W = SpatialForce(tau=np.array([0.1, 0.0, -0.2]), f=np.array([0.5, -1.0, 2.0]))
    plant.get_applied_spatial_force_input_port().FixValue(context, [push])
    torque = np.linspace(-1, 1, plant.num_velocities())
    plant.get_applied_generalized_force_input_port().FixValue(context, torque)
    plant.get_actuation_input_port().FixValue(context, [3.0, -2.0, 1.0, 0.5, 0.25])
    check_steps(scene, client, 2)


def test_joint_limits_hold_as_in_drake(client: sap.Client) -> None:
    scene = arm_holding_box()
    plant, context = scene.plant, scene.plant_context
    plant.GetJointByName("pan").set_angular_rate(context, 4.0)
    plant.GetJointByName("pan").set_angle(context, 1.95)
    desired = np.zeros(10)
    desired[0] = 2.5
    plant.get_desired_state_input_port(plant.GetModelInstanceByName("arm")).FixValue(
        context, desired
    )
    built = adapter.build_problem(plant, context)
    assert built.problem.contacts.count == len(built.bodies) + 1
    check_steps(scene, client, 40)
    assert plant.GetJointByName("pan").get_angle(context) == pytest.approx(2.0, abs=0.02)


def test_unsupported_features_are_refused_by_name() -> None:
    scene = arm_holding_box()
    plant, context = scene.plant, scene.plant_context
    plant.GetJointByName("lift").Lock(context)
    with pytest.raises(sap.InvalidArgument, match=r"locked joints \(joint 'lift'\)"):
        adapter.build_problem(plant, context)
    adapter.build_problem(plant, context, ignore=("locked joints",))
    with pytest.raises(sap.InvalidArgument, match="ignore has 'gravity'"):
        adapter.build_problem(plant, context, ignore=("gravity",))


@pytest.mark.full
def test_large_clutter_agrees_with_drake(client: sap.Client) -> None:
    assert check_steps(clutter(60), client, 100) >= 100
