"""An arm with position servos grasps a cube, lifts it and holds it."""

import argparse
from pathlib import Path

import mujoco
import numpy as np

import sap_islands as sap
import sap_islands.mujoco

SHOULDER_HEIGHT, UPPER, LOWER, HAND = 0.2, 0.35, 0.3, 0.11  # m; HAND: wrist to grip center
OPEN, CLOSED = 0.0, 0.045  # target positions of a finger [m]; the cube stops it at 0.03


def posture(x: float, z: float) -> np.ndarray:
    """Angles of shoulder, elbow and wrist [rad] with the grip center at (x, z) [m], hand down."""
    reach, height = x, z + HAND - SHOULDER_HEIGHT
    distance = np.hypot(reach, height)
    cosine = (UPPER**2 + LOWER**2 - distance**2) / (2 * UPPER * LOWER)
    elbow = np.pi - np.arccos(cosine)
    lean = np.arccos((UPPER**2 + distance**2 - LOWER**2) / (2 * UPPER * distance))
    shoulder = np.arctan2(reach, height) - lean
    return np.array([shoulder, elbow, np.pi - shoulder - elbow])


def main() -> None:
    """Simulates the grasp; prints the height of the cube and its slip."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    parser.add_argument("--time", type=float, default=5.0)
    arguments = parser.parse_args()

    model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name("arm.xml")))
    data = mujoco.MjData(model)
    data.qpos[1:4] = posture(0.45, 0.15)
    # Stages: end time [s], target (x, z) of the grip center [m], target of the fingers [m].
    plan = [
        (0.5, 0.45, 0.15, OPEN),
        (1.2, 0.45, 0.03, OPEN),
        (1.7, 0.45, 0.03, CLOSED),
        (2.7, 0.40, 0.30, CLOSED),
        (np.inf, 0.40, 0.30, CLOSED),
    ]
    goal = np.array([0.45, 0.15])
    with sap.connect(arguments.server) as client, client.session() as session:
        while data.time < arguments.time:
            _, x, z, finger = next(stage for stage in plan if data.time < stage[0])
            # The commanded position moves towards the target at 0.3 m/s at most.
            away = np.array([x, z]) - goal
            goal += away * min(1.0, 0.3 * model.opt.timestep / max(np.linalg.norm(away), 1e-9))
            data.ctrl[:] = [0.0, *posture(*goal), finger, finger]
            sap.mujoco.step(model, data, session)
    cube, hand = data.body("cube"), data.body("hand")
    velocity = np.zeros((2, 6))
    for row, name in zip(velocity, ("cube", "hand"), strict=True):
        body = model.body(name).id
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, row, 0)
    slip = np.linalg.norm((velocity[0] - velocity[1])[3:])
    print(f"cube at {cube.xpos[2]:.3f} m, {hand.xpos[2] - cube.xpos[2]:.3f} m below the wrist")
    print(f"it slips with {1e6 * slip:.1f} um/s")


if __name__ == "__main__":
    main()
