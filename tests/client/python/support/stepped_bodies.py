"""Rigid bodies stepped in a session: spheres and corners on planes, and rows between bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import sap_islands as sap
from sap_islands.arrays import FloatArray
from scipy.spatial.transform import Rotation


@dataclass(frozen=True)
class Touch:
    """A sphere of body a, a corner if its radius is 0, on a plane of body b.

    Attributes:
        a, b: The bodies; b may be the world.
        center: Of the sphere, in axes of a at its center of mass [m].
        radius: Of the sphere [m].
        normal: Of the plane, towards a, in axes of b.
        offset: Distance of the plane from the center of mass of b along the normal [m].
    """

    a: int
    b: int
    center: tuple[float, float, float]
    radius: float
    normal: tuple[float, float, float]
    offset: float


@dataclass(frozen=True)
class Row:
    """A constraint row: its entries of J, and as in `sap.ConstraintRows`."""

    J: FloatArray
    position_error: float = 0.0
    force_lower: float = -np.inf
    force_upper: float = np.inf
    slip_parameter: float = 0.0


@dataclass
class Bodies:
    """Bodies and their motion; velocities and poses are those after the last step.

    Attributes:
        time_step: [s].
        mass: Per body [kg].
        inertia: Principal moments per body, about axes of the body [kg m²]. Shape (n, 3).
        position: Of the centers of mass [m]. Shape (n, 3).
        rotation: Matrices from axes of the body to those of the world. Shape (n, 3, 3).
        gravity: [m/s²].
        friction: μ of all contacts [-].
        touches: All pairs that may touch.
        velocity: Linear and angular [m/s, rad/s]. Shape (n, 6).
    """

    time_step: float
    mass: FloatArray
    inertia: FloatArray
    position: FloatArray
    rotation: FloatArray
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    friction: float = 0.5
    touches: list[Touch] = field(default_factory=list)
    velocity: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.velocity = np.zeros((len(self.mass), 6))

    def at(self, body: int, point: FloatArray) -> FloatArray:
        """Where a point of a body is, given in axes of the body at its center of mass."""
        place: FloatArray = self.position[body] + self.rotation[body] @ point
        return place

    def along(self, a: int, b: int, point: FloatArray, axis: FloatArray) -> FloatArray:
        """J of the velocity of a relative to b, at a point of the world along an axis."""
        J = np.zeros(self.velocity.shape)
        for body, sign in ((a, 1.0), (b, -1.0)):
            if body != sap.WORLD:
                J[body] += sign * np.append(axis, np.cross(point - self.position[body], axis))
        return J.ravel()

    def about(self, a: int, b: int, axis: FloatArray) -> FloatArray:
        """J of the angular velocity of a relative to b about an axis."""
        J = np.zeros(self.velocity.shape)
        for body, sign in ((a, 1.0), (b, -1.0)):
            if body != sap.WORLD:
                J[body, 3:] += sign * axis
        return J.ravel()

    def problem(self, rows: list[Row], regularization: sap.Regularization) -> sap.Problem:
        """The contact problem of the next step."""
        inertia = self.rotation * self.inertia[:, None] @ self.rotation.transpose(0, 2, 1)
        free = self.velocity + self.time_step * np.append(self.gravity, [0, 0, 0])
        problem = sap.Problem(
            self.time_step,
            bodies=sap.RigidBodies(
                mass=self.mass,
                inertia=inertia[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]],
                center_of_mass=self.position,
                free_motion_velocity=free,
                body_id=np.arange(1, len(self.mass) + 1),
            ),
            regularization=regularization,
        )
        if self.touches:
            problem.body_contacts = self._contacts()
        if rows:
            problem.rows = sap.ConstraintRows.from_dense(
                [row.J for row in rows],
                position_error=[row.position_error for row in rows],
                force_lower=[row.force_lower for row in rows],
                force_upper=[row.force_upper for row in rows],
                slip_parameter=[row.slip_parameter for row in rows],
            )
        return problem

    def _contacts(self) -> sap.BodyContacts:
        """All touches as contacts; the world is the last of the bodies."""
        x = np.vstack((self.position, np.zeros(3)))
        R = np.concatenate((self.rotation, np.eye(3)[None]))
        a = np.array([touch.a for touch in self.touches])
        b = np.array([touch.b for touch in self.touches])
        normal = np.einsum("cij,cj->ci", R[b], [touch.normal for touch in self.touches])
        center = x[a] + np.einsum("cij,cj->ci", R[a], [touch.center for touch in self.touches])
        radius = np.array([touch.radius for touch in self.touches])
        height = np.einsum("ci,ci->c", center - x[b], normal)
        return sap.BodyContacts(
            body_a=a,
            body_b=b,
            point=center - radius[:, None] * normal,
            normal=normal,
            signed_distance=height - radius - [touch.offset for touch in self.touches],
            stiffness=1e9,
            relaxation_time=self.time_step,
            friction=self.friction,
        )

    def run(
        self,
        seconds: float,
        regularization: sap.Regularization,
        rows: Callable[[], list[Row]] = list,
    ) -> None:
        """Steps with the rows of each pose; all islands of all steps must be solved."""
        with sap.connect("embedded:") as client, client.session() as session:
            for _ in range(round(seconds / self.time_step)):
                solution = session.step(self.problem(rows(), regularization))
                assert solution.solved
                self.velocity = solution.velocity.reshape(-1, 6)
                self.position = self.position + self.time_step * self.velocity[:, :3]
                turn = Rotation.from_rotvec(self.time_step * self.velocity[:, 3:])
                self.rotation = turn.as_matrix() @ self.rotation


def box_moments(mass: float, sides: tuple[float, float, float]) -> FloatArray:
    """Principal moments of a box [kg m²]."""
    square = np.square(sides)
    moments: FloatArray = mass / 12 * (square.sum() - square)
    return moments
