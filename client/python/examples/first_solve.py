"""Two balls on a floor, one at rest and one pushed: one time step of 10 ms."""

import sap_islands as sap

balls = sap.RigidBodies(
    mass=1.0,
    inertia=[0.004, 0.004, 0.004, 0, 0, 0],
    center_of_mass=[[0, 0, 0.1], [1, 0, 0.1]],
    # Velocities at the end of the step without contact: gravity, and the push of the second ball.
    free_motion_velocity=[[0, 0, -0.0981, 0, 0, 0], [0.1, 0, -0.0981, 0, 0, 0]],
)
floor = sap.BodyContacts(
    body_a=[0, 1],
    body_b=[sap.WORLD, sap.WORLD],
    point=[[0, 0, 0], [1, 0, 0]],
    normal=[0, 0, 1],
    signed_distance=0.0,
    stiffness=1e6,
    relaxation_time=0.01,
    friction=0.5,
)
problem = sap.Problem(time_step=0.01, bodies=balls, body_contacts=floor)
with sap.connect("embedded:") as client:  # or "host:port", or "unix:PATH"
    solution = client.solve(problem)
for v, impulse in zip(solution.velocity.reshape(2, 6), solution.impulse, strict=True):
    print(f"{v[0]:.3f} m/s, turning {v[4]:.3f} rad/s, pressed with {impulse[2] / 0.01:.2f} N")
