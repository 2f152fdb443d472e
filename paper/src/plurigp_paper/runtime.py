"""The paper's 1,000 epochs on half of the simulated data: our wall-clock time, with what it is worth on the other."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from plurigp.study.fits.pool import available_cores
from plurigp_paper.digits import digits
from plurigp_paper.panel import APPROACHES, PAPER_NODES, Fit, PanelData, approach_table, halves, held_out_tables
from plurigp_paper.runs import Runs
from plurigp_paper.scores import mass_scorer, score
from plurigp_paper.simulated import pixel_noise

NAME = "runtime"
PAPER_HOURS = {1: 1.3, 2: 1.35, 3: 1.5}  # on an Intel Xeon E5, per repetition of 1,000 epochs
Q = 6


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is."""

    n_per_digit: int = 400
    n_epochs: int = 1000
    n_repeats: int = 1


QUICK = Sizes(n_per_digit=60, n_epochs=30, n_repeats=1)


def run(out: Path, sizes: Sizes, quiet: bool = False) -> dict[str, Any]:
    """Every approach, timed as a whole fit: reading, compiling, all epochs."""
    runs = Runs(out, NAME, asdict(sizes), quiet)
    images = digits((0, 1, 2), sizes.n_per_digit, 0)
    data = PanelData(images.table, images.schema)
    n_half = len(images.table) // 2
    fit = Fit(Q, sizes.n_epochs, -(-n_half // 2), model={"tol": 0.0, "n_quadrature": PAPER_NODES})
    found = runs.all(
        {
            f"approach-{approach}-{repeat}": partial(timed, data, fit, approach, repeat)
            for approach in APPROACHES
            for repeat in range(sizes.n_repeats)
        }
    )
    results = {
        "sizes": asdict(sizes),
        "n_rows": n_half,
        "n_cores": available_cores(),
        "paper_hours": {str(approach): hours for approach, hours in PAPER_HOURS.items()},
        "approaches": {
            str(approach): [found[f"approach-{approach}-{repeat}"] for repeat in range(sizes.n_repeats)]
            for approach in APPROACHES
        },
    }
    runs.keep(results)
    return results


def timed(data: PanelData, fit: Fit, approach: int, repeat: int) -> dict[str, Any]:
    """Seconds of one fit and its held-out scores; tol = 0 asks for all epochs."""
    noise = pixel_noise()
    frame, schema = approach_table(data, approach, noise)
    train, test = halves(len(frame), 0)
    rows = frame.iloc[train].reset_index(drop=True)
    started = perf_counter()
    model = fit.estimator(schema, repeat).fit(rows)
    seconds = perf_counter() - started
    truth, shown = held_out_tables(data, test, 0, frame)
    scorer = mass_scorer(model, noise, data.n_levels) if approach == 3 else None
    return {
        "seconds": seconds,
        "epochs": model.n_iter_,
        "scores": score(model, truth, shown, data.groups, scorer),
    }
