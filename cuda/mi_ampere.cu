// MInference's sparse prefill where Hopper's instructions are not: FlashAttention-2's schedule on
// mma.sync (equation: prefill.cu; shapes: ss_mi_attend_args).
//
// A CTA owns one half of a tile, 64 queries of one head, 16 per warp. Keys and values pass in tiles
// of 64, each a block or gathered columns: which key a row of a tile is stands in shared memory, so
// that both are read and masked alike.
#include "mi_mma.cuh"

namespace ss {

// Tile t of a half: which keys its rows are; kNoBlock and more: none.
struct HalfWalk {
  MiPlan plan;
  int half, own;  // own: blocks that only this half sees
  __device__ HalfWalk(const MiPlan &p, int h) : plan(p), half(h), own(h ? p.second : p.first) {}
  __device__ int tiles() const {
    return plan.both + own + (plan.columns + kMiBlock - 1) / kMiBlock;
  }
  __device__ int key(int t, int row) const {
    if (t < plan.both) return plan.start(t) + row;
    if (t < plan.both + own) return plan.start(t + (half ? plan.first : 0)) + row;
    const int i = (t - plan.both - own) * kMiBlock + row;
    const int entry = i < plan.columns ? plan.column[i] : kNoBlock;
    return entry >> (30 + half) & 1 ? kNoBlock : entry & kColumnBits;
  }
};

__device__ inline void half_values(float (&o)[16][4], const float (&p)[8][4], uint32_t v_tile,
                                   int lane) {
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint32_t a0 = pack(p[2 * k][0], p[2 * k][1]), a1 = pack(p[2 * k][2], p[2 * k][3]);
    const uint32_t a2 = pack(p[2 * k + 1][0], p[2 * k + 1][1]),
                   a3 = pack(p[2 * k + 1][2], p[2 * k + 1][3]);
#pragma unroll
    for (int n = 0; n < 8; n++) {
      uint32_t b[4];
      load_matrix_transposed(
          b, v_tile + swizzled<kMiDim>(k * 16 + lane % 8 + lane / 8 % 2 * 8, 2 * n + lane / 16));
      mma16816(o[2 * n], a0, a1, a2, a3, b[0], b[1]);
      mma16816(o[2 * n + 1], a0, a1, a2, a3, b[2], b[3]);
    }
  }
}

__device__ inline void half_softmax(float (&s)[8][4], float (&o)[16][4], float (&top)[2],
                                    float (&sum)[2], float scale_log2) {
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float best = top[h];
#pragma unroll
    for (int n = 0; n < 8; n++) best = fmaxf(best, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
    const float ref = best == -INFINITY ? 0 : best * scale_log2;
    const float alpha = exp2_fast(top[h] * scale_log2 - ref);
    top[h] = best;
    float part = 0;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int i = 2 * h; i < 2 * h + 2; i++)
        part += s[n][i] = exp2_fast(fmaf(s[n][i], scale_log2, -ref));
    sum[h] = sum[h] * alpha + part;
#pragma unroll
    for (int n = 0; n < 16; n++) o[n][2 * h] *= alpha, o[n][2 * h + 1] *= alpha;
  }
}

__global__ void __launch_bounds__(kMiThreads) mi_ampere_kernel(ss_mi_attend_args a, int tiles) {
  extern __shared__ __align__(128) char shared[];
  __shared__ int key[kMiBlock];
  const ss_prefill_args &g = a.prefill;
  const uint32_t q_tile = shared_address(shared), k_tile = q_tile + kMiTileBytes,
                 v_tile = k_tile + kMiTileBytes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tile = tiles - 1 - int(blockIdx.x) / 2, half = blockIdx.x % 2, head = blockIdx.y,
            kv_head = head / (g.heads_q / g.heads_kv);
  const int query0 = tile * kMiQueries + half * kMiBlock;
  if (query0 >= g.q_tokens) return;
  const HalfWalk walk(mi_plan(a, head, tile, tiles), half);
  const __half *k = static_cast<const __half *>(g.k) + kv_head * g.k_head_stride,
               *v = static_cast<const __half *>(g.v) + kv_head * g.v_head_stride;
  const int limit = g.prefix + g.q_tokens, position = g.prefix + query0 + warp * 16 + lane / 4;
  const float scale_log2 = g.scale * 1.4426950408889634f;

  float o[16][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  const auto query = [&](int row) { return query0 + row; };
  mi_copy_rows(q_tile, static_cast<const __half *>(g.q) + head * g.q_head_stride, g.q_token_stride,
               g.q_tokens, query);
  const auto listed = [&](int row) { return key[row]; };
  for (int t = 0; t < walk.tiles(); t++) {
    __syncthreads();  // no warp reads the last tile or its keys any more
    if (threadIdx.x < kMiBlock) key[threadIdx.x] = walk.key(t, threadIdx.x);
    __syncthreads();
    mi_copy_rows(k_tile, k, g.k_token_stride, limit, listed);
    mi_copy_rows(v_tile, v, g.v_token_stride, limit, listed);
    copy_wait<1>();
    __syncthreads();
    float s[8][4];
    mi_scores(s, q_tile, k_tile, warp, lane);
    const bool columns = t >= walk.plan.both + walk.own;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int at = key[n * 8 + lane % 4 * 2 + i % 2], row = position + i / 2 * 8;
        if (at > row || (!columns && !mi_visible(a, at, row))) s[n][i] = -INFINITY;
      }
    half_softmax(s, o, top, sum, scale_log2);
    copy_wait<0>();
    __syncthreads();
    half_values(o, s, v_tile, lane);
  }
  copy_wait<0>();

  __half *out = static_cast<__half *>(g.out) + head * g.out_head_stride;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float total = sum[h] + __shfl_xor_sync(~0u, sum[h], 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const float inverse = total > 0 ? 1 / total : 0;
    const int query = query0 + warp * 16 + h * 8 + lane / 4;
    if (query >= g.q_tokens) continue;
#pragma unroll
    for (int n = 0; n < 16; n++)
      *reinterpret_cast<uint32_t *>(out + query * g.out_token_stride + n * 8 + lane % 4 * 2) =
          pack(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
  }
}

int mi_ampere(const ss_mi_attend_args &args, cudaStream_t stream) {
  const ss_prefill_args &p = args.prefill;
  if (args.blocks == nullptr && args.window == 0) return ss_prefill(&p, stream);
  const int tiles = ceil_div(p.q_tokens, kMiQueries), shared = 3 * kMiTileBytes;
  SS_TRY(allow_shared<mi_ampere_kernel>(shared));
  mi_ampere_kernel<<<dim3(unsigned(2 * tiles), unsigned(p.heads_q)), kMiThreads, shared, stream>>>(
      args, tiles);
  return check(cudaGetLastError(), "mi_ampere_kernel");
}

}  // namespace ss
