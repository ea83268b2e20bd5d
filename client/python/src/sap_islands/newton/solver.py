"""The solver of Newton's interface."""

from __future__ import annotations

import time

import newton
import numpy as np
from newton.solvers import SolverBase

import sap_islands
from sap_islands.client import Client
from sap_islands.newton.contacts import ContactSet, make_contacts, read_contacts
from sap_islands.newton.coordinates import Coordinates
from sap_islands.newton.dynamics import Dynamics, make_dynamics
from sap_islands.newton.layout import make_layout, numpy_of
from sap_islands.newton.material import Material
from sap_islands.newton.rebounds import Landings
from sap_islands.newton.rows import make_rows
from sap_islands.options import Options
from sap_islands.problem import ConstraintRows, Problem, Regularization
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import OnUnsolved, check_on_unsolved, report_unsolved

_DEFAULT_MATERIAL = Material()
# Solves of one step, for the targets of contacts that slide. A step that would need more takes the
# last solution, whose bodies part or sink at what the targets still differ.
_MAX_SOLVES = 10
_REBOUND_BETA = 0.1  # β at which a body lands without overlap and a rebound is as high as e says


class SapSolver(SolverBase):  # type: ignore[misc]  # Newton has no types
    """Steps a model of Newton with its contacts and joints solved by SAP.

    Attributes:
        problem: Of the last step, or None.
        solution: Of the last step, or None. Impulse i of the problem's contacts is that of row
            `contact_rows[i]` of Newton's arrays, in (t1, t2, n) [N s].
        contact_rows: Of the last step.
        solves: Of the last step: more than one where contacts begin or cease to slide.
        solve_time: Time that these took [s].
    """

    def __init__(
        self,
        model: newton.Model,
        client: Client | None = None,
        *,
        material: Material = _DEFAULT_MATERIAL,
        options: Options | None = None,
        on_unsolved: OnUnsolved = "warn",
    ) -> None:
        """Prepares to step a model.

        Args:
            model: The model.
            client: Where to solve; None: in this process.
            material: Contact parameters.
            options: Options of the solves; None: the default ones.
            on_unsolved: As for `sap_islands.mujoco.step`.

        Raises:
            InvalidArgument: The model has something that is not supported; the message names it.
        """
        check_on_unsolved(on_unsolved)
        super().__init__(model)
        self._layout = make_layout(model)
        self._coordinates = Coordinates(model)
        self._material = material
        self._options = options
        self._on_unsolved = on_unsolved
        self._landings = Landings()
        self._session = (client or sap_islands.connect("embedded:")).session()
        self._time = 0.0
        self.problem: Problem | None = None
        self.solution: Solution | None = None
        self.contact_rows = np.zeros(0, int)
        self.solves = 0
        self.solve_time = 0.0

    def step(
        self,
        state_in: newton.State,
        state_out: newton.State,
        control: newton.Control | None,
        contacts: newton.Contacts | None,
        dt: float,
        *,
        observables: SolverBase.Observables | None = None,
    ) -> None:
        """Advances `state_in` by a time step into `state_out`, which may be the same.

        Args:
            state_in: The state; `body_q` and `body_qd` belong to `joint_q` and `joint_qd`, as after
                `newton.eval_fk` or a step.
            state_out: Receives the state after the step.
            control: Targets and forces; None: those of the model.
            contacts: As `newton.CollisionPipeline.collide` found them in `state_in`.
            dt: The time step [s].
            observables: Must be None.

        Raises:
            SapError: The problem was refused; `state_out` is as it was.
        """
        if observables is not None:
            raise NotImplementedError("SapSolver has no observables; see SapSolver.solution")
        model, layout = self.model, self._layout
        control = control or model.control(clone_variables=False)
        dynamics = make_dynamics(model, layout, self._coordinates, state_in, control, dt)
        found = read_contacts(model, layout, contacts, dynamics, self._material, self._landings, dt)
        rows = make_rows(model, layout, self._coordinates, control, dynamics, dt)
        solution = self._solve(dynamics, found, rows, dt)
        report_unsolved(solution, self._on_unsolved, self._time)
        self._time += dt
        self.solution, self.contact_rows = solution, found.row
        moved = layout.velocity_of_dof >= 0
        qd = dynamics.qd.copy()
        qd[moved] = solution.velocity[layout.velocity_of_dof[moved]]
        self._coordinates.to_joint_axes(qd, layout.free_joints)
        q = self._coordinates.integrate(dynamics.q, qd, dt)
        if state_out is not state_in:
            state_out.body_q.assign(state_in.body_q)  # of kinematic bodies, which pass through
            state_out.body_qd.assign(state_in.body_qd)
        state_out.joint_q.assign(q.astype(np.float32))
        state_out.joint_qd.assign(qd.astype(np.float32))
        newton.eval_fk(
            model,
            state_out.joint_q,
            state_out.joint_qd,
            state_out,
            body_flag_filter=newton.BodyFlags.DYNAMIC,
        )
        landed = (found.landing > 0) & (solution.impulse[:, 2] > 0)
        self._landings.remember(found.shape, found.landing, landed, numpy_of(state_out.body_qd))

    def notify_model_changed(self, flags: int) -> None:
        """Reads the joints and bodies of the model again. All other numbers are read every step."""
        self._layout = make_layout(self.model)
        self._coordinates = Coordinates(self.model)

    def _solve(
        self, dynamics: Dynamics, found: ContactSet, rows: ConstraintRows, time_step: float
    ) -> Solution:
        """Solves until the targets of sliding contacts agree with the solution."""
        regularization = Regularization(
            beta=_REBOUND_BETA if found.lands_or_rebounds else None,
            sigma=self._material.slip_parameter,
            rule=self._material.rule,
            reference_time_step=self._material.reference_time_step,
        )
        slip_parameter = self._material.slip_parameter_of(time_step)
        self.solve_time = 0.0
        guess: Solution | None = None
        for self.solves in range(1, _MAX_SOLVES + 1):
            contacts, body_contacts = make_contacts(self._layout, dynamics, found, time_step)
            if guess is not None:
                first = found.num_of_trees
                contacts.guess_impulse = guess.impulse[:first]
                body_contacts.guess_impulse = guess.impulse[first:]
                rows.guess_impulse = guess.row_impulse
            self.problem = Problem(
                time_step=time_step,
                trees=dynamics.trees,
                bodies=dynamics.bodies,
                contacts=contacts,
                body_contacts=body_contacts,
                rows=rows,
                regularization=regularization,
            )
            start = time.perf_counter()
            solution = self._session.step(self.problem, self._options)
            self.solve_time += time.perf_counter() - start
            if not solution.solved or not len(found):
                break
            twist = dynamics.twists(self._layout, solution.velocity)
            if not found.update_shift(solution, twist, slip_parameter):
                break
            n = self._layout.num_tree_velocities
            dynamics.trees.guess_velocity = solution.velocity[:n]
            dynamics.bodies.guess_velocity = solution.velocity[n:].reshape(-1, 6)
            guess = solution
        return solution
