"""The bound is a bound: below log p(Y) by brute force, tighter as q improves, and the same by batches as at once."""

from collections.abc import Iterator
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special, stats

from plurigp.data import KINDS, Column, Schema
from plurigp.inference.batches import TrainingTable, batches
from plurigp.inference.bound import Batch, Bound, BoundSpec, Perturbation, _kept, _normals, bound, no_perturbation
from plurigp.inference.encoder import FreeRows
from plurigp.inference.gp.kernels import make_kernel
from plurigp.inference.gp.sparse import (
    MomentGradients,
    SparseGP,
    natural_step,
    posterior_of,
    posterior_of_log_cholesky,
    prior,
)
from plurigp.inference.model import Model
from plurigp.inference.prior import mixture_of, standard_mixture
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.layout import make_layout, rules_of

LEVELS = {"bernoulli": ("no", "yes"), "ordinal": (1, 2, 3), "categorical": ("a", "b", "c")}


class World:
    """One column of each of some kinds, and where each lies in block order."""

    def __init__(self, kinds: tuple[str, ...], n_quadrature: int):
        trials = {"binomial": 5}
        schema = Schema(tuple(Column(k, k, levels=LEVELS.get(k, ()), trials=trials.get(k)) for k in kinds))
        self.layout = make_layout(schema)
        self.columns = {schema.used[d].kind: i for i, d in enumerate(self.layout.order)}
        self.functions = {b.likelihood.kind: slice(*b.functions) for b in self.layout.blocks}
        self.slots = {b.likelihood.kind: slice(*b.slots) for b in self.layout.blocks}
        self.spec = BoundSpec(self.layout, rules_of(self.layout, n_quadrature))
        self.P = self.layout.n_functions


# A case of FULL looks at one kind by hiding the others, so that all cases are one program (its rules are long
# enough to be scanned, which keeps the program small).
HEAVY = ("censored_lognormal", "censored_gamma", "zero_one_beta")  # long programs of the same make as others here
HERE = tuple(kind for kind in KINDS if kind not in HEAVY)
CORE = ("gaussian", "bernoulli", "beta", "poisson", "categorical")  # the paper's; the others wait for the slow tests


FULL, LIGHT = World(HERE, 20), World(("gaussian", "bernoulli", "categorical"), 4)

TABLE = {  # three rows
    "gaussian": [[-0.9], [0.2], [1.1]],
    "gaussian_hetero": [[-0.9], [0.2], [1.1]],
    "lognormal": [[0.4], [1.2], [3.0]],
    "zero_lognormal": [[0, 0], [1.2, 0], [3.0, 0]],
    "bernoulli": [[0], [1], [1]],
    "binomial": [[1, 5], [4, 5], [5, 5]],
    "beta": [[0.2], [0.45], [0.9]],
    "poisson": [[0], [2], [5]],
    "categorical": [[0], [2], [2]],
    "student_t": [[-0.9], [0.2], [1.1]],
    "gamma": [[0.4], [1.2], [3.0]],
    "negative_binomial": [[0], [2], [5]],
    "zero_inflated_poisson": [[0], [0], [5]],
    "ordinal": [[0], [1], [2]],
    "censored_gaussian": [[-0.9, -0.9, 0], [-1e9, 0.2, 0], [0.3, 1.1, 0]],
    "weibull": [[0.4, 0.4, 0], [1.2, 1e30, 0], [1.5, 3.0, 0]],
}
THETA = {
    "gaussian": {"log_sd": -0.7},
    "lognormal": {"log_sd": -0.5},
    "zero_lognormal": {"log_sd": -0.5},
    "beta": {"log_nu": 2.0},
    "student_t": {"log_scale": -0.7, "log_df": 1.0},
    "gamma": {"log_shape": 0.7},
    "negative_binomial": {"log_r": 0.7},
    "zero_inflated_poisson": {"logit_zero": -1.0},
    "ordinal": {"first_cut": -0.5, "log_gaps": [0.0]},
    "censored_gaussian": {"log_sd": -0.7},
    "weibull": {"log_shape": 0.3},
}
COMPOSITE = ("gaussian", "bernoulli", "categorical")


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def make_model(world: World, n_rows: int, lengthscale: float = 1.0, log_sd: float = -0.7) -> Model:
    rng = np.random.default_rng(7)
    by_kind = np.concatenate([np.arange(world.P)[world.functions[kind]] for kind in sorted(world.functions)])
    bias, log_scale = np.empty(world.P), np.empty(world.P)
    bias[by_kind], log_scale[by_kind] = rng.uniform(-0.3, 0.5, world.P), rng.uniform(-0.4, 0.2, world.P)
    gp = SparseGP(
        make_kernel("rbf", 1, lengthscale),
        jnp.asarray([[-1.5], [0.0], [1.5]]),
        jnp.asarray(bias),
        jnp.asarray(log_scale),
    )
    thetas = tuple(
        {k: jnp.asarray([v]) for k, v in THETA.get(b.likelihood.kind, {}).items()} for b in world.layout.blocks
    )
    mean = jnp.asarray(rng.normal(size=(n_rows, 1)))
    return Model(FreeRows(mean, jnp.full((n_rows, 1), log_sd)), gp, thetas)


