"""Spheres that fall into a tube and wedge there, with hardly any sag and creep.

  python tests/bench/rigid_tube.py

needs the package alone. Prints iterations per step of the worst island of 30 spheres over 150 steps
of 4 ms with `Regularization.rigid()`: without guesses of impulses, and with those of the step
before, matched by the pair that touches; by either choice of `Options.interior_point`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sap_islands as sap

SPHERES, STEPS, TIME_STEP = 30, 150, 4e-3
RADIUS, TUBE, MASS, FRICTION = 0.02, 0.07, 0.03, 1.0
STIFFNESS, NEAR = 1e8, 3e-3  # N/m; distance from which pairs are contacts [m]
GRAVITY = 9.81
FLOOR, WALL = -1, -2  # in place of a second sphere


def pairs_in_touch(x: np.ndarray) -> Iterator[tuple[tuple[int, int], np.ndarray, float]]:
    """Pairs that are near each other: their names, the normal and the signed distance."""
    for i in np.nonzero(x[:, 2] < RADIUS + NEAR)[0]:
        yield (int(i), FLOOR), np.array([0.0, 0.0, 1.0]), x[i, 2] - RADIUS
    from_axis = np.hypot(x[:, 0], x[:, 1])
    for i in np.nonzero(from_axis > TUBE - RADIUS - NEAR)[0]:
        inward = np.array([-x[i, 0], -x[i, 1], 0.0]) / from_axis[i]
        yield (int(i), WALL), inward, TUBE - RADIUS - from_axis[i]
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    for i, j in zip(*np.nonzero(np.tril(distance < 2 * RADIUS + NEAR, -1)), strict=True):
        yield (int(i), int(j)), (x[i] - x[j]) / distance[i, j], distance[i, j] - 2 * RADIUS


def iterations_of(choice: sap.InteriorPoint, with_guess: bool) -> np.ndarray:
    """Iterations of the worst island of each step."""
    row = np.arange(SPHERES) // 4
    angle = np.arange(SPHERES) % 4 * np.pi / 2 + 0.7 * row
    height = RADIUS + 0.042 * row + 1e-3 * (np.arange(SPHERES) % 4)
    x = np.column_stack((0.045 * np.cos(angle), 0.045 * np.sin(angle), height))
    v = np.zeros((SPHERES, 6))
    inertia = np.tile([*[0.4 * MASS * RADIUS**2] * 3, 0, 0, 0], (SPHERES, 1))
    impulses: dict[tuple[int, int], np.ndarray] = {}
    iterations = []
    with sap.connect("embedded:") as client, client.session() as session:
        for _ in range(STEPS):
            touching = list(pairs_in_touch(x))
            problem = sap.Problem(
                TIME_STEP,
                bodies=sap.RigidBodies(
                    mass=[MASS] * SPHERES,
                    inertia=inertia,
                    center_of_mass=x,
                    free_motion_velocity=v - [0, 0, TIME_STEP * GRAVITY, 0, 0, 0],
                    body_id=np.arange(1, SPHERES + 1),
                ),
                regularization=sap.Regularization.rigid(),
            )
            if touching:
                names, normals, distances = zip(*touching, strict=True)
                a, b = np.transpose(names)
                problem.body_contacts = sap.BodyContacts(
                    body_a=a,
                    body_b=np.maximum(b, sap.WORLD),
                    point=x[a] - RADIUS * np.array(normals),
                    normal=normals,
                    signed_distance=distances,
                    stiffness=STIFFNESS,
                    relaxation_time=np.where(np.array(distances) < 0, TIME_STEP, 0.0),
                    friction=FRICTION,
                )
                if with_guess:
                    none = np.zeros(3)
                    guess = [impulses.get(name, none) for name in names]
                    problem.body_contacts.guess_impulse = guess
            solution = session.step(problem, sap.Options(interior_point=choice))
            assert solution.solved
            impulses = dict(zip(names, solution.impulse, strict=True)) if touching else {}
            v = solution.velocity.reshape(-1, 6)
            x = x + TIME_STEP * v[:, :3]
            iterations.append(solution.islands.iterations.max(initial=0))
    return np.array(iterations)


def main() -> None:
    """Prints the table."""
    print("interior point   guess   mean   largest")
    for choice in (sap.InteriorPoint.AUTO, sap.InteriorPoint.ALWAYS):
        for with_guess in (False, True):
            found = iterations_of(choice, with_guess)
            print(f"{choice.name:14}   {with_guess!s:5}  {found.mean():5.1f}   {found.max():7d}")


if __name__ == "__main__":
    main()
