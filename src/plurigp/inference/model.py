"""Model = encoder + sparse GP + a theta per block, and how training starts: informed by the table, or at random."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.core.arrays import Array
from plurigp.data import Schema
from plurigp.data.weights import repeated_by_weight
from plurigp.inference.compiling import Program, program
from plurigp.inference.encoder import Encoder, FactorEncoder, FreeRows, LatentNormal, make_network, soft_clip
from plurigp.inference.gp.kernels import make_kernel
from plurigp.inference.gp.linalg import Projection
from plurigp.inference.gp.sparse import SparseGP, project
from plurigp.inference.prior import MixturePrior, standard_mixture
from plurigp.likelihoods.evaluate import (
    Thetas,
    column_starts,
    covariate_features,
    encoder_features,
    feature_columns,
    seen_features,
)
from plurigp.likelihoods.layout import Layout

START_ROWS = 20_000  # rows that the start looks at, at most
NOISE = (0.02, 1.0)  # of a standardised feature beside the factors


@dataclass(frozen=True)
class Settings:
    """What shapes a model; everything here is fixed before training."""

    n_components: int = 2
    n_inducing: int = 50
    kernel: str = "rbf"
    encoder: str = "factors"
    n_hidden: int = 40
    start: str = "informed"
    lengthscale: float = 6.0
    n_groups: int = 1


class Covariates(eqx.Module):
    """How a row's covariates c are coded, and how large their effects are: f gets a linear part τ c · w, w ~ N(0, I).

    Numbers are standardised, indicators of levels centred; each covariate has a τ of its own.
    """

    shift: Float[Array, " L"]  # not learned
    scale: Float[Array, " L"]  # not learned
    log_scale: Float[Array, " covariates"]


class Model(eqx.Module):
    """Everything Adam moves, and the prior of x; q(v) is kept apart, since natural gradients move it."""

    encoder: FactorEncoder | Encoder | FreeRows
    gp: SparseGP
    thetas: Thetas
    prior: MixturePrior | None = None  # N(0, I) if None; a mixture is moved by expectation maximisation
    covariates: Covariates | None = None

    @property
    def n_basis(self) -> int:
        """Functions that every f is a weighted sum of: one per inducing point, and one per covariate feature."""
        return len(self.gp.Z) + (0 if self.covariates is None else len(self.covariates.shift))


def covariate_codes(model: Model, layout: Layout, values: Float[Array, "B V"]) -> Float[Array, "B L"] | None:
    """The coded covariates behind a row's cells, if the model has any."""
    if model.covariates is None:
        return None
    shift, scale = (jax.lax.stop_gradient(part) for part in (model.covariates.shift, model.covariates.scale))
    return (covariate_features(layout, values) - shift) / scale


def project_rows(
    model: Model, layout: Layout, x: Float[Array, "S Q"], values: Float[Array, "B V"] | None
) -> Projection:
    """A of every position, S = draws · B; with covariates, of k(x, x') + Σ τ² c · c', whose second part is exact.

    Without values, covariates are at their average.
    """
    rows = project(model.gp, x)
    if model.covariates is None or layout.covariates is None:
        return rows
    if values is None:
        scaled = jnp.zeros((len(model.covariates.shift), len(x)), rows.A.dtype)
    else:
        codes = covariate_codes(model, layout, values)
        assert codes is not None
        sd = jnp.exp(model.covariates.log_scale @ feature_columns(layout.covariates).astype(codes.dtype))
        scaled = jnp.tile((codes * sd).T, (1, len(x) // len(codes))).astype(rows.A.dtype)
    return rows._replace(A=jnp.concatenate([rows.A, scaled]))


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
    codes = covariate_codes(model, layout, values)
    return model.encoder(encoder_features(layout, values), seen_features(layout, seen), seen, codes)


def init_model(
    seed: int,
    settings: Settings,
    schema: Schema,
    layout: Layout,
    values: np.ndarray,
    seen: np.ndarray,
    weights: np.ndarray | None = None,
) -> Model:
    """The start of training, from block-ordered values [N V] and seen [N D]; plain float32 arrays.

    Rows count by their weights [N]: whole ones start as the table with its rows repeated does.
    """
    rng = np.random.default_rng([seed, 0])
    counted = repeated_by_weight(weights, len(values))
    shown = counted[np.sort(rng.permutation(len(counted))[:START_ROWS])]
    covariates, codes = _start_covariates(layout, values[shown])
    rows = _standard_rows(layout, values[shown], seen[shown], codes)
    informed = settings.start == "informed"
    with_gaps = tuple(int(column) for column in np.flatnonzero(~seen.all(0)))
    indicator_columns = with_gaps if settings.encoder in ("factors", "masked") else ()
    encoder, encoded = _start_encoder(rng, settings, rows, indicator_columns)
    bias, thetas = column_starts(schema, layout, values[shown], seen[shown])
    gp = SparseGP(
        make_kernel(settings.kernel, settings.n_components, settings.lengthscale if informed else 1.0),
        _inducing_inputs(rng, encoded, settings, informed),
        bias if informed else np.zeros_like(bias),
        np.zeros(layout.n_functions),
    )
    prior = standard_mixture(settings.n_groups, settings.n_components) if settings.n_groups > 1 else None
    model = Model(encoder, gp, thetas, prior, covariates)
    if settings.encoder == "free":
        model = eqx.tree_at(lambda m: m.encoder, model, _free_rows(model, layout, values, seen))
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), model)


@dataclass(frozen=True)
class _Rows:
    """Rows as the encoder reads them."""

    shift: np.ndarray
    scale: np.ndarray
    standard: np.ndarray  # [n E] standardised, gaps at zero
    known: np.ndarray  # [n E]
    weights: np.ndarray | None  # [E] of their columns; None = all alike
    effects: np.ndarray | None  # [L E] of covariates, taken off the standardised features


