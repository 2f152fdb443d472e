"""The families by name."""

from plurigp.likelihoods.base import Likelihood
from plurigp.likelihoods.bernoulli import bernoulli, binomial
from plurigp.likelihoods.beta import beta
from plurigp.likelihoods.categorical import categorical
from plurigp.likelihoods.gaussian import gaussian, gaussian_hetero
from plurigp.likelihoods.lognormal import lognormal
from plurigp.likelihoods.poisson import poisson

_FAMILIES = (gaussian, gaussian_hetero, lognormal, bernoulli, binomial, beta, poisson, categorical)
LIKELIHOODS = {like.kind: like for like in _FAMILIES}


def likelihood_of(kind: str) -> Likelihood:
    """The family of a column's kind."""
    return LIKELIHOODS[kind]
