"""Rubin's rules: one analysis of every completed table becomes one answer, gaps counted as uncertainty."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from plurigp.core.text import listing, nearest, show

POOLED = ["estimate", "se", "df", "t", "p", "low", "high", "riv", "lambda", "fmi", "within", "between"]
N_BOOTSTRAP = 100  # resamplings of a completed table where an analysis gives no variances


class PooledTest(NamedTuple):
    """D1, the pooled Wald test: F on df1 and df2 degrees of freedom; riv: average relative increase in variance."""

    statistic: float
    df1: int
    df2: float
    p: float
    riv: float


@dataclass(frozen=True, eq=False, repr=False)
class PooledEstimates:
    """What m completed tables say together.

    frame: one line per term: estimate, se, df, t, p, low, high, riv (relative increase in variance due to gaps), lambda
      (share of the variance due to gaps), fmi (fraction of missing information), within and between (variances).
    within, between: covariances [k k] of the estimates, in and between the completed tables; diagonal where only
      variances were given.
    """

    frame: pd.DataFrame
    within: Float[np.ndarray, "k k"]
    between: Float[np.ndarray, "k k"]
    n_imputations: int
    df_complete: float
    has_covariances: bool

    def __repr__(self) -> str:
        return f"{self.frame.to_string()}\npooled over {self.n_imputations} completed tables"

    def _repr_html_(self) -> str:
        return self.frame.to_html()

    @property
    def covariance(self) -> pd.DataFrame:
        """The total covariance of the estimates: within + (1 + 1/m) between."""
        total = self.within + (1 + 1 / self.n_imputations) * self.between
        return pd.DataFrame(total, index=self.frame.index, columns=self.frame.index)

    def test(self, terms: Sequence[Any] | None = None, null: Any = 0.0) -> PooledTest:
        """Whether these terms (all of them if None) equal `null` together: D1 of Li, Raghunathan and Rubin (1991).

        It takes the increase in variance to be the same for all terms, which few completed tables can tell apart. The
        denominator's degrees of freedom are Reiter's (2007) where df_complete is finite.
        """
        if not self.has_covariances:
            raise ValueError("a joint test needs covariances; give `variances` as one k × k matrix per completed table")
        own = self._places(terms)
        at = np.ix_(own, own)
        difference = self.frame["estimate"].to_numpy()[own] - np.asarray(null, float)
        k, m = len(own), self.n_imputations
        riv = float((1 + 1 / m) * np.trace(np.linalg.solve(self.within[at], self.between[at])) / k)
        statistic = float(difference @ np.linalg.solve(self.within[at], difference) / (k * (1 + riv)))
        df2 = denominator_df(m, k, riv, self.df_complete)
        return PooledTest(statistic, k, df2, float(stats.f.sf(statistic, k, df2)), riv)

    def _places(self, terms: Sequence[Any] | None) -> np.ndarray:
        known = self.frame.index.tolist()
        if terms is None:
            return np.arange(len(known))
        terms = [terms] if isinstance(terms, str) else list(terms)
        for term in terms:
            if term not in known:
                raise KeyError(f"no term {show(term)}; known: {listing(map(show, known))}.{nearest(term, known)}")
        return np.array([known.index(term) for term in terms])


def pool(
    estimates: Any,
    variances: Any,
    df_complete: float | int = np.inf,
    names: Iterable[Any] | None = None,
    level: float | int = 0.95,
) -> PooledEstimates:
    """Rubin's rules with Barnard and Rubin's (1999) degrees of freedom.

    estimates: one per completed table: numbers [m], vectors [m k] or Series whose index names the terms.
    variances: their squared standard errors [m] or [m k], or covariance matrices [m k k], which allow a joint test.
    df_complete: degrees of freedom that the analysis would have without gaps, such as rows less parameters.
    level: of the interval `low` to `high`.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level}")
    if not df_complete > 0:
        raise ValueError(f"df_complete must be above 0; got {df_complete}")
    Q, U, full, terms = _checked(estimates, variances, names)
    m, qbar = len(Q), Q.mean(0)
    W, B = U.mean(0), np.atleast_2d(np.cov(Q, rowvar=False))
    B = B if full else np.diag(np.diag(B))
    within, between = np.diag(W), np.diag(B)
    total = within + (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):  # an estimate that is known exactly
        riv, share = (1 + 1 / m) * between / within, (1 + 1 / m) * between / total
        se, df = np.sqrt(total), barnard_rubin(m, share, df_complete)
        t = qbar / se
        fmi = (riv + 2 / (df + 3)) / (riv + 1)
    half = stats.t.ppf(0.5 + level / 2, df) * se
    p = 2 * stats.t.sf(np.abs(t), df)
    lines = [qbar, se, df, t, p, qbar - half, qbar + half, riv, share, fmi, within, between]
    frame = pd.DataFrame(dict(zip(POOLED, lines, strict=True)), index=pd.Index(terms, name="term"))
    return PooledEstimates(frame, W, B, m, float(df_complete), full)


