"""Scenes with deformable bodies: finite elements among the rigid bodies of a MuJoCo model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import mujoco
import numpy as np

from sap_islands import fem
from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument
from sap_islands.scenes import FLOOR, bin_walls, scene_model

_TUBE_SIDES = 6


@dataclass
class SoftBody:
    """A deformable body and its state.

    Attributes:
        material: Its elements.
        x: [N, 3] positions [m].
        v: [N, 3] velocities [m/s].
        faces: [F, 3] its surface, which other bodies touch if it is closed; none of a cable.
        radius: Distance of its surface from its nodes [m].
        damping: As for `fem.step` [s].
        pulled: Nodes that are pulled along.
        pull_velocity: [3] with which [m/s].
        color: Red, green, blue, 0 to 1.
    """

    material: fem.Material
    x: FloatArray
    faces: IndexArray
    radius: float
    damping: float
    color: tuple[float, float, float]
    pulled: tuple[int, ...] = ()
    pull_velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    v: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        """Begins at rest."""
        self.v = np.zeros_like(self.x)

    @property
    def is_closed(self) -> bool:
        """Whether it has an inside, so that other bodies find out how deep they are in it."""
        return isinstance(self.material, fem.Solid)

    def skin(self) -> tuple[FloatArray, IndexArray]:
        """Vertices and faces to show: the surface, or a tube around a cable."""
        if len(self.faces):
            return self.x, self.faces
        return _tube(self.x, self.radius)


@dataclass
class SoftScene:
    """A model and deformable bodies in it.

    Attributes:
        model: Rigid bodies; may have no velocities.
        bodies: Deformable bodies.
        friction: Of their contacts [-].
        positions: [nq] of the model at the beginning, or None: its own.
        control: Sets the controls of the model's actuators for the time in its data.
    """

    model: mujoco.MjModel
    bodies: list[SoftBody]
    friction: float
    positions: FloatArray | None = None
    control: Callable[[mujoco.MjData], None] = lambda data: None


def load_soft_scene(name: str, bodies: int | None = None) -> SoftScene:
    """Loads a scene by its name.

    Args:
        name: A key of `SOFT_SCENES`.
        bodies: Number of bodies, of a scene with many; None: its default.

    Raises:
        InvalidArgument: The scene has no number of bodies.
    """
    many = _MANY.get(name)
    if many is not None:
        make, default = many
        return make(default if bodies is None else bodies)
    if bodies is not None:
        raise InvalidArgument(f"bodies cannot be given for the scene {name}", "bodies")
    return _SINGLE[name]()


def _grip() -> SoftScene:
    """An arm closes its fingers on a soft block and lifts it."""
    model = mujoco.MjModel.from_xml_string(_ARM)
    mesh = fem.grid((4, 4, 4), (0.08, 0.08, 0.08))
    block = fem.Solid(*mesh, density=500.0, young=1e4, poisson=0.4, law=fem.neo_hookean)
    x = mesh.nodes + np.array([_REACH - 0.04, -0.04, 0.003])
    body = SoftBody(block, x, fem.surface(mesh.elements), 0.002, 0.005, (0.85, 0.45, 0.15))

    def control(data: mujoco.MjData) -> None:
        closing = np.interp(data.time, [0.0, 0.4], [0.0, 0.055])
        height = np.interp(data.time, [0.5, 1.3], [0.04, 0.22])
        data.ctrl[:] = [*_arm_angles(height), closing, closing]

    return SoftScene(model, [body], 0.8, np.array([*_arm_angles(0.04), 0.0, 0.0]), control)


def _cloth(bodies: int) -> SoftScene:
    """A cloth falls over a pile of boxes and balls."""
    rng = np.random.default_rng(3)
    pile = []
    for i in range(bodies):
        layer, place = divmod(i, 9)
        x, y = (np.array(divmod(place, 3)) - 1) * 0.13 + rng.uniform(-0.02, 0.02, 2)
        shape = 'type="box" size=".05 .05 .05"' if i % 2 == 0 else 'type="sphere" size=".055"'
        pile.append(
            f'<body pos="{x} {y} {0.055 + 0.115 * layer}"><freejoint/>'
            f'<geom {shape} rgba=".35 .5 .7 1"/></body>'
        )
    model = mujoco.MjModel.from_xml_string(scene_model(FLOOR + "".join(pile)))
    mesh = fem.sheet((26, 26), (0.8, 0.8))
    top = 0.13 + 0.115 * ((bodies - 1) // 9)
    x = mesh.nodes + np.array([-0.41, -0.38, top])
    cloth = fem.Membrane(mesh.nodes, mesh.elements, 1e-3, 300.0, 1e5, 0.3, rigidity=2e-5)
    body = SoftBody(cloth, x, mesh.elements, 0.008, 0.002, (0.75, 0.25, 0.3))
    return SoftScene(model, [body], 0.4)


def _cable() -> SoftScene:
    """A cable that hangs over the edge of a table is pulled back."""
    table = '<geom type="box" pos="0 0 .2" size=".2 .12 .2" rgba=".6 .55 .5 1"/>'
    model = mujoco.MjModel.from_xml_string(scene_model(FLOOR + table))
    count, radius = 71, 0.008
    x = np.column_stack((np.linspace(-0.2, 0.6, count), np.zeros(count), np.zeros(count)))
    x[:, 2] = 0.4 + radius
    rest = np.linalg.norm(np.diff(x, axis=0), axis=1)
    cable = fem.Cable(rest, linear_density=0.15, stretch_stiffness=2e3, bending_stiffness=2e-3)
    body = SoftBody(
        cable,
        x,
        np.empty((0, 3), np.int64),
        radius,
        0.002,
        (0.15, 0.45, 0.4),
        pulled=(0,),
        pull_velocity=(-0.2, 0.0, 0.0),
    )
    return SoftScene(model, [body], 0.3)


def _soft_bin(bodies: int) -> SoftScene:
    """Soft blocks and balls fall into a bin."""
    model = mujoco.MjModel.from_xml_string(scene_model(bin_walls(0.2)))
    rng = np.random.default_rng(5)
    block, ball = fem.grid((2, 2, 2), (0.1, 0.1, 0.1)), fem.ball(3, 0.055)
    fallen = []
    for i in range(bodies):
        layer, place = divmod(i, 4)
        mesh, hue = (block, 0.12) if i % 2 == 0 else (ball, 0.55)
        center = mesh.nodes.mean(axis=0)
        offset = (np.array([place % 2, place // 2]) - 0.5) * 0.19 + rng.uniform(-0.02, 0.02, 2)
        turned = (mesh.nodes - center) @ _rotation(rng).T
        x = turned + np.array([*offset, 0.1 + 0.15 * layer])
        solid = fem.Solid(*mesh, density=500.0, young=float(rng.choice([1e4, 3e4])), poisson=0.35)
        shade = rng.uniform(0.7, 1.0)
        color = (shade * (0.9 - hue), shade * (0.35 + hue / 2), shade * (0.2 + hue))
        fallen.append(SoftBody(solid, x, fem.surface(mesh.elements), 0.002, 0.005, color))
    return SoftScene(model, fallen, 0.4)


_SINGLE: dict[str, Callable[[], SoftScene]] = {"grip": _grip, "cable": _cable}
_MANY: dict[str, tuple[Callable[[int], SoftScene], int]] = {
    "cloth": (_cloth, 13),
    "soft-bin": (_soft_bin, 30),
}
SOFT_SCENES = ("grip", "cloth", "cable", "soft-bin")

_REACH = 0.45  # of the arm, from its axis to the block [m]
_UPPER, _LOWER, _HAND, _SHOULDER = 0.35, 0.3, 0.11, 0.2  # lengths of the arm [m]
_ARM = f"""<mujoco>
  <option timestep="0.01"/>
  <default>
    <geom density="1000" friction="0.8" contype="0" conaffinity="0" rgba=".5 .55 .6 1"/>
    <joint damping="1" armature="0.05"/>
  </default>
  <worldbody>
    <geom type="plane" size="3 3 .1" rgba=".8 .8 .8 1"/>
    <geom type="capsule" size=".06" fromto="0 0 0 0 0 {_SHOULDER}"/>
    <body pos="0 0 {_SHOULDER}" gravcomp="1"><joint name="shoulder" axis="0 1 0"/>
      <geom type="capsule" size=".04" fromto="0 0 0 0 0 {_UPPER}" mass="2.5"/>
      <body pos="0 0 {_UPPER}" gravcomp="1"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" size=".035" fromto="0 0 0 0 0 {_LOWER}" mass="1.5"/>
        <body pos="0 0 {_LOWER}" gravcomp="1"><joint name="wrist" axis="0 1 0"/>
          <geom type="box" size=".03 .09 .02" pos="0 0 .04" mass=".6"/>
          <body pos="0 .07 .06" gravcomp="1"><joint name="left" type="slide" axis="0 -1 0"/>
            <geom type="box" size=".03 .01 .05" pos="0 0 .05" mass=".15"/>
          </body>
          <body pos="0 -.07 .06" gravcomp="1"><joint name="right" type="slide" axis="0 1 0"/>
            <geom type="box" size=".03 .01 .05" pos="0 0 .05" mass=".15"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="shoulder" kp="2000" kv="120"/>
    <position joint="elbow" kp="1500" kv="90"/>
    <position joint="wrist" kp="500" kv="30"/>
    <position joint="left" kp="1000" kv="50"/>
    <position joint="right" kp="1000" kv="50"/>
  </actuator>
