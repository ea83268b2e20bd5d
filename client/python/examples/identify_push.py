"""Mass and friction of a box, found from a recording of how a known force pushes it."""

import argparse
import math

import numpy as np
import torch

import sap_islands as sap
import sap_islands.torch

torch.set_default_dtype(torch.float64)

TIME_STEP, STEPS = 0.01, 50  # s, -
LENGTHS = torch.tensor([0.2, 0.12, 0.08])  # sides of the box [m]
CORNERS = torch.tensor([[x, y, -1.0] for x in (-1, 1) for y in (-1, 1)]) * LENGTHS / 2
PUSHED_AT = torch.tensor([-0.1, 0.02, 0.0])  # from the center of the box, outside of it [m]
MASS, FRICTION = 1.7, 0.35  # what made the recording [kg], [-]
GUESS = 1.0, 0.6
NOISE = 2e-4  # standard deviation of the recorded positions [m]


def force_at(time: float) -> torch.Tensor:
    """The push along x [N]: it grows for 0.3 s, and then ends."""
    return torch.tensor([60.0 * time if time < 0.3 else 0.0, 0.0, 0.0])


def turned(rotation: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """A rotation matrix turned by a rotation vector."""
    x, y, z = angles
    zero = torch.zeros_like(x)
    product = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
    return torch.linalg.matrix_exp(product) @ rotation


def simulate(client: sap.Client, mass: torch.Tensor, friction: torch.Tensor) -> torch.Tensor:
    """[STEPS, 4, 3] positions of the lower corners of the box after every step [m]."""
    box = sap.RigidBodies(mass=1.0, inertia=np.ones(6), center_of_mass=np.zeros((1, 3)))
    floor = sap.BodyContacts(
        body_a=[0] * 4,
        body_b=[sap.WORLD] * 4,
        point=np.zeros((4, 3)),
        normal=[0, 0, 1],
        signed_distance=0.0,
        stiffness=1e5,
        relaxation_time=0.01,
        friction=0.5,
    )
    problem = sap.Problem(TIME_STEP, bodies=box, body_contacts=floor)
    inertia = mass / 12 * torch.diag((LENGTHS**2).sum() - LENGTHS**2)
    position, rotation, velocity = LENGTHS * torch.tensor([0, 0, 0.5]), torch.eye(3), torch.zeros(6)
    recording = []
    for step in range(STEPS):
        force, arm = force_at(step * TIME_STEP), rotation @ PUSHED_AT
        inertia_now = rotation @ inertia @ rotation.T
        acceleration = force / mass - torch.tensor([0.0, 0.0, 9.81])
        spin_up = torch.linalg.solve(inertia_now, torch.linalg.cross(arm, force))
        corners = position + CORNERS @ rotation.T
        inputs = {
            "bodies.mass": mass,
            "bodies.inertia": inertia_now.flatten()[[0, 4, 8, 1, 2, 5]],
            "bodies.center_of_mass": position,
            "bodies.free_motion_velocity": velocity
            + TIME_STEP * torch.cat([acceleration, spin_up]),
            "body_contacts.point": corners,
            "body_contacts.signed_distance": corners[:, 2],
            # Corners above the floor are braked by their distance alone.
            "body_contacts.relaxation_time": torch.where(corners[:, 2] > 0, 0.0, 0.01),
            "body_contacts.friction": friction,
        }
        velocity = sap_islands.torch.solve(client, problem, inputs).velocity
        position = position + TIME_STEP * velocity[:3]
        rotation = turned(rotation, TIME_STEP * velocity[3:])
        recording.append(position + CORNERS @ rotation.T)
    return torch.stack(recording)


def identify(client: sap.Client, recording: torch.Tensor) -> torch.Tensor:
    """[evaluations, 3] mass [kg], friction [-] and error [m] in the order in which they were tried.

    The parameters of the search are the logarithms of both, so that both stay positive.
    """
    logarithms = torch.tensor(GUESS).log().requires_grad_()
    search = torch.optim.LBFGS([logarithms], max_iter=30, line_search_fn="strong_wolfe")
    tried = []

    def error_with_gradient() -> torch.Tensor:
        search.zero_grad()
        mass, friction = logarithms.exp()
        # In units of the noise, the error that remains is near 1.
        error = ((simulate(client, mass, friction) - recording) / NOISE).square().mean()
        error.backward()
        tried.append([mass.item(), friction.item(), NOISE * math.sqrt(error.item())])
        return error

    search.step(error_with_gradient)
    return torch.tensor(tried)


def best_of(tried: torch.Tensor) -> torch.Tensor:
    """The mass, friction and error with the least error."""
    return tried[tried[:, 2].argmin()]


def draw(path: str, client: sap.Client, recording: torch.Tensor, tried: torch.Tensor) -> None:
    """Writes the recorded and simulated motion and the course of the search to a picture."""
    import matplotlib.pyplot as plt

    figure, (motion, course) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    time = TIME_STEP * np.arange(1, STEPS + 1)
    with torch.no_grad():
        for name, style, values in (
            ("guess", "--", GUESS),
            ("identified", "-", best_of(tried)[:2]),
        ):
            mass, friction = torch.as_tensor(values)
            distance = simulate(client, mass, friction)[:, 0, 0] - CORNERS[0, 0]
            motion.plot(time, 100 * distance, style, label=name)
    motion.plot(time, 100 * (recording[:, 0, 0] - CORNERS[0, 0]), "k.", ms=3, label="recorded")
    motion.set(xlabel="time [s]", ylabel="way of a corner [cm]")
    motion.legend()
    course.plot(tried[:, 0], ".-", label="mass [kg]")
    course.plot(tried[:, 1], ".-", label="friction [-]")
    for true in (MASS, FRICTION):
        course.axhline(true, color="k", lw=0.8, ls=":")
    course.set(xlabel="simulation")
    course.legend()
    figure.savefig(path)


def main() -> None:
    """Records a push, identifies mass and friction from it, and prints how well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    parser.add_argument("--plot", help="picture to write: PNG or SVG")
    arguments = parser.parse_args()

    with sap.connect(arguments.server) as client:
        recording = simulate(client, torch.tensor(MASS), torch.tensor(FRICTION))
        recording += NOISE * torch.randn(recording.shape, generator=torch.manual_seed(0))
        tried = identify(client, recording)
        if arguments.plot:
            draw(arguments.plot, client, recording, tried)
    for name, true, first, found in zip(
        ("mass [kg]", "friction [-]"), (MASS, FRICTION), GUESS, best_of(tried), strict=False
    ):
        off = 100 * abs(found / true - 1)
        print(f"{name}: guess {first:.3f}, found {found:.4f}, true {true:.4f}, off by {off:.2f} %")
    print(f"{len(tried)} simulations of {STEPS} steps, with gradients; ", end="")
    print(f"error {1e3 * tried[0, 2]:.2f} mm at first, {1e3 * best_of(tried)[2]:.2f} mm at last")


if __name__ == "__main__":
    main()
