"""Robot models from other packages, simulated for 3 s each."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray

DURATION_S = 3.0
GRAVITY = 9.81


def directory_of(package: str) -> Path:
    """Directory of a package, found without importing it and its dependencies."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def robosuite_arm(arm: str, gripper: str) -> Any:
    """An arm with a gripper and position servos, as an MjSpec."""
    assets = directory_of("robosuite") / "models" / "assets"
    spec = mujoco.MjSpec.from_file(str(assets / "robots" / arm / "robot.xml"))
    hand = mujoco.MjSpec.from_file(str(assets / "grippers" / f"{gripper}.xml"))
    spec.body("right_hand").add_frame().attach_body(hand.worldbody.first_body(), "g_", "")
    spec.option.timestep = 0.002
    for actuator in list(spec.actuators):
        if not actuator.name.startswith("g_"):
            spec.delete(actuator)
    for joint in spec.joints:
        if not joint.name.startswith("g_"):
            servo = spec.add_actuator(name=f"{joint.name}_servo", target=joint.name)
            servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
            servo.set_to_position(kp=2000, kv=100)
    return spec


def shadow_hand() -> Any:
    path = directory_of("gymnasium_robotics") / "envs" / "assets" / "hand" / "reach.xml"
    return mujoco.MjSpec.from_file(str(path))


def humanoid() -> Any:
    return mujoco.MjSpec.from_file(str(directory_of("dm_control") / "suite" / "humanoid.xml"))


ROBOTS = {
    "panda": lambda: robosuite_arm("panda", "panda_gripper"),
    "sawyer": lambda: robosuite_arm("sawyer", "rethink_gripper"),
    "shadow hand": shadow_hand,
    "humanoid": humanoid,
}


def deepest(data: Any) -> float:
    return -float(min(data.contact.dist, default=0.0))


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_moves_as_it_does_in_mujoco(client: sap.Client, name: str) -> None:
    model = ROBOTS[name]().compile()
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    mujoco.mj_forward(model, other)
    allowed = deepest(other)
    with client.session() as session:
        while data.time < DURATION_S - 1e-9:
            _, solution = adapter.step(model, data, session)
            assert solution.solved
            assert np.isfinite(data.qvel).all()
            mujoco.mj_step(model, other)
            allowed = max(allowed, deepest(other))
    # No contact at the end is deeper than MuJoCo's deepest so far plus 5 mm.
    assert deepest(data) <= allowed + 5e-3
    limited = np.flatnonzero(model.jnt_limited & np.isin(model.jnt_type, (2, 3)))
    q = data.qpos[model.jnt_qposadr[limited]]
    low, high = model.jnt_range[limited].T
    assert np.all((q > low - 0.05) & (q < high + 0.05))
    # If MuJoCo's robot has come to rest, so has this one, in the same place.
    if np.abs(other.qvel).max() < 1e-2:
        assert np.abs(data.qvel).max() < 1e-2
        difference = np.zeros(model.nv)
        mujoco.mj_differentiatePos(model, difference, 1.0, other.qpos, data.qpos)
        assert np.abs(difference).max() < 0.1


def test_humanoid_falls_as_it_does_in_mujoco(client: sap.Client) -> None:
    model = humanoid().compile()
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    data.qpos[2] = other.qpos[2] = 2.0
    for _ in range(60):
        adapter.step(model, data, client)
        mujoco.mj_step(model, other)
    height: tuple[FloatArray, FloatArray] = (data.subtree_com[1], other.subtree_com[1])
    assert height[0] == pytest.approx(height[1], abs=1e-3)


def test_panda_holds_a_cube_with_less_slip_than_sigma_allows(client: sap.Client) -> None:
    posture = np.array([0, 0.3, 0, -1.9, 0, 2.2, 0.785, 0.0207, -0.0207])
    spec = robosuite_arm("panda", "panda_gripper")
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:9] = posture
    mujoco.mj_kinematics(model, data)
    pads = [model.geom(f"g_finger{i}_pad_collision").id for i in (1, 2)]
    rotation = np.zeros(4)
    mujoco.mju_mat2Quat(rotation, data.body("right_hand").xmat)
    cube = spec.worldbody.add_body(name="cube", pos=data.geom_xpos[pads].mean(0), quat=rotation)
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.02] * 3, mass=0.1)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:9] = posture
    for i in range(model.nu):
        servo = model.actuator(i)
        joint = model.actuator_trnid[i, 0]
        data.ctrl[i] = 0.0 if servo.name.startswith("g_") else posture[joint]
    start = None
    with client.session() as session:
        while data.time < DURATION_S - 1e-9:
            _, solution = adapter.step(model, data, session)
            assert solution.solved
            if start is None and data.time > 1.0:
                start = data.body("cube").xpos.copy()
    friction = float(data.contact.friction[:, 0].max())
    bound = 1e-3 * friction * model.opt.timestep * GRAVITY
    assert start is not None
    assert np.abs(data.qvel[-6:-3]).max() <= bound
    assert np.linalg.norm(data.body("cube").xpos - start) <= bound * DURATION_S / model.opt.timestep
    assert np.linalg.norm(data.body("cube").xpos - start) <= 1e-3
