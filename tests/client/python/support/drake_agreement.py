"""Agreement with Drake's own discrete solver, for each contact approximation and constraint.

`python -m support.drake_agreement` in tests/client/python prints it as the table of DRAKE.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sap_islands as sap
import sap_islands.drake as adapter
from pydrake.systems.analysis import Simulator

from support import drake_constraint_scenes as constraints
from support.drake_scenes import TIME_STEP, Scene, arm_holding_box, clutter, stacks
from support.norms import relative_error

TIGHT = sap.Options(relative_tolerance=1e-9)

SCENES: dict[str, Callable[[], Scene]] = {
    "sap, point contacts": lambda: clutter(18),
    "sap, stacks": lambda: stacks(3, 4),
    "sap, arm that holds a box": arm_holding_box,
    "sap, hydroelastic": lambda: clutter(12, hydroelastic=True),
    "sap, hydroelastic stack": lambda: stacks(1, 3, hydroelastic=True),
    "lagged, point contacts": lambda: clutter(18, approximation="lagged"),
    "lagged, stacks": lambda: stacks(3, 4, approximation="lagged"),
    "lagged, arm that holds a box": lambda: arm_holding_box("lagged"),
    "lagged, hydroelastic": lambda: clutter(12, True, "lagged"),
    "similar, point contacts": lambda: clutter(18, approximation="similar"),
    "similar, stacks": lambda: stacks(3, 4, approximation="similar"),
    "similar, hydroelastic": lambda: clutter(12, True, "similar"),
    "couplers": constraints.couplers,
    "balls": constraints.balls,
    "welds": constraints.welds,
    "distances": constraints.distances,
    "tendon, compliant": lambda: constraints.tendon(100.0, 3.0),
    "tendon, rigid": lambda: constraints.tendon(1e12, 0.0),
    "tendon, coupler and distance": constraints.tendon_with_coupler,
    "PD controllers, effort limits reached": lambda: constraints.arm_with_effort(5.0),
    "PD controllers, effort limits not reached": lambda: constraints.arm_with_effort(1000.0),
    "joint limits": constraints.arm_at_limit,
    "locked joints": lambda: constraints.locked((0, 2, 4)),
    "reversed joints": constraints.reversed_tree,
}


def largest_error(
    scene: Scene, client: sap.Client, steps: int, **arguments: Any
) -> tuple[float, int, int]:
    """Largest difference of velocities over a simulation by Drake, and of contacts and rows.

    Both solve every step from Drake's state; the error is `relative_error`, in the norm of A.
    """
    simulator = Simulator(scene.diagram, scene.context)
    simulator.Initialize()
    error, contacts, rows = 0.0, 0, 0
    for i in range(steps):
        built = adapter.build_problem(scene.plant, scene.plant_context, **arguments)
        solution = client.solve(built.problem, TIGHT)
        assert solution.solved, f"step {i}"
        simulator.AdvanceTo((i + 1) * TIME_STEP)
        expected = scene.plant.GetVelocities(scene.plant_context)[built.velocities]
        error = max(error, relative_error(built.problem, solution.velocity, expected))
        contacts = max(contacts, built.problem.contacts.count)
        rows = max(rows, built.problem.rows.count)
    return error, contacts, rows


def main() -> None:
    """Prints a table for Markdown."""
    print("| scene | contacts | rows | largest error |\n|---|---:|---:|---:|")
    with sap.connect("embedded:") as client:
        for name, make in SCENES.items():
            error, contacts, rows = largest_error(make(), client, 60)
            print(f"| {name} | {contacts} | {rows} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main()
