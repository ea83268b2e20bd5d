"""Section VI-D: a gripper with compliant pads lets a spatula pitch by loosening its grip.

Contact of the pads with the rigid handle is Drake's hydroelastic contact, through the adapter of
this package: every polygon of a contact surface is a compliant contact point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydrake.geometry import (
    AddCompliantHydroelasticProperties,
    AddContactMaterial,
    AddRigidHydroelasticProperties,
    Box,
    Ellipsoid,
    ProximityProperties,
)
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    MultibodyPlant,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import PrismaticJoint, RigidBody, SpatialInertia, UnitInertia
from pydrake.systems.framework import Context, DiagramBuilder

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.drake import step
from sap_islands.options import NewtonMethod, Options
from sap_paper import interior_point, same_steps
from sap_paper.report import Case, Table, agrees, check, figure, other_solver, quote
from sap_paper.setting import Setting
from sap_paper.solved_steps import SolvedSteps

BoolArray: TypeAlias = NDArray[np.bool_]

TIME_STEP, TOLERANCE = 5e-3, 1e-3  # s, -
FIRM, LOOSE, PERIOD, DUTY = 16.0, 1.0, 6.0, 0.75  # N, N, s, -
HANDLE, PAD_DEPTH, PAD_RADIUS = 0.01, 0.012, 0.03  # half thickness, half axes of a pad [m]
MODULUS, MESH, FRICTION = 5e4, 0.012, 1.0  # Pa, m, -
FINER = 0.010  # m, another mesh, for the number of contacts
SPATULA_MASS, OVERHANG = 0.06, 0.018  # kg; from the grip to the center of mass [m]
PAPER = Options(relative_tolerance=TOLERANCE, islands=False, newton=NewtonMethod.PLAIN)
SERVICE = Options(relative_tolerance=TOLERANCE)


@dataclass
class Gripper:
    """The plant, a context, and the diagram, which must outlive both."""

    plant: MultibodyPlant
    context: Context
    spatula: RigidBody
    diagram: object

    @property
    def plant_context(self) -> Context:
        """The context of the plant within `context`."""
        return self.plant.GetMyMutableContextFromRoot(self.context)

    def pitch(self) -> float:
        """Pitch of the spatula, positive downwards [degrees]."""
        pose = self.plant.GetFreeBodyPose(self.plant_context, self.spatula)
        return -float(np.degrees(RollPitchYaw(pose.rotation()).roll_angle()))


def gripper(mesh: float = MESH) -> Gripper:
    """Builds two fingers on slides, 2 dofs, that hold a spatula, 6 dofs.

    Args:
        mesh: Length of the edges of the pads' mesh [m].
    """
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=TIME_STEP,
        contact_model="hydroelastic",
        contact_surface_representation="polygon",
        discrete_contact_approximation="sap",
    )
    plant, _ = AddMultibodyPlant(config, builder)
    bubble, rigid = ProximityProperties(), ProximityProperties()
    AddCompliantHydroelasticProperties(mesh, MODULUS, bubble)
    AddRigidHydroelasticProperties(MESH, rigid)
    for properties, relaxation_time in ((bubble, TIME_STEP), (rigid, 0.0)):
        friction = CoulombFriction(FRICTION, FRICTION)
        AddContactMaterial(friction=friction, properties=properties)
        properties.AddProperty("material", "relaxation_time", relaxation_time)
    for name, side in (("left", -1.0), ("right", 1.0)):
        inertia = SpatialInertia(0.1, np.zeros(3), UnitInertia.SolidSphere(0.02))
        finger = plant.AddRigidBody(name, inertia)
        slide = PrismaticJoint(
            name, plant.world_frame(), finger.body_frame(), [-side, 0, 0], damping=5.0
        )
        plant.AddJointActuator(name, plant.AddJoint(slide))
        pad = Ellipsoid(PAD_DEPTH, PAD_RADIUS, PAD_RADIUS)
        place = RigidTransform([side * (HANDLE + PAD_DEPTH), 0, 0])
        plant.RegisterCollisionGeometry(finger, place, pad, name, bubble)
    shape = UnitInertia.SolidBox(0.02, 0.3, 0.02)
    spatula = plant.AddRigidBody("spatula", SpatialInertia(SPATULA_MASS, np.zeros(3), shape))
    handle = Box(2 * HANDLE, 0.12, 0.02)
    plant.RegisterCollisionGeometry(
        spatula, RigidTransform([0, -OVERHANG, 0]), handle, "handle", rigid
    )
    plant.Finalize()
    diagram = builder.Build()
    made = Gripper(plant, diagram.CreateDefaultContext(), spatula, diagram)
    for name in ("left", "right"):
        # The pads start 2 mm inside the handle, so that the first step has contacts.
        plant.GetJointByName(name).set_translation(made.plant_context, 0.002)
    plant.SetFreeBodyPose(made.plant_context, spatula, RigidTransform([0, OVERHANG, 0]))
    return made


def grip_force(time: float) -> float:
    """Commanded grip force [N] at a time [s]: a square wave."""
    return FIRM if time % PERIOD < DUTY * PERIOD else LOOSE


@dataclass
class History(SolvedSteps):
    """History of a simulation, one entry per step.

    Attributes:
        time: Time at the beginning of the step [s].
        pitch: Pitch of the spatula [degrees].
    """

    time: list[float] = field(default_factory=list)
    pitch: list[float] = field(default_factory=list)


_EVERY = 40  # every 40th problem is kept


def simulate(
    client: Client, start: float, end: float, options: Options, mesh: float = MESH
) -> History:
    """Simulates the gripper with the grip forces of the times from `start` to `end` [s]."""
    scene, history = gripper(mesh), History()
    force = scene.plant.get_actuation_input_port()
    with client.session(options) as session:
        for i in range(round((end - start) / TIME_STEP)):
            time = start + i * TIME_STEP
            grip = grip_force(time)
            force.FixValue(scene.plant_context, [grip, grip])
            history.time.append(time)
            history.pitch.append(scene.pitch())
            taken = step(scene.plant, scene.context, session)
            history.add(taken.built.problem, taken.solution, _EVERY)
    return history


def run(setting: Setting) -> Case:
    """Runs the case: four periods in full; the loose grip of one period in the quick form."""
    start, end = (0.0, 4 * PERIOD) if setting.full else (3.9, 6.4)
    case = Case(
        "slip-control",
        "Slip control",
        "Section VI-D",
        f"A parallel gripper (2 dofs) with compliant pads holds a spatula (6 dofs) under a grip of "
        f"{FIRM:g} and {LOOSE:g} N, period {PERIOD:g} s, duty {DUTY:.0%}; dt 5 ms, ε_r = 1e-3, "
        f"{end - start:g} s. Drake's hydroelastic contact; pads, masses and sizes are ours, since "
        "the paper does not state its own.",
        setting.out,
    )
    plain = simulate(setting.client, start, end, PAPER)
    service = simulate(setting.client, start, end, SERVICE)
    meshes = {MESH: service}
    if setting.full:
        meshes[FINER] = simulate(setting.client, 3.9, 6.4, SERVICE, FINER)
    _contact_claims(case, meshes)
    _pitch_claims(case, service)
    _solver_claims(case, setting.client, plain, service)
    _plots(case, plain, service)
    return case


def _firm(history: History) -> BoolArray:
    """Mask of the steps in a firm grip that has lasted for at least half a second."""
    time = np.array(history.time)
    firm = np.array([grip_force(t) == FIRM for t in history.time])
    return firm & ((time % PERIOD) > 0.5) & (time > history.time[0] + 0.25)


def _loose(history: History) -> BoolArray:
    """Mask of the steps in a loose grip that has lasted for at least half a second."""
    time = np.array(history.time)
    return (time % PERIOD) > DUTY * PERIOD + 0.5


def _contact_claims(case: Case, meshes: dict[float, History]) -> None:
    counts = {}
    for mesh, history in meshes.items():
        contacts = np.array(history.contacts)
        counts[mesh] = [float(np.median(contacts[of(history)])) for of in (_loose, _firm)]
    (loose, firm), *_ = counts.values()
    most = max(firm for _, firm in counts.values())
    by_mesh = f"the mesh of the pads decides: the next finer one gives {most:.0f}"
    case.claims += [
        figure(
            "contacts while slipping (1 N), median",
            "about 60",
            f"{loose:.0f}",
            agrees(loose, 60),
        ),
        figure(
            "contacts in stiction (16 N), median",
            "about 160",
            f"{firm:.0f}",
            agrees(firm, 160),
            cause=by_mesh if firm < 160 < most else "",
        ),
    ]
    rows = [
        (f"{1e3 * mesh:g}", f"{loose:.0f}", f"{firm:.0f}", f"{firm / loose:.1f}")
        for mesh, (loose, firm) in counts.items()
    ]
    head = ("mesh of the pads [mm]", "slipping", "in stiction", "ratio")
    case.tables.append(Table("Contacts against the mesh, medians", head, rows))


def _pitch_claims(case: Case, history: History) -> None:
    time, pitch = np.array(history.time), np.array(history.pitch)
    drift = _rate(time, pitch, _firm(history))
    # The loose phase is extended by 0.25 s, in which the pads follow the force.
    slips = [grip_force(t) == LOOSE or grip_force(t - 0.25) == LOOSE for t in history.time]
    loose = np.array(slips)
    gained = _rate(time, pitch, loose) * TIME_STEP * np.sum(loose) / _loose_phases(history)
    # Slip of σ μ dt g at the lever arm HANDLE, the half thickness of the handle.
    bound = np.degrees(1e-3 * FRICTION * 9.81 * TIME_STEP / HANDLE)
    case.claims += [
        check(
            "loose grip: the spatula pitches",
            "pitches in a controlled manner",
            f"{gained:.1f} degrees in each loose grip",
            bool(0.5 < gained < 30),
            "the angle depends on masses and sizes, which are ours",
        ),
        check(
            "firm grip: stiction holds the pitch, except for regularized slip",
            "within σ μ dt g",
            f"{drift:.1e} degrees/s",
            abs(drift) <= bound,
            f"σ μ dt g over 1 cm is {bound:.1e} degrees/s",
        ),
    ]


def _loose_phases(history: History) -> int:
    """Number of times the grip was loosened."""
    forces = np.array([grip_force(t) for t in history.time])
    return int(np.sum(np.diff(forces) < 0))


def _rate(time: FloatArray, pitch: FloatArray, chosen: BoolArray) -> float:
    """Mean rate of change of the pitch over the chosen steps [degrees/s]."""
    pairs = np.flatnonzero(chosen[:-1] & chosen[1:])
    return float(np.mean((pitch[pairs + 1] - pitch[pairs]) / (time[pairs + 1] - time[pairs])))


def _solver_claims(case: Case, client: Client, plain: History, service: History) -> None:
    compared = same_steps.compare(client, plain.problems, PAPER)
    own = same_steps.compare(client, plain.problems, SERVICE)
    mean = float(np.mean(plain.iterations))
    sampled, iterations = np.mean(compared.sap_iterations), np.mean(compared.clarabel_iterations)
    worst = max(*plain.momentum, *service.momentum)
    case.claims += [
        figure(
            "iterations per step of SAP, mean",
            "0.62",
            f"{mean:.2f}",
            agrees(mean, 0.62),
            f"plain Newton; the service's own method {np.mean(service.iterations):.2f}. Most steps "
            "need none, since the last velocities meet the tolerance",
        ),
        figure(
            "momentum error of SAP, largest",
            "9.99e-2 %",
            f"{100 * worst:.2e} %",
            agrees(100 * worst, 9.99e-2),
        ),
        other_solver(
            "SAP against interior point, same steps",
            "92x faster than Gurobi",
            f"{compared.speed_up:.0f}x faster than Clarabel",
            compared.speed_up > 1,
            f"{compared.problems} steps: Clarabel {1e3 * compared.clarabel_s:.2f} ms, plain Newton "
            f"{1e3 * compared.sap_s:.3f} ms, the service's own method {1e3 * own.sap_s:.3f} ms",
        ),
        interior_point.iterations_claim(float(sampled), float(iterations)),
        quote("SAP against the Geodesic IPM", "20x faster, which takes 5.6 iterations"),
        quote("momentum error, largest", "Gurobi 2.6 %, Geodesic IPM 2e-4 %"),
    ]
    rows = [
        (
            name,
            f"{np.mean(history.iterations):.2f}",
            str(max(history.iterations)),
            f"{1e3 * np.mean(history.solve_s):.3f}",
            f"{max(history.momentum):.1e}",
        )
        for name, history in (("plain Newton", plain), ("accelerated", service))
    ]
    head = (
        "solver",
        "iterations, mean",
        "largest",
        "time per step [ms]",
        "momentum error, largest",
    )
    case.tables.append(Table("SAP over the whole simulation", head, rows))


def _plots(case: Case, plain: History, service: History) -> None:
    with case.plot("pitch", "Grip force, pitch of the spatula, and contacts", 3) as axes:
        axes[0].plot(service.time, [grip_force(t) for t in service.time])
        axes[0].set(xlabel="time [s]", ylabel="grip force [N]")
        axes[1].plot(plain.time, plain.pitch, label="plain Newton")
        axes[1].plot(service.time, service.pitch, "--", label="the service's own method")
        axes[1].set(xlabel="time [s]", ylabel="pitch [degrees]")
        axes[1].legend(fontsize=8)
        axes[2].plot(service.time, service.contacts, lw=0.8)
        axes[2].set(xlabel="time [s]", ylabel="contacts")
