"""The arrays of the package are those of solver/problem/problem_fields.inc, in its order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sap_islands import BodyContacts, ConstraintRows, Contacts, HuntCrossley, RigidBodies, Trees
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._gradients import input_arrays
from sap_islands._library import declarations
from sap_islands._library.c_library import load
from sap_islands.binaries import find_c_library

ROOT = Path(__file__).parents[3]
TABLE = (ROOT / "solver/problem/problem_fields.inc").read_text()
TYPES = {"double": np.float64, "int32_t": np.int32, "uint32_t": np.uint32}


class Line(NamedTuple):
    """A line of the table."""

    type: str
    name: str
    columns: int
    per: str
    is_input: bool


def lines(macro: str) -> list[Line]:
    row = rf"^{macro}\((\w+), +(\w+), +(\d), (\w+), +\w+, +(\w+)\)"
    found = re.findall(row, TABLE, re.MULTILINE)
    assert found, macro
    return [Line(t, name, int(n), per, i == "kInput") for t, name, n, per, i in found]


LAWS = lines("SAP_LAW")
GROUPS: list[tuple[type[ArrayGroup], list[Line]]] = [
    (Trees, lines("SAP_TREE")),
    (RigidBodies, lines("SAP_BODY")),
    (Contacts, lines("SAP_CONTACT") + LAWS),
    (BodyContacts, lines("SAP_BODY_CONTACT") + LAWS),
    (ConstraintRows, lines("SAP_ROW")),
    (HuntCrossley, lines("SAP_HUNT_CROSSLEY")),
]


@pytest.mark.parametrize(("kind", "table"), GROUPS)
def test_a_group_has_the_arrays_of_the_table(kind: type[ArrayGroup], table: list[Line]) -> None:
    assert set(kind._fields) == {line.name for line in table}
    for line in table:
        field = kind._fields[line.name]
        assert field.columns == line.columns, line.name
        assert field.dtype == (np.uint8 if line.name == "law" else TYPES[line.type]), line.name


def test_structs_have_the_arrays_of_the_table_in_its_order() -> None:
    load(find_c_library())
    structs = {
        **{f"sap_{kind.FIELD}": table for kind, table in GROUPS[:2]},
        "sap_contacts": lines("SAP_CONTACT"),
        "sap_body_contacts": lines("SAP_BODY_CONTACT"),
        "sap_rows": lines("SAP_ROW"),
        "sap_contact_laws": LAWS,
        "sap_hunt_crossley": lines("SAP_HUNT_CROSSLEY"),
    }
    for name, table in structs.items():
        struct = declarations.struct_type(name)
        assert declarations.array_names(name) == tuple(line.name for line in table)
        for place, line in enumerate(table):
            array = getattr(struct, line.name)
            assert (array.offset, array.size) >= (8 + 16 * place, 16), line.name
            assert dict(struct._fields_)[line.name].dtype is TYPES[line.type], line.name


def test_inputs_are_those_of_the_table() -> None:
    paths = {
        f"{kind.FIELD}.{line.name}": line.columns
        for kind, table in GROUPS[:-1]
        for line in table
        if line.is_input
    }
    for group in ("contacts", "body_contacts"):
        for line in lines("SAP_HUNT_CROSSLEY"):
            paths[f"{group}.hunt_crossley.{line.name}"] = line.columns
    assert paths == input_arrays._COLUMNS
    numbers = re.findall(r"^SAP_NUMBER\((\w+), kInput\)", TABLE, re.MULTILINE)
    assert ("time_step", *(f"regularization.{n}" for n in numbers)) == input_arrays._NUMBERS
