"""The reference of the schema on the documentation site has everything that the schema has."""

from __future__ import annotations

import pytest
import schema_reference

from conftest import ROOT
from support.schema import MODULES


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return schema_reference.pages(ROOT / "proto", "sap/v1")


def test_every_file_has_a_page(pages: dict[str, str]) -> None:
    files = {module.DESCRIPTOR.name.replace(".proto", ".md") for module in MODULES}
    assert set(pages) == files


def test_every_field_value_and_method_is_on_its_page_with_its_comment(
    pages: dict[str, str],
) -> None:
    for module in MODULES:
        file = module.DESCRIPTOR
        page = pages[file.name.replace(".proto", ".md")]
        for message in file.message_types_by_name.values():
            assert f"## {message.name} {{#{message.name}}}" in page
            for field in message.fields:
                rows = [
                    line
                    for line in page.split(f"{{#{message.name}}}")[1].splitlines()
                    if line.startswith(f"| `{field.name}` | {field.number} |")
                ]
                assert rows, f"{message.name}.{field.name}"
                assert len(rows[0].split(" | ")[3]) > 5, f"{message.name}.{field.name}"
        for kind in file.enum_types_by_name.values():
            assert all(f"| `{v.name}` | {v.number} |" in page for v in kind.values)
        for served in file.services_by_name.values():
            assert all(f"### {m.name} {{#{served.name}.{m.name}}}" in page for m in served.methods)


def test_types_lead_to_their_message(pages: dict[str, str]) -> None:
    assert "| `trees` | 2 | [Trees](problem.md#Trees) |" in pages["sap/v1/problem.md"]
    assert "[ContactProblem](problem.md#ContactProblem)" in pages["sap/v1/solver_service.md"]


def test_formulas_keep_their_layout_and_are_no_markup(pages: dict[str, str]) -> None:
    page = pages["sap/v1/problem.md"]
    assert "```text\n  min_v  l(v) = 1/2 |v - v*|_A^2 + sum_i f_i(v_c,i)" in page
    row = next(line for line in page.splitlines() if line.startswith("| `free_motion_velocity`"))
    assert "v\\*" in row
