"""Simulates a MuJoCo model with constraints solved by the service; returns a frame per step."""

from __future__ import annotations

import mujoco
import numpy as np

from sap_islands.client import Client
from sap_islands.mujoco import Material, step
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.session import Session
from sap_islands.solution import IslandStatus, Solution
from sap_islands.tools.trajectory import Floats, Frame, Ints, Shape, Trajectory

_KINDS = {
    int(mujoco.mjtGeom.mjGEOM_PLANE): "plane",
    int(mujoco.mjtGeom.mjGEOM_SPHERE): "sphere",
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): "capsule",
    int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): "ellipsoid",
    int(mujoco.mjtGeom.mjGEOM_CYLINDER): "cylinder",
    int(mujoco.mjtGeom.mjGEOM_BOX): "box",
    int(mujoco.mjtGeom.mjGEOM_MESH): "mesh",
}
_SOLVED = (IslandStatus.CONVERGED, IslandStatus.STALLED_AT_ROUNDOFF)


class Simulation:
    """Simulates a model step by step.

    Attributes:
        model: The model.
        data: Its state; the caller may set controls between steps.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        solver: Session | Client,
        *,
        material: Material | None = None,
    ) -> None:
        """Starts at the initial state of the model.

        Args:
            model: The model.
            solver: A session or a client.
            material: As for `sap_islands.mujoco.step`.
        """
        self.model = model
        self.data = mujoco.MjData(model)
        self._solver = solver
        self._material = material or Material()
        self._visible = [
            geom
            for geom in range(model.ngeom)
            if int(model.geom_type[geom]) in _KINDS and model.geom_rgba[geom, 3] > 0
        ]

    def new_trajectory(self) -> Trajectory:
        """A trajectory with the visible shapes of the model and no frames."""
        return Trajectory([self._shape(geom) for geom in self._visible])

    def step(self) -> Frame:
        """Takes one time step.

        Returns:
            The state at the beginning of the step, and the contacts and islands of the step.
        """
        time = float(self.data.time)
        # Frames count the unsolved islands.
        built, solution = step(
            self.model, self.data, self._solver, material=self._material, on_unsolved="ignore"
        )
        return self._frame(time, solution, *self._forces(built, solution))

    def _frame(self, time: float, solution: Solution, point: Floats, force: Floats) -> Frame:
        """The frame of a step that began at a time."""
        visible = self._visible
        rotation = np.empty((len(visible), 4))
        for row, geom in zip(rotation, visible, strict=True):
            mujoco.mju_mat2Quat(row, self.data.geom_xmat[geom])
        islands = solution.islands
        return Frame(
            time=time,
            position=self.data.geom_xpos[visible].astype(np.float32),
            rotation=rotation.astype(np.float32),
            island=self._island_of_geoms(solution),
            contact_point=point,
            contact_force=force,
            iterations=islands.iterations.astype(np.int32),
            gap_bound=islands.optimality_gap_bound.astype(np.float32),
            solve_time_s=islands.solve_time_s.astype(np.float32),
            dofs=islands.dofs.astype(np.int32),
            contacts=islands.contacts.astype(np.int32),
            rows=islands.rows.astype(np.int32),
            unsolved=int(np.sum(~np.isin(islands.status, _SOLVED))),
        )

    def _forces(self, built: BuiltProblem, solution: Solution) -> tuple[Floats, Floats]:
        """Points and forces of all contacts; those of condim 1 are rows of the problem."""
        contact = self.data.contact
        row = contact.efc_address
        single = np.flatnonzero((contact.dim == 1) & (row >= 0))
        which = np.concatenate((built.contact, single))
        if not len(which):
            return np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)
        in_frame = np.zeros((len(which), 3))
        in_frame[: len(built.contact)] = solution.impulse / self.model.opt.timestep
        in_frame[len(built.contact) :, 2] = self.data.efc_force[row[single]]
        frame = contact.frame[which].reshape(-1, 3, 3)[:, [1, 2, 0]]
        force = np.einsum("cij,ci->cj", frame, in_frame)
        return contact.pos[which].astype(np.float32), force.astype(np.float32)

    def _island_of_geoms(self, solution: Solution) -> Ints:
        trees = self.model.body_treeid[self.model.geom_bodyid[self._visible]]
        if not len(solution.island_of_tree):
            return np.full(len(trees), -1, np.int32)
        return np.where(trees >= 0, solution.island_of_tree[trees], -1).astype(np.int32)

    def _shape(self, geom: int) -> Shape:
        model = self.model
        kind = _KINDS[int(model.geom_type[geom])]
        size = model.geom_size[geom].astype(np.float32)
        color = model.geom_rgba[geom].astype(np.float32)
        if kind != "mesh":
            return Shape(kind, size, color)
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        first_face, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
        return Shape(
            kind,
            size,
            color,
            model.mesh_vert[first : first + count].astype(np.float32),
            model.mesh_face[first_face : first_face + faces].astype(np.int32),
        )
