"""One low-dimensional latent Gaussian-process map of a mixed table: one likelihood per column, gaps welcome.

Examples
--------
A table, the kinds of its columns, a map, and the map from its folder:

>>> import plurigp
>>> from plurigp.datasets import simulate_cohort
>>> simulate_cohort(80, n_subtypes=2, n_binary=2, n_real=3, n_proportion=1).table.to_csv("patients.csv", index=False)
>>> table = plurigp.read_table("patients.csv")
>>> schema = plurigp.infer_schema(table)
>>> isinstance(schema, plurigp.Schema), schema["lab_01"].kind
(True, 'gaussian')
>>> model = plurigp.PluriGP(2, schema=schema, max_epochs=3, random_state=0).fit(table)
>>> plurigp.load(model.save("model")).transform(table).shape
(80, 2)

A table filled in one go, and analyses of completed tables pooled:

>>> filled = plurigp.PluriImputer(n_components=2, second_stage="none", max_epochs=3).fit_transform(table)
>>> bool(filled["lab_01"].isna().any()), plurigp.pool([1.0, 1.2, 1.1], [0.1, 0.1, 0.1]).n_imputations
(False, 3)

What is wrong with a table is said in one line, with the remedy:

>>> try:
...     plurigp.infer_schema(table, {"lab_01": "poisson"})
... except plurigp.DataError as error:
...     print(error)  # doctest: +ELLIPSIS
column 'lab_01', row ...

A study is a StudyResult, in memory or from its folder (far too few refits and epochs here, to be quick):

>>> quick = dict(n_components=2, n_restarts=1, n_refits=2, max_epochs=3, n_permutations=20)
>>> result = plurigp.Study(out="run", schema=schema, n_jobs=0, **quick).fit(table)
>>> isinstance(plurigp.load_study("run"), plurigp.StudyResult)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plurigp.answers.pooling import pool as pool
    from plurigp.answers.pooling import pool_fits as pool_fits
    from plurigp.core.types import DataError as DataError
    from plurigp.data import Schema as Schema
    from plurigp.data import infer_schema as infer_schema
    from plurigp.data import read_table as read_table
    from plurigp.data.missingness import add_missingness as add_missingness
    from plurigp.estimator import PluriGP as PluriGP
    from plurigp.estimator import PluriImputer as PluriImputer
    from plurigp.estimator import load as load
    from plurigp.estimator.explaining import explain as explain
    from plurigp.estimator.patients import patient_effects as patient_effects
    from plurigp.estimator.sensitivity import sensitivity as sensitivity
    from plurigp.report.table_one import table_one as table_one
    from plurigp.report.transfer import compare_studies as compare_studies
    from plurigp.study import Study as Study
    from plurigp.study import StudyResult as StudyResult
    from plurigp.study import load_study as load_study

__version__ = "0.2.0"

_HOME = {
    "PluriGP": "plurigp.estimator",
    "PluriImputer": "plurigp.estimator",
    "load": "plurigp.estimator",
    "Study": "plurigp.study",
    "StudyResult": "plurigp.study",
    "load_study": "plurigp.study",
    "compare_studies": "plurigp.report.transfer",
    "table_one": "plurigp.report.table_one",
    "explain": "plurigp.estimator.explaining",
    "patient_effects": "plurigp.estimator.patients",
    "sensitivity": "plurigp.estimator.sensitivity",
    "pool": "plurigp.answers.pooling",
    "pool_fits": "plurigp.answers.pooling",
    "DataError": "plurigp.core.types",
    "Schema": "plurigp.data",
    "add_missingness": "plurigp.data.missingness",
    "infer_schema": "plurigp.data",
    "read_table": "plurigp.data",
}
__all__ = [
    "DataError",
    "PluriGP",
    "PluriImputer",
    "Schema",
    "Study",
    "StudyResult",
    "add_missingness",
    "compare_studies",
    "explain",
    "infer_schema",
    "load",
    "load_study",
    "patient_effects",
    "pool",
    "pool_fits",
    "read_table",
    "sensitivity",
    "table_one",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import plurigp` (and `plurigp --help`) stays quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'plurigp' has no attribute {name!r}")
