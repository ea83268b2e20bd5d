"""A referee for simulators: are recorded steps of a MuJoCo model those that its laws demand?

    verdict = sap_islands.certify(model, "run.npz")

Each recorded state is solved to 1e-10 under MuJoCo's own law, and the recorded velocity after the
step compared with the exact one. Where they differ, steps under changed conditions are solved; the
change that leads to the recorded velocity is the cause:

    reset             another episode began; not a fault
    noslip            the model asks for the noslip solver; not a fault
    off_by_one        the velocity is that after another state
    several_steps     the velocity is that after several time steps
    rounding          the velocity is rounded to few bits
    lost_pairs        geoms overlap, and the simulator has no contact of them
    collision         exact on the contacts that MuJoCo finds, not on those recorded
    control_lag, input_lag, control                        other inputs
    actuator_limits, actuation, limits, equalities, friction_loss, gravity, springs, damping,
    integrator, cone                                       left out, or done otherwise
    time_step, friction, compliance                        another number
    dropped_contacts  contacts of some pairs of geoms have no force
    first_rows        constraints beyond a number have no force: a buffer is full
    not_converged     an iterate of a solver, or, without recorded contacts, other contacts
    unexplained       nothing of this
    unsolved          the exact step could not be certified
    undiagnosed       not looked for
"""

import importlib.util

if importlib.util.find_spec("mujoco") is None:
    raise ModuleNotFoundError(
        "sap_islands.referee needs MuJoCo: pip install 'mujoco>=3.5'", name="mujoco"
    )

from sap_islands.referee.certification import certify
from sap_islands.referee.run_reader import Source
from sap_islands.referee.verdict import Verdict, WorstState

__all__ = ["Source", "Verdict", "WorstState", "certify"]
