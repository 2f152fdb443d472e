"""The families by name, and the way in for families from outside the package."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module

from plurigp.core.text import nearest
from plurigp.core.types import DataError
from plurigp.data import KINDS
from plurigp.likelihoods.base import Likelihood
from plurigp.likelihoods.families.bernoulli import bernoulli, binomial
from plurigp.likelihoods.families.beta import beta
from plurigp.likelihoods.families.categorical import categorical
from plurigp.likelihoods.families.censored import censored_gaussian, censored_lognormal
from plurigp.likelihoods.families.censored_gamma import censored_gamma
from plurigp.likelihoods.families.counts import negative_binomial, zero_inflated_poisson
from plurigp.likelihoods.families.gamma import gamma
from plurigp.likelihoods.families.gaussian import gaussian, gaussian_hetero
from plurigp.likelihoods.families.lognormal import lognormal
from plurigp.likelihoods.families.ordinal import ordinal
from plurigp.likelihoods.families.poisson import poisson
from plurigp.likelihoods.families.student_t import student_t
from plurigp.likelihoods.families.weibull import weibull
from plurigp.likelihoods.families.zero_lognormal import zero_lognormal
from plurigp.likelihoods.families.zero_one_beta import zero_one_beta

_FAMILIES = (
    gaussian,
    gaussian_hetero,
    student_t,
    lognormal,
    zero_lognormal,
    gamma,
    censored_gaussian,
    censored_lognormal,
    censored_gamma,
    weibull,
    bernoulli,
    binomial,
    beta,
    zero_one_beta,
    poisson,
    negative_binomial,
    zero_inflated_poisson,
    categorical,
    ordinal,
)
LIKELIHOODS = {like.kind: like for like in _FAMILIES}


OUTSIDE: dict[str, str] = {}  # kind -> the module whose import registers it


def likelihood_of(kind: str) -> Likelihood:
    """The family of a column's kind."""
    return LIKELIHOODS[kind]


def check_kinds(parameter: str, kinds: Iterable[str]) -> None:
    """An error that names the first of these kinds which is not known, and the one it may have meant."""
    for kind in kinds:
        if kind not in LIKELIHOODS:
            raise ValueError(
                f"{parameter}: {kind!r} is not one of {', '.join(LIKELIHOODS)}.{nearest(kind, LIKELIHOODS)}"
            )


def register(likelihood: Likelihood, reads_like: str, about: str = "") -> Likelihood:
    """Make a family from outside known under its kind; its cells are read, scaled and written as those of `reads_like`.

    Call it where a module defines the family: a saved model remembers that module, and `load` imports it if allowed.
    """
    kind, module = likelihood.kind, likelihood.log_prob.__module__
    if kind in LIKELIHOODS and OUTSIDE.get(kind) != module:
        raise ValueError(f"kind {kind!r} is taken; give the family another name")
    if reads_like not in KINDS:
        raise ValueError(f"reads_like={reads_like!r} is not one of {', '.join(KINDS)}")
    KINDS[kind] = replace(KINDS[reads_like], name=kind, about=about or f"read like {reads_like}")
    LIKELIHOODS[kind], OUTSIDE[kind] = likelihood, module
    return likelihood


def outside_modules(kinds: Iterable[str]) -> dict[str, str]:
    """The module of each of these kinds that came from outside."""
    return {kind: OUTSIDE[kind] for kind in sorted(set(kinds)) if kind in OUTSIDE}


def import_families(modules: Mapping[str, str], allowed: Iterable[str]) -> None:
    """Have the families of a saved model registered: they are already, or their module may be imported."""
    allowed = (allowed,) if isinstance(allowed, str) else tuple(allowed)
    for kind, module in modules.items():
        if kind not in LIKELIHOODS and module in allowed:
            _import(kind, module)
        if kind not in LIKELIHOODS:
            raise DataError(
                f"kind {kind!r} comes from module {module!r}, outside plurigp; if you trust it, import it first, "
                f"or load with allow_imports=[{module!r}]"
            )


def _import(kind: str, module: str) -> None:
    try:
        import_module(module)
    except ImportError:
        raise DataError(f"kind {kind!r}: module {module!r} cannot be imported; put it on the path") from None
