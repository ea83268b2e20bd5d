"""Gymnasium environments whose contacts are solved by the service.

    import gymnasium
    import sap_islands.gymnasium                        # registers the environments

    env = gymnasium.make("sap_islands/Clutter-v0")
    envs = gymnasium.make_vec("sap_islands/Clutter-v0", num_envs=64)

`make_vec` makes a vector environment of this package, which steps its environments on `threads`
threads of this process.

Both take `address`, as for `sap_islands.connect`: environments are then stepped there, those of a
vector over all servers, which need `--mujoco-library`. They connect at the first step, so that
`vectorization_mode="async"` works, too: its processes connect by themselves.
"""

import importlib.util

if importlib.util.find_spec("gymnasium") is None:
    raise ModuleNotFoundError(
        "sap_islands.gymnasium needs Gymnasium: pip install 'gymnasium>=1.1'", name="gymnasium"
    )

import gymnasium

from sap_islands.gymnasium.clutter import Clutter
from sap_islands.gymnasium.environments import ClutterEnv, ClutterVectorEnv

__all__ = ["Clutter", "ClutterEnv", "ClutterVectorEnv"]

gymnasium.register(
    "sap_islands/Clutter-v0",
    entry_point="sap_islands.gymnasium:ClutterEnv",
    vector_entry_point="sap_islands.gymnasium:ClutterVectorEnv",
    max_episode_steps=500,
)