def tiny_batch(world: World, kinds: tuple[str, ...], gap: bool = False) -> Batch:
    """The three rows with the given columns seen; with a gap, the middle row lacks the first of them."""
    values = np.zeros((3, sum(s.stop - s.start for s in world.slots.values())))
    for kind, slots in world.slots.items():
        values[:, slots] = TABLE[kind]
    seen = np.zeros((3, len(world.columns)), bool)
    for kind in kinds:
        seen[:, world.columns[kind]] = True
    if gap:
        seen[1, world.columns[kinds[0]]] = False
    return Batch(jnp.asarray(values), jnp.asarray(seen), jnp.arange(3), jnp.ones(3, bool), jnp.asarray(1.0))


# --- log p(Y) by brute force ---


def between(kind: str, law) -> np.ndarray:
    """A value's log density, or the log of the mass between its bounds."""
    low, high = np.asarray(TABLE[kind], float)[:, :2].T
    with np.errstate(divide="ignore"):
        return np.where(low == high, law.logpdf(low), np.log(law.cdf(high) - law.cdf(low)))


def log_density(kind: str, f: np.ndarray) -> np.ndarray:
    """log p(y|f) of the three rows by SciPy, f [n 3 H] -> [n 3]."""
    y = np.asarray(TABLE[kind], float)[:, 0]
    match kind:
        case "gaussian":
            return stats.norm.logpdf(y, f[..., 0], np.hypot(FLOOR, np.exp(-0.7)))
        case "lognormal":
            return stats.norm.logpdf(np.log(y), f[..., 0], np.hypot(FLOOR, np.exp(-0.5))) - np.log(y)
        case "zero_lognormal":
            amount = stats.lognorm.logpdf(np.where(y > 0, y, 1), np.hypot(FLOOR, np.exp(-0.5)), 0, np.exp(f[..., 1]))
            return np.where(y > 0, special.log_expit(f[..., 0]) + amount, special.log_expit(-f[..., 0]))
        case "gaussian_hetero":
            return stats.norm.logpdf(y, f[..., 0], np.hypot(FLOOR, np.exp(f[..., 1])))
        case "bernoulli":
            return special.log_expit(np.where(y == 1, f[..., 0], -f[..., 0]))
        case "binomial":
            return stats.binom.logpmf(y, 5, special.expit(f[..., 0]))
        case "beta":
            mu, nu = 1e-5 + (1 - 2e-5) * special.ndtr(f[..., 0]), np.exp(2.0)
            return stats.beta.logpdf(y, nu * mu, nu * (1 - mu))
        case "student_t":
            return stats.t.logpdf(y, 1 + np.exp(1.0), f[..., 0], np.hypot(FLOOR, np.exp(-0.7)))
        case "gamma":
            return stats.gamma.logpdf(y, np.exp(0.7), scale=np.exp(f[..., 0] - 0.7))
        case "negative_binomial":
            return stats.nbinom.logpmf(y, np.exp(0.7), special.expit(0.7 - f[..., 0]))
        case "zero_inflated_poisson":
            poisson = (1 - special.expit(-1.0)) * stats.poisson.pmf(y, np.exp(f[..., 0]))
            return np.log(special.expit(-1.0) * (y == 0) + poisson)
        case "ordinal":
            cuts = np.array([-np.inf, -0.5, 0.5, np.inf])
            below, above = cuts[y.astype(int)], cuts[y.astype(int) + 1]
            return np.log(special.ndtr(above - f[..., 0]) - special.ndtr(below - f[..., 0]))
        case "censored_gaussian":
            return between(kind, stats.norm(f[..., 0], np.hypot(FLOOR, np.exp(-0.7))))
        case "weibull":
            return between(kind, stats.weibull_min(np.exp(0.3), scale=np.exp(f[..., 0])))
        case "poisson":
            return y * f[..., 0] - np.exp(f[..., 0]) - special.gammaln(y + 1)
    return special.log_softmax(f, axis=-1)[:, np.arange(3), y.astype(int)]


