"""Likelihoods: one small file per family; `register` adds one from outside (docs/how-to-likelihood.md).

Examples
--------
A Laplace family, for errors that are mostly small and sometimes large:

>>> import jax.numpy as jnp
>>> import numpy as np
>>> from plurigp.likelihoods import Likelihood, Start, register
>>> def log_prob(theta, y, f):
...     scale = 0.01 + jnp.exp(theta["log_scale"])
...     return -jnp.abs(y[0] - f[0]) / scale - jnp.log(2 * scale)
>>> def mean(theta, y, f):
...     return f[:1]
>>> def point(expected):
...     return expected[0]
>>> def sample(rng, theta, y, f):
...     return rng.laplace(f[..., 0], 0.01 + np.exp(theta["log_scale"]))
>>> def start(y, column):
...     return Start(np.array([np.median(y)]), {"log_scale": 0.0})
>>> register(Likelihood("laplace", log_prob, mean, point, sample, start), reads_like="gaussian").kind
'laplace'
"""

from plurigp.likelihoods.base import Likelihood, Start
from plurigp.likelihoods.registry import register

__all__ = ["Likelihood", "Start", "register"]
