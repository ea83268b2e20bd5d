"""A four-bar linkage of free bodies: constraint rows pin them together, a motor turns the crank.

The links move in the plane of x and z. A pin holds the ends of two links together (three rows) and
keeps their axes parallel (two rows). The motor is one more row: a velocity servo whose torque is
limited, -GAIN (w - SPEED) within +-EFFORT.
"""

import argparse

import numpy as np

import sap_islands as sap

TIME_STEP, STEPS, GRAVITY = 0.005, 200, 9.81  # s, -, m/s²
LENGTH = np.array([0.1, 0.35, 0.25])  # crank, coupler, rocker [m]
MASS = 4.0 * LENGTH  # kg
RADIUS = 0.01  # of the rods [m]
BASE = np.array([[0.0, 0.0, 0.0], [0.4, 0.0, 0.0]])  # pins on the ground: crank, rocker [m]
SPEED, GAIN, EFFORT = 2 * np.pi, 10.0, 2.0  # of the motor [rad/s, N m s/rad, N m]
# First link and end of each pin, then the second; end -1 or 1; link -1: the ground.
PINS = ((0, -1, -1, 0), (0, 1, 1, -1), (1, 1, 2, -1), (2, 1, -1, 1))


def direction(angle: float) -> np.ndarray:
    """Unit vector along a link that is turned about y by `angle`."""
    return np.array([np.cos(angle), 0.0, -np.sin(angle)])


def end_block(arm: np.ndarray) -> np.ndarray:
    """Velocity of the end at `arm` from the center, and w_x, w_z, of a body's six velocities."""
    x, y, z = arm
    block = np.zeros((5, 6))
    block[:3, :3] = np.eye(3)
    block[:3, 3:] = [[0, z, -y], [-z, 0, x], [y, -x, 0]]
    block[3, 3] = block[4, 5] = 1
    return block


def pins_and_motor(center: np.ndarray, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """J [21, 18] and the position errors [21] of the four pins, then of the motor."""
    J, error = np.zeros((21, 18)), np.zeros(21)
    for pin, (a, end_a, b, end_b) in enumerate(PINS):
        rows = slice(5 * pin, 5 * pin + 5)
        for link, end, sign in ((a, end_a, 1), (b, end_b, -1)):
            if link < 0:
                place = BASE[end]
            else:
                arm = end * LENGTH[link] / 2 * direction(angle[link])
                place = center[link] + arm
                J[rows, 6 * link : 6 * link + 6] = sign * end_block(arm)
            error[5 * pin : 5 * pin + 3] += sign * place
    J[20, 4] = 1
    return J, error


def problem_of(center: np.ndarray, angle: np.ndarray, velocity: np.ndarray) -> sap.Problem:
    """The problem of one step from the given state."""
    along = np.array([np.outer(direction(a), direction(a)) for a in angle])
    slender, axial = MASS * LENGTH**2 / 12, MASS * RADIUS**2 / 2
    inertia = slender[:, None, None] * (np.eye(3) - along) + axial[:, None, None] * along
    bodies = sap.RigidBodies(
        mass=MASS,
        inertia=inertia[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]],
        center_of_mass=center,
        free_motion_velocity=velocity + TIME_STEP * np.array([0, 0, -GRAVITY, 0, 0, 0]),
        body_id=[1, 2, 3],
    )
    J, error = pins_and_motor(center, angle)
    motor = np.arange(21) == 20
    rows = sap.ConstraintRows.from_dense(
        J,
        position_error=error,
        velocity_offset=np.where(motor, -SPEED, 0.0),  # v_c = w - SPEED
        regularization=np.where(motor, 1 / (TIME_STEP * GAIN), 0.0),  # 0: by rule, near-rigid
        force_lower=np.where(motor, -EFFORT, -np.inf),
        force_upper=np.where(motor, EFFORT, np.inf),
    )
    return sap.Problem(time_step=TIME_STEP, bodies=bodies, rows=rows)


def initial_state() -> tuple[np.ndarray, np.ndarray]:
    """Centers [3, 3] and angles [3] with the crank upright and all pins closed."""
    crank_end = BASE[0] + [0, 0, LENGTH[0]]
    across = BASE[1] - crank_end
    distance = np.linalg.norm(across)
    # The end of the coupler is where the circles about both of its neighbors meet.
    along = (distance**2 + LENGTH[1] ** 2 - LENGTH[2] ** 2) / (2 * distance)
    beside = np.sqrt(LENGTH[1] ** 2 - along**2)
    x, _, z = across / distance
    coupler_end = crank_end + along * np.array([x, 0, z]) + beside * np.array([-z, 0, x])
    starts = np.array([BASE[0], crank_end, coupler_end])
    ends = np.array([crank_end, coupler_end, BASE[1]])
    links = ends - starts
    return (starts + ends) / 2, np.arctan2(-links[:, 2], links[:, 0])


def main() -> None:
    """Simulates the linkage from rest and prints how well the loop stays closed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="embedded:", help="address of a server")
    server = parser.parse_args().server
    center, angle = initial_state()
    start = angle[0]
    velocity = np.zeros((3, 6))
    largest_error, saturated = 0.0, 0
    with sap.connect(server) as client, client.session() as session:
        for _ in range(STEPS):
            solution = session.step(problem_of(center, angle, velocity))
            velocity = solution.velocity.reshape(3, 6)
            center = center + TIME_STEP * velocity[:, :3]
            angle = angle + TIME_STEP * velocity[:, 4]
            torque = solution.row_impulse[20] / TIME_STEP
            saturated += abs(torque) >= EFFORT
            largest_error = max(largest_error, abs(pins_and_motor(center, angle)[1]).max())
    print(f"crank, coupler and rocker at {angle[0]:.5f}, {angle[1]:.5f}, {angle[2]:.5f} rad")
    print(f"the crank turns with {velocity[0, 4]:.3f} rad/s, after {angle[0] - start:.3f} rad")
    print(f"the motor was at its limit in {saturated} of {STEPS} steps")
    print(f"largest loop closure error {1e3 * largest_error:.4f} mm")


if __name__ == "__main__":
    main()
