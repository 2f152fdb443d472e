"""Build wheel and sdist, check both, install the wheel alone in an empty environment, and use it there.

    python tools/release_check.py                      # the newest versions of all dependencies
    python tools/release_check.py --lowest             # the lowest allowed ones, constraints/lowest.txt
    python tools/release_check.py --python python3.13  # another interpreter
    python tools/release_check.py --lowest --tests tests/data tests/likelihoods tests/estimator  # and tests, with these

Prints every step, how many packages were installed and how many megabytes they take, and ends with an error where a
step fails or there are more than 45 packages. Needs pip install build twine check-wheel-contents.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOWEST = ROOT / "constraints" / "lowest.txt"
MAX_PACKAGES = 45  # of the core, plurigp counted, pip not
STEPS = (  # each in a folder with patients.csv
    "plurigp --version",
    "plurigp check patients.csv --write schema.toml",
    "plurigp fit patients.csv --schema schema.toml --epochs 5 --out model",
    "plurigp impute model patients.csv --out filled.csv",
    "plurigp study patients.csv --schema schema.toml --components 2 --refits 2 --epochs 5 --jobs 1 --out run",
)
WRITTEN = ("schema.toml", "model", "filled.csv", "run/report.html", "run/explorer.html")
TEST_TOOLS = ("pytest==8.4.*", "pytest-timeout", "pytest-xdist", "hypothesis")
TEST_EXTRAS = "parquet,polars,excel,spss"
# the house's options without jaxtyping's hook, which its oldest allowed version lacks
TEST_OPTIONS = ("-o", "addopts=--import-mode=importlib --strict-markers", "-m", "not slow and not trust", "-q")
MAKE_TABLE = (
    "from plurigp.datasets import simulate_cohort; "
    "simulate_cohort(120, 2, 3, 3, 1, random_state=0).table.to_csv('patients.csv', index=False)"
)


def run(*command: str | Path, folder: Path | None = None, path: Path | None = None) -> str:
    """Run, say how long it took, and give what it printed; a failure ends everything with its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path is not None:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    began = time.perf_counter()
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True)
    shown = " ".join(str(part) for part in command)[:110]
    print(f"{time.perf_counter() - began:6.1f} s  {shown}", flush=True)
    if done.returncode:
        sys.exit(f"failed with {done.returncode}: {shown}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def build(out: Path) -> Path:
    """Wheel and sdist, checked; the wheel."""
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    files = sorted(out.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    (wheel,) = out.glob("*.whl")
    (sdist,) = out.glob("*.tar.gz")
    run(Path(sys.executable).with_name("check-wheel-contents"), wheel)
    check_sdist(sdist)
    for file in files:
        print(f"          {file.name}: {file.stat().st_size / 1e6:.2f} MB")
    return wheel


def check_sdist(sdist: Path) -> None:
    """What a packager needs is in it."""
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    needed = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "src/plurigp/py.typed"}
    if missing := needed - names:
        sys.exit(f"{sdist.name} lacks {', '.join(sorted(missing))}")


def install(wheel: Path, folder: Path, python: str, lowest: bool) -> Path:
    """The wheel alone in a new environment; the folder of its commands."""
    run(python, "-m", "venv", folder)
    commands = folder / "bin"
    pip = [commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, *(["--constraint", LOWEST] if lowest else []), wheel)
    run(commands / "python", "-m", "pip", "check")
    return commands


def use(commands: Path, folder: Path) -> None:
    """Check, fit, impute and study a small table from the command line; typed and importable from anywhere."""
    run(commands / "python", "-c", MAKE_TABLE, folder=folder)
    for step in STEPS:
        run(*step.split(), folder=folder, path=commands)
    if missing := [name for name in WRITTEN if not (folder / name).exists()]:
        sys.exit(f"not written: {', '.join(missing)}")


def run_tests(commands: Path, wheel: Path, lowest: bool, tests: list[Path]) -> None:
    """Tests of this checkout on what is installed, the library at the same versions."""
    pip = [commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, *(["--constraint", LOWEST] if lowest else []), f"{wheel}[{TEST_EXTRAS}]", *TEST_TOOLS)
    print(run(commands / "python", "-m", "pytest", *TEST_OPTIONS, *tests, folder=ROOT).splitlines()[-1])


def measure(commands: Path) -> tuple[int, float]:
    """Packages installed, without pip and setuptools, and the megabytes of all their files."""
    listed = run(commands / "python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check")
    names = [line.split("==")[0] for line in listed.splitlines()]
    site = next((commands.parent / "lib").glob("python*/site-packages"))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and "/pip" not in str(path))
    return len([name for name in names if name not in ("pip", "setuptools")]), size / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lowest", action="store_true", help="install the versions in constraints/lowest.txt")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the empty environment")
    parser.add_argument("--dist", type=Path, help="keep wheel and sdist in this folder")
    parser.add_argument("--tests", type=Path, nargs="+", default=[], help="tests to run with what was installed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wheel = build(place / "dist")
        commands = install(wheel, place / "venv", asked.python, asked.lowest)
        (place / "work").mkdir()
        use(commands, place / "work")
        packages, size = measure(commands)
        if asked.tests:
            run_tests(commands, wheel, asked.lowest, asked.tests)
        if asked.dist:
            shutil.copytree(place / "dist", asked.dist, dirs_exist_ok=True)
    version = subprocess.run([asked.python, "-V"], capture_output=True, text=True).stdout.strip()
    print(f"{version}: {packages} packages, {size:.0f} MB ({'lowest' if asked.lowest else 'newest'} versions)")
    if packages > MAX_PACKAGES:
        sys.exit(f"{packages} packages are more than {MAX_PACKAGES}; drop a dependency")


if __name__ == "__main__":
    main()
