"""Drake's plant stepping scenes of free bodies, with its contact problem and solve time."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import pydrake
from pydrake.geometry import AddContactMaterial, Box, ProximityProperties, Sphere
from pydrake.math import RigidTransform, RollPitchYaw
from pydrake.multibody.plant import (
    AddMultibodyPlant,
    CoulombFriction,
    MultibodyPlantConfig,
)
from pydrake.multibody.tree import SpatialInertia, UnitInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from contact_arrays import Bodies, ContactArrays, PointContacts, frames, from_bodies

TIME_STEP = 0.01
GRAVITY = np.array([0, 0, -9.81])
STIFFNESS, RELAXATION_TIME, FRICTION = 1e6, 0.01, 0.5  # of each surface
RADIUS, SIDE, CORNER = 0.05, 0.1, 0.005


def version() -> str:
    return metadata.version("drake")


@dataclass
class DrakeStep:
    problem: ContactArrays  # what Drake's solver is given in this step
    velocity: np.ndarray  # Drake's answer, in the order of the problem
    solve_s: float  # inside SapSolver::SolveWithGuess
    factor_s: float  # of which in BlockSparseCholeskySolver::Factor
    iterations: int
    factorizations: int


class Timer:
    """Times Drake's contact solver; see drake_timer.cc."""

    def __init__(self, library: Path):
        self._library = ctypes.CDLL(str(library))
        for name in ("Solve", "SolveAutoDiff", "Factor"):
            getattr(self._library, f"DrakeTimer{name}Seconds").restype = ctypes.c_double
        path = Path(pydrake.__file__).parent / "lib" / "libdrake.so"
        if self._library.DrakeTimerInstall(str(path).encode()):
            raise RuntimeError("Drake's solver cannot be timed; see above")

    def __getattr__(self, name: str):
        return getattr(self._library, "DrakeTimer" + name)


def _surface() -> ProximityProperties:
    properties = ProximityProperties()
    AddContactMaterial(
        dissipation=0.0,
        point_stiffness=STIFFNESS,
        friction=CoulombFriction(FRICTION, FRICTION),
        properties=properties,
    )
    properties.AddProperty("material", "relaxation_time", RELAXATION_TIME)
    return properties


