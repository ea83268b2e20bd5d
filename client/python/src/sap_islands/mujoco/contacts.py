"""Contacts of a MuJoCo state, as contacts of a problem.

The velocity of b relative to a at a contact point p, in the contact's frame, is

    v_c = F (J_b(p) - J_a(p)) v,   columns of J: c_lin + c_ang × (p - c_0)

with c the motion axes that MuJoCo has for every degree of freedom, about the center of mass c_0 of
its tree. Sides in one tree are added to one block, and what is fixed to the world has none.
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

_IN_GAP = 1  # of MuJoCo's reasons to leave a contact out; for the service it may close in this step
_WITH_FRICTION = 3  # rows of a contact that has friction


@compiled
def find_contacts(
    model: IndexArray, layout: IndexArray, first: int, count: int, selected: IndexArray
) -> tuple[int, int]:
    """How many contacts the service is to solve, and how many values their Jacobian has.

    Args:
        model: `ModelArrays`.
        layout: `LayoutArrays`.
        first: Address of the first of `data.contact`.
        count: How many there are.
        selected: Where those for the service are written.
    """
    kept = values = 0
    sizes = indices(layout, LAYOUT.sizes)
    stride = indices(layout, LAYOUT.contact)[CONTACT.stride]
    for i in range(count):
        body_a, body_b = _bodies(model, layout, first + i * stride)
        tree_a, tree_b = _trees(layout, body_a, body_b)
        if tree_a < 0:  # nothing that moves
            continue
        selected[kept] = i
        kept += 1
        values += 3 * sizes[tree_a]
        if tree_b >= 0:
            values += 3 * sizes[tree_b]
    return kept, values


@compiled
def _bodies(model: IndexArray, layout: IndexArray, contact: int) -> tuple[int, int]:
    """The bodies that touch; 0, the world, where the service leaves the contact out."""
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
    """Writes the contacts for the service, and returns how long their Jacobian is.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        first: Address of the first of `data.contact`.
        selected: [C] of `data.contact`.
        trees: [2, C] or more columns.
        jacobian: For the blocks, one after the other.
        parameters: [4, C] or more columns: signed distance, stiffness, relaxation time, friction.
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
    """Adds the Jacobian of the point of a body, rows t1, t2, n, to the block at `place`."""
    dof = indices(layout, LAYOUT.last_dof)[body]
    if dof < 0:
        return
    fields = indices(layout, LAYOUT.contact)
    position = reals_at(contact + fields[CONTACT.pos], 3)
    frame = reals_at(contact + fields[CONTACT.frame], 9)  # the normal first, from a to b
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
