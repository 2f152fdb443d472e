"""Simulation-based calibration of q(x), family by family, beside a reference sampler (Hamiltonian Monte Carlo).

    python benchmarks/sbc.py

A small model of one family is trained. New rows are then drawn from it: x from the prior, functions and cells at x, a
third of the cells hidden. If an inference is right, the share of its draws of x below the true one is uniform. Three
are compared on the same rows and the same decoder: the encoder's q(x), the weighted draws that all answers use, and the
sampler. Averages over the decoder's own uncertainty are taken as answers take them, cell by cell.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from common import save
from scipy.stats import kstest

from plurigp import PluriGP
from plurigp.answers import latent
from plurigp.answers.predictor import Predictor, moments_at, standard_draws
from plurigp.datasets import simulate
from plurigp.inference.compiling import jax_runtime
from plurigp.likelihoods import evaluate

KINDS = ("gaussian", "bernoulli", "beta", "poisson", "categorical", "ordinal")
N_COLUMNS, N_TRAINED, Q, HIDDEN = 8, 300, 2, 1 / 3
N_CHAINS, N_WARM_UP, N_KEPT, N_LEAPFROG, TARGET = 2, 300, 700, 8, 0.8
LEVELS = (0.5, 0.9)


def draw_rows(p: Predictor, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x [B Q] from the prior, cells [B D] in block order, and which of them are seen."""
    x = rng.normal(size=(n_rows, Q))
    empty = np.zeros((n_rows, p.layout.n_slots))
    assert empty.shape[1] == len(p.layout.order)  # one slot per column
    f_mean, f_var = (np.asarray(part).T for part in moments_at(p, x, empty))
    values = evaluate.draws(p.layout, p.model.thetas, empty, rng.normal(f_mean, np.sqrt(f_var)), rng)
    return x, values, rng.random(values.shape) >= HIDDEN


def sample_reference(p: Predictor, values: np.ndarray, seen: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """Draws of x [S B Q] given the seen cells, and the largest R̂ over rows and dimensions."""
    B = len(values)
    values, seen = np.tile(values, (N_CHAINS, 1)), np.tile(seen, (N_CHAINS, 1))

    def log_density(x):
        cells, _ = latent.log_probs_at(p, values, seen, x)
        return evaluate.weighted_row_sum(p.layout, cells) - 0.5 * (x**2).sum(1)

    def slope(x):
        return jax.grad(lambda x: log_density(x).sum())(x)

    def move(state, key):
        x, log_step, warming = state
        step = jnp.exp(log_step)[:, None]
        keys = jax.random.split(key)
        momentum = jax.random.normal(keys[0], x.shape)

        def leap(_, at):
            x, v = at
            v = v + 0.5 * step * slope(x)
            x = x + step * v
            return x, v + 0.5 * step * slope(x)

        new, v = jax.lax.fori_loop(0, N_LEAPFROG, leap, (x, momentum))
        gain = log_density(new) - log_density(x) + 0.5 * ((momentum**2).sum(1) - (v**2).sum(1))
        accepted = jnp.exp(jnp.minimum(jnp.nan_to_num(gain, nan=-jnp.inf), 0))
        moved = jnp.where((jax.random.uniform(keys[1], (len(x),)) < accepted)[:, None], new, x)
        return (moved, log_step + warming * 0.05 * (accepted - TARGET), warming), moved

    @jax.jit
    def run(x, key):
        warm, keep = jax.random.split(key)
        state = (x, jnp.full(len(x), jnp.log(0.3)), 1.0)
        (x, log_step, _), _ = jax.lax.scan(move, state, jax.random.split(warm, N_WARM_UP))
        return jax.lax.scan(move, (x, log_step, 0.0), jax.random.split(keep, N_KEPT))[1]

    start = np.random.default_rng(seed).normal(size=(N_CHAINS * B, Q))
    chains = np.asarray(run(start, jax.random.key(seed))).reshape(N_KEPT, N_CHAINS, B, Q)
    within = chains.var(0, ddof=1).mean(0)
    r_hat = np.sqrt(1 - 1 / N_KEPT + chains.mean(0).var(0, ddof=1) / within)
    return chains.reshape(-1, B, Q), float(np.quantile(r_hat, 0.99))


def below(x: np.ndarray, draws: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Share of the draws [S B Q], weighted [S B], below the true x [B Q]."""
    return ((draws < x) * weights[:, :, None]).sum(0) / weights.sum(0)[:, None]


def measures(x: np.ndarray, draws: np.ndarray, weights: np.ndarray) -> dict:
    """Kolmogorov's distance of the shares from uniform ones, and the coverage of central intervals."""
    share = below(x, draws, weights).ravel()
    test = kstest(share, "uniform")
    covered = {f"{level:.0%}": float((np.abs(share - 0.5) <= level / 2).mean()) for level in LEVELS}
    return {"distance": float(test.statistic), "p": float(test.pvalue), "coverage": covered}


def one_family(kind: str, n_rows: int, seed: int) -> dict:
    sim = simulate(N_TRAINED, Q, {kind: N_COLUMNS}, missing=0.1, random_state=seed)
    model = PluriGP(Q, schema=sim.schema, n_inducing=15, max_epochs=60, random_state=seed).fit(sim.table)
    p, rng = model.predictor_, np.random.default_rng(seed)
    with jax_runtime():
        x, values, seen = draw_rows(p, n_rows, rng)
        q = latent.encode_chunk(p, values, seen)
        drawn, weights, size = (
            np.asarray(part) for part in latent.weighted_draws(p, values, seen, q, standard_draws(64, Q))
        )
        reference, r_hat = sample_reference(p, values, seen, seed)
        encoded = np.asarray(q.at(rng.normal(size=(1000, 1, Q))))
    equal = np.ones((1, n_rows))
    mean = (drawn * weights[:, :, None]).sum(0)
    off = (mean - reference.mean(0)) / reference.std(0)
    return {
        "rows": n_rows,
        "encoder": measures(x, encoded, np.broadcast_to(equal, encoded.shape[:2])),
        "weighted": measures(x, drawn, weights),
        "reference": measures(x, reference, np.broadcast_to(equal, reference.shape[:2])),
        "r_hat": r_hat,
        "effective_draws": float(np.median(size)),
        "mean_off_in_sd": float(np.sqrt((off**2).mean())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    given = parser.parse_args()
    result = {}
    for kind in given.kinds:
        started = time.time()
        result[kind] = one_family(kind, given.rows, 0)
        print(kind, f"{time.time() - started:.0f} s", result[kind], flush=True)
        save("sbc", result)


if __name__ == "__main__":
    main()
