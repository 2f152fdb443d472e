"""Survival by subtype: Kaplan–Meier with log-log intervals, the log-rank test, risks at given times."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from plurigp.core.text import at
from plurigp.core.types import DataError
from plurigp.data.cells import cells_of
from plurigp.data.limits import read_events
from plurigp.study.findings.design import Design, jackknife, jackknife_test

CURVE_STEPS = 100  # round times at which a curve is read off: event times would tell single patients
MIN_AT_RISK = 5  # rows; with fewer a curve ends
Z_95 = float(stats.norm.ppf(0.975))  # half of a 95 % interval, in standard errors
SURVIVAL = ["subtype", "time", "at_risk", "survival", "low", "high"]
RISKS = ["subtype", "time", "at_risk", "risk", "low", "high"]
TESTS = ["test", "statistic", "degrees", "p"]


def read_outcome(frame: pd.DataFrame, time: str, event: str) -> tuple[np.ndarray, np.ndarray]:
    """Times [N] and events [N] as numbers, NaN where either is a gap; errors name the column and row."""
    for name in (time, event):
        if name not in frame.columns:
            raise DataError(f"{at(name)} is to hold an outcome but is not in the table; correct the name.")
    cells = cells_of(frame[event], event)
    times = pd.to_numeric(frame[time], errors="coerce").astype("Float64").to_numpy(float, na_value=np.nan)
    events = read_events(cells, event, cells.seen)
    bad = np.flatnonzero((times < 0) | (np.isnan(times) & frame[time].notna().to_numpy()))
    if len(bad):
        raise DataError(f"{at(time, int(bad[0]))}: a time must be a number of at least 0; correct it or leave a gap.")
    gap = np.isnan(times) | np.isnan(events)
    return np.where(gap, np.nan, times), np.where(gap, np.nan, events)


def kaplan_meier(time: np.ndarray, event: np.ndarray, at_times: np.ndarray) -> pd.DataFrame:
    """Survival at given times with the log-log interval of Greenwood's variance, and the rows still at risk.

    Where S = 0 the variance is not defined: the interval then goes from 0 to the upper limit of the step before.
    After the last time of any row nothing is known (NaN), unless survival has reached 0 by then.
    """
    curve = _survival_function(time, event)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of NaN where S is 1 or 0
        interval = curve.confidence_interval(0.95, method="log-log")
    high = pd.Series(interval.high.probabilities).ffill().fillna(1.0)
    low = np.where(curve.probabilities > 0, pd.Series(interval.low.probabilities).fillna(1.0), 0.0)
    survival = curve.evaluate(at_times)
    known = (at_times <= time.max()) | (survival == 0)
    step = np.searchsorted(curve.quantiles, at_times, side="right")  # 0 is before the first time
    values = {"survival": survival} | {
        name: np.concatenate([[1.0], limits])[step] for name, limits in (("low", low), ("high", high))
    }
    shown = {name: np.where(known, column, np.nan) for name, column in values.items()}
    return pd.DataFrame({"time": at_times, "at_risk": _at_risk(time, at_times), **shown})


def _survival_function(time: np.ndarray, event: np.ndarray) -> Any:
    """SciPy's EmpiricalDistributionFunction: a step at every time of a row."""
    return stats.ecdf(stats.CensoredData.right_censored(time, event == 0)).sf


