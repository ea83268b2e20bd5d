"""The Drake adapter: contacts, forces and steps as Drake's own discrete solver has them."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.drake as adapter
from pydrake.common.value import AbstractValue
from pydrake.geometry import AddContactMaterial, ProximityProperties, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.math import SpatialForce, SpatialVelocity
from pydrake.multibody.plant import (
    CoulombFriction,
    DiscreteContactApproximation,
    ExternallyAppliedSpatialForce,
    MultibodyPlant,
)
from pydrake.multibody.tree import JointIndex, PlanarJoint, SpatialInertia, UnitInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import BusValue
from sap_islands.unsolved_policy import Unsolved, UnsolvedWarning

from conftest import ROOT
from support.drake_agreement import SCENES, largest_error
from support.drake_scenes import (
    EDGE,
    TIME_STEP,
    Scene,
    arm_holding_box,
    begin,
    clutter,
    finish,
    moving_surfaces,
    stacks,
)


@pytest.mark.parametrize("name", SCENES)
def test_velocities_of_each_step_are_those_of_drake(client: sap.Client, name: str) -> None:
    error, contacts, rows = largest_error(SCENES[name](), client, 60)
    assert error <= 1e-5
    assert contacts + rows > 0


@pytest.mark.parametrize("approximation", ["sap", "lagged"])
def test_held_box_is_where_drake_holds_it(client: sap.Client, approximation: str) -> None:
    drake = arm_holding_box(approximation)
    mine = drake.copy()
    simulator = Simulator(drake.diagram, drake.context)
    simulator.Initialize()
    simulator.AdvanceTo(3.0)
    with client.session() as session:
        while mine.context.get_time() < 3.0 - TIME_STEP / 2:
            adapter.step(mine.plant, mine.context, session, on_unsolved="raise")
    box = drake.bodies[0]
    expected: RigidTransform = drake.plant.GetFreeBodyPose(drake.plant_context, box)
    found: RigidTransform = mine.plant.GetFreeBodyPose(mine.plant_context, box)
    assert expected.translation()[2] > 0.5  # held, not fallen
    assert np.linalg.norm(found.translation() - expected.translation()) <= 5e-3
    turned = (found.rotation().inverse() @ expected.rotation()).ToAngleAxis()
    assert abs(np.rad2deg(turned.angle())) <= 2.0


@pytest.mark.parametrize("approximation", ["sap", "lagged", "similar"])
def test_geometry_without_material_is_as_in_drake(client: sap.Client, approximation: str) -> None:
    builder, plant = begin(approximation=approximation)
    plain = ProximityProperties()
    AddContactMaterial(friction=CoulombFriction(0.3, 0.3), properties=plain)
    balls = []
    for i, mass in enumerate((0.5, 7.0)):
        body = plant.AddRigidBody(
            f"ball{i}", SpatialInertia(mass, np.zeros(3), UnitInertia.SolidSphere(0.1))
        )
        plant.RegisterCollisionGeometry(body, RigidTransform(), Sphere(0.1), f"ball{i}", plain)
        balls.append(body)
    scene = finish(builder, plant, balls)
    for i, body in enumerate(balls):
        plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform([i * 0.199, 0, 0.0995]))
    error, contacts, _ = largest_error(scene, client, 5)
    assert error <= 1e-5
    assert contacts == 3


@pytest.mark.parametrize("tolerance", [1e-5, 1e-3, 0.1])
def test_stiction_tolerance_is_found_from_drakes_own_update(
    client: sap.Client, tolerance: float
) -> None:
    scene = stacks(3, 4, approximation="lagged")
    scene.plant.set_stiction_tolerance(tolerance)
    assert largest_error(scene, client, 10)[0] <= 1e-5
    built = adapter.build_problem(scene.plant, scene.plant_context)
    assert built.problem.regularization.stiction_speed == pytest.approx(tolerance, rel=1e-9)


def test_stiction_tolerance_is_found_where_ports_are_not_sampled(client: sap.Client) -> None:
    scene = stacks(2, 2, approximation="similar", sampled=False)
    scene.plant.set_stiction_tolerance(2e-3)
    assert largest_error(scene, client, 10)[0] <= 1e-5


def test_given_stiction_tolerance_is_taken() -> None:
    scene = stacks(1, 2, approximation="similar")
    built = adapter.build_problem(scene.plant, scene.plant_context, stiction_tolerance=0.02)
    assert built.problem.regularization.stiction_speed == 0.02


def test_stacks_by_load_paths_are_no_softer(client: sap.Client) -> None:
    scene = stacks(1, 5, approximation="sap")
    plant, context = scene.plant, scene.plant_context
    for _ in range(3):
        adapter.step(plant, scene.context, client, load_path=True)
    built = adapter.build_problem(plant, context, load_path=True)
    velocity = plant.GetVelocities(context)[built.velocities]
    assert (built.problem.trees.initial_velocity == velocity).all()
    by_load = client.solve(built.problem).delassus_estimate
    built.problem.regularization.rule = sap.RegularizationRule.FULL
    full = client.solve(built.problem).delassus_estimate
    assert (by_load <= full).all()
    assert np.min(by_load / full) < 0.5


def test_what_is_held_rigidly_hardly_creeps(client: sap.Client) -> None:
    speeds = []
    for rigid in (False, True):
        scene = arm_holding_box("sap")
        with client.session() as session:
            for _ in range(150):
                step = adapter.step(
                    scene.plant, scene.context, session, rigid=rigid, on_unsolved="raise"
                )
        speeds.append(step.solution.islands.creep.max())
        beta = step.built.problem.regularization.row_beta
        assert beta == (1e-3 if rigid else None)
    assert 0 < speeds[1] < 0.01 * speeds[0]


def test_ball_put_down_at_speed_hops_unless_friction_is_exact(client: sap.Client) -> None:
    friction, speed, steps = 0.5, 3.0, 10
    highest, slowed = {}, {}
    for coulomb in (False, True):
        scene = clutter(1)
        body = scene.bodies[0]
        scene.plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform([0, 0, EDGE / 2]))
        start = SpatialVelocity(np.zeros(3), [speed, 0, 0])
        scene.plant.SetFreeBodySpatialVelocity(scene.plant_context, body, start)
        heights = []
        for _ in range(steps):
            adapter.step(scene.plant, scene.context, client, coulomb=coulomb, on_unsolved="raise")
            pose = scene.plant.GetFreeBodyPose(scene.plant_context, body)
            heights.append(pose.translation()[2])
        velocity = scene.plant.EvalBodySpatialVelocityInWorld(scene.plant_context, body)
        highest[coulomb], slowed[coulomb] = max(heights), speed - velocity.translational()[0]
    by_coulomb = friction * 9.81 * steps * TIME_STEP
    assert highest[False] > EDGE / 2 + 0.01
    assert highest[True] <= EDGE / 2
    assert slowed[True] == pytest.approx(by_coulomb, rel=1e-2)


@pytest.mark.parametrize("approximation", ["lagged", "similar"])
def test_exact_friction_next_to_contacts_of_hunt_and_crossley_is_refused(
    client: sap.Client, approximation: str
) -> None:
    scene = clutter(1, approximation=approximation)
    place = RigidTransform([0, 0, EDGE / 2])
    scene.plant.SetFreeBodyPose(scene.plant_context, scene.bodies[0], place)
    with pytest.raises(sap.InvalidArgument, match="contact approximation sap") as refused:
        adapter.step(scene.plant, scene.context, client, coulomb=True)
    assert refused.value.field == "coulomb"


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
    assert largest_error(scene, client, 2)[0] <= 1e-5


def test_halves_of_a_step_around_a_batch_are_steps(client: sap.Client) -> None:
    scene = arm_holding_box("lagged")
    stepped, halved = ([scene.copy() for _ in range(2)] for _ in range(2))
    for i in range(2):
        for each in (stepped[i], halved[i]):
            each.plant.SetVelocities(
                each.plant_context, np.full(each.plant.num_velocities(), 0.1 * i)
            )
    for _ in range(3):
        steps = [adapter.step(each.plant, each.context, client) for each in stepped]
        built = [adapter.build_problem(each.plant, each.plant_context) for each in halved]
        solutions = client.solve_batch([each.problem for each in built])
        for i, each in enumerate(halved):
            solution = solutions[i]
            assert isinstance(solution, sap.Solution)
            results = adapter.apply(each.plant, each.context, built[i], solution)
            assert np.array_equal(results.contacts.force, steps[i].results.contacts.force)
    for one, other in zip(stepped, halved, strict=True):
        assert one.context.get_time() == other.context.get_time() == 3 * TIME_STEP
        state = one.plant.GetPositionsAndVelocities(one.plant_context)
        assert np.array_equal(state, other.plant.GetPositionsAndVelocities(other.plant_context))


def test_episodes_of_a_session_repeat_after_its_reset(client: sap.Client) -> None:
    scene = arm_holding_box("lagged")
    ends = []
    with client.session() as session:
        for reset in (True, True, False):
            episode = scene.copy()
            if reset:
                session.reset()
            for _ in range(5):
                adapter.step(episode.plant, episode.context, session)
            ends.append(episode.plant.GetPositionsAndVelocities(episode.plant_context))
    assert np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2])  # it starts from the end of the episode before
    np.testing.assert_allclose(ends[0], ends[2], atol=1e-3)


def test_unsolved_steps_are_taken_with_a_warning_or_raise(client: sap.Client) -> None:
    scene = stacks(1, 2, approximation="lagged")
    nothing = sap.Options(max_iterations=0)
    with client.session(nothing) as session:
        with pytest.raises(Unsolved, match="1 of 1 islands were not solved"):
            adapter.step(scene.plant, scene.context, session, on_unsolved="raise")
        assert scene.context.get_time() == 0.0
        with pytest.warns(UnsolvedWarning, match="ITERATION_LIMIT"):
            adapter.step(scene.plant, scene.context, session)
        assert scene.context.get_time() == TIME_STEP
        adapter.step(scene.plant, scene.context, session, on_unsolved="ignore")
        with pytest.raises(sap.InvalidArgument, match="on_unsolved is 'stop'"):
            adapter.step(
                scene.plant,
                scene.context,
                session,
                on_unsolved="stop",  # type: ignore[arg-type]  # on purpose
            )


def _blocks(text: str) -> str:
    """The indented code of a docstring."""
    found = re.findall(r"\n\n((?:    .*\n|\n)+)", text)
    return textwrap.dedent("".join(found))


def test_example_of_the_docstring_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert adapter.__doc__ is not None
    exec(_blocks(adapter.__doc__), {})
    force = np.array(re.findall(r"-?\d+\.\d*", capsys.readouterr().out), float)
    np.testing.assert_allclose(force, [0.0, 0.0, -9.81], atol=1e-2)  # the ball rests on the floor


def test_the_page_shows_the_example_of_the_docstring_and_all_scenes() -> None:
    assert adapter.__doc__ is not None
    page = (ROOT / "client" / "python" / "DRAKE.md").read_text()
    assert _blocks(adapter.__doc__).strip() in page
    for name in SCENES:
        assert f"\n| {name} |" in page


def test_continuous_plants_and_unknown_names_are_refused() -> None:
    scene = stacks(1, 1)
    with pytest.raises(sap.InvalidArgument, match="ignore has 'gravity'"):
        adapter.build_problem(scene.plant, scene.plant_context, ignore=("gravity",))
    builder, plant = begin(time_step=0.0)
    scene = finish(builder, plant, [])
    with pytest.raises(sap.InvalidArgument, match="the plant is continuous"):
        adapter.build_problem(scene.plant, scene.plant_context)


def test_deformable_bodies_are_refused_by_name() -> None:
    from pydrake.geometry import GeometryInstance
    from pydrake.multibody.fem import DeformableBodyConfig

    builder, plant = begin()
    ball = GeometryInstance(RigidTransform(), Sphere(0.1), "ball")
    ball.set_proximity_properties(ProximityProperties())
    model = plant.mutable_deformable_model()
    model.RegisterDeformableBody(ball, DeformableBodyConfig(), 0.05)
    scene = finish(builder, plant, [])
    with pytest.raises(sap.InvalidArgument, match=r"the plant has deformable bodies \(1 of them\)"):
        adapter.build_problem(scene.plant, scene.plant_context)


@pytest.mark.skipif(
    not hasattr(DiscreteContactApproximation, "kTamsi"), reason="this Drake has no TAMSI"
)
def test_tamsi_is_refused_by_name() -> None:
    scene = stacks(1, 1, approximation="tamsi")
    with pytest.raises(sap.InvalidArgument, match=r"another contact approximation .*\(kTamsi\)"):
        adapter.build_problem(scene.plant, scene.plant_context)


@pytest.mark.skipif(
    not hasattr(MultibodyPlant, "SetSurfaceVelocityAxis"), reason="new in Drake 1.56"
)
@pytest.mark.parametrize("hydroelastic", [False, True])
@pytest.mark.parametrize("approximation", ["sap", "lagged", "similar"])
def test_surfaces_move_as_in_drake(
    client: sap.Client, approximation: str, hydroelastic: bool
) -> None:
    scene = moving_surfaces(hydroelastic, approximation)
    built = adapter.build_problem(scene.plant, scene.plant_context)
    assert np.abs(built.problem.contacts.surface_velocity).max() > 0.05
    error, contacts, _ = largest_error(scene, client, 30)
    assert error <= 1e-5
    assert contacts > 0


@pytest.mark.skipif(
    not hasattr(MultibodyPlant, "SetSurfaceVelocityAxis"), reason="new in Drake 1.56"
)
def test_a_speed_of_a_surface_that_is_no_number_is_refused_by_name() -> None:
    scene = moving_surfaces(False, "sap")
    speeds = BusValue()
    speeds.Set(str(scene.bodies[1].scoped_name()), AbstractValue.Make(np.inf))
    port = scene.plant.get_surface_speeds_input_port()
    port.FixValue(scene.plant_context, AbstractValue.Make(speeds))
    with pytest.raises(sap.InvalidArgument, match=r"surface speed of body .*b1 is inf"):
        adapter.build_problem(scene.plant, scene.plant_context)


def planar_sled(limit: float) -> Scene:
    builder, plant = begin()
    sled = plant.AddRigidBody("sled", SpatialInertia.SolidBoxWithMass(1.0, 0.1, 0.1, 0.1))
    rail = PlanarJoint("rail", plant.world_frame(), sled.body_frame(), np.zeros(3))
    plant.AddJoint(rail).set_position_limits([-np.inf, -limit, -np.inf], [np.inf, limit, np.inf])
    return finish(builder, plant, [sled])


def test_limits_of_joints_with_several_dofs_are_refused_by_name() -> None:
    name = "limits of joints with several degrees of freedom"
    scene = planar_sled(0.05)
    with pytest.raises(sap.InvalidArgument, match=rf"{name} \(rail\)"):
        adapter.build_problem(scene.plant, scene.plant_context)
    adapter.build_problem(scene.plant, scene.plant_context, ignore=(name,))
    unlimited = planar_sled(np.inf)
    adapter.build_problem(unlimited.plant, unlimited.plant_context)


def test_untested_versions_of_drake_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "an untested version of Drake"
    bounds = re.search(
        r'"drake>=1\.(\d+),<1\.(\d+)"', (ROOT / "client" / "python" / "pyproject.toml").read_text()
    )
    assert bounds
    oldest, end = map(int, bounds.groups())
    for minor, tested in ((oldest - 1, False), (oldest, True), (end - 1, True), (end, False)):
        version = f"1.{minor}.1"
        monkeypatch.setattr("importlib.metadata.version", lambda _, version=version: version)
        scene = stacks(1, 1)
        if tested:
            adapter.build_problem(scene.plant, scene.plant_context)
            continue
        with pytest.raises(sap.InvalidArgument, match=rf"{name} \({re.escape(version)}\)"):
            adapter.build_problem(scene.plant, scene.plant_context)
        adapter.build_problem(scene.plant, scene.plant_context, ignore=(name,))


def test_values_at_unknown_input_ports_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As if applied_generalized_force were a port that a later Drake adds.
    known = re.compile("geometry_query|.*actuation|.*desired_state|surface_speeds|.*spatial_force")
    monkeypatch.setattr("sap_islands.drake.unsupported_features._INPUT_PORTS", known)
    scene = stacks(1, 1)
    adapter.build_problem(scene.plant, scene.plant_context)
    port = scene.plant.get_applied_generalized_force_input_port()
    port.FixValue(scene.plant_context, np.zeros(scene.plant.num_velocities()))
    with pytest.raises(sap.InvalidArgument, match="input port applied_generalized_force"):
        adapter.build_problem(scene.plant, scene.plant_context)


def test_a_force_that_is_no_number_is_refused_by_name() -> None:
    scene = stacks(1, 2)
    force = ExternallyAppliedSpatialForce()
    force.body_index = scene.bodies[1].index()
    force.F_Bq_W = SpatialForce(np.zeros(3), [0, 0, np.nan])
    port = scene.plant.get_applied_spatial_force_input_port()
    port.FixValue(scene.plant_context, AbstractValue.Make([force]))
    with pytest.raises(sap.InvalidArgument, match=r"force applied to body .*b1 is not finite"):
        adapter.build_problem(scene.plant, scene.plant_context)
    scene = stacks(1, 2)
    values = np.zeros(scene.plant.num_velocities())
    values[7] = np.inf
    port = scene.plant.get_applied_generalized_force_input_port()
    port.FixValue(scene.plant_context, values)
    with pytest.raises(sap.InvalidArgument, match=r"applied_generalized_force\[7\] \(.*b1.*\)"):
        adapter.build_problem(scene.plant, scene.plant_context)


def test_joint_limits_are_left_out_where_told(client: sap.Client) -> None:
    scene = SCENES["joint limits"]()
    with_limits = adapter.build_problem(scene.plant, scene.plant_context)
    limits = [row for row in with_limits.rows if row.kind == "limit"]
    assert limits == [("limit", int(scene.plant.GetJointByName("pan").index()))]
    assert scene.plant.get_joint(JointIndex(limits[0].number)).name() == "pan"
    without = adapter.build_problem(scene.plant, scene.plant_context, ignore=("joint limits",))
    assert [row for row in without.rows if row.kind == "limit"] == []


@pytest.mark.full
@pytest.mark.parametrize("approximation", ["sap", "lagged"])
def test_large_clutter_agrees_with_drake(client: sap.Client, approximation: str) -> None:
    error, contacts, _ = largest_error(clutter(60, approximation=approximation), client, 100)
    assert error <= 1e-5
    assert contacts >= 60
