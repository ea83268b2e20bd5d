"""Joint coordinates: which velocity moves which, and where they are at the end of a step."""

from __future__ import annotations

import newton
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.newton.layout import Indices, kinematic_bodies, numpy_of

_TYPE = newton.JointType
_SINGLE = (_TYPE.PRISMATIC, _TYPE.REVOLUTE, _TYPE.D6)


class Coordinates:
    """The coordinates of a model.

    Attributes:
        of_dof: [dofs] coordinate of which each velocity is the derivative; -1: of a quaternion.
        free_joints: [F] joints of type FREE.
    """

    def __init__(self, model: newton.Model) -> None:
        q, qd = (
            a.numpy()[: model.joint_count] for a in (model.joint_q_start, model.joint_qd_start)
        )
        kind = model.joint_type.numpy()
        self.of_dof: Indices = np.full(model.joint_dof_count, -1)
        for joint in np.flatnonzero(np.isin(kind, _SINGLE)):
            n = int(model.joint_dof_dim.numpy()[joint].sum())
            self.of_dof[qd[joint] : qd[joint] + n] = q[joint] + np.arange(n)
        self._single = np.flatnonzero(self.of_dof >= 0)
        child = model.joint_child.numpy()
        kinematic = kinematic_bodies(model)
        ball, free = (np.flatnonzero(kind == which) for which in (_TYPE.BALL, _TYPE.FREE))
        self._ball = q[ball][:, None] + np.arange(4), qd[ball][:, None] + np.arange(3)
        self.free_joints: Indices = free
        self._qd_start, self._axes = qd, rotations_of(numpy_of(model.joint_X_p)[:, 3:])
        free = free[~kinematic[child[free]]]
        self._free = q[free][:, None] + np.arange(7), qd[free][:, None] + np.arange(6)
        # The center of mass of each free body in the frame of its joint.
        frame = numpy_of(model.joint_X_c)[free]
        arm = numpy_of(model.body_com)[child[free]] - frame[:, :3]
        self._arm = np.einsum("bji,bj->bi", rotations_of(frame[:, 3:]), arm)

    def to_joint_axes(self, values: FloatArray, joints: Indices) -> None:
        """Turns the six entries [dofs] of free joints at the root from world to joint axes.

        Newton has the velocities of a free joint in the axes of its frame on the parent, and the
        wrenches on its body in those of the world.
        """
        dofs = self._qd_start[joints][:, None] + np.arange(6)
        values[dofs] = (values[dofs].reshape(-1, 2, 3) @ self._axes[joints]).reshape(-1, 6)

    def in_joint_axes(self, pair: FloatArray, joint: int) -> FloatArray:
        """[6] two vectors of the world in the axes of a joint at the root."""
        turned_back: FloatArray = pair.reshape(2, 3) @ self._axes[joint]
        return turned_back.ravel()

    def integrate(self, q: FloatArray, qd: FloatArray, time_step: float) -> FloatArray:
        """The coordinates after a step at the velocities of its end, in double precision."""
        q = q.copy()
        q[self.of_dof[self._single]] += time_step * qd[self._single]
        at, dof = self._ball
        q[at] = turned(q[at], time_step * qd[dof])
        at, dof = self._free
        pose, velocity = q[at], qd[dof]
        # The center of mass moves with the velocity, and the origin turns about it.
        center = pose[:, :3] + np.einsum("bij,bj->bi", rotations_of(pose[:, 3:]), self._arm)
        pose[:, 3:] = turned(pose[:, 3:], time_step * velocity[:, 3:])
        center += time_step * velocity[:, :3]
        pose[:, :3] = center - np.einsum("bij,bj->bi", rotations_of(pose[:, 3:]), self._arm)
        q[at] = pose
        return q


def cross_matrix(vectors: FloatArray) -> FloatArray:
    """[n, 3, 3] matrices of the cross product with each vector on the left."""
    matrices = np.zeros((len(vectors), 3, 3))
    x, y, z = vectors.T
    matrices[:, 0, 1], matrices[:, 0, 2], matrices[:, 1, 2] = -z, y, -x
    matrices[:, 1, 0], matrices[:, 2, 0], matrices[:, 2, 1] = z, -y, x
    return matrices


def rotations_of(quaternions: FloatArray) -> FloatArray:
    """[n, 3, 3] matrices of unit quaternions (x, y, z, w)."""
    unit = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    x, y, z, w = unit.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def turned(quaternion: FloatArray, rotation: FloatArray) -> FloatArray:
    """[n, 4] unit quaternions (x, y, z, w) after rotation vectors, in the axes they map to."""
    angle = np.linalg.norm(rotation, axis=1, keepdims=True)
    axis = rotation * np.sinc(angle / (2 * np.pi)) / 2  # axis * sin(angle / 2)
    cosine = np.cos(angle / 2)
    vector, scalar = quaternion[:, :3], quaternion[:, 3:]
    result: NDArray[np.float64] = np.hstack(
        [
            cosine * vector + scalar * axis + np.cross(axis, vector),
            cosine * scalar - np.einsum("ni,ni->n", axis, vector)[:, None],
        ]
    )
    return result / np.linalg.norm(result, axis=1, keepdims=True)