WEIGHTS, MEANS, VARIANCES = np.array([0.7, 0.3]), np.array([-0.8, 1.2]), np.array([0.3, 0.6])  # of two groups
MIXTURE = mixture_of(WEIGHTS, MEANS[:, None], VARIANCES[:, None, None], np.float64)
PRIORS = {"normal": None, "mixture": MIXTURE}


@pytest.fixture(scope="module")
def draws_of_priors() -> dict[str, np.ndarray]:
    """Draws of (x, f at the three rows) from the model itself, not its sparse form: standardised f [n 3 5]."""
    rng, n = np.random.default_rng(11), 200_000
    x = rng.normal(size=(n, 3))
    group = np.random.default_rng(12).choice(2, (n, 3), p=WEIGHTS)
    places = {"normal": x, "mixture": MEANS[group] + np.sqrt(VARIANCES[group]) * x}
    return {name: _functions(x, np.random.default_rng(13)) for name, x in places.items()}


def _functions(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(x)
    K = np.exp(-0.5 * (x[:, :, None] - x[:, None, :]) ** 2) + 1e-9 * np.eye(3)
    return np.linalg.cholesky(K) @ rng.normal(size=(n, 3, 5))


def log_evidence(draws: np.ndarray, model: Model, kinds: tuple[str, ...], gap: bool) -> tuple[float, float]:
    """log p(Y) and its standard error."""
    total = np.zeros(len(draws))
    at = 0
    for kind in kinds:
        H = FULL.functions[kind].stop - FULL.functions[kind].start
        b, s = (
            np.asarray(model.gp.bias[FULL.functions[kind]]),
            np.exp(np.asarray(model.gp.log_scale[FULL.functions[kind]])),
        )
        cells = log_density(kind, b + s * draws[..., at : at + H])
        at += H
        total += cells.sum(1) if not (gap and kind == kinds[0]) else cells[:, [0, 2]].sum(1)
    weight = np.exp(total - total.max())
    return float(np.log(weight.mean()) + total.max()), float(weight.std() / weight.mean() / np.sqrt(len(weight)))


# --- q, improved by Adam on the bound itself ---

ADAM = optax.adam(0.03)
N_KEYS = 16


@eqx.filter_jit
def improve(model: Model, q: tuple, batch: Batch, key: jax.Array, n_steps: jax.Array) -> tuple:
    """(free q(x), m and root of q(v)) after some steps with the decoder frozen."""
    spec = replace(FULL.spec, n_draws=8)

    def objective(free, key):
        rows, m, root = free
        model_ = eqx.tree_at(lambda t: t.encoder, model, rows)
        return -bound(spec, model_, posterior_of_log_cholesky(m, root), batch, key)[0].total

    def step(i, carry):
        free, state = carry
        update, state = ADAM.update(jax.grad(objective)(free, jax.random.fold_in(key, i)), state)
        return optax.apply_updates(free, update), state

    return jax.lax.fori_loop(0, n_steps, step, (q, ADAM.init(q)))[0]


@eqx.filter_jit
def bounds(model: Model, q: tuple, batch: Batch, key: jax.Array) -> jax.Array:
    """The bound by N_KEYS independent sets of draws of x."""
    rows, m, root = q
    model_ = eqx.tree_at(lambda t: t.encoder, model, rows)
    spec = replace(FULL.spec, n_draws=400)

    def one(key):
        return bound(spec, model_, posterior_of_log_cholesky(m, root), batch, key)[0].total

    return jax.lax.map(one, jax.random.split(key, N_KEYS))


CASES = [
    *(pytest.param((kind,), "normal", id=kind, marks=() if kind in CORE else pytest.mark.slow) for kind in HERE),
    *(pytest.param((kind,), "mixture", id=f"{kind}-mixture", marks=pytest.mark.slow) for kind in HERE),
    *(pytest.param(COMPOSITE, name, id=f"composite-{name}") for name in PRIORS),
]


@pytest.mark.parametrize(("kinds", "name"), CASES)
def test_below_the_evidence_and_closer_as_q_improves(kinds, name, draws_of_priors):
    gap_in_table = kinds == COMPOSITE
    model, batch = replace(make_model(FULL, 3), prior=PRIORS[name]), tiny_batch(FULL, kinds, gap_in_table)
    evidence, evidence_error = log_evidence(draws_of_priors[name], model, kinds, gap_in_table)
    assert evidence_error < 0.02
    P = FULL.P
    q = (model.encoder, jnp.zeros((P, 3)), jnp.zeros((P, 3, 3)))
    gaps = []
    for stage, n_steps in enumerate((0, 40, 400)):
        q = improve(model, q, batch, jax.random.key(stage), jnp.asarray(n_steps))
        values = np.asarray(bounds(model, q, batch, jax.random.key(99)))
        error = np.hypot(values.std() / np.sqrt(N_KEYS), evidence_error)
        assert values.mean() < evidence + 3 * error
        gaps.append(evidence - values.mean())
    assert gaps[0] > gaps[1] > gaps[2] - 3 * error
    assert gaps[2] < 0.6 * gaps[0]


def test_equals_the_evidence_where_q_can_be_exact():
    """Gaussian cells and functions that hardly depend on x: q(x) = p(x) and one natural step give log p(Y) itself."""
    kinds = ("gaussian",)
    model, batch = make_model(FULL, 3, lengthscale=1e4), tiny_batch(FULL, kinds)
    model = eqx.tree_at(lambda t: (t.encoder.mean, t.encoder.log_sd), model, (jnp.zeros((3, 1)), jnp.zeros((3, 1))))
    q = prior(FULL.P, 3, np.dtype(float))

    @jax.jit
    def step(q):
        def objective(perturbation):
            parts, trace = bound(FULL.spec, model, posterior_of(q), batch, jax.random.key(0), perturbation)
            return parts.total, (parts, trace)

        slopes, (parts, trace) = jax.grad(objective, has_aux=True)(no_perturbation(FULL.spec, 3, np.dtype(float)))
        rows = MomentGradients(trace.A, trace.f_mean, *slopes)
        return natural_step(model.gp, q, rows, jnp.asarray(1.0), jnp.asarray(0.0)), parts

    q, before = step(q)
    _, after = step(q)
    at = FULL.functions["gaussian"].start
    b, s2 = float(model.gp.bias[at]), float(np.exp(2 * model.gp.log_scale[at]))
    noise = FLOOR**2 + np.exp(-1.4)
    y = np.asarray(TABLE["gaussian"])[:, 0]
    evidence = stats.multivariate_normal(np.full(3, b), s2 * np.ones((3, 3)) + noise * np.eye(3)).logpdf(y)
    assert float(before.total) < evidence - 0.1
    assert float(after.total) == pytest.approx(evidence, abs=1e-4)
    assert float(after.kl_x) == pytest.approx(0, abs=1e-12)


# --- a mixture as prior ---


@pytest.mark.parametrize("groups", [1, 3])
def test_groups_that_are_all_standard_normal_change_nothing(groups):
    """Neither the bound nor its gradient: so one program serves training before and after the groups start."""
    model, q, batch = make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8))
    equal = replace(model, prior=standard_mixture(groups, 1))
    values, slopes = zip(*(value_and_slopes(m, q, batch) for m in (model, equal)), strict=True)
    assert float(values[1]) == pytest.approx(float(values[0]), rel=1e-12)
    for one, other in zip(*(jax.tree.leaves(replace(by, prior=None)) for by in slopes), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_gradients_with_a_mixture_are_those_of_finite_differences():
    """Along a random direction of all parameters; the mixture itself has none, since Adam must not move it."""
    q, batch = posterior_away_from_the_prior(), whole(*wide_table(8))
    model = replace(make_model(LIGHT, 8), prior=MIXTURE)
    _, slopes = value_and_slopes(model, q, batch)
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(slopes.prior))
    rng = np.random.default_rng(1)
    way = jax.tree.map(lambda leaf: rng.normal(size=np.shape(leaf)), replace(model, prior=None))

    def moved(step: float) -> float:
        there = jax.tree.map(lambda leaf, d: leaf + step * d, replace(model, prior=None), way)
        return float(value_and_slopes(replace(there, prior=MIXTURE), q, batch)[0])

    pairs = zip(jax.tree.leaves(way), jax.tree.leaves(replace(slopes, prior=None)), strict=True)
    expected = sum(float((np.asarray(by) * d).sum()) for d, by in pairs)
    assert expected == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-4)


