"""Training on several devices and processes: the rows of a batch are spread over a mesh, parameters are on all.

Every device runs the step on its own rows and adds up with the others what a step sums over rows. Random numbers are
drawn for the whole batch, so results do not depend on the number of devices or processes, only on that of shards.
"""

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "rows"
ROWS, SAME = PartitionSpec(AXIS), PartitionSpec()


@dataclass(frozen=True)
class RowShards:
    """A table's rows in `n_shards` ranges of equal length, one more or less; every device trains on equally many."""

    n_rows: int
    n_shards: int = 1
    mesh: Mesh | None = None  # None: the default device of this process has all shards

    def __post_init__(self) -> None:
        if not 1 <= self.n_shards <= self.n_rows:
            finding = f"n_shards={self.n_shards} for a table of {self.n_rows} rows"
            raise ValueError(f"{finding}; it must be at least 1 and at most the number of rows")

    @property
    def own(self) -> range:
        """The shards of this process."""
        if self.mesh is None:
            return range(self.n_shards)
        places = [n for n, device in enumerate(self.mesh.devices) if device.process_index == jax.process_index()]
        per_device = self.n_shards // self.mesh.size
        return range(places[0] * per_device, (places[-1] + 1) * per_device)

    @property
    def own_rows(self) -> slice:
        """The rows of this process."""
        return slice(self.rows_of(self.own[0]).start, self.rows_of(self.own[-1]).stop)

    def rows_of(self, shard: int) -> range:
        """The rows of one shard."""
        return range(shard * self.n_rows // self.n_shards, (shard + 1) * self.n_rows // self.n_shards)


def join_processes(coordinator: str, n_processes: int, process: int) -> None:
    """Make this process one of several that train together; before anything is computed.

    They are connected at once: gloo waits for 30 seconds only, and one process may compile for longer than another.
    """
    before = _unnamed_threads()
    jax.distributed.initialize(coordinator, n_processes, process)
    wait_for_processes()
    _let_threads_wait(_unnamed_threads() - before)


def _unnamed_threads() -> set[int]:
    """Threads of this process that have its name, as gloo's do; XLA's have names of their own. Linux only."""
    own = Path("/proc/self/task")
    with suppress(OSError):
        name = (own / str(threading.get_native_id()) / "comm").read_text()
        return {int(task.name) for task in own.iterdir() if (task / "comm").read_text() == name}
    return set()


def _let_threads_wait(threads: set[int]) -> None:
    """These threads no longer interrupt others when they wake.

    gloo's thread wakes when a message comes, and spins if the thread that it interrupts holds the connection's lock:
    where all cores are busy, both wait for the scheduler's next tick, 4 ms for what takes 0.1.
    """
    for thread in threads:
        with suppress(OSError, AttributeError):  # it has ended, or this is not Linux
            os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def wait_for_processes() -> None:
    """Until all are here."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("plurigp")


def row_shards(n_rows: int, n_shards: int, platform: str | None = None) -> RowShards:
    """Shards on as many devices as divide them; where there are several processes, on all of theirs."""
    devices = jax.devices(platform)
    if jax.process_count() > 1 and n_shards % len(devices):
        finding = f"n_shards={n_shards} cannot be spread evenly over the {len(devices)} devices of all processes"
        raise ValueError(f"{finding}; give a multiple of {len(devices)}")
    used = max(n for n in range(1, min(n_shards, len(devices)) + 1) if n_shards % n == 0)
    return RowShards(n_rows, n_shards, Mesh(np.array(devices[:used]), (AXIS,)) if used > 1 else None)


def spread_rows(mesh: Mesh | None, tree: Any) -> Any:
    """Arrays whose first axis is this process's rows of a batch, as one batch on all devices."""
    return tree if mesh is None else _placed(NamedSharding(mesh, ROWS), tree)


def on_every_device(mesh: Mesh | None, tree: Any) -> Any:
    """The same arrays on all devices; every process has to give the same."""
    return tree if mesh is None else _placed(NamedSharding(mesh, SAME), tree)


def shapes_on_every_device(mesh: Mesh | None, shapes: Any) -> Any:
    """The shapes of arrays that will be on all devices, for compilation ahead of time."""
    if mesh is None:
        return shapes
    everywhere = NamedSharding(mesh, SAME)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere), shapes)


def _placed(sharding: NamedSharding, tree: Any) -> Any:
    return jax.tree.map(lambda leaf: _as_global(sharding, np.asarray(leaf)), tree)


def _as_global(sharding: NamedSharding, local: np.ndarray) -> jax.Array:
    """One array on all devices from this process's part of it. The usual case, one device, in a third of JAX's time,
    which would be a twentieth of a step."""
    here = sharding.addressable_devices
    if len(here) > 1:
        return jax.make_array_from_process_local_data(sharding, local)
    rows = sharding.mesh.size if sharding.spec == ROWS else 1
    shape = (rows * local.shape[0], *local.shape[1:]) if local.ndim else ()
    return jax.make_array_from_single_device_arrays(shape, sharding, [jax.device_put(local, *here)])


# --- inside a compiled step ---


def on_own_rows(mesh: Mesh | None, step: Callable[..., Any], by_argument: Any) -> Callable[..., Any]:
    """The step on every device with its own rows of what is ROWS; all else, and what it returns, is the same on all."""
    if mesh is None:
        return step
    return jax.shard_map(step, mesh=mesh, in_specs=by_argument, out_specs=SAME, check_vma=False)


def n_devices(mesh: Mesh | None) -> int:
    """Devices that share the rows of a batch."""
    return 1 if mesh is None else mesh.size


def total(mesh: Mesh | None, tree: Any) -> Any:
    """Sums over this device's rows -> over all rows. As one vector: gloo sends every array by itself."""
    if mesh is None:
        return tree
    flat, as_tree = ravel_pytree(tree)
    return as_tree(jax.lax.psum(flat, AXIS))


def drawn_for_own_rows(
    mesh: Mesh | None, draw: Callable[[tuple[int, ...]], Any], shape: tuple[int, ...], axis: int
) -> Any:
    """Random numbers of such a shape, rows along `axis`: of those drawn for the whole batch, this device's."""
    if mesh is None:
        return draw(shape)
    n = shape[axis]
    whole = draw((*shape[:axis], n * mesh.size, *shape[axis + 1 :]))
    return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index(AXIS) * n, n, axis)


def sum_over_processes(mesh: Mesh | None, counts: np.ndarray) -> np.ndarray:
    """Of counts that each process has for its own rows."""
    if mesh is None or jax.process_count() == 1:
        return counts
    return np.asarray(multihost_utils.process_allgather(counts)).sum(0)


def together(hexdigest: str) -> str:
    """One digest of those that each process has of its own rows."""
    if jax.process_count() == 1:
        return hexdigest
    own = np.frombuffer(bytes.fromhex(hexdigest), np.uint8)
    return hashlib.sha256(np.asarray(multihost_utils.process_allgather(own)).tobytes()).hexdigest()
