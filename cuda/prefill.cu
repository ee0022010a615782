// Causal prefill attention of one request, with or without a prefix (equation and shapes:
// sparseserve.h, ss_prefill_args).
//
// Where mi_hopper.cu's kernel applies, that one runs. This one has FlashAttention-2's schedule on
// mma.sync, and serves sm_80 and newer. A CTA owns 128 queries of one head, 32 per warp; keys
// and values pass in tiles of 64 tokens, from the diagonal backwards, so that only the first tiles
// need the mask:
//   S = Q K^T      m' = max(m, rowmax S)      P = exp2(c S - c m')
//   l = l exp2(c m - c m') + rowsum P         O = O exp2(c m - c m') + P V
// with c = scale log2 e. While S is computed V is on its way, while P V is computed the next K.
// Keys and values in KV blocks are read where they are; the slots of a tile are looked up while the
// tile before it computes.
#include "mi.cuh"
#include "mma.cuh"

namespace ss {

constexpr int kQueries = 128;  // a CTA
constexpr int kKeys = 64;      // a tile
constexpr int kPrefillWarps = 4;

// Copies rows first .. first + kRows of a strided tensor to a swizzled tile; rows from `limit` on
// become zeros. kWhole: there are none of them.
template <int D, int kRows, bool kWhole>
__device__ inline void copy_rows(uint32_t tile, const __half *src, int64_t stride, int first,
                                 int limit) {
  constexpr int kPieces = D / 8, kThreads = kPrefillWarps * 32;
  constexpr int kRowsAtOnce = kThreads / kPieces;
  const int piece = threadIdx.x % kPieces;
  int row = threadIdx.x / kPieces;
  const __half *at = src + (first + row) * stride + piece * 8;
#pragma unroll
  for (int i = 0; i < kRows / kRowsAtOnce; i++) {
    copy_async(tile + swizzled<D>(row, piece), at, kWhole || first + row < limit);
    row += kRowsAtOnce;
    at += kRowsAtOnce * stride;
  }
}

// Tokens that share a block whatever its size. Each warp copies one group of a tile, so that it
// needs one slot.
constexpr int kGroup = kKeys / kPrefillWarps;
constexpr int kBlockMax = 256;  // tokens; up to here the division below is exact for any context
static_assert(kGroup == 16);

// Where this warp's group of a tile is: its block and its first token there. Groups past the last
// get the last's.
struct Place {
  int block, token;
};

// a / b = a * ceil(2^31 / b) / 2^31 where a < 2^27 and b divides 2^31 or is at most 16.
__device__ inline Place place_of(uint32_t reciprocal, int groups, int tile, int last_group) {
  const int group = min(tile * kPrefillWarps + int(threadIdx.x / 32), last_group);
  const int block = int(__umulhi(uint32_t(group) * 2, reciprocal));
  return {block, (group - block * groups) * kGroup};
}

// copy_rows from a pool; `rows` is where this warp's group begins, in rows of D halves.
template <int D, bool kWhole>
__device__ inline void copy_block_rows(uint32_t tile, const __half *pool, uint32_t rows, int first,
                                       int limit) {
  constexpr int kPieces = D / 8, kRowsAtOnce = 32 / kPieces;
  const int piece = threadIdx.x % kPieces, row = threadIdx.x % 32 / kPieces,
            group_row = threadIdx.x / 32 * kGroup + row;
  const __half *at = pool + int64_t(rows + row) * D + piece * 8;
  // swizzled<D>, written so that i is a constant in it
  const uint32_t to = tile + group_row * D * 2, place = (piece ^ row) << 4;
#pragma unroll
  for (int i = 0; i < kGroup; i += kRowsAtOnce)
    copy_async(to + i * D * 2 + (place ^ ((i & 7) << 4)), at + i * D,
               kWhole || first + group_row + i < limit);
}

// A tile of keys or values from where they are: a strided tensor, or a pool.
template <int D, bool kPaged, bool kWhole>
__device__ inline void copy_tile(uint32_t to, const __half *src, int64_t stride, uint32_t rows,
                                 int tile, int limit) {
  if constexpr (kPaged)
    copy_block_rows<D, kWhole>(to, src, rows, tile * kKeys, limit);
  else
    copy_rows<D, kKeys, kWhole>(to, src, stride, tile * kKeys, limit);
}

// S of the warp's 32 queries and the tile's 64 keys.
template <int D>
__device__ inline void scores(float (&s)[2][kKeys / 8][4], uint32_t q_tile, uint32_t k_tile,
                              int warp, int lane) {
#pragma unroll
  for (int m = 0; m < 2; m++)
#pragma unroll
    for (int n = 0; n < kKeys / 8; n++) s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0;
  const int q_row = warp * 32 + lane % 16, q_half = lane / 16;
  const int k_row = lane % 8 + lane / 16 * 8, k_half = lane / 8 % 2;
#pragma unroll
  for (int k = 0; k < D / 16; k++) {
    uint32_t a[2][4];
    load_matrix(a[0], q_tile + swizzled<D>(q_row, 2 * k + q_half));
    load_matrix(a[1], q_tile + swizzled<D>(q_row + 16, 2 * k + q_half));
#pragma unroll
    for (int n = 0; n < kKeys / 16; n++) {
      uint32_t b[4];
      load_matrix(b, k_tile + swizzled<D>(n * 16 + k_row, 2 * k + k_half));
#pragma unroll
      for (int m = 0; m < 2; m++) {
        mma16816(s[m][2 * n], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
        mma16816(s[m][2 * n + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
      }
    }
  }
}

// O += P V for the tile; P's accumulator layout is the A operand's, pair by pair.
template <int D>
__device__ inline void weighted_values(float (&o)[2][D / 8][4], const float (&p)[2][kKeys / 8][4],
                                       uint32_t v_tile, int lane) {
  const int v_row = lane % 8 + lane / 8 % 2 * 8, v_half = lane / 16;
#pragma unroll
  for (int k = 0; k < kKeys / 16; k++) {
    uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; m++) {
      a[m][0] = pack(p[m][2 * k][0], p[m][2 * k][1]);
      a[m][1] = pack(p[m][2 * k][2], p[m][2 * k][3]);
      a[m][2] = pack(p[m][2 * k + 1][0], p[m][2 * k + 1][1]);
      a[m][3] = pack(p[m][2 * k + 1][2], p[m][2 * k + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < D / 16; n++) {
      uint32_t b[4];
      load_matrix_transposed(b, v_tile + swizzled<D>(k * 16 + v_row, 2 * n + v_half));
#pragma unroll
      for (int m = 0; m < 2; m++) {
        mma16816(o[m][2 * n], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
        mma16816(o[m][2 * n + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
      }
    }
  }
}

// One step of the running softmax: S becomes P, O and l are rescaled. Row i of the four is m-tile i
// / 2, half i % 2.
template <int D>
__device__ inline void softmax_step(float (&s)[2][kKeys / 8][4], float (&o)[2][D / 8][4],
                                    float (&top)[4], float (&sum)[4], float scale_log2) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int m = i / 2, h = i % 2 * 2;
    float best = top[i];
#pragma unroll
    for (int n = 0; n < kKeys / 8; n++) best = fmaxf(best, fmaxf(s[m][n][h], s[m][n][h + 1]));
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 1));
    best = fmaxf(best, __shfl_xor_sync(~0u, best, 2));
    const float ref = best == -INFINITY ? 0 : best * scale_log2;
    const float alpha = exp2_fast(top[i] * scale_log2 - ref);
    top[i] = best;
    float part = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; n++) {
      s[m][n][h] = exp2_fast(fmaf(s[m][n][h], scale_log2, -ref));
      s[m][n][h + 1] = exp2_fast(fmaf(s[m][n][h + 1], scale_log2, -ref));
      part += s[m][n][h] + s[m][n][h + 1];
    }
    sum[i] = sum[i] * alpha + part;
#pragma unroll
    for (int n = 0; n < D / 8; n++) o[m][n][h] *= alpha, o[m][n][h + 1] *= alpha;
  }
}

template <int D, bool kPaged>
__global__ void __launch_bounds__(kPrefillWarps * 32, 2)
    prefill_kernel(ss_prefill_args a, int query_tiles, uint32_t reciprocal) {
  extern __shared__ __align__(128) char shared[];
  const uint32_t q_tile = shared_address(shared);
  const uint32_t k_tile = q_tile + kQueries * D * 2, v_tile = k_tile + kKeys * D * 2;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // The longest tiles start first: the short ones fill the end of the launch.
  const int query0 = (query_tiles - 1 - int(blockIdx.x)) * kQueries, head = blockIdx.y;
  const int kv_head = head / (a.heads_q / a.heads_kv);
  const int kv_tokens = a.prefix + a.q_tokens;
  const __half *q = static_cast<const __half *>(a.q) + head * a.q_head_stride;
  const __half *k =
      static_cast<const __half *>(kPaged ? a.pool : a.k) + (kPaged ? 0 : kv_head * a.k_head_stride);
  const __half *v = kPaged ? k : static_cast<const __half *>(a.v) + kv_head * a.v_head_stride;
  const int32_t *table = kPaged ? a.table + int64_t(kv_head) * a.table_stride : nullptr;
  const int groups = a.block_tokens / kGroup, last_group = (kv_tokens - 1) / kGroup;
  const auto place = [=](int tile) { return place_of(reciprocal, groups, tile, last_group); };
  // The slot of this warp's next group comes to shared memory with the tile of values: a load to a
  // register would be put off, for want of registers, to just before its use.
  const uint32_t slot_at = v_tile + kKeys * D * 2 + threadIdx.x / 32 * 4;
  // of keys; values are T rows further
  const auto rows_of = [=](uint32_t slot, Place p) { return slot * 2 * a.block_tokens + p.token; };

  // keys that any query of the tile sees
  const int keys = min(kv_tokens, a.prefix + query0 + kQueries);
  int tile = (keys + kKeys - 1) / kKeys - 1;

  copy_rows<D, kQueries, false>(q_tile, q, a.q_token_stride, query0, a.q_tokens);
  uint32_t rows = kPaged ? rows_of(table[place(tile).block], place(tile)) : 0;
  copy_tile<D, kPaged, false>(k_tile, k, a.k_token_stride, rows, tile, kv_tokens);
  copy_commit();

  float o[2][D / 8][4];
#pragma unroll
  for (int m = 0; m < 2; m++)
#pragma unroll
    for (int n = 0; n < D / 8; n++) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0;
  float top[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, sum[4] = {};
  const float scale_log2 = a.scale * 1.4426950408889634f;
  const int first_row = query0 + warp * 32;  // of the warp

  for (; tile >= 0; tile--) {
    copy_wait<0>();
    __syncthreads();  // K has arrived; the old V is read no more
    const uint32_t value_rows = rows + a.block_tokens;
    if ((tile + 1) * kKeys <= kv_tokens)
      copy_tile<D, kPaged, true>(v_tile, v, a.v_token_stride, value_rows, tile, kv_tokens);
    else
      copy_tile<D, kPaged, false>(v_tile, v, a.v_token_stride, value_rows, tile, kv_tokens);
    if (kPaged && tile > 0 && lane == 0) copy_async_word(slot_at, table + place(tile - 1).block);
    copy_commit();

    float s[2][kKeys / 8][4];
    scores<D>(s, q_tile, k_tile, warp, lane);
    if (tile * kKeys + kKeys - 1 > a.prefix + first_row) {
#pragma unroll
      for (int m = 0; m < 2; m++)
#pragma unroll
        for (int n = 0; n < kKeys / 8; n++)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const int key = tile * kKeys + n * 8 + lane % 4 * 2 + i % 2;
            if (key > a.prefix + first_row + m * 16 + lane / 4 + i / 2 * 8) s[m][n][i] = -INFINITY;
          }
    }

    copy_wait<0>();
    __syncthreads();  // V has arrived; the old K is read no more
    if constexpr (kPaged) rows = rows_of(load_shared_word(slot_at), place(tile - 1));
    if (tile > 0)
      copy_tile<D, kPaged, true>(k_tile, k, a.k_token_stride, rows, tile - 1, kv_tokens);
    copy_commit();

    softmax_step<D>(s, o, top, sum, scale_log2);
    weighted_values<D>(o, s, v_tile, lane);
  }
  copy_wait<0>();

  // Through the warp's own rows of the query tile, so that global stores are 16 bytes a lane.
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int m = i / 2, h = i % 2 * 2;
    float total = sum[i] + __shfl_xor_sync(~0u, sum[i], 1);
    total += __shfl_xor_sync(~0u, total, 2);
    const float inverse = total > 0 ? 1 / total : 0;
    const int row = warp * 32 + m * 16 + h * 4 + lane / 4;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<uint32_t *>(shared + swizzled<D>(row, n) + lane % 4 * 4) =
          pack(o[m][n][h] * inverse, o[m][n][h + 1] * inverse);
  }
  __syncwarp();
  __half *out = static_cast<__half *>(a.out) + head * a.out_head_stride;
  constexpr int kPieces = D / 8;
#pragma unroll
  for (int i = 0; i < kPieces; i++) {
    const int row = warp * 32 + (i * 32 + lane) / kPieces, piece = (i * 32 + lane) % kPieces;
    if (query0 + row < a.q_tokens)
      *reinterpret_cast<uint4 *>(out + (query0 + row) * a.out_token_stride + piece * 8) =
          *reinterpret_cast<const uint4 *>(shared + swizzled<D>(row, piece));
  }
}

template <int D, bool kPaged>
static int launch_prefill(const ss_prefill_args &a, cudaStream_t stream) {
  const int shared = (kQueries + 2 * kKeys) * D * 2 + (kPaged ? kPrefillWarps * 4 : 0);
  const int tiles = ceil_div(a.q_tokens, kQueries);
  const uint32_t reciprocal =
      kPaged ? uint32_t(ceil_div64(int64_t(1) << 31, a.block_tokens / kGroup)) : 0;
  SS_TRY((allow_shared<prefill_kernel<D, kPaged>>(shared)));
  prefill_kernel<D, kPaged>
      <<<dim3(unsigned(tiles), unsigned(a.heads_q)), kPrefillWarps * 32, shared, stream>>>(
          a, tiles, reciprocal);
  return check(cudaGetLastError(), "prefill_kernel");
}

}  // namespace ss

extern "C" int ss_prefill(const ss_prefill_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->q_tokens >= 0 && args->prefix >= 0);
  SS_NEED(int64_t(args->q_tokens) + args->prefix < (int64_t(1) << 31) - 2 * ss::kQueries);
  SS_NEED(args->heads_kv > 0 && args->heads_q > 0 && args->heads_q % args->heads_kv == 0);
  SS_NEED(args->head_dim == 64 || args->head_dim == 128);
  for (int64_t stride :
       {args->q_token_stride, args->q_head_stride, args->k_token_stride, args->k_head_stride,
        args->v_token_stride, args->v_head_stride, args->out_token_stride, args->out_head_stride})
    SS_NEED(stride % 8 == 0);
  if (args->q_tokens == 0) return SS_OK;
  SS_NEED(args->q != nullptr && args->out != nullptr);
  const cudaStream_t on = ss::stream_of(stream);
  bool hopper = false;
  SS_TRY(ss::mi_on_hopper(*args, &hopper));
  if (args->table != nullptr) {
    SS_NEED(args->pool != nullptr && args->block_tokens > 0 &&
            args->block_tokens % ss::kGroup == 0 && args->block_tokens <= ss::kBlockMax);
    if (hopper) return ss::mi_hopper({*args}, on);
    return args->head_dim == 128 ? ss::launch_prefill<128, true>(*args, on)
                                 : ss::launch_prefill<64, true>(*args, on);
  }
  SS_NEED(args->k != nullptr && args->v != nullptr);
  if (hopper) return ss::mi_hopper({*args}, on);
  return args->head_dim == 128 ? ss::launch_prefill<128, false>(*args, on)
                               : ss::launch_prefill<64, false>(*args, on);
}