@eqx.filter_jit
def value_and_slopes(model: Model, q, batch: Batch) -> tuple:
    return eqx.filter_value_and_grad(lambda m: bound(LIGHT.spec, m, q, batch, jax.random.key(0))[0].total)(model)


def test_what_rows_tell_a_mixture_is_weighted_and_free_of_padding():
    """Batches of an epoch average to the table's sums, as the bound's parts do."""
    values, seen = wide_table(23)
    model, q = replace(make_model(LIGHT, 23), prior=MIXTURE), posterior_away_from_the_prior()
    groups = jax.jit(lambda batch: bound(LIGHT.spec, model, q, batch, jax.random.key(0))[1].groups)
    full = groups(whole(values, seen))
    assert float(full.n_rows.sum()) == pytest.approx(23)
    weight = jnp.asarray(5.0)
    parts = [
        groups(Batch(jnp.asarray(values[r]), jnp.asarray(seen[r]), jnp.asarray(r), jnp.asarray(k), weight))
        for r, k in zip(*batches(23, 5, np.random.default_rng(0)), strict=True)
    ]
    for total, *each in zip(full, *parts, strict=True):
        np.testing.assert_allclose(np.mean(each, axis=0), total, rtol=1e-9)


# --- batches, draws and weights ---


def wide_table(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every kind, a quarter of the cells hidden."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 3, n_rows)
    values = np.asarray(tiny_batch(LIGHT, ()).values)[rows]
    return values, rng.random((n_rows, len(LIGHT.columns))) < 0.75


def posterior_away_from_the_prior():
    rng = np.random.default_rng(5)
    P = LIGHT.P
    return posterior_of_log_cholesky(
        jnp.asarray(rng.normal(size=(P, 3))), jnp.asarray(0.3 * rng.normal(size=(P, 3, 3)))
    )


@eqx.filter_jit
def bound_of(spec: BoundSpec, model: Model, q, batch: Batch, key: jax.Array) -> Bound:
    return bound(spec, model, q, batch, key)[0]


def whole(values: np.ndarray, seen: np.ndarray) -> Batch:
    n = len(values)
    return Batch(jnp.asarray(values), jnp.asarray(seen), jnp.arange(n), jnp.ones(n, bool), jnp.asarray(1.0))


def close(ours: Bound, theirs: Bound, rel: float) -> None:
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert float(a) == pytest.approx(float(b), rel=rel, abs=1e-12)


def test_the_average_over_batches_is_the_full_bound():
    """23 rows in batches of 5, two of them padded; q(x) so narrow that the draws do not matter. Part by part."""
    values, seen = wide_table(23)
    model, q = make_model(LIGHT, 23, log_sd=-18.0), posterior_away_from_the_prior()
    full = bound_of(LIGHT.spec, model, q, whole(values, seen), jax.random.key(0))
    rows, real = batches(23, 5, np.random.default_rng(0))
    assert rows.shape == (5, 5)
    assert not real.all()
    parts = []
    for n, (r, k) in enumerate(zip(rows, real, strict=True)):
        batch = Batch(
            jnp.asarray(values[r]), jnp.asarray(seen[r]), jnp.asarray(r), jnp.asarray(k), jnp.asarray(float(len(rows)))
        )
        parts.append(bound_of(LIGHT.spec, model, q, batch, jax.random.key(n)))
    average = jax.tree.map(lambda *leaves: np.mean(leaves), *parts)
    close(average, full, rel=1e-6)
    assert float(average.total) == pytest.approx(float(full.total), rel=1e-6)


def weighted(values: np.ndarray, seen: np.ndarray, weights: np.ndarray) -> Batch:
    """The whole table with row weights, as a TrainingTable hands it out."""
    (batch,) = TrainingTable(values, seen, weights).epoch(len(values), np.random.default_rng(0))
    return jax.tree.map(jnp.asarray, batch)


WHOLE_WEIGHTS = np.array([1.0, 2, 3, 0, 1, 4, 1, 2])


@pytest.mark.parametrize("prior_of_x", [None, MIXTURE], ids=["normal", "mixture"])
def test_whole_weights_are_repeated_rows(prior_of_x):
    """Part by part, with the slopes by the model and what rows tell a mixture; draws do not matter."""
    values, seen = wide_table(8)
    rows = np.repeat(np.arange(8), WHOLE_WEIGHTS.astype(int))
    model, q = replace(make_model(LIGHT, 8, log_sd=-18.0), prior=prior_of_x), posterior_away_from_the_prior()
    apart = whole(values[rows], seen[rows])._replace(rows=jnp.asarray(rows))

    @eqx.filter_jit
    def parts_and_slopes(batch):
        def objective(model):
            parts, trace = bound(LIGHT.spec, model, q, batch, jax.random.key(0))
            return parts.total, (parts, trace.groups)

        return eqx.filter_value_and_grad(objective, has_aux=True)(model)

    ours, theirs = parts_and_slopes(weighted(values, seen, WHOLE_WEIGHTS)), parts_and_slopes(apart)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    plain = bound_of(LIGHT.spec, model, q, whole(values, seen), jax.random.key(0))
    assert abs(float(plain.total) - float(theirs[0][0])) > 1


def test_weighted_batches_average_to_the_weighted_bound():
    """With several draws of x, whose rows are weighted alike."""
    values, seen = wide_table(23)
    weights = np.random.default_rng(1).gamma(2.0, 0.7, 23)
    model, q = make_model(LIGHT, 23, log_sd=-18.0), posterior_away_from_the_prior()
    spec = replace(LIGHT.spec, n_draws=2)
    full = bound_of(spec, model, q, weighted(values, seen, weights), jax.random.key(0))
    parts = [
        bound_of(spec, model, q, jax.tree.map(jnp.asarray, batch), jax.random.key(n))
        for n, batch in enumerate(TrainingTable(values, seen, weights).epoch(5, np.random.default_rng(0)))
    ]
    close(jax.tree.map(lambda *leaves: np.mean(leaves), *parts), full, rel=1e-6)


def test_a_column_counts_by_its_weight():
    """Block by block, each of which has one column here; the penalties do not change."""
    model, q, batch = make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8))
    weights = (0.25, 3.0, 0.5)
    spec = replace(LIGHT.spec, layout=replace(LIGHT.layout, column_weights=weights))
    plain, ours = (bound_of(given, model, q, batch, jax.random.key(0)) for given in (LIGHT.spec, spec))
    expected = plain._replace(
        expected_log_prob=tuple(w * part for w, part in zip(weights, plain.expected_log_prob, strict=True))
    )
    close(ours, expected, rel=1e-12)


