"""All fits of a study in their order: maps to choose from, the map, half maps, half maps of structureless tables."""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from threading import Thread

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from plurigp.study.findings.cluster import (
    FittedMixture,
    Starts,
    by_size,
    evidence_ladder,
    fit_mixture,
    informative_part,
    paper_mixture,
    with_uncertainty,
)
from plurigp.study.findings.mixture import Mixture, responsibilities
from plurigp.study.findings.null import structureless_table
from plurigp.study.findings.robustness import Halves
from plurigp.study.findings.valley import Counts
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.pool import Pool, Tables
from plurigp.study.fits.select import evidence_of, selection_frame, selection_tasks
from plurigp.study.fits.splits import first_rows, group_ids, shuffled_rows
from plurigp.study.fits.tasks import COUNTED, MAP, REFERENCE, REFIT, TRACED, Finished, Task, most_clusters

STRONG, VERY_STRONG = 3.0, 5.0  # nats of evidence (Kass and Raftery 1995)
MOST_OF_IT = 0.9  # share of the evidence for groups that a cut of the map has to hold


@dataclass(frozen=True, eq=False)
class Maps:
    """All that the fits of a study found."""

    selection: pd.DataFrame
    scored: Task  # the selection fit of the chosen dimension, which saw no test row: predictions are scored with it
    best: Task  # the map, the best of its restarts
    latent: Finished
    paper: Mixture
    ladder: list[FittedMixture]  # of the map's means: 1, 2, … clusters
    cut: FittedMixture  # into which the map is cut, before small clusters count as outliers
    halves: Halves
    references: list[Halves]  # a pair of half maps of each structureless table
    traces: pd.DataFrame
    notes: list[str]

    @property
    def n_paper(self) -> int:
        """How many clusters the paper's rule finds."""
        return int((self.paper.subtype > 0).sum())


def learn(pool: Pool, frame: pd.DataFrame, config: StudyConfig) -> Maps:
    """Run what is not finished yet, in four stages, each of which needs the one before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that reaches max_iter is good enough
        # joblib replaces a worker that compiled programs have made large, and its task is not lost
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        return _learn(pool, frame, config)


def _learn(pool: Pool, frame: pd.DataFrame, config: StudyConfig) -> Maps:
    N = len(frame)
    groups = group_ids(frame, config.groups)
    tries = selection_tasks(N, config, groups)
    tried = pool.run(tries, lambda _: frame)
    selection = selection_frame(tries, tried)
    line = selection[selection["chosen"]].iloc[0]
    Q = int(line["n_components"])
    restarts = [Task(f"{MAP}-{r}", Q, np.arange(N)) for r in range(config.n_restarts)]
    mapped = pool.run(restarts, lambda _: frame)
    best = int(np.argmax([evidence_of(f) for f in mapped]))
    x, sd = mapped[best].arrays["mean"], mapped[best].arrays["sd"]
    rule = config.max_clusters, config.mixture_inits, config.outlier_share, config.seed_of("paper")
    paper = in_background(partial(paper_mixture, x, *rule))
    ladder, cut = cut_map(x, sd, config, paper)
    halves = refit_tasks(config, Q, cut, (x, sd), groups)
    refitted = pool.run(halves, lambda _: frame)
    references = reference_tasks(N, config, Q, cut, groups)
    drawn = pool.run(references, _structureless(pool, restarts[best], frame, config)) if references else []
    everything = list(zip([*tries, *restarts, *halves], [*tried, *mapped, *refitted], strict=True))
    return Maps(
        selection,
        next(task for task in tries if task.name == line["fit"]),
        restarts[best],
        mapped[best],
        paper.result(),
        ladder,
        cut,
        _halves_of(cut.n_clusters, refitted),
        [_halves_of(cut.n_clusters, drawn[r : r + 2]) for r in range(0, len(drawn), 2)],
        pd.concat([_trace_frame(*pair) for pair in everything], ignore_index=True),
        sorted(set(chain.from_iterable(f.facts["notes"] for _, f in everything))),
    )


def in_background(call: Callable[[], Mixture]) -> Future[Mixture]:
    """Start a call in a daemon thread, which unlike an executor's ends with this process; workers fit meanwhile."""
    result: Future[Mixture] = Future()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    return result


