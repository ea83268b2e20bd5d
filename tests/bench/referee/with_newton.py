"""One step of Newton's solvers from each state of the scenes of free boxes and spheres.

    with_newton.py CORPUS RUNS

Each solver is made anew for each state: some keep impulses of the step before.
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

SOLVERS: dict[str, Callable[[newton.Model], Any]] = {
    "Newton XPBD": newton.solvers.SolverXPBD,
    "Newton XPBD, 20 iterations": lambda model: newton.solvers.SolverXPBD(model, iterations=20),
    "Newton VBD": newton.solvers.SolverVBD,
    "Newton MuJoCo": newton.solvers.SolverMuJoCo,
}


class World:
    """The bodies of a model in Newton, in single precision on the CPU."""

    def __init__(self, model: mujoco.MjModel) -> None:
        builder = newton.ModelBuilder(gravity=tuple(model.opt.gravity))
        friction = float(model.geom_friction[0, 0])
        builder.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=friction))
        for body in bodies_of(model):
            link = builder.add_body()
            material = newton.ModelBuilder.ShapeConfig(density=body.density, mu=body.friction)
            if body.shape == "box":
                hx, hy, hz = body.size
                builder.add_shape_box(link, hx=hx, hy=hy, hz=hz, cfg=material)
            else:
                builder.add_shape_sphere(link, radius=body.size[0], cfg=material)
        builder.color()
        self.model, self.dt = builder.finalize(device="cpu"), model.opt.timestep

    def step(self, make_solver: Callable[[newton.Model], Any], motion: Motion) -> np.ndarray:
        """The velocity after a step."""
        state, after = self.model.state(), self.model.state()
        pose = np.concatenate((motion.place, np.roll(motion.turn, -1, axis=1)), axis=1)
        velocity = np.concatenate((motion.linear, motion.spin), axis=1)
        state.joint_q.assign(pose.ravel().astype(np.float32))
        state.joint_qd.assign(velocity.ravel().astype(np.float32))
        newton.eval_fk(self.model, state.joint_q, state.joint_qd, state)
        pipeline = newton.CollisionPipeline(self.model)
        contacts = pipeline.contacts()
        pipeline.collide(state, contacts)
        make_solver(self.model).step(state, after, self.model.control(), contacts, self.dt)
        found = after.body_qd.numpy().astype(float)
        return motion.qvel(found[:, :3], found[:, 3:])


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    wp.config.quiet = True
    for scene, model, arrays in corpus.states(directory, corpus.FREE):
        world = World(model)
        for engine, make_solver in SOLVERS.items():
            steps = zip(arrays["qpos"], arrays["qvel"], strict=True)
            velocities = np.array([world.step(make_solver, Motion.of(*state)) for state in steps])
            corpus.save_run(runs, engine, scene, arrays, velocities)


if __name__ == "__main__":
    main()
