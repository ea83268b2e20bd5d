"""Section VI-E: two arms open a jar, pour its marbles into a bowl, and close it."""

from __future__ import annotations

from sap_paper import dual_arm, dual_arm_model, same_steps
from sap_paper.setting import Setting


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert dual_arm.run(setting).unmet() == []


def test_sampled_problems_take_the_iterations_of_their_steps(setting: Setting) -> None:
    model = dual_arm_model.build()
    controls = dual_arm.trajectory(model)[:300]
    history = dual_arm.simulate(setting.client, model, controls, dual_arm.PAPER)
    compared = same_steps.compare(setting.client, history.problems, dual_arm.PAPER)
    assert history.sampled == [60, 120, 180, 240]
    assert compared.sap_iterations == [history.iterations[step] for step in history.sampled]
    assert max(compared.sap_iterations) > 0
