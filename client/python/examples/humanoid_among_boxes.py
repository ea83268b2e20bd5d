"""A humanoid without control falls among boxes; the service solves every step."""

import argparse
from pathlib import Path

import mujoco
import numpy as np

import sap_islands as sap
import sap_islands.mujoco


def make_model(boxes: int) -> mujoco.MjModel:
    """The humanoid with `boxes` free boxes around and above it."""
    spec = mujoco.MjSpec.from_file(str(Path(__file__).with_name("humanoid.xml")))
    rng = np.random.default_rng(1)
    for i in range(boxes):
        angle = 2 * np.pi * i / boxes
        place = [0.4 * np.cos(angle), 0.4 * np.sin(angle), rng.uniform(0.1, 2.0)]
        body = spec.worldbody.add_body(pos=place, euler=rng.uniform(-40, 40, 3))
        body.add_freejoint()
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.08, 0.08, 0.08], density=300)
    return spec.compile()


def main() -> None:
    """Simulates the fall; prints the height of the head, islands and contacts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    parser.add_argument("--time", type=float, default=3.0)
    parser.add_argument("--boxes", type=int, default=12)
    arguments = parser.parse_args()

    model = make_model(arguments.boxes)
    data = mujoco.MjData(model)
    head = model.geom("head").id
    with sap.connect(arguments.server) as client, client.session() as session:
        while data.time < arguments.time:
            _, solution = sap.mujoco.step(model, data, session)
            if round(data.time / model.opt.timestep) % 100 == 0:
                print(
                    f"{data.time:.1f} s: head at {data.geom_xpos[head][2]:.2f} m, "
                    f"{len(solution.islands)} islands, {len(solution.impulse)} contacts"
                )
    speed = np.abs(data.qvel).max()
    print(f"head at {data.geom_xpos[head][2]:.2f} m, fastest joint or body {speed:.2f}")


if __name__ == "__main__":
    main()
