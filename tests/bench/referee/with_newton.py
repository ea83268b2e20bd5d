"""One step of Newton's solvers from each state of the scenes of free boxes and spheres.

    with_newton.py CORPUS RUNS

Each state is a world of its own. Solvers are made again for each step: some keep impulses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import newton
import numpy as np
import warp as wp

import corpus
from free_bodies import Motion, bodies_of

WORLDS = 50  # at once
SOLVERS: dict[str, Callable[[newton.Model], Any]] = {
    "Newton XPBD": newton.solvers.SolverXPBD,
    "Newton XPBD, 20 iterations": lambda model: newton.solvers.SolverXPBD(model, iterations=20),
    "Newton VBD": newton.solvers.SolverVBD,
    "Newton MuJoCo": newton.solvers.SolverMuJoCo,
}


class Worlds:
    """Worlds of the bodies of a model in Newton, in single precision on the CPU."""

    def __init__(self, model: mujoco.MjModel, count: int) -> None:
        world = newton.ModelBuilder(gravity=tuple(model.opt.gravity))
        for body in bodies_of(model):
            link = world.add_body()
            material = newton.ModelBuilder.ShapeConfig(density=body.density, mu=body.friction)
            if body.shape == "box":
                hx, hy, hz = body.size
                world.add_shape_box(link, hx=hx, hy=hy, hz=hz, cfg=material)
            else:
                world.add_shape_sphere(link, radius=body.size[0], cfg=material)
        builder = newton.ModelBuilder(gravity=tuple(model.opt.gravity))
        builder.replicate(world, count)
        friction = float(model.geom_friction[0, 0])
        builder.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=friction))
        builder.color()
        self.model, self.dt = builder.finalize(device="cpu"), model.opt.timestep
        self.pipeline = newton.CollisionPipeline(self.model)

    def step(
        self, make_solver: Callable[[newton.Model], Any], motions: list[Motion]
    ) -> list[np.ndarray]:
        """Velocities after a step of each world."""
        state, after = self.model.state(), self.model.state()
        poses = [np.hstack((motion.place, np.roll(motion.turn, -1, axis=1))) for motion in motions]
        velocities = [np.hstack((motion.linear, motion.spin)) for motion in motions]
        state.joint_q.assign(np.array(poses, np.float32).ravel())
        state.joint_qd.assign(np.array(velocities, np.float32).ravel())
        newton.eval_fk(self.model, state.joint_q, state.joint_qd, state)
        contacts = self.pipeline.contacts()
        self.pipeline.collide(state, contacts)
        make_solver(self.model).step(state, after, self.model.control(), contacts, self.dt)
        found = after.body_qd.numpy().astype(float).reshape(len(motions), -1, 6)
        return [motion.qvel(v[:, :3], v[:, 3:]) for motion, v in zip(motions, found, strict=True)]


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    wp.config.quiet = True
    for scene, model, arrays in corpus.states(directory, corpus.FREE):
        worlds = Worlds(model, WORLDS)
        motions = list(map(Motion.of, arrays["qpos"], arrays["qvel"]))
        for engine, make_solver in SOLVERS.items():
            velocities = []
            for first in range(0, corpus.STATES, WORLDS):
                velocities += worlds.step(make_solver, motions[first : first + WORLDS])
            corpus.save_run(runs, engine, scene, arrays, np.array(velocities))


if __name__ == "__main__":
    main()
