"""What a study is asked to do: one frozen record, from keywords or TOML, checked once, written back exactly."""

import hashlib
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
from plurigp.study.findings.disclosure import MIN_COUNT

LEAST = {  # smallest value of each count
    "n_restarts": 1, "batch_size": 1, "selection_rows": 20, "max_clusters": 2, "mixture_inits": 1,
    "max_subtypes": 2, "n_refits": 2, "n_permutations": 0, "n_references": 0, "consensus_rows": 10,
    "sampled_pairs": 1000, "random_state": 0,
    "min_count": 1, "pool_rare_levels": 0,
}  # fmt: skip
MAX_CONFIG_BYTES = 10_000_000
SHARES = ("test_share", "hidden_share", "outlier_share", "level")
RULES = ("evidence", "paper")  # by which a study chooses the number of subtypes
# settings of what is done with finished fits, which may change when a study goes on
AFTER_FITS = ("title", "level", "horizons", "n_permutations", "consensus_rows", "sampled_pairs", "min_count")
OneOrMore = Any  # a number or several; a tuple once checked
# parameters of PluriGP that are not in `model`
SET_BY_STUDY = (
    "n_components",
    "schema",
    "pool_rare_levels",
    "max_epochs",
    "batch_size",
    "random_state",
    "verbose",
)  # not in `model`


