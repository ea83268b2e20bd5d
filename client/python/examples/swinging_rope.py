"""A rope of rigid links swings from horizontal with a load at its end, in six ways.

Links are free bodies, held together by three constraint rows at each joint. J is that of the
beginning of the step, so that the ends of a link that turns by an angle part by half its square
times the arm, and the pull of the rope does not turn with the link. Substeps help against the
first, an inertia that has the pull against the second.
"""

import argparse
from typing import NamedTuple

import numpy as np

import sap_islands as sap

LINKS, LENGTH, MASS = 20, 0.25, 0.1  # m, kg of each link
RADIUS = 0.3  # of the load [m]
GRAVITY = np.array([0, 0, -9.81])
DURATION = 3.0  # s


class Way(NamedTuple):
    """How a step is taken.

    Attributes:
        name: For the table.
        substeps: Steps per frame.
        inertia: Factor on the inertia of links.
        turning_pull: Whether the pull of the joints turns with the links.
    """

    name: str
    substeps: int = 1
    inertia: float = 1.0
    turning_pull: bool = False


WAYS = (
    Way("as it is"),
    Way("links of 10 times the inertia", inertia=10.0),
    Way("pull turns with the links", turning_pull=True),
    Way("4 substeps", substeps=4),
    Way("4 substeps, pull turns", substeps=4, turning_pull=True),
    Way("16 substeps, pull turns", substeps=16, turning_pull=True),
)


def skew(r: np.ndarray) -> np.ndarray:
    """[..., 3, 3] matrices of r x."""
    zero = np.zeros(r.shape[:-1])
    x, y, z = np.moveaxis(r, -1, 0)
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


class Rope:
    """The state of a rope with a load, its last body.

    Attributes:
        center: [bodies, 3] [m].
        rotation: [bodies, 3, 3].
        velocity: [bodies, 6].
        pull: [joints, 3] force of each joint on the body below it in the last step [N].
    """

    def __init__(self, load: float, way: Way) -> None:
        count = LINKS + 1
        self.mass = np.append(np.full(LINKS, MASS), load)
        size = np.append(
            np.full(LINKS, way.inertia * MASS * LENGTH**2 / 12), 0.4 * load * RADIUS**2
        )
        self.inertia = size  # of bodies that are the same about every axis [kg m²]
        self.half = np.append(np.full(LINKS, LENGTH / 2), RADIUS)  # center to joint [m]
        ends = np.cumsum(2 * self.half)
        self.center = np.zeros((count, 3))
        self.center[:, 0] = ends - self.half
        self.rotation = np.tile(np.eye(3), (count, 1, 1))
        self.velocity = np.zeros((count, 6))
        self.pull = np.zeros((count, 3))
        self.way = way

    def arms(self) -> tuple[np.ndarray, np.ndarray]:
        """From the centers to the upper and to the lower joints [bodies, 3]."""
        along = self.rotation[:, :, 0] * self.half[:, None]
        return -along, along

    def gaps(self) -> np.ndarray:
        """[joints, 3] upper end of each body from the lower end of the one before [m]."""
        upper, lower = self.arms()
        before = np.vstack([np.zeros(3), (self.center + lower)[:-1]])
        return self.center + upper - before

    def energy(self) -> float:
        """Kinetic and potential [J]."""
        v, w = self.velocity[:, :3], self.velocity[:, 3:]
        kinetic = self.mass @ (v**2).sum(axis=1) + self.inertia @ (w**2).sum(axis=1)
        return float(kinetic / 2 - self.mass @ (self.center @ GRAVITY))

    def problem(self, dt: float) -> sap.Problem:
        """The problem of one step."""
        count = len(self.mass)
        upper, lower = self.arms()
        free = self.velocity.copy()
        free[:, :3] += dt * GRAVITY
        inertia = self.inertia[:, None, None] * np.eye(3)
        if self.way.turning_pull:
            # A pull f at an arm r has the moment r x f, which changes by -K theta as r turns by
            # theta, K = (r f) 1 - (r f' + f r') / 2. At the end of the step theta is dt omega.
            stiffness = np.zeros((count, 3, 3))
            below = np.vstack([-self.pull[1:], np.zeros(3)])
            for arm, force in ((upper, self.pull), (lower, below)):
                outer = arm[:, :, None] * force[:, None, :]
                trace = (arm * force).sum(axis=1)[:, None, None]
                K = trace * np.eye(3) - (outer + outer.transpose(0, 2, 1)) / 2
                stiffness += np.where(trace > 0, K, 0.0)
            heavier = inertia + dt**2 * stiffness
            momentum = np.einsum("bij,bj->bi", inertia, free[:, 3:])
            free[:, 3:] = np.linalg.solve(heavier, momentum[:, :, None])[:, :, 0]
            inertia = heavier
        J = np.zeros((count, 3, count, 6))
        every = np.arange(count)
        J[every, :, every, :3] = np.eye(3)
        J[every, :, every, 3:] = -skew(upper)
        J[every[1:], :, every[:-1], :3] = -np.eye(3)
        J[every[1:], :, every[:-1], 3:] = skew(lower[:-1])
        rows = sap.ConstraintRows.from_dense(
            J.reshape(3 * count, 6 * count), position_error=self.gaps().ravel()
        )
        bodies = sap.RigidBodies(
            mass=self.mass,
            inertia=inertia[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]],
            center_of_mass=self.center,
            free_motion_velocity=free,
            body_id=np.arange(count),
        )
        # Rows of light links that carry a heavy load are to be rigid.
        return sap.Problem(
            dt, bodies=bodies, rows=rows, regularization=sap.Regularization(row_beta=1e-3)
        )

    def advance(self, solution: sap.Solution, dt: float) -> None:
        """Moves the bodies by the velocities of a solution."""
        self.velocity = solution.velocity.reshape(-1, 6).copy()
        self.pull = solution.row_impulse.reshape(-1, 3) / dt
        self.center += dt * self.velocity[:, :3]
        turn = dt * self.velocity[:, 3:]
        angle = np.linalg.norm(turn, axis=1)
        K = skew(turn / np.where(angle > 0, angle, 1)[:, None])
        sine, cosine = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
        self.rotation = (np.eye(3) + sine * K + (1 - cosine) * K @ K) @ self.rotation


