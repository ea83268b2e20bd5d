"""Fits when `sap-islands run` takes a step: the coefficients in client/mujoco/solver_choice.cc.

From states along simulations, MuJoCo's constraint stage and this solver's are timed, and the work
of a Newton iteration is counted for both. The time per iteration is fitted as a sum of counts with
coefficients >= 0, by least squares of the relative error.

    build/python/bin/python tests/bench/solver_choice.py

on an idle machine; needs SciPy. With another MuJoCo, of PYTHONPATH, its own coefficients.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mujoco
import numpy as np
from replaced_stage import load_library, stage_of
from replaced_steps import SCENES
from sap_islands._library.declarations import struct_type
from sap_islands.mujoco.native_calls import load_native_calls
from scipy.optimize import nnls
from table import Table

TITLE = "Time of an iteration as a sum of counts: coefficients [s]"
COLUMNS = "side;rows;cones;entries^2;cones x fill;flops;dofs^2;tree cubes;wrong choices;time lost"
STEPS = (20, 60, 100, 150, 220, 320, 450)
REPEATS, REPEAT_S, SCENE_S = 7, 0.3, 25.0
CLEARLY = 0.8  # as in solver_choice.cc
SKIPPED = ("arm", "humanoid")  # islands of fewer dofs than are counted at all


class Sample(NamedTuple):
    """One state: times [s], iterations, and work."""

    mujoco_s: float
    ours_s: float
    mujoco_iterations: int
    iterations: int
    work: Any


def samples(name: str) -> Iterator[Sample]:
    """Some states of a scene in which constraints act."""
    count = load_library().sap_mujoco_count_work
    model = SCENES[name]()
    data, copy = mujoco.MjData(model), mujoco.MjData(model)
    begin = time.perf_counter()
    for step in range(STEPS[-1] + 1):
        if step in STEPS and time.perf_counter() - begin < SCENE_S:
            mujoco.mj_copyData(copy, model, data)
            mujoco.mj_forward(model, copy)
            if copy.nefc:
                mujoco_s = least_s(lambda: mujoco.mj_fwdConstraint(model, copy))
                mujoco_iterations = int(copy.solver_niter.max())
                state = load_native_calls().state(model, copy, False)
                work = struct_type("sap_mujoco_work")()
                count(*state, ctypes.byref(work))
                ours_s = least_s(stage_of(model, copy))
                yield Sample(
                    mujoco_s, ours_s, mujoco_iterations, int(copy.solver_niter.max()), work
                )
        mujoco.mj_step(model, data)


def least_s(run: Callable[[], Any]) -> float:
    begin, times = time.perf_counter(), []
    while len(times) < REPEATS and time.perf_counter() - begin < REPEAT_S:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def rows(found: list[Sample]) -> Iterator[list[object]]:
    """The coefficients of MuJoCo's time and of ours."""

    def of(name: str) -> np.ndarray:
        return np.array([getattr(sample.work, name) for sample in found])

    in_rows, cones = of("rows"), of("cones")
    pyramids = in_rows - 3 * cones
    theirs = {"rows": in_rows, "entries^2": of("entries_squared"), "flops": of("flops")}
    theirs["cones x fill"] = cones * of("fill")
    ours = {"cones": cones, "rows": pyramids, "dofs^2": of("dofs_squared")}
    ours["tree cubes"] = of("tree_cubes")
    times = {
        "MuJoCo": np.array([sample.mujoco_s for sample in found]),
        "this": np.array([sample.ours_s for sample in found]),
    }
    iterations = {
        "MuJoCo": np.array([sample.mujoco_iterations for sample in found]),
        "this": np.array([sample.iterations for sample in found]),
    }
    fits = {
        side: fit(counts, times[side], iterations[side])
        for side, counts in (("MuJoCo", theirs), ("this", ours))
    }
    predicted = {
        side: sum(fits[side][name] * counts[name] for name in counts)
        for side, counts in (("MuJoCo", theirs), ("this", ours))
    }
    chosen = predicted["this"] < CLEARLY * predicted["MuJoCo"]
    wrong = chosen != (times["this"] < times["MuJoCo"])
    least = np.minimum(times["this"], times["MuJoCo"])
    lost = np.where(chosen, times["this"], times["MuJoCo"]) / least
    for side, coefficients in fits.items():
        shown = [f"{coefficients[name]:.1e}" if name in coefficients else ""
                 for name in COLUMNS.split(";")[1:8]]  # fmt: skip
        loss = f"{statistics.geometric_mean(lost.tolist()) - 1:.1%}"
        yield [side, *shown, f"{wrong.sum()} of {len(found)}", loss]


def fit(
    counts: dict[str, np.ndarray], times: np.ndarray, iterations: np.ndarray
) -> dict[str, float]:
    used = iterations > 0  # where none is needed, there is no factorization
    per_iteration = times[used] / (iterations[used] + 0.5)
    columns = np.stack([values[used] for values in counts.values()], axis=1)
    scale = np.where(columns.any(axis=0), columns.max(axis=0), 1.0)
    scaled = columns / scale / per_iteration[:, None]
    coefficients, _ = nnls(scaled, np.ones(len(per_iteration)))
    return dict(zip(counts, (coefficients / scale).tolist(), strict=True))


if __name__ == "__main__":
    table = Table("choice", TITLE, COLUMNS)
    names = [name for name in SCENES if name not in SKIPPED]
    for row in rows([each for name in names for each in samples(name)]):
        table.add(*row)
    print(table.markdown())
