"""Models of free boxes and spheres on a floor, as other engines build them and set their states."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

_SHAPES = {int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere", int(mujoco.mjtGeom.mjGEOM_BOX): "box"}


class FreeBody(NamedTuple):
    """A body of one geom at its center of mass."""

    shape: str  # "box" or "sphere"
    size: list[float]  # half edges [m], or the radius first
    mass: float
    density: float
    friction: float


def bodies_of(model: mujoco.MjModel) -> list[FreeBody]:
    """All bodies but the world, in the order of their velocities."""
    bodies = []
    for body in range(1, model.nbody):
        geom = int(model.body_geomadr[body])
        shape, size = _SHAPES[int(model.geom_type[geom])], model.geom_size[geom].tolist()
        mass = float(model.body_mass[body])
        volume = 8 * np.prod(size) if shape == "box" else 4 / 3 * np.pi * size[0] ** 3
        friction = float(model.geom_friction[geom, 0])
        bodies.append(FreeBody(shape, size, mass, float(mass / volume), friction))
    return bodies


class Motion(NamedTuple):
    """A state of n bodies; velocities in world axes, at the centers of mass."""

    place: np.ndarray  # [n, 3]
    turn: np.ndarray  # [n, 4] quaternions (w, x, y, z)
    rotation: np.ndarray  # [n, 3, 3]
    linear: np.ndarray  # [n, 3]
    spin: np.ndarray  # [n, 3]; MuJoCo has it in the axes of the body

    @classmethod
    def of(cls, qpos: np.ndarray, qvel: np.ndarray) -> Motion:
        """The motion in MuJoCo's coordinates."""
        pose, velocity = qpos.reshape(-1, 7), qvel.reshape(-1, 6)
        rotation = np.empty((len(pose), 9))
        for matrix, turn in zip(rotation, pose[:, 3:], strict=True):
            mujoco.mju_quat2Mat(matrix, turn)
        rotation = rotation.reshape(-1, 3, 3)
        spin = np.einsum("bij,bj->bi", rotation, velocity[:, 3:])
        return cls(pose[:, :3], pose[:, 3:], rotation, velocity[:, :3], spin)

    def qvel(self, linear: np.ndarray, spin: np.ndarray) -> np.ndarray:
        """Velocities after a step, in MuJoCo's coordinates at this state."""
        turned = np.einsum("bji,bj->bi", self.rotation, spin)
        return np.concatenate((linear, turned), axis=1).ravel()
