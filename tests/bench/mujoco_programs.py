"""Tables of steps and rollouts of simulators, with their own solvers and with this one."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import geometric_mean

from one_core import pin_to_one_core
from table import Table, of_scenes


def rollout(bench) -> Iterator[Table]:
    """Many environments in lockstep, on one core and on several, against mujoco.rollout."""
    import rollouts

    yield of_scenes("rollout", rollouts, bench)


def run(bench) -> Iterator[Table]:
    """Steps of unchanged programs of MuJoCo, alone and under `sap-islands run`."""
    import replaced_steps

    pin_to_one_core()
    yield of_scenes("run", replaced_steps, bench)


def flex(bench) -> Iterator[Table]:
    """Steps of MuJoCo's flexes by its solvers and with this one."""
    import flex_steps

    pin_to_one_core()
    yield of_scenes("flex", flex_steps, bench)


def steps(bench) -> Iterator[Table]:
    """Steps of the adapters for MuJoCo and Drake, against the simulators' own."""
    import adapter_steps

    pin_to_one_core()
    table = of_scenes("steps", adapter_steps, bench)
    column = table.columns.index("ratio of one call")
    ratios = [float(row[column]) for row in table.rows if row[column]]
    if ratios:
        mean = ["geometric mean", *[""] * (len(table.columns) - 1)]
        mean[column] = f"{geometric_mean(ratios):.2f}"
        table.add(*mean)
    yield table
