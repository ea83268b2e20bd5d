"""A Fetch-like arm, dragged by a weld to a moving target, picks up a cube and puts it elsewhere.

As in the Fetch environments of gymnasium-robotics, the hand follows a mocap body through a weld,
and two servos press the fingers together.
"""

import argparse

import mujoco
import numpy as np

import sap_islands as sap
import sap_islands.mujoco

MODEL = """
<mujoco>
  <compiler angle="radian"/><option timestep="0.004"/>
  <default><default class="arm"><joint damping="5" armature=".1"/>
    <geom contype="0" conaffinity="0" mass="1"/></default></default>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <geom type="box" size=".25 .35 .1" pos=".7 0 .1"/>
    <body name="target" mocap="true" pos=".6 0 .4" quat="0 0 1 0"/>
    <body childclass="arm" pos="0 0 .2"><joint type="slide" axis="0 0 1" range="0 .5"
        frictionloss="20"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 .3"/>
      <body pos="0 0 .3"><joint axis="0 0 1"/><joint axis="0 1 0"/>
        <geom type="capsule" size=".04" fromto="0 0 0 .35 0 0"/>
        <body pos=".35 0 0"><joint axis="1 0 0"/><joint axis="0 1 0"/>
          <geom type="capsule" size=".04" fromto="0 0 0 .35 0 0"/>
          <body name="wrist" pos=".35 0 0"><joint axis="1 0 0"/><joint axis="0 1 0"/>
            <joint axis="0 0 1"/><geom type="sphere" size=".04"/>
            <body name="hand" euler="0 1.5708 0"><joint name="roll" axis="1 0 0"/>
              <geom type="box" size=".02 .06 .02" pos="0 0 .06"/>
              <body name="left" pos="0 .05 .1"><joint name="left" type="slide" axis="0 -1 0"
                  range="0 .05" damping="50"/><geom type="box" size=".012 .008 .03" mass=".1"
                  pos="0 0 .03" contype="1" conaffinity="1" condim="4" friction="1 .02 0"/></body>
              <body name="right" pos="0 -.05 .1"><joint name="right" type="slide" axis="0 1 0"
                  range="0 .05" damping="50"/><geom type="box" size=".012 .008 .03" mass=".1"
                  pos="0 0 .03" contype="1" conaffinity="1" condim="4" friction="1 .02 0"/></body>
            </body></body></body></body></body>
    <body name="cube" pos=".6 0 .225"><freejoint/><geom type="box" size=".025 .025 .025" mass=".3"
      condim="4"/></body>
  </worldbody>
  <equality><weld body1="target" body2="hand" relpose="0 0 0 1 0 0 0" solref=".02 1"/></equality>
  <contact><exclude body1="left" body2="hand"/><exclude body1="right" body2="hand"/></contact>
  <actuator><position joint="left" kp="1000" forcerange="-20 20"/>
    <position joint="right" kp="1000" forcerange="-20 20"/></actuator>
</mujoco>"""

# Stages: end time [s], place of the hand [m], target of the fingers [m].
PLAN = (
    (0.8, (0.6, 0.0, 0.37), 0.0),
    (1.3, (0.6, 0.0, 0.37), 0.05),
    (2.5, (0.6, 0.2, 0.5), 0.05),
    (3.5, (0.6, 0.2, 0.5), 0.05),
    (4.5, (0.6, 0.25, 0.37), 0.05),
    (5.0, (0.6, 0.25, 0.37), 0.0),
)


def main() -> None:
    """Picks and places; prints where the cube is and how far it slid in the hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    arguments = parser.parse_args()

    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    hand, cube = data.body("hand"), data.body("cube")
    in_hand = []
    with sap.connect(arguments.server) as client, client.session() as session:
        for end, place, fingers in PLAN:
            while data.time < end:
                away = np.array(place) - data.mocap_pos[0]
                reach = 0.4 * model.opt.timestep / max(np.linalg.norm(away), 1e-9)
                data.mocap_pos[0] += away * min(1.0, reach)
                data.ctrl[:] = fingers
                sap.mujoco.step(model, data, session, on_unsolved="raise")
            in_hand.append(hand.xmat.reshape(3, 3).T @ (cube.xpos - hand.xpos))
            print(f"{end} s: hand at {hand.xpos.round(3)}, cube at {cube.xpos.round(3)}")
    slid = 1e6 * np.linalg.norm(in_hand[3] - in_hand[2])
    print(f"while held for a second, the cube slid by {slid:.1f} um")


if __name__ == "__main__":
    main()
