"""The rules of the house (CONTRIBUTING.md), held by reading the source: nothing is imported and nothing is run."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, takewhile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "plurigp"
FILES = sorted(PACKAGE.rglob("*.py"))

MAX_ENTRIES = 14  # of the package's folder
MAX_LAYERS = 12
MAX_FILE_LINES = 350
LONG_FILE = {"estimator/pluri_gp.py": 550}  # every parameter and every answer of the one estimator, named in one class
MAX_FUNCTION_LINES = 45
LONG_FUNCTION = re.compile(r"#\s*long:\s*\S")  # "# long: <reason>" on the line of `def` or the line above it
MIN_RUN = 6  # lines that make two places duplicates

# Names that start with an underscore and are documented all the same: NamedTuple's, and os._exit.
PUBLIC_UNDERSCORES = {"_replace", "_asdict", "_fields", "_make", "_field_defaults", "_exit"}
# Declared boilerplate: the entries of the two registries look alike because they are tables.
REGISTRY_ENTRIES = {"Kind", "Likelihood"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def none(offenders: Iterable[str]) -> None:
    """Fails with the list of all offenders, one per line."""
    listed = sorted(offenders)
    assert not listed, "\n" + "\n".join(listed)


# --- sizes ---


def test_the_package_folder_fits_on_one_screen():
    entries = sorted(path.name for path in PACKAGE.iterdir() if path.name != "__pycache__")
    assert len(entries) <= MAX_ENTRIES, entries


def longest(path: Path) -> int:
    return LONG_FILE.get(path.relative_to(PACKAGE).as_posix(), MAX_FILE_LINES)


def test_files_are_short():
    sizes = {path: len(path.read_text().splitlines()) for path in FILES}
    none(f"{path.relative_to(ROOT)}: {n} lines" for path, n in sizes.items() if n > longest(path))


def long_functions(path: Path) -> Iterator[str]:
    lines = path.read_text().splitlines()
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        n = node.end_lineno - node.lineno + 1
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        beside = [lines[node.lineno - 1], lines[node.lineno - 2], lines[max(first - 2, 0)]]
        if n > MAX_FUNCTION_LINES and not any(LONG_FUNCTION.search(line) for line in beside):
            yield f"{place(path, node.lineno)} {node.name}: {n} lines"


def test_functions_are_short_or_say_why_not():
    """`# long: <reason>` on the line of `def`, or on the line above it or above its decorators."""
    none(offender for path in FILES for offender in long_functions(path))


# --- names ---


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC_UNDERSCORES and name != "_"


def private_accesses(path: Path) -> Iterator[str]:
    """Private names taken from another module, and private attributes of anything that this file did not define.

    A module may reach into instances of its own classes: an attribute that some class of this file defines
    (a method, an annotated field, or an assignment to `self._x`) is its own.
    """
    own = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    own.add(inner.name)
                elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    own.add(inner.attr)
                elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    own.add(inner.id)
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if is_private(alias.name) or any(is_private(part) for part in (node.module or "").split(".")):
                    yield f"{place(path, node.lineno)} from {node.module} import {alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if any(is_private(part) for part in alias.name.split(".")):
                    yield f"{place(path, node.lineno)} import {alias.name}"
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value
            mine = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
            if not mine and node.attr not in own:
                yield f"{place(path, node.lineno)} {ast.unparse(node)}"


def test_no_private_name_of_another_module_is_used():
    none(offender for path in FILES for offender in private_accesses(path))


def test_a_public_class_or_function_has_a_name_of_its_own():
    """So that a search for a name finds one thing."""
    homes = defaultdict(list)
    for path in FILES:
        for node in tree(path).body:
            named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if named and not node.name.startswith("_"):
                homes[node.name].append(place(path, node.lineno))
    none(f"{name}: {', '.join(places)}" for name, places in homes.items() if len(places) > 1)


# --- repetition ---

THIN = re.compile(r"""[\s()\[\]{},:;'"]*""")  # brackets and quotes alone


def boilerplate_lines(path: Path) -> set[int]:
    """Imports, and the entries of registries."""
    nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
    calls = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    nodes += [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in REGISTRY_ENTRIES]
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}


def telling_lines(path: Path) -> list[tuple[int, str]]:
    """(number, text with folded white space) of every line but boilerplate, comments, blanks and lone brackets."""
    left_out = boilerplate_lines(path)
    lines = [(n, " ".join(line.split())) for n, line in enumerate(path.read_text().splitlines(), 1)]
    return [(n, text) for n, text in lines if n not in left_out and text[:1] != "#" and not THIN.fullmatch(text)]


def repeated_runs(paths: Iterable[Path], n_lines: int = MIN_RUN) -> Iterator[str]:
    """Every run of at least so many lines that stands in two places, named once."""
    sources = {path: telling_lines(path) for path in paths}
    windows = defaultdict(list)
    for path, lines in sources.items():
        for i in range(len(lines) - n_lines + 1):
            windows[tuple(text for _, text in lines[i : i + n_lines])].append((path, i))
    for (a, i), (b, j) in (pair for places in windows.values() for pair in combinations(places, 2)):
        first, second = sources[a], sources[b]
        begins = i == 0 or j == 0 or first[i - 1][1] != second[j - 1][1]
        if begins and (a != b or j - i >= n_lines):
            shared = takewhile(lambda pair: pair[0][1] == pair[1][1], zip(first[i:], second[j:], strict=False))
            yield f"{place(a, first[i][0])} ~ {place(b, second[j][0])}: {len(list(shared))} lines"


