"""The results page's sections on several processes and large tables."""

from collections.abc import Iterator


def growth_columns(runs: list[dict]) -> Iterator[str]:
    """Lines of the table over columns."""
    for r in runs:
        peak = f"{r['peak_gb']:.2f} GB" if "peak_gb" in r else ""
        name = f"{r['columns']:,} columns × {r.get('rows', 2000):,} rows"
        yield f"| {name} | {r['epoch']:.3f} | {r['microseconds_per_column']:.0f} µs | {peak} | |"


def registry(result: dict) -> list[str]:
    intro = "40 mixed columns in a folder of Parquet files, trained by `plurigp fit`, every process on one core."
    lines = [
        f"{intro} Memory is that of the largest process, without pages of files.\n",
        "| rows | processes | rows of a batch | µs per row and epoch | the rest of the command | peak memory |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for r in result["runs"]:
        pages = " with them" if r.get("with_file_pages") else ""  # as the first runs were measured
        cells = f"{r['microseconds_per_row']:.2f} | {r['start']:.0f} s with one epoch | {r['peak_gb']:.2f} GB{pages}"
        lines.append(f"| {r['rows']:,} | {r['processes']} | {r['batch']:,} | {cells} |")
    placed = [r for r in result["runs"] if "transform_rows_per_second" in r]
    lines += [
        f"\n`plurigp transform` of {r['rows']:,} rows, files to files, one core: "
        f"{r['transform_rows_per_second']:,.0f} rows per second."
        for r in placed
    ]
    return lines


def scaling(result: dict) -> list[str]:
    asked = result["asked"]
    shape = f"{asked['rows']:,} × {asked['columns']}, batches of {asked['batch']:,}"
    lines = [
        f"{shape}; every process has a core of its own, or shares one. One process and sums alone predict.\n",
        "| processes | ms per step | predicted | times one process | placing and sums |",
        "|--:|--:|--:|--:|--:|",
    ]
    for r in result["lines"]:
        step, predicted, sums = (1e3 * r[name] for name in ("step", "predicted", "sum"))
        off = f"{predicted:.2f} ({r['predicted'] / r['step'] - 1:+.0%})"
        lines.append(f"| {r['processes']} | {step:.2f} | {off} | {r['speedup']:.2f} | {sums:.2f} |")
    hosts = [f"{int(n)} hosts {1e3 * seconds:.1f} ms" for n, seconds in result["hosts"].items()]
    return [*lines, f"\nExtrapolated to {asked['batch']:,} rows on each host, 10 Gbit/s: {', '.join(hosts)} per step."]


def dask_study(result: dict) -> list[str]:
    runs = result["runs"]
    shape = f"A study of {result['rows']:,} rows with {result['refits']} half maps on two processes"
    lines = [
        f"{shape}: {runs['processes']['seconds']:.0f} s by `--jobs 2`.\n",
        "| on Dask | seconds | workers killed | the same bytes | copies of a table per worker, at most |",
        "|---|--:|--:|---|--:|",
    ]
    for name in ("alone", "killed"):
        r = runs[name]
        same = "yes" if r["same"] else "no"
        lines.append(f"| {name} | {r['seconds']:.0f} | {r['kills']} | {same} | {r['copies']} |")
    return lines


def killed_groups(result: dict) -> list[str]:
    killed = [run for run in result["runs"] if run["victim"] is not None]
    same, restarted = (sum(bool(run[what]) for run in killed) for what in ("same", "restarted"))
    sizes = " and ".join(str(n) for n in sorted({run["processes"] for run in killed}))
    done = f"One of {sizes} processes that train together was killed at a random moment, {len(killed)} times"
    ended = f"{same} of {len(killed)} ended with the bytes of a group that nobody disturbed"
    return [f"{done}: {restarted} groups were started again, {ended}."]
