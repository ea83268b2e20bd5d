"""Parameters of Drake's constraints, which pydrake does not give, are found or asked for."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.drake as adapter
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyConstraintId, PrismaticJoint
from sap_islands.drake.constraint_parameters import find_constraints
from sap_islands.drake.constraints import Constraint, Distance

from support import drake_constraint_scenes as scenes
from support.drake_agreement import TIGHT, largest_error
from support.drake_constraint_scenes import X_P, X_Q, P, Q, add_bodies, chain
from support.drake_scenes import Scene, begin, finish
from support.norms import relative_error

TENDON = np.array([1.5, -0.7, 2.0])  # coefficients of drake_constraint_scenes.tendon_urdf


def found_in(scene: Scene) -> dict[MultibodyConstraintId, Constraint]:
    return find_constraints(scene.plant, scene.plant_context, {})


def test_ball_is_found_with_its_points() -> None:
    scene = scenes.balls()
    ball = next(iter(found_in(scene).values()))
    assert isinstance(ball, adapter.Ball)
    assert [ball.body_A, ball.body_B] == [body.index() for body in scene.bodies[:2]]
    np.testing.assert_allclose(np.asarray(ball.p_AP), P, atol=1e-12)
    np.testing.assert_allclose(np.asarray(ball.p_BQ), Q, atol=1e-12)


def test_weld_is_found_with_its_relative_orientation() -> None:
    scene = scenes.welds()
    weld = next(iter(found_in(scene).values()))
    assert isinstance(weld, adapter.Weld)
    np.testing.assert_allclose(weld.X_AP.translation(), P, atol=1e-12)
    np.testing.assert_allclose(weld.X_BQ.translation(), Q, atol=1e-12)
    found = weld.X_BQ.rotation() @ weld.X_AP.rotation().inverse()
    given = X_Q.rotation() @ X_P.rotation().inverse()
    np.testing.assert_allclose(found.matrix(), given.matrix(), atol=1e-9)


def test_couplers_are_found_with_ratio_and_offset() -> None:
    found = list(found_in(scenes.couplers()).values())
    assert all(isinstance(coupler, adapter.Coupler) for coupler in found)
    parameters = [(c.gear_ratio, c.offset) for c in found if isinstance(c, adapter.Coupler)]
    np.testing.assert_allclose(parameters, [(-3.0, 0.1), (0.5, 0.0)], atol=1e-12)


@pytest.mark.parametrize(
    ("stiffness", "damping"), [(100.0, 3.0), (1e4, 0.0), (1e6, 1e4), (1e9, 1e5)]
)
def test_tendon_is_found_up_to_the_scale_of_its_length(stiffness: float, damping: float) -> None:
    scene = scenes.tendon(stiffness, damping)
    (tendon,) = found_in(scene).values()
    assert isinstance(tendon, adapter.Tendon)
    names = [scene.plant.get_joint(joint).name() for joint in tendon.joints]
    assert names == ["q0", "q1", "q2"]
    scale = tendon.coefficients[0] / TENDON[0]
    limits = sorted([scale * (-0.2 - 0.5), scale * (0.3 - 0.5)])
    np.testing.assert_allclose(tendon.coefficients, scale * TENDON, rtol=1e-9)
    np.testing.assert_allclose([tendon.lower, tendon.upper], limits, rtol=1e-6)
    np.testing.assert_allclose(scale**2 * tendon.stiffness, stiffness, rtol=1e-6)
    np.testing.assert_allclose(scale**2 * tendon.damping, damping, rtol=1e-5, atol=1e-6)


def test_joint_limits_are_as_before_after_a_tendon_was_found() -> None:
    scene = scenes.tendon(100.0, 3.0)
    before = scene.plant.GetPositionLowerLimits(), scene.plant.GetPositionUpperLimits()
    found_in(scene)
    np.testing.assert_array_equal(scene.plant.GetPositionLowerLimits(), before[0])
    np.testing.assert_array_equal(scene.plant.GetPositionUpperLimits(), before[1])


def test_coupler_and_distance_are_found_beside_a_tendon() -> None:
    found = list(found_in(scenes.tendon_with_coupler()).values())
    (coupler,) = (c for c in found if isinstance(c, adapter.Coupler))
    # q_3 = -2.5 q_1 + 0.3, either way around.
    turned = coupler.gear_ratio, coupler.offset
    expected = (-2.5, 0.3) if abs(coupler.gear_ratio) > 1 else (-0.4, 0.12)
    np.testing.assert_allclose(turned, expected, rtol=1e-9)
    assert sum(isinstance(c, Distance) for c in found) == 1
    assert sum(isinstance(c, adapter.Tendon) for c in found) == 1


def weld_with_tendon() -> tuple[Scene, MultibodyConstraintId]:
    identifiers = []

    def add(plant: MultibodyPlant) -> None:
        b, d = plant.GetBodyByName("b"), plant.GetBodyByName("d")
        identifiers.append(plant.AddWeldConstraint(b, X_P, d, X_Q))

    return scenes.tendon(1e3, 10.0, add), identifiers[0]


def test_weld_beside_a_tendon_must_be_named(client: sap.Client) -> None:
    scene, identifier = weld_with_tendon()
    number = identifier.get_value()
    with pytest.raises(sap.InvalidArgument, match=rf"parameters of constraint {number} cannot be"):
        adapter.build_problem(scene.plant, scene.plant_context)
    scene.plant.SetConstraintActiveStatus(scene.plant_context, identifier, False)
    adapter.build_problem(scene.plant, scene.plant_context)  # only where it is active
    scene.plant.SetConstraintActiveStatus(scene.plant_context, identifier, True)
    b, d = (scene.plant.GetBodyByName(name).index() for name in "bd")
    named = {identifier: adapter.Weld(b, X_P, d, X_Q)}
    assert largest_error(scene, client, 30, constraints=named)[0] <= 1e-5


def test_name_of_a_constraint_of_another_plant_is_refused() -> None:
    scene, _ = weld_with_tendon()
    _, other = weld_with_tendon()
    b, d = (scene.plant.GetBodyByName(name).index() for name in "bd")
    named = {other: adapter.Weld(b, X_P, d, X_Q)}
    message = re.escape("which is no constraint of the plant")
    with pytest.raises(sap.InvalidArgument, match=message):
        adapter.build_problem(scene.plant, scene.plant_context, constraints=named)


def test_weld_in_a_plane_is_found_and_one_out_of_the_plane_must_be_named() -> None:
    def planar(X_BQ: RigidTransform) -> Scene:
        builder, plant = begin(floor=False)
        bodies = add_bodies(plant, 2)
        for i, body in enumerate(bodies):
            joint = PrismaticJoint(f"slide{i}", plant.world_frame(), body.body_frame(), [1, 0, 0])
            plant.AddJoint(joint)
        plant.AddWeldConstraint(bodies[0], RigidTransform(), bodies[1], X_BQ)
        return finish(builder, plant, bodies)

    (weld,) = found_in(planar(RigidTransform(P))).values()
    assert isinstance(weld, adapter.Weld)
    np.testing.assert_allclose(weld.X_BQ.rotation().matrix(), np.eye(3), atol=1e-9)
    scene = planar(X_Q)
    with pytest.raises(sap.InvalidArgument, match="a weld of bodies 'b0' and 'b1', whose"):
        found_in(scene)
    a, b = (body.index() for body in scene.bodies)
    named = {scene.plant.GetConstraintIds()[0]: adapter.Weld(a, RigidTransform(), b, X_Q)}
    assert find_constraints(scene.plant, scene.plant_context, named) == named


def test_constraints_of_all_kinds_keep_their_identifiers(client: sap.Client) -> None:
    builder, plant = begin(floor=False)
    bodies = add_bodies(plant, 6)
    joints = chain(plant, bodies[:3])
    made = {
        "weld": plant.AddWeldConstraint(bodies[3], X_P, bodies[4], X_Q),
        "ball": plant.AddBallConstraint(bodies[4], P, bodies[5], Q),
        "distance": plant.AddDistanceConstraint(bodies[2], P, bodies[5], Q, 0.5, 1e4, 3.0),
        "coupler": plant.AddCouplerConstraint(joints[0], joints[2], -3.0, 0.1),
        "second ball": plant.AddBallConstraint(bodies[3], Q, bodies[5], P),
    }
    scene = finish(builder, plant, bodies)
    for off in made:
        scenes.disturb(plant, scene.plant_context, 0.1)
        for name, identifier in made.items():
            plant.SetConstraintActiveStatus(scene.plant_context, identifier, name != off)
        built = adapter.build_problem(plant, scene.plant_context)
        kinds = {row.number: row.kind for row in built.rows}
        for name, identifier in made.items():
            assert kinds.get(identifier.get_value()) == (None if name == off else name.split()[-1])
        assert largest_error(scene.copy(), client, 3)[0] <= 1e-5


def test_inactive_constraints_are_left_out(client: sap.Client) -> None:
    scene = scenes.balls()
    plant, context = scene.plant, scene.plant_context
    off = plant.GetConstraintIds()[0]
    plant.SetConstraintActiveStatus(context, off, False)
    built = adapter.build_problem(plant, context)
    assert {row.number for row in built.rows} == {plant.GetConstraintIds()[1].get_value()}
    assert largest_error(scene, client, 20)[0] <= 1e-5


def test_constraints_of_the_world_hold_although_drake_cannot_step_them(client: sap.Client) -> None:
    builder, plant = begin(floor=False)
    (body,) = add_bodies(plant, 1)
    plant.AddBallConstraint(plant.world_body(), np.zeros(3), body, P)
    scene = finish(builder, plant, [body])
    plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform(-P))
    with client.session() as session:
        for _ in range(100):
            adapter.step(plant, scene.context, session, on_unsolved="raise")
    pose = plant.GetFreeBodyPose(scene.plant_context, body)
    assert np.linalg.norm(pose @ P) <= 1e-3
    assert np.linalg.norm(pose.translation() + P) >= 0.1  # it has swung


def test_points_of_a_distance_that_coincide_are_refused_by_name() -> None:
    builder, plant = begin(floor=False)
    bodies = add_bodies(plant, 2)
    plant.AddDistanceConstraint(bodies[0], P, bodies[1], P, 0.5)
    scene = finish(builder, plant, bodies)
    with pytest.raises(sap.InvalidArgument, match="distance constraint of 'b0' and 'b1' are 0"):
        adapter.build_problem(plant, scene.plant_context)


@pytest.mark.parametrize("numbers", [(0,), (1,), (4,), (0, 1, 2, 3, 4)])
def test_locked_joints_have_no_velocities(client: sap.Client, numbers: tuple[int, ...]) -> None:
    scene = scenes.locked(numbers)
    built = adapter.build_problem(scene.plant, scene.plant_context)
    assert built.problem.num_velocities == 5 - len(numbers)
    assert largest_error(scene, client, 20)[0] <= 1e-5


def test_locked_joint_in_contact_acts_as_a_weld_of_drake(client: sap.Client) -> None:
    # Drake 1.51 cannot step locked joints in a plant with contacts.
    locked, welded = scenes.chain_on_floor(welded=False), scenes.chain_on_floor(welded=True)
    locked.plant.GetJointByName("j1").Lock(locked.plant_context)
    for _ in range(20):
        built = adapter.build_problem(locked.plant, locked.plant_context)
        with client.session(TIGHT) as session:
            adapter.step(locked.plant, locked.context, session, on_unsolved="raise")
        welded.plant.ExecuteForcedEvents(welded.plant_context)
        found = locked.plant.GetVelocities(locked.plant_context)
        expected = welded.plant.GetVelocities(welded.plant_context)
        assert built.problem.contacts.count >= 1
        assert relative_error(built.problem, found[[0, 2]], expected) <= 1e-5
        state = np.insert(welded.plant.GetPositionsAndVelocities(welded.plant_context), [1, 3], 0)
        locked.plant.SetPositionsAndVelocities(locked.plant_context, state)


def test_joints_may_be_locked_and_unlocked_between_steps_of_a_session(client: sap.Client) -> None:
    scene = scenes.locked(())
    joint = scene.plant.GetJointByName("j2")
    with client.session() as session:
        for i in range(6):
            if i == 2:
                joint.Lock(scene.plant_context)
            if i == 4:
                joint.Unlock(scene.plant_context)
            angle = joint.get_angle(scene.plant_context)
            adapter.step(scene.plant, scene.context, session)
            assert (joint.get_angle(scene.plant_context) == angle) == (i in (2, 3))


def test_bodies_fixed_by_locked_joints_need_no_constraint(client: sap.Client) -> None:
    builder, plant = begin(floor=False)
    bodies = add_bodies(plant, 2)
    joints = chain(plant, bodies)
    plant.AddBallConstraint(bodies[0], P, bodies[1], Q)
    scene = finish(builder, plant, bodies)
    for joint in joints:
        joint.Lock(scene.plant_context)
    built = adapter.build_problem(plant, scene.plant_context)
    assert built.rows == []
    assert client.solve(built.problem).solved
