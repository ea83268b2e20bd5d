"""Scenes for the comparison with Drake's own discrete solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.common.value import AbstractValue
from pydrake.geometry import (
    AddCompliantHydroelasticProperties,
    AddContactMaterial,
    AddRigidHydroelasticProperties,
    Box,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import (
    PdControllerGains,
    RigidBody,
    SpatialInertia,
    UnitInertia,
    default_model_instance,
)
from pydrake.systems.framework import BusValue, Context, Diagram, DiagramBuilder

TIME_STEP = 0.01
EDGE, RADIUS = 0.1, 0.05


@dataclass
class Scene:
    """A finished diagram and a context of it."""

    diagram: Diagram
    plant: MultibodyPlant
    context: Context
    bodies: list[RigidBody]

    @property
    def plant_context(self) -> Context:
        return self.plant.GetMyMutableContextFromRoot(self.context)

    def copy(self) -> Scene:
        """A scene with the same state and inputs in a separate context."""
        return Scene(self.diagram, self.plant, self.context.Clone(), self.bodies)


def properties(hydroelastic: bool, *, rigid: bool = False, friction: float = 0.5) -> object:
    made = ProximityProperties()
    if hydroelastic and rigid:
        AddRigidHydroelasticProperties(1.0, made)
    elif hydroelastic:
        AddCompliantHydroelasticProperties(EDGE / 2, 1e7, made)
    AddContactMaterial(
        point_stiffness=1e6, friction=CoulombFriction(friction, friction), properties=made
    )
    made.AddProperty("material", "relaxation_time", TIME_STEP)
    made.AddProperty("material", "hunt_crossley_dissipation", 2.0 if rigid else 5.0)
    return made


def begin(
    hydroelastic: bool = False,
    approximation: str = "sap",
    floor: bool = True,
    time_step: float = TIME_STEP,
    sampled: bool = True,
) -> tuple[DiagramBuilder, MultibodyPlant]:
    """A plant to which bodies can be added."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=time_step,
        use_sampled_output_ports=sampled,
        contact_model="hydroelastic_with_fallback" if hydroelastic else "point",
        discrete_contact_approximation=approximation,
    )
    plant, _ = AddMultibodyPlant(config, builder)
    if floor:
        plant.RegisterCollisionGeometry(
            plant.world_body(),
            RigidTransform([0, 0, -0.5]),
            Box(10, 10, 1),
            "floor",
            properties(hydroelastic, rigid=True),
        )
    return builder, plant


def finish(builder: DiagramBuilder, plant: MultibodyPlant, bodies: list[RigidBody]) -> Scene:
    plant.Finalize()
    diagram = builder.Build()
    return Scene(diagram, plant, diagram.CreateDefaultContext(), bodies)


def _add_body(plant: MultibodyPlant, name: str, is_box: bool, hydroelastic: bool) -> RigidBody:
    inertia = UnitInertia.SolidCube(EDGE) if is_box else UnitInertia.SolidSphere(RADIUS)
    body = plant.AddRigidBody(name, SpatialInertia(1.0, np.zeros(3), inertia))
    shape = Box(EDGE, EDGE, EDGE) if is_box else Sphere(RADIUS)
    plant.RegisterCollisionGeometry(body, RigidTransform(), shape, name, properties(hydroelastic))
    if is_box and not hydroelastic:
        # A pair of boxes has one contact point; spheres in the corners keep boxes upright.
        for corner in np.ndindex(2, 2, 2):
            place = RigidTransform((2 * np.array(corner) - 1) * 0.045)
            sphere = f"{name}_{corner}"
            plant.RegisterCollisionGeometry(
                body, place, Sphere(0.005), sphere, properties(hydroelastic)
            )
    return body


