"""Tables to try the model on: real patients, draws from the model itself, a cohort with planted subtypes, digits."""

from plurigp.datasets.cohort import Cohort, simulate_cohort
from plurigp.datasets.digits import Digits, digits
from plurigp.datasets.simulate import Simulation, simulate
from plurigp.datasets.support import Support, load_support

__all__ = ["Cohort", "Digits", "Simulation", "Support", "digits", "load_support", "simulate", "simulate_cohort"]
