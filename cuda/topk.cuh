// The k largest of n scores, in order, by one CTA with the scores in shared memory.
//
// Order is total: larger score first, equal scores by lower index, so the answer never depends on timing. Scores become unsigned keys whose
// order is the scores' order; four passes over 8-bit digits find the k-th largest key (radix select); those above it and the first of
// those equal to it are gathered, then sorted.
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kTopkThreads = 512;
constexpr uint32_t kForced = 0xffffffffu;  // above the key of any score, +inf included

__device__ inline uint32_t key_of(float score) {
  const uint32_t bits = __float_as_uint(score + 0.0f);  // -0 becomes +0: they are equal scores
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Shared memory of one CTA: key[n], then chosen[k].
struct TopkSpace {
  uint32_t *key;
  unsigned long long *chosen;  // key << 32 | ~index: larger is better
};

inline int64_t topk_space_bytes(int64_t n, int k) { return (n * 4 + 7) / 8 * 8 + int64_t(k) * 8; }

__device__ inline TopkSpace topk_space(char *shared, int n) {
  TopkSpace s;
  s.key = reinterpret_cast<uint32_t *>(shared);
  s.chosen = reinterpret_cast<unsigned long long *>(shared + (int64_t(n) * 4 + 7) / 8 * 8);
  return s;
}

// The k-th largest key; *need of the keys equal to it belong to the k largest, of *equal in all. 0 < k <= n.
__device__ inline uint32_t kth_key(const uint32_t *key, int n, int k, int *need, int *equal) {
  __shared__ int bins[256];
  __shared__ int found_bin, found_above;
  uint32_t prefix = 0, mask = 0;
  int left = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kTopkThreads) bins[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += kTopkThreads)
      if ((key[i] & mask) == prefix) atomicAdd(&bins[key[i] >> shift & 255], 1);
    __syncthreads();
    if (threadIdx.x < 32) {  // lane j has bins 255 - 8 j downwards; the bin that holds the left-th key from the top is the digit
      const int lane = threadIdx.x, high = 255 - 8 * lane;
      int mine = 0;
      for (int j = 0; j < 8; j++) mine += bins[high - j];
      int upto = mine;
      for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(~0u, upto, d);
        if (lane >= d) upto += other;
      }
      int above = upto - mine;
      if (above < left && left <= upto) {
        int j = 0;
        while (above + bins[high - j] < left) above += bins[high - j], j++;
        found_bin = high - j;
        found_above = above;
      }
    }
    __syncthreads();
    left -= found_above;
    prefix |= uint32_t(found_bin) << shift;
    mask |= 255u << shift;
    *equal = bins[found_bin];
    __syncthreads();
  }
  *need = left;
  return prefix;
}

// Gathers keys above `limit` and the first `need` of those equal to it; the order is left to the sort. `taken` is shared and zero.
__device__ inline void gather_chosen(const TopkSpace &s, int n, uint32_t limit, int need, int equal, int *taken) {
  __shared__ int warp_equal[kTopkThreads / 32];
  int equal_before = 0;  // of the rounds so far
  for (int first = 0; first < n; first += kTopkThreads) {
    const int i = first + threadIdx.x;
    const uint32_t key = i < n ? s.key[i] : 0;
    bool take = i < n && key > limit;
    const bool same = i < n && key == limit;
    if (equal == need) {
      take |= same;
    } else {  // ties to break: rank the equal keys by index
      const unsigned votes = __ballot_sync(~0u, same);
      const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      if (lane == 0) warp_equal[warp] = __popc(votes);
      __syncthreads();
      int rank = equal_before + __popc(votes & ((1u << lane) - 1)), round = 0;
      for (int w = 0; w < kTopkThreads / 32; w++) {
        if (w < warp) rank += warp_equal[w];
        round += warp_equal[w];
      }
      equal_before += round;
      take |= same && rank < need;
      __syncthreads();
    }
    if (take) s.chosen[atomicAdd(taken, 1)] = (uint64_t(key) << 32) | uint32_t(~i);
  }
}

// Sorts chosen[0 .. k) downwards. Few: every element counts those above it. Many: bitonic network, elements past k count as zeros.
__device__ inline void write_sorted(const TopkSpace &s, int k, int32_t *list) {
  if (k <= 256) {
    constexpr int kSharers = 8;  // threads that count for one element
    for (int e = threadIdx.x / kSharers; e < (k + 3) / 4 * 4; e += kTopkThreads / kSharers) {
      const unsigned long long own = e < k ? s.chosen[e] : 0;
      int rank = 0;
      for (int j = threadIdx.x % kSharers; j < k; j += kSharers) rank += s.chosen[j] > own;
      for (int d = 1; d < kSharers; d *= 2) rank += __shfl_xor_sync(~0u, rank, d);
      if (e < k && threadIdx.x % kSharers == 0) list[rank] = int32_t(~uint32_t(own));
    }
    return;
  }
  int size = 512;
  while (size < k) size *= 2;
  for (int span = 2; span <= size; span *= 2)
    for (int step = span / 2; step > 0; step /= 2) {
      for (int i = threadIdx.x; i < size / 2; i += kTopkThreads) {
        // The first half of a merge of two runs compares mirrored partners, so that padding stays at the end and is never stored.
        const int low = i / step * 2 * step + i % step;
        const int high = step == span / 2 ? i / step * 2 * step + 2 * step - 1 - i % step : low + step;
        if (high < k && s.chosen[low] < s.chosen[high]) {
          const unsigned long long x = s.chosen[low];
          s.chosen[low] = s.chosen[high];
          s.chosen[high] = x;
        }
      }
      __syncthreads();
    }
  for (int i = threadIdx.x; i < k; i += kTopkThreads) list[i] = int32_t(~uint32_t(s.chosen[i]));
}

// Chooses from s.key[0 .. n), already filled and synchronised.
__device__ inline void topk_in_shared(const TopkSpace &s, int n, int k, int32_t *list, int32_t *count) {
  __shared__ int taken;
  k = min(k, n);
  if (threadIdx.x == 0) {
    *count = k;
    taken = 0;
  }
  if (k == 0) return;
  __syncthreads();
  if (k == n) {
    for (int i = threadIdx.x; i < n; i += kTopkThreads) s.chosen[i] = (uint64_t(s.key[i]) << 32) | uint32_t(~i);
  } else {
    int need, equal;
    const uint32_t limit = kth_key(s.key, n, k, &need, &equal);
    gather_chosen(s, n, limit, need, equal, &taken);
  }
  __syncthreads();
  write_sorted(s, k, list);
}

inline int check_topk(const ss_topk_args &a) {
  SS_NEED(a.units > 0);
  SS_NEED(a.k >= 0 && a.k <= SS_TOPK_MAX);
  SS_NEED(a.k <= a.list_stride);
  SS_NEED(a.sink >= 0 && a.window >= 0);
  SS_NEED(a.blocks != nullptr && a.list != nullptr && a.count != nullptr);
  return SS_OK;
}

}  // namespace ss
