// Decode attention over paged KV blocks, dense or block-sparse (equation and shapes: sparseserve.h,
// ss_decode_args).
//
// A CTA works on pieces of units in sequence (pieces.cuh); its warps share a piece's blocks round
// robin and merge at the end. The pieces of a unit meet in the workspace, where the last to arrive
// merges them, in order: one launch does it all, and the same input gives the same bytes.
#include <algorithm>

#include "decode.cuh"
#include "pieces.cuh"

namespace ss {

// Workspace: a record for each CTA with the arrivals at the unit that begins there (the CTA is the
// `home` of at most one split unit), and two pieces: 0 of the unit that began in another CTA, 1
// of the one that begins here and ends elsewhere. A record's place depends on the heads only, so
// launches of other batches and contexts find their arrivals zero.
struct Partial {
  float *o;      // [group][D]
  float *m, *l;  // [group]
};

__host__ __device__ inline int64_t record_floats(int group, int head_dim) {
  return 4 + 2 * group * (head_dim + 2);
}

__device__ inline float *record_of(const DecodeShape &shape, int cta) {
  return static_cast<float *>(shape.a.workspace) +
         cta * record_floats(shape.group, shape.a.head_dim);
}

__device__ inline Partial partial_of(const DecodeShape &shape, int home, int part) {
  const int which = part == 0, rows = shape.group, values = rows * shape.a.head_dim;
  float *at = record_of(shape, home + part) + 4;
  float *maxima = at + 2 * values;
  return {at + which * values, maxima + which * rows, maxima + (2 + which) * rows};
}

// Writes one row's output value; lse is in natural log.
template <int D>
__device__ inline void finish(const ss_decode_args &a, int64_t head, int d, float m, float l,
                              float value) {
  static_cast<__half *>(a.out)[head * D + d] = __float2half(l > 0 ? value / l : 0);
  if (a.lse != nullptr && d == 0) a.lse[head] = l > 0 ? m / kLog2e + logf(l) : -INFINITY;
}

// Merges the pieces of a unit in the workspace. Each warp first weighs the pieces of its rows, a
// lane a piece, so that round trips to memory do not grow with the pieces.
template <int D>
__device__ inline void merge_pieces(const DecodeShape &shape, const Piece &piece, char *shared) {
  const int64_t head = int64_t(piece.unit) * shape.group;
  const int lane = threadIdx.x % 32, parts = piece.parts;
  // weights: [group][parts]
  float *tops = reinterpret_cast<float *>(shared), *sums = tops + kGroupMax,
        *weights = sums + kGroupMax;
  for (int row = threadIdx.x / 32; row < shape.group; row += kDecodeWarps) {
    float m = -INFINITY, l = 0;
    for (int part = lane; part < parts; part += 32) {
      const float mine = __ldcg(partial_of(shape, piece.home, part).m + row);
      weights[row * parts + part] = mine;
      m = fmaxf(m, mine);
    }
#pragma unroll
    for (int step = 16; step >= 1; step /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, step));
    const float ref = m == -INFINITY ? 0 : m;
    for (int part = lane; part < parts; part += 32) {
      const float weight = exp2_fast(weights[row * parts + part] - ref);
      weights[row * parts + part] = weight;
      l += weight * __ldcg(partial_of(shape, piece.home, part).l + row);
    }
#pragma unroll
    for (int step = 16; step >= 1; step /= 2) l += __shfl_xor_sync(~0u, l, step);
    if (lane == 0) tops[row] = m, sums[row] = l;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < shape.group * D / 4; i += blockDim.x) {
    const int row = i / (D / 4), d = 4 * (i % (D / 4));
    float4 o = make_float4(0, 0, 0, 0);
#pragma unroll 16
    for (int part = 0; part < parts; part++) {
      const float weight = weights[row * parts + part];
      const float4 add = __ldcg(
          reinterpret_cast<const float4 *>(partial_of(shape, piece.home, part).o + row * D + d));
      o.x += weight * add.x, o.y += weight * add.y, o.z += weight * add.z, o.w += weight * add.w;
    }
    finish<D>(shape.a, head + row, d, tops[row], sums[row], o.x);
    finish<D>(shape.a, head + row, d + 1, tops[row], sums[row], o.y);
    finish<D>(shape.a, head + row, d + 2, tops[row], sums[row], o.z);
    finish<D>(shape.a, head + row, d + 3, tops[row], sums[row], o.w);
  }
}

