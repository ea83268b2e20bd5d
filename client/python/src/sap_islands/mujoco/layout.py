"""What of a MuJoCo model does not change: its trees, and where their matrices are.

Found out once for a model. What follows from numbers that a caller may change between steps
(damping, gains, ranges of joints) is remembered together with these numbers, and made anew when
they differ.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import mujoco
import numpy as np

from sap_islands.arrays import IntArray, UIntArray
from sap_islands.jacobian import IndexArray

T = TypeVar("T")


@dataclass(frozen=True)
class EqualTrees:
    """Trees of n degrees of freedom: their dofs [g, n], and where their blocks are [g, n²]."""

    n: int
    dofs: IndexArray
    block: IndexArray


@dataclass(frozen=True)
class Layout:
    """Where things are; fixed for a model.

    Attributes:
        dofs: [T] degrees of freedom of each tree.
        sizes: [T + 1] the same, and 0 for what is fixed to the world.
        names: [T] of the trees, which stay the same from step to step.
        first_dof: [T] number of its first one.
        tree_of_dof: [nv].
        root_of_dof: [nv] first body of its tree.
        tree_of_body: [nbody], -1: fixed to the world.
        block_start: [T + 1] where A_t starts in the array of all blocks.
        entries: [2 nnz] where MuJoCo's sparse M goes in the blocks, below and above the diagonal.
        diagonal: [nv] where the diagonal is in the blocks.
        moving_dofs: For each size n, the dofs that move a body [nbody, n]; nv: one that does not.
        simple_joints: hinges and slides.
        ball_joints: balls.
        groups: trees of equal size together.
    """

    dofs: UIntArray
    sizes: IndexArray
    names: UIntArray
    first_dof: IndexArray
    tree_of_dof: IndexArray
    root_of_dof: IndexArray
    tree_of_body: IntArray
    block_start: IndexArray
    entries: IndexArray
    diagonal: IndexArray
    moving_dofs: dict[int, IndexArray]
    simple_joints: IndexArray
    ball_joints: IndexArray
    groups: list[EqualTrees]
    _remembered: dict[str, tuple[object, Any]] = field(default_factory=dict)

    def index(self, row: IndexArray, column: IndexArray) -> IndexArray:
        """Where the entries of pairs of dofs of the same tree are in the array of blocks."""
        return _index(row, column, self.tree_of_dof, self.first_dof, self.block_start, self.sizes)

    def group_trees(self, trees: IndexArray) -> list[EqualTrees]:
        """Some of the trees, those of equal size together."""
        return _group_trees(trees, self.sizes, self.first_dof, self.block_start)

    def remember(self, name: str, key: object, make: Callable[[], T]) -> T:
        """What `make` has made of the numbers in `key`, which are compared with the last ones."""
        found = self._remembered.get(name)
        if found is None or found[0] != key:
            found = self._remembered[name] = (key, make())
        made: T = found[1]
        return made


_layouts: weakref.WeakKeyDictionary[mujoco.MjModel, Layout] = weakref.WeakKeyDictionary()


def layout_of(model: mujoco.MjModel) -> Layout:
    """The layout of a model, which is found out once."""
    layout = _layouts.get(model)
    if layout is None:
        layout = _layouts[model] = _make_layout(model)
    return layout


def _make_layout(model: mujoco.MjModel) -> Layout:
    dofs = model.tree_dofnum.astype(np.int64)
    sizes = np.append(dofs, 0)
    first_dof = model.tree_dofadr.astype(np.int64)
    tree_of_dof = model.dof_treeid.astype(np.int64)
    block_start = np.concatenate(([0], np.cumsum(dofs**2)))
    row = np.repeat(np.arange(model.nv), model.M_rownnz)
    column = model.M_colind.astype(np.int64)
    where = (tree_of_dof, first_dof, block_start, sizes)
    every = np.arange(model.nv)
    simple = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return Layout(
        dofs=dofs.astype(np.uint32),
        sizes=sizes,
        names=np.arange(len(dofs), dtype=np.uint32),
        first_dof=first_dof,
        tree_of_dof=tree_of_dof,
        root_of_dof=model.body_rootid[model.dof_bodyid].astype(np.int64),
        tree_of_body=model.body_treeid.astype(np.int32),
        block_start=block_start,
        entries=np.concatenate((_index(row, column, *where), _index(column, row, *where))),
        diagonal=_index(every, every, *where),
        moving_dofs=_moving_dofs(model, sizes, first_dof),
        simple_joints=np.flatnonzero(np.isin(model.jnt_type, simple)),
        ball_joints=np.flatnonzero(model.jnt_type == int(mujoco.mjtJoint.mjJNT_BALL)),
        groups=_group_trees(np.arange(len(dofs)), sizes, first_dof, block_start),
    )


def _index(
    row: IndexArray,
    column: IndexArray,
    tree_of_dof: IndexArray,
    first_dof: IndexArray,
    block_start: IndexArray,
    sizes: IndexArray,
) -> IndexArray:
    tree = tree_of_dof[row]
    first = first_dof[tree]
    place: IndexArray = block_start[tree] + column - first
    return place + (row - first) * sizes[tree]


def _group_trees(
    trees: IndexArray, sizes: IndexArray, first_dof: IndexArray, block_start: IndexArray
) -> list[EqualTrees]:
    groups = []
    for n in np.unique(sizes[trees]).tolist():
        equal = trees[sizes[trees] == n]
        span = np.arange(n * n)
        groups.append(
            EqualTrees(n, first_dof[equal][:, None] + span[:n], block_start[equal][:, None] + span)
        )
    return groups


def _moving_dofs(
    model: mujoco.MjModel, sizes: IndexArray, first_dof: IndexArray
) -> dict[int, IndexArray]:
    tree_of_body = model.body_treeid
    moving: dict[int, IndexArray] = {
        n: np.full((model.nbody, n), model.nv) for n in np.unique(sizes).tolist() if n
    }
    for body in range(1, model.nbody):  # parents come first
        tree = tree_of_body[body]
        if tree < 0:
            continue
        dofs = moving[int(sizes[tree])][body]
        parent = model.body_parentid[body]
        if tree_of_body[parent] == tree:
            dofs[:] = moving[int(sizes[tree])][parent]
        first = model.body_dofadr[body]
        own = np.arange(first, first + model.body_dofnum[body])
        dofs[own - first_dof[tree]] = own
    return moving
