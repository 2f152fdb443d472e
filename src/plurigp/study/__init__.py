"""From a table to tested subtypes: choice of Q, map, clusters, robustness, characteristics.

Examples
--------
`Study(out="run").fit(table)` is a StudyResult, which the folder keeps (the first page of the reference makes this one):

>>> from pathlib import Path
>>> from plurigp.study import StudyConfig, load_study, read_config
>>> result = load_study("run")
>>> set(result.table("subtypes")["kind"]) <= {"group", "part of a continuum", "remainder"}
True
>>> result.latent.mean.shape, result.clusters.subtype.shape  # a Map and Clusters: of single rows
((80, 2), (80,))
>>> result.consensus.item.shape, result.nulls is not None  # Consensus and Nulls
((80,), True)
>>> settings = read_config(Path("run", "study.toml"))  # the settings that repeat the study
>>> StudyConfig.from_dict(settings).n_refits
2
"""

from plurigp.study.findings.cluster import Clusters
from plurigp.study.findings.consensus import Consensus
from plurigp.study.findings.null import Nulls
from plurigp.study.fits.config import StudyConfig, read_config
from plurigp.study.result import Map, StudyResult, load_study
from plurigp.study.run import Study

__all__ = ["Clusters", "Consensus", "Map", "Nulls", "Study", "StudyConfig", "StudyResult", "load_study", "read_config"]
