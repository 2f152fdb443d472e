"""Our special functions against the library's: ns per element, forward and with the slope, and the largest errors.

    python benchmarks/special.py [--size 1000000] [--repeats 15] [--only softplus,log_gamma]

float32 vectors. The ratio (ours over theirs) is the median over repeats in which the two take turns, so that whatever
else the machine does hits both. Errors are the largest against SciPy in float64, relative to 1 + |value|; those of
slopes are taken over a wider range and against central differences of SciPy's function.
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
    """One function: ours, the library's, SciPy's, the range for times and values, and how far slopes are asked for."""

    ours: Callable
    theirs: Callable
    exact: Callable
    low: float
    high: float
    far: float = 0.0  # the other end is `high`; zero: the range itself
    log_scale: bool = False


def _in_a_beta(below: jax.Array, above: jax.Array) -> jax.Array:
    return ours.log_gamma(10 * below + 1e-4) + ours.log_gamma(10 * above + 1e-4)


def _log_between(log_ndtr: Callable, log1p: Callable, exp: Callable) -> Callable:
    return lambda x: log_ndtr(x + 0.5) + log1p(-exp(log_ndtr(x) - log_ndtr(x + 0.5)))


CONTESTS = {
    "softplus": Contest(ours.softplus, jax.nn.softplus, lambda x: np.logaddexp(x, 0), -10, 10, -60),
    "log_gamma": Contest(ours.log_gamma, library.gammaln, exact.gammaln, 1e-2, 1e4, log_scale=True),
    "digamma": Contest(ours.digamma, library.digamma, exact.digamma, 1e-2, 1e4, log_scale=True),
    "log_gamma_step": Contest(
        ours.log_gamma_step,
        lambda x: library.gammaln(x + 0.5) - library.gammaln(x),
        lambda x: 0.5 * np.log(np.pi) - exact.betaln(x, 0.5),
        0.5, 1e6, log_scale=True,
    ),
    "log_factorial_rest": Contest(
        ours.log_factorial_rest,
        lambda x: library.gammaln(x + 1) - library.xlogy(x, x) + x,
        lambda x: exact.gammaln(x + 1) - exact.xlogy(x, x) + x,
        1e-2, 1e4, log_scale=True,
    ),
    "exp_excess": Contest(
        lambda x: 1e6 * ours.exp_excess(x),  # as a count of a million multiplies it
        lambda x: 1e6 * (jnp.expm1(x) - x),
        lambda x: 1e6 * np.where(abs(x) < 1e-4, x * x / 2 * (1 + x / 3), np.expm1(x) - x),
        -1e-2, 1e-2,
    ),
    "ndtr": Contest(ours.ndtr, library.ndtr, exact.ndtr, -6, 6),
    "both_sides in a beta": Contest(
        lambda x: _in_a_beta(*ours.both_sides(x)),
        lambda x: _in_a_beta(library.ndtr(x), library.ndtr(-x)),
        lambda x: exact.gammaln(10 * exact.ndtr(x) + 1e-4) + exact.gammaln(10 * exact.ndtr(-x) + 1e-4),
        -4, 4,
    ),
    "log_ndtr": Contest(ours.log_ndtr, library.log_ndtr, exact.log_ndtr, -20, 6, -1e4),
    "log_between": Contest(
        lambda x: ours.log_between(x, x + 0.5),
        _log_between(library.log_ndtr, jnp.log1p, jnp.exp),
        _log_between(exact.log_ndtr, np.log1p, np.exp),
        -12, 0, -1e3,
    ),
}  # fmt: skip


def arguments(low: float, high: float, log_scale: bool, size: int) -> np.ndarray:
    """Random arguments over a range."""
    ends = np.log([low, high]) if log_scale else (low, high)
    drawn = np.random.default_rng(0).uniform(*ends, size)
    return (np.exp(drawn) if log_scale else drawn).astype(np.float32)


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


def with_slope(function: Callable) -> Callable:
    """Value and slope of every element."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))


def errors(contest: Contest) -> list[float]:
    """The largest error of both values, then of both slopes."""
    x = arguments(contest.low, contest.high, contest.log_scale, 20_000)
    far = arguments(contest.far or contest.low, contest.high, contest.log_scale, 20_000)
    step = 1e-5 * np.abs(far.astype(float))
    slope = (contest.exact(far + step) - contest.exact(far - step)) / (2 * step)
    both = (contest.ours, contest.theirs)
    values = [(jax.jit(f)(x), contest.exact(x.astype(float))) for f in both]
    slopes = [(jax.jit(with_slope(f))(far)[1], slope) for f in both]
    return [float(np.max(np.abs(np.asarray(a, float) - b) / (1 + np.abs(b)))) for a, b in (*values, *slopes)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", default=",".join(CONTESTS), help="names of functions, with commas between them")
    given = parser.parse_args()
    print(f"{'':22s}{'forward, ns':^26s}  {'with slope, ns':^26s}  {'error of value':^18s}{'error of slope':^18s}")
    print(f"{'':22s}" + f"{'ours':>9s}{'theirs':>9s}{'ratio':>8s}  " * 2 + f"{'ours':>9s}{'theirs':>9s}" * 2)
    for name in given.only.split(","):
        contest = CONTESTS[name]
        x = jnp.asarray(arguments(contest.low, contest.high, contest.log_scale, given.size))
        forward = race(contest.ours, contest.theirs, x, given.repeats)
        both = race(with_slope(contest.ours), with_slope(contest.theirs), x, given.repeats)
        times = "".join(f"{a:9.2f}{b:9.2f}{ratio:8.2f}  " for a, b, ratio in (forward, both))
        print(f"{name:22s}{times}" + "".join(f"{e:9.0e}" for e in errors(contest)), flush=True)
