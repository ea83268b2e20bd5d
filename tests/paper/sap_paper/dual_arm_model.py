"""The robot and the objects of the dual-arm task, as a MuJoCo model built in code: 160 dofs.

Two arms of 7 dofs in the proportions of the KUKA IIWA, hands of 16 dofs with three fingers and a
thumb of four joints each, a jar and its lid, 16 marbles of 50 g, and a bowl. The z axis of a hand
is its approach direction, and x points from thumb to fingers. Held objects are at distance GRIP
from the palm.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray

TIME_STEP = 5e-3  # s
GRIP = 0.085  # m
MARBLES, MARBLE_RADIUS, MARBLE_MASS = 16, 0.0115, 0.05  # -, m, kg
JAR, JAR_HEIGHT, JAR_RADIUS = np.array([0.5, 0.0]), 0.12, 0.042  # (x, y), height, radius [m]
KNOB_CENTER = 0.168  # height of the center of the lid's knob [m]
BOWL, BOWL_RADIUS = np.array([0.71, 0.0]), 0.11  # m
OPEN = np.array([0.0, -0.15, 0.0, 0.0])  # rad, of the four joints of a finger
CLOSED = np.array([0.0, 0.5, 0.3, 0.2])
_LINKS = ((0.34, "z"), (0.0, "y"), (0.21, "z"), (0.21, "y"), (0.2, "z"), (0.2, "y"), (0.126, "z"))
_AXES = {"y": "0 1 0", "z": "0 0 1"}
_SEGMENTS = (0.05, 0.035, 0.03)  # m
_POSE_ERROR, _MAX_CHANGE = 1e-5, 0.1  # m and rad, rad
_SIDES = {"left": 1, "right": -1}


def build() -> mujoco.MjModel:
    """Builds the model; its controls are the target angles of the arm and hand joints [rad]."""
    parts = ['<geom type="plane" size="3 3 .1" contype="2" conaffinity="3"/>']
    servos: list[str] = []
    for side, sign in _SIDES.items():
        parts.append(_arm(side, sign, servos))
    parts += [_jar(), _lid(), _bowl(), *_marbles()]
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{TIME_STEP}"/><size memory="100M"/>
        <compiler angle="radian"/>
        <default><geom friction="1" gap="0.002" contype="2" conaffinity="3"/></default>
        <worldbody>{"".join(parts)}</worldbody><actuator>{"".join(servos)}</actuator></mujoco>"""
    )


def _arm(side: str, sign: int, servos: list[str]) -> str:
    text, depth = "", 0
    for i, (length, axis) in enumerate(_LINKS):
        place = f"0.05 {0.45 * sign} {length}" if i == 0 else f"0 0 {length}"
        name = f"{side}_{i}"
        text += (
            f'<body name="{name}" pos="{place}" gravcomp="1">'
            f'<joint name="{name}" axis="{_AXES[axis]}" damping="2" armature="0.1"/>'
            '<geom type="sphere" size=".05" mass="2" contype="0" conaffinity="0"/>'
        )
        servos.append(f'<position joint="{name}" kp="3000" kv="300"/>')
        depth += 1
    palm = '<geom type="box" size=".065 .035 .012" mass=".5" contype="1" conaffinity="2"/>'
    text += f'<body name="{side}_palm" pos="0 0 .06" gravcomp="1">{palm}'
    text += f'<site name="{side}_grip" pos="0 0 {GRIP}"/>'
    for number, (x, y) in enumerate(((0.055, -0.022), (0.055, 0.0), (0.055, 0.022), (-0.055, 0.0))):
        text += _finger(f"{side}_finger{number}", x, y, servos)
    return text + "</body>" * (depth + 1)


def _finger(name: str, x: float, y: float, servos: list[str]) -> str:
    flexion = "0 -1 0" if x > 0 else "0 1 0"
    strength = 1 if x > 0 else 3  # the thumb holds against three fingers
    text = ""
    for i, length in enumerate(_SEGMENTS):
        place = f"{x} {y} 0" if i == 0 else f"0 0 {_SEGMENTS[i - 1]}"
        text += f'<body pos="{place}" gravcomp="1">'
        axes = ["0 0 1", flexion] if i == 0 else [flexion]
        for axis in axes:
            joint = f"{name}_{len(servos)}"
            text += f'<joint name="{joint}" axis="{axis}" damping=".05" armature=".002"/>'
            gains = f'kp="{10 * strength}" kv="{0.4 * strength}"'
            servos.append(f'<position joint="{joint}" {gains}/>')
        text += (
            f'<geom type="capsule" size=".009" fromto="0 0 0 0 0 {length}" mass=".04" '
            'contype="1" conaffinity="2"/>'
        )
    return text + "</body>" * len(_SEGMENTS)


