"""A hand of five fingers turns a block: they press, turn and let go in turn.

As in the Shadow hand, a tendon couples the two outer joints of each finger and one servo pulls it,
joints have dry friction and limits, and fingertips resist spinning.
"""

import argparse

import mujoco
import numpy as np

import sap_islands as sap
import sap_islands.mujoco

FINGERS, PERIOD, STANCE = 5, 1.0, 0.7  # -, s, part of the period that a finger presses

FINGER = """
<body name="f{i}" pos="{x} {y} 0" euler="0 0 {turn}">
  <joint name="spread{i}" axis="0 0 1" range="-35 35"/>
  <geom type="sphere" size=".008" mass=".02"/>
  <body><joint name="base{i}" axis="0 1 0" range="-40 40"/>
    <geom type="capsule" size=".006" fromto="0 0 0 0 0 .05" mass=".03"/>
    <body pos="0 0 .05"><joint name="middle{i}" axis="0 1 0" range="-20 40"/>
      <geom type="capsule" size=".006" fromto="0 0 0 .02 0 -.004" mass=".02"/>
      <body pos=".02 0 -.004"><joint name="tip{i}" axis="0 1 0" range="-20 40"/>
        <geom type="capsule" size=".006" fromto="0 0 0 .02 0 -.01" mass=".01"/>
        <geom type="sphere" size=".008" pos=".022 0 -.011" mass=".005" condim="4"
          friction="1.2 .005 0"/></body></body></body>
</body>"""

SERVOS = """
<position joint="spread{i}" kp="2" kv=".02" forcerange="-.5 .5"/>
<position joint="base{i}" kp="2" kv=".02" forcerange="-.5 .5"/>
<position tendon="bend{i}" kp="1" kv=".01" forcerange="-.3 .3"/>"""

TENDON = """
<fixed name="bend{i}" limited="true" range="-.3 1.2" frictionloss=".002">
  <joint joint="middle{i}" coef="1"/><joint joint="tip{i}" coef="1"/></fixed>"""

COUPLING = '<joint joint1="middle{i}" joint2="tip{i}"/>'


def make_model() -> mujoco.MjModel:
    """Fingers around a block of 5 cm on a palm."""

    def for_each(text: str) -> str:
        angles = 2 * np.pi * np.arange(FINGERS) / FINGERS
        return "".join(
            text.format(i=i, x=0.08 * np.cos(a), y=0.08 * np.sin(a), turn=np.rad2deg(a) + 180)
            for i, a in enumerate(angles)
        )

    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.002"/>
        <default><joint damping=".005" armature="1e-4" frictionloss=".005"/></default>
        <worldbody><geom type="cylinder" size=".06 .01" pos="0 0 -.01" friction=".3"/>
        {for_each(FINGER)}
        <body name="block" pos="0 0 .025"><freejoint/>
          <geom type="box" size=".025 .025 .025" mass=".1" condim="4" friction=".3 .002 0"/></body>
        </worldbody>
        <tendon>{for_each(TENDON)}</tendon><equality>{for_each(COUPLING)}</equality>
        <actuator>{for_each(SERVOS)}</actuator></mujoco>"""
    )


def targets(time: float) -> np.ndarray:
    """Angles of spread and base, and length of the tendon, of each finger at a time."""
    phase = (time / PERIOD + 2 * np.arange(FINGERS) / FINGERS) % 1.0
    presses = phase < STANCE
    swing = np.where(presses, phase / STANCE, 1 - (phase - STANCE) / (1 - STANCE))
    return np.column_stack(
        (0.5 * (1 - 2 * swing), np.where(presses, 0.3, -0.25), np.full(FINGERS, 0.2))
    ).ravel()


def main() -> None:
    """Turns the block; prints by how much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    parser.add_argument("--time", type=float, default=5.0)
    arguments = parser.parse_args()

    model = make_model()
    data = mujoco.MjData(model)
    block = data.body("block")
    turned, before = 0.0, 0.0
    with sap.connect(arguments.server) as client, client.session() as session:
        while data.time < arguments.time:
            data.ctrl[:] = targets(data.time)
            _, solution = sap.mujoco.step(model, data, session, on_unsolved="raise")
            angle = np.arctan2(block.xmat[3], block.xmat[0])
            turned += (angle - before + np.pi) % (2 * np.pi) - np.pi
            before = angle
            if round(data.time / model.opt.timestep) % 500 == 0:
                print(
                    f"{data.time:.1f} s: turned by {np.rad2deg(turned):.0f} degrees, "
                    f"{len(solution.impulse)} contacts, {len(solution.row_impulse)} rows"
                )
    print(f"block at {np.round(block.xpos, 3)}, turned by {np.rad2deg(turned):.0f} degrees")


if __name__ == "__main__":
    main()
