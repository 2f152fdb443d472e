"""From a table to subtypes one can defend: choice of Q, map, clusters, robustness, characteristics."""

from plurigp.study.fits.config import StudyConfig, read_config
from plurigp.study.result import Clusters, Consensus, Map, Nulls, StudyResult, load_study
from plurigp.study.run import Study

__all__ = [
    "Clusters",
    "Consensus",
    "Map",
    "Nulls",
    "Study",
    "StudyConfig",
    "StudyResult",
    "load_study",
    "read_config",
]
