"""The families by kind, and the way in for families from outside the package."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from plurigp.core.text import nearest
from plurigp.core.types import DataError
from plurigp.data import KINDS
from plurigp.likelihoods import families
from plurigp.likelihoods.base import Likelihood


def _discover() -> dict[str, Likelihood]:
    """The likelihoods that the modules of `families` define, in the order of KINDS."""
    modules = (import_module(f"{families.__name__}.{module.name}") for module in iter_modules(families.__path__))
    found = {v.kind: v for module in modules for v in vars(module).values() if isinstance(v, Likelihood)}
    if unpaired := sorted(found.keys() ^ KINDS.keys()):
        raise RuntimeError(f"a kind needs an entry in data/kinds.py and a likelihood in families: {unpaired} lack one")
    return {kind: found[kind] for kind in KINDS}


LIKELIHOODS = _discover()
OUTSIDE: dict[str, str] = {}  # kind -> the module whose import registers it


def check_kinds(parameter: str, kinds: Iterable[str]) -> None:
    """An error that names the first of these kinds which is not known, and the one it may have meant."""
    for kind in kinds:
        if kind not in LIKELIHOODS:
            raise ValueError(
                f"{parameter}: {kind!r} is not one of {', '.join(LIKELIHOODS)}.{nearest(kind, LIKELIHOODS)}"
            )


def register(likelihood: Likelihood, reads_like: str, about: str = "") -> Likelihood:
    """Make a family from outside known under its kind; its cells are read, scaled and written as those of `reads_like`.

    Call it where a module defines the family: a saved model remembers that module, and `load` imports it if allowed.
    """
    kind, module = likelihood.kind, likelihood.log_prob.__module__
    if kind in LIKELIHOODS and OUTSIDE.get(kind) != module:
        raise ValueError(f"kind {kind!r} is taken; give the family another name")
    if reads_like not in KINDS:
        raise ValueError(f"reads_like={reads_like!r} is not one of {', '.join(KINDS)}")
    KINDS[kind] = replace(KINDS[reads_like], name=kind, about=about or f"read like {reads_like}")
    LIKELIHOODS[kind], OUTSIDE[kind] = likelihood, module
    return likelihood


def outside_modules(kinds: Iterable[str]) -> dict[str, str]:
    """The module of each of these kinds that came from outside."""
    return {kind: OUTSIDE[kind] for kind in sorted(set(kinds)) if kind in OUTSIDE}


def import_families(modules: Mapping[str, str], allowed: Iterable[str]) -> None:
    """Have the families of a saved model registered: they are already, or their module may be imported."""
    allowed = (allowed,) if isinstance(allowed, str) else tuple(allowed)
    for kind, module in modules.items():
        if kind not in LIKELIHOODS and module in allowed:
            try:
                import_module(module)
            except ImportError:
                raise DataError(f"kind {kind!r}: module {module!r} cannot be imported; put it on the path") from None
        if kind not in LIKELIHOODS:
            raise DataError(
                f"kind {kind!r} comes from module {module!r}, outside plurigp; if you trust it, import it first, "
                f"or load with allow_imports=[{module!r}]"
            )
