"""A program of dm_control or robosuite, which knows nothing of this package's solver.

    robot_program.py PACKAGE OUTPUT.npz

writes the states of some steps. test_robot_programs runs it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

STEPS = 40


def dm_control() -> Any:
    """States of a humanoid that falls."""
    from dm_control import suite

    env = suite.load("humanoid", "stand", task_kwargs={"random": 1})
    env.reset()
    spec, rng = env.action_spec(), np.random.default_rng(1)
    states = []
    for _ in range(STEPS):
        env.step(rng.uniform(spec.minimum, spec.maximum))
        states.append(env.physics.get_state())
    return np.array(states)


def robosuite() -> Any:
    """States of an arm above a cube on a table."""
    from robosuite import make

    options = ("has_renderer", "has_offscreen_renderer", "use_camera_obs")
    env = make("Lift", robots="Panda", seed=1, **dict.fromkeys(options, False))
    env.reset()
    low, high = env.action_spec
    rng = np.random.default_rng(1)
    states = []
    for _ in range(STEPS):
        env.step(rng.uniform(low, high))
        states.append(env.sim.get_state().flatten())
    return np.array(states)


if __name__ == "__main__":
    np.savez(sys.argv[2], states=globals()[sys.argv[1]]())
