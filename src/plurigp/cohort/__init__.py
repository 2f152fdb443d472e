"""The cohort builder: from records in a database to one row per patient, as a specification says."""

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
