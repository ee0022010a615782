// Decode attention over paged KV blocks, dense or block-sparse (equation and shapes: sparseserve.h, ss_decode_args).
//
// A CTA takes one split of one unit; its warps take the split's blocks in turn and merge at the end. Splits of a unit meet in the workspace,
// where the last to arrive merges them, so one launch does it all.
#include "decode.cuh"

namespace ss {

constexpr int kDecodeWarps = 4;

struct DecodeShape {
  ss_decode_args a;
  int group, splits;
  int64_t block_bytes;
};

// Workspace: arrival counters of the units, then each split's maxima, sums and outputs.
struct Partials {
  int *arrived;  // [units]
  float *m, *l;  // [units][splits][group]
  float *o;      // [units][splits][group][D]
};

__host__ __device__ inline Partials partials_of(void *workspace, int64_t units, int splits, int group) {
  Partials p;
  char *at = static_cast<char *>(workspace);
  p.arrived = reinterpret_cast<int *>(at);
  at += (units * int64_t(sizeof(int)) + 255) / 256 * 256;
  p.m = reinterpret_cast<float *>(at);
  p.l = p.m + units * splits * group;
  p.o = p.l + units * splits * group;
  return p;
}

inline int64_t partials_bytes(int64_t units, int splits, int group, int head_dim) {
  const int64_t rows = units * splits * group;
  return (units * int64_t(sizeof(int)) + 255) / 256 * 256 + rows * (2 + head_dim) * int64_t(sizeof(float)) + 256;
}

// Writes one row's output value; lse is in natural log.
template <int D>
__device__ inline void finish(const ss_decode_args &a, int64_t head, int d, float m, float l, float value) {
  static_cast<__half *>(a.out)[head * D + d] = __float2half(l > 0 ? value / l : 0);
  if (a.lse != nullptr && d == 0) a.lse[head] = l > 0 ? m / kLog2e + logf(l) : -INFINITY;
}

template <int D, int kStages>
__global__ void __launch_bounds__(kDecodeWarps * 32, 2) decode_kernel(DecodeShape shape) {
  using Ring = TileRing<D, kStages>;
  extern __shared__ __align__(128) char shared[];
  __shared__ int valid_rows[kDecodeWarps][kStages];
  __shared__ bool last;
  const ss_decode_args &a = shape.a;
  const int group = shape.group, splits = shape.splits;
  const int unit = blockIdx.x / splits, split = blockIdx.x % splits, warp = threadIdx.x / 32;
  const int request = unit / a.heads_kv;
  const int64_t head = int64_t(unit) * group;  // first query head of the unit, over all requests

  BlockWalk walk;
  walk.context = a.context[request];
  const int blocks = a.list != nullptr ? a.count[unit] : (walk.context + a.block_tokens - 1) / a.block_tokens;
  const int share = (blocks + splits - 1) / splits;
  walk.pool = static_cast<const char *>(a.pool);
  walk.table = a.table + int64_t(a.pages ? request : unit) * a.table_stride;
  walk.times = a.pages ? a.heads_kv : 1;
  walk.plus = a.pages ? unit % a.heads_kv : 0;
  walk.list = a.list != nullptr ? a.list + int64_t(unit) * a.list_stride : nullptr;
  walk.slots = a.slot != nullptr ? a.slot + int64_t(unit) * a.list_stride : nullptr;
  walk.block_tokens = a.block_tokens;
  walk.block_bytes = shape.block_bytes;
  walk.first = split * share + warp;
  walk.step = kDecodeWarps;
  walk.end = min(blocks, (split + 1) * share);

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

  const Partials part = partials_of(a.workspace, int64_t(a.batch) * a.heads_kv, splits, group);
  for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
    const int row = i / D, d = i % D;
    const float m = merge.top(row);
    float l, value;
    merge.get(row, d, m == -INFINITY ? 0 : m, &l, &value);
    if (splits == 1) {
      finish<D>(a, head + row, d, m, l, value);
      continue;
    }
    const int64_t at = (int64_t(unit) * splits + split) * group + row;
    part.o[at * D + d] = value;
    if (d == 0) part.m[at] = m, part.l[at] = l;
  }
  if (splits == 1) return;

