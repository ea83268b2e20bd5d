"""Steps of unchanged programs of MuJoCo, alone and under `sap-islands run`, on one core.

    replaced_steps.py SCENE

prints the median time of a step [us] of some blocks of steps from the same state; `rows`
runs it both ways, in turn.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
from sap_islands.scenes import load_scene

TITLE = "Steps of MuJoCo's programs, alone and under `sap-islands run`: median time [us]"
COLUMNS = "scene;dofs;mj_step us;under run us;ratio;share of steps solved here"
EXAMPLES = Path(__file__).resolve().parents[2] / "client" / "python" / "examples"
SETTLE_S = 0.6
BLOCKS, STEPS, BLOCK_S = 12, 20, 0.02  # a block is so many steps, or so much time
ROUNDS = 3


def example(name: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(EXAMPLES / name))


def elliptic(model: mujoco.MjModel) -> mujoco.MjModel:
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    return model


def _model(world: str, more: str = "") -> mujoco.MjModel:
    plane = '<geom type="plane" size="9 9 1"/>'
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{plane}{world}</worldbody>{more}</mujoco>"
    )


def wall(bricks: int) -> mujoco.MjModel:
    """Bricks in rows of twelve."""
    places = ((i // 12, i % 12) for i in range(bricks))
    return _model(
        "".join(
            f'<body pos="{0.2 * column + 0.1 * (row % 2)} 0 {0.05 + 0.1 * row}"><freejoint/>'
            '<geom type="box" size=".098 .05 .05"/></body>'
            for row, column in places
        )
    )


def rope(hinges: int) -> mujoco.MjModel:
    """One tree that falls to the floor."""
    link = (
        '<body pos=".03 0 0"><joint axis="0 1 0" damping=".001"/><joint axis="0 0 1" '
        'damping=".001"/><geom type="capsule" size=".01 .01" euler="0 90 0"/>'
    )
    count = hinges // 2
    links = link * count + "</body>" * count
    return _model(f'<body pos="0 0 .2"><freejoint/><geom size=".02"/>{links}</body>')


def net(side: int) -> mujoco.MjModel:
    """Knots that equalities hold together; it falls on a ball."""
    knots, ties = "", ""
    slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    for i in range(side):
        for j in range(side):
            name = f'name="{i}_{j}" pos="{0.1 * i} {0.1 * j} .5"'
            knots += f'<body {name}>{slides}<geom size=".02"/></body>'
            if i:
                ties += f'<connect body1="{i - 1}_{j}" body2="{i}_{j}" anchor=".05 0 0"/>'
            if j:
                ties += f'<connect body1="{i}_{j - 1}" body2="{i}_{j}" anchor="0 .05 0"/>'
    ball = '<geom size=".3" pos=".4 .4 .1"/>'
    return _model(ball + knots, f"<equality>{ties}</equality>")


SCENES: dict[str, Callable[[], mujoco.MjModel]] = {
    "arm": lambda: example("arm.xml"),
    "humanoid": lambda: example("humanoid.xml"),
    "clutter 20": lambda: load_scene("clutter", 20),
    "clutter 40": lambda: load_scene("clutter", 40),
    "clutter 80": lambda: load_scene("clutter", 80),
    "clutter 100, cones": lambda: elliptic(load_scene("clutter", 100)),
    "stacks 90": lambda: load_scene("stacks", 90),
    "heaps 300": lambda: load_scene("heaps", 300),
    "wall 96": lambda: wall(96),
    "wall 96, cones": lambda: elliptic(wall(96)),
    "rope 210": lambda: rope(210),
    "net 196": lambda: net(14),
    "bin 80": lambda: load_scene("bin", 80),
    "bin 120": lambda: load_scene("bin", 120),
    "bin 160": lambda: load_scene("bin", 160),
    "bin 160, cones": lambda: elliptic(load_scene("bin", 160)),
    "bin 300": lambda: load_scene("bin", 300),
}


def rows(name: str, library: Path, threads: int) -> Iterator[list[object]]:
    """The row of a scene; a step is on one thread."""
    del threads
    environment = {**os.environ, "SAP_LIBRARY": str(library)}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        run = [sys.executable, "-m", "sap_islands", "run", "--report", str(report), "--"]
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for replaced, found in times.items():
                command = [*(run if replaced else []), sys.executable, __file__, name]
                output = subprocess.run(
                    command, env=environment, check=True, stdout=subprocess.PIPE
                ).stdout
                found.append(float(output))
        counts = json.loads(report.read_text())
    ratio = statistics.median(a / b for a, b in zip(times[True], times[False]))
    share = counts["solved"] / counts["steps"]
    own, ours = (min(times[replaced]) for replaced in (False, True))
    yield [SCENES[name]().nv, f"{own:.1f}", f"{ours:.1f}", f"{ratio:.2f}", f"{share:.2f}"]


def step_us(name: str) -> float:
    model = SCENES[name]()
    data = mujoco.MjData(model)
    while data.time < SETTLE_S:
        mujoco.mj_step(model, data)
    times = []
    for _ in range(BLOCKS):
        begin, steps = time.perf_counter(), 0
        while steps < STEPS or time.perf_counter() - begin < BLOCK_S:
            mujoco.mj_step(model, data)
            steps += 1
        times.append((time.perf_counter() - begin) / steps)
    return 1e6 * statistics.median(times)


if __name__ == "__main__":
    print(step_us(sys.argv[1]))