def barnard_rubin(m: int, share: Float[np.ndarray, " k"], df_complete: float | int) -> Float[np.ndarray, " k"]:
    """Degrees of freedom of a pooled estimate, `share` of whose variance is due to gaps (Barnard and Rubin 1999).

    1/ν = λ²/(m − 1) + 1/ν_obs,  ν_obs = (ν_com + 1)/(ν_com + 3) ν_com (1 − λ)
    """
    with np.errstate(divide="ignore"):
        inverse = share**2 / (m - 1)
        if np.isfinite(df_complete):
            inverse = inverse + 1 / ((df_complete + 1) / (df_complete + 3) * df_complete * (1 - share))
        return 1 / inverse


def denominator_df(m: int, k: int, riv: float, df_complete: float | int) -> float:
    """Degrees of freedom of D1's denominator: Reiter's (2007), which become Li, Raghunathan and Rubin's (1991) as the
    complete table grows; theirs for t = k (m − 1) ≤ 4, where Reiter's expansion does not exist."""
    t = k * (m - 1)
    if t <= 4:
        return t * (1 + 1 / k) * (1 + 1 / riv) ** 2 / 2 if riv > 0 else np.inf
    a = riv * t / (t - 2)
    if np.isinf(df_complete):
        return 4 + (t - 4) * (1 + 1 / a) ** 2 if a > 0 else np.inf
    v = (df_complete + 1) / (df_complete + 3) * df_complete
    c, d = v - 2 * (1 + a), v - 4 * (1 + a)
    if d <= 0:
        raise ValueError(f"df_complete={df_complete:g} is too few for a joint test; test terms one by one")
    bracket = c / (d * (1 + a) ** 2) + (8 * c / d**2 + 4 / d) / (1 + a) + 4 / (c * d) + 16 * c / d**3 + 8 / d**2
    return 4 + 1 / (1 / d + a**2 * bracket / (t - 4))


class _Inputs(NamedTuple):
    """Estimates [m k], covariances [m k k], whether those were given in full, and the terms' names."""

    estimates: np.ndarray
    covariances: np.ndarray
    full: bool
    names: list[Any]


def _checked(estimates: Any, variances: Any, names: Iterable[Any] | None) -> _Inputs:
    own = _own_names(estimates)
    Q, U = _stacked(estimates, "estimates", own), _stacked(variances, "variances", own)
    if Q.ndim not in (1, 2) or len(Q) < 2:
        raise ValueError(f"give the estimates of at least 2 completed tables, as [m] or [m k]; got shape {Q.shape}")
    m, k = len(Q), 1 if Q.ndim == 1 else Q.shape[1]
    full = U.shape == (m, k, k) or k == 1
    if U.shape not in (Q.shape, (m, k, k)):
        raise ValueError(f"variances must have shape {Q.shape} or {(m, k, k)}, as the estimates; got {U.shape}")
    if U.shape == Q.shape:
        U = U.reshape(m, k, 1) * np.eye(k)
    if (np.diagonal(U, axis1=1, axis2=2) < 0).any():
        raise ValueError("variances must not be negative; give squared standard errors")
    terms = list(names) if names is not None else own or [f"q{place + 1}" for place in range(k)]
    if len(terms) != k:
        raise ValueError(f"{len(terms)} names for {k} estimates; give one each")
    return _Inputs(Q.reshape(m, k), U, full, terms)


def _own_names(estimates: Any) -> list[Any] | None:
    """What the estimates themselves call their terms."""
    if isinstance(estimates, pd.DataFrame):
        return estimates.columns.tolist()
    first = estimates[0] if isinstance(estimates, list | tuple) and estimates else None
    return first.index.tolist() if isinstance(first, pd.Series) else None