def clutter(count: int, hydroelastic: bool = False, approximation: str = "sap") -> Scene:
    """Boxes and spheres that fall onto each other and the floor."""
    builder, plant = begin(hydroelastic, approximation)
    bodies = [_add_body(plant, f"b{i}", i % 2 == 1, hydroelastic) for i in range(count)]
    scene = finish(builder, plant, bodies)
    rng = np.random.default_rng(1)
    for i, body in enumerate(bodies):
        rotation = RollPitchYaw(rng.uniform(-0.3, 0.3, 3))
        x = 0.13 * (i % 3) + rng.uniform(-0.01, 0.01)
        place = [x, 0.13 * (i // 3 % 3), 0.08 + i // 9 * 0.12]
        plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform(rotation, place))
    return scene


def moving_surfaces(hydroelastic: bool, approximation: str) -> Scene:
    """Boxes and spheres whose surfaces move about oblique axes (Drake 1.56 and later)."""
    builder, plant = begin(hydroelastic, approximation)
    bodies = [_add_body(plant, f"b{i}", i % 2 == 1, hydroelastic) for i in range(8)]
    for i, body in enumerate(bodies):
        if i % 3:
            plant.SetSurfaceVelocityAxis(body, [0.3 * i, 1, -0.2])
    scene = finish(builder, plant, bodies)
    speeds = BusValue()
    for i, body in enumerate(bodies):
        place = [0.11 * (i % 2), 0.11 * (i // 2 % 2), 0.05 + i // 4 * 0.098]
        plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform(place))
        if i % 3 == 1:
            speeds.Set(str(body.scoped_name()), AbstractValue.Make(0.1 * i - 0.3))
    plant.get_surface_speeds_input_port().FixValue(scene.plant_context, AbstractValue.Make(speeds))
    return scene


def stacks(
    columns: int,
    height: int,
    hydroelastic: bool = False,
    approximation: str = "sap",
    sampled: bool = True,
) -> Scene:
    """Stacks of boxes."""
    builder, plant = begin(hydroelastic, approximation, sampled=sampled)
    bodies = [_add_body(plant, f"b{i}", True, hydroelastic) for i in range(columns * height)]
    scene = finish(builder, plant, bodies)
    for i, body in enumerate(bodies):
        place = [0.3 * (i // height), 0.01 * (i % 2), (i % height + 0.499) * EDGE]
        plant.SetFreeBodyPose(scene.plant_context, body, RigidTransform(place))
    return scene


def _link(name: str, length: float, mass: float, width: float, height: float) -> str:
    inertia = mass * length**2 / 12
    return f"""
    <link name="{name}">
      <inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/>
        <inertia ixx="{mass * 1e-3}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>
      </inertial>
      <collision name="{name}"><origin xyz="{length / 2} 0 0"/>
        <geometry><box size="{length} {width} {height}"/></geometry>
        <drake:proximity_properties><drake:mu_dynamic value="0.8"/>
          <drake:mu_static value="0.8"/><drake:point_contact_stiffness value="1e6"/>
          <drake:relaxation_time value="{TIME_STEP}"/></drake:proximity_properties>
      </collision>
    </link>"""


def _joint(name: str, kind: str, parent: str, child: str, place: str, axis: str) -> str:
    return f"""
    <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{place}"/><axis xyz="{axis}"/><dynamics damping="0.5"/>
      <limit lower="-2" upper="2" velocity="10"/></joint>
    <transmission type="SimpleTransmission"><type>SimpleTransmission</type>
      <joint name="{name}"><hardwareInterface>PositionJointInterface</hardwareInterface></joint>
      <actuator name="{name}"/></transmission>"""


ARM = f"""<robot name="arm" xmlns:drake="http://drake.mit.edu">
  {_link("upper", 0.4, 3.0, 0.06, 0.06)}{_link("lower", 0.4, 2.0, 0.06, 0.06)}
  {_link("hand", 0.1, 0.6, 0.06, 0.06)}
  {_link("left", 0.12, 0.1, 0.02, 0.1)}{_link("right", 0.12, 0.1, 0.02, 0.1)}
  {_joint("pan", "revolute", "world", "upper", "0 0 0.6", "0 0 1")}
  {_joint("lift", "revolute", "upper", "lower", "0.4 0 0", "0 1 0")}
  {_joint("roll", "revolute", "lower", "hand", "0.4 0 0", "1 0 0")}
  {_joint("left", "prismatic", "hand", "left", "0.1 0.06 0", "0 1 0")}
  {_joint("right", "prismatic", "hand", "right", "0.1 -0.06 0", "0 -1 0")}
</robot>"""


def arm_holding_box(approximation: str = "sap") -> Scene:
    """An arm of three joints whose gripper presses a box from both sides, with PD controllers."""
    builder, plant = begin(approximation=approximation)
    (arm,) = Parser(plant).AddModelsFromString(ARM, "urdf")
    inertia = SpatialInertia(0.3, np.zeros(3), UnitInertia.SolidCube(EDGE))
    box = plant.AddRigidBody("box", default_model_instance(), inertia)
    for corner in np.ndindex(2, 2, 2):
        place = RigidTransform((2 * np.array(corner) - 1) * 0.045)
        plant.RegisterCollisionGeometry(
            box, place, Sphere(0.005), f"corner{corner}", properties(False, friction=0.8)
        )
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        is_finger = actuator.name() in ("left", "right")
        gains = PdControllerGains(p=2000, d=40) if is_finger else PdControllerGains(p=4000, d=200)
        actuator.set_controller_gains(gains)
    scene = finish(builder, plant, [box])
    # The desired positions of the fingers are 5 mm inside the box.
    wanted = np.zeros(10)
    wanted[3:5] = -0.005
    plant.get_desired_state_input_port(arm).FixValue(scene.plant_context, wanted)
    place = RigidTransform([0.4 + 0.4 + 0.1 + 0.06, 0, 0.6])
    plant.SetFreeBodyPose(scene.plant_context, box, place)
    return scene
