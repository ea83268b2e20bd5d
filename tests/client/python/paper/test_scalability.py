"""The study of scalability that the paper asks for."""

from __future__ import annotations

from sap_islands.paper import scalability
from sap_islands.paper.setting import Setting


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert scalability.run(setting).unmet() == []
