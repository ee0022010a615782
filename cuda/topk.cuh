// The k largest of n scores, in order, by one CTA with the scores in shared memory.
//
// Order is total: larger score first, equal scores by lower index, so the answer never depends on
// timing. Scores become unsigned keys whose order is the scores' order; a search from the top bits,
// two at a time, narrows the k-th largest key by counting (no histogram: scores share their
// exponents, and a histogram's counters would be contended) until so few keys remain that all
// can be ranked, at the latest at the key itself; the keys above it and the first of those equal to
// it are gathered, then sorted.
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kTopkThreads = 256;
constexpr int kCandidates = 128;           // up to this number, ranking is cheaper than more passes
constexpr uint32_t kForced = 0xffffffffu;  // above the key of any score, +inf included

__device__ inline uint32_t key_of(float score) {
  const uint32_t bits = __float_as_uint(score + 0.0f);  // -0 becomes +0: they are equal scores
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Keys that may remain for the ranking.
__host__ __device__ inline int topk_cap(int k) { return k > kCandidates ? k : kCandidates; }

// Shared memory of one CTA: key[n], then chosen[topk_cap(k)].
struct TopkSpace {
  uint32_t *key;
  unsigned long long *chosen;  // key << 32 | ~index: larger is better
};

inline int64_t topk_space_bytes(int64_t n, int k) {
  return (n * 4 + 7) / 8 * 8 + int64_t(topk_cap(k)) * 8;
}

__device__ inline TopkSpace topk_space(char *shared, int n) {
  TopkSpace s;
  s.key = reinterpret_cast<uint32_t *>(shared);
  s.chosen = reinterpret_cast<unsigned long long *>(shared + (int64_t(n) * 4 + 7) / 8 * 8);
  return s;
}

// Three counters below 2^16 (shared memory holds fewer keys than that): the first two share a word,
// so that one reduction sums both.
struct Counts {
  unsigned low_mid, high;
  __device__ int low() const { return int(low_mid & 0xffff); }
  __device__ int mid() const { return int(low_mid >> 16); }
};

// Sums over the CTA, returned to all threads. `phase` alternates between calls, so that one barrier
// a call is enough.
__device__ inline Counts cta_sum(Counts x, int phase) {
  constexpr int kWarps = kTopkThreads / 32;
  __shared__ Counts sums[2][kWarps];
  const int lane = threadIdx.x % 32;
  x.low_mid = __reduce_add_sync(~0u, x.low_mid);
  x.high = __reduce_add_sync(~0u, x.high);
  if (lane == 0) sums[phase][threadIdx.x / 32] = x;
  __syncthreads();
  const Counts part = lane < kWarps ? sums[phase][lane] : Counts{0, 0};
  return Counts{__reduce_add_sync(~0u, part.low_mid), __reduce_add_sync(~0u, part.high)};
}

// A limit that at least k keys reach, and how many reach it: topk_cap(k) at most as a rule, and
// then the search ends early; more only where the k-th largest key itself, which the limit then is,
// occurs again. 0 < k <= n.
__device__ inline uint32_t kth_key(const uint32_t *key, int n, int k, int *reached) {
  constexpr int kHeld = 8;  // keys of a thread in registers: all of them up to 2048 blocks
  uint32_t held[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; j++) {
    const int i = threadIdx.x + j * kTopkThreads;
    held[j] = i < n ? key[i] : 0;  // 0 reaches no limit that is compared with
  }
  uint32_t limit = 0;
  int count = n, phase = 0;
  for (int shift = 30; shift >= 0 && count > topk_cap(k); shift -= 2, phase ^= 1) {
    const uint32_t step = 1u << shift;
    Counts mine = {0, 0};
    const auto compare = [&](uint32_t x) {
      mine.low_mid += x >= limit + step ? 1 : 0;
      mine.low_mid += x >= limit + 2 * step ? 1 << 16 : 0;
      mine.high += x >= limit + 3 * step ? 1 : 0;
    };
#pragma unroll
    for (int j = 0; j < kHeld; j++) compare(held[j]);
    for (int i = threadIdx.x + kHeld * kTopkThreads; i < n; i += kTopkThreads) compare(key[i]);
    const Counts total = cta_sum(mine, phase);
    const int high = int(total.high);
    const int digit = high >= k ? 3 : total.mid() >= k ? 2 : total.low() >= k ? 1 : 0;
    limit += uint32_t(digit) * step;
    if (digit > 0) count = digit == 3 ? high : digit == 2 ? total.mid() : total.low();
  }
  *reached = count;
  return limit;
}

// Gathers the k largest keys in any order, given kth_key's answer, and returns how many: all
// candidates where they are no more than topk_cap(k). `taken` is shared and zero.
__device__ inline int gather_chosen(const TopkSpace &s, int n, int k, uint32_t limit, int reached,
                                    int *taken) {
  __shared__ int warp_equal[kTopkThreads / 32];
  const bool ties = reached > topk_cap(k);
  int wanted = 0;  // of the keys equal to limit, when not all are
  if (ties) {
    Counts above = {0, 0};
    for (int i = threadIdx.x; i < n; i += kTopkThreads) above.high += s.key[i] > limit ? 1 : 0;
    __syncthreads();  // cta_sum's buffers are free again
    wanted = k - int(cta_sum(above, 0).high);
  }
  int equal_before = 0;  // of the rounds so far
  const int lane = threadIdx.x % 32;
#pragma unroll 4
  for (int first = 0; first < n; first += kTopkThreads) {
    const int i = first + threadIdx.x;
    const uint32_t key = i < n ? s.key[i] : 0;
    bool chosen = i < n && key >= limit;
    if (ties) {  // rank the equal keys by index
      const bool same = i < n && key == limit;
      const unsigned votes = __ballot_sync(~0u, same);
      const int warp = threadIdx.x / 32;
      if (lane == 0) warp_equal[warp] = __popc(votes);
      __syncthreads();
      int rank = equal_before + __popc(votes & ((1u << lane) - 1)), round = 0;
      for (int w = 0; w < kTopkThreads / 32; w++) {
        if (w < warp) rank += warp_equal[w];
        round += warp_equal[w];
      }
      equal_before += round;
      chosen &= !same || rank < wanted;
      __syncthreads();
    }
    const unsigned chosen_lanes = __ballot_sync(~0u, chosen);
    int place = 0;  // one addition a warp
    if (lane == 0 && chosen_lanes != 0) place = atomicAdd(taken, __popc(chosen_lanes));
    place = __shfl_sync(~0u, place, 0) + __popc(chosen_lanes & ((1u << lane) - 1));
    if (chosen) s.chosen[place] = (uint64_t(key) << 32) | uint32_t(~i);
  }
  return ties ? k : reached;
}

// Writes the k largest of chosen[0 .. m) downwards; m is k where k > 256. Up to 256: every element
// counts those above it. More: bitonic network, elements past k count as zeros.
__device__ inline void write_sorted(const TopkSpace &s, int m, int k, int32_t *list) {
  if (k <= 256) {
    constexpr int kSharers = 8;  // threads that count for one element
    for (int e = threadIdx.x / kSharers; e < (m + 3) / 4 * 4; e += kTopkThreads / kSharers) {
      const unsigned long long own = e < m ? s.chosen[e] : 0;
      int rank = 0;
#pragma unroll 8
      for (int j = threadIdx.x % kSharers; j < m; j += kSharers) rank += s.chosen[j] > own;
      for (int d = 1; d < kSharers; d *= 2) rank += __shfl_xor_sync(~0u, rank, d);
      if (e < m && rank < k && threadIdx.x % kSharers == 0) list[rank] = int32_t(~uint32_t(own));
    }
    return;
  }
  int size = 512;
  while (size < k) size *= 2;
  for (int span = 2; span <= size; span *= 2)
    for (int step = span / 2; step > 0; step /= 2) {
      for (int i = threadIdx.x; i < size / 2; i += kTopkThreads) {
        // The first half of a merge of two runs compares mirrored partners, so that padding stays
        // at the end and is never stored.
        const int low = i / step * 2 * step + i % step;
        const int high =
            step == span / 2 ? i / step * 2 * step + 2 * step - 1 - i % step : low + step;
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
__device__ inline void topk_in_shared(const TopkSpace &s, int n, int k, int32_t *list,
                                      int32_t *count) {
  __shared__ int taken;
  k = min(k, n);
  if (threadIdx.x == 0) {
    *count = k;
    taken = 0;
  }
  if (k == 0) return;
  __syncthreads();
  int chosen = k;
  if (k == n) {
    for (int i = threadIdx.x; i < n; i += kTopkThreads)
      s.chosen[i] = (uint64_t(s.key[i]) << 32) | uint32_t(~i);
  } else {
    int reached;
    const uint32_t limit = kth_key(s.key, n, k, &reached);
    chosen = gather_chosen(s, n, k, limit, reached, &taken);
  }
  __syncthreads();
  write_sorted(s, chosen, k, list);
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
