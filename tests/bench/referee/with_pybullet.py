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

ITERATIONS = (5, 50, 500)  # its default is 50
_SHAPES = {int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere", int(mujoco.mjtGeom.mjGEOM_BOX): "box"}


class World:
    """The bodies of a model in Bullet."""

    def __init__(self, model: mujoco.MjModel, iterations: int) -> None:
        self.model, self.id = model, pybullet.connect(pybullet.DIRECT)
        pybullet.setTimeStep(model.opt.timestep, self.id)
        pybullet.setGravity(*model.opt.gravity, self.id)
        pybullet.setPhysicsEngineParameter(
            numSolverIterations=iterations, solverResidualThreshold=0, physicsClientId=self.id
        )
        floor = pybullet.createCollisionShape(pybullet.GEOM_PLANE, physicsClientId=self.id)
        ground = pybullet.createMultiBody(0, floor, physicsClientId=self.id)
        self._set_friction(ground, float(model.geom_friction[0, 0]))
        self.bodies = [self._make(body) for body in range(1, model.nbody)]

    def _make(self, body: int) -> int:
        geom = int(self.model.body_geomadr[body])
        size = self.model.geom_size[geom].tolist()
        if _SHAPES[int(self.model.geom_type[geom])] == "box":
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_BOX, halfExtents=size, physicsClientId=self.id
            )
        else:
            shape = pybullet.createCollisionShape(
                pybullet.GEOM_SPHERE, radius=size[0], physicsClientId=self.id
            )
        made = pybullet.createMultiBody(
            float(self.model.body_mass[body]), shape, physicsClientId=self.id
        )
        self._set_friction(made, float(self.model.geom_friction[geom, 0]))
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

    def step(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """The velocity after a step."""
        rotations = np.empty((len(self.bodies), 9))
        for i, body in enumerate(self.bodies):
            place, turned, velocity = qpos[7 * i :][:3], qpos[7 * i + 3 :][:4], qvel[6 * i :][:6]
            mujoco.mju_quat2Mat(rotations[i], turned)
            spin = rotations[i].reshape(3, 3) @ velocity[3:]  # MuJoCo has it in the body's axes
            pybullet.resetBasePositionAndOrientation(
                body, place, np.roll(turned, -1), physicsClientId=self.id
            )
            pybullet.resetBaseVelocity(body, velocity[:3], spin, physicsClientId=self.id)
        pybullet.stepSimulation(self.id)
        result = np.empty_like(qvel)
        for i, body in enumerate(self.bodies):
            linear, spin = pybullet.getBaseVelocity(body, physicsClientId=self.id)
            result[6 * i :][:3] = linear
            result[6 * i + 3 :][:3] = rotations[i].reshape(3, 3).T @ spin
        return result


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    for scene, model, arrays in corpus.states(directory):
        for iterations in ITERATIONS if scene in corpus.FREE else ():
            world = World(model, iterations)
            steps = zip(arrays["qpos"], arrays["qvel"], strict=True)
            velocities = np.array([world.step(*state) for state in steps])
            engine = f"Bullet, {iterations} iterations"
            corpus.save_run(runs, engine, scene, arrays, velocities)
            pybullet.disconnect(world.id)


if __name__ == "__main__":
    main()
