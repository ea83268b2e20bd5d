"""iLQR pushes a box over the floor to a goal and a heading, where it comes to rest."""

import argparse
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import sap_islands as sap
import sap_islands.jax

jax.config.update("jax_enable_x64", True)

TIME_STEP, STEPS = 0.02, 50  # s, -
MASS, FRICTION = 1.0, 0.3  # kg, -
LENGTHS = np.array([0.2, 0.12, 0.08])  # sides of the box [m]
INERTIA = MASS / 12 * (np.sum(LENGTHS**2) - LENGTHS**2)
CORNERS = LENGTHS / 2 * [[x, y, -1] for x in (-1, 1) for y in (-1, 1)]
GOAL = np.array([0.6, 0.3]), np.pi / 2  # position [m], heading [rad]

# States: position of the center [3], quaternion (w, x, y, z), velocity [3], angular velocity [3].
# Controls: force along x and y [N], torque about z [N m].
START = np.array([0, 0, LENGTHS[2] / 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], float)
TARGET = np.array(
    [*GOAL[0], LENGTHS[2] / 2, np.cos(GOAL[1] / 2), 0, 0, np.sin(GOAL[1] / 2), 0, 0, 0, 0, 0, 0]
)
FINAL_WEIGHTS = np.repeat([1000.0, 300.0, 100.0, 1.0], [3, 4, 3, 3])
CONTROL_WEIGHTS = TIME_STEP * np.array([0.2, 0.2, 20.0])
FACTORS = 10.0 ** np.array([-1, 0, 1, 2])


def times(p: jax.Array, q: jax.Array) -> jax.Array:
    """The product of two quaternions."""
    vector = p[0] * q[1:] + q[0] * p[1:] + jnp.cross(p[1:], q[1:])
    return jnp.concatenate([(p[0] * q[0] - p[1:] @ q[1:])[None], vector])


def rotation_of(q: jax.Array) -> jax.Array:
    """The matrix of a unit quaternion."""
    w, v = q[0], q[1:]
    product = jnp.cross(jnp.eye(3), v)  # v x
    return (w * w - v @ v) * jnp.eye(3) + 2 * jnp.outer(v, v) + 2 * w * product


def step(client: sap.Client, state: jax.Array, control: jax.Array) -> jax.Array:
    """The state after a time step."""
    box = sap.RigidBodies(mass=MASS, inertia=np.ones(6), center_of_mass=np.zeros((1, 3)))
    floor = sap.BodyContacts(
        body_a=[0] * 4,
        body_b=[sap.WORLD] * 4,
        point=np.zeros((4, 3)),
        normal=[0, 0, 1],
        signed_distance=0.0,
        stiffness=1e4,
        relaxation_time=0.02,
        friction=FRICTION,
    )
    problem = sap.Problem(TIME_STEP, bodies=box, body_contacts=floor)
    position, quaternion, velocity = state[:3], state[3:7], state[7:]
    rotation = rotation_of(quaternion)
    inertia = rotation @ jnp.diag(INERTIA) @ rotation.T
    corners = position + CORNERS @ rotation.T
    force = jnp.array([control[0], control[1], -9.81 * MASS])
    spin_up = jnp.linalg.solve(inertia, jnp.array([0, 0, control[2]]))
    inputs = {
        "bodies.inertia": inertia.ravel()[np.array([0, 4, 8, 1, 2, 5])],
        "bodies.center_of_mass": position,
        "bodies.free_motion_velocity": velocity
        + TIME_STEP * jnp.concatenate([force / MASS, spin_up]),
        "body_contacts.point": corners,
        "body_contacts.signed_distance": corners[:, 2],
        # Corners above the floor are braked by their distance alone.
        "body_contacts.relaxation_time": jnp.where(corners[:, 2] > 0, 0.0, 0.02),
    }
    velocity = sap_islands.jax.solve(client, problem, inputs).velocity
    turn = jnp.concatenate([jnp.zeros(1), TIME_STEP / 2 * velocity[3:]])
    quaternion = quaternion + times(turn, quaternion)
    return jnp.concatenate(
        [
            position + TIME_STEP * velocity[:3],
            quaternion / jnp.linalg.norm(quaternion),
            velocity,
        ]
    )


def cost_of(states: np.ndarray, controls: np.ndarray) -> float:
    """Half the weighted squares of the controls and of the distance from the target at the end."""
    miss = states[-1] - TARGET
    return float(FINAL_WEIGHTS @ miss**2 + (controls**2 @ CONTROL_WEIGHTS).sum()) / 2


