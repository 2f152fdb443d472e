"""From a table to subtypes one can defend: choice of Q, map, clusters, robustness, characteristics."""

from plurigp.study.result import Clusters, Consensus, Map, Nulls, StudyResult, load_study

__all__ = ["Clusters", "Consensus", "Map", "Nulls", "StudyResult", "load_study"]
