"""The shards of a scene, which servers solve apart, and the solution of the scene from theirs.

A shard is a problem of its own: whole islands, in which everything keeps its order, so that they
are solved with the bits that they have in the whole. Trees without constraints are spread over the
shards: together the servers check all that one of them would.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.bodies import Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import BodyContacts, Contacts
from sap_islands.arrays import IntArray
from sap_islands.errors import Internal
from sap_islands.problem import Problem
from sap_islands.solution import Islands, Solution, Timings, encode_solution

GroupT = TypeVar("GroupT", bound=ArrayGroup)
_Indices = NDArray[np.int64]

_BODY_DOFS = 6
_REPORTS = tuple(name for name in Islands.__dataclass_fields__ if name != "swept")


def _starts(sizes: NDArray[Any]) -> _Indices:
    """Where each of consecutive ranges begins, and where the last ends."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _ranges(starts: _Indices, entries: _Indices) -> _Indices:
    """The indices of consecutive ranges, one after the other."""
    sizes = starts[entries + 1] - starts[entries]
    return np.repeat(starts[entries] - _starts(sizes)[:-1], sizes) + np.arange(sizes.sum())


def _flat(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array in one dimension; a single number or row, which stands for all, is repeated."""
    if array.size in (0, size):
        return array.ravel()
    return np.tile(array.ravel(), size // array.size)


def _pick(array: NDArray[Any], count: int, columns: int, entries: _Indices) -> NDArray[Any] | None:
    """The entries of an array with `columns` numbers each; None: it is absent or not read."""
    if array.size and (array.ndim == 0 or (columns > 1 and array.size == columns)):
        return array  # stands for all
    if array.size != count * columns or not array.size:
        return None
    picked: NDArray[Any] = array.reshape(count, columns)[entries]
    return picked if columns > 1 else picked.ravel()


def _pick_group(
    group: GroupT, count: int, entries: _Indices, other: dict[str, NDArray[Any] | None]
) -> GroupT:
    """The entries of a group, with `other` in the place of the arrays of these names."""
    kind = type(group)
    if not len(entries):
        return kind.none()
    arrays: dict[str, Any] = {}
    for name, field in kind._fields.items():
        if name in other:
            array = other[name]
        else:
            array = _pick(group.__dict__[name], count, field.columns, entries)
        if array is not None and array.size:
            arrays[name] = array
    for name in kind._groups:
        inner = group.__dict__[name]
        if inner is not None:
            arrays[name] = _pick_group(inner, count, entries, {})
    return kind.from_wire_arrays(**arrays)


class _Contacts(NamedTuple):
    """Contacts of one message.

    Attributes:
        group: The message.
        size: Number of contacts.
        first_tree: The number of its tree or body 0 among trees and bodies.
        trees: The trees of each, one contact after the other.
        tree_start: [size + 1] where those of each begin.
        angular: [size] which have a torsional or rolling coefficient > 0.
        jacobian_size: [size] numbers in the Jacobian of each.
    """

    group: Contacts | BodyContacts
    size: int
    first_tree: int
    trees: IntArray
    tree_start: _Indices
    angular: NDArray[np.bool_]
    jacobian_size: NDArray[Any]

    @property
    def first_trees(self) -> IntArray:
        """[size] the first tree of each."""
        first: IntArray = self.trees[self.tree_start[:-1]]
        return first


def _contacts(
    group: Contacts | BodyContacts, first_tree: int, a: Any, b: Any, dofs: NDArray[Any]
) -> _Contacts:
    count = group.count
    if isinstance(group, Contacts) and group.parts.size:
        trees, tree_start = group.part_tree, _starts(group.parts)
    else:
        pairs = np.stack((_flat(a, count), _flat(b, count)), axis=1)
        trees, tree_start = pairs[pairs >= 0], _starts((pairs >= 0).sum(axis=1))
    angular = np.zeros(count, bool)
    if group.torsional_friction.size:
        angular |= _flat(group.torsional_friction, count) > 0
    if group.rolling_friction.size:
        angular |= (_flat(group.rolling_friction, 2 * count).reshape(count, 2) > 0).any(axis=1)
    sizes = 3 * np.diff(_starts(dofs[first_tree + trees])[tree_start])
    return _Contacts(group, count, first_tree, trees, tree_start, angular, sizes)


class _Scene:
    """The whole problem, and where its trees, contacts and rows are in its arrays."""

    def __init__(self, problem: Problem, island_of_tree: IntArray) -> None:
        self.problem = problem
        self.island_of_tree = island_of_tree
        self.num_trees = problem.trees.count
        self.num_bodies = problem.bodies.count
        tree_dofs = _flat(problem.trees.dofs, self.num_trees).astype(np.int64)
        self.dofs = np.concatenate((tree_dofs, np.full(self.num_bodies, _BODY_DOFS)))
        self.velocity_start = _starts(self.dofs)
        contacts, between = problem.contacts, problem.body_contacts
        self.contacts = _contacts(contacts, 0, contacts.tree_a, contacts.tree_b, self.dofs)
        self.body_contacts = _contacts(
            between, self.num_trees, between.body_a, between.body_b, self.dofs
        )
        rows = problem.rows
        self.row_start = _starts(rows.entries)
        first_velocity = rows.velocity_index[self.row_start[:-1]].astype(np.int64)
        self.tree_of_row = np.searchsorted(self.velocity_start, first_velocity, "right") - 1


class Shard:
    """A shard of a scene: its islands, and what of the whole is in it, all ascending.

    Attributes:
        islands: Numbers of the islands.
        velocities: Numbers of the velocities.
        contacts: Numbers of contacts, then body contacts.
        rows: Numbers of the rows.
        angular: Numbers among the contacts with angular axes.
    """

    def __init__(
        self, scene: _Scene, islands: Sequence[int], tree_is_here: NDArray[np.bool_]
    ) -> None:
        self._scene = scene
        self.islands = np.array(islands, np.int64)
        self._trees = np.flatnonzero(tree_is_here)
        self.velocities = _ranges(scene.velocity_start, self._trees)
        by_jacobian, between = (
            tree_is_here[contacts.first_tree + contacts.first_trees]
            for contacts in (scene.contacts, scene.body_contacts)
        )
        self._contacts = np.flatnonzero(by_jacobian)
        self._body_contacts = np.flatnonzero(between)
        self.contacts = np.concatenate((self._contacts, scene.contacts.size + self._body_contacts))
        angular = np.concatenate((scene.contacts.angular, scene.body_contacts.angular))
        self.angular = np.flatnonzero(np.concatenate((by_jacobian, between))[angular])
        self.rows = np.flatnonzero(tree_is_here[scene.tree_of_row])

    def problem(self) -> Problem:
        """The shard as a problem."""
        scene = self._scene
        whole = scene.problem
        num_trees = int(np.searchsorted(self._trees, scene.num_trees))
        trees, bodies = self._trees[:num_trees], self._trees[num_trees:] - scene.num_trees
        place = np.full(len(scene.dofs) + 1, -1, np.int32)  # the last: the world
        place[self._trees] = np.arange(len(self._trees))
        return Problem(
            whole.time_step,
            trees=self._extract_trees(trees, place),
            bodies=_pick_group(
                whole.bodies,
                scene.num_bodies,
                bodies,
                {"mass": _flat(whole.bodies.mass, scene.num_bodies)[bodies]},
            ),
            contacts=self._extract_contacts(scene.contacts, self._contacts, place),
            body_contacts=self._extract_contacts(
                scene.body_contacts, self._body_contacts, place, num_trees
            ),
            regularization=whole.regularization,
            rows=self._extract_rows(),
        )

    def _extract_trees(self, trees: _Indices, place: IntArray) -> Trees:
        scene = self._scene
        whole = scene.problem.trees
        dofs = scene.dofs[: scene.num_trees]
        velocities = _ranges(scene.velocity_start, trees)
        matrix_start = _starts(dofs**2)
        others: dict[str, NDArray[Any] | None] = {
            "dofs": dofs[trees].astype(np.uint32),
            "dynamics_matrix": _flat(whole.dynamics_matrix, matrix_start[-1])[
                _ranges(matrix_start, trees)
            ],
        }
        for name in ("free_motion_velocity", "guess_velocity", "initial_velocity"):
            array = whole.__dict__[name]
            if array.size:
                others[name] = _flat(array, scene.velocity_start[scene.num_trees])[velocities]
        if whole.coupled_a.size:
            a, b = whole.coupled_a, whole.coupled_b
            pairs = np.flatnonzero(place[a] >= 0)  # coupled trees are in one island
            others["coupled_a"], others["coupled_b"] = place[a[pairs]], place[b[pairs]]
            block_start = _starts(dofs[a] * dofs[b])
            others["coupling_block"] = whole.coupling_block[_ranges(block_start, pairs)]
        return _pick_group(whole, scene.num_trees, trees, others)

    def _extract_contacts(
        self, contacts: _Contacts, entries: _Indices, place: IntArray, num_trees: int = 0
    ) -> Any:
        """Contacts of one message; `num_trees` of the shard come before the bodies it names."""
        group = contacts.group
        places = place[contacts.first_tree + contacts.trees] - num_trees
        others: dict[str, NDArray[Any] | None] = {
            "target_angular_velocity": _pick(
                group.target_angular_velocity,
                int(contacts.angular.sum()),
                3,
                np.flatnonzero(np.isin(np.flatnonzero(contacts.angular), entries)),
            )
        }
        if not (isinstance(group, Contacts) and group.parts.size):
            start = contacts.tree_start[entries]
            has_b = contacts.tree_start[entries + 1] - start > 1
            a = places[start].astype(np.int32)
            b = np.full(len(entries), -1, np.int32)
            b[has_b] = places[start[has_b] + 1]
        if isinstance(group, BodyContacts):
            others.update(body_a=a, body_b=b)
            return _pick_group(group, contacts.size, entries, others)
        angular_starts = _starts(np.where(contacts.angular, contacts.jacobian_size, 0))
        if group.parts.size:
            others["part_tree"] = places[_ranges(contacts.tree_start, entries)].astype(np.int32)
        else:
            others.update(tree_a=a, tree_b=b)
        others.update(
            jacobian=group.jacobian.ravel()[_ranges(_starts(contacts.jacobian_size), entries)],
            angular_jacobian=group.angular_jacobian.ravel()[_ranges(angular_starts, entries)],
        )
        return _pick_group(group, contacts.size, entries, others)

    def _extract_rows(self) -> ConstraintRows:
        scene = self._scene
        whole = scene.problem.rows
        entries = _ranges(scene.row_start, self.rows)
        place = np.empty(scene.velocity_start[-1], np.uint32)
        place[self.velocities] = np.arange(len(self.velocities))
        others: dict[str, NDArray[Any] | None] = {
            "velocity_index": place[whole.velocity_index[entries]],
            "coefficient": whole.coefficient[entries],
        }
        return _pick_group(whole, whole.count, self.rows, others)


class Shards:
    """A scene in shards."""

    def __init__(
        self, problem: Problem, island_of_tree: IntArray, dealt: Sequence[Sequence[int]]
    ) -> None:
        """Makes a shard of each list of islands."""
        self._scene = _Scene(problem, island_of_tree)
        shard_of_island = np.empty(sum(map(len, dealt)), np.int64)
        for number, islands in enumerate(dealt):
            shard_of_island[islands] = number
        free = island_of_tree < 0
        shard_of_tree = np.empty(len(island_of_tree), np.int64)
        shard_of_tree[~free] = shard_of_island[island_of_tree[~free]]
        shard_of_tree[free] = np.arange(free.sum()) % len(dealt)
        self.shards = [
            Shard(self._scene, islands, shard_of_tree == number)
            for number, islands in enumerate(dealt)
        ]

    def merge(self, solutions: Sequence[Solution], mask: Sequence[str]) -> Solution:
        """The solution of the scene from those of its shards, with the bits of the undivided one.

        Args:
            solutions: Of the shards, with the fields of `mask_of_shards`. Each phase takes as long
                as in the slowest shard.
            mask: The response mask of the scene.

        Raises:
            Internal: A solution does not fit its shard.
        """
        scene = self._scene
        num_contacts = scene.contacts.size + scene.body_contacts.size
        num_angular = int(scene.contacts.angular.sum() + scene.body_contacts.angular.sum())
        num_rows = scene.problem.rows.count
        outputs = {  # shape, and where the entries of a shard are: an attribute of Shard
            "velocity": ((int(scene.velocity_start[-1]),), "velocities"),
            "impulse": ((num_contacts, 3), "contacts"),
            "contact_velocity": ((num_contacts, 3), "contacts"),
            "delassus_estimate": ((num_contacts,), "contacts"),
            "row_impulse": ((num_rows,), "rows"),
            "row_velocity": ((num_rows,), "rows"),
            "angular_impulse": ((num_angular, 3), "angular"),
        }
        values: dict[str, Any] = {}
        for name, (shape, places) in outputs.items():
            if mask and name not in mask:
                continue
            whole = np.zeros(shape)
            for solution, shard in zip(solutions, self.shards, strict=True):
                _scatter(getattr(solution, name), getattr(shard, places), whole)
            values[name] = whole
        if not mask or "island_of_tree" in mask:
            values["island_of_tree"] = scene.island_of_tree
        reports = self._merge_reports(solutions, mask)
        if not mask or "cost" in mask:
            # In the order of the solver, which decides the bits of the sum.
            values["cost"] = functools.reduce(operator.add, reports["cost"].tolist(), 0.0)
        if not mask or "islands" in mask:
            values["islands"] = reports
        if not mask or "timings" in mask:
            values["timings"] = {
                name: max(getattr(solution.timings, name) for solution in solutions)
                for name in Timings.__dataclass_fields__
            }
        return Solution(encode_solution(values))

    def _merge_reports(
        self, solutions: Sequence[Solution], mask: Sequence[str]
    ) -> dict[str, NDArray[Any]]:
        if mask and "islands" not in mask and "cost" not in mask:
            return {}
        count = sum(len(shard.islands) for shard in self.shards)
        reports: dict[str, NDArray[Any]] = {}
        for name in _REPORTS:
            of_shards = [getattr(solution.islands, name) for solution in solutions]
            reports[name] = np.zeros(count, of_shards[0].dtype)
            for values, shard in zip(of_shards, self.shards, strict=True):
                _scatter(values, shard.islands, reports[name])
        swept = [
            shard.islands[solution.islands.swept]
            for solution, shard in zip(solutions, self.shards, strict=True)
        ]
        reports["swept"] = np.sort(np.concatenate(swept)).astype(np.uint32)
        return reports


def mask_of_shards(mask: tuple[str, ...]) -> tuple[str, ...]:
    """The response mask of the shards: costs are summed by island."""
    return (*mask, "islands") if "cost" in mask and "islands" not in mask else mask


def _scatter(values: NDArray[Any], places: _Indices, whole: NDArray[Any]) -> None:
    if len(values) != len(places):
        raise Internal("the answer to a shard of the scene does not fit it")
    whole[places] = values