def _stacked(parts: Any, what: str, names: list[Any] | None) -> np.ndarray:
    """The parts as one array, those that name their terms in the order of the first."""
    if isinstance(parts, list | tuple) and names is not None:
        parts = [_in_order(part, names) for part in parts]
    array = np.asarray(parts, float)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} of completed table {int(np.argwhere(~np.isfinite(array))[0, 0])}: not finite")
    return array


def _in_order(part: Any, names: list[Any]) -> Any:
    if not isinstance(part, pd.Series | pd.DataFrame):
        return part
    if set(part.index) != set(names):
        own, first = (listing(map(show, terms)) for terms in (part.index, names))
        remedy = "code levels the same way in every completed table"
        raise ValueError(f"the analyses differ in their terms ({own}; the first has {first}): {remedy}")
    return part.loc[names] if isinstance(part, pd.Series) else part.loc[names, names]


# --- analyses of completed tables ---


class Analysis(NamedTuple):
    """Estimates of one completed table, their covariance or variances, and the complete-data degrees of freedom."""

    estimates: pd.Series
    variances: Any
    df: float


def pool_fits(
    fit: Callable[[pd.DataFrame], Any],
    tables: Sequence[pd.DataFrame],
    df_complete: float | int | None = None,
    level: float | int = 0.95,
    n_bootstrap: int = N_BOOTSTRAP,
    random_state: int = 0,
) -> PooledEstimates:
    """Run an analysis on every completed table and pool it: `fit(table)` returns

    - a fitted statsmodels result: its parameters, their covariance and residual degrees of freedom are used;
    - estimates and variances (or a covariance matrix), and their degrees of freedom if known, as a tuple;
    - a fitted scikit-learn estimator with `coef_`, a number, or a Series of numbers: these come without variances,
      which are then those of `n_bootstrap` resamplings of the rows of each completed table.
    """
    if len(tables) < 2:
        raise ValueError(f"pooling needs at least 2 completed tables; got {len(tables)}")
    rng = np.random.default_rng(random_state)
    found = [_analyse(fit, table, n_bootstrap, rng) for table in tables]
    df = min(one.df for one in found) if df_complete is None else df_complete
    return pool([one.estimates for one in found], [one.variances for one in found], df, level=level)


def _analyse(fit: Callable[[pd.DataFrame], Any], table: pd.DataFrame, n: int, rng: np.random.Generator) -> Analysis:
    result = fit(table)
    if hasattr(result, "params") and hasattr(result, "cov_params"):
        names = list(getattr(result.model, "exog_names", None) or range(len(result.params)))
        params = result.params if isinstance(result.params, pd.Series) else pd.Series(result.params, names)
        df = float(getattr(result, "df_resid", None) or np.inf)
        return Analysis(params, pd.DataFrame(np.asarray(result.cov_params()), params.index, params.index), df)
    if isinstance(result, tuple):
        estimates = _coefficients(result[0])
        variances = np.asarray(result[1], float).reshape(-1) if np.ndim(result[1]) < 2 else result[1]
        if isinstance(variances, np.ndarray) and variances.ndim == 1:
            variances = pd.Series(variances, estimates.index)
        return Analysis(estimates, variances, float(result[2]) if len(result) > 2 else np.inf)
    estimates = _coefficients(result)
    draws = [_coefficients(fit(table.iloc[rng.integers(len(table), size=len(table))])) for _ in range(n)]
    resampled = np.stack([draw.loc[estimates.index].to_numpy() for draw in draws])
    covariance = np.atleast_2d(np.cov(resampled, rowvar=False))
    return Analysis(estimates, pd.DataFrame(covariance, estimates.index, estimates.index), np.inf)


def _coefficients(result: Any) -> pd.Series:
    """Estimates with their names: those of a fitted scikit-learn estimator are its intercept and coefficients."""
    if not hasattr(result, "coef_"):
        return result.astype(float) if isinstance(result, pd.Series) else pd.Series(np.atleast_1d(result).astype(float))
    coefficients = np.atleast_2d(result.coef_)
    if len(coefficients) > 1:
        raise ValueError(
            "an estimator with several outputs has no single list of coefficients; return a Series of them"
        )
    names = list(getattr(result, "feature_names_in_", [f"x{place}" for place in range(coefficients.shape[1])]))
    intercept = np.ravel(getattr(result, "intercept_", 0.0))[:1]
    return pd.Series(np.concatenate([intercept, coefficients[0]]).astype(float), ["intercept", *names])
