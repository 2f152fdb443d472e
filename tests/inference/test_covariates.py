"""Covariates in the decoder: exact GP regression on k(x, x') + τ² c · c', and a start that has taken them off."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from plurigp.data import Coder, Column, Schema, to_rows
from plurigp.inference.bound import Batch, BoundSpec, bound, no_perturbation
from plurigp.inference.encoder import FreeRows
from plurigp.inference.gp.kernels import gram, make_kernel
from plurigp.inference.gp.sparse import MomentGradients, SparseGP, moments, natural_step, posterior_of, prior
from plurigp.inference.model import Covariates, Model, Settings, encode, init_model, project_rows
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.layout import arrange, arrange_columns, arranged_back, make_layout, rules_of

N = 12
COLUMNS = (
    Column("lab", "gaussian"),
    Column("age", "gaussian", covariate=True),
    Column("mark", "bernoulli", levels=("no", "yes")),
    Column("site", "categorical", levels=("A", "B", "C"), covariate=True),
)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class World:
    """A few rows of two columns and two covariates, whose site shifts the lab."""

    def __init__(self, n: int = N):
        rng = np.random.default_rng(3)
        self.site = rng.choice(["A", "B", "C"], n)
        frame = pd.DataFrame({"lab": rng.normal(size=n) + 4 * (self.site == "B"), "age": rng.normal(60, 9, n)})
        marked = rng.random(n) < np.where(self.site == "B", 0.9, 0.1)
        self.frame = frame.assign(mark=np.where(marked, "yes", "no"), site=self.site)
        self.coder = Coder.fit(self.frame, Schema(COLUMNS))
        self.schema, self.layout = self.coder.schema, make_layout(self.coder.schema)
        self.table = self.coder.table(self.frame)
        self.values, self.seen = arrange(self.layout, self.table)

    def codes(self) -> np.ndarray:
        """Age standardised and an indicator per level, centred; a column of the block's padding stays zero."""
        site = (self.site[:, None] == np.array(["A", "B", "C"])).astype(float)
        return np.column_stack([site - site.mean(0), self.table.covariates[:, 0]])


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_covariates_lie_behind_the_cells_and_come_back(world):
    assert world.layout.n_slots == world.values.shape[1] == 4
    assert len(world.layout.order) == 2
    rows = to_rows(world.frame)
    given = (world.coder.coded_columns(rows), N, "float64", world.coder.covariate_values(rows))
    values, seen = arrange_columns(world.layout, *given)
    np.testing.assert_array_equal(values, world.values)
    back = arranged_back(world.layout, values, seen, world.schema)
    np.testing.assert_array_equal(back.values, world.table.values)
    np.testing.assert_array_equal(back.covariates, world.table.covariates)


def test_one_natural_step_is_regression_on_the_sum_kernel(world):
    """Gaussian cells, an inducing point at every row: f's mean is that of the dense GP with k(x, x') + Σ τ² c · c'."""
    rng = np.random.default_rng(0)
    x, scales = rng.normal(size=(N, 1)), np.log([0.7, 1.8])
    start = init_model(0, Settings(n_components=1, n_inducing=4), world.schema, world.layout, world.values, world.seen)
    assert start.covariates is not None
    coding = jax.tree.map(lambda leaf: leaf.astype(np.float64), start.covariates)
    gp = SparseGP(make_kernel("rbf", 1, 1.0), x, np.array([0.1, 0.3]), np.array([0.2, -0.1]))
    thetas = ({}, {"log_sd": np.array([-0.7])})
    free = FreeRows(jnp.asarray(x), jnp.full((N, 1), -18.0))
    model = Model(free, gp, thetas, None, Covariates(coding.shift, coding.scale, scales))
    spec = BoundSpec(world.layout, rules_of(world.layout, None))
    batch = Batch(*map(jnp.asarray, (world.values, world.seen, np.arange(N), np.ones(N, bool), np.asarray(1.0))))
    at = int(world.layout.order.index(0))  # the lab, gaussian, comes last

    @jax.jit
    def step(q):
        def objective(perturbation):
            parts, trace = bound(spec, model, posterior_of(q), batch, jax.random.key(0), perturbation)
            return parts.total, trace

        slopes, trace = jax.grad(objective, has_aux=True)(no_perturbation(spec, N, np.dtype(float)))
        rows = MomentGradients(trace.A, trace.f_mean, *slopes)
        q = posterior_of(natural_step(gp, q, rows, jnp.asarray(1.0), jnp.asarray(0.0)))
        return moments(gp, q, project_rows(model, world.layout, jnp.asarray(x), jnp.asarray(world.values)))

    f_mean, f_var = (np.asarray(part)[at] for part in step(prior(2, model.n_basis, np.dtype(float))))
    order = [world.schema.covariates[d].name for d in world.layout.covariates.order]
    tau2 = np.concatenate(
        [np.full({"site": 3, "age": 1}[n], np.exp(2 * s)) for n, s in zip(order, scales, strict=True)]
    )
    codes = {"site": world.codes()[:, :3], "age": world.codes()[:, 3:]}
    c = np.concatenate([codes[name] for name in order], 1)
    K = np.exp(2 * gp.log_scale[at]) * (np.asarray(gram(gp.kernel, x, x)) + (c * tau2) @ c.T)
    noise, y = FLOOR**2 + np.exp(-1.4), world.table.values[:, 0]
    gain = np.linalg.solve(K + noise * np.eye(N), K).T
    np.testing.assert_allclose(f_mean, gp.bias[at] + gain @ (y - gp.bias[at]), atol=2e-4)
    np.testing.assert_allclose(f_var, np.diag(K - gain @ K), atol=2e-4)


def test_without_rows_covariates_are_at_their_average(world):
    model = init_model(0, Settings(n_components=1, n_inducing=4), world.schema, world.layout, world.values, world.seen)
    A = project_rows(model, world.layout, jnp.zeros((3, 1)), None).A
    assert A.shape == (model.n_basis, 3)
    np.testing.assert_array_equal(A[4:], 0)
    own = np.asarray(project_rows(model, world.layout, jnp.zeros((N, 1)), jnp.asarray(world.values)).A)[4:]
    np.testing.assert_allclose(own.mean(1), 0, atol=1e-6)


@pytest.mark.parametrize("encoder", ["factors", "masked", "free"])
def test_training_starts_with_the_covariates_taken_off(encoder):
    """Both columns follow the site alone, so positions do not differ between sites, as they do where it is a column."""
    world = World(200)
    plain = Schema(tuple(Column(c.name, c.kind if c.used else "aside", levels=c.levels) for c in world.schema))
    spreads = []
    for schema in (world.schema, Coder.fit(world.frame, plain).schema):
        layout = make_layout(schema)
        values, seen = arrange(layout, Coder.fit(world.frame, schema).table(world.frame))
        model = init_model(0, Settings(n_components=1, n_inducing=4, encoder=encoder), schema, layout, values, seen)
        x = np.asarray(encode(model, layout, values, seen, np.arange(200, dtype=np.int32)).mean)[:, 0]
        spreads.append(abs(x[world.site == "B"].mean() - x[world.site == "A"].mean()) / x.std())
    assert spreads[0] < 0.3
    assert spreads[1] > 1
