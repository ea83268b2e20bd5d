"""Tables of steps and rollouts of MuJoCo's models, with its own solvers and with this one."""

from __future__ import annotations

from collections.abc import Iterator

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
