// PSA decode of small batches (psa.cu has the algorithm): the CTAs of a cluster share a unit, so
// that one request's heads fill the GPU.
//
// Warps process the next blocks of the order together, a wave at a time, and exchange the weight of
// each block. From those every warp finds by itself after which microbatch of the wave to stop; a
// warp whose blocks are beyond it restores its softmax of before the wave. So up to a wave of
// blocks is read without use, which costs less here than deciding after each microbatch.
#include "cluster.cuh"
#include "psa.cuh"

namespace ss {

constexpr int kWarps = 4;
constexpr int kPerLane = 2, kWave = 32 * kPerLane;  // blocks of a wave at most

// Of a row, all lanes of `lane % kGroupMax == row`: the blocks before the wave.
struct PsaSums {
  float m, acc;  // AS_acc = acc exp2(m)
  float least;   // log2 AS_min
};

__device__ inline float warp_max(float x) {
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, mask));
  return x;
}

// The verifying step for all microbatches of a wave at once: the block after which to stop, or n.
// weight[i][row] is log2 of block i's sum, the wave's first of which follows `used` blocks. A lane
// has kPerLane blocks in a row, and prefix sums over lanes give AS_acc and AS_min after each.
__device__ inline int psa_stop(const float (*weight)[kGroupMax], PsaSums &before, int group, int n,
                               int used, int count, int micro, float epsilon) {
  const int lane = threadIdx.x % 32, mine = lane * kPerLane;
  bool enough[kPerLane];
#pragma unroll
  for (int k = 0; k < kPerLane; k++) {
    const int done = used + mine + k + 1;
    enough[k] = mine + k < n && (done % micro == 0 || done == count);
  }
#pragma unroll 1
  for (int row = 0; row < group; row++) {
    const float m = __shfl_sync(~0u, before.m, row);
    float w[kPerLane], top = -INFINITY;
#pragma unroll
    for (int k = 0; k < kPerLane; k++) {
      w[k] = mine + k < n ? weight[mine + k][row] : -INFINITY;
      top = fmaxf(top, w[k]);
    }
    top = fmaxf(m, warp_max(top));
    const float ref = top == -INFINITY ? 0 : top;
    float sum = 0, least = INFINITY;
#pragma unroll
    for (int k = 0; k < kPerLane; k++) {
      sum += exp2_fast(w[k] - ref);
      least = mine + k < n ? fminf(least, w[k]) : least;
    }
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const float below = __shfl_up_sync(~0u, sum, step), low = __shfl_up_sync(~0u, least, step);
      if (lane >= step) sum += below, least = fminf(least, low);
    }
    const float sum_before = __shfl_up_sync(~0u, sum, 1),
                least_before = __shfl_up_sync(~0u, least, 1);
    float acc = __shfl_sync(~0u, before.acc, row) * exp2_fast(m - ref),
          low = __shfl_sync(~0u, before.least, row);
    if (lane > 0) acc += sum_before, low = fminf(low, least_before);
#pragma unroll
    for (int k = 0; k < kPerLane; k++) {
      if (mine + k >= n) break;
      acc += exp2_fast(w[k] - ref);
      low = fminf(low, w[k]);
      enough[k] = enough[k] &&
                  acc > epsilon * (acc + exp2_fast(low - ref) * float(count - used - mine - k - 1));
    }
    acc = __shfl_sync(~0u, acc, 31), low = __shfl_sync(~0u, low, 31);
    if (lane % kGroupMax == row) before.m = top, before.acc = acc, before.least = low;
  }
  int stop = n;
#pragma unroll
  for (int k = 0; k < kPerLane; k++) {
    const unsigned lanes = __ballot_sync(~0u, enough[k]);
    if (lanes != 0) stop = min(stop, (__ffs(lanes) - 1) * kPerLane + k);
  }
  return stop;
}

// Where the cluster's first CTA finds the softmaxes of all of them.
template <int D>
struct Gathered {
  float o[kClusterMax][kGroupMax][D];
  float m[kClusterMax][kGroupMax], l[kClusterMax][kGroupMax];
};

