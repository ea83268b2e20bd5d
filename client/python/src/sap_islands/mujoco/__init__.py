"""MuJoCo adapter: steps an MjModel with contacts solved by the service.

    model = mujoco.MjModel.from_xml_path("scene.xml")
    data = mujoco.MjData(model)
    with sap_islands.connect("embedded:") as client, client.session() as session:
        while data.time < 3.0:
            sap_islands.mujoco.step(model, data, session)

MuJoCo computes kinematics, smooth forces and collisions; the service replaces its constraint
solver. The integrator is always semi-implicit Euler, whatever the model selects: the contact
problem gives the velocities, and these move the positions. Joint damping, joint springs and servo
gains are implicit: they are part of A.

MuJoCo reports contacts when geoms touch. `find_contacts_within` makes it report them earlier, so
that fast sliding bodies do not lose contact. Joint limits become frictionless contacts. Features
that the service cannot represent (`UNSUPPORTED`) raise an error unless `ignore` names them.

Forces are stored in `data.qacc` and `data.qfrc_constraint` only: `data.efc_*` is empty, so that
MuJoCo's touch, force, torque and contact sensors do not see the contact forces.
"""

import importlib.util

if importlib.util.find_spec("mujoco") is None:
    raise ModuleNotFoundError(
        "sap_islands.mujoco needs MuJoCo: pip install 'mujoco>=3.5'", name="mujoco"
    )

from sap_islands.mujoco.material import Material
from sap_islands.mujoco.stepping import BuiltProblem, build_problem, find_contacts_within, step
from sap_islands.mujoco.unsupported_features import UNSUPPORTED

__all__ = [
    "UNSUPPORTED",
    "BuiltProblem",
    "Material",
    "build_problem",
    "find_contacts_within",
    "step",
]
