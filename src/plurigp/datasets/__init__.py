"""Tables to try the model on: real patients, draws from the model itself, a cohort with planted subtypes.

Examples
--------
>>> from plurigp.datasets import load_support, simulate, simulate_cohort
>>> load_support().table.shape  # a Support: table, schema, outcomes, scores, dictionary and attribution
(9105, 29)
>>> drawn = simulate(100, 2, {"gaussian": 3, "poisson": 2}, missing=0.2)  # a Simulation: the truth is known
>>> drawn.table.shape, drawn.x.shape, bool((drawn.table.isna() == drawn.hidden).all(axis=None))
((100, 5), (100, 2), True)
>>> cohort = simulate_cohort(100, n_subtypes=3)  # a Cohort with planted subtypes
>>> sorted(set(cohort.subtype.tolist()))
[0, 1, 2]

Hospital records in three forms, for the cohort builder:

>>> from plurigp.datasets import long_form, meds_form, omop_form, simulate_records, write_records
>>> records = simulate_records(50)  # SimulatedRecords
>>> sorted(long_form(records)), len(meds_form(records)), "person" in omop_form(records)
(['events', 'patients', 'periods'], 3, True)
>>> sorted(path.name for path in write_records(records, "records", "long").iterdir())
['events.parquet', 'patients.parquet', 'periods.parquet']
"""

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
