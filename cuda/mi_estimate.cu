// How much weight the last 64 queries give to each key and to each diagonal (ss_mi_estimate_args in
// sparseserve.h; MInference's Algorithm 2).
//
//   A = softmax(Q K^T scale), causal    vertical_j = sum_i A_ij    slash_d = sum_i A_i,(p_i - d)
// with p_i the position of query i. A is computed twice, first for the rows' largest scores and
// sums, then for the sums of columns and diagonals: it is never stored. A CTA has a run of tiles of
// 64 keys, its sums are in an order of their own: the answer does not depend on timing.
#include "mi_mma.cuh"

namespace ss {

constexpr int kMaxParts = 512;

struct Estimate {
  ss_mi_estimate_args a;
  int rows, total, tiles, parts;  // rows: last queries; parts: CTAs of a head
  float2 *part, *row;             // [Hq][parts][64], [Hq][64]: largest score and sum
};

// The scores of a run of tiles, in sequence; the next tile's keys come meanwhile. f gets the tile's
// number and S, times scale log2 e, -inf where a query does not see the key.
template <typename F>
__device__ inline void walk_keys(const Estimate &e, int head, int from, int to, F f) {
  extern __shared__ __align__(128) char shared[];
  const ss_prefill_args &g = e.a.prefill;
  const uint32_t q_tile = shared_address(shared), k_tile = q_tile + kMiTileBytes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = g.q_tokens - e.rows;
  const __half *k =
      static_cast<const __half *>(g.k) + head / (g.heads_q / g.heads_kv) * g.k_head_stride;
  const float scale_log2 = g.scale * 1.4426950408889634f;
  const auto copy_keys = [&](int tile) {
    mi_copy_rows(k_tile + tile % 2 * kMiTileBytes, k, g.k_token_stride, e.total,
                 [=](int row) { return tile * kMiBlock + row; });
  };
  mi_copy_rows(q_tile, static_cast<const __half *>(g.q) + head * g.q_head_stride, g.q_token_stride,
               g.q_tokens, [=](int row) { return first + row; });
  copy_keys(from);
  for (int tile = from; tile < to; tile++) {
    copy_wait<0>();
    __syncthreads();  // this tile has come, and no warp reads the one before any more
    if (tile + 1 < to) copy_keys(tile + 1);
    float s[8][4];
    mi_scores(s, q_tile, k_tile + tile % 2 * kMiTileBytes, warp, lane);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int key = tile * kMiBlock + n * 8 + lane % 4 * 2 + i % 2,
                  row = warp * 16 + lane / 4 + i / 2 * 8;
        s[n][i] = row < e.rows && key <= g.prefix + first + row ? s[n][i] * scale_log2 : -INFINITY;
      }
    f(tile, s);
  }
}

// Adds sums that belong to different largest scores.
__device__ inline float2 combine(float2 x, float2 y) {
  const float top = fmaxf(x.x, y.x), ref = top == -INFINITY ? 0 : top;
  return make_float2(top, x.y * exp2_fast(x.x - ref) + y.y * exp2_fast(y.x - ref));
}