class Swing(NamedTuple):
    """Statistics of a rope over its motion.

    Attributes:
        gap: Largest gap of a joint [m].
        lost: Of the energy of the fall, at the end.
        gained: Of the energy of the fall, at most.
    """

    gap: float
    lost: float
    gained: float


def swing(client: sap.Client, rate: float, load: float, way: Way) -> Swing:
    """Swings a rope; ends where its energy has grown tenfold."""
    rope = Rope(load, way)
    dt = 1 / (rate * way.substeps)
    first, fall = rope.energy(), 9.81 * (rope.mass @ rope.center[:, 0])
    gap = gained = 0.0
    with client.session() as session:
        for _ in range(round(DURATION / dt)):
            rope.advance(session.step(rope.problem(dt)), dt)
            gap = max(gap, float(np.linalg.norm(rope.gaps(), axis=1).max()))
            gained = max(gained, (rope.energy() - first) / fall)
            if gained > 10:
                break
    return Swing(gap, (first - rope.energy()) / fall, gained)


def main() -> None:
    """Prints a line for each way and load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:", help="address")
    parser.add_argument("--rate", type=float, default=60.0, help="frames per second")
    parser.add_argument("--load", type=float, nargs="+", default=[0.1, 10.0, 1000.0], help="kg")
    ways = range(len(WAYS))
    parser.add_argument("--ways", type=int, nargs="+", default=ways, choices=ways, help="numbers")
    arguments = parser.parse_args()
    with sap.connect(arguments.server) as client:
        for way in arguments.ways:
            for load in arguments.load:
                found = swing(client, arguments.rate, load, WAYS[way])
                print(
                    f"{WAYS[way].name}, {load:g} kg: gaps up to {1e3 * found.gap:.1f} mm, energy "
                    f"gained at most {100 * found.gained:.1f} %, lost {100 * found.lost:.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()