def _at_risk(time: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """How many rows are followed up to each moment at least."""
    return len(time) - np.searchsorted(np.sort(time), moments, side="left")


def _weight_at_risk(time: np.ndarray, moments: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of the rows that are followed up to each moment at least."""
    order = np.argsort(time, kind="stable")
    before = np.append(0.0, np.cumsum(weights[order]))
    return before[-1] - before[np.searchsorted(time[order], moments, side="left")]


def median_time(time: np.ndarray, event: np.ndarray) -> float:
    """When half have had the event, by Kaplan and Meier; NaN where that is not reached."""
    curve = _survival_function(time, event)
    reached = curve.quantiles[curve.probabilities <= 0.5 + 1e-12]
    return float(reached[0]) if len(reached) else float("nan")


def excess_events(
    time: np.ndarray, event: np.ndarray, group: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Observed less expected events of each group [G] in the order of their names, and their covariance [G G].

    Rows and events may count by weights; the covariance is then that of as many independent rows.
    """
    names = np.unique(group)
    w = np.ones(len(time)) if weights is None else weights
    moments, place = np.unique(time[event == 1], return_inverse=True)
    deaths = np.bincount(place, w[event == 1], len(moments))
    n = _weight_at_risk(time, moments, w)
    share = np.stack([_weight_at_risk(time[group == name], moments, w[group == name]) for name in names])  # [G M]
    share = share / np.maximum(n, 1e-300)
    observed = np.array([(w * event)[group == name].sum() for name in names])
    spread = share * deaths * (n - deaths) / np.maximum(n - 1, 1)
    covariance = -spread @ share.T
    np.fill_diagonal(covariance, (spread * (1 - share)).sum(1))  # exactly 0 where a group is all that is at risk
    return observed - share @ deaths, covariance


def log_rank(time: np.ndarray, event: np.ndarray, group: np.ndarray) -> tuple[float, int, float]:
    """χ², degrees of freedom and p of the log-rank test; NaN without two groups or without events.

    Over any number of groups, where SciPy's compares two.
    """
    excess, covariance = excess_events(time, event, group)
    degrees = len(excess) - 1
    if not covariance.any():
        return float("nan"), degrees, float("nan")
    chi2 = float(excess[:-1] @ np.linalg.pinv(covariance[:-1, :-1]) @ excess[:-1])
    return chi2, degrees, float(stats.chi2.sf(chi2, degrees))


# --- on a sampling design ---


def one_step_hazards(time: np.ndarray, event: np.ndarray, group: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """From weights to Peto's (O − E) / V of all groups but the last [G − 1], NaN where nothing is at risk."""

    def ratios(w: np.ndarray) -> np.ndarray:
        excess, covariance = excess_events(time, event, group, w)
        variance = np.diagonal(covariance)[:-1]
        return np.where(variance > 0, excess[:-1] / np.where(variance > 0, variance, 1.0), np.nan)

    return ratios


def weighted_survival(time: np.ndarray, event: np.ndarray, w: np.ndarray, at_times: np.ndarray) -> np.ndarray:
    """The product-limit estimate with weighted events and rows at risk."""
    moments, place = np.unique(time, return_inverse=True)
    deaths = np.bincount(place, w * (event == 1), len(moments))
    at_risk = np.cumsum(np.bincount(place, w, len(moments))[::-1])[::-1]
    steps = np.cumprod(1 - np.divide(deaths, at_risk, out=np.zeros_like(deaths), where=at_risk > 1e-12 * w.sum()))
    return np.append(1.0, np.clip(steps, 0.0, 1.0))[np.searchsorted(moments, at_times, side="right")]


def weighted_median_time(time: np.ndarray, event: np.ndarray, w: np.ndarray) -> float:
    """When half of the population have had the event; NaN where that is not reached."""
    moments = np.unique(time)
    reached = moments[weighted_survival(time, event, w, moments) <= 0.5 + 1e-12]
    return float(reached[0]) if len(reached) else float("nan")


def survival_curve(time: np.ndarray, event: np.ndarray, at_times: np.ndarray, sampled: Design | None) -> pd.DataFrame:
    """Kaplan and Meier's curve; on a sampling design the weighted one, with the jackknife's log-log interval."""
    plain = kaplan_meier(time, event, at_times)
    if sampled is None or not len(at_times):
        return plain
    survival = weighted_survival(time, event, sampled.weights, at_times)
    inside = (survival > 0) & (survival < 1)

    def log_hazard(w: np.ndarray) -> np.ndarray:
        curve = np.clip(weighted_survival(time, event, w, at_times[inside]), 1e-12, 1 - 1e-12)
        return np.log(-np.log(curve))

    low, high = survival.copy(), survival.copy()
    if inside.any():
        found = jackknife(log_hazard, sampled)
        half = stats.t.ppf(0.975, max(found.degrees, 1.0)) * np.sqrt(np.diagonal(found.covariance))
        low[inside], high[inside] = (np.exp(-np.exp(found.estimate + side * half)) for side in (1, -1))
    shown = {"survival": survival, "low": low, "high": high}
    return plain.assign(**{name: np.where(plain["survival"].notna(), v, np.nan) for name, v in shown.items()})


def survival_by_subtype(
    time: np.ndarray,
    event: np.ndarray,
    subtype: np.ndarray,
    K: int,
    horizons: tuple[float, ...],
    sampled: Design | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Curves (subtype 0 is everybody), risks at the horizons, and the log-rank test over subtypes.

    A risk by a time that nobody was followed to is NaN, with no row at risk. With a sampling design, rows count by
    their weights in all but `at_risk`, and errors are the clusters'.
    """
    known = np.isfinite(time) & np.isfinite(event)
    if sampled is not None:
        known &= sampled.weights > 0
        sampled = sampled[known]
    time, event, subtype = time[known], event[known], subtype[known]
    if len(time) < MIN_AT_RISK:
        return no_outcome()
    curves, risks = [], []
    for k in range(K + 1):
        own = np.ones(len(time), dtype=bool) if k == 0 else subtype == k
        if own.sum() >= MIN_AT_RISK:
            followed = time[own], event[own]
            of_own = None if sampled is None else sampled[own]
            curve = survival_curve(*followed, _grid(time), of_own)
            curves.append(curve[curve["at_risk"] >= MIN_AT_RISK].assign(subtype=k)[SURVIVAL])
            point = survival_curve(*followed, np.asarray(horizons, float), of_own)
            risk = {"risk": 1 - point["survival"], "low": 1 - point["high"], "high": 1 - point["low"]}
            risks.append(point.assign(subtype=k, **risk)[RISKS])
    tests = pd.DataFrame(columns=TESTS)
    if K > 1 and (subtype > 0).any():
        member = subtype > 0
        members = time[member], event[member], subtype[member]
        test = ("log-rank", *log_rank(*members))
        if sampled is not None:
            statistic, p = jackknife_test(one_step_hazards(*members), sampled[member])
            test = ("weighted log-rank (F)", statistic, len(np.unique(subtype[member])) - 1, p)
        tests = pd.DataFrame([test], columns=TESTS)
    return pd.concat(curves, ignore_index=True), pd.concat(risks, ignore_index=True), tests


def no_outcome() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The three frames of a table without an outcome, or with too few rows that have one."""
    return pd.DataFrame(columns=SURVIVAL), pd.DataFrame(columns=RISKS), pd.DataFrame(columns=TESTS)


def _grid(time: np.ndarray) -> np.ndarray:
    """Round times from 0 up to the latest."""
    step = max(float(time.max()), 1e-9) / CURVE_STEPS
    unit = 10.0 ** np.floor(np.log10(step))
    step = unit * next(m for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= step * (1 - 1e-9))
    return step * np.arange(int(np.floor(time.max() / step)) + 1)
