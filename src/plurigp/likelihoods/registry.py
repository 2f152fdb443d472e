"""The families by name."""

from plurigp.likelihoods.base import Likelihood
from plurigp.likelihoods.bernoulli import bernoulli, binomial
from plurigp.likelihoods.beta import beta
from plurigp.likelihoods.categorical import categorical
from plurigp.likelihoods.censored import censored_gaussian, censored_lognormal
from plurigp.likelihoods.censored_gamma import censored_gamma
from plurigp.likelihoods.counts import negative_binomial, zero_inflated_poisson
from plurigp.likelihoods.gamma import gamma
from plurigp.likelihoods.gaussian import gaussian, gaussian_hetero
from plurigp.likelihoods.lognormal import lognormal
from plurigp.likelihoods.ordinal import ordinal
from plurigp.likelihoods.poisson import poisson
from plurigp.likelihoods.student_t import student_t
from plurigp.likelihoods.weibull import weibull
from plurigp.likelihoods.zero_one_beta import zero_one_beta

_FAMILIES = (
    gaussian,
    gaussian_hetero,
    student_t,
    lognormal,
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


def likelihood_of(kind: str) -> Likelihood:
    """The family of a column's kind."""
    return LIKELIHOODS[kind]
