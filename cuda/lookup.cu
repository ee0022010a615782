// Residency on the GPU: which of a layer's listed blocks are in HBM, which slots the others get,
// and where they are loaded from.
//
// Each request has a table in HBM with the slot of every block of every (layer, KV head) group. One
// kernel walks the layer's lists. A hit is one read of the table. Misses are numbered in the order
// of units and list entries and get the free slots in that order, so that the outcome is the CPU
// cache's, slot by slot; their tables are brought up to date and the addresses of their copies are
// written where the gather reads them. Blocks that lost those slots are removed from their tables.
// The CPU does not wait for any of it.
//
// A warp walks one unit after the other. Misses are counted first, then numbered: a CTA needs the
// counts of all CTAs before it, which are in flight at once, so it reads them all rather than
// waiting for its neighbour's sum (a look-back of one step). A count carries the call's number, so
// counts are not cleared between calls. CTAs wait for those with lower numbers, so there are no
// more than fit the smallest card at once.
#include "common.cuh"

namespace ss {

constexpr int kLookupThreads = 256;
constexpr int kLookupWarps = kLookupThreads / 32;
constexpr int kLookupCtas = 64;

// Workspace, zeroed once. After a call it is ready for the next one.
struct LookupState {
  // misses of each CTA, with the number of the call + 1 in the high half
  unsigned long long count[kLookupCtas];
  unsigned int calls;      // so far
  unsigned int finished;   // CTAs that are done
  unsigned int cursor[1];  // [rounds] loads that each has got
};

__device__ inline int round_of(const ss_lookup_args &a, int unit, int entry) {
  return a.first != nullptr && entry < a.first[unit] ? 0 : entry / a.micro;
}

// Where the places of a round's loads end.
__device__ inline int64_t end_of(const ss_lookup_args &a, int round) {
  return round + 1 < a.rounds ? a.before[round + 1] : a.frees;
}

// Gives the entry's block a slot and a place among the loads.
__device__ inline void miss(const ss_lookup_args &a, LookupState *state, int32_t *table, int unit,
                            int entry, int number) {
  const int64_t at = int64_t(unit) * a.stride + entry;
  const int block = a.list[at], row = unit / a.heads;
  // fewer free slots than misses are the caller's mistake: `loads` shows it
  const int slot = number < a.frees ? a.free_slot[number] : 0;
  a.slot[at] = slot;
  if (number >= a.frees) return;
  table[block] = slot + 1;
  int64_t load = number;
  if (a.before != nullptr) {
    const int round = round_of(a, unit, entry);
    if (round >= a.rounds) return;
    load = a.before[round] + atomicAdd(&state->cursor[round], 1u);
    if (load >= end_of(a, round)) return;  // more than the caller counts
  }
  a.src[load] = a.page[int64_t(row) * a.page_stride + block] +
                uint64_t(a.group + unit % a.heads) * uint64_t(a.block_bytes);
  a.dst[load] = a.pool + uint64_t(slot) * uint64_t(a.block_bytes);
}

__global__ void __launch_bounds__(kLookupThreads)
    lookup_kernel(ss_lookup_args a, int units_per_warp) {
  auto *state = static_cast<LookupState *>(a.state);
  __shared__ int warp_count[kLookupWarps];
  __shared__ int cta_before;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int units = a.batch * a.heads;
  const int from = (int(blockIdx.x) * kLookupWarps + warp) * units_per_warp;
  const int to = min(from + units_per_warp, units);

  // None of these is in the layer's lists: what a layer selects is not evicted for it.
  for (int i = blockIdx.x * kLookupThreads + threadIdx.x; i < a.evictions;
       i += gridDim.x * kLookupThreads)
    *reinterpret_cast<int32_t *>(a.evicted[i]) = 0;

  auto table_of = [&](int unit) {
    const int row = unit / a.heads;
    return reinterpret_cast<int32_t *>(a.table[row]) +
           int64_t(a.group + unit % a.heads) * a.cap[row];
  };
  int misses = 0;
  for (int unit = from; unit < to; unit++) {
    const int32_t *table = table_of(unit);
    const int n = a.named[unit];
    for (int entry = lane; entry < n; entry += 32) {
      const int64_t at = int64_t(unit) * a.stride + entry;
      const int slot = table[a.list[at]] - 1;
      a.slot[at] = slot;
      misses += slot < 0;
    }
  }
  for (int d = 16; d > 0; d /= 2) misses += __shfl_xor_sync(~0u, misses, d);
  if (lane == 0) warp_count[warp] = misses;
  if (threadIdx.x == 0) cta_before = 0;
  __syncthreads();

  int mine = 0, all = 0;
  for (int w = 0; w < kLookupWarps; w++) {
    if (w < warp) mine += warp_count[w];
    all += warp_count[w];
  }
  const unsigned call = *static_cast<volatile unsigned *>(&state->calls) + 1;
  if (threadIdx.x == 0)
    atomicExch(&state->count[blockIdx.x],
               static_cast<unsigned long long>(call) << 32 | unsigned(all));
  if (threadIdx.x < blockIdx.x) {  // there are fewer CTAs than threads
    unsigned long long v;
    do v = *static_cast<volatile unsigned long long *>(&state->count[threadIdx.x]);
    while ((v >> 32) != call);
    atomicAdd(&cta_before, int(unsigned(v)));
  }
  __syncthreads();

  int number = cta_before + mine;
  for (int unit = from; unit < to && misses > 0; unit++) {
    int32_t *table = table_of(unit);
    const int n = a.named[unit];
    for (int first = 0; first < n; first += 32) {
      const int entry = first + lane;
      const bool missing = entry < n && a.slot[int64_t(unit) * a.stride + entry] < 0;
      const unsigned which = __ballot_sync(~0u, missing);
      if (missing) miss(a, state, table, unit, entry, number + __popc(which & ((1u << lane) - 1)));
      number += __popc(which);
    }
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
    const int64_t n = cta_before + all;
    *a.loads = n < a.frees ? n : a.frees;  // those with an address
    if (a.misses != nullptr) *a.misses = n;
  }
  __syncthreads();
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&state->finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  // The caller loads each round by its own count. Where that is more than was missing, which is a
  // mistake that `misses` shows too late, the rest copies a free slot to itself.
  if (a.before != nullptr)
    for (int r = threadIdx.x; r < a.rounds; r += kLookupThreads) {
      const unsigned got = atomicExch(&state->cursor[r], 0u);
      for (int64_t i = a.before[r] + got; i < end_of(a, r); i++)
        a.src[i] = a.dst[i] = a.pool + uint64_t(a.free_slot[0]) * uint64_t(a.block_bytes);
    }
  if (threadIdx.x == 0) state->finished = 0, state->calls = call;
}

__global__ void __launch_bounds__(kLookupThreads) table_kernel(ss_table_args a) {
  for (int i = threadIdx.x; i < a.evictions; i += kLookupThreads)
    *reinterpret_cast<int32_t *>(a.evicted[i]) = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < a.entries; i += kLookupThreads)
    *reinterpret_cast<int32_t *>(a.entry[i]) = a.slot[i] + 1;
}

}  // namespace ss

