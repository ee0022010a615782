// One warp's walk over KV blocks with a running softmax; decode.cu and psa.cu build on it.
//
// The query heads of a group are the rows of a 16x8x16 matrix product (8 rows are used, the other 8
// are zero), 16 tokens its columns:
//   S = scale Q K^T      m' = max(m, max_t S_t)      P = exp(S - m')
//   l = l exp(m - m') + sum_t P_t                    O = O exp(m - m') + P V
// Tensor cores are far from busy here; they keep the instruction count low, so that the loads
// are the bottleneck.
//
// Tiles of 16 tokens (K and V, 64 D bytes) travel through a ring of kStages in shared memory,
// private to the warp: no CTA barrier in the loop.
#pragma once

#include "common.cuh"
#include "mma.cuh"

namespace ss {

constexpr int kTileTokens = 16;
constexpr int kGroupMax = 8;
constexpr float kLog2e = 1.4426950408889634f;

// Of one unit's list: `run` blocks from first, from first + step, .. < end, and where they are.
struct BlockWalk {
  const char *pool;
  const int32_t *table;  // slots by logical block, or pages of `times` slots, the unit's at `plus`
  const int32_t *list;   // of the unit, or NULL: logical block i is i
  const int32_t *slots;  // of the list's entries, or NULL: the table has them
  int times, plus;
  int context, block_tokens;
  int first, step, end, run = 1;
  int64_t block_bytes;
};

template <int D>
struct Softmax {
  float m = -INFINITY;  // running maximum of row g, in log2 units
  float l = 0;          // this lane's share of row g's sum
  float o[D / 8][4];    // o[n][0..1]: row g, columns 8 n + 2 t and + 1; [2..3]: the zero rows

  __device__ Softmax() {
#pragma unroll
    for (int n = 0; n < D / 8; n++) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0;
  }
};

// Rows of the query group as the A operand; a1 and a3 (rows 8 to 15) are zero.
template <int D>
struct Query {
  uint32_t a[D / 16][2];

  __device__ Query(const __half *q, int group) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const uint32_t *row = reinterpret_cast<const uint32_t *>(q + g * D);
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
      a[k][0] = g < group ? row[8 * k + t] : 0;
      a[k][1] = g < group ? row[8 * k + t + 4] : 0;
    }
  }
};

template <int D, int kStages>
struct TileRing {
  static constexpr int kTileBytes = 2 * kTileTokens * D * 2;
  static constexpr int kBytes = kStages * kTileBytes;  // shared memory of one warp

  uint32_t base;    // shared address of the ring
  int *valid_rows;  // shared [kStages]: tokens of the tile that exist
  BlockWalk walk;
  int tiles_per_block;
  int blocks;      // of this warp
  int issued = 0;  // tiles
  int issue_block = 0, issue_sub = 0;
  int slot = 0, valid = 0;  // of block 32 j + lane of the walk

  __device__ TileRing(uint32_t base, int *valid_rows, const BlockWalk &walk)
      : base(base), valid_rows(valid_rows), walk(walk) {
    tiles_per_block = walk.block_tokens / kTileTokens;
    const int span = walk.end > walk.first ? walk.end - walk.first : 0;
    blocks = span / walk.step * walk.run + min(walk.run, span % walk.step);
    for (int s = 0; s < kStages - 1; s++) issue();
  }

  __device__ int tiles() const { return blocks * tiles_per_block; }

  // Starts the next tile's copies. Past the end it commits an empty group, so that "all but kStages
  // - 2 groups" always names the same tile.
  __device__ void issue() {
    const int lane = threadIdx.x % 32;
    if (issue_block < blocks) {
      if (issue_sub == 0 && issue_block % 32 == 0) fetch(lane);
      const int at = __shfl_sync(~0u, slot, issue_block % 32);
      int rows = __shfl_sync(~0u, valid, issue_block % 32) - issue_sub * kTileTokens;
      rows = rows < 0 ? 0 : rows > kTileTokens ? kTileTokens : rows;
      const int stage = issued % kStages;
      const char *k = walk.pool + at * walk.block_bytes + issue_sub * kTileTokens * D * 2;
      const char *v = k + walk.block_tokens * D * 2;
      const uint32_t to = base + stage * kTileBytes;
      constexpr int kPieces = D / 8;
#pragma unroll
      for (int i = 0; i < kTileTokens * kPieces / 32; i++) {
        const int row = (i * 32 + lane) / kPieces, piece = (i * 32 + lane) % kPieces;
        copy_async(to + swizzled<D>(row, piece), k + row * D * 2 + piece * 16, row < rows);
      }
#pragma unroll
      for (int i = 0; i < kTileTokens * kPieces / 32; i++) {
        const int row = (i * 32 + lane) / kPieces, piece = (i * 32 + lane) % kPieces;
        copy_async(to + kTileTokens * D * 2 + swizzled<D>(row, piece), v + row * D * 2 + piece * 16,
                   row < rows);
      }
      if (lane == 0) valid_rows[stage] = rows;
      issued++;
      if (++issue_sub == tiles_per_block) issue_sub = 0, issue_block++;
    }
    copy_commit();
  }

