// C interface to single instantiations of the FA3 forward kernel: raw device pointers in, error codes out.
//
// `simfa_kernels.inc` is written by the build and holds one line SIMFA_KERNEL(head_dim, element, causal, cluster) for
// each instantiation asked for. SIMFA_LEVEL is 0 for the plain kernel, else the event level of the patched sources.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#include "cuda_check.h"

// FA3's own check ends the process; a library must report instead.
struct SimfaCudaFailure {
    cudaError_t status;
};
#undef CHECK_CUDA
#define CHECK_CUDA(call)                                                       \
    do {                                                                       \
        cudaError_t const simfa_status = (call);                               \
        if (simfa_status != cudaSuccess) throw SimfaCudaFailure{simfa_status}; \
    } while (0)

#if SIMFA_LEVEL > 0
#include "simfa_probe.cuh"
#endif

#include "flash_fwd_launch_template.h"

#define SIMFA_API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int ABI_VERSION = 1;

// Results below zero are ours; above zero they are cudaError_t.
constexpr int NO_SUCH_KERNEL = -1;
constexpr int BAD_ARGUMENT = -2;
constexpr int NO_PROBES = -3;
constexpr int NOT_HOPPER = -4;

template <typename Element>
constexpr int DTYPE = -1;
template <>
constexpr int DTYPE<cutlass::half_t> = 0;
template <>
constexpr int DTYPE<cutlass::bfloat16_t> = 1;

template <int HeadDim, typename Element, bool Causal, int Cluster>
void run_kernel(Flash_fwd_params& params, cudaStream_t stream) {
    // Fixed length, unsplit, Q/K/V by TMA: no window, softcap, varlen, paging, append, Qv, GQA packing or transposed V.
    run_flash_fwd<90, HeadDim, HeadDim, Cluster, Element, Element, Causal, false, false, false, false, false, false,
                  false, false, false>(params, stream);
}

struct Kernel {
    int head_dim;
    int dtype;
    int causal;
    int cluster;
    void (*run)(Flash_fwd_params&, cudaStream_t);
};

#define SIMFA_KERNEL(head_dim, element, causal, cluster) \
    {head_dim, DTYPE<element>, causal, cluster, run_kernel<head_dim, element, causal, cluster>},
constexpr Kernel KERNELS[] = {
#include "simfa_kernels.inc"
};
#undef SIMFA_KERNEL

constexpr int KERNEL_COUNT = sizeof(KERNELS) / sizeof(KERNELS[0]);

}  // namespace

// One attention call; tensors are contiguous in (batch, seqlen, heads, head_dim) order, `lse` is (batch, heads,
// seqlen_q).
struct simfa_call {
    void const* q;
    void const* k;
    void const* v;
    void* o;
    float* lse;
    int* tile_counter;  // one int on the device, zeroed here before each causal launch
    int batch;
    int seqlen_q;
    int seqlen_kv;
    int heads_q;
    int heads_kv;
    int head_dim;
    int dtype;
    int causal;
    int cluster;
    int sm_count;  // CTAs of the persistent grid
    float softmax_scale;
};

SIMFA_API int simfa_abi_version() { return ABI_VERSION; }

SIMFA_API int simfa_level() { return SIMFA_LEVEL; }

SIMFA_API int simfa_kernel_count() { return KERNEL_COUNT; }

// Writes head_dim, dtype (0 fp16, 1 bf16), causal and cluster of kernel `index`.
SIMFA_API int simfa_kernel(int index, int* fields) {
    if (index < 0 || index >= KERNEL_COUNT || fields == nullptr) return BAD_ARGUMENT;
    Kernel const& kernel = KERNELS[index];
    fields[0] = kernel.head_dim;
    fields[1] = kernel.dtype;
    fields[2] = kernel.causal;
    fields[3] = kernel.cluster;
    return 0;
}

