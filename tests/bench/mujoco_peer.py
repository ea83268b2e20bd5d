"""MuJoCo scenes of free bodies, with the problem and the time of the constraint stage of each step.

MuJoCo minimizes over accelerations what SAP minimizes over the velocities v + dt a at the end of
the step: the same convex function where SAP is given MuJoCo's regularization and reference. So
both solve one problem, and their answers can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

import mujoco
import numpy as np

from contact_arrays import Bodies, ContactArrays, PointContacts, from_bodies

TIME_STEP = 0.01
FRICTION = 0.5

# Regularization of MuJoCo's constraints: its default, or what comes near to SAP's: R_n =
# (1 - d) / d w of about beta^2 / (4 pi^2) w, and R_t = R_n / impratio of about sigma w.
REGULARIZATION = {
    "default": {"impratio": "1", "solimp": "0.9 0.95 0.001"},
    "like SAP": {"impratio": "25", "solimp": "0.975 0.975 0.001"},
}


def version() -> str:
    return metadata.version("mujoco")


@dataclass
class MujocoStep:
    problem: ContactArrays  # what MuJoCo's solver is given
    velocity: np.ndarray  # MuJoCo's answer, in the order of the problem
    solve_s: float  # of the constraint stage, mj_fwdConstraint
    iterations: int  # largest of its islands
    islands: int


def _scene(kind: str, num_bodies: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Walls as geoms, and positions of the bodies."""
    walls, position = [], []

    def wall(size, center):
        walls.append('<geom type="box" size="{} {} {}" pos="{} {} {}"/>'.format(*size, *center))

    if kind == "bin":
        side = max(0.26, np.sqrt(num_bodies / 7 * 0.0125))
        across, half = int(side / 0.115), side / 2
        for sign in (-1, 1):
            wall((0.5, half + 1, 3), (sign * (half + 0.5), 0, 3))
            wall((half + 1, 0.5, 3), (0, sign * (half + 0.5), 3))
        for k in range(num_bodies):
            level, place = divmod(k, across * across)
            x, y = ((place % across, place // across) + np.full(2, 0.5)) * side / across - half
            position.append([x, y, 0.06 + 0.125 * level])
    else:  # "piles": bins of nine bodies each
        bins = -(-num_bodies // 9)
        across, half = int(np.ceil(np.sqrt(bins))), 0.125
        for pile in range(bins):
            x, y = (pile % across) * 0.8, (pile // across) * 0.8
            for sign in (-1, 1):
                wall((0.05, half + 0.1, 0.3), (x + sign * (half + 0.05), y, 0.3))
                wall((half, 0.05, 0.3), (x, y + sign * (half + 0.05), 0.3))
            for k in range(min(9, num_bodies - 9 * pile)):
                level, place = divmod(k, 4)
                dx, dy = (place % 2 - 0.5) * 0.12, (place // 2 - 0.5) * 0.12
                position.append([x + dx, y + dy, 0.06 + 0.125 * level])
    random = np.random.default_rng(seed)
    position = np.array(position) + random.uniform(-0.004, 0.004, (num_bodies, 3))
    return walls, position


def _model(kind: str, num_bodies: int, regularization: str, seed: int = 1) -> mujoco.MjModel:
    walls, position = _scene(kind, num_bodies, seed)
    random = np.random.default_rng(seed + 1)
    bodies = []
    for i, p in enumerate(position):
        turn = random.uniform(-5, 5, 3)
        shape = (
            '<geom type="sphere" size="0.05" mass="0.524"/>'
            if i % 2 == 0
            else '<geom type="box" size="0.05 0.05 0.05" mass="1"/>'
        )
        bodies.append(
            '<body pos="{} {} {}" euler="{} {} {}"><freejoint/>{}</body>'.format(*p, *turn, shape)
        )
    chosen = REGULARIZATION[regularization]
    return mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep="{TIME_STEP}" solver="Newton" cone="elliptic" tolerance="1e-8"
          iterations="200" jacobian="sparse" impratio="{chosen["impratio"]}"/>
        <size memory="{max(200, 2 * num_bodies)}M"/>
        <default>
          <geom condim="3" friction="{FRICTION} 0.005 0.0001" solimp="{chosen["solimp"]}"/>
        </default>
        <worldbody>
          <geom type="plane" size="50 50 1"/>{"".join(walls)}{"".join(bodies)}
        </worldbody>
      </mujoco>""")


class Scene:
    """`bin` (one pile) or `piles` (bins of nine bodies), stepped by MuJoCo itself."""

    def __init__(self, kind: str, num_bodies: int, regularization: str):
        self._model = _model(kind, num_bodies, regularization)
        self._data = mujoco.MjData(self._model)

    def settle(self, steps: int) -> None:
        """Steps with the cheap solver for large scenes, so that it takes seconds."""
        model = self._model
        solver, iterations = model.opt.solver, model.opt.iterations
        model.opt.solver, model.opt.iterations = mujoco.mjtSolver.mjSOL_CG, 60
        for _ in range(steps):
            mujoco.mj_step(model, self._data)
        model.opt.solver, model.opt.iterations = solver, iterations

    def _world(self, velocity: np.ndarray) -> np.ndarray:
        """[6 B] with angular parts in body axes, as MuJoCo has them, to [B, 6] in the world's."""
        turned = velocity.reshape(-1, 6).copy()
        frame = self._data.xmat[1:].reshape(-1, 3, 3)
        turned[:, 3:] = np.einsum("bij,bj->bi", frame, turned[:, 3:])
        return turned

    def _problem(self) -> ContactArrays:
        model, data = self._model, self._data
        rotation = data.ximat[1:].reshape(-1, 3, 3)
        inertia = np.einsum("bij,bj,bkj->bik", rotation, model.body_inertia[1:], rotation)
        bodies = Bodies(
            model.body_mass[1:].copy(), inertia, data.xipos[1:].copy(), self._world(data.qvel)
        )

        pair = model.geom_bodyid[data.contact.geom[: data.ncon]] - 1  # -1: the world
        row = data.contact.efc_address[: data.ncon]
        kept = row >= 0
        pair, row = pair[kept], row[kept]
        # MuJoCo's frame is n, t1, t2 with the normal from the first to the second.
        frame = data.contact.frame[: data.ncon].reshape(-1, 3, 3)[kept][:, [1, 2, 0]]
        second_is_world = pair[:, 1] < 0
        frame[second_is_world] *= -1
        contacts = PointContacts(
            np.where(second_is_world, pair[:, 0], pair[:, 1]),
            np.where(second_is_world, -1, pair[:, 0]),
            data.contact.pos[: data.ncon][kept].copy(),
            frame,
        )
        # v_hat = v + dt a_ref; SAP has it from phi0 along the normal, and as the velocity of the
        # surface along the tangents.
        v_hat = (data.efc_vel + TIME_STEP * data.efc_aref)[row[:, None] + [1, 2, 0]]
        surface_velocity = -v_hat
        surface_velocity[:, 2] = 0
        return from_bodies(
            bodies,
            contacts,
            TIME_STEP,
            v_star=self._world(data.qvel + TIME_STEP * data.qacc_smooth).ravel(),
            guess=self._world(data.qvel + TIME_STEP * data.qacc_warmstart).ravel(),
            phi0=-TIME_STEP * v_hat[:, 2],
            stiffness=np.ones(len(row)),  # not read
            tau_d=np.zeros(len(row)),
            mu=np.full(len(row), FRICTION),
            R_t=data.efc_R[row + 1].copy(),
            R_n=data.efc_R[row].copy(),
            surface_velocity=surface_velocity,
        )

    def steps(self, count: int) -> Iterator[MujocoStep]:
        model, data = self._model, self._data
        for _ in range(count):
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_fwdVelocity(model, data)
            mujoco.mj_fwdActuation(model, data)
            mujoco.mj_fwdAcceleration(model, data)
            problem = self._problem()
            start = time.perf_counter()
            mujoco.mj_fwdConstraint(model, data)
            seconds = time.perf_counter() - start
            islands = int(data.nisland)
            reported = data.solver_niter[: min(max(1, islands), len(data.solver_niter))]
            answer = self._world(data.qvel + TIME_STEP * data.qacc).ravel()
            mujoco.mj_Euler(model, data)
            yield MujocoStep(problem, answer, seconds, int(np.max(reported)), islands)
