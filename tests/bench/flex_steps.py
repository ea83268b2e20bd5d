"""Steps of models with flexes by MuJoCo's Newton and conjugate gradients, and with this solver.

Each of them has the loosest tolerance with which the velocities after a step are exact to 1e-6, and
all take their steps from the same states, in turn. Times are those of the processor. Without
arguments, which name scenes, it prints all; it needs the Python package and SAP_LIBRARY.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np

TITLE = "Steps of MuJoCo's flexes: median time of the thread [ms] at an error of 1e-6"
COLUMNS = (
    "scene;dofs;rows;Newton ms;iterations;CG ms;iterations;ours ms;iterations;ratio to Newton;"
    "ratio to CG;errors"
)
SETTLE, STATES, APART, ROUNDS = 400, 6, 20, 3
EXACT = 1e-6
TOLERANCES = tuple(10.0**-k for k in range(6, 15))

PLANE = '<geom type="plane" size="5 5 .1"/>'
BALL = '<geom size=".3" pos="0 0 .3"/>'
EDGES = '<edge equality="true"/>'
SOLID = '<elasticity young="1e4" poisson=".2" damping="1e-3"/>'
SHELL = '<elasticity young="1e4" poisson=".1" thickness="1e-2" damping="1e-3" elastic2d="both"/>'
ARM = """<body name="arm" pos="-.6 0 .9"><joint axis="0 1 0" damping="5" stiffness="50"/>
<geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" contype="0" conaffinity="0"/>{}</body>"""


def _flex(
    dim: int, count: str, height: float, inside: str, pos: str = "0 0", name: str = "f"
) -> str:
    return f"""<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" pos="{pos} {height}"
    spacing=".05 .05 .05" radius=".01" mass="1">{inside}<contact selfcollide="none"/></flexcomp>"""