template <int D, int kStages>
constexpr int shared_bytes() {
  const int rings = kWarps * TileRing<D, kStages>::kBytes,
            merged = int(sizeof(Merge<D, kWarps>) + sizeof(Gathered<D>));
  return rings > merged ? rings : merged;
}

template <int D, int kStages, int kRun>
__global__ void __launch_bounds__(kWarps * 32, 2) psa_cluster_kernel(PsaShape shape) {
  using Ring = TileRing<D, kStages>;
  extern __shared__ __align__(128) char shared[];
  __shared__ int valid_rows[kWarps][kStages];
  __shared__ float weight[2][kWave][kGroupMax];
  __shared__ PsaUnit before;
  const ss_psa_args &a = shape.a;
  const int ctas = cluster_ctas(), rank = cluster_rank(), unit = blockIdx.x / ctas,
            units = gridDim.x / ctas;
  const int group = shape.group, lane = threadIdx.x % 32, warp = threadIdx.x / 32,
            request = unit / a.heads_kv;
  // of this warp's blocks in a wave
  const int place = (rank * kWarps + warp) * kRun, wave = ctas * kWarps * kRun;
  const int64_t head = int64_t(unit) * group;
  const PsaState state_of = psa_state_of(a.state, units);
  PsaUnit &global = state_of.unit[unit];
  cluster_arrive();  // no CTA is written to before it has started

  const int count = a.count[unit], context = a.context[request];
  bool done = a.first > 0 && a.done[unit] != 0;
  if (threadIdx.x < kGroupMax) {
    before.m[threadIdx.x] = a.first == 0 ? -INFINITY : global.m[threadIdx.x];
    before.l[threadIdx.x] = a.first == 0 ? 0 : global.l[threadIdx.x];
    before.least[threadIdx.x] = a.first == 0 ? INFINITY : global.least[threadIdx.x];
  }
  __syncthreads();

  if (done) {  // the whole cluster
    cluster_wait();
  } else {
    const BlockWalk walk = psa_walk(shape, unit, count, context, place, wave, kRun);

    Softmax<D> state;
    PsaSums sums = {before.m[lane % kGroupMax], before.l[lane % kGroupMax],
                    before.least[lane % kGroupMax]};
    int used = min(count, a.first * a.micro);
    {
      Ring ring(shared_address(shared) + warp * Ring::kBytes, valid_rows[warp], walk);
      const Query<D> q(static_cast<const __half *>(a.q) + head * D, group);
      const float scale_log2 = a.scale * kLog2e;
      int tile = 0;
      cluster_wait();
      for (int parity = 0; used < walk.end && !done; parity ^= 1) {
        const int n = min(wave, walk.end - used);
        const Softmax<D> saved = state;
#pragma unroll 1
        for (int k = 0; k < kRun && place + k < n; k++) {
          float block_sum = 0;
#pragma unroll 1
          for (int sub = 0; sub < ring.tiles_per_block; sub++, tile++) {
            int rows;
            float rescale;
            const uint32_t at = ring.next(tile, &rows);
            const float sum = add_tile<D>(state, q, at, rows, scale_log2, &rescale);
            block_sum = block_sum * rescale + sum;
          }
          const float log_sum = state.m + __log2f(quad_sum(block_sum));
          if (lane / 4 < group)  // the four lanes of a row share the CTAs to write to
#pragma unroll 1
            for (int to = lane % 4; to < ctas; to += 4)
              cluster_store(cluster_address(&weight[parity][place + k][lane / 4], to), log_sum);
        }
        cluster_arrive();
        cluster_wait();
        const int stop = psa_stop(weight[parity], sums, group, n, used, count, a.micro, a.epsilon);
        done = stop < n;
        used += done ? stop + 1 : n;
        if (place > stop) state = saved;
      }
      ring.drain();
    }
    if (used == count) done = true;

    // The rings become the merge area, and after it the first CTA's place for all of them: every
    // warp's copies have landed, here and then elsewhere.
    __syncthreads();
    cluster_arrive();
    auto &merge = *reinterpret_cast<Merge<D, kWarps> *>(shared);
    auto &all = *reinterpret_cast<Gathered<D> *>(shared + sizeof merge);
    merge.put(warp, state);
    __syncthreads();
    cluster_wait();
#pragma unroll 1
    for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
      const int row = i / D, d = i % D;
      const float m = merge.top(row);
      float l, value;
      merge.get(row, d, m == -INFINITY ? 0 : m, &l, &value);
      cluster_store(cluster_address(&all.o[rank][row][d], 0), value);
      if (d == 0) {
        cluster_store(cluster_address(&all.m[rank][row], 0), m);
        cluster_store(cluster_address(&all.l[rank][row], 0), l);
      }
    }
    cluster_arrive();
    cluster_wait();
    if (rank == 0) {
#pragma unroll 1
      for (int i = threadIdx.x; i < group * D; i += blockDim.x) {
        const int row = i / D, d = i % D;
        float m = before.m[row];
#pragma unroll 1
        for (int c = 0; c < ctas; c++) m = fmaxf(m, all.m[c][row]);
        const float ref = m == -INFINITY ? 0 : m;
        float *o = &state_of.o[(int64_t(unit) * group + row) * D + d];
        float l = 0, value = 0;
        if (a.first > 0) {
          const float weight_before = exp2_fast(before.m[row] - ref);
          l = weight_before * before.l[row];
          value = weight_before * *o;
        }
#pragma unroll 1
        for (int c = 0; c < ctas; c++) {
          const float weight_of = exp2_fast(all.m[c][row] - ref);
          l += weight_of * all.l[c][row];
          value += weight_of * all.o[c][row][d];
        }
        *o = value;
        static_cast<__half *>(a.out)[(head + row) * D + d] = __float2half(l > 0 ? value / l : 0);
        if (d == 0) global.m[row] = m, global.l[row] = l;
      }
      if (threadIdx.x < group) global.least[threadIdx.x] = sums.least;
      if (threadIdx.x == 0) {
        a.used[unit] = used;
        a.done[unit] = done;
      }
    }
  }
  if (rank == 0 && threadIdx.x == 0) psa_arrive(a, state_of, units, done);
}

