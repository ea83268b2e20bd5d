"""Simulates deformable bodies among those of a MuJoCo model, all in one problem per step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sap_islands import fem
from sap_islands.arrays import FloatArray, IntArray
from sap_islands.client import Client
from sap_islands.mujoco import Material, build_problem
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.mujoco.native_calls import integrate
from sap_islands.problem import Problem, Trees
from sap_islands.session import Session
from sap_islands.soft_scenes import SoftBody, SoftScene
from sap_islands.tools.simulation import Simulation
from sap_islands.tools.soft_contacts import Found, Law, find_contacts
from sap_islands.tools.trajectory import Floats, Frame, Shape, Trajectory

_STIFFNESS = 2e4  # of contacts [N/m]
_PULL_STIFFNESS = 1e4  # of the springs that pull nodes [N/m]


class SoftSimulation(Simulation):
    """Simulates a scene step by step.

    Attributes:
        bodies: The deformable bodies, with their states.
    """

    def __init__(
        self, scene: SoftScene, solver: Session | Client, *, material: Material | None = None
    ) -> None:
        """Starts at the initial state of the scene.

        Args:
            scene: The scene; its bodies move.
            solver: A session or a client.
            material: Stiffness and relaxation time of all contacts; None of either: 2e4 N/m, the
                time step.
        """
        given = material or Material()
        time_step = scene.model.opt.timestep
        stiffness = _STIFFNESS if given.stiffness is None else given.stiffness
        relaxation_time = time_step if given.relaxation_time is None else given.relaxation_time
        physical = replace(given, stiffness=stiffness, relaxation_time=relaxation_time)
        super().__init__(scene.model, solver, material=physical)
        self.bodies = scene.bodies
        self._scene = scene
        self._law = Law(stiffness, relaxation_time, scene.friction)
        self._pulled_from = [body.x[list(body.pulled)] for body in self.bodies]
        if scene.positions is not None:
            self.data.qpos[:] = scene.positions

    def new_trajectory(self) -> Trajectory:
        """A trajectory with the shapes of the model and the deformable bodies, and no frames."""
        trajectory = super().new_trajectory()
        for body in self.bodies:
            vertices, faces = body.skin()
            shape = Shape(
                "deformable",
                np.zeros(3, np.float32),
                np.array([*body.color, 1.0], np.float32),
                vertices.astype(np.float32),
                faces.astype(np.int32),
            )
            trajectory.shapes.append(shape)
        return trajectory

    def step(self) -> Frame:
        """Takes one time step.

        Returns:
            The state at the beginning of the step, and the contacts and islands of the step.
        """
        time = float(self.data.time)
        self._scene.control(self.data)
        built = build_problem(self.model, self.data, material=self._material)
        found = find_contacts(self.model, self.data, self.bodies, self._law)
        problem = self._join(built, found)
        if isinstance(self._solver, Session):
            solution = self._solver.step(problem)
        else:
            solution = self._solver.solve(problem)
        frame = self._frame(time, solution, *self._forces_of_all(built, found, solution.impulse))
        frame = self._with_bodies(frame, solution.island_of_tree)
        self._advance(solution.velocity)
        return frame

    def _join(self, built: BuiltProblem, found: list[Found]) -> Problem:
        """The problem of the model's bodies with those that deform."""
        rigid = built.problem
        bodies = zip(self.bodies, self._pulled_from, strict=True)
        trees = fem.join_trees(
            [rigid.trees, *(self._trees(body, pulled_from) for body, pulled_from in bodies)]
        )
        contacts = fem.join_contacts([rigid.contacts, *(group.contacts for group in found)])
        fem.release_gaps(contacts, trees, rigid.time_step)
        return Problem(
            rigid.time_step,
            trees=trees,
            contacts=contacts,
            rows=rigid.rows,
            regularization=rigid.regularization,
        )

    def _trees(self, body: SoftBody, pulled_from: FloatArray) -> Trees:
        """The nodes of a body over this step."""
        dt = self.model.opt.timestep
        moved = np.asarray(body.pull_velocity) * (self.data.time + dt)
        pull = fem.anchors(body.x, body.pulled, pulled_from + moved, _PULL_STIFFNESS)
        gravity = self.model.opt.gravity
        return fem.step(
            body.material, body.x, body.v, dt, gravity, damping=body.damping, extra=(pull,)
        )

    def _forces_of_all(
        self, built: BuiltProblem, found: list[Found], impulse: FloatArray
    ) -> tuple[Floats, Floats]:
        """Points and forces of the contacts, those of the model's own first."""
        contact = self.data.contact
        point = [contact.pos[built.contact], *(group.point for group in found)]
        own = contact.frame[built.contact].reshape(-1, 3, 3)[:, [1, 2, 0]]
        frame = np.concatenate([own, *(group.frame for group in found)])
        force = np.einsum("cij,ci->cj", frame, impulse.reshape(-1, 3)) / self.model.opt.timestep
        return np.concatenate(point).astype(np.float32), force.astype(np.float32)

    def _with_bodies(self, frame: Frame, island_of_tree: IntArray) -> Frame:
        """A frame with the deformable shapes besides those of the model."""
        count = len(self.bodies)
        first = self.model.ntree + np.cumsum([0, *(len(body.x) for body in self.bodies)])[:-1]
        vertices = [body.skin()[0] for body in self.bodies]
        return replace(
            frame,
            position=np.concatenate((frame.position, np.zeros((count, 3), np.float32))),
            rotation=np.concatenate(
                (frame.rotation, np.tile(np.array([1.0, 0, 0, 0], np.float32), (count, 1)))
            ),
            island=np.concatenate((frame.island, island_of_tree[first].astype(np.int32))),
            deformed=np.concatenate(vertices).astype(np.float32),
        )

    def _advance(self, velocity: FloatArray) -> None:
        """Moves everything with the velocities at the end of the step."""
        rigid, deformable = velocity[: self.model.nv], velocity[self.model.nv :].reshape(-1, 3)
        self.data.qacc[:] = (rigid - self.data.qvel) / self.model.opt.timestep
        integrate(self.model, self.data, True, rigid)
        ends = np.cumsum([len(body.x) for body in self.bodies])
        for body, v in zip(self.bodies, np.split(deformable, ends[:-1]), strict=True):
            body.v = v
            body.x = body.x + self.model.opt.timestep * v
