// Swap-in of the hot buffers of token-level sparse attention (HiSparse): one launch a layer finds
// which selected tokens are in a request's buffer, evicts the least recently used rows for the
// others and gathers those from pinned host memory. The CPU does not wait for any of it.
//
// A CTA serves one request. The selected tokens go to a hash table in shared memory; the buffer's
// slots are walked from the least to the most recently used one, 32 a warp at a time, and each
// asks the table for its token. Slots that hold no selected token are victims in that order. A
// count of hits by warp, as in lookup.cu, numbers them, so that the outcome does not depend on
// the order in which warps run.
#include "common.cuh"
#include "copy_blocks.cuh"

namespace ss {

constexpr int kSwapThreads = 1024;
constexpr int kSwapWarps = kSwapThreads / 32;
// Accesses of 16 bytes that a thread has in flight: 128 KiB a CTA, which fill a link of 55 GB/s
// with a latency of 2 us even when one request is alone.
constexpr int kSwapFlight = 8;

// Shared memory of a CTA: the table of 2^bits keys and what is at them, then the arrays below.
struct SwapShape {
  int entries;  // most selected tokens of a request, its newest included
  int slots, bits;

  explicit SwapShape(const ss_swap_in_args &a) : entries(a.stride + 1), slots(a.slots), bits(5) {
    while (2 << bits < 3 * entries) bits++;
  }
  // keys, which become the tokens to load; indices of keys, found slots, victims; order
  int bytes() const { return (6 << bits) + 2 * (2 * entries + slots); }
};

__device__ inline uint32_t swap_hash(int token, int bits) {
  return uint32_t(token) * 2654435769u >> (32 - bits);
}

// The index of a selected token, -1 of others.
__device__ inline int swap_find(const int *key, const uint16_t *index, int bits, int token) {
  if (token < 0) return -1;
  for (uint32_t h = swap_hash(token, bits);; h = (h + 1) & ((1u << bits) - 1)) {
    if (key[h] == token) return index[h];
    if (key[h] < 0) return -1;
  }
}

// Sums over the warps before this one, and over all; sums[] has one of each warp.
__device__ inline void swap_sum(const int *sums, int warp, int *before, int *all) {
  *before = *all = 0;
  for (int w = 0; w < kSwapWarps; w++) {
    if (w < warp) *before += sums[w];
    *all += sums[w];
  }
}

// Copies the new row of a request to its slot, and to the host.
__device__ inline void swap_fresh(const ss_swap_in_args &a, int request, int slot, int context) {
  const int token = context - 1, pieces = a.row_bytes / 16;
  const auto *from = static_cast<const uint4 *>(a.fresh) + int64_t(request) * pieces;
  auto *to = reinterpret_cast<uint4 *>(a.buffer[request] + uint64_t(slot) * uint64_t(a.row_bytes));
  auto *host = reinterpret_cast<uint4 *>(
      a.page[int64_t(request) * a.page_stride + token / a.page_tokens] + uint64_t(a.offset) +
      uint64_t(token % a.page_tokens) * uint64_t(a.row_bytes));
  for (int i = threadIdx.x; i < pieces; i += kSwapThreads) {
    const uint4 v = from[i];
    to[i] = v;
    host[i] = v;
  }
}

// Loads rows from the host, token[i] to slot[i] for i < n, but for that of the newest token.
__device__ inline void swap_gather(const ss_swap_in_args &a, int request, const int *token,
                                   const uint16_t *slot, int n, int newest) {
  const int pieces = a.row_bytes / 16, all = n * pieces;
  const uint64_t *page = a.page + int64_t(request) * a.page_stride;
  const uint64_t buffer = a.buffer[request];
  for (int first = threadIdx.x; first < all; first += kSwapFlight * kSwapThreads) {
    uint4 value[kSwapFlight];
    uint64_t to[kSwapFlight];
#pragma unroll
    for (int j = 0; j < kSwapFlight; j++) {
      const int at = first + j * kSwapThreads, row = at / pieces;
      to[j] = 0;
      if (at >= all) continue;
      const int t = token[row];
      if (t == newest) continue;
      const uint64_t byte = uint64_t(at - row * pieces) * 16;
      to[j] = buffer + uint64_t(slot[row]) * uint64_t(a.row_bytes) + byte;
      value[j] = load_streaming(reinterpret_cast<const void *>(
          page[t / a.page_tokens] + uint64_t(a.offset) +
          uint64_t(t % a.page_tokens) * uint64_t(a.row_bytes) + byte));
    }
#pragma unroll
    for (int j = 0; j < kSwapFlight; j++)
      if (to[j] != 0) *reinterpret_cast<uint4 *>(to[j]) = value[j];
  }
}

__global__ void __launch_bounds__(kSwapThreads) swap_in_kernel(ss_swap_in_args a, SwapShape s) {
  extern __shared__ int shared[];
  __shared__ int sums[kSwapWarps];
  __shared__ bool listed;
  __shared__ int fresh_slot, fresh_missed;
  const int request = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned below = (1u << lane) - 1;
  const int context = a.context[request], newest = context - 1;
  const int32_t *list = a.list + int64_t(request) * a.stride;
  int32_t *out = a.slot + int64_t(request) * a.stride;
  int n = a.count[request];

  if (context <= s.slots) {  // token t is in slot t
    for (int i = threadIdx.x; i < n; i += kSwapThreads) out[i] = list[i];
    if (threadIdx.x == 0) a.misses[request] = 0;
    swap_fresh(a, request, newest, context);
    return;
  }

  int *key = shared;
  auto *index = reinterpret_cast<uint16_t *>(key + (1 << s.bits));
  uint16_t *found = index + (1 << s.bits), *victim = found + s.entries;
  uint16_t *order = victim + s.entries;  // of the buffer's slots, as this call finds it
  constexpr uint16_t kNone = 0xffff;
  auto *token = reinterpret_cast<int32_t *>(a.state[request]);
  int32_t *rank = token + s.slots;

  for (int i = threadIdx.x; i < (1 << s.bits); i += kSwapThreads) key[i] = -1;
  for (int i = threadIdx.x; i < s.entries; i += kSwapThreads) found[i] = kNone;
  for (int i = threadIdx.x; i < s.slots; i += kSwapThreads) order[i] = uint16_t(rank[i]);
  if (threadIdx.x == 0) listed = false;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += kSwapThreads)
    if (list[i] == newest) listed = true;
  __syncthreads();
  const int given = n;
  n += !listed;  // the newest token comes last where it is not selected
  for (int i = threadIdx.x; i < n; i += kSwapThreads) {
    const int t = i < given ? list[i] : newest;
    uint32_t h = swap_hash(t, s.bits);
    while (atomicCAS(&key[h], -1, t) != -1) h = (h + 1) & ((1u << s.bits) - 1);
    index[h] = uint16_t(i);
  }
  __syncthreads();