template <int D, int kStages>
__device__ inline void attend(const DecodeShape &shape, const Piece &piece, char *shared,
                              int (*valid_rows)[kStages], bool *last) {
  using Ring = TileRing<D, kStages>;
  const ss_decode_args &a = shape.a;
  const int group = shape.group, unit = piece.unit, warp = threadIdx.x / 32;
  const int64_t head = int64_t(unit) * group;  // first query head of the unit, over all requests

  BlockWalk walk;
  walk.context = a.context[piece.request];
  walk.pool = static_cast<const char *>(a.pool);
  walk.table = a.table + int64_t(a.pages ? piece.request : unit) * a.table_stride;
  walk.times = a.pages ? a.heads_kv : 1;
  walk.plus = a.pages ? unit % a.heads_kv : 0;
  walk.list = a.list != nullptr ? a.list + int64_t(unit) * a.list_stride : nullptr;
  walk.slots = a.slot != nullptr ? a.slot + int64_t(unit) * a.list_stride : nullptr;
  walk.block_tokens = a.block_tokens;
  walk.block_bytes = shape.block_bytes;
  walk.first = piece.first + warp;
  walk.step = kDecodeWarps;
  walk.end = piece.end;

  Softmax<D> state;
  {
    Ring ring(shared_address(shared) + warp * Ring::kBytes, valid_rows[warp], walk);
    const Query<D> q(static_cast<const __half *>(a.q) + head * D, group);
    const float scale_log2 = a.scale * kLog2e;
    const int tiles = ring.tiles();
    for (int tile = 0; tile < tiles; tile++) {
      int rows;
      float rescale;
      const uint32_t at = ring.next(tile, &rows);
      add_tile<D>(state, q, at, rows, scale_log2, &rescale);
    }
    ring.drain();
  }

  __syncthreads();  // the rings become the merge area
  auto &merge = *reinterpret_cast<Merge<D, kDecodeWarps> *>(shared);
  merge.put(warp, state);
  __syncthreads();

  const bool whole = piece.parts == 1;
  const Partial mine = whole ? Partial{} : partial_of(shape, piece.home, piece.part);
  for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
    const int row = i / D, d = i % D;
    const float m = merge.top(row);
    float l, value;
    merge.get(row, d, m == -INFINITY ? 0 : m, &l, &value);
    if (whole) {
      finish<D>(a, head + row, d, m, l, value);
      continue;
    }
    mine.o[i] = value;
    if (d == 0) mine.m[row] = m, mine.l[row] = l;
  }
  if (whole) return;

  __threadfence();  // this piece before its arrival
  __syncthreads();
  if (threadIdx.x == 0) {
    int *arrived = reinterpret_cast<int *>(record_of(shape, piece.home));
    *last = atomicAdd(arrived, 1) == piece.parts - 1;
    if (*last) *arrived = 0;  // ready for the next launch
  }
  __syncthreads();
  if (!*last) return;
  __threadfence();
  merge_pieces<D>(shape, piece, shared);
}

template <int D, int kStages>
__global__ void __launch_bounds__(kDecodeWarps * 32, 2) decode_kernel(DecodeShape shape) {
  extern __shared__ __align__(128) char shared[];
  __shared__ int valid_rows[kDecodeWarps][kStages];
  __shared__ bool last;
  Pieces pieces(shape);
  // The next piece's rings are where this one's merge area is.
  for (Piece piece; pieces.next(&piece); __syncthreads())
    attend<D, kStages>(shape, piece, shared, valid_rows, &last);
}

// Shared memory in which the pieces of a unit are weighed (merge_pieces), within the rings of every
// form.
constexpr int kMergeBytes = 64 << 10;

static int grid_of(const DecodeShape &shape) { return std::max(shape.ctas, shape.most); }

template <int D, int kStages>
static int launch_decode(const DecodeShape &shape, cudaStream_t stream) {
  const int ring = kDecodeWarps * TileRing<D, kStages>::kBytes,
            merge = int(sizeof(Merge<D, kDecodeWarps>));
  const int shared = ring > merge ? ring : merge;
  static_assert(kDecodeWarps * TileRing<D, kStages>::kBytes >= kMergeBytes,
                "most_ctas counts on it");
  SS_TRY((allow_shared<decode_kernel<D, kStages>>(shared)));
  decode_kernel<D, kStages><<<unsigned(grid_of(shape)), kDecodeWarps * 32, shared, stream>>>(shape);
  return check(cudaGetLastError(), "decode_kernel");
}

