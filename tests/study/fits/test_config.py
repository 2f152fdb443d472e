import tomllib

import numpy as np
import pytest

from plurigp.core.types import DataError
from plurigp.study import StudyConfig, read_config
from plurigp.study.fits.config import config_toml


def test_toml_gives_the_same_configuration_back(tmp_path):
    config = StudyConfig.from_dict(
        {"title": 'a "quoted"\n\\title ☃', "n_components": [2, 3], "time": "days", "event": "died",
         "horizons": [180.0], "model": {"kernel": "linear+rbf", "n_quadrature": {"beta": 20}}}
    )  # fmt: skip
    path = tmp_path / "study.toml"
    path.write_text(config_toml(config), encoding="utf-8")
    assert StudyConfig.from_dict(read_config(path)) == config
    assert StudyConfig.from_dict(tomllib.loads(config_toml(StudyConfig()))) == StudyConfig()


MADE = [StudyConfig.from_dict, lambda given: StudyConfig(**given)]


@pytest.mark.parametrize("made", MADE)
def test_one_dimension_or_horizon_may_be_a_number_and_several_a_list(made):
    config = made({"n_components": 4, "horizons": 5})
    assert (config.n_components, config.horizons) == ((4,), (5.0,))
    config = made({"n_components": np.array([2, 3]), "horizons": [365]})
    assert (config.n_components, config.horizons) == ((2, 3), (365.0,))
    assert [type(value) for value in (*config.n_components, *config.horizons)] == [int, int, float]
    assert config == made(config.to_dict())


@pytest.mark.parametrize("made", MADE)
def test_the_model_is_the_configs_own(made):
    given = {"kernel": "rbf"}
    config = made({"model": given})
    given["kernel"] = "linear"
    assert config.model == {"kernel": "rbf"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_refit": 30}, "unknown setting 'n_refit'.*Did you mean 'n_refits'"),
        ({"n_refits": 31}, "must be even"),
        ({"n_refits": 0}, "n_refits = 0 must be a whole number of at least 2"),
        ({"level": 1.5}, "level = 1.5 must be a share"),
        ({"n_components": []}, "names no latent dimension"),
        ({"n_components": [True]}, "n_components = True"),
        ({"n_subtypes": "some"}, "n_subtypes = 'some'"),
        ({"n_subtypes": "stability"}, "n_subtypes = 'stability' must be a whole number"),
        ({"n_references": -1}, "n_references = -1 must be a whole number of at least 0"),
        ({"covariance": "tied"}, "unknown setting 'covariance'"),
        ({"time": "days"}, "time and event go together"),
        ({"model": {"random_state": 1}}, "set by the study itself"),
        ({"model": {"kernl": "rbf"}}, "model: unknown parameter 'kernl'; known: .*Did you mean 'kernel'"),
        ({"model": {"kernel": "rfb"}}, "model: kernel='rfb': 'rfb' is not one of rbf"),
        ({"model": {"calibrate": "yes"}}, "model: calibrate='yes' must be True or False"),
        ({"model": {"refine": 1}}, "model: refine=1 must be True or False"),
        ({"model": {"device": 1}}, "model: device=1 must be the name"),
        ({"model": {"n_quadrature": {"betta": 3}}}, "model: n_quadrature: 'betta' is not one of"),
        ({"model": "rbf"}, "model = 'rbf' must hold parameters"),
        ({"model": None}, "model = None must hold parameters"),
        ({"horizons": None}, "horizons: None must be a number above 0"),
        ({"horizons": "soon"}, "horizons: 'soon' must be a number above 0"),
        ({"horizons": [[1]]}, r"horizons: \[1\] must be a number above 0"),
        ({"n_components": None}, "n_components = None must be a whole number"),
        ({"horizons": ["soon"]}, "horizons: 'soon' must be a number above 0"),
        ({"horizons": 0}, "horizons: 0 must be"),
        ({"horizons": [180, float("inf")]}, "horizons: inf must be"),
        ({"horizons": [float("nan")]}, "horizons: nan must be"),
        ({"n_subtypes": 21}, "n_subtypes = 21: not all of them can hold the share 0.05"),
    ],
)
def test_what_cannot_be_is_named(given, message):
    with pytest.raises(DataError, match=message):
        StudyConfig.from_dict(given)
    if "unknown setting" not in message:
        with pytest.raises(DataError, match=message):
            StudyConfig(**given)


def test_a_broken_file_is_named(tmp_path):
    path = tmp_path / "study.toml"
    with pytest.raises(DataError, match=r"study\.toml: cannot be read"):
        read_config(path)
    path.write_text("n_refits 30")
    with pytest.raises(DataError, match=r"study\.toml: is not TOML"):
        read_config(path)
