// Vertical and slash lines become the blocks and columns of each tile of queries (ss_mi_lines_args
// in sparseserve.h; MInference's Algorithm 4).
//
// First a thread merges the slash lines of one half of a tile, 64 queries, to ranges of whole
// blocks: all rows at once, the lines in shared memory. Then a CTA a tile parts both halves'
// blocks by who sees them, and keeps the vertical lines that no block covers.
#include "mi.cuh"

namespace ss {

constexpr int kLinesThreads = 128;

struct Lines {
  ss_mi_lines_args a;
  int tiles, half_stride;  // blocks of a half's list, at most
};

// Entries of an ascending list that are at most x.
__device__ inline int at_most(const int32_t *list, int n, int x) {
  int low = 0;
  while (n > 0) {
    const int half = n / 2;
    if (list[low + half] <= x)
      low += half + 1, n -= half + 1;
    else
      n = half;
  }
  return low;
}

// Blocks of the ranges of one half, whose last query is at `end` - 1. Line s has the keys from end
// - 64 - s on for 64 keys, the first 64 at least; a range grows by whole blocks while the next line
// ends at most a block past it. Returns how many; slash is ascending.
__device__ inline int merge_slashes(const int32_t *slash, int count, int end, int32_t *blocks) {
  int at = at_most(slash, count, end - 1) - 1, n = 0;  // the farthest line that crosses the half
  if (at < 0) return 0;
  int stop = max(end - slash[at], kMiBlock);
  blocks[n++] = stop - kMiBlock;
  const auto stop_of = [&](int i) { return max(end - slash[i], kMiBlock); };
  const auto covered = [&](int more) { return at >= more && stop_of(at - more) <= stop; };
  for (at--; at >= 0;) {
    const int next = stop_of(at);
    if (next <= stop) {  // where lines are dense, most are passed by many at a time
      at -= covered(63) ? 64 : covered(15) ? 16 : covered(3) ? 4 : 1;
      continue;
    }
    stop = next > stop + kMiBlock ? next : stop + kMiBlock;
    blocks[n++] = stop - kMiBlock;
    at--;
  }
  return n;
}

__global__ void __launch_bounds__(kLinesThreads) slash_kernel(Lines l) {
  extern __shared__ int32_t slash[];
  const ss_mi_lines_args &a = l.a;
  const int head = blockIdx.y, row = blockIdx.x * kLinesThreads + threadIdx.x;
  for (int i = threadIdx.x; i < a.slash_count; i += kLinesThreads)
    slash[i] = a.slash[head * a.slash_stride + i];
  __syncthreads();
  if (row >= 2 * l.tiles) return;
  const int64_t tile = int64_t(head) * l.tiles + row / 2;
  int32_t *blocks = a.blocks + tile * a.block_stride + row % 2 * l.half_stride;
  const bool there = row * kMiBlock < a.q_tokens;
  a.counts[tile * 4 + row % 2] =
      there ? merge_slashes(slash, a.slash_count, a.prefix + (row + 1) * kMiBlock, blocks) : 0;
}

__device__ inline bool covered(const int32_t *blocks, int n, int key) {
  const int i = at_most(blocks, n, key);
  return i > 0 && key < blocks[i - 1] + kMiBlock;
}

// Writes the entries that `keep` keeps, in order; returns their number.
template <typename Keep, typename Entry>
__device__ inline int compact(int n, int32_t *out, Keep keep, Entry entry) {
  __shared__ int warps[kLinesThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int written = 0;
  for (int first = 0; first < n; first += kLinesThreads) {
    const int i = first + threadIdx.x;
    const bool kept = i < n && keep(i);
    const unsigned votes = __ballot_sync(~0u, kept);
    if (lane == 0) warps[warp] = __popc(votes);
    __syncthreads();
    int before = written + __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < kLinesThreads / 32; w++) {
      if (w < warp) before += warps[w];
      written += warps[w];
    }
    if (kept) out[before] = entry(i);
    __syncthreads();
  }
  return written;
}

__global__ void __launch_bounds__(kLinesThreads) parts_kernel(Lines l) {
  extern __shared__ int32_t shared[];
  const ss_mi_lines_args &a = l.a;
  const int head = blockIdx.y;
  const int64_t tile = int64_t(head) * l.tiles + blockIdx.x;
  int32_t *blocks = a.blocks + tile * a.block_stride, *counts = a.counts + tile * 4;
  const int n[2] = {counts[0], counts[1]};
  int32_t *half[2] = {shared, shared + n[0]};
  for (int h = 0; h < 2; h++)
    for (int i = threadIdx.x; i < n[h]; i += kLinesThreads)
      half[h][i] = blocks[h * l.half_stride + i];
  __syncthreads();
  const auto in = [&](int h, int start) {
    const int i = at_most(half[h], n[h], start);
    return i > 0 && half[h][i - 1] == start;
  };
  const int both = compact(
      n[0], blocks, [&](int i) { return in(1, half[0][i]); }, [&](int i) { return half[0][i]; });
  const int first = compact(
      n[0], blocks + both, [&](int i) { return !in(1, half[0][i]); },
      [&](int i) { return half[0][i]; });
  const int second = compact(
      n[1], blocks + both + first, [&](int i) { return !in(0, half[1][i]); },
      [&](int i) { return half[1][i]; });

  const int end = a.prefix + int(blockIdx.x) * kMiQueries;
  const int32_t *vertical = a.vertical + head * a.vertical_stride;
  const auto hidden = [&](int i) {  // by half, in bits 30 and 31
    unsigned bits = 0;
    for (int h = 0; h < 2; h++)
      bits |=
          unsigned(vertical[i] >= end + (h + 1) * kMiBlock || covered(half[h], n[h], vertical[i]))
          << (30 + h);
    return bits;
  };
  const int columns = compact(
      a.vertical_count, a.columns + tile * a.column_stride,
      [&](int i) { return hidden(i) != 3u << 30; },
      [&](int i) { return int32_t(hidden(i) | unsigned(vertical[i])); });
  if (threadIdx.x == 0) *reinterpret_cast<int4 *>(counts) = make_int4(both, first, second, columns);
}

// Blocks of a half, at most: one per line, and no more than fit the context.
static int half_stride_of(const ss_mi_lines_args &a) {
  const int most = (a.prefix + a.q_tokens) / kMiBlock + 2;
  return a.slash_count < most ? a.slash_count : most;
}

}  // namespace ss

