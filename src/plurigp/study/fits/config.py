"""What a study is asked to do: one frozen record, from keywords or TOML, written back exactly."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import tomlkit

from plurigp.core.text import jsonable, listing, nearest, show
from plurigp.core.types import DataError
from plurigp.estimator import PluriGP
from plurigp.estimator.parameters import check_parameters

COUNTS = {  # the smallest value that makes sense
    "n_restarts": 1, "batch_size": 1, "selection_rows": 20, "max_clusters": 2, "mixture_inits": 1,
    "max_subtypes": 2, "n_refits": 2, "n_permutations": 0, "n_references": 0, "consensus_rows": 10,
    "sampled_pairs": 1000, "random_state": 0,
}  # fmt: skip
SHARES = ("test_share", "hidden_share", "outlier_share", "level")
COVARIANCES = ("tied", "full")
OneOrMore = Any  # a number or any number of them; checked, and a tuple ever after
SET_BY_STUDY = ("n_components", "schema", "max_epochs", "batch_size", "random_state", "verbose")  # not by `model`


@dataclass(frozen=True)
class StudyConfig:
    """The settings of a study; the defaults follow the paper where it is sound.

    n_components : the latent dimensions to choose from; a single one is taken without choosing.
    n_restarts, batch_size : a map is the best of so many restarts; batches are at most so large.
    max_epochs : at most so many passes; None is 100, or fewer where that would be more than 600 steps (50 at least).
    test_share, hidden_share, selection_rows : held-out rows, the share of their cells to predict, and how many rows the
        choice of n_components looks at.
    max_clusters, mixture_inits, outlier_share : the paper's mixture; smaller clusters are outliers.
    n_subtypes : "stability" (against the structureless reference; a table without subtypes is described in strata all
        the same), "paper" (the mixture's own) or a number.
    max_subtypes, covariance : how many are tried, and whether clusters share one covariance ("tied") or not ("full").
    n_refits, n_permutations, n_references : random halves (in complementary pairs), label permutations, and
        structureless tables with two half maps each.
    level : of the tests, over all subtypes.
    consensus_rows, sampled_pairs : the full consensus matrix up to so many rows, otherwise so many pairs.
    time, event, horizons : outcome columns, kept out of the map, and times at which to read off the risk.
    model : further parameters of PluriGP, such as {"kernel": "linear+rbf"}.
    """

    title: str = ""
    n_components: OneOrMore = (2, 4, 6, 10)
    n_restarts: int = 3
    max_epochs: int | None = None
    batch_size: int = 500
    test_share: float = 0.2
    hidden_share: float = 0.2
    selection_rows: int = 3000
    max_clusters: int = 20
    mixture_inits: int = 10
    outlier_share: float = 0.05
    n_subtypes: str | int = "stability"
    max_subtypes: int = 8
    covariance: str = "tied"
    n_refits: int = 30
    n_permutations: int = 1000
    n_references: int = 19
    level: float = 0.05
    consensus_rows: int = 5000
    sampled_pairs: int = 400_000
    time: str | None = None
    event: str | None = None
    horizons: OneOrMore = ()
    random_state: int = 0
    model: Any = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in COUNTS.items():
            _check_count(name, getattr(self, name), least)
        if self.max_epochs is not None:
            _check_count("max_epochs", self.max_epochs, 1)
        for name in SHARES:
            value = getattr(self, name)
            if not _is(value, Real) or not 0 < value < 1:
                raise DataError(f"{name} = {show(value)} must be a share above 0 and below 1.")
        self._settle_sequences()
        self._check_choices()

    def _settle_sequences(self) -> None:
        """Dimensions and horizons as tuples, whether one was given or several, and the model's parameters as a dict."""
        dimensions, horizons = _several(self.n_components), _several(self.horizons)
        if not dimensions:
            raise DataError("n_components names no latent dimension; give one number or more.")
        for value in dimensions:
            _check_count("n_components", value, 1)
        for value in horizons:
            _check_horizon(value)
        if not isinstance(self.model, Mapping):
            raise DataError(f"model = {show(self.model)} must hold parameters, such as kernel = 'rbf'.")
        settled = {
            "n_components": tuple(map(int, dimensions)),
            "horizons": tuple(map(float, horizons)),
            "model": dict(self.model),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)  # frozen

    def _check_choices(self) -> None:
        if self.n_refits % 2:
            raise DataError(f"n_refits = {self.n_refits} must be even: random halves come with their complements.")
        if self.n_subtypes not in ("stability", "paper"):
            _check_count("n_subtypes", self.n_subtypes, 1)
        if self.covariance not in COVARIANCES:
            raise DataError(f"covariance = {show(self.covariance)} is not one of {listing(COVARIANCES)}.")
        if (self.time is None) != (self.event is None):
            raise DataError("time and event go together; name both outcome columns or neither.")
        if isinstance(self.n_subtypes, int) and self.n_subtypes * self.outlier_share > 1:
            raise DataError(
                f"n_subtypes = {self.n_subtypes}: not all of them can hold the share {self.outlier_share} of the rows, "
                "below which a cluster is an outlier; ask for fewer or lower outlier_share."
            )
        _check_model(self.model)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` restores it."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> "StudyConfig":
        """From keywords or parsed TOML; an unknown key is an error that names the nearest known one."""
        known = [f.name for f in fields(StudyConfig)]
        for key in given:
            if key not in known:
                raise DataError(f"unknown setting {show(key)}; known: {listing(known, 40)}.{nearest(key, known)}")
        return StudyConfig(**given)


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, for `StudyConfig.from_dict`; errors name the file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not TOML ({error}); write lines such as n_refits = 30.") from None


def config_toml(config: StudyConfig) -> str:
    """The exact configuration as TOML that `read_config` takes; None is left out."""
    settings = jsonable(config.to_dict())
    settings["model"] = {key: value for key, value in settings["model"].items() if value is not None}
    return tomlkit.dumps({key: value for key, value in settings.items() if value is not None})


def _several(given: Any) -> tuple[Any, ...]:
    """One setting or several of them as a tuple."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _check_horizon(value: Any) -> None:
    if not _is(value, Real) or not 0 < value < math.inf:
        raise DataError(f"horizons: {show(value)} must be a number above 0, in the unit of the time column.")


def _check_model(given: Mapping[str, Any]) -> None:
    """Before the first fit rather than in it: names and values of the parameters that are handed on to PluriGP.

    Not whether a device exists: that is known only where the fits run, which may be other machines.
    """
    parameters = PluriGP().get_params()
    for name in given:
        if name in SET_BY_STUDY:
            raise DataError(f"model: {show(name)} is set by the study itself; leave it out there.")
        if name not in parameters:
            known = [key for key in parameters if key not in SET_BY_STUDY]
            raise DataError(
                f"model: unknown parameter {show(name)}; known: {listing(known, 40)}.{nearest(name, known)}"
            )
    try:
        check_parameters({**parameters, **given})
    except ValueError as error:
        raise DataError(f"model: {error}.") from None


def _check_count(name: str, value: Any, least: int) -> None:
    if not _is(value, Integral) or value < least:
        raise DataError(f"{name} = {show(value)} must be a whole number of at least {least}.")


def _is(value: object, of: type) -> bool:
    return isinstance(value, of) and not isinstance(value, bool)
