// Scores and top-k in one launch: the CTAs of a unit stream its digests (scores.cuh), the last to
// finish chooses (topk.cuh). In a small batch the CTAs of a unit are a cluster, and each sends
// its keys to the shared memory of the one that chooses.
#include "cluster.cuh"
#include "scores.cuh"
#include "topk.cuh"

namespace ss {

template <int D>
__global__ void __launch_bounds__(kTopkThreads) select_kernel(ss_select_args args) {
  extern __shared__ __align__(16) char shared[];
  __shared__ bool last;
  constexpr int kWarps = kTopkThreads / 32;
  const ss_scores_args &a = args.scores;
  const ss_topk_args &top = args.topk;
  const int parts = gridDim.x, unit = blockIdx.y, group = a.heads_q / a.heads_kv;
  const int64_t meta = a.first[unit] * 2 * D;
  const int n = top.blocks[unit], digests = min(a.count[unit], n);
  float *scores = a.scores + int64_t(unit) * a.score_stride;
  const int first = (int(blockIdx.x) * kWarps + int(threadIdx.x) / 32) * kScoreBlocks<D>;
  if (first < digests)
    score_blocks<D>(static_cast<const __half *>(a.q) + int64_t(unit) * group * D, group,
                    static_cast<const __half *>(a.meta) + meta, first,
                    parts * kWarps * kScoreBlocks<D>, digests,
                    [scores](int i, float score) { scores[i] = score; });

  __threadfence();  // this part's scores before its arrival
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&args.arrived[unit], 1) == parts - 1;
    if (last) args.arrived[unit] = 0;  // ready for the next launch
  }
  __syncthreads();
  if (!last) return;
  __threadfence();

  // Blocks without a digest yet (the open one) come in by the window, or after all others.
  const TopkSpace s = topk_space(shared, n);
  for (int i = threadIdx.x; i < n; i += kTopkThreads)
    s.key[i] = i < top.sink || i >= n - top.window
                   ? kForced
                   : key_of(i < digests ? __ldcg(&scores[i]) : -INFINITY);
  __syncthreads();
  topk_in_shared(s, n, top.k, top.list + int64_t(unit) * top.list_stride, top.count + unit);
}

template <int D>
__global__ void __launch_bounds__(kTopkThreads) select_cluster_kernel(ss_select_args args) {
  extern __shared__ __align__(16) char shared[];
  constexpr int kWarps = kTopkThreads / 32;
  const ss_scores_args &a = args.scores;
  const ss_topk_args &top = args.topk;
  const int parts = cluster_ctas(), rank = cluster_rank(), unit = blockIdx.x / parts,
            group = a.heads_q / a.heads_kv;
  cluster_arrive();  // no CTA is written to before it has started
  const int64_t meta = a.first[unit] * 2 * D;
  const int n = top.blocks[unit], digests = min(a.count[unit], n);
  const TopkSpace s = topk_space(shared, n);
  float *scores = a.scores + int64_t(unit) * a.score_stride;
  const auto forced = [&](int i) { return i < top.sink || i >= n - top.window; };
  cluster_wait();
  const int first = (rank * kWarps + int(threadIdx.x) / 32) * kScoreBlocks<D>;
  const uint32_t keys = cluster_address(s.key, 0);
  if (first < digests)
    score_blocks<D>(static_cast<const __half *>(a.q) + int64_t(unit) * group * D, group,
                    static_cast<const __half *>(a.meta) + meta, first,
                    parts * kWarps * kScoreBlocks<D>, digests, [=](int i, float score) {
                      scores[i] = score;
                      cluster_store(keys + uint32_t(i) * 4,
                                    __uint_as_float(forced(i) ? kForced : key_of(score)));
                    });
  // Blocks without a digest yet (the open one) come in by the window, or after all others.
  if (rank == 0)
    for (int i = digests + int(threadIdx.x); i < n; i += kTopkThreads)
      s.key[i] = forced(i) ? kForced : key_of(-INFINITY);
  cluster_arrive();
  cluster_wait();
  if (rank == 0)
    topk_in_shared(s, n, top.k, top.list + int64_t(unit) * top.list_stride, top.count + unit);
}

template <int D>
static int launch_select(const ss_select_args &args, int64_t shared, int64_t limit,
                         cudaStream_t stream) {
  Limits found;
  SS_TRY(limits(&found));
  SS_TRY(allow_shared<select_kernel<D>>(int(limit)));
  const int per_round = kTopkThreads / 32 * kScoreBlocks<D>;
  const int ctas = cluster_size(found, args.topk.units, found.sm_count * 2);
  if (ctas > 1 && args.scores.max_blocks > per_round) {
    SS_TRY(allow_shared<select_cluster_kernel<D>>(int(limit)));
    return launch_cluster(select_cluster_kernel<D>, dim3(unsigned(args.topk.units * ctas)),
                          kTopkThreads, size_t(shared), ctas, stream, args);
  }
  const int parts =
      score_parts(args.topk.units, args.scores.max_blocks, per_round, found.sm_count * 4);
  select_kernel<D><<<dim3(unsigned(parts > 0 ? parts : 1), unsigned(args.topk.units)), kTopkThreads,
                     size_t(shared), stream>>>(args);
  return check(cudaGetLastError(), "select_kernel");
}

}  // namespace ss

extern "C" int ss_select(const ss_select_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_TRY(ss::check_scores(args->scores));
  SS_TRY(ss::check_topk(args->topk));
  SS_NEED(args->topk.units == args->scores.batch * args->scores.heads_kv &&
          args->topk.units <= 65535);
  SS_NEED(args->scores.scores != nullptr && args->arrived != nullptr);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const int64_t shared = ss::topk_space_bytes(args->scores.score_stride, args->topk.k);
  const int64_t limit = found.shared_bytes - 4096;
  if (shared > limit)
    return ss::fail(SS_ERR_ARGUMENT, "ss_select: %d blocks do not fit this GPU's shared memory",
                    args->scores.score_stride);
  if (args->scores.head_dim == 128)
    return ss::launch_select<128>(*args, shared, limit, ss::stream_of(stream));
  return ss::launch_select<64>(*args, shared, limit, ss::stream_of(stream));
}
