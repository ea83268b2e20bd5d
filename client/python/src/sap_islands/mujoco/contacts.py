"""Converts the contacts of a MuJoCo state to contacts of a problem.

The velocity of body b relative to body a at a contact point p, in the contact's frame F, is

    v_c = F (J_b(p) - J_a(p)) v,   columns of J: c_lin + c_ang × (p - c_0)

with c the motion axis of each degree of freedom (MuJoCo's cdof), about the center of mass c_0 of
its tree. If both bodies are in one tree, their Jacobians are added in one block. A body that is
fixed to the world has no block.
"""

from __future__ import annotations

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.layout import CONTACT, LAYOUT, MODEL, STATE
from sap_islands.mujoco.material import stiffness_and_relaxation
from sap_islands.numba_kernels import (
    IndexArray,
    block_trees,
    compiled,
    indices,
    integers,
    integers_at,
    reals,
    reals_at,
)

_IN_GAP = 1  # `exclude` of a contact beyond margin - gap; it is kept, as it may close in this step
_WITH_FRICTION = 3  # least condim of a contact with friction


@compiled
def find_contacts(
    model: IndexArray, layout: IndexArray, first: int, count: int, selected: IndexArray
) -> tuple[int, int]:
    """Selects the contacts for the problem: those between geoms of which at least one can move.

    Args:
        model: `ModelArrays`.
        layout: `LayoutArrays`.
        first: Address of the first of `data.contact`.
        count: Length of `data.contact`.
        selected: Output [count]: indices of the selected contacts.

    Returns:
        Number of selected contacts, and of values in their Jacobian.
    """
    kept = values = 0
    sizes = indices(layout, LAYOUT.sizes)
    stride = indices(layout, LAYOUT.contact)[CONTACT.stride]
    for i in range(count):
        body_a, body_b = _bodies(model, layout, first + i * stride)
        tree_a, tree_b = _trees(layout, body_a, body_b)
        if tree_a < 0:  # both sides are fixed, or the contact is excluded
            continue
        selected[kept] = i
        kept += 1
        values += 3 * sizes[tree_a]
        if tree_b >= 0:
            values += 3 * sizes[tree_b]
    return kept, values


@compiled
def _bodies(model: IndexArray, layout: IndexArray, contact: int) -> tuple[int, int]:
    """The two bodies of a contact; (0, 0), the world twice, if the contact is not solved."""
    fields = indices(layout, LAYOUT.contact)
    geoms = integers_at(contact + fields[CONTACT.geom], 2)
    if integers_at(contact + fields[CONTACT.exclude], 1)[0] > _IN_GAP:
        return 0, 0
    if geoms[0] < 0 or geoms[1] < 0:  # a flex
        return 0, 0
    body = integers(model, MODEL.geom_bodyid)
    return body[geoms[0]], body[geoms[1]]


@compiled
def _trees(layout: IndexArray, body_a: int, body_b: int) -> tuple[int, int]:
    trees = indices(layout, LAYOUT.tree_of_body)
    return block_trees(trees[body_a], trees[body_b])


@compiled
def add_contacts(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    first: int,
    selected: IndexArray,
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
) -> int:
    """Writes the selected contacts; returns the number of values in their Jacobian.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        first: Address of the first of `data.contact`.
        selected: [C] indices into `data.contact`.
        trees: Output, at least [2, C]: tree_a and tree_b.
        jacobian: Output: the Jacobian blocks, concatenated.
        parameters: Output, at least [4, C]: signed distance, stiffness, relaxation time, friction.
    """
    fields, sizes = indices(layout, LAYOUT.contact), indices(layout, LAYOUT.sizes)
    weights = reals(model, MODEL.body_invweight0)
    place = 0
    for i in range(len(selected)):
        contact = first + selected[i] * fields[CONTACT.stride]
        body_a, body_b = _bodies(model, layout, contact)
        tree_a, tree_b = _trees(layout, body_a, body_b)
        trees[0, i], trees[1, i] = tree_a, tree_b
        second = place + 3 * sizes[tree_a]
        end = second
        if tree_b >= 0:
            end += 3 * sizes[tree_b]
        jacobian[place:end] = 0.0
        _add_side(model, state, layout, contact, body_a, -1.0, place, jacobian)
        at_b = second if second < end else place
        _add_side(model, state, layout, contact, body_b, 1.0, at_b, jacobian)
        place = end
        distance = (
            reals_at(contact + fields[CONTACT.dist], 1)[0]
            - reals_at(contact + fields[CONTACT.includemargin], 1)[0]
        )
        stiffness, relaxation_time = stiffness_and_relaxation(
            reals_at(contact + fields[CONTACT.solref], 2),
            reals_at(contact + fields[CONTACT.solimp], 5),
            dt,
            disabled,
            distance,
            weights[2 * body_a] + weights[2 * body_b],
        )
        has_friction = integers_at(contact + fields[CONTACT.dim], 1)[0] >= _WITH_FRICTION
        friction = reals_at(contact + fields[CONTACT.friction], 1)[0] if has_friction else 0.0
        parameters[0, i], parameters[1, i] = distance, stiffness
        parameters[2, i], parameters[3, i] = relaxation_time, friction
    return place


@compiled
def _add_side(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    contact: int,
    body: int,
    sign: float,
    place: int,
    jacobian: FloatArray,
) -> None:
    """Adds `sign` times the Jacobian of the contact point on a body to the block at `place`.

    The rows of the block are t1, t2, n.
    """
    dof = indices(layout, LAYOUT.last_dof)[body]
    if dof < 0:
        return
    fields = indices(layout, LAYOUT.contact)
    position = reals_at(contact + fields[CONTACT.pos], 3)
    frame = reals_at(contact + fields[CONTACT.frame], 9)  # rows n, t1, t2; n from a to b
    axes, parents = reals(state, STATE.cdof), integers(model, MODEL.dof_parentid)
    tree = indices(layout, LAYOUT.tree_of_dof)[dof]
    n, first = indices(layout, LAYOUT.sizes)[tree], indices(layout, LAYOUT.first_dof)[tree]
    center, about = reals(state, STATE.subtree_com), 3 * indices(layout, LAYOUT.root)[tree]
    x, y, z = (
        position[0] - center[about],
        position[1] - center[about + 1],
        position[2] - center[about + 2],
    )
    while dof >= 0:
        angular, linear = 6 * dof, 6 * dof + 3
        v_x = sign * (axes[linear] + axes[angular + 1] * z - axes[angular + 2] * y)
        v_y = sign * (axes[linear + 1] + axes[angular + 2] * x - axes[angular] * z)
        v_z = sign * (axes[linear + 2] + axes[angular] * y - axes[angular + 1] * x)
        column = place + dof - first
        jacobian[column] += frame[3] * v_x + frame[4] * v_y + frame[5] * v_z
        jacobian[column + n] += frame[6] * v_x + frame[7] * v_y + frame[8] * v_z
        jacobian[column + 2 * n] += frame[0] * v_x + frame[1] * v_y + frame[2] * v_z
        dof = parents[dof]
