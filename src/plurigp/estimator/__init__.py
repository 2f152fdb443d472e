"""PluriGP, scikit-learn's face of the model: parameters, fitting, progress and saved models."""

from plurigp.estimator.imputer import PluriImputer
from plurigp.estimator.pluri_gp import PluriGP, load

__all__ = ["PluriGP", "PluriImputer", "load"]
