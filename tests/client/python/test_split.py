"""One scene over several servers: the bits of the undivided solution, or the scene stays whole."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands import aio
from sap_islands._library.native_solver import NativeSolver, embedded_client
from sap_islands._split import dealing, splitting
from sap_islands._split.shards import Shards, mask_of_shards
from sap_islands.problem_files import load_problem

from conftest import problem_files
from support.scenes import bits
from support.stacks import stacks

_ARRAYS = (
    "velocity",
    "impulse",
    "contact_velocity",
    "delassus_estimate",
    "row_impulse",
    "row_velocity",
    "angular_impulse",
    "island_of_tree",
)


@pytest.fixture(scope="module")
def solver() -> NativeSolver:
    """The solver in this process."""
    return NativeSolver(embedded_client(2))


@pytest.fixture(scope="module")
def scene() -> sap.Problem:
    """Large enough to be worth two servers of one thread."""
    return stacks(80, 40)


@pytest.fixture(scope="module")
def server() -> Iterator[sap.Client]:
    """A client of a server with one thread, which stands for several."""
    with sap.connect("embedded:process", server_arguments=["--threads", "1"]) as client:
        yield client


def in_shards(
    solver: NativeSolver, problem: sap.Problem, servers: int, mask: tuple[str, ...] = ()
) -> sap.Solution | None:
    """The solution from so many shards, whatever they cost; None: one island, or none."""
    forecast = solver.find_islands(problem)
    assert not isinstance(forecast, sap.SapError), forecast
    dealt = dealing.deal_largest_first(forecast.solve_time_s, servers)
    if len(dealt) < 2:
        return None
    shards = Shards(problem, forecast.island_of_tree, dealt)
    options = sap.Options(response_mask=mask_of_shards(mask))
    solutions = [solver.solve(shard.problem(), options, None) for shard in shards.shards]
    return shards.merge(solutions, mask)


class _Mixed:
    """Trees and bodies in many islands, with contacts of both forms, rows and optional arrays."""

    CONTACTS = 12
    BODY_CONTACTS = 10

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = np.random.default_rng(seed)
        self.num_trees = int(self.random.integers(4, 12))
        num_bodies = int(self.random.integers(4, 12))
        dofs = self.random.integers(1, 6, self.num_trees)
        self.dofs = np.append(dofs, np.full(num_bodies, 6))
        self.start = np.append(0, np.cumsum(self.dofs))
        self.group = self.random.integers(0, 6, len(self.dofs))  # islands are within groups

    def other_of_group(self, tree: int, among: Any) -> int:
        """Another tree of the group of this one, or the world."""
        other = int(self.random.choice(np.flatnonzero(self.group[among] == self.group[tree])))
        other = int(np.arange(len(self.group))[among][other])
        return sap.WORLD if other == tree else other

    def bodies(self) -> sap.RigidBodies:
        num_bodies = len(self.dofs) - self.num_trees
        return sap.RigidBodies(
            mass=2.0 if self.seed % 3 == 0 else self.random.uniform(0.5, 2, num_bodies),
            inertia=[0.1, 0.1, 0.1, 0, 0, 0],
            center_of_mass=self.random.uniform(-1, 1, (num_bodies, 3)),
            free_motion_velocity=self.random.uniform(-1, 1, (num_bodies, 6)),
        )

    def trees(self) -> sap.Trees:
        size = self.start[self.num_trees]
        guess = self.seed % 2 == 1
        trees = sap.Trees.from_blocks(
            [np.diag(self.random.uniform(0.5, 2, n)) for n in self.dofs[: self.num_trees]],
            self.random.uniform(-1, 1, size),
            self.random.uniform(-1, 1, size) if guess else (),
            np.arange(self.num_trees) if guess else (),
        )
        if self.seed % 3 == 2:
            self.couple(trees)
        return trees

    def couple(self, trees: sap.Trees) -> None:
        """Couples each tree with the one before it in its group."""
        pairs = []
        for a in range(self.num_trees):
            before = np.flatnonzero(self.group[:a] == self.group[a])
            pairs += [(a, int(before[-1]))] if before.size else []
        trees.coupled_a = np.array([a for a, _ in pairs], np.int32)
        trees.coupled_b = np.array([b for _, b in pairs], np.int32)
        sizes = [self.dofs[a] * self.dofs[b] for a, b in pairs]
        trees.coupling_block = self.random.uniform(-0.02, 0.02, sum(sizes))

    def contacts(self) -> sap.Contacts:
        random = self.random
        tree_a = random.integers(0, len(self.dofs), self.CONTACTS)
        tree_b = np.array([self.other_of_group(a, slice(None)) for a in tree_a])
        torsion = np.where(random.random(self.CONTACTS) < 0.5, 0.1, 0.0)
        sizes = 3 * (self.dofs[tree_a] + np.where(tree_b < 0, 0, self.dofs[tree_b]))
        pairs = np.stack((tree_a, tree_b), axis=1)
        by_parts = self.seed % 3 == 2
        return sap.Contacts(
            tree_a=() if by_parts else tree_a,
            tree_b=() if by_parts else tree_b,
            parts=(pairs >= 0).sum(axis=1) if by_parts else (),
            part_tree=pairs[pairs >= 0] if by_parts else (),
            jacobian=random.uniform(-1, 1, sizes.sum()),
            angular_jacobian=random.uniform(-1, 1, sizes[torsion > 0].sum()),
            signed_distance=random.uniform(-1e-2, 1e-3, self.CONTACTS),
            stiffness=1e4,
            relaxation_time=0.01,
            friction=random.uniform(0.1, 1, self.CONTACTS),
            torsional_friction=torsion,
            target_angular_velocity=random.uniform(-1, 1, ((torsion > 0).sum(), 3))
            if self.seed % 3 == 1
            else (),
        )

    def body_contacts(self) -> sap.BodyContacts:
        random, count = self.random, self.BODY_CONTACTS
        among = slice(self.num_trees, None)
        body_a = random.integers(0, len(self.dofs) - self.num_trees, count)
        tree_b = [self.other_of_group(self.num_trees + body, among) for body in body_a]
        normals = random.normal(size=(count, 3))
        return sap.BodyContacts(
            body_a=body_a,
            body_b=[sap.WORLD if tree < 0 else tree - self.num_trees for tree in tree_b],
            point=random.uniform(-1, 1, (count, 3)),
            normal=normals / np.linalg.norm(normals, axis=1, keepdims=True),
            signed_distance=random.uniform(-1e-2, 1e-3, count),
            stiffness=1e5,
            relaxation_time=0.0,
            friction=0.5,
            rolling_friction=random.uniform(0, 0.1, (count, 2)) if self.seed % 2 == 0 else (),
            surface_velocity=[0.1, 0, 0] if self.seed % 4 == 0 else (),
            law=np.full(count, sap.ContactLaw.SAP) if self.seed % 5 == 0 else (),
        )

    def rows(self) -> sap.ConstraintRows:
        rows = np.zeros((5, self.start[-1]))
        for row in rows:
            tree = int(self.random.integers(len(self.dofs)))
            for one in (tree, max(tree, self.other_of_group(tree, slice(None)))):
                row[self.start[one] + self.random.integers(self.dofs[one])] = 0.5
        return sap.ConstraintRows.from_dense(rows, force_lower=-5.0, stiffness=1e4)


def mixed(seed: int) -> sap.Problem:
    """A random problem of many islands."""
    maker = _Mixed(seed)
    return sap.Problem(
        0.01,
        trees=maker.trees(),
        bodies=maker.bodies(),
        contacts=maker.contacts(),
        body_contacts=maker.body_contacts(),
        rows=maker.rows(),
        regularization=sap.Regularization(sigma=1e-2) if seed % 4 == 1 else sap.Regularization(),
    )


def test_the_largest_goes_first_and_each_to_the_server_with_the_least() -> None:
    times = np.array([3.0, 1, 5, 2, 4, 3])
    assert dealing.deal_largest_first(times, 3) == [[1, 2], [3, 4], [0, 5]]
    assert dealing.deal_largest_first(np.ones(5), 2) == [[0, 2, 4], [1, 3]]
    assert dealing.deal_largest_first(np.array([1.0, 2]), 5) == [[1], [0]]
    assert dealing.deal_largest_first(np.empty(0), 3) == []


def test_servers_are_those_of_the_address_unless_a_number_says() -> None:
    assert dealing.count_servers(False, "a:1,b:2") == 1
    assert dealing.count_servers(True, "a:1,b:2,c:3") == 3
    assert dealing.count_servers(True, "a:1") == 1
    assert dealing.count_servers(True, "unix:/run/a,b") == 1
    assert dealing.count_servers(True, "dns:///127.0.0.1:1") == 1
    assert dealing.count_servers(True, "dns:///no-such-host.invalid:1") == 1
    assert dealing.count_servers(7, "proxy:1") == 7
    for wrong in (0, -1, 1.5, "2"):
        with pytest.raises(sap.InvalidArgument, match="split is"):
            dealing.count_servers(wrong, "a:1")  # type: ignore[arg-type]  # on purpose


def test_what_saves_less_than_it_costs_does_not_pay() -> None:
    def pays(times: Any, servers: int, threads: int, size: int = 0) -> bool:
        times = np.array(times)
        dealt = dealing.deal_largest_first(times, servers)
        return dealing.pays_off(times, dealt, threads, size)

    assert pays([2e-3] * 200, 4, 16)
    assert not pays([2e-3] * 16, 4, 16)  # a thread for each
    assert not pays([1.0, *[1e-3] * 100], 4, 16)  # one takes as long as before
    assert not pays([2e-6] * 800, 4, 1)
    assert not pays([1e-3] * 100, 4, 1, 1 << 40)
    assert not pays([], 4, 1)


def test_certified_problems_have_the_same_bits_in_shards(solver: NativeSolver) -> None:
    split = 0
    for path in problem_files():
        problem = load_problem(path)
        whole = None
        for servers in range(2, 6):
            solution = in_shards(solver, problem, servers)
            if solution is None:
                break
            whole = whole or bits(solver.solve(problem, None, None))
            assert bits(solution) == whole, (path, servers)
            split += 1
    assert split > 20


def test_random_problems_have_the_same_bits_in_shards(solver: NativeSolver) -> None:
    split = 0
    for seed in range(60):
        problem = mixed(seed)
        whole = bits(solver.solve(problem, None, None))
        for servers in (2, 3, 5):
            solution = in_shards(solver, problem, servers)
            if solution is not None:
                assert bits(solution) == whole, (seed, servers)
                split += 1
    assert split > 120


def test_shards_carry_the_loads_of_their_own_islands(solver: NativeSolver) -> None:
    split = 0
    for seed in range(20):
        problem = mixed(seed)
        problem.regularization = sap.Regularization(
            rule=sap.RegularizationRule.LOAD_PATH, load_reference_speed=0.05
        )
        problem.trees.coupled_a = problem.trees.coupled_b = ()  # not with this rule
        problem.trees.coupling_block = ()
        for group in (problem.trees, problem.bodies):
            group.initial_velocity = 0.5 * group.free_motion_velocity
        solution = in_shards(solver, problem, 3)
        if solution is not None:
            assert bits(solution) == bits(solver.solve(problem, None, None)), seed
            split += 1
    assert split > 10


def test_a_mask_returns_the_fields_it_names(solver: NativeSolver) -> None:
    problem = mixed(2)
    for name in (*_ARRAYS, "cost", "islands"):
        mask = (name,)
        solution = in_shards(solver, problem, 3, mask)
        assert solution is not None
        whole = solver.solve(problem, sap.Options(response_mask=mask), None)
        assert bits(solution) == bits(whole), name
        assert solution.timings == sap.Timings()


def test_a_scene_on_several_servers_has_the_bits_of_one(
    server: sap.Client, scene: sap.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_counts: list[int] = []
    combine = splitting.combine

    def count(shards: Shards, *others: Any) -> sap.Solution | None:
        shard_counts.append(len(shards.shards))
        return combine(shards, *others)

    monkeypatch.setattr(splitting, "combine", count)
    assert bits(server.solve(scene, split=3)) == bits(server.solve(scene))
    assert shard_counts == [3]

    async def solve() -> sap.Solution:
        async with aio.connect(server.address) as client:
            return await client.solve(scene, split=2)

    assert bits(asyncio.run(solve())) == bits(server.solve(scene))
    assert shard_counts == [3, 2]

    server.solve(scene, split=True)  # one address
    server.solve(scene, sap.Options(islands=False), split=3)
    server.solve(stacks(1, 60), split=3)
    server.solve(stacks(30, 1), split=3)
    assert shard_counts == [3, 2]


def test_the_event_loop_goes_on_while_a_name_is_looked_up(
    tcp_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop_went_on = threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        assert loop_went_on.wait(60)
        return [None]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def solve() -> sap.Solution:
        async with aio.connect(f"dns:///{tcp_address}") as client:
            solving = asyncio.ensure_future(client.solve(stacks(1, 2), split=True))
            await asyncio.sleep(0)
            loop_went_on.set()
            return await solving

    assert asyncio.run(solve()).solved


def test_the_deadline_counts_while_a_name_is_looked_up(
    tcp_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(*_: object, **__: object) -> list[object]:
        time.sleep(0.3)
        return [None]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with sap.connect(f"dns:///{tcp_address}") as client, pytest.raises(sap.DeadlineExceeded):
        client.solve(stacks(1, 2), split=True, timeout=0.2)


def test_errors_are_those_of_the_whole(server: sap.Client, scene: sap.Problem) -> None:
    def error_of(problem: sap.Problem, **arguments: Any) -> sap.InvalidArgument:
        with pytest.raises(sap.InvalidArgument) as raised:
            server.solve(problem, **arguments)
        return raised.value

    last = scene.body_contacts.count - 1
    friction = np.full(last + 1, 0.5)
    friction[last] = -0.3
    fault = stacks(80, 40)
    fault.body_contacts.friction = friction
    assert error_of(fault, split=3).field == f"body_contacts.friction[{last}]"
    fault = stacks(80, 40)
    fault.body_contacts.body_a = np.append(scene.body_contacts.body_a[:-1], 10**6)
    assert error_of(fault, split=3).message == error_of(fault).message
    options = sap.Options(response_mask=("speed",))
    assert error_of(scene, options=options, split=3).field == "options.response_mask.paths[0]"


def test_an_embedded_solver_never_splits(client: sap.Client) -> None:
    assert client.solve(mixed(1), split=3).solved
    with pytest.raises(sap.InvalidArgument, match="split"):
        client.solve(mixed(1), split=-1)


def test_a_split_without_the_library_says_what_is_missing(
    server: sap.Client, scene: sap.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAP_LIBRARY", "/no/such/file")
    splitting.island_finder.cache_clear()
    try:
        with pytest.raises(sap.Unavailable, match="split needs the C library to find islands"):
            server.solve(scene, split=2)
    finally:
        splitting.island_finder.cache_clear()
