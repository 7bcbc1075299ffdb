"""Small made-up sources with the API names the probes are placed by, in the order and number of the real kernel's."""

from simfa.instrument.rules import EPILOGUE, KERNEL, MAINLOOP

_QUERY_EMPTY = "static_cast<uint32_t>(FwdNamedBarriers::QueryEmpty) /*id*/"
_TURN = "static_cast<uint32_t>(FwdNamedBarriers::WarpSchedulerWG1)"


def _gemm(operand: str, state: str) -> str:
    return f"flash::gemm</*zero=*/true, -1>(tiled_mma_{operand}, a, b(_, _, _, {state}.index()), c);"


def _release(count: int, ring: str, state: str = "smem_pipe_read") -> str:
    return f"warpgroup_wait<{count}>();\n  pipeline_{ring}.consumer_release({state});"


def mainloop() -> str:
    """Return the main loop: load, barriers, init, mma with and without overlap, and what follows it."""
    wait_k = "consumer_wait(pipeline_k, smem_pipe_read);"
    wait_v = "consumer_wait(pipeline_v, smem_pipe_read);"
    softmax = "softmax.template online_softmax<false>(s);"
    wait_q = "barrier_Q.wait(work_idx % 2);"
    arrive_q = f"cutlass::arch::NamedBarrier::arrive(threads, {_QUERY_EMPTY});"
    return f"""\
// Made up for the tests of the patcher.
#pragma once
#include "named_barrier.hpp"
struct CollectiveMainloopFwdSm90 {{
void load(Params const& params, Pipe pipeline_k) {{
  auto load_K = [&](int n_block, auto const& smem_pipe_write) {{
    pipeline_k.producer_acquire(smem_pipe_write);
    copy(params.tma_load_K.with(bar), g, s);
  }};
  auto load_V = [&](int n_block, auto const& smem_pipe_write) {{
    pipeline_v_load.producer_acquire(smem_pipe_write);
    copy(params.tma_load_V.with(bar), g, s);
  }};
  cutlass::arch::NamedBarrier::sync(threads, {_QUERY_EMPTY});
  copy(params.tma_load_Q.with(bar), g, s);
  cutlass::arch::NamedBarrier::sync(more, {_QUERY_EMPTY});
  // A comment with barrier_O.wait( inside; must not count.
  shared_storage.pipelines.barrier_O.wait((work_idx + 1) % 2);
}}
void load_tail(MainloopPipelineK pipeline_k) {{ barrier_O.wait(1); }}
void warp_scheduler_barrier_sync() {{
  cutlass::arch::NamedBarrier::sync(2 * 128, {_TURN} - 1 + me /*id*/);
}}
void warp_scheduler_barrier_arrive() {{
  cutlass::arch::NamedBarrier::arrive(2 * 128, {_TURN} + next /*id*/);
}}
void mma_init() {{
  {arrive_q}
  cutlass::arch::NamedBarrier::arrive(threads, static_cast<uint32_t>(FwdNamedBarriers::PEmpty));
  if (first) {{ cutlass::arch::NamedBarrier::arrive(2 * 128, {_TURN} /*id*/); }}
}}
bool mma(Params const& params, Pipe pipeline_k) {{
  {wait_q} {wait_q} {wait_q} {wait_q}
  {wait_k}
  {_gemm("qk", "smem_pipe_read")}
  {_release(0, "k")}
  {{ {wait_v} }}
  {softmax}
  auto fwd_step = [&](int const n_block) {{
    if (wg == 0) {{ {wait_k} }}
    {_gemm("qk", "smem_pipe_read")}
    if (wg == 0) {{ consumer_wait(pipeline_v, smem_pipe_read_v); }}
    {_gemm("pv", "smem_pipe_read_v")}
    {_release(1, "k")}
    {_release(0, "v", "smem_pipe_read_v")}
    {wait_v}
    {softmax}
    {_release(0, "v", "smem_pipe_read_v")}
  }};
  {arrive_q}
  {wait_v}
  {_gemm("pv", "smem_pipe_read")}
  {_release(0, "v")}
  auto plain_step = [&](int const n_block) {{
    {wait_k}
    {_gemm("qk", "smem_pipe_read")}
    {_release(0, "k")}
    {wait_v}
    {_release(1, "k")}
    warpgroup_wait<0>();
    {softmax}
    {wait_v}
    {_gemm("pv", "smem_pipe_read")}
    {_gemm("pv_rs", "smem_pipe_read")}
    {_release(0, "v")}
  }};
  {arrive_q}
}}
bool mma_pv(Params const& params, Pipe pipeline_v) {{ {_gemm("pv", "smem_pipe_read")} }}
}};
"""


def kernel() -> str:
    """Return the kernel: two loops over tiles and the call of the epilogue."""
    tile = "auto block_coord = work_tile_info.get_block_coord(params.scheduler);"
    return f"""\
#pragma once
void run() {{
  {{ {tile} }}
  {{
    {tile}
    epilogue.store(params.epilogue, o);
  }}
}}
"""


def epilogue() -> str:
    """Return the epilogue's store."""
    return """\
#pragma once
void store(Params const& params, Tensor& o) {
  if (elected) {
    cute::copy(params.tma_store_O, a, b);
    tma_store_wait<0>();
  }
}
void store_tail() {}
"""


def sources() -> dict[str, str]:
    """Return all three files by name."""
    return {MAINLOOP: mainloop(), KERNEL: kernel(), EPILOGUE: epilogue()}