  // Slots of the next 32 blocks, one a lane: one trip to memory instead of one a block.
  __device__ void fetch(int lane) {
    const int i = issue_block + lane;
    slot = valid = 0;
    if (i < blocks) {
      const int entry = walk.first + i / walk.run * walk.step + i % walk.run;
      const int logical = walk.list != nullptr ? walk.list[entry] : entry;
      slot =
          walk.slots != nullptr ? walk.slots[entry] : walk.table[logical] * walk.times + walk.plus;
      valid = walk.context - logical * walk.block_tokens;
    }
  }

  // Waits for tile `tile` and starts another in the stage that was used before it.
  __device__ uint32_t next(int tile, int *rows) {
    copy_wait<kStages - 2>();
    __syncwarp();
    const int stage = tile % kStages;
    *rows = valid_rows[stage];
    issue();
    return base + stage * kTileBytes;
  }

  __device__ void drain() {
    copy_wait<0>();
    __syncwarp();
  }
};

// Adds one tile to the softmax. Returns this lane's share of the tile's sum relative to the new
// maximum; *rescale is exp(m - m').
template <int D>
__device__ inline float add_tile(Softmax<D> &state, const Query<D> &q, uint32_t tile, int rows,
                                 float scale_log2, float *rescale) {
  const int lane = threadIdx.x % 32, t = lane % 4;
  float s[2][4] = {};
  {
    const int row = lane % 8 + (lane / 16) * 8, half = lane / 8 % 2;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
      uint32_t b[4];
      load_matrix(b, tile + swizzled<D>(row, 2 * k + half));
      mma16816(s[0], q.a[k][0], 0, q.a[k][1], 0, b[0], b[1]);
      mma16816(s[1], q.a[k][0], 0, q.a[k][1], 0, b[2], b[3]);
    }
  }
  float p[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int token = (i / 2) * 8 + 2 * t + i % 2;
    p[i] = token < rows ? s[i / 2][i % 2] * scale_log2 : -INFINITY;
  }
  float top = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3]));
  top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
  top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
  top = fmaxf(top, state.m);
  const float ref = top == -INFINITY ? 0 : top;
  const float alpha = exp2_fast(state.m - ref);
  state.m = top;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    p[i] = exp2_fast(p[i] - ref);
    sum += p[i];
  }
  state.l = state.l * alpha + sum;
  if (__any_sync(~0u, alpha != 1)) {
#pragma unroll
    for (int n = 0; n < D / 8; n++) state.o[n][0] *= alpha, state.o[n][1] *= alpha;
  }
  const uint32_t a0 = pack(p[0], p[1]), a2 = pack(p[2], p[3]);
  const uint32_t values = tile + kTileTokens * D * 2;
  const int row = lane % 8 + (lane / 8 % 2) * 8, half = lane / 16;
#pragma unroll
  for (int n = 0; n < D / 16; n++) {
    uint32_t b[4];
    load_matrix_transposed(b, values + swizzled<D>(row, 2 * n + half));
    mma16816(state.o[2 * n], a0, 0, a2, 0, b[0], b[1]);
    mma16816(state.o[2 * n + 1], a0, 0, a2, 0, b[2], b[3]);
  }
  *rescale = alpha;
  return sum;
}

__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// The warps' softmaxes in shared memory, to be merged by the whole CTA:
//   M = max_w m_w      L = sum_w l_w exp(m_w - M)      O = sum_w O_w exp(m_w - M)
template <int D, int kWarps>
struct Merge {
  float o[kWarps][kGroupMax][D];
  float m[kWarps][kGroupMax];
  float l[kWarps][kGroupMax];

  __device__ void put(int warp, const Softmax<D> &state) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const float sum = quad_sum(state.l);
    if (t == 0) m[warp][g] = state.m, l[warp][g] = sum;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<float2 *>(&o[warp][g][8 * n + 2 * t]) =
          make_float2(state.o[n][0], state.o[n][1]);
  }

  __device__ float top(int row) const {
    float best = m[0][row];
#pragma unroll
    for (int w = 1; w < kWarps; w++) best = fmaxf(best, m[w][row]);
    return best;
  }

  // Sum and one output value of a row, relative to exp2(ref).
  __device__ void get(int row, int d, float ref, float *sum, float *value) const {
    *sum = *value = 0;
#pragma unroll
    for (int w = 0; w < kWarps; w++) {
      const float weight = exp2_fast(m[w][row] - ref);
      *sum += weight * l[w][row];
      *value += weight * o[w][row][d];
    }
  }
};

// Three stages a ring where two CTAs of four such rings fit an SM (H100, H200), two on smaller
// parts (A100). -DSS_SHALLOW_RINGS builds for every GPU what the smaller parts run, so that a large
// one can check it.
inline bool deep_rings(const Limits &found) {
#ifdef SS_SHALLOW_RINGS
  return found.shared_sm_bytes < 0;
#else
  return found.shared_sm_bytes >= 200 << 10;
#endif
}

inline int check_heads(int heads_q, int heads_kv, int head_dim, int block_tokens) {
  SS_NEED(heads_kv > 0 && heads_q > 0 && heads_q % heads_kv == 0);
  SS_NEED(heads_q / heads_kv <= kGroupMax);
  SS_NEED(head_dim == 64 || head_dim == 128);
  SS_NEED(block_tokens > 0 && block_tokens % kTileTokens == 0 && block_tokens <= 1024);
  return SS_OK;
}

}  // namespace ss