def feedback(
    A: np.ndarray, B: np.ndarray, states: np.ndarray, controls: np.ndarray, damping: float
) -> tuple[np.ndarray, np.ndarray]:
    """Changes of the controls [STEPS, 3] and their gains [STEPS, 3, 13], from the end backwards."""
    slope, curvature = FINAL_WEIGHTS * (states[-1] - TARGET), np.diag(FINAL_WEIGHTS)
    changes, gains = np.zeros((STEPS, 3)), np.zeros((STEPS, 3, 13))
    for t in reversed(range(STEPS)):
        Q_u = CONTROL_WEIGHTS * controls[t] + B[t].T @ slope
        Q_uu = np.diag(CONTROL_WEIGHTS) + B[t].T @ curvature @ B[t]
        Q_ux = B[t].T @ curvature @ A[t]
        solved = np.linalg.solve(
            Q_uu + damping * np.diag(CONTROL_WEIGHTS), np.column_stack([Q_u, Q_ux])
        )
        changes[t], gains[t] = -solved[:, 0], -solved[:, 1:]
        slope = A[t].T @ slope + gains[t].T @ (Q_uu @ changes[t] + Q_u) + Q_ux.T @ changes[t]
        both = gains[t].T @ Q_ux
        curvature = A[t].T @ curvature @ A[t] + gains[t].T @ Q_uu @ gains[t] + both + both.T
    return changes, gains


def follow(
    step_of: Callable[[jax.Array, jax.Array], jax.Array],
    states: jax.Array,
    controls: jax.Array,
    changes: jax.Array,
    gains: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """States and controls of a simulation with changed controls, and feedback to the old states."""

    def advance(state: jax.Array, planned: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple]:
        old, control, change, gain = planned
        control = control + change + gain @ (state - old)
        return step_of(state, control), (state, control)

    planned = states[:-1], controls, changes, gains
    end, (passed, applied) = jax.lax.scan(advance, jnp.asarray(START), planned)
    return jnp.concatenate([passed, end[None]]), applied


def plan(client: sap.Client, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """States [STEPS + 1, 13] and controls [STEPS, 3] of the plan; prints the cost."""
    step_of = partial(step, client)
    # The steps of a plan are differentiated in one call of the service. Changes with different
    # damping are tried in one simulation, with one call for each step.
    differentiate = jax.jit(jax.vmap(jax.jacrev(step_of, argnums=(0, 1))))
    follow_each = jax.jit(jax.vmap(partial(follow, step_of), in_axes=(None, None, 0, 0)))

    states, controls = np.tile(START, (STEPS + 1, 1)), np.zeros((STEPS, 3))
    controls[: STEPS // 2, :2] = 4.5 * GOAL[0] / np.linalg.norm(GOAL[0])
    changes = [(np.zeros((STEPS, 3)), np.zeros((STEPS, 3, 13)))]
    cost, dampings = np.inf, np.ones(1)
    for iteration in range(iterations + 1):
        tried = follow_each(states, controls, *(np.array(x) for x in zip(*changes, strict=True)))
        tried_states, tried_controls = (np.asarray(x) for x in tried)
        costs = [cost_of(*each) for each in zip(tried_states, tried_controls, strict=True)]
        best, before = int(np.argmin(costs)), cost
        if costs[best] < cost:
            cost, states, controls = costs[best], tried_states[best], tried_controls[best]
            print(f"iteration {iteration}: cost {cost:.4f}")
            if before - cost < 0.01 * cost:
                break
        A, B = (np.asarray(x) for x in differentiate(states[:-1], controls))
        dampings = dampings[best] * FACTORS
        changes = [feedback(A, B, states, controls, damping) for damping in dampings]
    return states, controls


def draw(path: str, states: np.ndarray, controls: np.ndarray) -> None:
    """Writes the way of the box and the controls to a picture."""
    import matplotlib.pyplot as plt

    figure, (floor, forces) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    outline = LENGTHS[:2] / 2 * [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]

    def draw_box(position: np.ndarray, heading: float, **style: object) -> None:
        c, s = np.cos(heading), np.sin(heading)
        floor.plot(*(position[:2] + outline @ [[c, s], [-s, c]]).T, **style)

    headings = 2 * np.arctan2(states[:, 6], states[:, 3])
    for t in range(0, STEPS + 1, 5):
        draw_box(states[t], headings[t], color=plt.cm.viridis(t / STEPS))
    draw_box(*GOAL, color="k", ls=":", lw=2)
    floor.plot(*states[:, :2].T, "k-", lw=0.8)
    floor.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    time = TIME_STEP * np.arange(STEPS)
    for values, name in zip(
        controls.T, ("force x [N]", "force y [N]", "torque [N m]"), strict=True
    ):
        forces.step(time, values, where="post", label=name)
    forces.set(xlabel="time [s]")
    forces.legend()
    figure.savefig(path)


def main() -> None:
    """Plans the push and prints how near to the goal it ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="embedded:")
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--plot", help="picture to write: PNG or SVG")
    arguments = parser.parse_args()

    with sap.connect(arguments.server) as client:
        states, controls = plan(client, arguments.iterations)
    distance = np.linalg.norm(states[-1, :2] - GOAL[0])
    heading = 2 * np.arctan2(states[-1, 6], states[-1, 3])
    speed = np.linalg.norm(states[-1, 7:10])
    print(
        f"{1e3 * distance:.1f} mm from the goal, {np.degrees(abs(heading - GOAL[1])):.1f} degrees ",
        end="",
    )
    print(f"from its heading, at {1e3 * speed:.1f} mm/s")
    if arguments.plot:
        draw(arguments.plot, states, controls)


if __name__ == "__main__":
    main()
