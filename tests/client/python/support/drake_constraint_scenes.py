"""Scenes with every constraint of Drake, for the comparison with its own discrete solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from pydrake.geometry import Sphere
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    PdControllerGains,
    PrismaticJoint,
    RevoluteJoint,
    RigidBody,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.framework import Context

from support.drake_scenes import ARM, Scene, begin, finish, properties

COM = np.array([0.05, 0.02, 0.03])  # of the bodies below, m
P, Q = np.array([0.1, 0.2, 0.3]), np.array([-0.1, 0.1, 0.0])
X_P = RigidTransform(RollPitchYaw(0.3, 0.5, 1.0), P)
X_Q = RigidTransform(RollPitchYaw(-0.3, 0.5, 2.0), Q)


def add_bodies(plant: MultibodyPlant, count: int) -> list[RigidBody]:
    """Bodies with a sphere each, which are free until joints are added."""
    box = UnitInertia.SolidBox(0.1, 0.2, 0.3).ShiftFromCenterOfMass(-COM)
    bodies = [plant.AddRigidBody(f"b{i}", SpatialInertia(1.0, COM, box)) for i in range(count)]
    if plant.geometry_source_is_registered() and plant.num_collision_geometries():
        for body in bodies:
            plant.RegisterCollisionGeometry(
                body, RigidTransform(COM), Sphere(0.1), body.name(), properties(False)
            )
    return bodies


def disturb(plant: MultibodyPlant, context: Context, spread: float = 0.3) -> None:
    """Random positions, which violate constraints, and random velocities."""
    random = np.random.default_rng(0)
    q = plant.GetPositions(context)
    q += random.uniform(-spread, spread, len(q))
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.num_positions() > joint.num_velocities():
            start = joint.position_start()
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    v = random.normal(size=plant.num_velocities())
    plant.SetPositionsAndVelocities(context, np.concatenate((q, v)))


def _free_bodies(
    add: Callable[[MultibodyPlant, list[RigidBody]], None], approximation: str = "lagged"
) -> Scene:
    builder, plant = begin(approximation=approximation)
    bodies = add_bodies(plant, 3)
    add(plant, bodies)
    scene = finish(builder, plant, bodies)
    for i, body in enumerate(bodies):
        place = RigidTransform([0.3 * i, 0.1 * i, 0.3])
        plant.SetFreeBodyPose(scene.plant_context, body, place)
    disturb(plant, scene.plant_context, 0.1)
    return scene


def balls() -> Scene:
    def add(plant: MultibodyPlant, bodies: list[RigidBody]) -> None:
        plant.AddBallConstraint(bodies[0], P, bodies[1], Q)
        plant.AddBallConstraint(bodies[1], Q, bodies[2], P)

    return _free_bodies(add)


def welds() -> Scene:
    def add(plant: MultibodyPlant, bodies: list[RigidBody]) -> None:
        plant.AddWeldConstraint(bodies[0], X_P, bodies[1], X_Q)
        plant.AddWeldConstraint(bodies[2], X_Q, bodies[1], X_P)

    return _free_bodies(add, "similar")


def distances() -> Scene:
    """Rigid, compliant, and so stiff that it counts as rigid."""

    def add(plant: MultibodyPlant, bodies: list[RigidBody]) -> None:
        plant.AddDistanceConstraint(bodies[0], P, bodies[1], Q, 0.5)
        plant.AddDistanceConstraint(bodies[1], P, bodies[2], Q, 0.4, 1e3, 5.0)
        plant.AddDistanceConstraint(bodies[2], P, bodies[0], Q, 0.4, 1e9, 5.0)

    return _free_bodies(add, "sap")


def chain(
    plant: MultibodyPlant, bodies: Sequence[RigidBody], name: str = "j"
) -> list[RevoluteJoint]:
    """Joins bodies to a chain that hangs from the world."""
    frame, joints = plant.world_frame(), []
    for i, body in enumerate(bodies):
        axis = [0.0, 1.0, 0.0] if i % 2 else [1.0, 0.0, 0.0]
        joint = RevoluteJoint(f"{name}{i}", frame, body.body_frame(), axis, 0.3)
        joints.append(plant.AddJoint(joint))
        offset = FixedOffsetFrame(f"{name}{i}_end", body, RigidTransform([0.2, 0.0, 0.1]))
        frame = plant.AddFrame(offset)
    return joints


def couplers() -> Scene:
    """Within a tree, and between two."""
    builder, plant = begin(floor=False)
    bodies = add_bodies(plant, 4)
    joints = chain(plant, bodies[:3])
    slide = PrismaticJoint("slide", plant.world_frame(), bodies[3].body_frame(), [0, 1, 0])
    other = plant.AddJoint(slide)
    plant.AddCouplerConstraint(joints[0], joints[2], -3.0, 0.1)
    plant.AddCouplerConstraint(other, joints[1], 0.5, 0.0)
    scene = finish(builder, plant, bodies)
    disturb(plant, scene.plant_context)
    return scene


def locked(numbers: Sequence[int]) -> Scene:
    """A chain of five with a coupler, of which some joints are locked."""
    builder, plant = begin(floor=False)
    bodies = add_bodies(plant, 5)
    joints = chain(plant, bodies)
    plant.AddCouplerConstraint(joints[1], joints[3], 2.0, 0.1)
    scene = finish(builder, plant, bodies)
    disturb(plant, scene.plant_context)
    for number in numbers:
        joints[number].Lock(scene.plant_context)
    return scene


def chain_on_floor(welded: bool) -> Scene:
    """A chain of three that falls onto the floor; its second joint is replaced by a weld or not."""
    builder, plant = begin(approximation="lagged")
    bodies = add_bodies(plant, 3)
    frames = [plant.world_frame()]
    for i, place in enumerate(([0.2, 0.0, 0.1], [0.2, 0.0, 0.0])):
        frames.append(plant.AddFrame(FixedOffsetFrame(f"f{i}", bodies[i], RigidTransform(place))))
    for i in range(3):
        if i == 1 and welded:
            plant.WeldFrames(frames[i], bodies[i].body_frame())
        else:
            plant.AddJoint(RevoluteJoint(f"j{i}", frames[i], bodies[i].body_frame(), [0, 1, 0]))
    return finish(builder, plant, bodies)


def reversed_tree() -> Scene:
    """A chain whose last body is welded to the world, so that all joints are reversed."""
    builder, plant = begin(approximation="lagged")
    bodies = add_bodies(plant, 4)
    for i in range(3):
        frame = FixedOffsetFrame(f"end{i}", bodies[i], RigidTransform([0.2, 0.0, 0.1]))
        axis = [0.0, 1.0, 0.0] if i % 2 else [1.0, 0.0, 0.0]
        plant.AddJoint(
            RevoluteJoint(f"j{i}", plant.AddFrame(frame), bodies[i + 1].body_frame(), axis, 0.3)
        )
    place = RigidTransform([0.0, 0.0, 0.2])
    plant.WeldFrames(plant.world_frame(), bodies[3].body_frame(), place)
    scene = finish(builder, plant, bodies)
    disturb(plant, scene.plant_context)
    return scene


def arm_with_effort(
    effort: float, wanted: Sequence[float] = (1.0, -1.0, 0.5, 0.02, -0.05)
) -> Scene:
    """The arm with an effort limit on each joint; the joint roll has no PD controller."""
    builder, plant = begin(approximation="lagged")
    limited = ARM.replace('velocity="10"', f'velocity="10" effort="{effort}"')
    (arm,) = Parser(plant).AddModelsFromString(limited, "urdf")
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        if actuator.name() != "roll":
            actuator.set_controller_gains(PdControllerGains(p=2000, d=40))
    scene = finish(builder, plant, [])
    desired = np.concatenate((wanted, np.zeros(5)))
    plant.get_desired_state_input_port(arm).FixValue(scene.plant_context, desired)
    forward = [3.0, -2.0, 0.05, 0.5, 0.25]
    plant.get_actuation_input_port().FixValue(scene.plant_context, forward)
    return scene


def arm_at_limit() -> Scene:
    """An arm that turns into the limit of its first joint."""
    scene = arm_with_effort(1000.0, (2.5, 0.0, 0.0, 0.0, 0.0))
    joint = scene.plant.GetJointByName("pan")
    joint.set_angular_rate(scene.plant_context, 4.0)
    joint.set_angle(scene.plant_context, 1.95)
    return scene


def _tendon_link(name: str) -> str:
    return f"""
    <link name="{name}"><inertial><origin xyz="0.1 0 0.02"/><mass value="1"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def _tendon_joint(name: str, kind: str, parent: str, child: str, axis: str) -> str:
    return f"""
    <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="0.2 0 0.1"/><axis xyz="{axis}"/><limit lower="-1" upper="1"/></joint>"""


