"""Agreement of linearized steps with `mujoco.mjd_transitionFD`, and the times that both take.

`python -m support.linearization_agreement` in tests/client/python prints it as the table of
MUJOCO.md.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray
from sap_islands.scenes import load_scene

from conftest import ROOT
from support.mujoco_agreement import load_kind, solve_tightly

EXAMPLES = ROOT / "client" / "python" / "examples"
BOX = """
<worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody>"""

Pair = tuple[Any, Any]  # model and data


def load(text: str) -> Pair:
    """A model from MJCF, and MuJoCo's solver at its tightest."""
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    solve_tightly(model)
    return model, mujoco.MjData(model)


def load_example(name: str) -> Pair:
    """Likewise a model of the examples."""
    model = mujoco.MjModel.from_xml_path(str(EXAMPLES / name))
    solve_tightly(model)
    data = mujoco.MjData(model)
    if name == "arm.xml":  # away from the limits of its joints, at which derivatives have kinks
        data.qpos[:6] = data.ctrl[:] = 0.1, -0.4, 0.8, 0.5, 0.02, 0.02
    return model, data


def _after(pair: Pair, steps: int) -> Pair:
    for _ in range(steps):
        mujoco.mj_step(*pair)
    mujoco.mj_forward(*pair)
    return pair


def _sliding_box() -> Pair:
    model, data = load(BOX)
    data.qvel[:3] = 0.3, 0.1, 0.0
    return _after((model, data), 10)


def _clutter() -> Pair:
    model = load_scene("clutter", 10)
    solve_tightly(model)
    return _after((model, mujoco.MjData(model)), 300)


SCENES: dict[str, Callable[[], Pair]] = {
    "box that slides": _sliding_box,
    "arm and cube of the examples": lambda: _after(load_example("arm.xml"), 10),
    "humanoid of the examples, landing": lambda: _after(load_example("humanoid.xml"), 115),
    "equalities, limits, friction loss, tendon": lambda: _after(
        load_kind("everything", "ELLIPTIC", "IMPLICITFAST"), 40
    ),
    "clutter of 10": _clutter,
}


def differences_of_steps(
    model: mujoco.MjModel, data: mujoco.MjData, client: sap.Client, eps: float
) -> tuple[FloatArray, FloatArray]:
    """A and B of steps under law="sap" by central differences, each solved to round-off."""
    options = sap.Options(relative_tolerance=1e-15)

    def next_state(i: int, displacement: float) -> mujoco.MjData:
        other = mujoco.MjData(model)
        mujoco.mj_copyData(other, model, data)
        unit = np.zeros(model.nv)
        if i < model.nv:
            unit[i] = 1.0
            mujoco.mj_integratePos(model, other.qpos, unit, displacement)
        elif i < 2 * model.nv:
            other.qvel[i - model.nv] += displacement
        else:
            other.ctrl[i - 2 * model.nv] += displacement
        adapter.step(model, other, client, options=options)
        return other

    columns = []
    for i in range(2 * model.nv + model.nu):
        one, other = next_state(i, eps), next_state(i, -eps)
        moved = np.zeros(model.nv)
        mujoco.mj_differentiatePos(model, moved, 2 * eps, other.qpos, one.qpos)
        columns.append(np.append(moved, (one.qvel - other.qvel) / (2 * eps)))
    both = np.array(columns).T
    return both[:, : 2 * model.nv], both[:, 2 * model.nv :]


def differences_of_mujoco(
    model: mujoco.MjModel, data: mujoco.MjData
) -> tuple[FloatArray, FloatArray]:
    """A and B of MuJoCo's own step by central differences."""
    states = 2 * model.nv + model.na
    A, B = np.zeros((states, states)), np.zeros((states, model.nu))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, B if model.nu else None, None, None)
    return A, B


def _median_time(call: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def largest_deviation(found: FloatArray, wanted: FloatArray) -> float:
    """The largest difference, relative to the largest number; 0 for empty matrices."""
    assert found.shape == wanted.shape
    return float(abs(found - wanted).max(initial=0.0) / abs(wanted).max(initial=1e-30))


def main() -> None:
    """Prints a table for Markdown."""
    print("| scene | states | rows | deviation | linearize [ms] | mjd_transitionFD [ms] |")
    print("|---|---:|---:|---:|---:|---:|")
    with sap.connect("embedded:") as client:
        for name, make in SCENES.items():
            model, data = make()
            linearize = partial(adapter.linearize, model, data, client, law="mujoco")
            A, _ = differences_of_mujoco(model, data)
            error = largest_deviation(linearize(on_unsolved="raise").A, A)
            model.opt.tolerance, model.opt.ls_tolerance = 1e-8, 0.01  # MuJoCo's defaults
            times = [_median_time(linearize)]
            times.append(_median_time(partial(differences_of_mujoco, model, data)))
            figures = f"{len(A)} | {data.nefc} | {error:.0e}"
            figures += "".join(f" | {1e3 * t:.1f}" for t in times)
            print(f"| {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
