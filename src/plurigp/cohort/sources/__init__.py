"""Records of several forms as one: streams of events, patients, periods of observation."""

from plurigp.cohort.sources.base import Records, Stream
from plurigp.cohort.sources.opened import open_records

__all__ = ["Records", "Stream", "open_records"]
