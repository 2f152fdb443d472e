"""Tables to try the model on: real patients, draws from the model itself, a cohort with planted subtypes."""

from plurigp.datasets.cohort import Cohort, simulate_cohort
from plurigp.datasets.records import SimulatedRecords, simulate_records
from plurigp.datasets.records_forms import long_form, meds_form, omop_form, write_records
from plurigp.datasets.simulate import Simulation, simulate
from plurigp.datasets.support import Support, load_support

__all__ = [
    "Cohort",
    "SimulatedRecords",
    "Simulation",
    "Support",
    "load_support",
    "long_form",
    "meds_form",
    "omop_form",
    "simulate",
    "simulate_cohort",
    "simulate_records",
    "write_records",
]
