"""Published robots that Drake's parser reads, stepped by Drake with SAP: contacts and joint limits.

Drake's parser of MuJoCo's format has neither friction loss nor tendons, and refuses meshes that
are not .obj: of the robots of robots.py it reads those without meshes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlant, MultibodyPlantConfig
from pydrake.systems.framework import DiagramBuilder
from sap_islands.drake import build_problem
from sap_islands.problem import Problem

import robots
from drake_peer import Timer

TIME_STEP = 0.005
ROBOTS = ("humanoid", "humanoid CMU", "quadruped")
CONTROL = 0.3  # share of the effort limit of the random actuation
SETTLE, EVERY = 200, 5  # steps
REPEATS = 6


@dataclass
class DrakeStep:
    problem: Problem  # what Drake's solver is given
    velocity: np.ndarray  # Drake's answer, in the order of the problem
    solve_s: float  # inside SapSolver::SolveWithGuess, once, as in a step
    warm_s: float  # least of many in a row
    iterations: int


class Scene:
    def __init__(self, name: str, timer: Timer):
        logging.getLogger("drake").setLevel(logging.ERROR)  # on elements that are not supported
        self._timer = timer
        builder = DiagramBuilder()
        self._plant, _ = AddMultibodyPlant(
            MultibodyPlantConfig(
                time_step=TIME_STEP, contact_model="point", discrete_contact_approximation="sap"
            ),
            builder,
        )
        Parser(self._plant).AddModels(str(robots.path_of(robots.ROBOTS[name])))
        self._plant.Finalize()
        self._diagram = builder.Build()
        self._root = self._diagram.CreateDefaultContext()
        self._context = self._plant.GetMyMutableContextFromRoot(self._root)
        limit = self._plant.GetEffortUpperLimits()
        self._reach = CONTROL * np.where(np.isfinite(limit), limit, 1.0)
        self._random = np.random.default_rng(1)

    def _update(self) -> np.ndarray:
        """The state after a step. Its solve is in a copy, so the next call solves again."""
        copy = self._root.Clone()
        self._diagram.ExecuteForcedEvents(copy)
        state = self._plant.GetMyContextFromRoot(copy).get_discrete_state_vector()
        return state.CopyToVector()

    def steps(self, count: int) -> Iterator[DrakeStep]:
        plant, context, timer = self._plant, self._context, self._timer
        for i in range(SETTLE + count * EVERY):
            if i % robots.CONTROL_STEPS == 0:
                effort = self._reach * self._random.uniform(-1, 1, len(self._reach))
                plant.get_actuation_input_port().FixValue(context, effort)
            timed = i >= SETTLE and (i - SETTLE) % EVERY == 0
            if timed:
                built = build_problem(plant, context)
                guess = plant.GetVelocities(context)[built.velocities]
                seconds = []
                for _ in range(REPEATS):
                    timer.Reset()
                    updated = self._update()
                    seconds.append(timer.SolveSeconds())
                iterations = timer.Iterations()
            else:
                updated = self._update()
            context.SetDiscreteState(updated)
            if timed and seconds[0] > 0:
                velocity = plant.GetVelocities(context)[built.velocities]
                built.problem.trees.guess_velocity = guess
                yield DrakeStep(built.problem, velocity, seconds[0], min(seconds), iterations)
