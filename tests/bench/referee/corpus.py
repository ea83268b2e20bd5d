"""Scenes, and 200 states of each on its exact trajectory, with certified next velocities.

    corpus.py DIR      makes DIR/SCENE.xml, DIR/SCENE.npz, and DIR/states.json, which lists them

An engine makes one step from every state, with `states` and `save_run`. Exact trajectories are
steps of `sap_islands.mujoco` under MuJoCo's law, solved to 1e-10.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco
from sap_islands.scenes import SCENES

STATES = 200
EXAMPLES = Path(__file__).resolve().parents[3] / "client" / "python" / "examples"
INPUTS = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart")

HEAP = 16  # bodies
FREE = ("heap 16", "stacks 20")  # scenes of free boxes and spheres, which every engine has
IMPLICIT = '<option integrator="implicitfast" '


class Scene(NamedTuple):
    """A scene as MJCF, the steps before its states, the steps between them, and its controls."""

    text: str
    before: int
    between: int = 1
    control: float = 0.0  # of the range of each control, as random numbers


def heap() -> str:
    """Boxes and spheres that every engine has, on a floor; friction 1."""
    random = np.random.default_rng(1)
    bodies = []
    for i in range(HEAP):
        x, y = 0.14 * (i % 4 % 2) + random.uniform(-0.03, 0.03), 0.14 * (i % 4 // 2)
        place = f"{x} {y} {0.08 + 0.13 * (i // 4)}"
        turned = " ".join(map(str, random.uniform(-30, 30, 3)))
        shape = 'type="box" size=".05 .05 .05"' if i % 2 else 'size=".05"'
        bodies.append(f'<body pos="{place}" euler="{turned}"><freejoint/><geom {shape}/></body>')
    return f"""<mujoco><option timestep="{1 / 240}"/>
      <default><geom friction="1" density="1000"/></default>
      <worldbody><geom type="plane" size="20 20 .1"/>{"".join(bodies)}</worldbody></mujoco>"""


def scenes() -> dict[str, Scene]:
    """All scenes by name."""
    return {
        "clutter 20": Scene(SCENES["clutter"](20), 20),
        "clutter 40": Scene(SCENES["clutter"](40), 20),
        "stacks 20": Scene(SCENES["stacks"](20), 5),
        "humanoid": Scene((EXAMPLES / "humanoid.xml").read_text(), 20, 2),
        # Under Euler its servos are unstable.
        "arm": Scene(
            (EXAMPLES / "arm.xml").read_text().replace("<option ", IMPLICIT, 1), 5, 1, 0.1
        ),
        "heap 16": Scene(heap(), 40),
    }


def make(name: str, scene: Scene, directory: Path, client: sap.Client) -> None:
    """Writes the model and its states."""
    path = directory / f"{name}.xml"
    path.write_text(scene.text)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, random = mujoco.MjData(model), np.random.default_rng(7)
    span = np.where(model.actuator_ctrllimited, np.ptp(model.actuator_ctrlrange, axis=1), 1.0)
    rows: dict[str, list[np.ndarray]] = {name: [] for name in (*INPUTS, "time", "v_star", "gap")}
    for step in range(scene.before + STATES * scene.between):
        data.ctrl[:] = scene.control * span * random.uniform(-1, 1, model.nu)
        kept = step >= scene.before and (step - scene.before) % scene.between == 0
        if kept:
            for array in (*INPUTS, "time"):
                rows[array].append(np.copy(getattr(data, array)))
        _, solution = sap.mujoco.step(model, data, client, law="mujoco", on_unsolved="raise")
        if kept:
            rows["v_star"].append(data.qvel.copy())
            rows["gap"].append(np.sum(solution.islands.optimality_gap_bound))
    np.savez_compressed(directory / f"{name}.npz", **{k: np.array(v) for k, v in rows.items()})


def states(
    directory: Path, only: tuple[str, ...] = ()
) -> Iterator[tuple[str, mujoco.MjModel, dict[str, np.ndarray]]]:
    """Name, model and arrays of every scene, or of some."""
    for name in only or json.loads((directory / "states.json").read_text()):
        model = mujoco.MjModel.from_xml_path(str(directory / f"{name}.xml"))
        with np.load(directory / f"{name}.npz") as arrays:
            yield name, model, dict(arrays)


def save_run(
    directory: Path,
    engine: str,
    scene: str,
    arrays: dict[str, np.ndarray],
    next_qvel: np.ndarray,
    contacts: dict[str, np.ndarray] | None = None,
) -> None:
    """Writes the steps of an engine as the referee reads them."""
    (directory / engine).mkdir(parents=True, exist_ok=True)
    run = {name: arrays[name] for name in ("qpos", "qvel", "act", "ctrl", "time")}
    contacts = contacts or {}
    np.savez_compressed(directory / engine / f"{scene}.npz", next_qvel=next_qvel, **run, **contacts)


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    with sap.connect("embedded:") as client:
        for name, scene in scenes().items():
            make(name, scene, directory, client)
    (directory / "states.json").write_text(json.dumps(list(scenes())))


if __name__ == "__main__":
    main()
