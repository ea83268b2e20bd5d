"""Records worlds of mujoco-warp with their own contacts, for `sap-islands certify`.

    pip install mujoco-warp
    python record_mujoco_warp.py scene.xml --worlds 8 --output run.npz
    sap-islands certify run.npz --model scene.xml

Runs on the CPU as well. `Recorder` is all that a training program needs: call `before` and `after`
around a step of a few worlds or steps of the training, and `save` at the end. A GPU finds other
contact points than MuJoCo does; with them recorded, the referee judges the solver, and tells which
pairs of geoms have lost their contacts to a full buffer.
"""

from __future__ import annotations

import argparse
from typing import Any

import mujoco
import numpy as np

STATE = ("time", "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied")
CONTACT = (
    "dist",
    "pos",
    "frame",
    "geom",
    "dim",
    "includemargin",
    "friction",
    "solref",
    "solreffriction",
    "solimp",
    "efc_address",
)
OPTIONAL_CONTACT = ("surfacevel", "adhesion")  # of versions that have them


class Recorder:
    """Collects steps of all worlds."""

    def __init__(self, worlds: int) -> None:
        self.worlds, self.states = worlds, 0
        self.rows: dict[str, list[np.ndarray]] = {}

    def _add(self, name: str, values: np.ndarray) -> None:
        self.rows.setdefault(name, []).append(values)

    def before(self, data: Any) -> None:
        """Takes states and inputs."""
        for name in STATE:
            self._add(name, getattr(data, name).numpy().copy())
        self._add("world", np.arange(self.worlds))

    def after(self, data: Any) -> None:
        """Takes what the step has made of them, and its contacts, of all worlds in one array."""
        self._add("next_qvel", data.qvel.numpy().copy())
        count = min(int(data.nacon.numpy()[0]), data.naconmax)
        world = data.contact.worldid.numpy()[:count]
        order = np.argsort(world, kind="stable")
        self._add("contact_state", self.states + world[order])
        optional = (name for name in OPTIONAL_CONTACT if hasattr(data.contact, name))
        for name in (*CONTACT, *optional):
            self._add(f"contact_{name}", getattr(data.contact, name).numpy()[:count][order])
        self.states += self.worlds

    def save(self, path: str) -> None:
        """Writes the run."""
        arrays = {name: np.concatenate(rows) for name, rows in self.rows.items()}
        np.savez(path, allow_pickle=False, **arrays)


def main() -> None:
    """Steps some worlds and records them."""
    import mujoco_warp as mjw

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="MJCF file")
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--skip", type=int, default=0, help="steps before the recording")
    parser.add_argument("--nconmax", type=int, help="contacts of a world (that of mujoco-warp)")
    parser.add_argument("--njmax", type=int, help="constraint rows of a world")
    parser.add_argument("--iterations", type=int, help="of the solver (that of the model)")
    parser.add_argument("--output", default="run.npz")
    arguments = parser.parse_args()
    model = mujoco.MjModel.from_xml_path(arguments.model)
    if arguments.iterations is not None:
        model.opt.iterations = arguments.iterations
    start = mujoco.MjData(model)
    mujoco.mj_forward(model, start)
    on_device = mjw.put_model(model)
    buffers = {"nconmax": arguments.nconmax, "njmax": arguments.njmax}
    data = mjw.put_data(model, start, nworld=arguments.worlds, **buffers)
    recorder = Recorder(arguments.worlds)
    for step in range(arguments.skip + arguments.steps):
        if step >= arguments.skip:
            recorder.before(data)
        mjw.step(on_device, data)
        if step >= arguments.skip:
            recorder.after(data)
    recorder.save(arguments.output)


if __name__ == "__main__":
    main()
