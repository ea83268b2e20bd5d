"""Causes in the order tried: the first that explains all of an error is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.options import Options
from sap_islands.referee.contacts import lost_contacts, pair_keys
from sap_islands.referee.counterfactuals import Change, Explanation, Trial, patched
from sap_islands.referee.exact_steps import ExactSteps
from sap_islands.referee.judging import Judgment, tree_squares
from sap_islands.referee.mujoco_steps import few_iterations, runge_kutta, several_steps
from sap_islands.referee.runs import Step

_FLAGS = mujoco.mjtDisableBit
_INTEGRATORS = ("EULER", "IMPLICIT", "IMPLICITFAST", "DISCRETE")
_SWITCHES = (
    ("actuation", "mjDSBL_ACTUATION", "without actuators"),
    ("limits", "mjDSBL_LIMIT", "without limits of joints and tendons"),
    ("equalities", "mjDSBL_EQUALITY", "without equality constraints"),
    ("friction_loss", "mjDSBL_FRICTIONLOSS", "without friction loss of joints and tendons"),
    ("dropped_contacts", "mjDSBL_CONTACT", "without contacts"),
    ("gravity", "mjDSBL_GRAVITY", "without gravity"),
    ("springs", "mjDSBL_SPRING", "without springs"),
    ("damping", "mjDSBL_DAMPER", "without dampers"),
    ("damping", "mjDSBL_EULERDAMP", "with explicit damping"),
)
_TIME_STEPS = (0.1, 0.25, 0.5, 0.7, 0.9, 1.1, 1.4, 2.0, 4.0, 10.0)
_FACTORS = (0.01, 0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 10.0)
_LEAVES_NOTHING = 1e-3  # part of the error below which a change leaves none,
_SINGLE_PRECISION = 1e-5  # or the error of a recording in single precision
_MUCH_BETTER = 10.0  # ratio of errors
_MAX_PAIRS = 12  # pairs of geoms that are removed one after the other
_WORST_TREES = 3
_MAX_ROWS = 4096
_SMALLEST_UNIT = 2.0**-14  # of fixed point numbers that count as rounding
_DESCENT = 0.05  # part of the descent that an iterate of a solver has done at least
# Significant bits, and the smallest number or what counts as zero.
_HALF = (("float16", 11, 2.0**-24), ("bfloat16", 8, 1e-9))
_JUMP = 10.0  # velocity of a jump of positions, over the fastest one
_PROGRESS = 0.95  # of the error, that a removed pair must at least reach
_MAX_LISTED = 3  # names in a detail
_NO_FORCE = 1e30  # R of a contact without force [1/kg]
_GAUSS_NEWTON_STEPS = 4  # one, unless forces are not linear in controls
_SPARE_VELOCITIES = 6  # beyond the number of controls, that these cannot choose
_CONTROL_STEP = 1e-4  # of the range of a control, for differences
_ADMISSIBLE = 1e-2  # part of the momentum that no admissible forces give
_NO_ITERATION = Options(max_iterations=0, response_mask=("velocity", "islands"))
_PYRAMIDAL = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_PYRAMIDAL)


class Cause(NamedTuple):
    """Explanation of a state: a name of the report, and what was changed."""

    name: str
    detail: str
    bodies: list[str]


def find_cause(trial: Trial, step: Step, judgment: Judgment) -> Cause:
    """The cause of a state above the tolerance."""
    bodies = _bodies(trial.steps.model, trial.comparison.worst_trees())
    if not judgment.error > trial.tolerance:
        return Cause("unsolved", "the certificate of the exact step is above the tolerance", bodies)
    best = _best(_explanations(trial, step, judgment), judgment.error)
    best = best or _unconverged(trial, step)
    if best is None:
        detail = "no change that was tried leads to the recorded velocity"
        return Cause("unexplained", detail, bodies)
    return Cause(best.cause, best.detail, bodies)


def _explanations(trial: Trial, step: Step, judgment: Judgment) -> Iterator[Explanation]:
    yield from _other_step(trial, step)
    yield from _rounding(trial)
    yield from several_steps(trial)
    yield from _collision(trial, judgment)
    yield from trial.explanations(_inputs_of_neighbors(trial, step))
    yield from few_iterations(trial, step)
    yield from trial.explanations(_switches(trial))
    yield from runge_kutta(trial)
    yield from _factors(trial)
    yield from _rows_not_recorded(trial)
    yield from _dropped_pairs(trial)
    yield from _first_rows(trial)
    yield from _controls(trial)


def _best(explanations: Iterator[Explanation], error: float) -> Explanation | None:
    """The first explanation that leaves nothing of the error, or else the one that leaves least.

    A change may lead near the recorded velocity by chance.
    """
    best = None
    for found in explanations:
        if best is None or found.error < best.error / _MUCH_BETTER:
            best = found
        if best.error <= max(_LEAVES_NOTHING * error, _SINGLE_PRECISION):
            break
    return best


def _bodies(model: mujoco.MjModel, trees: list[int]) -> list[str]:
    """Names of the root bodies of trees."""
    names = []
    for tree in trees:
        body = int(model.dof_bodyid[model.tree_dofadr[tree]])
        names.append(mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, body) or f"body {body}")
    return names


def reset_of(steps: ExactSteps, step: Step) -> str:
    """How the simulator began another episode in this step; empty: it did not.

    Its velocity is then that of qpos0 or a keyframe, or of a step from there, or of the state
    after, which does not follow.
    """
    model, state, following = steps.model, step.state, step.after
    for name, velocity in steps.after_resets():
        if np.allclose(state.next_qvel, velocity, rtol=1e-5, atol=1e-9):
            return f"next_qvel is the velocity of {name}"
    if following is None or not np.array_equal(following.qvel, state.next_qvel):
        return ""
    if following.time <= state.time:
        return f"time goes back to {following.time:g} s in the state after"
    elapsed = following.time - state.time  # of several steps, if not all were recorded
    if np.isnan(elapsed):
        elapsed = model.opt.timestep
    reached = state.qpos.copy()
    mujoco.mj_integratePos(model, reached, state.next_qvel, elapsed)
    jump = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, jump, elapsed, reached, following.qpos)
    fastest = max(np.abs(state.next_qvel).max(), np.abs(state.qvel).max(), 1.0)
    return "positions jump to the state after" if np.abs(jump).max() > _JUMP * fastest else ""


def _other_step(trial: Trial, step: Step) -> Iterator[Explanation]:
    """The velocity recorded is that after another state of the same world."""
    if np.array_equal(step.state.next_qvel, step.state.qvel):
        yield Explanation("off_by_one", "next_qvel is qvel, the velocity before the step", 0.0)
    for name, other in (("before", step.before), ("after", step.after)):
        if other is not None:
            detail = f"next_qvel is the velocity after the state {name}, {other.number}"
            yield from trial.explanations(iter([Change("off_by_one", detail, state=other)]))


def _rounding(trial: Trial) -> Iterator[Explanation]:
    """Recorded velocities are multiples of a unit, or have few bits, and are the nearest ones."""
    recorded, exact = trial.state.next_qvel, trial.comparison.exact
    values = recorded[recorded != 0]
    difference = np.abs(recorded - exact)
    for exponent in range(0, int(np.log2(_SMALLEST_UNIT)) - 1, -1):
        unit = 2.0**exponent
        if np.array_equal(np.round(values / unit) * unit, values):
            if (difference <= unit).all():
                detail = f"velocities are multiples of 1/{round(1 / unit)}"
                yield Explanation("rounding", detail, 0.0)
            break
    fraction, power = np.frexp(recorded)
    for name, bits, least in _HALF:
        if np.array_equal(np.round(fraction * 2.0**bits) / 2.0**bits, fraction):
            units = np.ldexp(2.0**-bits, power)
            if (difference <= np.maximum(units, least)).all():
                yield Explanation("rounding", f"velocities are {name}", 0.0)


def _collision(trial: Trial, judgment: Judgment) -> Iterator[Explanation]:
    """With recorded contacts: the simulator has lost pairs, or used other contacts."""
    state = trial.state
    if state.contacts is None:
        return
    if judgment.lost_pairs:
        error = trial.error(Change("lost_pairs", ""), contacts="recorded")
        if trial.explains(error):
            names = _lost_names(trial)
            detail = f"{judgment.lost_pairs} pairs that overlap are missing: {names}"
            yield Explanation("lost_pairs", detail, error)
    if trial.explains(judgment.found_error):
        detail = "exact on the contacts that MuJoCo finds, not on those recorded"
        yield Explanation("collision", detail, judgment.found_error)


def _lost_names(trial: Trial) -> str:
    data = trial.scratch
    trial.steps.place(data, trial.state)
    mujoco.mj_fwdPosition(trial.steps.model, data)
    assert trial.state.contacts is not None
    lost = lost_contacts(trial.steps.model, data, trial.state.contacts["geom"])
    pairs = sorted({tuple(sorted(pair)) for pair in data.contact.geom[lost].tolist()})
    return _listed(trial.steps.model, pairs)


def _listed(model: mujoco.MjModel, pairs: list[tuple[int, ...]]) -> str:
    """Names of pairs of geoms."""

    def name(geom: int) -> str:
        own = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM, geom)
        body = int(model.geom_bodyid[geom])
        of_body = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, body) or f"body {body}"
        return f"{own or f'geom {geom}'} of {of_body}"

    listed = [" and ".join(name(geom) for geom in pair) for pair in pairs[:_MAX_LISTED]]
    return "; ".join(listed) + ("; ..." if len(pairs) > _MAX_LISTED else "")


def _inputs_of_neighbors(trial: Trial, step: Step) -> Iterator[Change]:
    """Inputs of the state before or after in the same world."""
    state = step.state
    for which, other in (("before", step.before), ("after", step.after)):
        for name, values in other.inputs.items() if other is not None else ():
            if not np.array_equal(values, state.inputs[name]):
                cause = "control_lag" if name in ("ctrl", "act") else "input_lag"
                lagging = state._replace(inputs={**state.inputs, name: values})
                yield Change(cause, f"{name} of the state {which}", state=lagging)


def _switches(trial: Trial) -> Iterator[Change]:
    """Parts of the model that the simulator may leave out, or do otherwise."""
    model, options = trial.steps.model, trial.steps.model.opt
    flags = int(options.disableflags)
    if model.nu:
        unlimited = _without_limits_of_actuators(model)
        yield Change("actuator_limits", "without limits of actuators", unlimited)
    for cause, flag, detail in _SWITCHES:
        bit = int(getattr(_FLAGS, flag))
        if not flags & bit:
            yield Change(cause, detail, ((options, "disableflags", flags | bit),))
    for integrator in _INTEGRATORS:
        value = int(getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}", -1))
        if value not in (-1, options.integrator):
            yield Change("integrator", integrator.lower(), ((options, "integrator", value),))
    for cone in ("PYRAMIDAL", "ELLIPTIC"):
        value = int(getattr(mujoco.mjtCone, f"mjCONE_{cone}"))
        if value != options.cone:
            yield Change("cone", cone.lower(), ((options, "cone", value),))


def _without_limits_of_actuators(model: mujoco.MjModel) -> tuple[tuple[Any, str, Any], ...]:
    clamping = int(model.opt.disableflags) | int(_FLAGS.mjDSBL_CLAMPCTRL)
    return (
        (model.opt, "disableflags", clamping),
        (model, "actuator_forcelimited", 0),
        (model, "actuator_actlimited", 0),
        (model, "jnt_actfrclimited", 0),
        (model, "tendon_actfrclimited", 0),
    )


def _factors(trial: Trial) -> Iterator[Explanation]:
    """A number of the model that the simulator has otherwise.

    R of a pyramid depends on friction, so that several may explain the same: the factor of fewest
    digits counts, then the smallest error.
    """
    options = trial.steps.model.opt
    dt = options.timestep

    def time_step(factor: float) -> Change:
        detail = f"time step {factor * dt:.6g} s, {factor:.4g} times that of the model"
        return Change("time_step", detail, ((options, "timestep", factor * dt),))

    def scaled(cause: str, what: str, name: str, columns: slice) -> Callable[[float], Change]:
        def change_by(factor: float) -> Change:
            def edit(data: mujoco.MjData) -> None:
                getattr(data.contact, name)[:, columns] *= factor

            return Change(cause, f"{what} of contacts times {factor:.4g}", edit=edit)

        return change_by

    searches: list[tuple[tuple[float, ...], Callable[[float], Change]]] = [(_TIME_STEPS, time_step)]
    if trial.data.ncon:
        searches += [
            (_FACTORS, scaled("friction", "friction", "friction", slice(0, 5))),
            (_FACTORS, scaled("compliance", "solref[0]", "solref", slice(0, 1))),
            (_FACTORS, scaled("compliance", "solref", "solref", slice(0, 2))),
            (_FACTORS, scaled("compliance", "solref[1]", "solref", slice(1, 2))),
        ]
    fits = [fit for each in searches if (fit := trial.fit(*each)) is not None]
    if fits:
        best = min(fits, key=lambda fit: (fit.digits, fit.error))
        yield Explanation(best.change.cause, best.change.detail, best.error)


def _dropped_pairs(trial: Trial) -> Iterator[Explanation]:
    """Pairs of geoms whose contacts the simulator left out, near the worst trees."""
    model, contact = trial.steps.model, trial.data.contact
    if not trial.data.ncon:
        return
    acts = (contact.exclude == 0) & (contact.geom >= 0).all(axis=1)
    pairs = np.sort(contact.geom[acts], axis=1)
    trees = model.body_treeid[model.geom_bodyid[pairs]]
    dropped: list[tuple[int, ...]] = []
    velocity, error = trial.comparison.exact, trial.comparison.found.error
    while len(dropped) < _MAX_PAIRS:
        off = _tree_errors(trial, velocity)
        worst = np.argsort(off)[-_WORST_TREES:]
        near = pairs[np.isin(trees, worst[off[worst] > 0]).any(1)]
        candidates = sorted({tuple(pair) for pair in near.tolist()} - set(dropped))
        tried = [
            (trial.next_velocity(_without(model, [*dropped, pair])), pair) for pair in candidates
        ]
        errors = [float(np.nan_to_num(trial.error_of(v), nan=np.inf)) for v, _ in tried]
        if not errors or min(errors) >= _PROGRESS * error:
            return
        best = int(np.argmin(errors))
        error, (velocity, pair) = errors[best], tried[best]
        dropped.append(pair)
        if trial.explains(error):
            if len(dropped) > 1:
                yield from _first_rows(trial)
            detail = f"without contacts of {_listed(model, dropped)}"
            yield Explanation("dropped_contacts", detail, error)
            return


def _tree_errors(trial: Trial, velocity: FloatArray) -> FloatArray:
    return tree_squares(trial.steps.model, trial.data, trial.state.next_qvel - velocity)


def _without(model: mujoco.MjModel, pairs: list[tuple[int, ...]]) -> Change:
    keys = pair_keys(model, np.array(pairs))

    def edit(data: mujoco.MjData) -> None:
        data.contact.exclude[np.isin(pair_keys(model, data.contact.geom), keys)] = 1

    return Change("dropped_contacts", "", edit=edit)


def _first_rows(trial: Trial) -> Iterator[Explanation]:
    """Rows beyond a number, as of a buffer that is full, have no force."""
    count = int(trial.data.nefc)
    if not 1 < count <= _MAX_ROWS:
        return
    data = trial.scratch
    built = trial.steps.build(data, trial.state)
    for kept in range(count - 1, 0, -1):
        _take_force_of_row(data, built, kept)
        error = trial.error_of_problem(data, built)
        if trial.explains(error):
            yield Explanation("first_rows", f"first {kept} rows of {count}", error)


def _rows_not_recorded(trial: Trial) -> Iterator[Explanation]:
    """Rows that the recorded addresses of contacts lack have no force."""
    data = trial.scratch
    built = trial.steps.build(data, trial.state)
    missing = _rows_not_made(trial, data)
    for row in missing.tolist():
        _take_force_of_row(data, built, row)
    if missing.size and trial.explains(error := trial.error_of_problem(data, built)):
        rows = int(data.nefc)
        kept = rows - missing.size
        which = f"first {kept} rows" if (missing >= kept).all() else f"{kept} rows"
        detail = f"{which} of {rows}, by the recorded efc_address"
        yield Explanation("first_rows", detail, error)


def _rows_not_made(trial: Trial, data: mujoco.MjData) -> IntArray:
    """Rows of contacts whose recorded address says that the simulator has no such row."""
    contacts = trial.state.contacts
    if contacts is None or "efc_address" not in contacts:
        return np.empty(0, np.int32)
    missing = []
    for i, address in enumerate(contacts["efc_address"]):
        first = int(data.contact.efc_address[i])
        if first >= 0:
            dim = int(data.contact.dim[i])
            is_pyramid = data.efc_type[first] == _PYRAMIDAL
            rows = 2 * (dim - 1) if is_pyramid else dim
            missing += [first + k for k in range(rows) if address[min(k, len(address) - 1)] < 0]
    return np.array(missing, np.int32)


def _take_force_of_row(data: mujoco.MjData, built: BuiltProblem, row: int) -> None:
    """Makes the force of a row of efc_J 0; of a cone, all its rows."""
    rows, contacts = built.problem.rows, built.problem.contacts
    of_row = built.row[: rows.count] == row
    rows.force_lower[of_row] = rows.force_upper[of_row] = 0.0
    first = data.contact.efc_address[built.contact]
    of_contact = (first <= row) & (row < first + data.contact.dim[built.contact])
    contacts.regularization_n[of_contact] = contacts.regularization_t[of_contact] = _NO_FORCE


def _controls(trial: Trial) -> Iterator[Explanation]:
    """Other controls than those recorded or assumed: those with the momentum that is missing.

    Controls of about as many as the velocities of their trees could explain anything.
    """
    model, state, data = trial.steps.model, trial.state, trial.data
    acts_on = data.moment_colind[: data.moment_rownnz.sum()]
    velocities = int(model.tree_dofnum[np.unique(model.dof_treeid[acts_on])].sum())
    if not 0 < model.nu <= max(velocities // 2, velocities - _SPARE_VELOCITIES):
        return
    recorded = state.inputs.get("ctrl", np.zeros(model.nu))
    # At its limit a control changes nothing. Forces of activations keep theirs.
    has_activation = model.actuator_dyntype != int(mujoco.mjtDyn.mjDYN_NONE)
    unlimited = (
        *_without_limits_of_actuators(model),
        (model, "actuator_forcelimited", model.actuator_forcelimited * has_activation),
    )
    with patched(unlimited):
        missing = _missing_controls(trial, recorded)
    most = int(np.argmax(np.abs(missing)))
    detail = f"other controls: ctrl[{most}] by {missing[most]:.3g}, and others"
    inputs = {**state.inputs, "ctrl": recorded + missing}
    right = state._replace(inputs=inputs)
    limits = ((), unlimited)
    yield from trial.explanations(Change("control", detail, each, state=right) for each in limits)


def _missing_controls(trial: Trial, recorded: FloatArray) -> FloatArray:
    """[nu] what the controls lack, by Gauss-Newton in the norm of A^-1.

    Constraints have the forces that the law has at the recorded velocity.
    """
    model, data = trial.steps.model, trial.data
    velocity = trial.recorded_solution()
    root = np.linalg.cholesky(_dense_metric(trial))
    trial.steps.restore(data, trial.state)
    data.qacc[:] = (velocity - data.qvel) / model.opt.timestep
    mujoco.mj_invConstraint(model, data)
    momentum = root @ (root.T @ (velocity - trial.built.dynamics.v_star))
    before = data.qfrc_actuator.copy()
    force = momentum / model.opt.timestep - data.qfrc_constraint

    def force_of(control: FloatArray) -> FloatArray:
        data.ctrl[:] = control
        mujoco.mj_fwdActuation(model, data)
        return np.linalg.solve(root, data.qfrc_actuator - before)

    wanted, control = np.linalg.solve(root, force), np.array(recorded, float)
    step = _CONTROL_STEP * np.maximum(np.ptp(model.actuator_ctrlrange[: model.nu], axis=1), 1.0)
    for _ in range(_GAUSS_NEWTON_STEPS):
        now = force_of(control)
        columns = [
            (force_of(control + step * unit) - now) / step[i]
            for i, unit in enumerate(np.eye(model.nu))
        ]
        control += np.linalg.lstsq(np.array(columns).T, wanted - now, rcond=1e-9)[0]
    return control - recorded


def _dense_metric(trial: Trial) -> FloatArray:
    """[nv, nv] A of the problem."""
    dynamics, sizes = trial.built.dynamics, trial.built.problem.trees.dofs.tolist()
    ends = np.cumsum(sizes).tolist()
    dofs = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    metric = np.zeros((ends[-1], ends[-1]))

    def place(pairs: Iterable[tuple[int, int]], blocks: FloatArray) -> None:
        begin = 0
        for a, b in pairs:
            end = begin + sizes[a] * sizes[b]
            block = blocks[begin:end].reshape(sizes[a], sizes[b])
            metric[dofs[a], dofs[b]], metric[dofs[b], dofs[a]], begin = block, block.T, end

    place(((tree, tree) for tree in range(len(sizes))), dynamics.blocks)
    place(dynamics.coupled.T.tolist(), dynamics.coupling)
    return metric


def _unconverged(trial: Trial, step: Step) -> Explanation | None:
    """An iterate of a solver.

    It has done a part of the descent of the cost from where solvers start: the free motion, the
    velocity before the step, or the acceleration of the step before. An integrator that takes the
    forces of an iterate, and not its acceleration, as with damping, leaves another trace: these
    forces are admissible, and are not those of the law.
    """
    starts = [trial.built.dynamics.v_star.copy(), step.state.qvel]
    if step.before is not None:
        starts.append(2 * step.state.qvel - step.before.qvel)
    recorded = trial.recorded_solution()
    part = _part_of_descent(trial, recorded, starts)
    if part > _DESCENT:
        detail = f"{100 * part:.4g} % of the descent of the cost is done"
    else:
        off = trial.unexplained_momentum()
        if off > _ADMISSIBLE:
            return None
        detail = f"admissible forces (to {off:.1e}), and not those of the law"
    remedy = (
        "or other contacts: record contact_*"
        if step.state.contacts is None
        else "more iterations are needed"
    )
    return Explanation("not_converged", f"{detail}; {remedy}", trial.comparison.found.error)


def _part_of_descent(trial: Trial, recorded: FloatArray, starts: list[FloatArray]) -> float:
    """Part of the way from the cost at a start to the least one, for the farthest start.

    The cost is that of the island with the largest error; of a tree without constraints, the
    distance from its free motion.
    """
    problem, guess = trial.built.problem, trial.built.problem.trees.guess_velocity
    worst = int(trial.comparison.found.worst_tree)
    island = int(trial.comparison.island_of_tree[worst])

    def height(velocity: FloatArray) -> float:
        if island < 0:
            return float(tree_squares(trial.steps.model, trial.data, velocity - starts[0])[worst])
        guess[:] = velocity
        islands = trial.client.solve(problem, _NO_ITERATION).islands
        return float(islands.cost[island] - trial.solution.islands.cost[island])

    highest = max(map(height, starts))
    return 1.0 - height(recorded) / highest if highest > 0 else 0.0