extern "C" int ss_mi_lines(const ss_mi_lines_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->heads_q > 0 && args->q_tokens > 0 && args->prefix >= 0 &&
          int64_t(args->q_tokens) + args->prefix <= ss::kNoBlock - ss::kMiQueries);
  SS_NEED(args->slash_count > 0 && args->vertical_count >= 0);
  SS_NEED(args->vertical_stride >= args->vertical_count && args->slash_stride >= args->slash_count);
  SS_NEED(args->vertical != nullptr && args->slash != nullptr && args->blocks != nullptr &&
          args->columns != nullptr && args->counts != nullptr);
  const ss::Lines l = {*args, ss::ceil_div(args->q_tokens, ss::kMiQueries),
                       ss::half_stride_of(*args)};
  SS_NEED(args->block_stride >= 2 * l.half_stride && args->column_stride >= args->vertical_count);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const int lines = args->slash_count * 4, blocks = 2 * l.half_stride * 4;
  if (lines > found.shared_bytes || blocks > found.shared_bytes)
    return ss::fail(SS_ERR_UNSUPPORTED, "ss_mi_lines: %d slash lines do not fit shared memory",
                    args->slash_count);
  SS_TRY(ss::allow_shared<ss::slash_kernel>(lines));
  SS_TRY(ss::allow_shared<ss::parts_kernel>(blocks));
  const cudaStream_t on = ss::stream_of(stream);
  ss::slash_kernel<<<dim3(unsigned(ss::ceil_div(2 * l.tiles, ss::kLinesThreads)),
                          unsigned(args->heads_q)),
                     ss::kLinesThreads, lines, on>>>(l);
  ss::parts_kernel<<<dim3(unsigned(l.tiles), unsigned(args->heads_q)), ss::kLinesThreads, blocks,
                     on>>>(l);
  return ss::check(cudaGetLastError(), "parts_kernel");
}