// Cost of a launch with the given CTAs per unit, in blocks: waves x (blocks of a CTA + its
// beginning and end).
static int64_t cost_of(const ss_decode_args &a, int64_t units, int splits, int slots) {
  return ceil_div64(units * splits, slots) * (ceil_div(a.max_blocks, splits) + kFixedBlocks);
}

// CTAs of a unit so that they come in full waves.
static int choose_splits(const ss_decode_args &a, int64_t units, int slots) {
  int best = 1;
  for (int splits = 2; splits <= 64 && splits * kDecodeWarps <= a.max_blocks + kDecodeWarps - 1;
       splits++) {
    if (cost_of(a, units, splits, slots) < cost_of(a, units, best, slots)) best = splits;
  }
  return best;
}

// A dense batch that no number of splits brings near full waves is shared by one wave, whose CTAs
// have pieces of more units to begin and end. Not where a warp would have so few
// blocks that one more or less counts.
static bool in_one_wave(const ss_decode_args &a, int64_t units, int splits, int slots) {
  if (a.list != nullptr || units * a.max_blocks < int64_t(4) * kDecodeWarps * slots) return false;
  const int64_t cost = ceil_div64(units * (a.max_blocks + kFixedBlocks), slots) + kFixedBlocks;
  return cost + cost / 32 < cost_of(a, units, splits, slots);
}

// CTAs of a dense batch, so that the pieces of a unit can be weighed even where all CTAs share one
// request's units: each head has an equal part, and a piece at either end that it shares with its
// neighbours.
static int64_t most_ctas(const ss_decode_args &a, int group) {
  const int64_t parts = (kMergeBytes / int(sizeof(float)) - 2 * kGroupMax) / group;
  return a.heads_kv * (parts - 2);
}

static int decode_shape(const ss_decode_args *args, DecodeShape *shape) {
  SS_NEED(args != nullptr);
  SS_NEED(args->batch > 0);
  SS_TRY(check_heads(args->heads_q, args->heads_kv, args->head_dim, args->block_tokens));
  SS_NEED(args->max_blocks >= 0);
  SS_NEED(args->splits >= 0 && args->splits <= 256);
  Limits found;
  SS_TRY(limits(&found));
  shape->a = *args;
  shape->group = args->heads_q / args->heads_kv;
  shape->block_bytes = int64_t(4) * args->block_tokens * args->head_dim;
  const int64_t units = int64_t(args->batch) * args->heads_kv;
  const int slots = 2 * found.sm_count;
  shape->splits = args->splits > 0 ? args->splits : choose_splits(*args, units, slots);
  SS_NEED(units * shape->splits <= INT32_MAX);
  shape->ctas = args->splits == 0 && in_one_wave(*args, units, shape->splits, slots)
                    ? slots
                    : int(units * shape->splits);
  if (args->list != nullptr) return SS_OK;
  shape->ctas = int(std::min<int64_t>(shape->ctas, most_ctas(*args, shape->group)));
  if (args->splits == 0 && units <= slots)
    shape->most = int(
        std::min<int64_t>(slots, units * std::max(1, ceil_div(args->max_blocks, kDecodeWarps))));
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_decode_workspace(const ss_decode_args *args, int64_t *bytes) {
  SS_NEED(bytes != nullptr);
  ss::DecodeShape shape = {};
  SS_TRY(ss::decode_shape(args, &shape));
  *bytes =
      ss::grid_of(shape) * ss::record_floats(shape.group, args->head_dim) * int64_t(sizeof(float));
  return SS_OK;
}

extern "C" int ss_decode(const ss_decode_args *args, ss_stream stream) {
  ss::DecodeShape shape = {};
  SS_TRY(ss::decode_shape(args, &shape));
  SS_NEED(args->q != nullptr && args->pool != nullptr && args->context != nullptr &&
          args->out != nullptr);
  SS_NEED(args->table != nullptr || args->slot != nullptr);
  SS_NEED(args->slot == nullptr || args->list != nullptr);
  SS_NEED((args->list == nullptr) == (args->count == nullptr));
  SS_NEED(args->workspace != nullptr || (args->list != nullptr && shape.splits == 1));
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const cudaStream_t s = ss::stream_of(stream);
  const bool deep = ss::deep_rings(found);
  if (args->head_dim == 128)
    return deep ? ss::launch_decode<128, 3>(shape, s) : ss::launch_decode<128, 2>(shape, s);
  return ss::launch_decode<64, 4>(shape, s);
}