__global__ void __launch_bounds__(kMiThreads) rows_of_part_kernel(Estimate e) {
  const int head = blockIdx.y, part = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int from = int(int64_t(e.tiles) * part / e.parts),
            to = int(int64_t(e.tiles) * (part + 1) / e.parts);
  float2 mine[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
  walk_keys(e, head, from, to, [&](int, float(&s)[8][4]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float top = mine[h].x, sum = 0;
#pragma unroll
      for (int n = 0; n < 8; n++) top = fmaxf(top, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
      const float ref = top == -INFINITY ? 0 : top;
#pragma unroll
      for (int n = 0; n < 8; n++)
        sum += exp2_fast(s[n][2 * h] - ref) + exp2_fast(s[n][2 * h + 1] - ref);
      mine[h] = make_float2(top, mine[h].y * exp2_fast(mine[h].x - ref) + sum);
    }
  });
#pragma unroll
  for (int h = 0; h < 2; h++) {
    for (int d = 1; d < 4; d *= 2)
      mine[h] = combine(mine[h], make_float2(__shfl_xor_sync(~0u, mine[h].x, d),
                                             __shfl_xor_sync(~0u, mine[h].y, d)));
    if (lane % 4 == 0)
      e.part[(int64_t(head) * e.parts + part) * kMiBlock + warp * 16 + lane / 4 + h * 8] = mine[h];
  }
}

// 16 threads a row.
__global__ void __launch_bounds__(1024) rows_kernel(Estimate e) {
  const int head = blockIdx.x, row = threadIdx.x / 16;
  float2 sum = {-INFINITY, 0};
#pragma unroll 4
  for (int part = threadIdx.x % 16; part < e.parts; part += 16)
    sum = combine(sum, e.part[(int64_t(head) * e.parts + part) * kMiBlock + row]);
  for (int d = 1; d < 16; d *= 2)
    sum = combine(sum, make_float2(__shfl_xor_sync(~0u, sum.x, d), __shfl_xor_sync(~0u, sum.y, d)));
  if (threadIdx.x % 16 == 0) e.row[head * kMiBlock + row] = sum;
}

// The diagonals of a tile: thread t has those with row - column = t - 63. A diagonal goes through
// two tiles, those below 0 end in the tile that follows.
__global__ void __launch_bounds__(kMiThreads) lines_kernel(Estimate e) {
  constexpr int kRow = kMiBlock + 1;
  __shared__ float weight[kMiBlock * kRow], column[4][kMiBlock];
  const int head = blockIdx.y, part = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int from = int(int64_t(e.tiles) * part / e.parts),
            to = int(int64_t(e.tiles) * (part + 1) / e.parts);
  const int first = e.total - e.rows;  // position of the first of the last queries
  float *vertical = e.a.vertical + int64_t(head) * e.a.stride,
        *slash = e.a.slash + int64_t(head) * e.a.stride;
  float ref[2], inverse[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float2 row = e.row[head * kMiBlock + warp * 16 + lane / 4 + h * 8];
    ref[h] = row.x == -INFINITY ? 0 : row.x;
    inverse[h] = row.y > 0 ? 1 / row.y : 0;
  }
  const int diagonal = int(threadIdx.x) - 63;
  float carried = 0;  // of the tile before: what thread t - 64 summed for this thread's diagonal
  __shared__ float pass[kMiBlock];
  // One tile before the own run, for what its diagonals carry.
  walk_keys(e, head, max(0, from - 1), to, [&](int tile, float(&s)[8][4]) {
#pragma unroll
    for (int n = 0; n < 8; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        s[n][i] = exp2_fast(s[n][i] - ref[i / 2]) * inverse[i / 2];
        weight[(warp * 16 + lane / 4 + i / 2 * 8) * kRow + n * 8 + lane % 4 * 2 + i % 2] = s[n][i];
      }
      float2 sum = make_float2(s[n][0] + s[n][2], s[n][1] + s[n][3]);
      for (int d = 4; d < 32; d *= 2)
        sum.x += __shfl_xor_sync(~0u, sum.x, d), sum.y += __shfl_xor_sync(~0u, sum.y, d);
      if (lane < 4) *reinterpret_cast<float2 *>(&column[warp][n * 8 + lane * 2]) = sum;
    }
    __syncthreads();
    const int key = tile * kMiBlock + threadIdx.x;
    if (tile >= from && threadIdx.x < kMiBlock && key < e.total)
      vertical[key] = column[0][threadIdx.x] + column[1][threadIdx.x] + column[2][threadIdx.x] +
                      column[3][threadIdx.x];
    float sum = 0;
    const int low = max(0, diagonal), high = min(kMiBlock, kMiBlock + diagonal);
#pragma unroll 8
    for (int row = low; row < high; row++) sum += weight[row * kRow + row - diagonal];
    if (diagonal < 0) pass[threadIdx.x] = sum;
    const float before = carried;
    __syncthreads();
    const int distance = first - tile * kMiBlock + diagonal;
    if (diagonal >= 0 && diagonal < kMiBlock) {
      if (tile >= from && distance >= 0 && distance < e.total)
        slash[distance] = before + sum;  // with few rows the first tile has diagonals past all
      carried = diagonal > 0 ? pass[diagonal - 1]
                             : 0;  // thread t - 64 has diagonal - 64, which is number diagonal - 1
    } else if (diagonal < 0 && tile + 1 == e.tiles && distance >= 0) {
      slash[distance] = sum;
    }
  });
}

static int estimate_parts(const ss_prefill_args &p) {
  const int tiles = ceil_div(p.prefix + p.q_tokens, kMiBlock);
  const int parts = ceil_div(tiles, 8);
  return parts < kMaxParts ? parts : kMaxParts;
}

static int check_estimate(const ss_mi_estimate_args *a) {
  SS_NEED(a != nullptr);
  const ss_prefill_args &p = a->prefill;
  SS_NEED(p.q_tokens > 0 && p.prefix >= 0 &&
          int64_t(p.q_tokens) + p.prefix <= kNoBlock - kMiQueries);
  SS_NEED(p.heads_kv > 0 && p.heads_q > 0 && p.heads_q % p.heads_kv == 0);
  SS_NEED(p.head_dim == 128 && p.table == nullptr);
  for (int64_t stride : {p.q_token_stride, p.q_head_stride, p.k_token_stride, p.k_head_stride})
    SS_NEED(stride % 8 == 0);
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_mi_estimate_workspace(const ss_mi_estimate_args *args, int64_t *bytes) {
  SS_TRY(ss::check_estimate(args));
  SS_NEED(bytes != nullptr);
  *bytes = int64_t(args->prefill.heads_q) * (ss::estimate_parts(args->prefill) + 1) * ss::kMiBlock *
           sizeof(float2);
  return SS_OK;
}

extern "C" int ss_mi_estimate(const ss_mi_estimate_args *args, ss_stream stream) {
  SS_TRY(ss::check_estimate(args));
  const ss_prefill_args &p = args->prefill;
  SS_NEED(p.q != nullptr && p.k != nullptr && args->vertical != nullptr && args->slash != nullptr &&
          args->workspace != nullptr);
  const int total = p.prefix + p.q_tokens;
  SS_NEED(args->stride >= total);
  ss::Estimate e = {*args,
                    p.q_tokens < ss::kMiBlock ? p.q_tokens : ss::kMiBlock,
                    total,
                    ss::ceil_div(total, ss::kMiBlock),
                    ss::estimate_parts(p),
                    nullptr,
                    nullptr};
  e.row = static_cast<float2 *>(args->workspace);
  e.part = e.row + p.heads_q * ss::kMiBlock;
  const dim3 grid(unsigned(e.parts), unsigned(p.heads_q));
  const int shared = 3 * ss::kMiTileBytes;
  const cudaStream_t on = ss::stream_of(stream);
  SS_TRY(ss::allow_shared<ss::rows_of_part_kernel>(shared));
  SS_TRY(ss::allow_shared<ss::lines_kernel>(shared));
  ss::rows_of_part_kernel<<<grid, ss::kMiThreads, shared, on>>>(e);
  ss::rows_kernel<<<unsigned(p.heads_q), 1024, 0, on>>>(e);
  ss::lines_kernel<<<grid, ss::kMiThreads, shared, on>>>(e);
  return ss::check(cudaGetLastError(), "lines_kernel");
}