def test_no_run_of_lines_stands_twice():
    none(repeated_runs(FILES))


# --- layers ---


@cache
def layers() -> tuple[str, ...]:
    """From the top down, as in import-linter's contract."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (c for c in linter["contracts"] if c["type"] == "layers" and c["containers"] == ["plurigp"])
    assert contract["exhaustive"]
    return tuple(contract["layers"])


def test_few_layers():
    assert len(layers()) <= MAX_LAYERS


def listed_rooms(page: str) -> list[str]:
    """First column of the page's table of rooms."""
    table = re.search(r"^\| room .*\n\|[-|: ]+\|\n((?:\|.*\n)+)", (ROOT / page).read_text(), re.MULTILINE)
    assert table, f"{page} has no table of rooms"
    return [re.match(r"\| `([\w.]+)/?`", row)[1] for row in table[1].splitlines()]


def test_contributing_lists_the_layers_of_the_contract():
    assert listed_rooms("CONTRIBUTING.md") == list(layers())


def test_the_architecture_page_lists_the_layers_of_the_contract():
    assert listed_rooms("docs/architecture.md") == list(layers())


def test_the_architecture_page_names_files_that_exist():
    named = re.findall(r"`(\w+/[\w/]*\.py)`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(named) > 10
    none(name for name in named if not (PACKAGE / name).exists())


# --- safety ---

RUNS_DATA = {"eval", "exec", "compile", "__import__"}  # as plain calls
UNSAFE_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
UNSAFE_LOADS = {"joblib.load", "joblib.dump", "np.save", "numpy.save", "torch.load", "pd.read_pickle"}


def unsafe(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            modules += [f"{node.module}.{alias.name}" for alias in node.names if isinstance(node, ast.ImportFrom)]
            for module in modules:
                if module.split(".")[0] in UNSAFE_MODULES or module in UNSAFE_LOADS:
                    yield f"{place(path, node.lineno)} imports {module}"
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in RUNS_DATA or name in UNSAFE_LOADS or name.endswith(".to_pickle"):
                yield f"{place(path, node.lineno)} {name}(…)"
            if any(k.arg == "allow_pickle" and getattr(k.value, "value", True) for k in node.keywords):
                yield f"{place(path, node.lineno)} {name}(allow_pickle=…)"


def test_nothing_read_can_run():
    none(offender for path in FILES for offender in unsafe(path))


def own_compilations(path: Path) -> Iterator[str]:
    """`jax.jit` outside `inference/compiling.py`, whose `Program` makes results the same on any number of threads."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("jax.jit", "eqx.filter_jit"):
            yield f"{place(path, node.lineno)} {ast.unparse(node)}"


def test_all_programs_are_compiled_with_the_same_options():
    none(offender for path in FILES if path.name != "compiling.py" for offender in own_compilations(path))


# --- the rules themselves can fail ---


def written(tmp_path: Path, text: str, monkeypatch) -> Path:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(text)
    return path


def test_long_functions_are_found_and_a_reason_is_heard(tmp_path, monkeypatch):
    body = "".join(f"    a{i} = {i}\n" for i in range(45))
    text = f"def f():\n{body}\n\n# long: a table\ndef g():\n{body}\n\ndef h():  # long: a table\n{body}"
    path = written(tmp_path, text, monkeypatch)
    assert list(long_functions(path)) == ["module.py:1 f: 46 lines"]


def test_private_accesses_are_found(tmp_path, monkeypatch):
    text = (
        "import jax._src\nfrom a import _b, c\nfrom d._e import f\n"
        "class Own:\n    def _g(self, other: 'Own'):\n        return self._h, other._g, c._replace()\n"
        "def i(own, x):\n    return own._g, x._j, c.__name__\n"
    )
    path = written(tmp_path, text, monkeypatch)
    assert [offender.split(" ", 1)[1] for offender in private_accesses(path)] == [
        "import jax._src",
        "from a import _b",
        "from d._e import f",
        "x._j",
    ]


def test_repeated_lines_are_found(tmp_path, monkeypatch):
    run = "".join(f"    a{i} = b({i})\n" for i in range(7))
    path = written(tmp_path, f"def f():\n{run}\n\ndef g():\n    if 1:\n" + run.replace("    ", "        "), monkeypatch)
    assert list(repeated_runs([path])) == ["module.py:2 ~ module.py:13: 7 lines"]
    assert not list(repeated_runs([path], 8))


def test_own_compilations_are_found(tmp_path, monkeypatch):
    path = written(
        tmp_path, "@jax.jit\ndef f(x):\n    return x\n\ng = partial(jax.jit, static_argnames=('n',))\n", monkeypatch
    )
    assert len(list(own_compilations(path))) == 2


def test_what_could_run_data_is_found(tmp_path, monkeypatch):
    text = "import pickle\nfrom joblib import load\nx = eval('1')\ny = np.load(f, allow_pickle=True)\nre.compile('')\n"
    path = written(tmp_path, text, monkeypatch)
    assert [int(re.search(r":(\d+) ", offender)[1]) for offender in unsafe(path)] == [1, 2, 3, 4]
