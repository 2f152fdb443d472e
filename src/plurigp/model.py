"""Model = encoder + sparse GP + a theta per block, and how training starts: informed by the table, or at random."""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.arrays import Array
from plurigp.data import Schema
from plurigp.encoder import Encoder, FreeRows, LatentNormal, make_network, tamed
from plurigp.gp.kernels import make_kernel
from plurigp.gp.sparse import SparseGP
from plurigp.likelihoods.blocks import Layout, Thetas, column_starts, encoder_features, seen_features

START_ROWS = 20_000  # rows that the start looks at, at most


@dataclass(frozen=True)
class Settings:
    """What shapes a model; everything here is fixed before training."""

    n_components: int = 2
    n_inducing: int = 50
    kernel: str = "rbf"
    encoder: str = "masked"
    n_hidden: int = 40
    start: str = "informed"
    lengthscale: float = 6.0


class Model(eqx.Module):
    """Everything Adam moves; q(v) is kept apart, since natural gradients move it."""

    encoder: Encoder | FreeRows
    gp: SparseGP
    thetas: Thetas


def encode(
    model: Model,
    layout: Layout,
    values: Float[Array, "B V"],
    seen: Bool[Array, "B D"],
    rows: Int[Array, " B"] | None = None,
) -> LatentNormal:
    """q(x) for a batch of rows; `rows` are positions in the training table, which only free rows need."""
    if isinstance(model.encoder, FreeRows):
        assert rows is not None  # only training rows have a q(x) of their own
        return model.encoder(rows)
    return model.encoder(encoder_features(layout, values), seen_features(layout, seen), seen)


def init_model(
    seed: int, settings: Settings, schema: Schema, layout: Layout, values: np.ndarray, seen: np.ndarray
) -> Model:
    """The start of training, from block-ordered values [N V] and seen [N D]; plain float32 arrays."""
    rng = np.random.default_rng([seed, 0])
    shown = np.sort(rng.permutation(len(values))[:START_ROWS])
    features, known = _standard_features(layout, values[shown], seen[shown])
    Q, E = settings.n_components, known.standard.shape[1]
    informed = settings.start == "informed"
    linear = _whitened_components(known.standard, Q) if informed else np.zeros((E, Q))
    watched = _columns_with_gaps(seen) if settings.encoder == "masked" else ()
    n_in = E + len(watched)
    encoder = Encoder(
        watched,
        features.shift,
        features.scale,
        linear,
        np.zeros(Q),
        make_network(rng, n_in, settings.n_hidden, Q, scale=0.01 if informed else 1.0),
        make_network(rng, n_in, settings.n_hidden, Q, scale=0.1 if informed else 1.0, shift=-1.0 if informed else 0.0),
    )
    bias, thetas = column_starts(schema, layout, values[shown], seen[shown])
    gp = SparseGP(
        make_kernel(settings.kernel, Q, settings.lengthscale if informed else 1.0),
        _inducing_inputs(rng, known.standard @ linear, settings, informed),
        bias if informed else np.zeros_like(bias),
        np.zeros(layout.n_functions),
    )
    model = Model(encoder, gp, thetas)
    if settings.encoder == "free":
        model = eqx.tree_at(lambda m: m.encoder, model, _free_rows(model, layout, values, seen))
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), model)


def _columns_with_gaps(seen: Bool[np.ndarray, "N D"]) -> tuple[int, ...]:
    return tuple(int(column) for column in np.flatnonzero(~seen.all(0)))


@dataclass(frozen=True)
class _Scaling:
    shift: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class _Known:
    standard: np.ndarray  # [n E] standardised, gaps at zero


@partial(jax.jit, static_argnames=("layout",))
def _read_rows(layout: Layout, values: Float[Array, "N V"], seen: Bool[Array, "N D"]) -> tuple[Array, Array]:
    return encoder_features(layout, values), seen_features(layout, seen)


def _standard_features(layout: Layout, values: np.ndarray, seen: np.ndarray) -> tuple[_Scaling, _Known]:
    features, known = (np.asarray(part) for part in _read_rows(layout, values, seen))
    n = np.maximum(known.sum(0), 1)
    shift = np.where(known, features, 0).sum(0) / n
    scale = np.sqrt(np.where(known, (features - shift) ** 2, 0).sum(0) / n)
    scale = np.where(scale > 1e-6, scale, 1.0)
    return _Scaling(shift, scale), _Known(np.where(known, tamed((features - shift) / scale), 0))


def _whitened_components(standard: np.ndarray, n_components: int) -> np.ndarray:
    """W [E Q] with standard @ W the principal components at unit variance; directions without spread stay zero."""
    n, n_features = standard.shape
    if n_features <= n:
        eigenvalues, vectors = np.linalg.eigh(standard.T @ standard / n)
        eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    else:
        _, s, vt = np.linalg.svd(standard, full_matrices=False)
        eigenvalues, vectors = s**2 / n, vt.T
    W = np.zeros((n_features, n_components))
    for q in range(min(n_components, len(eigenvalues))):
        if eigenvalues[q] > 1e-6 * max(eigenvalues[0], 1e-6):
            sign = np.sign(vectors[np.argmax(np.abs(vectors[:, q])), q])
            W[:, q] = sign * vectors[:, q] / np.sqrt(eigenvalues[q])
    return W


def _inducing_inputs(rng: np.random.Generator, encoded: np.ndarray, settings: Settings, informed: bool) -> np.ndarray:
    """Z at encoded rows, slightly shaken so that equal rows do not give equal points; at random otherwise."""
    M = settings.n_inducing
    if not informed:
        return rng.normal(size=(M, settings.n_components))
    chosen = encoded[rng.choice(len(encoded), M, replace=len(encoded) < M)]
    return chosen + 0.1 * rng.normal(size=chosen.shape)


def _free_rows(model: Model, layout: Layout, values: np.ndarray, seen: np.ndarray) -> FreeRows:
    """Free q(x) starts where the encoder would have put the rows."""
    q = jax.jit(encode, static_argnames=("layout",))(model, layout, values, seen)
    return FreeRows(np.asarray(q.mean), np.log(q.sd))
