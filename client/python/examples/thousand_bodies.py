"""A thousand boxes and spheres fall into a bin."""

import argparse
import time

import mujoco
import numpy as np
from tqdm import tqdm

import sap_islands as sap
import sap_islands.mujoco
from sap_islands.scenes import load_scene


def main() -> None:
    """Simulates the fall; prints the time per step and the heights of the bodies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    parser.add_argument("--time", type=float, default=3.0)
    parser.add_argument("--bodies", type=int, default=1000)
    arguments = parser.parse_args()

    model = load_scene("bin", arguments.bodies)
    data = mujoco.MjData(model)
    took, contacts = [], []
    with sap.connect(arguments.server) as client, client.session() as session:
        for _ in tqdm(range(round(arguments.time / model.opt.timestep)), disable=None):
            started = time.perf_counter()
            _, solution = sap.mujoco.step(model, data, session)
            took.append(time.perf_counter() - started)
            contacts.append(len(solution.impulse))
            if not solution.solved:
                raise SystemExit(f"{data.time:.2f} s: an island was not solved")
    height = data.qpos[2::7]
    print(
        f"{arguments.bodies} bodies, {contacts[-1]} contacts: {1e3 * np.median(took):.0f} ms a step"
    )
    print(f"lowest body at {height.min():.3f} m, highest at {height.max():.2f} m")


if __name__ == "__main__":
    main()
