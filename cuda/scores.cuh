// Criticality scores of one unit's blocks from their digests.
//
//   score_i = mean_h sum_d max(q_hd hi_id, q_hd lo_id)        h: query heads of the group, hi >= lo
//           = sum_d (mean_h max(q_hd, 0)) hi_id + (mean_h min(q_hd, 0)) lo_id
//
// The second form makes the group's mean part of the query: one dot product of length 2 D a block,
// whatever the group. It runs at the speed of the metadata's bytes: 16 bytes a lane, eight loads in
// flight.
#pragma once

#include "common.cuh"

namespace ss {

// The merged query, 8 of its 2 D values a lane: lane p holds piece p % (D / 4) of [mean max(q, 0),
// mean min(q, 0)].
template <int D>
struct MergedQuery {
  static constexpr int kLanes = D / 4;  // lanes of one digest
  float w[8];

  __device__ MergedQuery(const __half *q, int group) {
    const int piece = threadIdx.x % kLanes;
    const bool lower = piece >= D / 8;
    const __half *at = q + piece % (D / 8) * 8;
#pragma unroll
    for (int j = 0; j < 8; j++) w[j] = 0;
    for (int h = 0; h < group; h++)
#pragma unroll
      for (int j = 0; j < 8; j++) {
        const float x = __half2float(at[h * D + j]);
        w[j] += lower ? fminf(x, 0) : fmaxf(x, 0);
      }
#pragma unroll
    for (int j = 0; j < 8; j++) w[j] /= float(group);
  }

  __device__ float dot(uint4 digest) const {
    const __half2 *h = reinterpret_cast<const __half2 *>(&digest);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float2 x = __half22float2(h[j]);
      sum = fmaf(w[2 * j], x.x, sum);
      sum = fmaf(w[2 * j + 1], x.y, sum);
    }
    return sum;
  }
};

template <int D>
constexpr int kScoreBlocks = 8 * 128 / D;  // that a warp scores at once

// Scores blocks first .. first + kScoreBlocks, then those `step` further on, while below count;
// put(i, score) is called once for each. The first digests are on their way before the query is
// read, and the next before the last are summed.
template <int D, class Put>
__device__ inline void score_blocks(const __half *query, int group, const __half *meta, int first,
                                    int step, int count, Put put) {
  constexpr int kLanes = MergedQuery<D>::kLanes, kPerLoad = 32 / kLanes;
  const int lane = threadIdx.x % 32, sub = lane / kLanes, piece = lane % kLanes;
  uint4 digest[8];
  const auto load = [&](int from) {
#pragma unroll
    for (int r = 0; r < 8; r++) {
      const int block = from + r * kPerLoad + sub;
      digest[r] =
          block < count
              ? __ldg(reinterpret_cast<const uint4 *>(meta + int64_t(block) * 2 * D) + piece)
              : make_uint4(0, 0, 0, 0);
    }
  };
  load(first);
  const MergedQuery<D> q(query, group);
  for (; first < count; first += step) {
    float x[8];
#pragma unroll
    for (int r = 0; r < 8; r++) x[r] = q.dot(digest[r]);
    load(first + step);
    // Eight sums over kLanes lanes: each exchange halves the values a lane carries, so 4 + 2 + 1
    // shuffles instead of 3 x 8.
    int r = 0;
#pragma unroll
    for (int width = 4; width >= 1; width /= 2) {
      const int mask = kLanes / 8 * width;
      const bool upper = (lane & mask) != 0;
#pragma unroll
      for (int j = 0; j < width; j++) {
        const float keep = upper ? x[j + width] : x[j], give = upper ? x[j] : x[j + width];
        x[j] = keep + __shfl_xor_sync(~0u, give, mask);
      }
      if (upper) r += width;
    }
#pragma unroll
    for (int mask = kLanes / 16; mask >= 1; mask /= 2) x[0] += __shfl_xor_sync(~0u, x[0], mask);
    const int block = first + r * kPerLoad + sub;
    if (piece % (kLanes / 8) == 0 && block < count) put(block, x[0]);
  }
}

// CTAs that share a unit of max_blocks blocks: enough to fill the GPU, each warp with at least one
// round of kScoreBlocks.
inline int score_parts(int units, int max_blocks, int blocks_per_round, int resident_ctas) {
  const int rounds = ceil_div(max_blocks, blocks_per_round);
  const int wanted = ceil_div(resident_ctas, units);
  return wanted < rounds ? wanted : rounds;
}

inline int check_scores(const ss_scores_args &a) {
  SS_NEED(a.batch > 0 && a.max_blocks >= 0);
  SS_NEED(a.heads_kv > 0 && a.heads_q > 0 && a.heads_q % a.heads_kv == 0);
  SS_NEED(a.head_dim == 64 || a.head_dim == 128);
  SS_NEED(a.q != nullptr && a.meta != nullptr && a.first != nullptr && a.count != nullptr);
  return SS_OK;
}

}  // namespace ss