def cut_map(
    mean: np.ndarray, sd: np.ndarray, config: StudyConfig, paper: Future[Mixture]
) -> tuple[list[FittedMixture], FittedMixture]:
    """Mixtures of the means with 1, 2, … clusters, and the one to cut the map by, which knows how uncertain positions
    are: by evidence, or of the number asked for.

    A map is cut into two at least, outliers not counted: a test of one cluster would find nothing.
    """
    part, seed = informative_part(mean, sd), config.seed_of("mixture")
    ladder = evidence_ladder(part.x, most_clusters(len(mean), config), seed)
    if config.n_subtypes == "evidence":
        enough = enough_clusters([rung.evidence - ladder[0].evidence for rung in ladder[1:]])
        cuts = (part.embed(with_uncertainty(rung, part.rows)) for rung in ladder[enough - 1 :])
        first, share = next(cuts), config.outlier_share
        several = (cut for cut in chain([first], cuts) if by_size(cut.mixture, mean, sd, share).subtype.max() > 1)
        return ladder, next(several, first)
    K = int((paper.result().subtype > 0).sum()) if config.n_subtypes == "paper" else int(config.n_subtypes)
    if len(ladder) < K:
        ladder = [*ladder, fit_mixture(part.x, K, Starts(part.x, seed))]
    return ladder, part.embed(with_uncertainty(ladder[min(K, len(ladder)) - 1], part.rows))


def enough_clusters(gains: Sequence[float]) -> int:
    """How many clusters to cut a map into, by the evidence that 2, 3, … have over one.

    The fewest that hold most of what any number has: with enough rows a group that is not Gaussian has evidence for
    ever more components, and each of those adds little to what the groups explain. Where what is left out may not be
    very strong evidence, the most against which there is no strong evidence: with a cluster too few, one lies across a
    valley and hides it, and a cluster too many has no valley to its other half.
    """
    most = max(gains)
    if (1 - MOST_OF_IT) * most >= VERY_STRONG:
        return 2 + next(k for k, gain in enumerate(gains) if gain >= MOST_OF_IT * most)
    return 2 + max(k for k, gain in enumerate(gains) if gain >= most - STRONG)


def refit_tasks(
    config: StudyConfig,
    Q: int,
    cut: FittedMixture,
    positions: tuple[np.ndarray, np.ndarray],
    groups: np.ndarray | None = None,
) -> list[Task]:
    """Random halves of the rows, each followed by its complement; their clusters start from the map's."""
    shares = responsibilities(cut.mixture, *positions)
    N = len(shares)
    names = [f"{REFIT}-{pair}" for pair in range(config.n_refits // 2)]
    halves = [rows for name in names for rows in _halves(N, config, name, groups)]
    return [Task(f"{REFIT}-{r:03}", Q, rows, shrinkage=cut.shrinkage, shares=shares) for r, rows in enumerate(halves)]


def reference_tasks(
    N: int, config: StudyConfig, Q: int, cut: FittedMixture, groups: np.ndarray | None = None
) -> list[Task]:
    """Two complementary halves of every structureless table, which has as many clusters of its own."""
    return [
        Task(f"{REFERENCE}-{r:03}-{h}", Q, rows, table=r, n_clusters=cut.n_clusters, shrinkage=cut.shrinkage)
        for r in range(config.n_references)
        for h, rows in enumerate(_halves(N, config, f"{REFERENCE}-{r}", groups))
    ]


def _halves(N: int, config: StudyConfig, name: str, groups: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the same size (of an odd number of rows, one is left out): the same shape compiles once.

    With groups, all rows in two parts as equal as whole groups come.
    """
    shuffled = shuffled_rows(N, config.seed_of(f"halves-{name}"), groups)
    if groups is not None:
        first = first_rows(shuffled, N // 2, groups)
        return np.sort(first), np.sort(shuffled[len(first) :])
    return np.sort(shuffled[: N // 2]), np.sort(shuffled[N // 2 : 2 * (N // 2)])


def _structureless(pool: Pool, best: Task, frame: pd.DataFrame, config: StudyConfig) -> Tables:
    """Structureless tables drawn from the map when they are needed; both halves share one draw."""
    model = pool.model(best.name)

    @lru_cache(maxsize=2)
    def draw(number: int) -> pd.DataFrame:
        return structureless_table(model, frame, config.seed_of(f"structureless-{number}"))

    return draw


def _halves_of(n_clusters: int, finished: Sequence[Finished]) -> Halves:
    arrays = [f.arrays for f in finished]
    labels, gains = (np.stack([own[name] for own in arrays]) for name in ("labels", "gains"))
    counts = tuple(Counts(**{name: own[f"{COUNTED}{name}"] for name in Counts._fields}) for own in arrays)
    return Halves(n_clusters, labels.astype(int), gains, tuple(own["rows"] for own in arrays), counts)


def _trace_frame(task: Task, finished: Finished) -> pd.DataFrame:
    """The course of one fit, per row that it learned from."""
    columns = {name: finished.arrays[f"trace.{name}"] for name in TRACED}
    n = len(columns["bound"])
    scaled = {name: values if name == "spread" else values / len(task.rows) for name, values in columns.items()}
    return pd.DataFrame({"fit": [task.name] * n, "epoch": np.arange(1, n + 1), **scaled})


def rows_to_fit(N: int, config: StudyConfig) -> int:
    """The rows of all fits of a study, which is how much work they are."""
    halves = config.n_refits + 2 * config.n_references
    return sum(len(task.rows) for task in selection_tasks(N, config)) + config.n_restarts * N + halves * (N // 2)
