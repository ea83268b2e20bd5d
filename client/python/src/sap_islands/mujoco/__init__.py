"""MuJoCo adapter: steps an MjModel with its constraints solved by the service.

    model = mujoco.MjModel.from_xml_path("scene.xml")
    data = mujoco.MjData(model)
    with sap_islands.connect("embedded:") as client, client.session() as session:
        while data.time < 3.0:
            sap_islands.mujoco.step(model, data, session)

MuJoCo computes kinematics, smooth forces, collisions and constraints: their Jacobians, R and
reference accelerations. The service replaces its constraint solver, for every kind of constraint:
equalities, friction loss, limits of joints and tendons, contacts of condim 1, 3, 4 and 6, and those
of flexes (cables, cloths, solids). Elastic forces of flexes are MuJoCo's: of the beginning of the
step, under the integrator `discrete` of its end.

- law="sap", the default: contacts have elliptic cones, whatever the model selects, and friction is
  regularized as SAP does, so that what is held stays held. The normal compliance is MuJoCo's. Joint
  damping, joint springs and servos act with their forces at the end of the step, within their
  limits. The integrator is semi-implicit Euler.
- law="coulomb": the problem of "sap" with exact Coulomb friction (`Options.coulomb`): what slides
  does not drift apart. It takes some three times the iterations where contacts slide.
- law="mujoco": MuJoCo's own convex problem, with pyramids or cones as the model selects, solved to
  convergence; then MuJoCo's integrator, Euler, implicit, implicitfast or discrete. Steps agree with
  those of MuJoCo's Newton solver at a tight tolerance to 1e-6.

A is MuJoCo's M; under "sap" and "coulomb" with the implicit forces. Where the model selects the
integrator `discrete` (MuJoCo 3.13 and later) it is, under every law, MuJoCo's metric of that
integrator: M and the stiffness and damping of joints, tendons, servos and fluid that MuJoCo takes
to be implicit, which acts on R, too. Servos then have MuJoCo's limits and not those above.

Forces are written back: `efc_force`, `efc_state`, `qfrc_constraint`, `qacc`, `cfrc_ext`, sensors
and energies are those of this step. Under the first two laws, `actuator_force` and `qfrc_actuator`
are those at the end of the step, and `qacc` is the change of velocity over the step.

Differences from MuJoCo, of which a `DifferenceWarning` tells once per model: RK4 and other
integrators become Euler, there is no noslip solver, and no early stop of PGS.

`advance` is `step` in one call of the C library, in this process: ten times as fast in small
scenes, without the problem and its solution. `advance_batch` does so for many states on threads.

`step_batch` steps many states with one batch of problems, `rollout` many environments over many
steps, as `mujoco.rollout` does with `mj_step`: an environment that MuJoCo warns of is frozen, and a
`FrozenWarning` names it.

`linearize` returns the derivatives of a step, as `mujoco.mjd_transitionFD` does for MuJoCo's own.

`replace_solver` puts the solver in place of MuJoCo's, so that `mujoco.mj_step` and programs
that call it stay unchanged; `sap-islands run -- COMMAND` does so from outside of a program.

MuJoCo reports contacts when geoms touch. `find_contacts_within` makes it report them earlier, so
that fast sliding bodies do not lose contact.
"""

import importlib.util

if importlib.util.find_spec("mujoco") is None:
    raise ModuleNotFoundError(
        "sap_islands.mujoco needs MuJoCo: pip install 'mujoco>=3.5'", name="mujoco"
    )

from sap_islands.mujoco.assembly import BuiltProblem, Law
from sap_islands.mujoco.at_rest import AtRest
from sap_islands.mujoco.impulse_guess import ImpulseGuess
from sap_islands.mujoco.linearization import Linearization, linearize
from sap_islands.mujoco.lockstep import advance_batch, step_batch
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_steps import Advanced, advance
from sap_islands.mujoco.replacing import replace_solver
from sap_islands.mujoco.rollouts import FrozenWarning, rollout
from sap_islands.mujoco.stepping import (
    apply,
    build_problem,
    find_contacts_within,
    step,
)
from sap_islands.mujoco.unsupported_features import DifferenceWarning
from sap_islands.unsolved_policy import Unsolved, UnsolvedWarning

__all__ = [
    "Advanced",
    "AtRest",
    "BuiltProblem",
    "DifferenceWarning",
    "FrozenWarning",
    "ImpulseGuess",
    "Law",
    "Linearization",
    "Material",
    "Unsolved",
    "UnsolvedWarning",
    "advance",
    "advance_batch",
    "apply",
    "build_problem",
    "find_contacts_within",
    "linearize",
    "replace_solver",
    "rollout",
    "step",
    "step_batch",
]
