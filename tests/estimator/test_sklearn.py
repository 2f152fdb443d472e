"""scikit-learn's own checks of an estimator: all of them, one excused, which tests/test_equivalence.py replaces."""

import jaxtyping
import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from plurigp import PluriGP

SMALL = PluriGP(n_components=2, n_inducing=5, max_epochs=3, calibrate=False, random_state=0)
FRAME_CHECKS = (
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
)
EXCUSED = {  # training draws positions row by row, so repeated rows get other draws: one objective, not one result
    "check_sample_weight_equivalence_on_dense_data": "draws differ; the bound and its steps are compared instead"
}


@pytest.fixture(autouse=True, scope="module")
def no_type_checks():
    """The checks hand nonsense to __init__, which has to store it: validation waits for fit."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@parametrize_with_checks([SMALL], expected_failed_checks=lambda estimator: EXCUSED)
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:X .* feature names:UserWarning")  # they mix arrays and frames on purpose
@pytest.mark.parametrize("check", FRAME_CHECKS)
def test_frames_in_and_out(check):
    getattr(estimator_checks, check)("PluriGP", SMALL)


def test_nothing_else_is_expected_to_fail():
    checks = list(estimator_checks.estimator_checks_generator(SMALL))
    assert len(checks) > 40
    assert set(EXCUSED) < {check.func.__name__ for _, check in checks}
    assert "xfail" not in str(checks)