  // A warp has a run of the order. A rank is the place before, `hit` what is selected in it.
  const int per = (s.slots + kSwapThreads - 1) / kSwapThreads * 32;
  const int from = min(warp * per, s.slots), to = min(from + per, s.slots);
  int hits = 0;
  for (int first = from; first < to; first += 32) {
    const int p = first + lane;
    const int i = p < to ? swap_find(key, index, s.bits, token[order[p]]) : -1;
    if (i >= 0) found[i] = order[p];
    hits += __popc(__ballot_sync(~0u, i >= 0));
  }
  if (lane == 0) sums[warp] = hits;
  __syncthreads();
  int hit, all_hits;
  swap_sum(sums, warp, &hit, &all_hits);
  const int missing = n - all_hits, rest = s.slots - all_hits;
  // New order: what is left unselected, hits, then the loads in the order of the list.
  for (int first = from; first < to; first += 32) {
    const int p = first + lane;
    const bool yes = p < to && swap_find(key, index, s.bits, token[order[p]]) >= 0;
    const unsigned which = __ballot_sync(~0u, yes);
    const int h = hit + __popc(which & below), other = p - h;
    if (yes)
      rank[rest - missing + h] = order[p];
    else if (p < to && other < missing)
      victim[other] = order[p];
    else if (p < to)
      rank[other - missing] = order[p];
    hit += __popc(which);
  }
  __syncthreads();

  // Misses in the order of the list; a warp has a run of it. The table of keys is free now.
  const int run = (n + kSwapThreads - 1) / kSwapThreads * 32;
  const int begin = min(warp * run, n), end = min(begin + run, n);
  int count = 0;
  for (int first = begin; first < end; first += 32) {
    const int i = first + lane;
    count += __popc(__ballot_sync(~0u, i < end && found[i] == kNone));
  }
  if (lane == 0) sums[warp] = count;
  __syncthreads();
  int miss, all;
  swap_sum(sums, warp, &miss, &all);
  for (int first = begin; first < end; first += 32) {
    const int i = first + lane;
    const bool yes = i < end && found[i] == kNone;
    const unsigned which = __ballot_sync(~0u, yes);
    if (i < end) {
      int slot = found[i];
      if (yes) {
        const int m = miss + __popc(which & below), t = i < given ? list[i] : newest;
        slot = victim[m];
        key[m] = t;
        token[slot] = t;
        rank[s.slots - missing + m] = slot;
      }
      if (i < given) out[i] = slot;
      if (i == given || list[i] == newest) fresh_slot = slot, fresh_missed = yes;
    }
    miss += __popc(which);
  }
  __syncthreads();
  if (threadIdx.x == 0) a.misses[request] = missing - fresh_missed;
  swap_fresh(a, request, fresh_slot, context);
  swap_gather(a, request, key, victim, missing, newest);
}

}  // namespace ss

extern "C" int ss_swap_in(const ss_swap_in_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->batch > 0 && args->stride > 0 && args->stride <= SS_TOPK_MAX);
  SS_NEED(args->slots > args->stride && args->slots <= SS_SLOTS_MAX);
  SS_NEED(args->row_bytes > 0 && args->row_bytes % 16 == 0 && args->row_bytes <= (1 << 16));
  SS_NEED(args->page_stride > 0 && args->page_tokens > 0 && args->offset >= 0 &&
          args->offset % 16 == 0);
  SS_NEED(args->list != nullptr && args->count != nullptr && args->context != nullptr &&
          args->page != nullptr && args->buffer != nullptr && args->state != nullptr);
  SS_NEED(args->fresh != nullptr && args->slot != nullptr && args->misses != nullptr);
  const ss::SwapShape shape(*args);
  SS_TRY(ss::allow_shared<ss::swap_in_kernel>(shape.bytes()));
  ss::swap_in_kernel<<<args->batch, ss::kSwapThreads, shape.bytes(), ss::stream_of(stream)>>>(
      *args, shape);
  return ss::check(cudaGetLastError(), "swap_in_kernel");
}
