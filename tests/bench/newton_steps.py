"""Times of Newton's steps on the CPU under its own solvers and under SAP: a pile of boxes.

  newton_steps.py [BOXES] [SECONDS]      default: 100 boxes, 2 s

Median time per step; "around" is what the adapter adds to the solve of the library. Then how fast
the boxes still move at the end.
"""

import sys
import time

import newton
import numpy as np
import warp as wp

import sap_islands.newton

DT = 0.005


def make_model(count):
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_ground_plane()
    for i in range(count):
        place = (0.24 * (i % 4) + 0.01 * (i % 7), 0.24 * (i // 4 % 4), 0.11 + 0.22 * (i // 16))
        body = builder.add_body(xform=wp.transform(place, wp.quat_identity()))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return builder.finalize(device="cpu")


def run(name, model, solver, seconds):
    state, other = model.state(), model.state()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    control, pipeline = model.control(), newton.CollisionPipeline(model)
    contacts = pipeline.contacts()
    step_s, collide_s, solve_s, solves = [], [], [], []
    for _ in range(round(seconds / DT)):
        state.clear_forces()
        start = time.perf_counter()
        pipeline.collide(state, contacts)
        found = time.perf_counter()
        solver.step(state, other, control, contacts, DT)
        step_s.append(time.perf_counter() - found)
        collide_s.append(found - start)
        state, other = other, state
        if name == "SAP":
            solve_s.append(solver.solve_time)
            solves.append(solver.solves)
    speed = np.abs(state.body_qd.numpy()).max()
    contact_count = contacts.rigid_contact_count.numpy()[0]
    line = f"{name:14} step {1e3 * np.median(step_s):6.2f} ms"
    line += f", collide {1e3 * np.median(collide_s):5.2f} ms"
    line += f", {contact_count} contacts, speed at the end {speed:.1e}"
    if solve_s:
        around = np.median(np.array(step_s) - np.array(solve_s))
        line += f"; around the solve {1e3 * around:.2f} ms, {np.mean(solves):.1f} solves"
    print(line)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    makers = {
        "SAP": sap_islands.newton.SapSolver,
        "XPBD": newton.solvers.SolverXPBD,
        "SemiImplicit": newton.solvers.SolverSemiImplicit,
    }
    for name, make in makers.items():
        model = make_model(count)
        run(name, model, make(model), seconds)


if __name__ == "__main__":
    main()
