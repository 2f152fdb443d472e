"""No compiled program holds a batched LAPACK call: two of them at once can wait for each other for ever (gp/linalg)."""

import re

import jax
import numpy as np
import pytest

from plurigp import PluriGP
from plurigp.datasets import simulate
from plurigp.inference.compiling import compile_in_background, jax_runtime
from plurigp.inference.gp.linalg import inverse_root

CALL = re.compile(r"custom_call @(lapack_\w+)\(.*?\) *(?:\{.*?\})? *: \((.*?)\) ->")
TENSOR = re.compile(r"tensor<((?:\d+x)*)\w+>")


def lapack_calls(text):
    """(name, rank of its first operand) of every LAPACK call in a lowered program."""
    for line in text.splitlines():
        if "custom_call @lapack" in line:
            name, operands = CALL.search(line).groups()
            yield name, TENSOR.search(operands)[1].count("x")


@pytest.fixture
def programs(tmp_path):
    """Runs something from a clean slate and hands over the text of every program that was lowered for it."""

    def lowered(call):
        jax.clear_caches()
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        jax.config.update("jax_dump_ir_to", str(folder))
        try:
            call()
        finally:
            jax.config.update("jax_dump_ir_to", None)
            jax.clear_caches()
        return [path.read_text() for path in sorted(folder.glob("*.mlir"))]

    return lowered


def test_a_batched_call_would_be_seen(programs):
    """The test itself can fail."""

    def batched():
        with jax_runtime():
            jax.jit(jax.lax.linalg.cholesky)(jax.numpy.tile(jax.numpy.eye(4), (3, 1, 1))).block_until_ready()

    assert [call for text in programs(batched) for call in lapack_calls(text)] == [("lapack_dpotrf_ffi", 3)]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="default"),
        pytest.param({"optimizer": "adam", "encoder": "masked"}, id="adam"),
        pytest.param({"encoder": "free"}, id="free", marks=pytest.mark.slow),
        pytest.param({"refine": True, "kernel": "linear+rbf"}, id="refined", marks=pytest.mark.slow),
    ],
)
def test_no_program_holds_a_batched_lapack_call(programs, settings):
    sim = simulate(200, 3, {"gaussian": 2, "bernoulli": 1, "categorical": 1}, missing=0.1, random_state=0)

    def everything():
        model = PluriGP(3, schema=sim.schema, n_inducing=7, max_epochs=2, random_state=0, **settings).fit(sim.table)
        few = sim.table[:20]
        model.transform(few)
        model.impute(few)
        model.describe_gaps(few, n_draws=3)
        model.impute_draws(few, n_draws=2, random_state=0)
        model.score_samples(few)
        model.score_cells(few, sim.truth[:20])
        model.score_reconstruction(few)
        model.sample(5, random_state=0)
        model.inverse_transform(sim.x[:4])

    texts = programs(everything)
    calls = [call for text in texts for call in lapack_calls(text)]
    assert calls  # the single ones: k(Z, Z) and one function's Λ at a time
    assert {name for name, rank in calls if rank > 2} == set()
    names = " ".join(re.findall(r"module @(\w+)", "\n".join(texts)))
    for part in ("_compiled_step", "_encode", "_points", "_weighted_draws", "_densities", "_cells", "_moments_at"):
        assert part in names or (part == "_encode" and settings.get("encoder") == "free")


def test_a_compilation_executes_nothing_and_serves_the_call(monkeypatch):
    """Shapes are enough, and the call that follows finds the program."""
    jitted = jax.jit(lambda Lam: inverse_root(Lam))
    with jax_runtime():
        done = compile_in_background((jitted, (jax.ShapeDtypeStruct((3, 4, 4), "float64"),)))
        done.result()
        assert done.done()
        with monkeypatch.context() as patch:
            patch.setattr(jax._src.compiler, "compile_or_get_cached", _not_again)
            root = jitted(np.tile(4 * np.eye(4), (3, 1, 1)))
    assert np.asarray(root[0])[0, 0, 0] == pytest.approx(0.5)


def _not_again(*_, **__):
    raise AssertionError("compiled a second time")


def test_an_error_of_a_compilation_is_raised_where_it_is_waited_for():
    failing = compile_in_background((jax.jit(lambda x: x @ x), (jax.ShapeDtypeStruct((3, 4), "float64"),)))
    with pytest.raises(TypeError):
        failing.result()
