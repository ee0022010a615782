// PSA decode (Progressive Sparse Attention, Algorithm 1 and 3.3): attend to blocks in order of
// criticality until enough weight is gathered.
//
//   after each microbatch, per query head:  P = AS_acc / (AS_acc + AS_min N_left)
//   stop the unit when P > epsilon for all its heads
//   AS_acc = sum of exp(scale q.k) over the blocks done
//   AS_min = the least such sum of one block      N_left = blocks not yet done
//
// The verifying step runs inside the attention kernel: the warps of a unit's CTA exchange (m, l,
// AS_min) through shared memory and all decide the same, so microbatches of one launch
// follow each other without a launch or a host in between, and the next microbatch's loads are
// already on their way. Sums are kept as (maximum, sum relative to it), AS_min as its log2.
#include "psa.cuh"

namespace ss {

// What the warps exchange after a microbatch; two sets, so that one barrier a microbatch is
// enough.
template <int kWarps>
struct Partials {
  float m[2][kWarps][kGroupMax], l[2][kWarps][kGroupMax], least[2][kWarps][kGroupMax];
};

// The verifying step. `own` values belong to row lane / 4; every warp returns the same answer.
template <int kWarps>
__device__ inline bool verify(Partials<kWarps> &partials, int parity, float own_m, float own_l,
                              float own_least, const PsaUnit &before, int group, int left,
                              float epsilon) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float sum = quad_sum(own_l);
  if (lane % 4 == 0) {
    partials.m[parity][warp][lane / 4] = own_m;
    partials.l[parity][warp][lane / 4] = sum;
    partials.least[parity][warp][lane / 4] = own_least;
  }
  __syncthreads();
  const int row = lane % kGroupMax;
  float m = before.m[row], least = before.least[row];
#pragma unroll
  for (int w = 0; w < kWarps; w++) {
    m = fmaxf(m, partials.m[parity][w][row]);
    least = fminf(least, partials.least[parity][w][row]);
  }
  const float ref = m == -INFINITY ? 0 : m;
  float acc = before.l[row] * exp2_fast(before.m[row] - ref);
#pragma unroll
  for (int w = 0; w < kWarps; w++)
    acc += partials.l[parity][w][row] * exp2_fast(partials.m[parity][w][row] - ref);
  const float total = acc + exp2_fast(least - ref) * float(left);
  return __all_sync(~0u, row >= group || acc > epsilon * total);
}

template <int D, int kStages, int kWarps>
__global__ void __launch_bounds__(kWarps * 32, kWarps == 8 ? 1 : 2) psa_kernel(PsaShape shape) {
  using Ring = TileRing<D, kStages>;
  extern __shared__ __align__(128) char shared[];
  __shared__ int valid_rows[kWarps][kStages];
  __shared__ Partials<kWarps> partials;
  __shared__ PsaUnit before;
  const ss_psa_args &a = shape.a;
  const int group = shape.group, unit = blockIdx.x, warp = threadIdx.x / 32;
  const int request = unit / a.heads_kv, units = gridDim.x;
  const int64_t head = int64_t(unit) * group;
  const PsaState state_of = psa_state_of(a.state, units);
  PsaUnit &global = state_of.unit[unit];

  // All that depends on nothing is read at once: with a launch a microbatch, trips to memory before
  // the first block are what costs.
  const int count = a.count[unit], context = a.context[request];
  bool done = a.first > 0 && a.done[unit] != 0;
  if (threadIdx.x == 0) {
    if (a.first == 0) {
      for (int r = 0; r < kGroupMax; r++)
        before.m[r] = -INFINITY, before.l[r] = 0, before.least[r] = INFINITY;
    } else {
      before = global;
    }
  }
  __syncthreads();

  if (!done) {
    // micro is a multiple of kWarps: every warp has micro / kWarps blocks in each microbatch
    const BlockWalk walk = psa_walk(shape, unit, count, context, warp, kWarps, 1);

    Softmax<D> state;
    float least = INFINITY;
    int used = min(count, a.first * a.micro);
    {
      Ring ring(shared_address(shared) + warp * Ring::kBytes, valid_rows[warp], walk);
      const Query<D> q(static_cast<const __half *>(a.q) + head * D, group);
      const float scale_log2 = a.scale * kLog2e;
      int tile = 0, block = 0;
      for (int step = 0; step < a.steps && used < count && !done; step++) {
        for (int i = 0; i < a.micro / kWarps && block < ring.blocks; i++, block++) {
          float block_sum = 0;
          for (int sub = 0; sub < ring.tiles_per_block; sub++, tile++) {
            int rows;
            float rescale;
            const uint32_t at = ring.next(tile, &rows);
            const float sum = add_tile<D>(state, q, at, rows, scale_log2, &rescale);
            block_sum = block_sum * rescale + sum;
          }
          least = fminf(least, state.m + __log2f(quad_sum(block_sum)));
        }
        used = min(count, used + a.micro);
        done = verify<kWarps>(partials, step & 1, state.m, state.l, least, before, group,
                              count - used, a.epsilon);
      }
      ring.drain();
    }
    if (used == count) done = true;

    __syncthreads();  // the rings become the merge area
    auto &merge = *reinterpret_cast<Merge<D, kWarps> *>(shared);
    float(*leasts)[kGroupMax] = partials.least[0];
    merge.put(warp, state);
    if (threadIdx.x % 4 == 0) leasts[warp][threadIdx.x % 32 / 4] = least;
    __syncthreads();
    for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
      const int row = i / D, d = i % D;
      const float m = fmaxf(before.m[row], merge.top(row)), ref = m == -INFINITY ? 0 : m;
      float l, value;
      merge.get(row, d, ref, &l, &value);
      float *o = &state_of.o[(int64_t(unit) * group + row) * D + d];
      if (a.first > 0) {
        const float weight = exp2_fast(before.m[row] - ref);
        l += weight * before.l[row];
        value += weight * *o;
      }
      *o = value;
      static_cast<__half *>(a.out)[(head + row) * D + d] = __float2half(l > 0 ? value / l : 0);
      if (d == 0) {
        float low = before.least[row];
        for (int w = 0; w < kWarps; w++) low = fminf(low, leasts[w][row]);
        global.m[row] = m, global.l[row] = l, global.least[row] = low;
      }
    }
    if (threadIdx.x == 0) {
      a.used[unit] = used;
      a.done[unit] = done;
    }
  }

  if (threadIdx.x == 0) psa_arrive(a, state_of, units, done);
}

