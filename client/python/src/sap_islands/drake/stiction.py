"""Finds the stiction tolerance of a plant, which pydrake does not give, from Drake's own update.

The velocities v after an update and its contact forces obey the law of Hunt & Crossley, in which
the tolerance is the one unknown: J'γ(J v; tolerance) = δt times the generalized contact forces.
"""

from __future__ import annotations

import weakref

import numpy as np
from pydrake.common.value import Value
from pydrake.geometry import QueryObject
from pydrake.multibody.plant import MultibodyPlant, MultibodyPlantConfig
from pydrake.multibody.tree import ModelInstanceIndex
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray
from sap_islands.drake.contact_jacobian import contact_velocity, generalized_impulse
from sap_islands.drake.contact_points import find_points
from sap_islands.drake.contacts import SIGMA, make_contacts
from sap_islands.drake.dynamics import evaluate
from sap_islands.drake.layout import layout_of
from sap_islands.drake.surface_speeds import copy_surface_speeds
from sap_islands.errors import InvalidArgument
from sap_islands.problem import ContactLaw, Contacts

_DEFAULT = float(MultibodyPlantConfig().stiction_tolerance)
_CANDIDATES = 10.0 ** np.arange(-10.0, 2.0, 0.1)  # m/s
_LAST = len(_CANDIDATES) - 1
_PERTURBATION = 0.01  # m/s, rad/s: contacts slip, so that the tolerance shows
_FITS = 1e-8  # relative error of the forces where the tolerance is the right one
_DIFFERS = 10.0  # times that error where it is 10 % larger
_GOLDEN, _REFINEMENTS = 0.5 * (np.sqrt(5.0) - 1.0), 60

_known: weakref.WeakKeyDictionary[MultibodyPlant, float] = weakref.WeakKeyDictionary()


def find_stiction_tolerance(plant: MultibodyPlant, context: Context) -> float:
    """The stiction tolerance [m/s].

    It is searched at the first state with contacts in which it has an influence: friction is not
    zero, and R of the contacts does not demand a larger tolerance. Before that a value is returned
    with which this step has Drake's contact forces.

    Raises:
        InvalidArgument: No tolerance gives Drake's contact forces.
    """
    if plant not in _known:
        for perturbation in (_PERTURBATION, 0.0):
            tolerance, has_influence = _search(plant, context, perturbation)
            if has_influence:
                _known[plant] = tolerance
                break
        return tolerance
    return _known[plant]


def _search(
    plant: MultibodyPlant, user_context: Context, perturbation: float
) -> tuple[float, bool]:
    """The tolerance that fits best, and whether it has an influence."""
    context = _updatable_copy(plant, user_context, perturbation)
    layout = layout_of(plant, context)
    points = find_points(plant, context, layout)
    diagonal = evaluate(plant, context, layout).diagonal
    contacts, _ = make_contacts(plant, context, layout, diagonal, points)
    forces = _update(plant, context)[layout.velocities]
    v_c = contact_velocity(layout, contacts, plant.GetVelocities(context)[layout.velocities])
    if contacts.surface_velocity.size:
        v_c = v_c + contacts.surface_velocity
    dt = plant.time_step()
    if not contacts.count:
        return _DEFAULT, False
    # Forces of contacts within a tree may cancel in J'γ.
    scale = max(np.linalg.norm(forces), np.linalg.norm(_impulse(contacts, v_c, _DEFAULT, dt)) / dt)
    if scale == 0.0:
        return _DEFAULT, False

    def misfit(tolerance: float) -> float:
        impulse = generalized_impulse(layout, contacts, _impulse(contacts, v_c, tolerance, dt))
        return float(np.linalg.norm(impulse / dt - forces) / scale)

    misfits = [misfit(candidate) for candidate in _CANDIDATES]
    best = int(np.argmin(misfits))
    low, high = np.log(_CANDIDATES[max(best - 1, 0)]), np.log(_CANDIDATES[min(best + 1, _LAST)])
    for _ in range(_REFINEMENTS):
        reach = _GOLDEN * (high - low)
        if misfit(np.exp(high - reach)) < misfit(np.exp(low + reach)):
            high = low + reach
        else:
            low = high - reach
    found = float(np.exp(0.5 * (low + high)))
    if misfit(found) > _FITS:
        message = "the plant's stiction tolerance cannot be found; pass stiction_tolerance"
        raise InvalidArgument(message, "stiction_tolerance")
    return found, misfit(1.1 * found) > _DIFFERS * _FITS


def _updatable_copy(plant: MultibodyPlant, context: Context, perturbation: float) -> Context:
    """A context of the plant alone, with the same contacts and nothing else than these."""
    copy = plant.CreateDefaultContext()
    copy.SetTimeStateAndParametersFrom(context)
    query = plant.get_geometry_query_input_port().Eval(context)
    plant.get_geometry_query_input_port().FixValue(copy, Value[QueryObject](query))
    copy_surface_speeds(plant, context, copy)
    for identifier in plant.GetConstraintIds():
        plant.SetConstraintActiveStatus(copy, identifier, False)
    for index in plant.GetJointIndices():
        if plant.get_joint(index).is_locked(copy):
            plant.get_joint(index).Unlock(copy)
    velocity = plant.GetVelocities(copy)
    velocity += perturbation * np.random.default_rng(0).normal(size=len(velocity))
    plant.SetVelocities(copy, velocity)
    return copy


def _update(plant: MultibodyPlant, context: Context) -> FloatArray:
    """Updates the context; returns the generalized contact forces [nv] of this update."""
    instances = [ModelInstanceIndex(index) for index in range(plant.num_model_instances())]
    ports = [plant.get_generalized_contact_forces_output_port(index) for index in instances]
    if plant.has_sampled_output_ports():
        plant.ExecuteForcedEvents(context)
        values = [port.Eval(context) for port in ports]
    else:  # they show the forces of the next update
        values = [port.Eval(context) for port in ports]
        plant.ExecuteForcedEvents(context)
    forces = np.zeros(plant.num_velocities())
    for instance, value in zip(instances, values, strict=True):
        order = plant.GetVelocitiesFromArray(instance, np.arange(float(len(forces))))
        forces[order.astype(int)] = value
    return forces


def _impulse(contacts: Contacts, v_c: FloatArray, tolerance: float, dt: float) -> FloatArray:
    """γ [C, 3] of the laws of Hunt & Crossley; the equations are in problem.proto."""
    law = contacts.hunt_crossley
    assert law is not None
    mu, n_0 = contacts.friction, law.lagged_normal_impulse
    epsilon = np.maximum(tolerance, mu * SIGMA * contacts.delassus_estimate * n_0)
    length = np.sqrt(np.sum(v_c[:, :2] ** 2, axis=1) + epsilon**2)
    similar = contacts.law == ContactLaw.HUNT_CROSSLEY_SIMILAR
    z = v_c[:, 2] - np.where(similar, mu * (length - epsilon), 0.0)
    elastic = np.maximum(law.elastic_force - dt * contacts.stiffness * z, 0.0)
    n = dt * elastic * np.maximum(1.0 - law.dissipation * z, 0.0)
    bound = mu * np.where(similar, n, n_0)
    return np.column_stack((-(bound / length)[:, None] * v_c[:, :2], n))