def _model(bodies: str, options: str = 'timestep="1e-3"') -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option {options} iterations="1000"/><size memory="500M"/>
        <worldbody>{PLANE}{bodies}</worldbody></mujoco>"""
    )


def _with_cones(model: mujoco.MjModel) -> mujoco.MjModel:
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    return model


DISCRETE = 'timestep="2e-3" integrator="discrete"'
SCENES: dict[str, Callable[[], mujoco.MjModel]] = {
    "cable of 60 on a ball": lambda: _model(BALL + _flex(1, "60 1 1", 0.62, EDGES)),
    "cloth of 400 on a ball": lambda: _model(BALL + _flex(2, "20 20 1", 0.62, EDGES)),
    "cloth of 400 on a ball, cones": lambda: _with_cones(
        _model(BALL + _flex(2, "20 20 1", 0.62, EDGES))
    ),
    "cloth of 144 on an arm": lambda: _model(
        BALL + ARM.format(_flex(2, "12 12 1", 0.0, EDGES + '<pin id="0 1 2"/>', ".6 0"))
    ),
    "cloth of 900 on an arm": lambda: _model(
        BALL + ARM.format(_flex(2, "30 30 1", 0.0, EDGES + '<pin id="0 1 2"/>', ".6 0"))
    ),
    "block of 216": lambda: _model(_flex(3, "6 6 6", 0.14, SOLID)),
    "block on a block, cones": lambda: _with_cones(
        _model(_flex(3, "6 6 3", 0.06, SOLID) + _flex(3, "5 5 3", 0.19, SOLID, ".01 .02", name="g"))
    ),
    "block of 216, discrete": lambda: _model(_flex(3, "6 6 6", 0.14, SOLID), DISCRETE),
    "cloth of 400 on a ball, discrete": lambda: _model(
        BALL + _flex(2, "20 20 1", 0.62, SHELL), DISCRETE
    ),
    "block on a block, discrete": lambda: _model(
        _flex(3, "6 6 3", 0.06, SOLID) + _flex(3, "5 5 3", 0.19, SOLID, ".01 .02", name="g"),
        DISCRETE,
    ),
}


class _Stepper:
    """A solver that steps copies of states."""

    def __init__(self, model: mujoco.MjModel, solver: str) -> None:
        self._model, self._solver = model, solver
        self._data = mujoco.MjData(model)
        self.tolerance = 0.0
        self.iterations = 0.0

    def step(self, state: mujoco.MjData) -> tuple[float, np.ndarray]:
        """The time [s] of a step, and its velocity."""
        import sap_islands as sap
        import sap_islands.mujoco

        model, data = self._model, self._data
        mujoco.mj_copyData(data, model, state)
        options = sap.Options(relative_tolerance=self.tolerance)
        if self._solver != "ours":
            model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{self._solver}")
            model.opt.tolerance = self.tolerance
        begin = time.thread_time()
        if self._solver == "ours":
            found = sap.mujoco.advance(model, data, law="mujoco", options=options)
            self.iterations = found.iterations
        else:
            mujoco.mj_step(model, data)
            self.iterations = int(data.solver_niter.max())
        return time.thread_time() - begin, data.qvel.copy()


def _states(model: mujoco.MjModel) -> list[mujoco.MjData]:
    """States of a run after the first contacts."""
    data, states = mujoco.MjData(model), []
    for step in range(SETTLE + STATES * APART):
        mujoco.mj_step(model, data)
        if step >= SETTLE and step % APART == 0:
            states.append(mujoco.MjData(model))
            mujoco.mj_copyData(states[-1], model, data)
    return states


def _error(
    model: mujoco.MjModel, state: mujoco.MjData, found: np.ndarray, exact: np.ndarray
) -> float:
    """The difference relative to the velocity, in the norm of M."""

    def norm(velocity: np.ndarray) -> float:
        product = np.zeros(model.nv)
        mujoco.mj_mulM(model, state, product, velocity)
        return float(np.sqrt(max(velocity @ product, 0.0)))

    gained = model.opt.timestep * state.qacc_smooth
    return norm(found - exact) / max(norm(exact), norm(gained))


def _loosen(stepper: _Stepper, model: mujoco.MjModel, states: list, exact: list) -> float:
    """Sets the loosest tolerance that is exact enough; returns the largest error."""
    error = np.inf
    for stepper.tolerance in TOLERANCES:
        found = [stepper.step(state)[1] for state in states]
        error = max(map(_error, [model] * len(states), states, found, exact))
        if error <= EXACT:
            break
    return error


def rows(name: str, library: Path, threads: int) -> Iterator[list[object]]:
    """The row of a scene; a step is on one thread."""
    del library, threads
    model = SCENES[name]()
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    states = _states(model)
    # The metric of `discrete` is solved to the tolerance of the model, by all of them.
    reference = _Stepper(model, "NEWTON")
    reference.tolerance = TOLERANCES[-1]
    exact = [reference.step(state)[1] for state in states]
    steppers = [_Stepper(model, solver) for solver in ("NEWTON", "CG", "ours")]
    errors, times, iterations = [], [[], [], []], [[], [], []]
    for stepper in steppers:
        model.opt.tolerance = TOLERANCES[4]
        errors.append(_loosen(stepper, model, states, exact))
    for _ in range(ROUNDS):
        for state in states:
            for i, stepper in enumerate(steppers):
                if i == 2:
                    model.opt.tolerance = steppers[0].tolerance
                times[i].append(stepper.step(state)[0])
                iterations[i].append(stepper.iterations)
    columns: list[object] = [model.nv, round(statistics.mean(s.nefc for s in states))]
    for spent, count in zip(times, iterations):
        columns += [f"{1e3 * statistics.median(spent):.2f}", f"{statistics.mean(count):.1f}"]
    for i in (0, 1):
        columns.append(f"{statistics.median(a / b for a, b in zip(times[2], times[i])):.2f}")
    yield [*columns, ", ".join(f"{error:.0e}" for error in errors)]


if __name__ == "__main__":
    print(COLUMNS)
    for each in sys.argv[1:] or SCENES:
        for row in rows(each, Path(), 1):
            print(each, *row, sep=";", flush=True)