def test_padded_rows_have_no_influence():
    """Neither on the bound nor on any slope, whatever they hold."""
    values, seen = wide_table(8)
    model, q = make_model(LIGHT, 8), posterior_away_from_the_prior()
    real = np.arange(8) < 6

    @eqx.filter_jit
    def slopes(model, batch):
        return eqx.filter_value_and_grad(lambda m: bound(LIGHT.spec, m, q, batch, jax.random.key(0))[0].total)(model)

    batch = whole(values, seen)._replace(real=jnp.asarray(real))
    other = values.copy()
    other[6:] = values[:2]
    value, by_model = slopes(model, batch)
    value_other, by_model_other = slopes(
        model, batch._replace(values=jnp.asarray(other), seen=batch.seen.at[6:].set(True))
    )
    assert float(value) == float(value_other)
    jax.tree.map(np.testing.assert_array_equal, by_model, by_model_other)
    np.testing.assert_array_equal(by_model.encoder.mean[6:], 0)
    np.testing.assert_array_equal(by_model.encoder.log_sd[6:], 0)


def test_named_parts_add_up():
    parts = bound_of(
        LIGHT.spec, make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8)), jax.random.key(0)
    )
    assert len(parts.expected_log_prob) == len(LIGHT.layout.blocks)
    assert float(parts.total) == pytest.approx(
        float(sum(parts.expected_log_prob)) - float(parts.kl_x) - float(parts.kl_u), rel=1e-12
    )
    assert float(parts.kl_x) > 0
    assert float(parts.kl_u) > 0


