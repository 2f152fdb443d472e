"""Where training starts: principal components, link-scale biases, inducing points at encoded rows; or at random."""

from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from plurigp.data import Coder
from plurigp.datasets import simulate
from plurigp.inference.encoder import Encoder, FactorEncoder, FreeRows
from plurigp.inference.model import Settings, encode, init_model
from plurigp.likelihoods.layout import arrange, make_layout

COLUMNS = {"gaussian": 3, "bernoulli": 2, "binomial": 1, "beta": 1, "poisson": 1, "categorical": 2}
SETTINGS = Settings(n_components=2, n_inducing=10)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


encode_rows = jax.jit(encode, static_argnums=1)


class Start:
    """A table in block order and the model that training would start from."""

    def __init__(self, n_rows: int = 80, missing: float = 0.15):
        simulation = simulate(n_rows, 2, COLUMNS, missing, random_state=4)
        coder = Coder.fit(simulation.table, simulation.schema)
        self.schema, self.layout = coder.schema, make_layout(coder.schema)
        self.values, self.seen = arrange(self.layout, coder.table(simulation.table))

    def model(self, settings: Settings = SETTINGS, seed: int = 0):
        return init_model(seed, settings, self.schema, self.layout, self.values, self.seen)

    def encoded(self, model):
        values = jnp.asarray(self.values, jnp.float32)
        return encode_rows(model, self.layout, values, jnp.asarray(self.seen), jnp.arange(len(values)))


@pytest.fixture(scope="module")
def start() -> Start:
    return Start()


def columns_of(start: Start, kind: str):
    """(function numbers, observed cells [n W]) of every column of a kind."""
    for block in start.layout.blocks:
        if block.likelihood.kind == kind:
            at, W = block.functions[0], (block.slots[1] - block.slots[0]) // block.n_columns
            for c, H in enumerate(block.n_functions):
                slot = block.slots[0] + c * W
                yield slice(at, at + H), start.values[start.seen[:, block.columns[0] + c], slot : slot + W]
                at += H


def test_everything_is_float32(start):
    for leaf in jax.tree.leaves(start.model()):
        assert leaf.dtype == jnp.float32


def test_encoded_means_start_whitened(start):
    """The principal components of the standardised features: unit spread, uncorrelated."""
    mean = np.asarray(start.encoded(start.model(replace(SETTINGS, encoder="masked"))).mean)
    np.testing.assert_allclose(np.cov(mean.T, bias=True), np.eye(2), atol=0.1)


def test_factors_start_near_the_principal_components(start):
    """Each dimension is one component, drawn towards the prior by what its cells leave open."""
    ours, theirs = (start.encoded(start.model(replace(SETTINGS, encoder=name))) for name in ("factors", "masked"))
    for q in range(2):
        assert np.corrcoef(ours.mean[:, q], theirs.mean[:, q])[0, 1] > 0.95
    total = np.var(ours.mean, axis=0) + (np.asarray(ours.sd) ** 2).mean(0)
    assert ((total > 0.8) & (total < 1.1)).all()


def test_biases_start_at_the_link_of_the_column_mean(start):
    bias = np.asarray(start.model().gp.bias)
    for functions, cells in columns_of(start, "gaussian"):
        assert bias[functions] == pytest.approx(0, abs=1e-6)
        assert cells.mean() == pytest.approx(0, abs=1e-6)
    for functions, cells in columns_of(start, "bernoulli"):
        assert special.expit(bias[functions]) == pytest.approx(cells.mean(), rel=1e-4)
    for functions, cells in columns_of(start, "binomial"):
        assert special.expit(bias[functions]) == pytest.approx(cells[:, 0].sum() / cells[:, 1].sum(), rel=1e-4)
    for functions, cells in columns_of(start, "beta"):
        assert special.ndtr(bias[functions]) == pytest.approx(cells.mean(), rel=1e-4)
    for functions, cells in columns_of(start, "poisson"):
        assert np.exp(bias[functions]) == pytest.approx(cells.mean(), rel=1e-4)
    for functions, cells in columns_of(start, "categorical"):
        levels = functions.stop - functions.start
        share = (np.bincount(cells[:, 0].astype(int), minlength=levels) + 0.5) / (len(cells) + levels / 2)
        np.testing.assert_allclose(special.softmax(bias[functions]), share, rtol=1e-4)


def test_lengthscales_start_long_and_scales_at_one(start):
    model = start.model()
    np.testing.assert_allclose(np.exp(model.gp.kernel.log_lengthscales), 6.0, rtol=1e-5)
    np.testing.assert_array_equal(model.gp.log_scale, 0)


