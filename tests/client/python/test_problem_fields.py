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
from sap_islands._library import c_structs

ROOT = Path(__file__).parents[3]
TABLE = (ROOT / "solver/problem/problem_fields.inc").read_text()
HEADER = (ROOT / "client/c/sap_islands_types.h").read_text()
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


def test_structs_have_the_arrays_in_the_order_of_the_header() -> None:
    structs = {
        "trees": c_structs.STRUCTS[Trees],
        "bodies": c_structs.STRUCTS[RigidBodies],
        "contacts": c_structs.STRUCTS[Contacts],
        "body_contacts": c_structs.STRUCTS[BodyContacts],
        "contact_laws": c_structs.LAWS,
        "hunt_crossley": c_structs.STRUCTS[HuntCrossley],
        "rows": c_structs.STRUCTS[ConstraintRows],
    }
    for name, struct in structs.items():
        members = re.search(rf"typedef struct sap_{name} {{(.*?)}}", HEADER, re.DOTALL)
        assert members, name
        word, arrays, pointer = 0, {}, 0
        for kind, member in re.findall(r"^  (.*?)(\w+);", members[1], re.MULTILINE):
            if kind.endswith("s "):
                arrays[member] = word
            elif "*" in kind:
                pointer = word
            word += 2 if kind.endswith("s ") else 1
        assert (struct.arrays, struct.pointer, struct.end) == (arrays, pointer, word), name


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
    assert tuple(numbers) == c_structs.REGULARIZATION