SIMFA_API char const* simfa_error_text(int code) {
    switch (code) {
        case NO_SUCH_KERNEL:
            return "the library was built without this kernel";
        case BAD_ARGUMENT:
            return "bad argument";
        case NO_PROBES:
            return "the library holds the plain kernel and cannot trace";
        case NOT_HOPPER:
            return "the current device is not of compute capability 9.0";
        default:
            return code < 0 ? "unknown code" : cudaGetErrorString(cudaError_t(code));
    }
}

// Writes the number of SMs of the current device; fails when there is none or it is not a Hopper part.
SIMFA_API int simfa_device(int* sm_count) {
    int device = 0;
    int major = 0;
    int minor = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (status == cudaSuccess) status = cudaDeviceGetAttribute(sm_count, cudaDevAttrMultiProcessorCount, device);
    if (status != cudaSuccess) return status;
    return major == 9 && minor == 0 ? 0 : NOT_HOPPER;
}

// Points the probes at rows of the caller (see TraceConfig), or turns them off with `rows` 0; ordered on `stream`.
SIMFA_API int simfa_set_trace(void const* config, std::size_t bytes, void* stream) {
#if SIMFA_LEVEL > 0
    if (config == nullptr || bytes != sizeof(simfa::TraceConfig)) return BAD_ARGUMENT;
    return cudaMemcpyToSymbolAsync(simfa::trace_config, config, bytes, 0, cudaMemcpyHostToDevice,
                                   static_cast<cudaStream_t>(stream));
#else
    return NO_PROBES;
#endif
}

SIMFA_API int simfa_run(simfa_call const* call, void* stream_handle) {
    if (call == nullptr || call->heads_kv < 1 || call->heads_q % call->heads_kv != 0 ||
        call->sm_count < call->cluster || (call->causal != 0 && call->tile_counter == nullptr)) {
        return BAD_ARGUMENT;
    }
    auto const stream = static_cast<cudaStream_t>(stream_handle);
    for (Kernel const& kernel : KERNELS) {
        if (kernel.head_dim != call->head_dim || kernel.dtype != call->dtype || kernel.causal != (call->causal != 0) ||
            kernel.cluster != call->cluster) {
            continue;
        }
        Flash_fwd_params params{};
        params.q_ptr = const_cast<void*>(call->q);
        params.k_ptr = const_cast<void*>(call->k);
        params.v_ptr = const_cast<void*>(call->v);
        params.o_ptr = call->o;
        params.softmax_lse_ptr = call->lse;
        params.b = call->batch;
        params.b_k = call->batch;
        params.h = call->heads_q;
        params.h_k = call->heads_kv;
        params.seqlen_q = call->seqlen_q;
        params.seqlen_k = call->seqlen_kv;
        params.d = params.d_rounded = call->head_dim;
        params.dv = params.dv_rounded = call->head_dim;
        params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride = call->head_dim;
        params.q_row_stride = params.o_row_stride = std::int64_t(call->heads_q) * call->head_dim;
        params.k_row_stride = params.v_row_stride = std::int64_t(call->heads_kv) * call->head_dim;
        params.q_batch_stride = params.o_batch_stride = params.q_row_stride * call->seqlen_q;
        params.k_batch_stride = params.v_batch_stride = params.k_row_stride * call->seqlen_kv;
        params.v_dim_stride = 1;
        params.scale_softmax = call->softmax_scale;
        params.is_bf16 = call->dtype == 1;
        params.is_causal = kernel.causal != 0;
        params.window_size_left = call->seqlen_kv - 1;
        params.window_size_right = params.is_causal ? 0 : call->seqlen_q - 1;
        params.num_splits = 1;
        params.arch = 90;
        params.num_sm = call->sm_count / call->cluster * call->cluster;
        params.tile_count_semaphore = call->tile_counter;
        try {
            if (params.is_causal) CHECK_CUDA(cudaMemsetAsync(call->tile_counter, 0, sizeof(int), stream));
            kernel.run(params, stream);
        } catch (SimfaCudaFailure const& failure) {
            return failure.status;
        }
        return 0;
    }
    return NO_SUCH_KERNEL;
}
