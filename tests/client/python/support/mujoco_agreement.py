"""Scenes with every kind of constraint that MuJoCo has, and how far a step is from MuJoCo's own."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray

_BOX_AND_BALL = """
<worldbody>
  <geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .102"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body pos=".04 .02 .31"><freejoint/><geom size=".1"/></body>
  <body pos=".6 0 .1"><freejoint/><geom type="capsule" size=".1" fromto="0 0 0 .2 .1 0"/></body>
</worldbody>"""

_TWO_ARMS = """
<worldbody>
  <body name="left" pos="0 0 1">
    <joint name="a" type="hinge" axis="0 1 0" {joint}/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
    <body name="fore" pos=".3 0 0"><joint name="b" type="hinge" axis="0 1 0" {joint}/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="tip" pos=".3 0 0"/></body>
  </body>
  <body name="right" pos="1 0 1"><joint name="c" type="hinge" axis="0 1 0" {joint}/>
    <geom type="capsule" size=".03" fromto="0 0 0 -.4 0 0"/><site name="end" pos="-.4 0 0"/></body>
  <body name="slider" pos="0 1 1"><joint name="s" type="slide" axis="0 0 1" {joint}/>
    <geom size=".1"/></body>
  <body name="ball" pos="0 2 1"><joint name="q" type="ball" {ball}/>
    <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0"/></body>
  <body name="free" pos=".6 0 1"><freejoint/><geom size=".05"/></body>
</worldbody>
<default><geom contype="0" conaffinity="0"/></default>
"""

_FIXED_TENDON = """
<tendon><fixed name="t" {tendon}>
  <joint joint="a" coef="1"/><joint joint="c" coef="-.5"/><joint joint="s" coef="2"/>
</fixed><fixed name="u"><joint joint="b" coef="1"/></fixed></tendon>"""


def _arms(more: str, *, joint: str = "", ball: str = "", tendon: str | None = None) -> str:
    text = _TWO_ARMS.format(joint=joint, ball=ball)
    return text + ("" if tendon is None else _FIXED_TENDON.format(tendon=tendon)) + more


def _contact(defaults: str, more: str = "") -> str:
    return f"<default><geom {defaults}/></default>{more}{_BOX_AND_BALL}"


KINDS: dict[str, str] = {
    "connect": _arms('<equality><connect body1="fore" body2="right" anchor=".3 0 0"/></equality>'),
    "weld": _arms('<equality><weld body1="fore" body2="free" torquescale=".7"/></equality>'),
    "joint equality": _arms(
        '<equality><joint joint1="a" joint2="c" polycoef=".1 .8 .2 0 0"/>'
        '<joint joint1="s" polycoef=".05 0 0 0 0"/></equality>'
    ),
    "tendon equality": _arms(
        '<equality><tendon tendon1="t" tendon2="u" polycoef=".02 .9 0 0 0"/></equality>', tendon=""
    ),
    "friction loss of joints": _arms("", joint='frictionloss=".4"', ball='frictionloss=".1"'),
    "friction loss of a tendon": _arms("", tendon='frictionloss=".5"'),
    "joint limits": _arms("", joint='range="-10 10"', ball='range="0 15"'),
    "joint limits with margin": _arms("", joint='range="-10 10" margin=".05"'),
    "tendon limits": _arms("", tendon='range="-.1 .1" limited="true" margin=".01"'),
    "condim 1": _contact('condim="1"'),
    "condim 3": _contact('condim="3" friction=".4"'),
    "condim 4": _contact('condim="4" friction=".6 .02 0"'),
    "condim 6": _contact('condim="6" friction=".6 .02 .01"'),
    "impratio": _contact('condim="4" friction=".6 .02 0"', '<option impratio="10"/>'),
    "negative solref": _contact('solref="-3000 -100"'),
    "margin and gap": _contact('margin=".02" gap=".01"'),
    "friction of pairs": _BOX_AND_BALL.replace("<geom type", '<geom name="g" type', 1).replace(
        '<geom type="box"', '<geom name="h" type="box"'
    )
    + '<contact><pair geom1="g" geom2="h" friction=".3 .9 .01 .02 .03" condim="6"/></contact>',
    "surface velocity": _contact('condim="4" surfacevel=".3 .1 0 0 0 .5"'),
    "adhesion actuator": _BOX_AND_BALL.replace('<body pos=".04', '<body name="sticky" pos=".04')
    + '<actuator><adhesion name="glue" body="sticky" ctrlrange="0 1" gain="20"/></actuator>',
    "adhesion of geoms": _contact('adhesion="5"'),
    "everything": _arms(
        """<equality><connect body1="fore" body2="right" anchor=".3 0 0"/>
        <joint joint1="s" polycoef=".05 0 0 0 0"/></equality>
        <actuator><position joint="b" kp="30" kv="2" forcerange="-1 1"/></actuator>""",
        joint='frictionloss=".1" range="-30 30" damping=".2"',
        ball='frictionloss=".02" range="0 25"',
        tendon='range="-.3 .3" limited="true" frictionloss=".1"',
    ).replace('contype="0" conaffinity="0"', 'condim="4"'),
}


def load_kind(name: str, cone: str, integrator: str) -> tuple[Any, Any]:
    """The scene of a kind of constraint, in motion, and MuJoCo's solver at its tightest."""
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{KINDS[name]}</mujoco>")
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    data.ctrl[:] = 1.0
    solve_tightly(model)
    return model, data


