"""Our special functions against the library's: ns per element, forward and with the gradient, and the largest error.

    python benchmarks/special.py [--size 1000000] [--repeats 15] [--only softplus,log_gamma]

float32 vectors of ordinary arguments. "ours / theirs" is the median over repeats in which the two take turns, so that
whatever else the machine does hits both. The error is the largest against SciPy in float64, relative to 1 + |value|.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special as library
from scipy import special as exact

from plurigp.likelihoods import special as ours


class Contest(NamedTuple):
    """One function: ours, the library's, SciPy's in float64, and the range of its arguments."""

    ours: Callable
    theirs: Callable
    exact: Callable
    low: float
    high: float
    log_scale: bool = False


CONTESTS = {
    "softplus": Contest(ours.softplus, jax.nn.softplus, lambda x: np.logaddexp(x, 0), -10, 10),
    "log_gamma": Contest(ours.log_gamma, library.gammaln, exact.gammaln, 1e-2, 1e4, True),
    "digamma": Contest(ours.digamma, library.digamma, exact.digamma, 1e-2, 1e4, True),
    "log_gamma_step": Contest(
        ours.log_gamma_step,
        lambda x: library.gammaln(x + 0.5) - library.gammaln(x),
        lambda x: 0.5 * np.log(np.pi) - exact.betaln(x, 0.5),
        0.5, 1e6, True,
    ),
    "log_factorial_rest": Contest(
        ours.log_factorial_rest,
        lambda x: library.gammaln(x + 1) - library.xlogy(x, x) + x,
        lambda x: exact.gammaln(x + 1) - exact.xlogy(x, x) + x,
        1e-2, 1e4, True,
    ),
    "exp_excess": Contest(
        ours.exp_excess, lambda x: jnp.expm1(x) - x, lambda x: np.where(abs(x) < 1e-4, x * x / 2, np.expm1(x) - x), -3, 3
    ),
    "ndtr": Contest(ours.ndtr, library.ndtr, exact.ndtr, -6, 6),
    "log_ndtr": Contest(ours.log_ndtr, library.log_ndtr, exact.log_ndtr, -20, 6),
    "log_between": Contest(
        lambda x: ours.log_between(x, x + 0.5),
        lambda x: library.log_ndtr(x + 0.5) + jnp.log1p(-jnp.exp(library.log_ndtr(x) - library.log_ndtr(x + 0.5))),
        lambda x: exact.log_ndtr(x + 0.5) + np.log1p(-np.exp(exact.log_ndtr(x) - exact.log_ndtr(x + 0.5))),
        -12, 0,
    ),
}  # fmt: skip


def arguments(contest: Contest, size: int) -> np.ndarray:
    """Random arguments over the contest's range."""
    rng = np.random.default_rng(0)
    if contest.log_scale:
        return np.exp(rng.uniform(np.log(contest.low), np.log(contest.high), size)).astype(np.float32)
    return rng.uniform(contest.low, contest.high, size).astype(np.float32)


def error(function: Callable, contest: Contest, x: np.ndarray) -> float:
    """The largest error of the value, relative to 1 + |value|."""
    truth = contest.exact(x.astype(float))
    return float(np.max(np.abs(np.asarray(jax.jit(function)(x), float) - truth) / (1 + np.abs(truth))))


def race(a: Callable, b: Callable, x: jax.Array, repeats: int) -> tuple[float, float, float]:
    """Best ns per element of both programs, and the median ratio of neighbouring runs."""
    programs = [jax.jit(program) for program in (a, b)]
    for program in programs:
        jax.block_until_ready(program(x))
    times = np.empty((repeats, 2))
    for repeat in range(repeats):
        for place, program in enumerate(programs):
            start = time.perf_counter()
            jax.block_until_ready(program(x))
            times[repeat, place] = time.perf_counter() - start
    ours_best, theirs_best = times.min(0) * 1e9 / x.size
    return ours_best, theirs_best, float(np.median(times[:, 0] / times[:, 1]))


def with_gradient(function: Callable) -> Callable:
    """Value and slope of every element."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", default=",".join(CONTESTS), help="names of functions, with commas between them")
    given = parser.parse_args()
    print(f"{'':20s}{'forward, ns':^28s}{'with gradient, ns':^28s}{'largest error':^20s}")
    print(f"{'':20s}" + f"{'ours':>9s}{'theirs':>9s}{'ratio':>8s}  " * 2 + f"{'ours':>9s}{'theirs':>9s}")
    for name in given.only.split(","):
        contest = CONTESTS[name]
        x = arguments(contest, given.size)
        forward = race(contest.ours, contest.theirs, jnp.asarray(x), given.repeats)
        both = race(with_gradient(contest.ours), with_gradient(contest.theirs), jnp.asarray(x), given.repeats)
        errors = error(contest.ours, contest, x), error(contest.theirs, contest, x)
        times = "".join(f"{a:9.2f}{b:9.2f}{ratio:8.2f}  " for a, b, ratio in (forward, both))
        print(f"{name:20s}{times}{errors[0]:9.0e}{errors[1]:9.0e}", flush=True)
