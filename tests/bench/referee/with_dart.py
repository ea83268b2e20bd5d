"""One step of DART from each state of the scenes of free boxes and spheres.

    with_dart.py CORPUS RUNS
"""

from __future__ import annotations

import sys
from pathlib import Path

import dartpy as dart
import mujoco
import numpy as np

import corpus
from free_bodies import FreeBody, Motion, bodies_of


class World:
    """The bodies of a model in DART."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.world = dart.simulation.World()
        self.world.setTimeStep(model.opt.timestep)
        self.world.setGravity(model.opt.gravity)
        self.bodies = [self._make(i, body) for i, body in enumerate(bodies_of(model))]
        floor = FreeBody("box", [20, 20, 1], 1.0, 1.0, float(model.geom_friction[0, 0]))
        ground = dart.dynamics.Skeleton("floor")
        joint, node = ground.createWeldJointAndBodyNodePair()
        below = np.eye(4)
        below[2, 3] = -floor.size[2]
        joint.setTransformFromParentBodyNode(dart.math.Isometry3(below))
        self._set_shape(node, floor)
        self.world.addSkeleton(ground)

    def _make(self, i: int, body: FreeBody) -> object:
        skeleton = dart.dynamics.Skeleton(f"body {i}")
        joint, node = skeleton.createFreeJointAndBodyNodePair()
        shape = self._set_shape(node, body)
        node.setInertia(
            dart.dynamics.Inertia(body.mass, np.zeros(3), shape.computeInertia(body.mass))
        )
        self.world.addSkeleton(skeleton)
        return joint, node

    def _set_shape(self, node: object, body: FreeBody) -> object:
        size = 2 * np.array(body.size)
        is_box = body.shape == "box"
        shape = dart.dynamics.BoxShape(size) if is_box else dart.dynamics.SphereShape(body.size[0])
        made = node.createShapeNode(shape)
        made.createCollisionAspect()
        # DART takes the smaller coefficient of two bodies, MuJoCo the larger one.
        made.createDynamicsAspect().setFrictionCoeff(body.friction)
        return shape

    def step(self, motion: Motion) -> np.ndarray:
        """The velocity after a step."""
        for i, (joint, _) in enumerate(self.bodies):
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = motion.rotation[i], motion.place[i]
            joint.setTransform(dart.math.Isometry3(pose))
            joint.setLinearVelocity(motion.linear[i])
            joint.setAngularVelocity(motion.spin[i])
        self.world.step()
        linear = np.array([node.getCOMLinearVelocity() for _, node in self.bodies])
        return motion.qvel(linear, np.array([node.getAngularVelocity() for _, node in self.bodies]))


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    for scene, model, arrays in corpus.states(directory, corpus.FREE):
        world = World(model)
        steps = zip(arrays["qpos"], arrays["qvel"], strict=True)
        velocities = np.array([world.step(Motion.of(*state)) for state in steps])
        corpus.save_run(runs, "DART", scene, arrays, velocities)


if __name__ == "__main__":
    main()