def test_hiding_is_from_the_encoder_alone():
    """Free rows read no cells, so nothing changes for them; a mask keeps each row's share below the limit."""
    model, q, batch = make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8))  # free rows
    one, other = (bound_of(replace(LIGHT.spec, hiding=h), model, q, batch, jax.random.key(0)) for h in (0.0, 0.9))
    assert float(one.total) == float(other.total)
    kept = np.asarray(_kept(jax.random.key(1), replace(LIGHT.spec, hiding=0.6), (400, 50)))
    shares = 1 - kept.mean(1)
    assert 0.25 < shares.mean() < 0.35
    assert shares.max() < 0.85
    assert shares.min() < 0.05


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_draws_of_x_are_standard_normal(impl, dtype):
    """Both halves of them, and neither a copy of the other."""
    noise = np.asarray(_normals(jax.random.key(3, impl=impl), (4, 2500, 2), np.dtype(dtype)))
    assert (noise.shape, noise.dtype) == ((4, 2500, 2), dtype)
    flat = noise.ravel()
    assert abs(flat.mean()) < 4 / np.sqrt(len(flat))
    assert abs(flat.std() - 1) < 4 / np.sqrt(2 * len(flat))
    halves = np.reshape(flat, (2, -1))
    for some in (flat, *halves):
        assert stats.kstest(some, "norm").pvalue > 0.01
    assert abs(np.corrcoef(halves)[0, 1]) < 4 / np.sqrt(halves.shape[1])


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 3), (3, 5, 1)])
def test_an_odd_number_of_draws_of_x_is_as_good(shape):
    for seed in range(20):
        noise = _normals(jax.random.key(seed), shape, np.dtype(np.float32))
        assert noise.shape == shape
        assert np.isfinite(noise).all()


