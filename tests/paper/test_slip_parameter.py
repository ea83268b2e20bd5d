"""Section VI-C2: slip, conditioning and iterations against σ."""

from __future__ import annotations

from sap_paper import slip_parameter
from sap_paper.setting import Setting


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert slip_parameter.run(setting).unmet() == []