def _ring(radius: float, height: float, thickness: float, sides: int, attributes: str) -> str:
    """MJCF of a ring of boxes around the z axis, from 0 to `height`, outer radius `radius` [m]."""
    text = ""
    middle = radius - thickness / 2
    width = radius * math.tan(math.pi / sides)
    for i in range(sides):
        angle = 2 * math.pi * i / sides
        x, y = middle * math.cos(angle), middle * math.sin(angle)
        text += (
            f'<geom type="box" pos="{x} {y} {height / 2}" euler="0 0 {angle}" '
            f'size="{thickness / 2} {width} {height / 2}" {attributes}/>'
        )
    return text


def _jar() -> str:
    wall = _ring(JAR_RADIUS, JAR_HEIGHT, 0.005, 12, 'density="900" rgba=".6 .8 .9 .4"')
    return (
        f'<body name="jar" pos="{JAR[0]} {JAR[1]} 0"><freejoint/>{wall}'
        f'<geom type="cylinder" pos="0 0 .004" size="{JAR_RADIUS - 0.004} .004" density="900"/>'
        "</body>"
    )


def _lid() -> str:
    return (
        f'<body name="lid" pos="{JAR[0]} {JAR[1]} {JAR_HEIGHT}"><freejoint/>'
        '<geom type="cylinder" pos="0 0 .005" size=".046 .005" density="600"/>'
        '<geom type="cylinder" pos="0 0 .048" size=".02 .038" density="300"/></body>'
    )


def _bowl() -> str:
    wall = _ring(BOWL_RADIUS, 0.07, 0.008, 12, 'density="800" rgba=".9 .8 .6 1"')
    return (
        f'<body name="bowl" pos="{BOWL[0]} {BOWL[1]} 0"><freejoint/>{wall}'
        f'<geom type="cylinder" pos="0 0 .004" size="{BOWL_RADIUS - 0.006} .004" density="800"/>'
        "</body>"
    )


def _marbles() -> list[str]:
    texts = []
    for i in range(MARBLES):
        layer, place = divmod(i, 4)
        angle = place * math.pi / 2 + layer * math.pi / 4
        x, y = JAR[0] + 0.018 * math.cos(angle), JAR[1] + 0.018 * math.sin(angle)
        z = 0.009 + MARBLE_RADIUS + 0.0245 * layer
        texts.append(
            f'<body name="marble{i}" pos="{x} {y} {z}"><freejoint/>'
            f'<geom size="{MARBLE_RADIUS}" mass="{MARBLE_MASS}" friction=".4" rgba=".8 .2 .2 1"/>'
            "</body>"
        )
    return texts


def arm_joints(model: mujoco.MjModel, side: str) -> FloatArray:
    """Indices of the dofs of an arm [7]."""
    return np.array([model.joint(f"{side}_{i}").dofadr[0] for i in range(len(_LINKS))])


def solve_pose(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    side: str,
    target: FloatArray,
    start: FloatArray,
) -> FloatArray:
    """Inverse kinematics: angles of an arm [7] [rad] that put its grip at `target` [3] [m].

    The hand is level and points at the other arm. The method is damped least squares with short
    steps, so that the solution stays near `start`. `data` is overwritten.
    """
    sign = _SIDES[side]
    # Columns: axes x, y, z of the hand; z points at the other arm, y up.
    wanted = np.array([[sign, 0.0, 0.0], [0.0, 0.0, -sign], [0.0, 1.0, 0.0]])
    site = model.site(f"{side}_grip").id
    joints = arm_joints(model, side)
    angles = start.copy()
    jacobian = np.zeros((2, 3, model.nv))
    for _ in range(300):
        data.qpos[joints] = angles
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacSite(model, data, jacobian[0], jacobian[1], site)
        found = data.site_xmat[site].reshape(3, 3)
        turn = 0.5 * np.sum(np.cross(found.T, wanted.T), axis=0)
        error = np.concatenate((target - data.site_xpos[site], turn))
        J = jacobian.reshape(6, -1)[:, joints]
        if np.linalg.norm(error) < _POSE_ERROR:
            break
        change = J.T @ np.linalg.solve(J @ J.T + 1e-4 * np.eye(6), error)
        angles += change * min(1.0, _MAX_CHANGE / float(np.linalg.norm(change)))
    return angles
