"""The cohort builder: from records in a database to one row per patient, as a specification says.

Examples
--------
>>> from pathlib import Path
>>> from plurigp.cohort import build_cohort, parse_specification, read_specification
>>> from plurigp.datasets import simulate_records, write_records
>>> folder = write_records(simulate_records(80), "hospital", "long")
>>> text = '''
... source = { form = "long", path = "hospital" }
... index = { codes = ["ICD10/G20*"] }
... [[feature]]
... name = "sodium"
... codes = ["LOINC/2951-2"]
... value = "median"
... unit = "mmol/L"
... window = ["-6 months", "6 months"]
... '''
>>> specification = parse_specification(text, folder=Path())  # a Specification
>>> _ = Path("few.toml").write_text(text)
>>> [feature.name for feature in read_specification("few.toml").features]
['sodium']
>>> built = build_cohort(specification)  # a BuiltCohort with an AttritionStep for every rule and the Quality of values
>>> built.table.columns.tolist()
['patient', 'sodium']
"""

from plurigp.cohort.build import BuiltCohort, build_cohort
from plurigp.cohort.parse import parse_specification, read_specification
from plurigp.cohort.population import AttritionStep
from plurigp.cohort.quality import Quality
from plurigp.cohort.specification import Specification

__all__ = [
    "AttritionStep",
    "BuiltCohort",
    "Quality",
    "Specification",
    "build_cohort",
    "parse_specification",
    "read_specification",
]
