"""The tools of the documentation site; the site itself is built by `make docs`."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def tool(name):
    """A module of tools/site, which is no package."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "tools" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tutorials():
    return tool("tutorials")


@pytest.fixture(scope="module")
def check_site():
    return tool("check_site")


def page(folder, text):
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_blocks_of_a_tutorial_share_names_and_show_what_they_print(tutorials, tmp_path):
    text = "# T\n\n```python\na = 2\n```\n\nThen:\n\n```python\nprint(a + 1)\n```\n\n```sh\nplurigp --version\n```\n"
    done = tutorials.run_page(page(tmp_path, text), tmp_path / "out")
    assert "```text\n3\n```" in done.markdown
    assert "```text\nplurigp " in done.markdown
    assert done.markdown.count("```text") == 2


def test_files_that_a_tutorial_links_to_are_in_its_folder(tutorials, tmp_path):
    (tmp_path / "few.toml").write_text("a = 1")
    text = "See [few](few.toml).\n\n```python\nfrom pathlib import Path\nprint(Path('few.toml').read_text())\n```\n"
    assert "```text\na = 1\n```" in tutorials.run_page(page(tmp_path, text), tmp_path / "out").markdown


@pytest.mark.parametrize(("block", "error"), [("python\n1 / 0", ZeroDivisionError), ("sh\nfalse", RuntimeError)])
def test_a_block_that_fails_stops_the_site(tutorials, tmp_path, block, error):
    with pytest.raises(error):
        tutorials.run_page(page(tmp_path, f"```{block}\n```\n"), tmp_path / "out")


def test_a_result_is_kept_until_the_page_changes(tutorials, tmp_path, monkeypatch):
    monkeypatch.setattr(tutorials, "CACHE", tmp_path / "cache")
    source = page(tmp_path, "```python\nimport time\nprint(time.time_ns())\n```\n")
    first = tutorials.executed(source)
    assert tutorials.executed(source) == first
    source.write_text(source.read_text() + "\nMore.\n")
    assert tutorials.executed(source).markdown != first.markdown
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_broken_links_and_fetches_are_found(check_site, tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="#top">x</a><a href="b.html#no">x</a><a href="c.html">x</a>'
        '<a href="https://example.org">x</a><script src="https://cdn.example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<link rel="stylesheet" href="s.css"><img src="a.html">')
    (tmp_path / "s.css").write_text("body { background: url(https://example.org/x.png) }")
    assert sorted(check_site.offenders(tmp_path)) == [
        "a.html fetches https://cdn.example.org/x.js",
        "a.html: b.html#no has no such anchor",
        "a.html: c.html leads nowhere",
        "s.css fetches from a network",
    ]


def test_formulas_are_rendered_and_other_blocks_are_left_alone():
    formulas = pytest.importorskip("latex2mathml.converter") and tool("formulas")
    text = "```math\na_p = b\n```\n\n```python\nx = 1\n```\n"
    shown = formulas.with_formulas(text)
    assert "<math" in shown
    assert "```python\nx = 1\n```" in shown


def test_every_package_of_the_reference_has_a_page_with_all_its_names():
    pages = tool("reference").reference_pages()
    assert "::: plurigp.estimator.pluri_gp.PluriGP" in pages["plurigp"]
    assert "```pycon\n>>> " in pages["datasets"]
    assert pages["datasets"].count(":::") == 12


def test_docstrings_are_read_as_they_are_meant():
    reading = tool("reference").reading
    heading, examples = "Parameters\n----------\n", "\n\nExamples\n--------\n>>> a < b"
    given = f"Fills.\n\n{heading}levels : what fills:\n    one or two.\na, b : more.\n\nThe model is `m_`: ask."
    meant = f"Fills.\n\nThe model is `m_`: ask.\n\n{heading}levels\n    what fills:\n    one or two.\na, b\n    more."
    assert reading(given) == meant
    assert reading(given + examples) == meant + examples
    assert reading("Settings.\n\na, b : one\n    more.\nc : two.") == "Settings.\n\n- `a`, `b`: one more.\n- `c`: two."
    assert reading("Note: this\nis text, `<x>` and _<name>.") == "Note: this\nis text, `<x>` and _&lt;name>."


def test_the_names_of_parameters_in_docstrings_are_those_of_the_signature():
    """Griffe would say so, but only when the site is built."""
    import plurigp

    for public in (getattr(plurigp, name) for name in plurigp.__all__):
        text = tool("reference").reading(inspect.getdoc(public) or "").partition("Parameters\n----------\n")[2]
        given = {name for line in re.findall(r"^\w.*$", text.partition("\n\n")[0], re.M) for name in line.split(", ")}
        assert not given or given <= set(inspect.signature(public).parameters), public


def test_the_command_line_page_has_every_verb():
    text = tool("reference").command_line_page()
    assert all(f"## plurigp {verb}\n" in text for verb in ("check", "fit", "impute", "study", "explore", "cohort"))


def test_every_page_is_in_the_navigation():
    """By a line in mkdocs.yml, or by a name that the hook puts into its section."""
    nav = (ROOT / "mkdocs.yml").read_text()
    pages = [path for path in DOCS.rglob("*.md") if not path.match("how-to-*.md") and not path.match("trust*.md")]
    missing = [str(path.relative_to(DOCS)) for path in pages if f": {path.relative_to(DOCS)}\n" not in nav]
    assert not missing, f"add to nav in mkdocs.yml: {', '.join(missing)}"