def test_inducing_points_start_at_encoded_rows(start):
    model = start.model(replace(SETTINGS, encoder="masked"))
    mean = np.asarray(start.encoded(model).mean)
    nearest = np.linalg.norm(np.asarray(model.gp.Z)[:, None] - mean, axis=2).min(1)
    assert model.gp.Z.shape == (10, 2)
    assert nearest.max() < 0.6
    assert len(np.unique(model.gp.Z, axis=0)) == 10


def test_more_inducing_points_than_rows_are_still_distinct(start):
    model = start.model(replace(SETTINGS, n_inducing=100))
    assert len(np.unique(model.gp.Z, axis=0)) == 100


def test_the_random_start_knows_nothing_of_the_table(start):
    model = start.model(replace(SETTINGS, start="random"))
    np.testing.assert_array_equal(model.gp.bias, 0)
    masked = start.model(replace(SETTINGS, start="random", encoder="masked"))
    np.testing.assert_array_equal(masked.encoder.linear, 0)
    np.testing.assert_allclose(np.exp(model.gp.kernel.log_lengthscales), 1.0)


def test_a_start_is_its_seed(start):
    same, other = start.model(seed=0), start.model(seed=1)
    jax.tree.map(np.testing.assert_array_equal, start.model(seed=0), same)
    assert not np.array_equal(same.gp.Z, other.gp.Z)


@pytest.mark.parametrize("name", ["factors", "masked", "paper"])
def test_encoders_read_what_they_should(start, name):
    model = start.model(replace(SETTINGS, encoder=name))
    assert isinstance(model.encoder, FactorEncoder if name == "factors" else Encoder)
    E, D = model.encoder.shift.shape[0], start.seen.shape[1]
    assert model.encoder.net_mean.w1.shape[0] == (E if name == "paper" else E + D)


def test_free_rows_start_where_the_encoder_puts_them(start):
    free = start.model(replace(SETTINGS, encoder="free"))
    assert isinstance(free.encoder, FreeRows)
    ours, theirs = start.encoded(free), start.encoded(start.model(replace(SETTINGS, encoder="paper")))
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-4)
    np.testing.assert_allclose(ours.sd, theirs.sd, atol=1e-4)


def test_a_row_alone_is_the_row_in_the_table(start):
    model = start.model()
    together = start.encoded(model)
    values = jnp.asarray(start.values, jnp.float32)
    for n in (0, 17, 79):
        alone = encode_rows(model, start.layout, values[n : n + 1], jnp.asarray(start.seen[n : n + 1]))
        np.testing.assert_allclose(alone.mean[0], together.mean[n], atol=1e-6)


def test_hidden_values_do_not_change_the_start(start):
    """Every gap of every column filled with something else from its support."""
    other = start.values.copy()
    for block in start.layout.blocks:
        W = (block.slots[1] - block.slots[0]) // block.n_columns
        for c in range(block.n_columns):
            gaps = ~start.seen[:, block.columns[0] + c]
            slot = block.slots[0] + c * W
            other[gaps, slot] = 0.25 if block.likelihood.kind == "beta" else 1.0
    assert not np.array_equal(other, start.values)
    theirs = init_model(0, SETTINGS, start.schema, start.layout, other, start.seen)
    jax.tree.map(np.testing.assert_array_equal, start.model(), theirs)


def test_an_empty_row_and_an_empty_column_start_finite(start):
    seen = start.seen.copy()
    seen[3], seen[:, 2] = False, False
    model = init_model(0, SETTINGS, start.schema, start.layout, start.values, seen)
    for leaf in jax.tree.leaves(model):
        assert np.isfinite(leaf).all()


def test_more_components_than_directions_leave_the_rest_at_zero():
    """Two columns cannot span six dimensions."""
    simulation = simulate(50, 2, {"gaussian": 2}, 0.0, random_state=1)
    coder = Coder.fit(simulation.table, simulation.schema)
    layout = make_layout(coder.schema)
    values, seen = arrange(layout, coder.table(simulation.table))
    for encoder, weights in (("masked", "linear"), ("factors", "loadings")):
        settings = replace(SETTINGS, n_components=6, encoder=encoder)
        model = init_model(0, settings, coder.schema, layout, values, seen)
        assert (np.abs(getattr(model.encoder, weights)).sum(0) > 0).sum() == 2
        for leaf in jax.tree.leaves(model):
            assert np.isfinite(leaf).all()