extern "C" int ss_lookup_state(const ss_lookup_args *args, int64_t *bytes) {
  SS_NEED(args != nullptr && bytes != nullptr);
  SS_NEED(args->rounds >= 0);
  *bytes = int64_t(sizeof(ss::LookupState)) + int64_t(args->rounds) * int64_t(sizeof(unsigned int));
  return SS_OK;
}

extern "C" int ss_lookup(const ss_lookup_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->batch > 0 && args->heads > 0 && args->stride > 0 && args->group >= 0);
  SS_NEED(args->table != nullptr && args->cap != nullptr && args->list != nullptr &&
          args->named != nullptr && args->slot != nullptr);
  SS_NEED(args->page != nullptr && args->page_stride > 0 && args->block_bytes > 0);
  SS_NEED(args->frees >= 0 && (args->frees == 0 || args->free_slot != nullptr));
  SS_NEED(args->evictions >= 0 && (args->evictions == 0 || args->evicted != nullptr));
  SS_NEED(args->src != nullptr && args->dst != nullptr && args->loads != nullptr &&
          args->state != nullptr);
  SS_NEED(args->before == nullptr || (args->rounds > 0 && args->micro > 0));
  const int units = args->batch * args->heads;
  const int wanted = ss::ceil_div(units, ss::kLookupWarps);
  const int ctas = wanted < ss::kLookupCtas ? wanted : ss::kLookupCtas;
  ss::lookup_kernel<<<ctas, ss::kLookupThreads, 0, ss::stream_of(stream)>>>(
      *args, ss::ceil_div(units, ctas * ss::kLookupWarps));
  return ss::check(cudaGetLastError(), "lookup_kernel");
}

extern "C" int ss_table(const ss_table_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->evictions >= 0 && (args->evictions == 0 || args->evicted != nullptr));
  SS_NEED(args->entries >= 0 &&
          (args->entries == 0 || (args->entry != nullptr && args->slot != nullptr)));
  if (args->evictions == 0 && args->entries == 0) return SS_OK;
  ss::table_kernel<<<1, ss::kLookupThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "table_kernel");
}
