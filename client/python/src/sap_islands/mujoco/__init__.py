"""Contacts of a MuJoCo model, solved by the service.

    model = mujoco.MjModel.from_xml_path("scene.xml")
    data = mujoco.MjData(model)
    with sap_islands.connect("embedded:") as client, client.session() as session:
        while data.time < 3.0:
            sap_islands.mujoco.step(model, data, session)

MuJoCo does kinematics, forces and collision; the service takes the place of its constraint solver.
One step is semi-implicit Euler, whatever the model's integrator: velocities from the solution of
the contact problem, then positions with these velocities. Damping of joints, their springs and the
gains of servos count implicitly, as part of A.

Contacts are found when geoms touch; `find_contacts_within` finds them a little before, so that what
slides fast stays in touch. Joint limits become contacts without friction. What the service has no
constraint for is refused by name (`UNSUPPORTED`), unless the caller lists it in `ignore`.
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
