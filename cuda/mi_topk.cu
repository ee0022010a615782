// The k largest of up to millions of scores, many CTAs a row (ss_mi_topk_args in sparseserve.h).
//
// Order is total: larger score first, equal scores by lower index, so the answer never depends on
// timing. The k-th largest key is found digit by digit, 11, 11 and 10 bits: a pass counts the keys
// that share the digits found so far by their next one. Then the chosen keys of each chunk are
// counted, and written in the order of their indices.
#include "mi_scan.cuh"
#include "topk.cuh"

namespace ss {

constexpr int kBins = 2048;
constexpr int kChunk = 4096;  // scores of a CTA
constexpr int kSelectThreads = kScanThreads;

struct Selection {
  ss_mi_topk_args a;
  int chunks;
  uint32_t *bins;  // [rows][3][kBins]
  uint32_t *sums;  // [rows][chunks] chosen for sure, then [rows][chunks] equal to the k-th
};

__device__ inline uint32_t selection_key(const Selection &s, int row, int i) {
  return i < s.a.first ? kForced : key_of(s.a.scores[row * s.a.score_stride + i]);
}

__device__ constexpr int digit_shift(int pass) { return pass == 0 ? 21 : pass == 1 ? 10 : 0; }

// The digits found by passes 0 .. passes - 1: the keys that share them, and how many of those are
// wanted.
struct Found {
  uint32_t prefix, wanted;
};

__device__ inline Found found_digits(const Selection &s, int row, int passes) {
  __shared__ uint32_t digit, above;
  constexpr int kEach = kBins / kSelectThreads;
  Found f = {0, uint32_t(s.a.k)};
  for (int pass = 0; pass < passes; pass++) {
    // Thread t has the bins from the top.
    const uint32_t *bins = s.bins + (int64_t(row) * 3 + pass) * kBins;
    uint32_t mine[kEach], sum = 0, all;
    for (int j = 0; j < kEach; j++) sum += mine[j] = bins[kBins - 1 - (threadIdx.x * kEach + j)];
    uint32_t before = scan(sum, &all);
    for (int j = 0; j < kEach; j++) {
      if (before < f.wanted && before + mine[j] >= f.wanted)
        digit = kBins - 1 - (threadIdx.x * kEach + j), above = before;
      before += mine[j];
    }
    __syncthreads();
    f.prefix |= digit << digit_shift(pass);
    f.wanted -= above;
    __syncthreads();
  }
  return f;
}

template <int kPass>
__global__ void __launch_bounds__(kSelectThreads) digit_kernel(Selection s) {
  __shared__ uint32_t bins[kBins];
  const int row = blockIdx.y, end = min(s.a.n, (int(blockIdx.x) + 1) * kChunk);
  for (int b = threadIdx.x; b < kBins; b += kSelectThreads) bins[b] = 0;
  const Found f = found_digits(s, row, kPass);
  __syncthreads();
  constexpr int kShift = digit_shift(kPass);
  constexpr uint32_t kSame = kPass == 0 ? 0 : ~0u << digit_shift(kPass == 0 ? 0 : kPass - 1);
#pragma unroll 4
  for (int i = blockIdx.x * kChunk + threadIdx.x; i < end; i += kSelectThreads) {
    const uint32_t key = selection_key(s, row, i);
    if ((key & kSame) == (f.prefix & kSame))
      atomicAdd(&bins[key >> kShift & (kBins - 1) & (kPass == 2 ? 1023 : ~0)], 1);
  }
  __syncthreads();
  uint32_t *out = s.bins + (int64_t(row) * 3 + kPass) * kBins;
  for (int b = threadIdx.x; b < kBins; b += kSelectThreads)
    if (bins[b] != 0) atomicAdd(out + b, bins[b]);
}

__global__ void __launch_bounds__(kSelectThreads) count_kernel(Selection s) {
  const int row = blockIdx.y, end = min(s.a.n, (int(blockIdx.x) + 1) * kChunk);
  const Found f = found_digits(s, row, 3);
  uint32_t counts = 0, all;  // above the k-th key; equal to it from bit 16 on
  for (int i = blockIdx.x * kChunk + threadIdx.x; i < end; i += kSelectThreads) {
    const uint32_t key = selection_key(s, row, i);
    counts += (key > f.prefix ? 1 : 0) + (key == f.prefix ? 1 << 16 : 0);
  }
  scan(counts, &all);
  if (threadIdx.x == 0) {
    s.sums[int64_t(row) * s.chunks + blockIdx.x] = all & 0xffff;
    s.sums[int64_t(s.a.rows + row) * s.chunks + blockIdx.x] = all >> 16;
  }
}

__global__ void __launch_bounds__(kSelectThreads) write_kernel(Selection s) {
  const int row = blockIdx.y, chunk = blockIdx.x, end = min(s.a.n, (chunk + 1) * kChunk);
  const Found f = found_digits(s, row, 3);
  uint32_t above = 0, equal = 0, x = 0, y = 0;  // of all chunks before
  for (int c = threadIdx.x; c < chunk; c += kSelectThreads) {
    x += s.sums[int64_t(row) * s.chunks + c];
    y += s.sums[int64_t(s.a.rows + row) * s.chunks + c];
  }
  scan(x, &above);
  scan(y, &equal);
  int32_t *list = s.a.list + row * s.a.list_stride;
  for (int first = chunk * kChunk; first < end; first += kSelectThreads) {
    const int i = first + threadIdx.x;
    const uint32_t key = i < end ? selection_key(s, row, i) : 0;
    const bool more = i < end && key > f.prefix, same = i < end && key == f.prefix;
    uint32_t all;
    const uint32_t before = scan((more ? 1 : 0) + (same ? 1 << 16 : 0), &all);
    const uint32_t rank = equal + (before >> 16);
    if (more || (same && rank < f.wanted))
      list[above + (before & 0xffff) + min(rank, f.wanted)] = i;
    above += all & 0xffff, equal += all >> 16;
  }
}

static int64_t selection_bytes(const ss_mi_topk_args &a) {
  return int64_t(a.rows) * (3 * kBins + 2 * ceil_div(a.n, kChunk)) * 4;
}

static int check_mi_topk(const ss_mi_topk_args *a) {
  SS_NEED(a != nullptr);
  SS_NEED(a->rows > 0 && a->n > 0 && a->k > 0 && a->k <= a->n && a->first >= 0);
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_mi_topk_workspace(const ss_mi_topk_args *args, int64_t *bytes) {
  SS_TRY(ss::check_mi_topk(args));
  SS_NEED(bytes != nullptr);
  *bytes = ss::selection_bytes(*args);
  return SS_OK;
}

extern "C" int ss_mi_topk(const ss_mi_topk_args *args, ss_stream stream) {
  SS_TRY(ss::check_mi_topk(args));
  SS_NEED(args->scores != nullptr && args->list != nullptr && args->workspace != nullptr);
  SS_NEED(args->score_stride >= args->n && args->list_stride >= args->k);
  ss::Selection s = {*args, ss::ceil_div(args->n, ss::kChunk),
                     static_cast<uint32_t *>(args->workspace), nullptr};
  s.sums = s.bins + int64_t(args->rows) * 3 * ss::kBins;
  const cudaStream_t on = ss::stream_of(stream);
  const dim3 grid(unsigned(s.chunks), unsigned(args->rows));
  SS_CUDA(cudaMemsetAsync(s.bins, 0, size_t(args->rows) * 3 * ss::kBins * 4, on));
  ss::digit_kernel<0><<<grid, ss::kSelectThreads, 0, on>>>(s);
  ss::digit_kernel<1><<<grid, ss::kSelectThreads, 0, on>>>(s);
  ss::digit_kernel<2><<<grid, ss::kSelectThreads, 0, on>>>(s);
  ss::count_kernel<<<grid, ss::kSelectThreads, 0, on>>>(s);
  ss::write_kernel<<<grid, ss::kSelectThreads, 0, on>>>(s);
  return ss::check(cudaGetLastError(), "write_kernel");
}
