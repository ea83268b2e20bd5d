"""Layout of a model of Newton: free bodies, trees, and features that are refused."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import newton
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument

Indices: TypeAlias = NDArray[np.int_]

_TYPE = newton.JointType
# Counts that a model may have: elements that are solved, and elements without forces. Newton counts
# each kind of element that it has, so that one that it adds is refused by its name.
_KNOWN_COUNTS = {
    "articulation_count",
    "body_count",
    "gaussians_count",
    "heightfield_count",
    "joint_constraint_count",
    "joint_coord_count",
    "joint_count",
    "joint_dof_count",
    "shape_contact_pair_count",
    "shape_count",
    "world_count",
}
_SOLVED_JOINTS = (
    _TYPE.PRISMATIC,
    _TYPE.REVOLUTE,
    _TYPE.BALL,
    _TYPE.FIXED,
    _TYPE.FREE,
    _TYPE.D6,
)


@dataclass(frozen=True)
class Tree:
    """An articulation of joints other than one free body's.

    Attributes:
        articulation: Its number in the model.
        bodies: [links] bodies, in the order of the joints, which is that of the rows of J.
        dofs: Its velocities among those of the model.
        first_velocity: Number of the first of them in the problem.
        free_root: Its first joint, if that is of type FREE.
    """

    articulation: int
    bodies: Indices
    dofs: slice
    first_velocity: int
    free_root: int | None


@dataclass(frozen=True)
class Layout:
    """Where the bodies and velocities of a model are in the problem.

    Attributes:
        trees: The articulations.
        free_bodies: [B] bodies on a free joint of their own.
        free_joints: [B] these joints.
        tree_of_body: [bodies] tree, or T + number of the free body; -1: the body is kinematic.
        link_of_body: [bodies] place of the body in its tree.
        velocity_of_dof: [dofs] velocity of the problem, -1: of a kinematic body. Velocities of the
            trees come first, then six of each free body.
    """

    trees: list[Tree]
    free_bodies: Indices
    free_joints: Indices
    tree_of_body: Indices
    link_of_body: Indices
    velocity_of_dof: Indices

    def part_of(self, body: Indices) -> Indices:
        """`tree_of_body`, with -1 also for the world, whose number is -1."""
        return np.where(body >= 0, self.tree_of_body[body], -1)

    @property
    def num_tree_velocities(self) -> int:
        """Velocities of all trees together."""
        return sum(tree.dofs.stop - tree.dofs.start for tree in self.trees)


def numpy_of(array: object) -> FloatArray:
    """A Warp array as an array of doubles."""
    # Warp's arrays are not typed.
    return np.asarray(array.numpy(), np.float64)  # type: ignore[attr-defined]


def kinematic_bodies(model: newton.Model) -> NDArray[np.bool_]:
    """[bodies] which of them the program moves."""
    if not model.body_count:
        return np.zeros(0, bool)
    return model.body_flags.numpy() & int(newton.BodyFlags.KINEMATIC) != 0


def make_layout(model: newton.Model) -> Layout:
    """Finds the layout of a model.

    Raises:
        InvalidArgument: The model has something that is not supported; the message names it.
    """
    _refuse_unsupported(model)
    joint_type, parent, child = (
        getattr(model, f"joint_{name}").numpy() for name in ("type", "parent", "child")
    )
    qd_start = np.append(model.joint_qd_start.numpy()[: model.joint_count], model.joint_dof_count)
    starts = np.append(
        model.articulation_start.numpy()[: model.articulation_count], model.joint_count
    )
    kinematic = kinematic_bodies(model)
    tree_of_body = np.full(model.body_count, -1)
    link_of_body = np.zeros(model.body_count, int)
    velocity_of_dof = np.full(model.joint_dof_count, -1)
    trees: list[Tree] = []
    free: list[int] = []
    first = 0
    for articulation, (start, end) in enumerate(pairwise(starts)):
        joints = np.arange(start, end)
        is_free = end - start == 1 and joint_type[start] == _TYPE.FREE and parent[start] < 0
        bodies = child[joints]
        if kinematic[bodies].any():
            if not is_free:
                name = model.body_label[bodies[kinematic[bodies]][0]]
                raise InvalidArgument(
                    f"body {name!r} is kinematic and a part of an articulation, which is not "
                    "supported; put it on a free joint of its own",
                    "model",
                )
            continue
        if is_free:
            free.append(int(start))
            continue
        dofs = slice(int(qd_start[start]), int(qd_start[end]))
        tree_of_body[bodies] = len(trees)
        link_of_body[bodies] = joints - start
        count = dofs.stop - dofs.start
        if count == 0:  # welded to the world
            tree_of_body[bodies] = -1
            continue
        velocity_of_dof[dofs] = first + np.arange(count)
        free_root = int(start) if joint_type[start] == _TYPE.FREE else None
        trees.append(Tree(articulation, bodies, dofs, first, free_root))
        first += count
    free_joints = np.array(free, int)
    free_bodies = child[free_joints]
    tree_of_body[free_bodies] = len(trees) + np.arange(len(free))
    for number, joint in enumerate(free_joints):
        velocity_of_dof[qd_start[joint] : qd_start[joint] + 6] = first + 6 * number + np.arange(6)
    return Layout(trees, free_bodies, free_joints, tree_of_body, link_of_body, velocity_of_dof)


def _refuse_unsupported(model: newton.Model) -> None:
    counts = {name: n for name, n in vars(model).items() if name.endswith("_count")}
    for name, count in counts.items():
        if not name.startswith("_") and name not in _KNOWN_COUNTS and count:
            kind = name.removesuffix("_count").replace("_", " ")
            raise InvalidArgument(f"the model has {kind}s, which are not supported", "model")
    _refuse_shapes(model)
    if not model.joint_count:
        return
    joint_type, parent = model.joint_type.numpy(), model.joint_parent.numpy()
    articulation, mimic = model.joint_articulation.numpy(), model.joint_mimic_joint
    for joint in range(model.joint_count):
        what = None
        if joint_type[joint] not in _SOLVED_JOINTS:
            what = f"of type {_TYPE(joint_type[joint]).name}"
        elif joint_type[joint] == _TYPE.FREE and parent[joint] >= 0:
            what = "of type FREE below another body"
        elif articulation[joint] < 0:
            what = "in no articulation"
        elif mimic is not None and mimic.numpy()[joint] >= 0:
            what = "a mimic of another one"
        elif not model.joint_enabled.numpy()[joint]:
            what = "not enabled"
        if what is not None:
            raise InvalidArgument(
                f"joint {model.joint_label[joint]!r} is {what}, which is not supported", "model"
            )


def _refuse_shapes(model: newton.Model) -> None:
    if not model.shape_count:
        return
    hydroelastic = model.shape_flags.numpy() & int(newton.ShapeFlags.HYDROELASTIC) != 0
    adhesive = model.shape_material_ka.numpy() > 0
    for name, found in (("hydroelastic contact", hydroelastic), ("adhesion (ka)", adhesive)):
        if found.any():
            shape = model.shape_label[np.flatnonzero(found)[0]]
            raise InvalidArgument(f"shape {shape!r} has {name}, which is not supported", "model")
