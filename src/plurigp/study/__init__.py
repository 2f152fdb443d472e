"""From a table to tested subtypes: choice of Q, map, clusters, robustness, characteristics."""

from plurigp.study.findings.cluster import Clusters
from plurigp.study.findings.consensus import Consensus
from plurigp.study.findings.null import Nulls
from plurigp.study.fits.config import StudyConfig, read_config
from plurigp.study.result import Map, StudyResult, load_study
from plurigp.study.run import Study

__all__ = ["Clusters", "Consensus", "Map", "Nulls", "Study", "StudyConfig", "StudyResult", "load_study", "read_config"]
