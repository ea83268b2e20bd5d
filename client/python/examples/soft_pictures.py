"""Draws the scenes with deformable bodies, one picture each.

    python soft_pictures.py FOLDER [SCENE...]

Without scenes it draws all: those of the page on soft bodies.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import sap_islands as sap
from sap_islands.soft_scenes import SOFT_SCENES, load_soft_scene
from sap_islands.tools.picture import draw
from sap_islands.tools.soft_simulation import SoftSimulation

MOMENTS_S = {"grip": 1.6, "cloth": 0.8, "cable": 0.5, "soft-bin": 1.3}


def main() -> None:
    """Simulates each scene up to its moment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(SOFT_SCENES))
    arguments = parser.parse_args()
    with sap.connect("embedded:") as client:
        for name in arguments.scenes or SOFT_SCENES:
            simulation = SoftSimulation(load_soft_scene(name), client)
            trajectory = simulation.new_trajectory()
            steps = round(MOMENTS_S[name] / simulation.model.opt.timestep)
            trajectory.frames += [simulation.step() for _ in range(steps)]
            path = arguments.folder / f"soft_{name.removeprefix('soft-')}.webp"
            draw(trajectory, len(trajectory.frames) - 1, path)
            iterations = [frame.iterations.max(initial=0) for frame in trajectory.frames]
            unsolved = sum(frame.unsolved for frame in trajectory.frames)
            contacts = len(trajectory.frames[-1].contact_point)
            mean, most = sum(iterations) / len(iterations), max(iterations)
            print(
                f"{path}: {len(iterations)} steps, {contacts} contacts in the last, "
                f"{mean:.1f} iterations on average, at most {most}, {unsolved} islands not solved"
            )


if __name__ == "__main__":
    main()