class Scene:
    """`bin`, `open` (columns of ten spheres and boxes, walls or none), `stacks` or `spheres`.

    Boxes carry a small sphere at each corner, since Drake's point contact gives one point per pair
    of shapes.
    """

    def __init__(self, kind: str, num_bodies: int, timer: Timer, seed: int = 1):
        self._timer = timer
        random = np.random.default_rng(seed)
        builder = DiagramBuilder()
        self._plant, self._graph = AddMultibodyPlant(
            MultibodyPlantConfig(
                time_step=TIME_STEP, contact_model="point", discrete_contact_approximation="sap"
            ),
            builder,
        )
        columns = max(1, num_bodies // 10)
        across = max(n for n in range(1, int(columns**0.5) + 1) if columns % n == 0)
        deep = columns // across
        pitch = 0.3 if kind == "stacks" else 0.2
        self._bodies, poses = [], []
        for column in range(columns):
            x = (column % across - (across - 1) / 2) * pitch
            y = (column // across - (deep - 1) / 2) * pitch
            for level in range(10):
                if kind == "stacks":
                    self._add_body(False)
                    poses.append(RigidTransform([x, y, 0.05 + 0.1 * level]))
                else:
                    self._add_body(kind == "spheres" or (level + column) % 2 == 0)
                    turn = RollPitchYaw(random.uniform(-0.3, 0.3, 3))
                    dx, dy = random.uniform(-0.01, 0.01, 2)
                    poses.append(RigidTransform(turn, [x + dx, y + dy, 0.08 + 0.135 * level]))
        self._add_wall((40, 40, 1), (0, 0, -0.5))
        if kind == "bin":
            width, depth = across * pitch, deep * pitch
            for side in (-1, 1):
                self._add_wall((1, depth + 4, 4), (side * (width / 2 + 0.5), 0, 1))
                self._add_wall((width + 4, 1, 4), (0, side * (depth / 2 + 0.5), 1))
        self._plant.Finalize()
        self.diagram = diagram = builder.Build()
        context = diagram.CreateDefaultContext()
        self._context = self._plant.GetMyMutableContextFromRoot(context)
        self._graph_context = self._graph.GetMyContextFromRoot(context)
        for body, pose in zip(self._bodies, poses):
            self._plant.SetFreeBodyPose(self._context, body, pose)
        self._simulator = Simulator(diagram, context)
        self._simulator.Initialize()
        inspector = self._graph.model_inspector()
        number = {body.index(): i for i, body in enumerate(self._bodies)}
        self._body_of_geometry = {
            geometry: number.get(
                self._plant.GetBodyFromFrameId(inspector.GetFrameId(geometry)).index(), -1
            )
            for geometry in inspector.GetAllGeometryIds()
        }

    def _add_body(self, sphere: bool) -> None:
        name = f"body{len(self._bodies)}"
        inertia = UnitInertia.SolidSphere(RADIUS) if sphere else UnitInertia.SolidCube(SIDE)
        mass = 0.524 if sphere else 1.0
        body = self._plant.AddRigidBody(name, SpatialInertia(mass, np.zeros(3), inertia))

        def register(suffix, offset, shape):
            self._plant.RegisterCollisionGeometry(
                body, RigidTransform(offset), shape, name + suffix, _surface()
            )

        if sphere:
            register("", np.zeros(3), Sphere(RADIUS))
        else:
            register("", np.zeros(3), Box(SIDE, SIDE, SIDE))
            for corner in range(8):
                sign = np.array([1 if corner >> axis & 1 else -1 for axis in range(3)])
                register(f"corner{corner}", sign * (SIDE / 2 - CORNER), Sphere(CORNER))
        self._bodies.append(body)

    def _add_wall(self, size, center) -> None:
        self._plant.RegisterCollisionGeometry(
            self._plant.world_body(),
            RigidTransform(center),
            Box(*size),
            f"wall{center}",
            _surface(),
        )

    def _state(self) -> Bodies:
        poses = [self._plant.EvalBodyPoseInWorld(self._context, body) for body in self._bodies]
        rotation = np.array([pose.rotation().matrix() for pose in poses])
        inertia = np.array(
            [
                body.default_spatial_inertia().CalcRotationalInertia().CopyToFullMatrix3()
                for body in self._bodies
            ]
        )
        return Bodies(
            mass=np.array([body.default_mass() for body in self._bodies]),
            inertia=rotation @ inertia @ rotation.transpose(0, 2, 1),
            position=np.array([pose.translation() for pose in poses]),
            velocity=self._velocity().reshape(-1, 6),
        )

    def _velocity(self) -> np.ndarray:
        spatial = [
            self._plant.EvalBodySpatialVelocityInWorld(self._context, body) for body in self._bodies
        ]
        return np.array([np.r_[v.translational(), v.rotational()] for v in spatial]).ravel()

    def _contacts(self) -> tuple[PointContacts, np.ndarray]:
        """Contacts and their signed distances."""
        pairs = (
            self._graph.get_query_output_port()
            .Eval(self._graph_context)
            .ComputePointPairPenetration()
        )
        a = np.array([self._body_of_geometry[pair.id_A] for pair in pairs], int)
        b = np.array([self._body_of_geometry[pair.id_B] for pair in pairs], int)
        point = np.array([(pair.p_WCa + pair.p_WCb) / 2 for pair in pairs]).reshape(-1, 3)
        normal = np.array([pair.nhat_BA_W for pair in pairs]).reshape(-1, 3)
        world_first = a < 0
        normal[world_first] *= -1
        contacts = PointContacts(
            np.where(world_first, b, a), np.where(world_first, a, b), point, frames(normal)
        )
        return contacts, np.array([-pair.depth for pair in pairs])

    @property
    def plant(self):
        return self._plant

    def positions_and_velocities(self) -> np.ndarray:
        """In Drake's order."""
        return self._plant.GetPositionsAndVelocities(self._context)

    def problem(self) -> ContactArrays:
        """What Drake's solver is given in the next step."""
        bodies = self._state()
        contacts, phi0 = self._contacts()
        return from_bodies(
            bodies,
            contacts,
            TIME_STEP,
            v_star=bodies.v_star(GRAVITY, TIME_STEP),
            guess=bodies.velocity.ravel(),
            phi0=phi0,
            stiffness=np.full_like(phi0, STIFFNESS / 2),  # two surfaces in series
            tau_d=np.full_like(phi0, 2 * RELAXATION_TIME),
            mu=np.full_like(phi0, FRICTION),
            diagonal_rule=True,
        )

    def steps(self, count: int) -> Iterator[DrakeStep]:
        for _ in range(count):
            problem = self.problem()
            self._timer.Reset()
            self._simulator.AdvanceTo((self._steps_done() + 1) * TIME_STEP)
            yield DrakeStep(
                problem,
                self._velocity(),
                self._timer.SolveSeconds(),
                self._timer.FactorSeconds(),
                self._timer.Iterations(),
                self._timer.Factorizations(),
            )

    def _steps_done(self) -> int:
        return round(self._simulator.get_context().get_time() / TIME_STEP)
