"""Products with the Jacobian of contacts, in the layout of `Contacts.jacobian`."""

from __future__ import annotations

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.drake.layout import Layout
from sap_islands.drake.native_calls import load_native_calls
from sap_islands.errors import InvalidArgument
from sap_islands.problem import Contacts


def generalized_impulse(layout: Layout, contacts: Contacts, impulse: FloatArray) -> FloatArray:
    """J'γ [n] of impulses γ [C, 3].

    Raises:
        InvalidArgument: There are not C impulses.
    """
    if len(impulse) != contacts.count:
        message = (
            f"the solution has impulses of {len(impulse)} contacts; {contacts.count} are needed"
        )
        raise InvalidArgument(message, "solution")
    result = np.empty(len(layout.velocities))
    load_native_calls().generalized_impulse(*_arguments(layout, contacts, impulse, result))
    return result


def contact_velocity(layout: Layout, contacts: Contacts, velocity: FloatArray) -> FloatArray:
    """J v [C, 3]."""
    result = np.empty((contacts.count, 3))
    load_native_calls().contact_velocity(*_arguments(layout, contacts, velocity, result))
    return result


def _arguments(
    layout: Layout, contacts: Contacts, factor: FloatArray, result: FloatArray
) -> tuple[object, ...]:
    factor = np.ascontiguousarray(factor)
    arrays = (contacts.tree_a, contacts.tree_b, contacts.jacobian, factor, result)
    return layout.as_struct, contacts.count, *(array.ctypes for array in arrays)
