"""Builds the problem of a MultibodyPlant and its context."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyConstraintId
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake import dynamics as dynamics_of
from sap_islands.drake.constraint_parameters import find_constraints
from sap_islands.drake.constraint_rows import Rows, RowSource, make_rows
from sap_islands.drake.constraints import Named
from sap_islands.drake.contact_points import Points, find_points
from sap_islands.drake.contacts import SIGMA, make_contacts
from sap_islands.drake.dynamics import Dynamics
from sap_islands.drake.layout import Layout, layout_of
from sap_islands.drake.stiction import find_stiction_tolerance
from sap_islands.drake.unsupported_features import JOINT_LIMITS, check_supported
from sap_islands.problem import Problem, Regularization, RegularizationRule, Trees

NO_CONSTRAINTS: Mapping[MultibodyConstraintId, Named] = {}


class Parts(NamedTuple):
    """Data that the results of a step need in addition to its problem."""

    layout: Layout
    dynamics: Dynamics
    rows: Rows
    problem: Problem
    points: Points
    frames: FloatArray


class BuiltProblem(NamedTuple):
    """A problem, and how it maps to the plant.

    Attributes:
        problem: Its trees are those of the plant; locked joints have no velocities.
        bodies: [C, 2] indices of bodies A and B of each contact.
        rows: [R] what each constraint row belongs to.
        velocities: [n] index in the plant's v of each velocity of the problem.
        parts: What the results of the step need beyond the problem.
    """

    problem: Problem
    bodies: IntArray
    rows: list[RowSource]
    velocities: IntArray
    parts: Parts


def build_problem(
    plant: MultibodyPlant,
    context: Context,
    *,
    constraints: Mapping[MultibodyConstraintId, Named] = NO_CONSTRAINTS,
    stiction_tolerance: float | None = None,
    load_path: bool = False,
    rigid: bool = False,
    ignore: Collection[str] = (),
) -> BuiltProblem:
    """Builds the contact problem of one discrete step.

    Args:
        plant: A finalized discrete plant, connected to its scene graph.
        context: The context of the plant, from `plant.GetMyContextFromRoot`.
        constraints: As for `step`.
        stiction_tolerance: As for `step`.
        load_path: As for `step`.
        rigid: As for `step`.
        ignore: As for `step`.

    Raises:
        InvalidArgument: The plant is continuous, it has an unsupported feature that `ignore` does
            not name, `ignore` has an unknown name, or the parameters of a constraint cannot be
            found.
    """
    check_supported(plant, context, ignore)
    layout = layout_of(plant, context)
    dynamics = dynamics_of.evaluate(plant, context, layout)
    points = find_points(plant, context, layout)
    contacts, frames = make_contacts(plant, context, layout, dynamics.diagonal, points)
    if contacts.hunt_crossley is not None and stiction_tolerance is None:
        stiction_tolerance = find_stiction_tolerance(plant, context)
    active = find_constraints(plant, context, constraints)
    if rigid:
        regularization = Regularization.rigid()
    else:
        beta = plant.get_sap_near_rigid_threshold()
        regularization = Regularization(beta=beta, sigma=SIGMA)
    regularization.stiction_speed = stiction_tolerance
    with_limits = JOINT_LIMITS not in ignore
    beta_of_rows = regularization.row_beta
    rows = make_rows(plant, context, layout, dynamics, active, with_limits, beta_of_rows)
    problem = Problem(
        time_step=plant.time_step(),
        trees=Trees.from_wire_arrays(
            dofs=layout.dofs,
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            tree_id=layout.names,
        ),
        contacts=contacts,
        rows=rows.problem_rows(),
        regularization=regularization,
    )
    if load_path:
        contacts.delassus_estimate = np.empty(0)
        problem.trees.initial_velocity = plant.GetVelocities(context)[layout.velocities]
        problem.regularization.rule = RegularizationRule.LOAD_PATH
    parts = Parts(layout, dynamics, rows, problem, points, frames)
    return BuiltProblem(problem, points.bodies, rows.sources, layout.velocity_numbers, parts)