def solve_tightly(model: mujoco.MjModel) -> None:
    """Makes MuJoCo's Newton solver converge to round-off."""
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.tolerance, model.opt.ls_tolerance = 0.0, 1e-12
    model.opt.iterations, model.opt.ls_iterations = 100, 200
    model.opt.noslip_iterations = 0


class Difference(NamedTuple):
    """Largest relative differences of steps: velocity in |.|_M, forces in |.|_{M^-1}."""

    velocity: float = 0.0
    force: float = 0.0

    def or_larger(self, other: Difference) -> Difference:
        """The larger of each."""
        return Difference(max(self.velocity, other.velocity), max(self.force, other.force))


def difference(model: mujoco.MjModel, ours: mujoco.MjData, data: mujoco.MjData) -> Difference:
    """How far the step in `ours` is from MuJoCo's step in `data`, both from the same state."""

    def dual(force: FloatArray) -> float:
        solved = np.zeros((1, model.nv))
        mujoco.mj_solveM(model, data, solved, force[None])
        return math.sqrt(max(float(force @ solved[0]), 0.0))

    def kinetic(velocity: FloatArray) -> float:
        moved = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, moved, velocity)
        return math.sqrt(max(float(velocity @ moved), 0.0))

    free = model.opt.timestep * data.qacc_smooth
    speed = max(kinetic(data.qvel), kinetic(free), 1e-12)
    force = max(dual(data.qfrc_constraint), dual(data.qfrc_smooth), 1e-12)
    return Difference(
        kinetic(ours.qvel - data.qvel) / speed,
        dual(ours.qfrc_constraint - data.qfrc_constraint) / force,
    )


def cost(model: mujoco.MjModel, data: mujoco.MjData, acceleration: FloatArray) -> float:
    """MuJoCo's own cost of an acceleration, for the constraints in `data`."""
    change = acceleration - data.qacc_smooth
    moved, relative, constraints = np.zeros(model.nv), np.zeros(data.nefc), np.zeros(1)
    mujoco.mj_mulM(model, data, moved, change)
    mujoco.mj_mulJacVec(model, data, relative, acceleration)
    mujoco.mj_constraintUpdate(model, data, relative - data.efc_aref, constraints, 0)
    return float(0.5 * change @ moved + constraints[0])


def follow(
    model: mujoco.MjModel, data: mujoco.MjData, solver: sap.Session | sap.Client, steps: int
) -> Difference:
    """Takes `steps` of MuJoCo, each also by the service from the same state; the differences."""
    ours, worst = mujoco.MjData(model), Difference()
    for _ in range(steps):
        mujoco.mj_copyData(ours, model, data)
        mujoco.mj_step(model, data)
        adapter.step(model, ours, solver, law="mujoco", on_unsolved="raise")
        worst = worst.or_larger(difference(model, ours, data))
    return worst
