"""Records a batch of rollouts of MuJoCo itself, for `sap-islands certify`.

    python record_rollout.py scene.xml --output run.npz
    sap-islands certify run.npz --model scene.xml

`as_run` is all that another program needs: it makes the arrays of the states that `mujoco.rollout`
and `mujoco.batch` return. The step into each state begins at the one before.
"""

from __future__ import annotations

import argparse

import mujoco
import mujoco.rollout
import numpy as np

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


def as_run(model: mujoco.MjModel, states: np.ndarray, control: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of N rollouts.

    Args:
        model: The model.
        states: [N, nstep + 1, nstate] of mjSTATE_FULLPHYSICS, the initial ones included.
        control: [N, nstep, nu] controls of the steps.
    """
    worlds, steps = control.shape[:2]
    before = states[:, :-1].reshape(worlds * steps, -1)
    after = states[:, 1:].reshape(worlds * steps, -1)
    q, v, a = 1, 1 + model.nq, 1 + model.nq + model.nv  # time is first
    history = a + model.na  # of delayed controls
    return {
        "time": before[:, 0],
        "qpos": before[:, q:v],
        "qvel": before[:, v:a],
        "act": before[:, a : a + model.na],
        "history": before[:, history : history + model.nhistory],
        "next_qvel": after[:, v:a],
        "ctrl": control.reshape(worlds * steps, -1),
        "world": np.repeat(np.arange(worlds), steps),
    }


def main() -> None:
    """Makes rollouts with random velocities and controls and records them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="MJCF file")
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--output", default="run.npz")
    arguments = parser.parse_args()
    model = mujoco.MjModel.from_xml_path(arguments.model)
    data = mujoco.MjData(model)
    random = np.random.default_rng(0)
    initial = np.empty((arguments.worlds, mujoco.mj_stateSize(model, FULL)))
    for state in initial:
        mujoco.mj_resetData(model, data)
        data.qvel[:] = 0.1 * random.normal(size=model.nv)
        mujoco.mj_getState(model, data, state, FULL)
    control = 0.1 * random.normal(size=(arguments.worlds, arguments.steps, model.nu))
    states, _ = mujoco.rollout.rollout(model, data, initial, control, nstep=arguments.steps)
    states = np.concatenate((initial[:, None], states), axis=1)
    np.savez(arguments.output, allow_pickle=False, **as_run(model, states, control))


if __name__ == "__main__":
    main()