template <int D, int kStages, int kRun>
static int launch_run(const PsaShape &shape, int ctas, cudaStream_t stream) {
  constexpr int kShared = shared_bytes<D, kStages>();
  SS_TRY((allow_shared<psa_cluster_kernel<D, kStages, kRun>>(kShared)));
  const int64_t units = int64_t(shape.a.batch) * shape.a.heads_kv;
  return launch_cluster(psa_cluster_kernel<D, kStages, kRun>, dim3(unsigned(units * ctas)),
                        kWarps * 32, kShared, ctas, stream, shape);
}

// A wave is 64 blocks if the launch has 64, because each wave costs a decision. A warp's run of
// blocks must be in one microbatch.
template <int D, int kStages>
static int launch_stages(const PsaShape &shape, const Limits &found, cudaStream_t stream,
                         bool *launched) {
  int ctas = 1;
  SS_TRY((cluster_fitting<psa_cluster_kernel<D, kStages, 1>>(
      found, int64_t(shape.a.batch) * shape.a.heads_kv, kWarps * 32, shared_bytes<D, kStages>(),
      &ctas)));
  const int64_t blocks = int64_t(shape.a.steps) * shape.a.micro;
  while (ctas > 1 && ctas / 2 * kWarps >= blocks) ctas /= 2;
  *launched = ctas > 1;
  if (!*launched) return SS_OK;
  int run = 4;
  while (run > 1 && (shape.a.micro % run != 0 || ctas * kWarps * run > kWave ||
                     ctas * kWarps * (run / 2) >= blocks))
    run /= 2;
  return run == 4   ? launch_run<D, kStages, 4>(shape, ctas, stream)
         : run == 2 ? launch_run<D, kStages, 2>(shape, ctas, stream)
                    : launch_run<D, kStages, 1>(shape, ctas, stream);
}

int launch_psa_cluster(const PsaShape &shape, const Limits &found, cudaStream_t stream,
                       bool *launched) {
  if (shape.a.head_dim == 64) return launch_stages<64, 3>(shape, found, stream, launched);
  return deep_rings(found) ? launch_stages<128, 3>(shape, found, stream, launched)
                           : launch_stages<128, 2>(shape, found, stream, launched);
}

}  // namespace ss
