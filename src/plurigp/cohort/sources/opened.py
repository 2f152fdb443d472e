"""The records of a source, by its form."""

from collections.abc import Callable

from plurigp.cohort.sources.base import Records
from plurigp.cohort.sources.long import long_records
from plurigp.cohort.sources.meds import meds_records
from plurigp.cohort.sources.omop import omop_records
from plurigp.cohort.specification import Source
from plurigp.cohort.stores import Store

FORMS: dict[str, Callable[[Store, Source], Records]] = {
    "long": long_records,
    "omop": omop_records,
    "meds": meds_records,
}


def open_records(store: Store, source: Source) -> Records:
    """The queries that read this source."""
    return FORMS[source.form](store, source)