def test_kl_weight_weighs_kl_x_alone():
    model, q, batch = make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8))
    one, three = (bound_of(replace(LIGHT.spec, kl_weight=w), model, q, batch, jax.random.key(0)) for w in (1.0, 3.0))
    assert float(three.kl_x) == pytest.approx(3 * float(one.kl_x), rel=1e-12)
    close(three._replace(kl_x=one.kl_x), one, rel=1e-12)


def test_more_draws_are_the_same_bound_with_less_noise():
    model, q, batch = make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8))
    narrow = eqx.tree_at(lambda m: m.encoder.log_sd, model, jnp.full((8, 1), -18.0))
    sets = {}
    for n_draws in (1, 16):
        spec = replace(LIGHT.spec, n_draws=n_draws)
        sets[n_draws] = np.array([float(bound_of(spec, model, q, batch, jax.random.key(i)).total) for i in range(60)])
    still = [bound_of(replace(LIGHT.spec, n_draws=n), narrow, q, batch, jax.random.key(0)) for n in (1, 16)]
    close(still[1], still[0], rel=1e-6)
    assert 2.5 < sets[1].std() / sets[16].std() < 6.5  # four
    assert abs(sets[1].mean() - sets[16].mean()) < 4 * sets[1].std() / np.sqrt(60)