@program(static_argnames=("layout",))
def _read_rows(layout: Layout, values: Float[Array, "N V"], seen: Bool[Array, "N D"]) -> tuple[Array, Array]:
    """Features [N E] and where they are known."""
    return encoder_features(layout, values), seen_features(layout, seen)


def _start_covariates(layout: Layout, values: np.ndarray) -> tuple[Covariates | None, np.ndarray | None]:
    """Their coding by these rows, and the codes [n L]."""
    if layout.covariates is None:
        return None, None
    features = np.asarray(Program(covariate_features, static_argnames=("layout",))(layout, values), float)
    shift, scale = features.mean(0), features.std(0)
    indicators = np.isin(features, (0, 1)).all(0)
    scale = np.where(indicators | (scale < 1e-6), 1.0, scale)
    return Covariates(shift, scale, np.zeros(len(layout.covariates.order))), (features - shift) / scale


def _regressed(standard: np.ndarray, known: np.ndarray, codes: np.ndarray) -> Float[np.ndarray, "L E"]:
    """Coefficients of every feature on the covariates, by its known cells, with the ridge of the prior N(0, 1)."""
    gram = np.einsum("nl,nk,ne->elk", codes, codes, known.astype(float)) + np.eye(codes.shape[1])
    return np.linalg.solve(gram, (codes.T @ np.where(known, standard, 0)).T[:, :, None])[:, :, 0].T


def _standard_rows(layout: Layout, values: np.ndarray, seen: np.ndarray, codes: np.ndarray | None) -> _Rows:
    features, known = (np.asarray(part) for part in _read_rows(layout, values, seen))
    n = np.maximum(known.sum(0), 1)
    shift = np.where(known, features, 0).sum(0) / n
    scale = np.sqrt(np.where(known, (features - shift) ** 2, 0).sum(0) / n)
    scale = np.where(scale > 1e-6, scale, 1.0)
    standard = (features - shift) / scale
    effects = None if codes is None else _regressed(standard, known, codes)
    left = standard if effects is None else standard - codes @ effects
    return _Rows(shift, scale, np.where(known, soft_clip(left), 0), known, _feature_weights(layout), effects)


def _feature_weights(layout: Layout) -> np.ndarray | None:
    """Every feature's weight, that of its column."""
    if layout.column_weights is None:
        return None
    return np.asarray(layout.column_weights) @ feature_columns(layout)


def _start_encoder(
    rng: np.random.Generator, settings: Settings, rows: _Rows, indicator_columns: tuple[int, ...]
) -> tuple[FactorEncoder | Encoder, np.ndarray]:
    """The encoder, and where it puts the rows before its networks have learned anything [n Q]."""
    Q, E = settings.n_components, rows.standard.shape[1]
    n_covariates = 0 if rows.effects is None else len(rows.effects)
    n_in, informed = E + len(indicator_columns) + n_covariates, settings.start == "informed"
    reading = (indicator_columns, rows.shift, rows.scale)
    net_mean = make_network(rng, n_in, settings.n_hidden, Q, scale=0.01 if informed else 1.0)
    scale = 0.1 if informed else 1.0
    linear = _start_components(rows, Q) if informed else np.zeros((E, Q))
    encoded = rows.standard @ linear
    if settings.encoder != "factors":
        net_sd = make_network(rng, n_in, settings.n_hidden, Q, scale, shift=-1.0 if informed else 0.0)
        return Encoder(*reading, linear, np.zeros(Q), net_mean, net_sd, rows.effects), encoded
    net_sd = make_network(rng, n_in, settings.n_hidden, Q, scale)
    if informed:
        loadings = rows.standard.T @ encoded / np.maximum(rows.known.sum(0), 1)[:, None]
    else:
        loadings = rng.normal(size=(E, Q)) / np.sqrt(E)
    n_known = np.maximum(rows.known.sum(0), 1)
    variance = 1 if rows.effects is None else (rows.standard**2).sum(0) / n_known
    noise = np.clip(variance - (loadings**2).sum(1), *NOISE)
    log_precision = -np.log(noise) + (0.0 if rows.weights is None else np.log(rows.weights))
    return FactorEncoder(*reading, loadings, log_precision, net_mean, net_sd, rows.effects), encoded


def _start_components(rows: _Rows, n_components: int) -> Float[np.ndarray, "E Q"]:
    """Principal components at unit variance, of features that count by the weights of their columns."""
    if rows.weights is None:
        return _whitened_components(rows.standard, n_components)
    root = np.sqrt(rows.weights)
    return root[:, None] * _whitened_components(rows.standard * root, n_components)


def _whitened_components(standard: Float[np.ndarray, "n E"], n_components: int) -> Float[np.ndarray, "E Q"]:
    """W with standard @ W the principal components at unit variance; directions without spread stay zero."""
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
    """Z at encoded rows, plus a little noise so that equal rows do not give equal points; at random otherwise."""
    M = settings.n_inducing
    if not informed:
        return rng.normal(size=(M, settings.n_components))
    chosen = encoded[rng.choice(len(encoded), M, replace=len(encoded) < M)]
    return chosen + 0.1 * rng.normal(size=chosen.shape)


def _free_rows(model: Model, layout: Layout, values: np.ndarray, seen: np.ndarray) -> FreeRows:
    """Free q(x) starts where the encoder would have put the rows."""
    q = Program(encode, static_argnames=("layout",))(model, layout, values, seen)
    return FreeRows(np.asarray(q.mean), np.log(np.asarray(q.sd)))