  __threadfence();  // this split's partials before its arrival
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&part.arrived[unit], 1) == splits - 1;
    if (last) part.arrived[unit] = 0;  // ready for the next launch
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
    const int row = i / D, d = i % D;
    const int64_t at = int64_t(unit) * splits * group + row;
    float m = -INFINITY, l = 0, value = 0;
    for (int s = 0; s < splits; s++) m = fmaxf(m, __ldcg(&part.m[at + s * group]));
    const float ref = m == -INFINITY ? 0 : m;
    for (int s = 0; s < splits; s++) {
      const float weight = exp2_fast(__ldcg(&part.m[at + s * group]) - ref);
      l += weight * __ldcg(&part.l[at + s * group]);
      value += weight * __ldcg(&part.o[(at + s * group) * D + d]);
    }
    finish<D>(a, head + row, d, m, l, value);
  }
}

template <int D, int kStages>
static int launch_decode(const DecodeShape &shape, cudaStream_t stream) {
  const int ring = kDecodeWarps * TileRing<D, kStages>::kBytes, merge = int(sizeof(Merge<D, kDecodeWarps>));
  const int shared = ring > merge ? ring : merge;
  SS_TRY((allow_shared<decode_kernel<D, kStages>>(shared)));
  const int64_t ctas = int64_t(shape.a.batch) * shape.a.heads_kv * shape.splits;
  decode_kernel<D, kStages><<<unsigned(ctas), kDecodeWarps * 32, shared, stream>>>(shape);
  return check(cudaGetLastError(), "decode_kernel");
}

// Splits a unit so that the CTAs come in full waves. Cost of a choice: waves x (blocks of a split + a CTA's fixed cost, worth some blocks).
static int choose_splits(const ss_decode_args &a, int slots) {
  const int64_t units = int64_t(a.batch) * a.heads_kv;
  const int fixed_blocks = 4;
  int best = 1;
  int64_t best_cost = INT64_MAX;
  for (int splits = 1; splits <= 64 && splits * kDecodeWarps <= a.max_blocks + kDecodeWarps - 1; splits++) {
    const int64_t cost = ceil_div64(units * splits, slots) * (ceil_div(a.max_blocks, splits) + fixed_blocks);
    if (cost < best_cost) best_cost = cost, best = splits;
  }
  return best;
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
  shape->splits = args->splits > 0 ? args->splits : choose_splits(*args, 2 * found.sm_count);
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_decode_workspace(const ss_decode_args *args, int64_t *bytes) {
  SS_NEED(bytes != nullptr);
  ss::DecodeShape shape = {};
  SS_TRY(ss::decode_shape(args, &shape));
  *bytes = ss::partials_bytes(int64_t(args->batch) * args->heads_kv, shape.splits, shape.group, args->head_dim);
  return SS_OK;
}

extern "C" int ss_decode(const ss_decode_args *args, ss_stream stream) {
  ss::DecodeShape shape = {};
  SS_TRY(ss::decode_shape(args, &shape));
  SS_NEED(args->q != nullptr && args->pool != nullptr && args->context != nullptr && args->out != nullptr);
  SS_NEED(args->table != nullptr || args->slot != nullptr);
  SS_NEED(args->slot == nullptr || args->list != nullptr);
  SS_NEED((args->list == nullptr) == (args->count == nullptr));
  SS_NEED(shape.splits == 1 || args->workspace != nullptr);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const cudaStream_t s = ss::stream_of(stream);
  const bool deep = ss::deep_rings(found);
  if (args->head_dim == 128) return deep ? ss::launch_decode<128, 3>(shape, s) : ss::launch_decode<128, 2>(shape, s);
  return ss::launch_decode<64, 4>(shape, s);
}
