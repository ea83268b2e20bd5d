"""The ledger: the problems that a client sent, in a session or in calls, and their outcomes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import sap_islands as sap

AHEAD = 3  # steps of a session in flight
MOST_VIOLATIONS = 5

Outcome = sap.Solution | sap.SapError


def ledger_problem(client: int, step: int) -> sap.Problem:
    """Four bodies on each other and a floor; always the same for the same numbers."""
    random = np.random.default_rng((client, step))
    count = 4
    velocity = random.uniform(-0.3, 0.3, (count, 6))
    velocity[:, 2] -= 0.1
    height = 0.1 + 0.2 * np.arange(count)
    center = np.column_stack([np.zeros(count), np.zeros(count), height])
    return sap.Problem(
        0.01,
        bodies=sap.RigidBodies(
            mass=[1.0, 0.8, 0.6, 0.4],
            inertia=[[0.004, 0.004, 0.004, 0, 0, 0]] * count,
            center_of_mass=center,
            free_motion_velocity=velocity,
            body_id=[3, 5, 7, 9],
        ),
        body_contacts=sap.BodyContacts(
            body_a=[0, 0, 1, 2, 3],
            body_b=[sap.WORLD, sap.WORLD, 0, 1, 2],
            point=[[-0.1, 0, 0], [0.1, 0, 0], [0, 0, 0.2], [0.05, 0, 0.4], [0, 0.05, 0.6]],
            normal=[0, 0, 1],
            signed_distance=0.0,
            stiffness=1e6,
            relaxation_time=0.01,
            friction=0.5,
        ),
    )


def bits(solution: sap.Solution) -> bytes:
    """What is a function of problem, guess and options: all of a solution but times."""
    fields = solution.fields()
    islands = fields.pop("islands")
    del fields["timings"], islands["solve_time_s"]
    return b"".join(np.asarray(array).tobytes() for array in (*fields.values(), *islands.values()))


class Ledger:
    """Drives one client until `stop`, and notes what is lost, doubled, out of order or different.

    Attributes:
        answered: Number of problems with an outcome.
        violations: What was wrong, in words; the first few.
    """

    def __init__(self, number: int, stop: threading.Event) -> None:
        self.answered = 0
        self.violations: list[str] = []
        self._number = number
        self._stop = stop

    def drive(
        self, work: str, open_client: Callable[[], AbstractContextManager[sap.Client]]
    ) -> None:
        """Drives "sessions" or "unary" calls with a client of its own."""
        try:
            with open_client() as served, sap.connect("embedded:", threads=1) as embedded:
                if work == "sessions":
                    self._drive_session(served, embedded)
                else:
                    self._drive_calls(served, embedded)
        except sap.SapError as error:
            self._violate(f"after {self.answered} outcomes: {error!r}")

    def _violate(self, what: str) -> None:
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(what)

    def _drive_session(self, served: sap.Client, embedded: sap.Client) -> None:
        sent = 0
        with served.session() as session, embedded.session() as reference:
            while session.in_flight or not self._stop.is_set():
                while session.in_flight < AHEAD and not self._stop.is_set():
                    sent += 1
                    session.send(ledger_problem(self._number, sent))
                outcome = session.receive()
                self.answered += 1
                reference.send(ledger_problem(self._number, self.answered))
                self._check_step(outcome, reference.receive())

    def _check_step(self, outcome: sap.StepOutcome, expected: sap.StepOutcome) -> None:
        if outcome.step_id != expected.step_id:
            self._violate(f"step {outcome.step_id} instead of {expected.step_id}")
        self._check(outcome.outcome, expected.outcome, f"step {expected.step_id}")
        if outcome.warm_started != expected.warm_started:
            self._violate(f"step {expected.step_id}: warm is {outcome.warm_started}")

    def _check(self, outcome: Outcome, expected: Outcome, which: str) -> None:
        if isinstance(outcome, sap.SapError):
            self._violate(f"{which} failed: {outcome!r}")
        elif isinstance(expected, sap.SapError) or bits(outcome) != bits(expected):
            self._violate(f"{which} has other bits")

    def _drive_calls(self, served: sap.Client, embedded: sap.Client) -> None:
        while not self._stop.is_set():
            problem = ledger_problem(self._number, self.answered + 1)
            try:
                outcome: Outcome = served.solve(problem)
            except sap.SapError as error:
                outcome = error
            self._check(outcome, embedded.solve(problem), f"call {self.answered + 1}")
            self.answered += 1
