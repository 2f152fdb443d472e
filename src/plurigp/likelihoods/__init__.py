"""Likelihoods: one small file per family; `register` adds one from outside (docs/how-to-likelihood.md)."""

from plurigp.likelihoods.base import Likelihood, Start
from plurigp.likelihoods.registry import register

__all__ = ["Likelihood", "Start", "register"]
