"""Compiled programs are kept on disk, in the user's own folder, and JAX's settings are left as they were."""

import os
import stat

import jax
import jax.numpy as jnp
import pytest
from threadpoolctl import threadpool_info

from plurigp.core import threads
from plurigp.inference import compiling
from plurigp.inference.compiling import Program


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(compiling.CACHE_VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(compiling, "MIN_COMPILE_SECONDS", 0.0)
    return tmp_path / "kept"


def test_a_program_is_kept_and_the_settings_come_back(folder):
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    with compiling.jax_runtime():
        assert jnp.asarray(1.0).dtype == jnp.float64
        jax.jit(lambda x: jnp.sin(x) * 3.25 + 1)(jnp.arange(7.0)).block_until_ready()
    assert (jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs) == before
    assert jnp.asarray(1.0).dtype == jnp.float32
    kept = compiling.cache_folder()
    assert kept.parent == folder
    assert any(kept.iterdir())
    if os.name == "posix":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700


def test_an_empty_variable_switches_it_off(monkeypatch):
    monkeypatch.setenv(compiling.CACHE_VARIABLE, "")
    assert compiling.cache_folder() is None
    with compiling.jax_runtime():
        assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(compiling.CACHE_VARIABLE, str(tmp_path / "file"))
    assert compiling.cache_folder() is None


def test_the_users_own_cache_is_left_alone(folder, tmp_path, monkeypatch):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    try:
        with compiling.jax_runtime():
            assert jax.config.jax_compilation_cache_dir == str(tmp_path / "own")
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
    assert not folder.exists()


def test_settings_come_back_after_an_error(folder):
    with pytest.raises(RuntimeError, match="stop"), compiling.jax_runtime():
        raise RuntimeError("stop")
    assert jax.config.jax_compilation_cache_dir is None


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_thread_holds_until_the_last_one_leaves():
    """Whoever enters first may leave first; then the others still hold, and in the end all is as it was."""
    before = blas_threads()
    first, second = threads.single_blas_thread(), threads.single_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_compiled_work_has_one_blas_thread():
    with compiling.jax_runtime():
        assert set(blas_threads()) == {1}


def test_the_cache_keeps_the_programs_used_last_within_its_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("PLURIGP_CACHE", str(tmp_path))
    monkeypatch.setattr(compiling, "MAX_CACHE_BYTES", 250)
    folder = tmp_path / "jax-0-old"
    folder.mkdir()
    for age, name in enumerate(("new", "middle", "old")):
        (folder / name).write_bytes(b"x" * 100)
        os.utime(folder / name, (1e9 - age, 1e9 - age))
    compiling.cache_folder()
    assert sorted(path.name for path in folder.iterdir()) == ["middle", "new"]


def test_a_program_compiled_in_the_background_is_kept_when_the_caller_has_left(folder):
    jitted = jax.jit(lambda x: jnp.cos(x) * 2.75 - 1)
    compiling.compile_in_background((jitted, (jnp.arange(5.0),))).result()
    assert any(compiling.cache_folder().iterdir())
    assert jax.config.jax_compilation_cache_dir is None


def test_a_program_within_another_is_its_function():
    """XLA refuses options of its own to a program within a program, and within a gradient."""
    double = Program(lambda x: 2 * x)
    assert float(Program(lambda x: double(x) + 1)(3.0)) == 7
    assert float(jax.grad(lambda x: double(x) ** 2)(3.0)) == 24


@pytest.mark.parametrize(("limit", "times"), [(0, 1), (10**9, 0)])
def test_programs_are_forgotten_before_memory_maps_run_out(monkeypatch, limit, times):
    cleared = []
    monkeypatch.setattr(compiling, "MAX_MEMORY_MAPS", limit)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(1))
    compiling.forget_programs_in_time()
    assert len(cleared) == times