</mujoco>"""


def _arm_angles(height: float) -> tuple[float, float, float]:
    """Shoulder, elbow and wrist with which the hand points down to a height above the floor."""
    across, up = _REACH, height + _HAND - _SHOULDER
    distance = math.hypot(across, up)
    shoulder_to_elbow = (_UPPER**2 + distance**2 - _LOWER**2) / (2 * _UPPER * distance)
    shoulder = math.atan2(across, up) - math.acos(shoulder_to_elbow)
    elbow = math.acos((distance**2 - _UPPER**2 - _LOWER**2) / (2 * _UPPER * _LOWER))
    return shoulder, elbow, math.pi - shoulder - elbow


def _rotation(rng: np.random.Generator) -> FloatArray:
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Q if np.linalg.det(Q) > 0 else -Q


def _tube(x: FloatArray, radius: float) -> tuple[FloatArray, IndexArray]:
    """A tube around a chain of nodes."""
    along = np.gradient(x, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    side = np.cross(along, [0.13, 0.97, 0.21])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    turn = 2 * np.pi * np.arange(_TUBE_SIDES) / _TUBE_SIDES
    ring = (
        np.cos(turn)[:, None] * side[:, None]
        + np.sin(turn)[:, None] * np.cross(along, side)[:, None]
    )
    k = np.arange(_TUBE_SIDES)
    start = _TUBE_SIDES * np.arange(len(x) - 1)[:, None]
    a, b = start + k, start + (k + 1) % _TUBE_SIDES
    c, d = a + _TUBE_SIDES, b + _TUBE_SIDES
    faces = np.concatenate((np.stack((a, b, d), -1), np.stack((a, d, c), -1)), axis=1)
    return (x[:, None] + radius * ring).reshape(-1, 3), faces.reshape(-1, 3)
