"""A quadruped with dry friction in its joints stands, is pushed from the side, and stands on."""

import argparse

import mujoco
import numpy as np

import sap_islands as sap
import sap_islands.mujoco

LEG = """
<body name="{name}" pos="{x} {y} 0">
  <joint name="{name}_hip" axis="1 0 0" range="-.8 .8" frictionloss=".2" damping=".05"/>
  <geom type="sphere" size=".04" mass=".7"/>
  <body pos="0 {side} 0">
    <joint name="{name}_thigh" axis="0 1 0" range="-1 3.5" frictionloss=".2" damping=".05"/>
    <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.2" mass="1"/>
    <body pos="0 0 -.2">
      <joint name="{name}_knee" axis="0 1 0" range="-2.7 -.8" frictionloss=".2" damping=".05"/>
      <geom type="capsule" size=".015" fromto="0 0 0 0 0 -.2" mass=".2"/>
      <geom type="sphere" size=".022" pos="0 0 -.2" mass=".05" condim="6"
        friction=".8 .02 .01"/>
    </body>
  </body>
</body>"""

SERVO = """<position joint="{name}" kp="60" kv="2" forcerange="-{limit} {limit}"/>"""


def make_model() -> mujoco.MjModel:
    """A trunk of 7 kg on four legs of three joints, with servos of limited torque."""
    legs = {"fl": (0.19, 1), "fr": (0.19, -1), "rl": (-0.19, 1), "rr": (-0.19, -1)}
    bodies = "".join(
        LEG.format(name=name, x=x, y=0.05 * side, side=0.08 * side)
        for name, (x, side) in legs.items()
    )
    servos = "".join(
        SERVO.format(name=f"{leg}_{joint}", limit=45 if joint == "knee" else 24)
        for leg in legs
        for joint in ("hip", "thigh", "knee")
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><compiler angle="radian"/><option timestep="0.004"/><worldbody>
        <geom type="plane" size="5 5 .1"/>
        <body name="trunk" pos="0 0 .34"><freejoint/>
          <geom type="box" size=".19 .05 .05" mass="7"/>{bodies}</body></worldbody>
        <actuator>{servos}</actuator></mujoco>"""
    )


def main() -> None:
    """Simulates the stand; prints the height of the trunk and how fast it creeps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    arguments = parser.parse_args()

    model = make_model()
    data = mujoco.MjData(model)
    posture = np.tile([0.0, 0.8, -1.6], 4)
    data.qpos[7:] = posture
    trunk = model.body("trunk").id
    before = np.zeros(3)
    with sap.connect(arguments.server) as client, client.session() as session:
        while data.time < 5.0:
            data.ctrl[:] = posture
            # A push of 60 N for 0.2 s from the side.
            data.xfrc_applied[trunk, 1] = 60.0 if 1.5 < data.time < 1.7 else 0.0
            _, solution = sap.mujoco.step(model, data, session, on_unsolved="raise")
            if data.time < 4.0:
                before = data.qpos[:3].copy()
    moved = 1e6 * np.linalg.norm(data.qpos[:3] - before)
    print(f"{len(solution.impulse)} feet on the ground, {len(solution.row_impulse)} rows")
    print(f"trunk at {data.qpos[2]:.3f} m, where it moves {moved:.0f} um in a second")


if __name__ == "__main__":
    main()
