"""Tables to try the model on: real patients, draws from the model itself, a cohort with planted subtypes."""

from plurigp.datasets.cohort import Cohort, simulate_cohort
from plurigp.datasets.simulate import Simulation, simulate
from plurigp.datasets.support import Support, load_support

__all__ = ["Cohort", "Simulation", "Support", "load_support", "simulate", "simulate_cohort"]
