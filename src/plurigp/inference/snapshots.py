"""A training run between two epochs as named arrays and a few facts, and back: what a checkpoint holds."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from plurigp.inference.bound import Bound, BoundSpec
from plurigp.inference.model import Model
from plurigp.inference.prior import GroupStatistics
from plurigp.inference.steps import EpochMetrics, State, running_shapes, start_state


class Snapshot(NamedTuple):
    """Where a run stands: all it needs to go on as if it had never stopped."""

    state: State
    epochs: tuple[EpochMetrics, ...]
    n_steps: int
    step_factor: float
    phase_start: int  # epochs before the present phase: its plateau counts from there
    has_groups: bool  # whether the mixture as prior has started
    rng: dict[str, Any]  # the state of the generator that shuffles the rows


FACTS: dict[str, type] = {"n_steps": int, "step_factor": float, "phase_start": int, "has_groups": bool, "rng": dict}


def snapshot_arrays(snapshot: Snapshot) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Every array under its path, such as "state.model.gp.Z"; epochs are stacked. The rest as plain facts."""
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *snapshot.epochs)
    named = {name: np.asarray(leaf) for name, leaf in _named({"state": snapshot.state, "epochs": stacked}).items()}
    return named, {name: getattr(snapshot, name) for name in FACTS}


def snapshot_from(
    arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any], spec: BoundSpec, model: Model, optimizer: str
) -> Snapshot:
    """The snapshot that was taken of a run which started from this model; a ValueError names what does not fit."""
    for name, kind in FACTS.items():
        if type(facts.get(name)) is not kind:
            raise ValueError(f"{name!r} is missing or is no {kind.__name__}")
    np.random.default_rng().bit_generator.state = facts["rng"]  # raises where it is none
    state = running_shapes(start_state(spec, model, optimizer))
    n_epochs = len(arrays.get("epochs.jitter", ()))
    shapes = {"state": state, "epochs": _epoch_shapes(spec, model, n_epochs)}
    for name, expected in _named(shapes).items():
        found = arrays.get(name)
        if found is None or (found.shape, found.dtype) != (expected.shape, expected.dtype):
            raise ValueError(f"array {name!r} is missing or has another shape")
    tree = jax.tree.unflatten(jax.tree.structure(shapes), [arrays[name] for name in _named(shapes)])
    epochs = tuple(jax.tree.map(lambda leaf, n=n: leaf[n], tree["epochs"]) for n in range(n_epochs))
    return Snapshot(tree["state"], epochs, **{name: facts[name] for name in FACTS})


def _named(tree: Any) -> dict[str, Any]:
    """Leaves by path, in the tree's order."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def _epoch_shapes(spec: BoundSpec, model: Model, n_epochs: int) -> EpochMetrics:
    """Of the stacked metrics; `run_epoch` averages them in float64."""

    def of(*shape: int) -> Any:
        return jax.ShapeDtypeStruct((n_epochs, *shape), np.float64)

    Q, prior = model.gp.Z.shape[1], model.prior
    K = 0 if prior is None else prior.n_groups
    groups = None if prior is None else GroupStatistics(of(K), of(K, Q), of(K, Q, Q))
    return EpochMetrics(Bound(tuple(of() for _ in spec.layout.blocks), of(), of()), of(Q), of(), groups)
