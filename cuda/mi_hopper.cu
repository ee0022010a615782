// Causal and sparse prefill on Hopper's own instructions: warpgroup matrix products, the bulk
// tensor copy engine, warps with roles (equation: prefill.cu; shapes: ss_mi_attend_args).
//
// A CTA owns 128 queries of one head. The producer's warps bring tiles of 128 keys and values into
// rings of three; two consumer warpgroups compute, 64 queries each:
//   S = Q K^T of this tile is issued, then O += P V of the one before;
//   while P V computes, S becomes the next P
// One's softmax overlaps the other's products without more ado: to make the two alternate with
// named barriers was tried and gained nothing.
// A tile of keys is two blocks of 64 anywhere in the context, or 128 gathered columns. Tiles of one
// half only come last, alternating, and the other half passes them by.
#include "mi.cuh"

#ifdef SS_HOPPER

#include <dlfcn.h>

#include "mi_consume.cuh"
#include "mi_produce.cuh"

namespace ss {
template <bool kPaged>
__global__ void __launch_bounds__(kHopperThreads, 1)
    mi_hopper_kernel(const ss_mi_attend_args a, const __grid_constant__ CUtensorMap q,
                     const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v) {
  extern __shared__ __align__(1024) char raw[];
  MiShared &s = *reinterpret_cast<MiShared *>(raw);
  // The longest tiles start first: the short ones fill the end of the launch.
  const int tile = int(gridDim.x) - 1 - int(blockIdx.x), head = blockIdx.y;
  if (threadIdx.x == 0) {
    prefetch_map(&q), prefetch_map(&k), prefetch_map(&v);
    barrier_init(shared_address(&s.queries), 1);
    for (int i = 0; i < kStages; i++) {
      barrier_init(shared_address(s.full_k + i), 1);
      barrier_init(shared_address(s.full_v + i), 1);
      barrier_init(shared_address(s.empty_k + i), kConsumerWarps);
      barrier_init(shared_address(s.empty_v + i), kConsumerWarps);
    }
    barriers_ready();
  }
  __syncthreads();
  const MiPlan plan = mi_plan(a, head, tile, gridDim.x);
  const Walk walk(plan);
  const int group = threadIdx.x / 128;
  if (group == 0) {
    fewer_registers<40>();
    produce<kPaged>(s, a, q, k, v, plan, walk, tile * kMiQueries, head);
  } else {
    more_registers<232>();
    consume(s, a, walk, tile * kMiQueries, head, group - 1);
  }
}

// ---- host ----

using Encode = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                            const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                            const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver is asked by name: the library is linked without it.
static Encode encoder() {
  static const Encode found = [] {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver == nullptr ? nullptr
                             : reinterpret_cast<Encode>(dlsym(driver, "cuTensorMapEncodeTiled"));
  }();
  return found;
}

// Boxes of 64 dimensions and n tokens of one head.
static int encode(CUtensorMap *map, const void *base, int tokens, int heads, int64_t token_stride,
                  int64_t head_stride, int box_tokens = kMiBlock) {
  const cuuint64_t size[3] = {kDim, cuuint64_t(tokens), cuuint64_t(heads)};
  const cuuint64_t stride[2] = {cuuint64_t(token_stride) * 2,
                                cuuint64_t(heads > 1 ? head_stride : kDim) * 2};
  const cuuint32_t box[3] = {64, cuuint32_t(box_tokens), 1}, step[3] = {1, 1, 1};
  const CUresult code =
      encoder()(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, const_cast<void *>(base), size, stride,
                box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return code == CUDA_SUCCESS ? SS_OK
                              : fail(SS_ERR_CUDA, "cuTensorMapEncodeTiled: error %d", int(code));
}

bool mi_hopper_built() { return encoder() != nullptr; }

template <bool kPaged>
static int launch_hopper(const ss_mi_attend_args &args, const CUtensorMap &k, const CUtensorMap &v,
                         cudaStream_t stream) {
  const ss_prefill_args &p = args.prefill;
  CUtensorMap q;
  SS_TRY(encode(&q, p.q, p.q_tokens, p.heads_q, p.q_token_stride, p.q_head_stride));
  SS_TRY(allow_shared<mi_hopper_kernel<kPaged>>(sizeof(MiShared)));
  mi_hopper_kernel<kPaged><<<dim3(unsigned(ceil_div(p.q_tokens, kMiQueries)), unsigned(p.heads_q)),
                             kHopperThreads, sizeof(MiShared), stream>>>(args, q, k, v);
  return check(cudaGetLastError(), "mi_hopper_kernel");
}

int mi_hopper(const ss_mi_attend_args &args, cudaStream_t stream) {
  const ss_prefill_args &p = args.prefill;
  const int total = p.prefix + p.q_tokens;
  CUtensorMap k, v;
  if (p.table != nullptr) {
    SS_TRY(encode(&k, p.pool, kPoolRows, 1, kDim, 0,
                  p.block_tokens % 64 == 0   ? 64
                  : p.block_tokens % 32 == 0 ? 32
                                             : 16));
    return launch_hopper<true>(args, k, k, stream);
  }
  SS_TRY(encode(&k, p.k, total, p.heads_kv, p.k_token_stride, p.k_head_stride));
  SS_TRY(encode(&v, p.v, total, p.heads_kv, p.v_token_stride, p.v_head_stride));
  return launch_hopper<false>(args, k, v, stream);
}

}  // namespace ss

#else

namespace ss {

bool mi_hopper_built() { return false; }
int mi_hopper(const ss_mi_attend_args &, cudaStream_t) {
  return fail(SS_ERR_UNSUPPORTED, "built without sm_90a, which needs nvcc 12 or newer");
}

}  // namespace ss

#endif
