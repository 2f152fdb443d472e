"""One low-dimensional latent Gaussian-process map of a mixed table: one likelihood per column, gaps welcome."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plurigp.core.types import DataError as DataError
    from plurigp.data import Schema as Schema
    from plurigp.data import infer_schema as infer_schema
    from plurigp.data import read_table as read_table
    from plurigp.estimator import PluriGP as PluriGP
    from plurigp.estimator import PluriImputer as PluriImputer
    from plurigp.estimator import load as load
    from plurigp.study import Study as Study
    from plurigp.study import StudyResult as StudyResult
    from plurigp.study import load_study as load_study

__version__ = "0.1.0"

_HOME = {
    "PluriGP": "plurigp.estimator",
    "PluriImputer": "plurigp.estimator",
    "load": "plurigp.estimator",
    "Study": "plurigp.study",
    "StudyResult": "plurigp.study",
    "load_study": "plurigp.study",
    "DataError": "plurigp.core.types",
    "Schema": "plurigp.data",
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
    "infer_schema",
    "load",
    "load_study",
    "read_table",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import plurigp` (and `plurigp --help`) stays quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'plurigp' has no attribute {name!r}")
