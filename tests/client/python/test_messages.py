"""Messages that the library writes and reads agree with protobuf's Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sap_islands as sap

from conftest import problem_files
from support.scenes import balls_on_floor, linked_balls, same_bits
from support.schema import problem_pb2, solution_pb2


@pytest.mark.parametrize("path", problem_files()[:12], ids=lambda path: path.name.split(".")[0])
def test_problems_are_what_protobuf_reads_and_writes(path: object) -> None:
    problem = sap.load_problem(str(path))
    message = problem_pb2.ContactProblem.FromString(problem.to_bytes())
    assert message.time_step == problem.time_step
    assert np.array_equal(message.contacts.jacobian, problem.contacts.jacobian)
    assert np.array_equal(message.contacts.tree_b, problem.contacts.tree_b)
    assert np.array_equal(message.trees.dofs, problem.trees.dofs)
    assert np.array_equal(message.bodies.inertia, problem.bodies.inertia.ravel())
    assert message.regularization.HasField("beta") == (problem.regularization.beta is not None)
    assert sap.Problem.from_bytes(message.SerializeToString()).to_bytes() == problem.to_bytes()


def test_every_array_of_a_problem_passes_through_bytes() -> None:
    message = problem_pb2.ContactProblem(time_step=0.25)
    rng = np.random.default_rng(3)
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or field.name == "regularization":
            continue
        fill(getattr(message, field.name), rng)
    again = problem_pb2.ContactProblem.FromString(
        sap.Problem.from_bytes(message.SerializeToString()).to_bytes()
    )
    again.ClearField("regularization")
    assert again == message


def fill(group: Any, rng: np.random.Generator) -> None:
    for field in group.DESCRIPTOR.fields:
        if field.message_type is not None:
            fill(getattr(group, field.name), rng)
        elif field.enum_type is not None:
            group.law.extend(rng.integers(0, 4, 12).tolist())
        elif field.type == field.TYPE_DOUBLE:
            getattr(group, field.name).extend(rng.standard_normal(12).tolist())
        else:
            getattr(group, field.name).extend(rng.integers(0, 2**31, 12).tolist())


def test_arrays_of_a_group_in_a_group_are_repeated_for_its_contacts() -> None:
    hunt_crossley = sap.HuntCrossley(elastic_force=[1.0, 2.0], dissipation=0.5)
    contacts = sap.Contacts(
        tree_a=[0, 1], law=sap.ContactLaw.HUNT_CROSSLEY_SIMILAR, hunt_crossley=hunt_crossley
    )
    message = problem_pb2.ContactProblem.FromString(
        sap.Problem(0.5, contacts=contacts).to_bytes()
    ).contacts
    assert list(message.law) == [problem_pb2.CONTACT_LAW_HUNT_CROSSLEY_SIMILAR] * 2
    assert list(message.hunt_crossley.elastic_force) == [1.0, 2.0]
    assert list(message.hunt_crossley.dissipation) == [0.5, 0.5]
    assert not message.hunt_crossley.lagged_normal_impulse


def test_an_empty_group_in_a_group_is_read_as_absent() -> None:
    contacts = sap.Contacts(tree_a=[0], hunt_crossley=sap.HuntCrossley())
    again = sap.Problem.from_bytes(sap.Problem(0.5, contacts=contacts).to_bytes())
    assert again.contacts.hunt_crossley is None
    assert again.contacts.tree_a.tolist() == [0]
    assert sap.Contacts().hunt_crossley is None


def test_rows_of_the_contacts_with_angular_axes_are_not_repeated() -> None:
    contacts = sap.Contacts(tree_a=[0, 0], target_angular_velocity=[[1.0, 2.0, 3.0]])
    message = problem_pb2.ContactProblem.FromString(sap.Problem(0.5, contacts=contacts).to_bytes())
    assert list(message.contacts.target_angular_velocity) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("law", "error"),
    [
        ([1, 128], r"contacts\.law\[1\] is 128; it must be in \[0, 127\]"),
        (np.array([200], np.uint8), r"contacts\.law\[0\] is 200"),
        ([-1], r"contacts\.law\[0\] is -1"),
        ([0.5], r"contacts\.law has type float64; integers are needed"),
    ],
)
def test_laws_that_are_no_small_integers_are_refused(law: object, error: str) -> None:
    with pytest.raises(sap.InvalidArgument, match=error):
        sap.Contacts(law=law)  # type: ignore[arg-type]  # on purpose


def test_unknown_laws_of_a_message_are_refused_by_name() -> None:
    message = problem_pb2.ContactProblem()
    message.contacts.law.extend([300, -1])
    with pytest.raises(sap.InvalidArgument, match=r"contacts\.law\[0\] is 300"):
        sap.Problem.from_bytes(message.SerializeToString())


def test_a_group_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(sap.InvalidArgument, match="hunt_crossley has type dict; HuntCrossley"):
        sap.Contacts(hunt_crossley={})  # type: ignore[arg-type]  # on purpose


def test_single_numbers_and_rows_are_repeated() -> None:
    message = problem_pb2.ContactProblem.FromString(balls_on_floor([0.0] * 3).to_bytes())
    assert list(message.bodies.mass) == [1, 1, 1]
    assert list(message.bodies.inertia) == [0.004, 0.004, 0.004, 0, 0, 0] * 3
    assert list(message.body_contacts.friction) == [0.5] * 3
    assert list(message.body_contacts.normal) == [0, 0, 1] * 3


def test_arrays_of_the_right_type_are_not_copied() -> None:
    friction = np.array([0.1, 0.2])
    contacts = sap.Contacts(friction=friction)
    assert contacts.friction is friction
    assert sap.Contacts(friction=friction[::-1]).friction.tolist() == [0.2, 0.1]


def test_solution_is_what_protobuf_reads(client: sap.Client) -> None:
    solution = client.solve(balls_on_floor([0.0, 0.7, 3.0]))
    message = solution_pb2.ContactSolution.FromString(solution.to_bytes())
    assert list(message.velocity) == solution.velocity.tolist()
    assert list(message.impulse) == solution.impulse.ravel().tolist()
    assert list(message.island_of_tree) == solution.island_of_tree.tolist()
    assert message.cost == solution.cost
    islands = solution.islands
    for field in solution_pb2.IslandReports.DESCRIPTOR.fields:
        assert list(getattr(message.islands, field.name)) == getattr(islands, field.name).tolist()
    assert message.timings.solve_s == solution.timings.solve_s
    assert not solution.velocity.flags.writeable


def test_solutions_pass_through_bytes(client: sap.Client) -> None:
    for options in (None, sap.Options(response_mask=("velocity", "cost"))):
        solution = client.solve(linked_balls(3), options)
        again = sap.Solution.from_bytes(solution.to_bytes())
        assert same_bits(again, solution)
        assert again.timings == solution.timings
        assert not again.velocity.flags.writeable


def test_fields_of_later_versions_are_skipped_and_malformed_messages_refused() -> None:
    later = b"\xa2\x1f\x02ab"  # field 500 with two bytes
    assert sap.Problem.from_bytes(sap.Problem(0.25).to_bytes() + later).time_step == 0.25
    assert sap.Solution.from_bytes(later).velocity.size == 0
    for malformed in (b"\x0a\x7f", b"\x0b"):
        with pytest.raises(sap.InvalidArgument, match=r"no sap\.v1\.ContactProblem"):
            sap.Problem.from_bytes(malformed)
        with pytest.raises(sap.InvalidArgument, match=r"no sap\.v1\.ContactSolution"):
            sap.Solution.from_bytes(malformed)
