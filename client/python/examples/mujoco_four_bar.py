"""A four-bar linkage in MuJoCo: an equality closes the loop, a servo of limited torque turns it."""

import argparse

import mujoco
import numpy as np

import sap_islands as sap
import sap_islands.mujoco

LINKAGE = """
<mujoco>
  <option timestep="0.005"/>
  <default><joint axis="0 1 0"/><geom type="capsule" size=".01" contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <body name="crank"><joint name="crank"/><geom fromto="0 0 0 .1 0 0"/>
      <body name="coupler" pos=".1 0 0" euler="0 -40 0"><joint/><geom fromto="0 0 0 .35 0 0"/>
        <site name="end" pos=".35 0 0"/></body></body>
    <body name="rocker" pos=".4 0 0" euler="0 -104 0"><joint/><geom fromto="0 0 0 .25 0 0"/>
      <site name="tip" pos=".25 0 0"/></body>
  </worldbody>
  <equality><connect site1="end" site2="tip" solref=".01 1"/></equality>
  <actuator><velocity name="motor" joint="crank" kv="10" forcerange="-2 2"/></actuator>
</mujoco>"""


def main() -> None:
    """Turns the crank; prints its speed, the torque of the motor, and the gap of the loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    arguments = parser.parse_args()

    model = mujoco.MjModel.from_xml_string(LINKAGE)
    data = mujoco.MjData(model)
    data.ctrl[0] = 2 * np.pi  # rad/s
    torque, gap = 0.0, 0.0
    with sap.connect(arguments.server) as client, client.session() as session:
        while data.time < 3.0:
            sap.mujoco.step(model, data, session, on_unsolved="raise")
            torque = max(torque, abs(data.actuator_force[0]))
            if data.time > 1.0:
                gap = max(gap, np.linalg.norm(data.site("end").xpos - data.site("tip").xpos))
    print(f"{data.qpos[0] / (2 * np.pi):.2f} turns, now {data.qvel[0] / (2 * np.pi):.3f} turns/s")
    print(f"torque of at most {torque:.2f} N m, loop open by at most {1e3 * gap:.3f} mm")


if __name__ == "__main__":
    main()