def test_weight_multiplies_rows_and_leaves_kl_u():
    model, q, batch = make_model(LIGHT, 8), posterior_away_from_the_prior(), whole(*wide_table(8))
    one, five = (
        bound_of(LIGHT.spec, model, q, batch._replace(weight=jnp.asarray(w)), jax.random.key(0)) for w in (1.0, 5.0)
    )
    assert float(five.kl_u) == float(one.kl_u)
    assert float(five.kl_x) == pytest.approx(5 * float(one.kl_x))
    for a, b in zip(five.expected_log_prob, one.expected_log_prob, strict=True):
        assert float(a) == pytest.approx(5 * float(b))


def test_sampled_expectations_have_the_same_mean():
    """E over f by draws instead of quadrature, over many keys."""
    model, q, batch = make_model(LIGHT, 8, log_sd=-18.0), posterior_away_from_the_prior(), whole(*wide_table(8))
    model = eqx.tree_at(lambda m: m.gp.log_scale, model, jnp.full(LIGHT.P, -1.5))  # light tails
    exact = float(bound_of(LIGHT.spec, model, q, batch, jax.random.key(0)).total)
    spec = replace(LIGHT.spec, sampling=True, rules=rules_of(LIGHT.layout, 3))
    many = jax.jit(lambda keys: jax.lax.map(lambda key: bound(spec, model, q, batch, key)[0].total, keys))(
        jax.random.split(jax.random.key(1), 600)
    )
    assert np.std(many) > 0
    assert abs(np.mean(many) - exact) < 4 * np.std(many) / np.sqrt(600) + 1e-3


def test_nudges_give_the_slopes_by_the_moments():
    """What the natural step runs on: ∂/∂f_mean and ∂/∂f_var of the weighted bound, by finite differences."""
    model, q, batch = make_model(LIGHT, 4), posterior_away_from_the_prior(), whole(*wide_table(4))
    batch = batch._replace(weight=jnp.asarray(2.0))

    @jax.jit
    def value(perturbation):
        return bound(LIGHT.spec, model, q, batch, jax.random.key(0), perturbation)[0].total

    zero = no_perturbation(LIGHT.spec, 4, np.dtype(float))
    assert zero.f_mean.shape == zero.f_var.shape == (LIGHT.P, 4)
    slopes = jax.jit(jax.grad(value))(zero)
    rng = np.random.default_rng(0)
    for part in range(2):
        direction = [jnp.zeros_like(zero.f_mean)] * 2
        direction[part] = jnp.asarray(rng.normal(size=zero.f_mean.shape))
        up, down = (value(Perturbation(*(sign * 1e-5 * d for d in direction))) for sign in (1, -1))
        assert float((slopes[part] * direction[part]).sum()) == pytest.approx(float(up - down) / 2e-5, rel=1e-4)


def test_an_unseen_table_leaves_the_penalties():
    values, seen = wide_table(8)
    model, q = make_model(LIGHT, 8), posterior_away_from_the_prior()
    parts = bound_of(LIGHT.spec, model, q, whole(values, np.zeros_like(seen)), jax.random.key(0))
    assert all(float(part) == 0 for part in parts.expected_log_prob)
