"""One step of Bullet from each state of the scenes that it has: free boxes and spheres on a floor.

    with_pybullet.py CORPUS RUNS

Its contacts have no memory of the step before, as they have in a simulation of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np
import pybullet

import corpus
from free_bodies import FreeBody, Motion, bodies_of

ITERATIONS = (5, 50, 500)  # its default is 50


class World:
    """The bodies of a model in Bullet."""

    def __init__(self, model: mujoco.MjModel, iterations: int) -> None:
        self.id = pybullet.connect(pybullet.DIRECT)
        pybullet.setTimeStep(model.opt.timestep, self.id)
        pybullet.setGravity(*model.opt.gravity, self.id)
        pybullet.setPhysicsEngineParameter(
            numSolverIterations=iterations, solverResidualThreshold=0, physicsClientId=self.id
        )
        floor = pybullet.createCollisionShape(pybullet.GEOM_PLANE, physicsClientId=self.id)
        ground = pybullet.createMultiBody(0, floor, physicsClientId=self.id)
        self._set_friction(ground, float(model.geom_friction[0, 0]))
        self.bodies = [self._make(body) for body in bodies_of(model)]

    def _make(self, body: FreeBody) -> int:
        if body.shape == "box":
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_BOX, halfExtents=body.size, physicsClientId=self.id
            )
        else:
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_SPHERE, radius=body.size[0], physicsClientId=self.id
            )
        made = pybullet.createMultiBody(body.mass, shape, physicsClientId=self.id)
        self._set_friction(made, body.friction)
        return int(made)

    def _set_friction(self, body: int, friction: float) -> None:
        # Bullet multiplies the coefficients of two bodies, MuJoCo takes the larger one.
        pybullet.changeDynamics(
            body,
            -1,
            lateralFriction=friction**0.5,
            linearDamping=0,
            angularDamping=0,
            physicsClientId=self.id,
        )

    def step(self, motion: Motion) -> np.ndarray:
        """The velocity after a step."""
        for i, body in enumerate(self.bodies):
            turn = np.roll(motion.turn[i], -1)
            pybullet.resetBasePositionAndOrientation(
                body, motion.place[i], turn, physicsClientId=self.id
            )
            pybullet.resetBaseVelocity(
                body, motion.linear[i], motion.spin[i], physicsClientId=self.id
            )
        pybullet.stepSimulation(self.id)
        after = [pybullet.getBaseVelocity(body, physicsClientId=self.id) for body in self.bodies]
        return motion.qvel(*map(np.array, zip(*after, strict=True)))


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    for scene, model, arrays in corpus.states(directory, corpus.FREE):
        for iterations in ITERATIONS:
            world = World(model, iterations)
            steps = zip(arrays["qpos"], arrays["qvel"], strict=True)
            velocities = np.array([world.step(Motion.of(*state)) for state in steps])
            engine = f"Bullet, {iterations} iterations"
            corpus.save_run(runs, engine, scene, arrays, velocities)
            pybullet.disconnect(world.id)


if __name__ == "__main__":
    main()