template <int D, int kStages, int kWarps>
static int launch_psa(const PsaShape &shape, cudaStream_t stream) {
  const int ring = kWarps * TileRing<D, kStages>::kBytes, merge = int(sizeof(Merge<D, kWarps>));
  const int shared = ring > merge ? ring : merge;
  SS_TRY((allow_shared<psa_kernel<D, kStages, kWarps>>(shared)));
  psa_kernel<D, kStages, kWarps>
      <<<unsigned(shape.a.batch * shape.a.heads_kv), kWarps * 32, shared, stream>>>(shape);
  return check(cudaGetLastError(), "psa_kernel");
}

template <int D, int kStages>
static int launch_psa_warps(const PsaShape &shape, bool wide, cudaStream_t stream) {
  const int micro = shape.a.micro;
  if (wide && micro % 8 == 0) return launch_psa<D, kStages, 8>(shape, stream);
  if (micro % 4 == 0) return launch_psa<D, kStages, 4>(shape, stream);
  if (micro % 2 == 0) return launch_psa<D, kStages, 2>(shape, stream);
  return launch_psa<D, kStages, 1>(shape, stream);
}

static int psa_shape(const ss_psa_args *args, PsaShape *shape) {
  SS_NEED(args != nullptr);
  SS_NEED(args->batch > 0);
  SS_TRY(check_heads(args->heads_q, args->heads_kv, args->head_dim, args->block_tokens));
  shape->a = *args;
  shape->group = args->heads_q / args->heads_kv;
  shape->block_bytes = int64_t(4) * args->block_tokens * args->head_dim;
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_psa_state(const ss_psa_args *args, int64_t *bytes) {
  SS_NEED(bytes != nullptr);
  ss::PsaShape shape;
  SS_TRY(ss::psa_shape(args, &shape));
  const int64_t units = int64_t(args->batch) * args->heads_kv;
  *bytes = 512 + units * int64_t(sizeof(ss::PsaUnit)) +
           int64_t(args->batch) * args->heads_q * args->head_dim * int64_t(sizeof(float));
  return SS_OK;
}

extern "C" int ss_psa(const ss_psa_args *args, ss_stream stream) {
  ss::PsaShape shape;
  SS_TRY(ss::psa_shape(args, &shape));
  SS_NEED(args->q != nullptr && args->pool != nullptr && args->context != nullptr &&
          args->out != nullptr);
  SS_NEED(args->table != nullptr || args->slot != nullptr);
  SS_NEED(args->order != nullptr && args->count != nullptr && args->used != nullptr &&
          args->done != nullptr && args->state != nullptr);
  SS_NEED(args->micro > 0 && args->first >= 0 && args->steps > 0);
  SS_NEED(args->epsilon > 0 && args->epsilon <= 1);
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  const cudaStream_t s = ss::stream_of(stream);
  const bool deep = ss::deep_rings(found);
  bool launched;
  SS_TRY(ss::launch_psa_cluster(shape, found, s, &launched));
  if (launched) return SS_OK;
  // With fewer units than SMs, one CTA has the SM: it gets twice the warps.
  const bool wide = args->batch * args->heads_kv <= found.sm_count;
  if (args->head_dim == 128)
    return deep ? ss::launch_psa_warps<128, 3>(shape, wide, s)
                : ss::launch_psa_warps<128, 2>(shape, wide, s);
  return ss::launch_psa_warps<64, 3>(shape, wide, s);
}
