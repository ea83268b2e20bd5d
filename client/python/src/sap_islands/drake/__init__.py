'''Drake adapter: steps a MultibodyPlant with its contacts and constraints solved by the service.

    import sap_islands as sap
    import sap_islands.drake
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import AddMultibodyPlant, MultibodyPlantConfig
    from pydrake.systems.framework import DiagramBuilder

    BALL = """
    <robot name="ball"><link name="ball">
      <inertial><mass value="1"/>
        <inertia ixx="0.004" iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial>
      <collision><geometry><sphere radius="0.1"/></geometry></collision>
    </link></robot>"""
    FLOOR = """
    <robot name="floor"><link name="floor">
      <collision><origin xyz="0 0 -1.1"/><geometry><box size="9 9 2"/></geometry></collision>
    </link><joint name="floor" type="fixed"><parent link="world"/><child link="floor"/></joint>
    </robot>"""

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlant(MultibodyPlantConfig(time_step=0.01), builder)
    Parser(plant).AddModelsFromString(BALL, "urdf")
    Parser(plant).AddModelsFromString(FLOOR, "urdf")
    plant.Finalize()
    context = builder.Build().CreateDefaultContext()
    with sap.connect("embedded:") as client, client.session() as session:
        while context.get_time() < 1.0:
            taken = sap.drake.step(plant, context, session)
    print(taken.results.contacts.force)  # N, on body B of each contact

The problem is that of Drake's own discrete solver, with the contact approximations lagged
(Drake's default), similar and sap: point contacts, and hydroelastic surfaces with every polygon as
a contact point. Joint damping is part of A. Joint limits, PD controllers with their effort limits,
couplers, balls, welds, distances and tendons are constraint rows; locked joints have no velocities.
The surfaces of belts move at the speeds of the port surface_speeds. Features that the service
cannot represent (`UNSUPPORTED`), and versions of Drake that are not tested, raise an error unless
`ignore` names them; so does a value at an input port that is not known.

pydrake does not give all parameters of a plant. Couplers, balls and welds are found from functions
that it offers for optimization; tendons, couplers of a plant with tendons, and the stiction
tolerance from Drake's own update of a separate context, once per plant. Balls and welds of a plant
with tendons must be named, with `step(..., constraints=...)`; an error says so.

The caller drives the loop: `Simulator`, periodic events and loggers are not involved. Output ports
that the plant samples at its discrete updates (contact_results, reaction_forces, net_actuation,
generalized_contact_forces) show nothing of these steps; `Step.results` has those of each step.
'''

import importlib.util

if importlib.util.find_spec("pydrake") is None:
    raise ModuleNotFoundError(
        "sap_islands.drake needs Drake: pip install 'drake>=1.51,<1.59'", name="pydrake"
    )

from sap_islands.drake.assembly import BuiltProblem, build_problem
from sap_islands.drake.constraint_rows import RowSource
from sap_islands.drake.constraints import Ball, Coupler, Tendon, Weld
from sap_islands.drake.results import ContactResults, StepResults
from sap_islands.drake.stepping import Step, apply, step
from sap_islands.drake.unsupported_features import UNSUPPORTED

__all__ = [
    "UNSUPPORTED",
    "Ball",
    "BuiltProblem",
    "ContactResults",
    "Coupler",
    "RowSource",
    "Step",
    "StepResults",
    "Tendon",
    "Weld",
    "apply",
    "build_problem",
    "step",
]
