// Scores and top-k in one kernel: a unit's CTA streams its digests, keeps the keys in shared memory and chooses there (scores.cuh, topk.cuh).
#include "scores.cuh"
#include "topk.cuh"

namespace ss {

template <int D>
__global__ void __launch_bounds__(kTopkThreads) select_kernel(ss_select_args args) {
  extern __shared__ __align__(16) char shared[];
  const ss_scores_args &a = args.scores;
  const ss_topk_args &top = args.topk;
  const int unit = blockIdx.x, group = a.heads_q / a.heads_kv, warp = threadIdx.x / 32;
  const int n = top.blocks[unit], digests = min(a.count[unit], n);
  const TopkSpace s = topk_space(shared, n);
  const MergedQuery<D> q(static_cast<const __half *>(a.q) + int64_t(unit) * group * D, group);
  const __half *meta = static_cast<const __half *>(a.meta) + a.first[unit] * 2 * D;
  const auto put = [&](int i, float score) { s.key[i] = i < top.sink || i >= n - top.window ? kForced : key_of(score); };
  for (int first = warp * kScoreBlocks<D>; first < digests; first += kTopkThreads / 32 * kScoreBlocks<D>) score_blocks<D>(q, meta, first, digests, put);
  // Blocks without a digest yet (the open one) come in by the window or last.
  for (int i = digests + threadIdx.x; i < n; i += kTopkThreads) put(i, -INFINITY);
  __syncthreads();
  topk_in_shared(s, n, top.k, top.list + int64_t(unit) * top.list_stride, top.count + unit);
}

template <int D>
static int launch_select(const ss_select_args &args, int64_t shared, int64_t room, cudaStream_t stream) {
  SS_CUDA(cudaFuncSetAttribute(select_kernel<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(room)));
  select_kernel<D><<<unsigned(args.topk.units), kTopkThreads, size_t(shared), stream>>>(args);
  return check(cudaGetLastError(), "select_kernel");
}

}  // namespace ss

extern "C" int ss_select(const ss_select_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_TRY(ss::check_scores(args->scores));
  SS_TRY(ss::check_topk(args->topk));
  SS_NEED(args->topk.units == args->scores.batch * args->scores.heads_kv);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const int64_t shared = ss::topk_space_bytes(args->scores.max_blocks, args->topk.k);
  const int64_t room = found.shared_bytes - 4096;
  if (shared > room) return ss::fail(SS_ERR_ARGUMENT, "ss_select: %d blocks do not fit this GPU's shared memory", args->scores.max_blocks);
  if (args->scores.head_dim == 128) return ss::launch_select<128>(*args, shared, room, ss::stream_of(stream));
  return ss::launch_select<64>(*args, shared, room, ss::stream_of(stream));
}
