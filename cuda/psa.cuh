// What the two forms of PSA share: a unit's state between launches, and how the last unit to end
// notifies the host.
#pragma once

#include "decode.cuh"

namespace ss {

// State of a unit between launches, and the arrivals of the running one: low half CTAs that ended,
// high half those whose unit is done.
struct PsaUnit {
  float m[kGroupMax], l[kGroupMax];
  float least[kGroupMax];  // log2 AS_min
};

struct PsaState {
  unsigned long long *arrived;
  PsaUnit *unit;  // [units]
  float *o;       // [units][group][D], relative to exp2(m)
};

__host__ __device__ inline PsaState psa_state_of(void *state, int64_t units) {
  PsaState s;
  char *at = static_cast<char *>(state);
  s.arrived = reinterpret_cast<unsigned long long *>(at);
  at += 256;
  s.unit = reinterpret_cast<PsaUnit *>(at);
  at += (units * int64_t(sizeof(PsaUnit)) + 255) / 256 * 256;
  s.o = reinterpret_cast<float *>(at);
  return s;
}

struct PsaShape {
  ss_psa_args a;
  int group;
  int64_t block_bytes;
};

// The blocks of a launch's microbatches in the unit's order: `run` in a row from the first-th on,
// then those `step` further on.
__device__ inline BlockWalk psa_walk(const PsaShape &shape, int unit, int count, int context,
                                     int first, int step, int run) {
  const ss_psa_args &a = shape.a;
  BlockWalk walk;
  walk.pool = static_cast<const char *>(a.pool);
  walk.table = a.table + int64_t(unit) * a.table_stride;
  walk.times = 1, walk.plus = 0;
  walk.list = a.order + int64_t(unit) * a.order_stride;
  walk.slots = a.slot != nullptr ? a.slot + int64_t(unit) * a.order_stride : nullptr;
  walk.context = context;
  walk.block_tokens = a.block_tokens;
  walk.block_bytes = shape.block_bytes;
  walk.first = a.first * a.micro + first;
  walk.step = step;
  walk.run = run;
  walk.end = int(min(int64_t(count), (int64_t(a.first) + a.steps) * a.micro));
  return walk;
}

// One thread of each unit, last of all: the last unit to end knows whether every unit is done, and
// notifies the host.
__device__ inline void psa_arrive(const ss_psa_args &a, const PsaState &state, int units,
                                  bool done) {
  const unsigned long long before_me = atomicAdd(state.arrived, (done ? 1ull << 32 : 0) + 1);
  if (uint32_t(before_me) != uint32_t(units) - 1) return;
  const int finished = int(before_me >> 32) + (done ? 1 : 0);
  *state.arrived = 0;
  if (a.flag != nullptr && finished == units) {
    *static_cast<volatile int32_t *>(a.flag) = 1;
    __threadfence_system();
  }
}

// PSA of small batches: the CTAs of a cluster share a unit (psa_cluster.cu). Launches nothing
// where a cluster would have one CTA.
int launch_psa_cluster(const PsaShape &shape, const Limits &found, cudaStream_t stream,
                       bool *launched);

}  // namespace ss
