"""Bodies at rest: boxes on a floor of which some slide, left out and all awake; mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import sap_islands as sap

HORIZON, TOLERANCE, STEP = 0.05, 1e-4, 0.005
HALF, MASS, STIFFNESS, GRAVITY = 0.05, 1.0, 1e6, 9.81
CORNERS = np.array([[s, t, -HALF] for s in (-HALF, HALF) for t in (-HALF, HALF)])
COUNT = 40
MOVING = np.arange(0, COUNT, 10)


class Boxes:
    """Boxes in a row on the floor, half a meter apart; those of MOVING slide along x."""

    def __init__(self) -> None:
        self.position = np.zeros((COUNT, 3))
        self.position[:, 1] = 0.5 * np.arange(COUNT)
        self.position[:, 2] = HALF - MASS * GRAVITY / (4 * STIFFNESS)
        self.velocity = np.zeros((COUNT, 6))
        self.velocity[MOVING, 0] = 1.0

    def problem(self, who: np.ndarray, time_step: float = STEP) -> sap.Problem:
        """The step of some boxes, which do not turn."""
        count = len(who)
        points = (self.position[who][:, None] + CORNERS).reshape(-1, 3)
        free = self.velocity[who] - [0, 0, GRAVITY * time_step, 0, 0, 0]
        inertia = MASS * (2 * HALF) ** 2 / 6
        return sap.Problem(
            time_step,
            bodies=sap.RigidBodies(
                mass=np.full(count, MASS),
                inertia=[inertia, inertia, inertia, 0, 0, 0],
                center_of_mass=self.position[who],
                free_motion_velocity=free,
                guess_velocity=self.velocity[who],
                initial_velocity=self.velocity[who],
                body_id=who.astype(np.uint32),
            ),
            body_contacts=sap.BodyContacts(
                body_a=np.repeat(np.arange(count), 4),
                body_b=sap.WORLD,
                point=points * [1, 1, 0.5],
                normal=np.tile([0.0, 0.0, 1.0], (4 * count, 1)),
                signed_distance=points[:, 2],
                stiffness=STIFFNESS,
                relaxation_time=STEP,
                friction=0.2,
            ),
            regularization=sap.Regularization(beta=0.0, reference_time_step=STEP),
        )

    def move(self, moves: sap.BodyMoves) -> None:
        """Poses follow velocities."""
        who = moves.body_id
        self.position[who] += moves.duration[:, None] * moves.velocity[:, :3]
        self.velocity[who] = moves.velocity

    def advance(self, who: np.ndarray, solution: sap.Solution) -> None:
        """An ordinary step."""
        velocity = solution.velocity.reshape(-1, 6)
        self.move(sap.BodyMoves(who.astype(np.uint32), np.full(len(who), STEP), velocity))


def left_out_step(client: sap.Client, boxes: Boxes, resting: sap.RestingIslands) -> int:
    """A step without the boxes at rest: how many took it."""
    options = sap.Options(rest=sap.Rest(horizon=resting.horizon))
    due = resting.due()
    if due.body_id.size:
        problem = boxes.problem(due.body_id, resting.horizon)
        steps = resting.take_long_steps(problem, client.solve(problem, options))
        boxes.move(steps.resting)
        boxes.move(steps.woken)
    who = np.nonzero(~resting.rests(np.arange(COUNT)))[0]
    problem = boxes.problem(who)
    solution = client.solve(problem, options)
    resting.take_step(problem, solution)
    boxes.advance(who, solution)
    return len(who)


def test_boxes_at_rest_are_left_out_and_the_others_have_the_same_bits() -> None:
    awake, left_out = Boxes(), Boxes()
    resting = sap.RestingIslands(HORIZON, TOLERANCE, STEP)
    everyone = np.arange(COUNT)
    with sap.connect("embedded:", threads=1) as client:
        for i in range(40):
            awake.advance(everyone, client.solve(awake.problem(everyone)))
            took = left_out_step(client, left_out, resting)
            assert took == COUNT if i == 0 else took <= COUNT // 5
            assert np.array_equal(left_out.velocity[MOVING], awake.velocity[MOVING])
            assert np.array_equal(left_out.position[MOVING], awake.position[MOVING])
            assert abs(left_out.position - awake.position).max() < TOLERANCE
    assert resting.counts.long_steps >= 3 * (COUNT - len(MOVING))
    assert resting.counts.long_steps_refused == 0


def at_rest() -> sap.RestingIslands:
    """Who rests after one step: all but those that slide."""
    resting = sap.RestingIslands(HORIZON, TOLERANCE, STEP)
    with sap.connect("embedded:", threads=1) as client:
        left_out_step(client, Boxes(), resting)
    return resting


def test_wakes_move_nothing_after_a_short_step_and_are_counted_by_reason() -> None:
    resting = at_rest()
    assert resting.rests([0, 1]).tolist() == [False, True]
    assert resting.island_of([0])[0] == -1
    moves = resting.wake([0, 1, 1])
    assert moves.body_id.tolist() == [1]
    assert moves.duration.tolist() == [0.0]
    assert moves.velocity.shape == (1, 6)
    resting.wake(2, sap.WakeReason.INPUT)
    assert resting.counts == (1, 1, 0, 0)
    assert not resting.rests([1, 2]).any()
    woken = resting.set_time_step(2 * STEP)
    assert len(woken.body_id) == COUNT - len(MOVING) - 2
    assert resting.horizon == HORIZON
    assert resting.time_step == 2 * STEP


def test_horizons_are_whole_time_steps() -> None:
    assert sap.RestingIslands(0.013, 1e-4, 0.005).horizon == 0.015


@pytest.mark.parametrize("name", ["horizon", "tolerance", "time_step"])
def test_rules_out_of_range_are_refused_by_name(name: str) -> None:
    for value in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(sap.InvalidArgument) as caught:
            sap.RestingIslands(**{name: value})
        assert caught.value.field == name


def test_answers_that_do_not_fit_are_refused_by_name() -> None:
    boxes, resting = Boxes(), at_rest()
    with sap.connect("embedded:", threads=1) as client:
        problem = boxes.problem(MOVING)
        with pytest.raises(sap.InvalidArgument, match=r"options\.rest asks for it"):
            resting.take_step(problem, client.solve(problem))
        options = sap.Options(rest=sap.Rest(horizon=HORIZON))
        everyone = boxes.problem(np.arange(COUNT))
        with pytest.raises(sap.InvalidArgument, match=r"bodies.body_id\[1\] is 1, which rests"):
            resting.take_step(everyone, client.solve(everyone, options))
        with pytest.raises(sap.InvalidArgument, match="time_step is"):
            resting.take_long_steps(problem, client.solve(problem, options))
    with pytest.raises(sap.InvalidArgument, match="reason is 7"):
        resting.wake([1], 7)  # type: ignore[arg-type]
