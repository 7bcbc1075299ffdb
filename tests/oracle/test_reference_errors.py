"""What the reference engine refuses, and what it says about a kernel that hangs."""

import msgspec
import pytest

from simfa.errors import SimulationError
from simfa.simulate.reference import simulate
from tests.oracle.hand import (
    acquire,
    arrive,
    await_barrier,
    await_fill,
    bare,
    bulk,
    load,
    nothing,
    release,
    ring,
    run,
    store,
    store_commit,
    tensor_map,
    trace_of,
    wgmma,
    wgmma_commit,
    work,
)


def _message(trace, hardware=None, latency=20, **options):
    with pytest.raises(SimulationError) as caught:
        simulate(trace, hardware or bare(), memory_latency_cycles=latency, **options)
    return str(caught.value)


def test_a_hang_names_role_cta_program_instruction_and_fill():
    message = _message(trace_of([acquire(0), bulk(0, 96)], [nothing(), await_fill(0)], ctas=2))
    assert message == (
        "the kernel hangs at cycle 22:\n"
        "  CTA 0 role 1, program role1 instruction 1 (MB_WAIT) waits for ring K stage 0 round 0 (fill 0) to be full: "
        "96 of 128 bytes, acquired\n"
        "  CTA 1 role 1, program role1 instruction 1 (MB_WAIT) waits for ring K stage 0 round 0 (fill 0) to be full: "
        "96 of 128 bytes, acquired"
    )


def test_a_hang_tells_a_fill_that_nobody_acquired():
    message = _message(trace_of([bulk(0)], [await_fill(0)]))
    assert "128 of 128 bytes, never acquired" in message


def test_a_hang_names_stage_and_round_that_were_not_released():
    message = _message(trace_of([acquire(3), nothing()], [release(1)], rings=(ring(stages=2, releases=2),)))
    assert (
        "CTA 0 role 0, program role0 instruction 0 (ACQUIRE_STAGE) waits for ring K stage 1 round 1 (fill 3) to be "
        "released: 1 of 2 arrivals" in message
    )


def test_a_hang_names_the_barrier():
    message = _message(trace_of([arrive(4)], [await_barrier(4, arrivals=2)]))
    assert "CTA 0 role 1, program role1 instruction 0 (BAR_WAIT) waits for named barrier 4: 1 of 2 signals" in message


def test_a_run_beyond_max_cycles_is_an_error():
    trace = trace_of([work(51), nothing()], [nothing()])
    assert run(trace).cycles == 52
    assert simulate(trace, bare(), memory_latency_cycles=20, max_cycles=52).cycles == 52
    message = _message(trace, max_cycles=50)
    assert "is not over at cycle 50" in message
    assert "CTA 0 role 0, program role0 instruction 1 (BUBBLES) is ready at cycle 51" in message
    assert "role 1" not in message


def test_too_many_bytes_for_a_fill_are_an_error():
    message = _message(trace_of([acquire(0), bulk(0, 100), bulk(0, 100)]))
    assert message == "ring K fill 0 received 200 bytes; a fill has 128"


@pytest.mark.parametrize("body", [[wgmma(1)], [wgmma_commit(1)], [store(1)], [store_commit(2)]])
def test_a_group_id_out_of_order_is_an_error(body):
    assert "the role's next commit in this tile is 0" in _message(trace_of(body))


def test_memory_needs_a_latency():
    assert "expected at least 1" in _message(trace_of([nothing()]), latency=0)


def test_ctas_must_fit():
    assert "134 CTAs do not fit on 132 SMs" in _message(trace_of([nothing()], ctas=134))


def test_clusters_must_be_whole():
    assert "3 CTAs are not whole clusters of 2" in _message(trace_of([nothing()], ctas=3, cluster=2))


def test_dynamic_clusters_are_not_defined():
    assert "not defined for clusters" in _message(trace_of([nothing()], ctas=2, cluster=2, queue=2))


def test_the_schedule_needs_a_list_for_each_cta():
    trace = trace_of([nothing()], ctas=2)
    schedule = msgspec.structs.replace(trace.schedule, tiles=trace.schedule.tiles[:1])
    assert "1 tile lists; expected 2" in _message(msgspec.structs.replace(trace, schedule=schedule))


def test_undeclared_names_are_errors():
    assert "names ring Z" in _message(trace_of([acquire(0, name="Z")]))
    assert "names map Z" in _message(trace_of([load(0, "Z")]))
    trace = trace_of([nothing()])
    assert "names program prologue" in _message(msgspec.structs.replace(trace, prologue=("prologue",)))
    kinds = (msgspec.structs.replace(trace.tile_kinds[0], programs=("nowhere",)),)
    assert "names program nowhere" in _message(msgspec.structs.replace(trace, tile_kinds=kinds))
    kinds = (msgspec.structs.replace(trace.tile_kinds[0], programs=()),)
    assert "has 0 programs; expected 1" in _message(msgspec.structs.replace(trace, tile_kinds=kinds))


def test_maps_of_tiles_need_a_tile():
    maps = (tensor_map(origin="kv"),)
    assert "no shape and kernel" in _message(trace_of([load(0)], maps=maps))
    assert "a prologue has no tile" in _message(trace_of([nothing()], maps=maps, prologue=([store()],)))


def test_multicast_needs_rows():
    maps = (tensor_map(dims=(64,), strides=(), box=(64,)),)
    assert "its rank is 1" in _message(trace_of([load(0, multicast=True)], maps=maps))