def tendon_urdf(stiffness: float, damping: float) -> str:
    """Two chains of two links, with a tendon -0.2 <= 1.5 q_0 - 0.7 q_1 + 2 q_2 + 0.5 <= 0.3."""
    return f"""<robot name="tendon" xmlns:drake="http://drake.mit.edu">
    {"".join(map(_tendon_link, "abcd"))}
    {_tendon_joint("q0", "revolute", "world", "a", "0 1 0")}
    {_tendon_joint("q1", "revolute", "a", "b", "1 0 0")}
    {_tendon_joint("q2", "prismatic", "world", "c", "0 1 0")}
    {_tendon_joint("q3", "revolute", "c", "d", "1 0 0")}
    <drake:tendon_constraint>
      <drake:tendon_constraint_joint name="q0" a="1.5"/>
      <drake:tendon_constraint_joint name="q1" a="-0.7"/>
      <drake:tendon_constraint_joint name="q2" a="2"/>
      <drake:tendon_constraint_offset value="0.5"/>
      <drake:tendon_constraint_lower_limit value="-0.2"/>
      <drake:tendon_constraint_upper_limit value="0.3"/>
      <drake:tendon_constraint_stiffness value="{stiffness}"/>
      <drake:tendon_constraint_damping value="{damping}"/>
    </drake:tendon_constraint></robot>"""


def tendon(
    stiffness: float,
    damping: float,
    add: Callable[[MultibodyPlant], object] = lambda plant: None,
) -> Scene:
    """The tendon, with `add` applied to the plant, which also has a floor."""
    builder, plant = begin(approximation="lagged")
    Parser(plant).AddModelsFromString(tendon_urdf(stiffness, damping), "urdf")
    add(plant)
    scene = finish(builder, plant, [])
    disturb(plant, scene.plant_context, 0.5)
    return scene


def tendon_with_coupler() -> Scene:
    def add(plant: MultibodyPlant) -> None:
        q1, q3 = plant.GetJointByName("q1"), plant.GetJointByName("q3")
        plant.AddCouplerConstraint(q3, q1, -2.5, 0.3)
        b, d = plant.GetBodyByName("b"), plant.GetBodyByName("d")
        plant.AddDistanceConstraint(b, P, d, Q, 1.0, 1e4, 3.0)

    return tendon(1e3, 10.0, add)