@dataclass(frozen=True)
class StudyConfig:
    """The settings of a study; the defaults follow the paper where it is sound.

    n_components : the latent dimensions to choose from; a single one is taken without choosing.
    n_restarts, batch_size : a map is the best of so many restarts; batches are at most so large.
    max_epochs : at most so many passes; None is 100, or fewer where that would be more than 600 steps (50 at least).
    test_share, hidden_share, selection_rows : held-out rows, the share of their cells to predict, and how many rows the
        choice of n_components looks at.
    max_clusters, mixture_inits, outlier_share : the paper's mixture; smaller clusters are outliers.
    n_subtypes : "evidence" (the smallest number of clusters that holds nine tenths of the evidence for groups; a table
        without subtypes is described in strata all the same), "paper" (the number of its mixture) or a number.
    max_subtypes : how many are tried.
    n_refits, n_permutations, n_references : random halves (in complementary pairs), label permutations, and
        structureless tables, with two half maps each, to see how often the test finds groups in such a table.
    level : of the tests, over all subtypes.
    consensus_rows, sampled_pairs : the full consensus matrix up to so many rows, otherwise so many pairs.
    min_count : no count of fewer rows is in what a result shows: it is shown as this number where more were expected,
        elsewhere the comparison is left out; levels that fewer rows have are not named. 1 shows everything.
    pool_rare_levels : levels of categories that fewer rows have count as one level, "other", before anything is fitted.
    time, event, horizons : outcome columns, kept out of the map, and times at which to read off the risk.
    groups : the column that names the group of a row, such as its patient: splits and halves keep a group together.
    weights : the column that says how often each row counts.
    guides : {"column": weight}: outcome columns that inform the map with this weight and are therefore not tested.
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
    n_subtypes: str | int = "evidence"
    max_subtypes: int = 10
    n_refits: int = 30
    n_permutations: int = 1000
    n_references: int = 0
    level: float = 0.05
    consensus_rows: int = 5000
    sampled_pairs: int = 400_000
    min_count: int = MIN_COUNT
    pool_rare_levels: int = 0
    time: str | None = None
    event: str | None = None
    horizons: OneOrMore = ()
    groups: str | None = None
    weights: str | None = None
    guides: Any = field(default_factory=dict)
    random_state: int = 0
    model: Any = field(default_factory=dict)

    def __post_init__(self) -> None:
        dimensions, horizons = _several(self.n_components), _several(self.horizons)
        for name in ("title", "time", "event", "groups", "weights"):
            value = getattr(self, name)
            _require(
                isinstance(value, str) or (value is None and name != "title"), f"{name} = {show(value)} must be text."
            )
        counts = [(name, getattr(self, name), least) for name, least in LEAST.items()]
        counts += [("n_components", value, 1) for value in dimensions]
        counts += [("max_epochs", self.max_epochs, 1)] if self.max_epochs is not None else []
        counts += [("n_subtypes", self.n_subtypes, 1)] if self.n_subtypes not in RULES else []
        for name, value, least in counts:
            whole = _is(value, Integral) and value >= least
            _require(whole, f"{name} = {show(value)} must be a whole number of at least {least}.")
        for name in SHARES:
            value = getattr(self, name)
            share = _is(value, Real) and 0 < value < 1
            _require(share, f"{name} = {show(value)} must be a share above 0 and below 1.")
        for value in horizons:
            positive = _is(value, Real) and 0 < value < math.inf
            _require(positive, f"horizons: {show(value)} must be a number above 0, in the unit of the time column.")
        _require(dimensions, "n_components names no latent dimension; give one number or more.")
        even = self.n_refits % 2 == 0
        _require(even, f"n_refits = {self.n_refits} must be even: random halves come with their complements.")
        both = (self.time is None) == (self.event is None)
        _require(both, "time and event go together; name both outcome columns or neither.")
        _require(
            self.n_subtypes in RULES or int(self.n_subtypes) * self.outlier_share <= 1,
            f"n_subtypes = {self.n_subtypes}: not all of them can hold the share {self.outlier_share} of the rows, "
            "below which a cluster is an outlier; ask for fewer or lower outlier_share.",
        )
        _check_model(self.model)
        _require(isinstance(self.guides, Mapping), f"guides = {show(self.guides)} must hold weights by column.")
        settled = {"n_components": tuple(map(int, dimensions)), "horizons": tuple(map(float, horizons))}
        for name, value in {**settled, "model": dict(self.model), "guides": dict(self.guides)}.items():
            object.__setattr__(self, name, value)  # frozen

    def seed_of(self, name: str) -> int:
        """A seed that depends on the study's seed and on this name alone."""
        return int.from_bytes(hashlib.sha256(f"{self.random_state}/{name}".encode()).digest()[:4], "little") >> 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` restores it."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> "StudyConfig":
        """From keywords or parsed TOML; an unknown key is an error that names the nearest known one."""
        known = [f.name for f in fields(StudyConfig)]
        for key in given:
            _require(key in known, f"unknown setting {show(key)}; known: {listing(known, 40)}.{nearest(key, known)}")
        return StudyConfig(**given)


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, for `StudyConfig.from_dict`; errors name the file."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise DataError(f"{path}: is larger than {MAX_CONFIG_BYTES // 10**6} MB and no settings; check the path.")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise DataError(f"{path}: nested too deeply for settings; write lines such as n_refits = 30.") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not TOML ({error}); write lines such as n_refits = 30.") from None


def config_toml(config: StudyConfig) -> str:
    """The exact configuration as TOML that `read_config` takes; None, which TOML lacks, is left out."""
    return tomlkit.dumps(_without_none(jsonable(config.to_dict())))


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in given.items() if value is not None}
    return {key: _without_none(value) if isinstance(value, Mapping) else value for key, value in kept.items()}


def _check_model(given: Any) -> None:
    """Names and values of PluriGP's parameters, before the first fit.

    Not whether a device exists: that is known only where the fits run, which may be other machines.
    """
    _require(isinstance(given, Mapping), f"model = {show(given)} must hold parameters, such as kernel = 'rbf'.")
    parameters = PluriGP().get_params()
    free = [name for name in parameters if name not in SET_BY_STUDY]
    for name in given:
        _require(name not in SET_BY_STUDY, f"model: {show(name)} is set by the study itself; leave it out there.")
        unknown = f"model: unknown parameter {show(name)}; known: {listing(free, 40)}.{nearest(name, free)}"
        _require(name in parameters, unknown)
    try:
        check_parameters({**parameters, **given})
    except ValueError as error:
        raise DataError(f"model: {error}.") from None


def _several(given: Any) -> tuple[Any, ...]:
    """One setting or several of them as a tuple."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _is(value: object, of: type) -> bool:
    return isinstance(value, of) and not isinstance(value, bool)


def _require(holds: object, message: str) -> None:
    if not holds:
        raise DataError(message)
