// Pipelined PSA (3.3): loads and compute in two streams, joined with events, launch by launch. A
// launch is a microbatch that has loads and those after it that have none.
//
//   compute stream:  gather 0 | PSA 0 | PSA 1    | PSA 2    | ...   PSA k waits for gather k
//   load stream:              gather 1| gather 2 | ...
//
// The host runs at most `depth` launches ahead of the GPU and reads the pinned flag before each, so
// that it stops soon after the verifying step has seen every unit done. It never reads a score or a
// weight, and does not wait for the last launches: what it enqueues next follows them at once.
// Loads of units that are done already are skipped on the GPU.
#include <vector>

#include "common.cuh"

namespace ss {

// The load stream and the events, kept between calls: making them costs more than a microbatch.
struct Pipeline {
  cudaStream_t loads = nullptr;
  cudaEvent_t start = nullptr;
  std::vector<cudaEvent_t> loaded, computed;
  int device = -1;
};

static int pipeline_ready(Pipeline *p, int depth) {
  int device = 0;
  SS_CUDA(cudaGetDevice(&device));
  if (p->device != device) *p = Pipeline{};  // events of another GPU stay with its context
  p->device = device;
  if (p->loads == nullptr) SS_TRY(take_stream(&p->loads, true));  // kept with the thread
  if (p->start == nullptr) SS_CUDA(cudaEventCreateWithFlags(&p->start, cudaEventDisableTiming));
  for (auto *events : {&p->loaded, &p->computed}) {
    while (int(events->size()) < depth) {
      cudaEvent_t event = nullptr;
      SS_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      events->push_back(event);
    }
  }
  return SS_OK;
}

// The loads of one microbatch, on a stream.
static int gather(const ss_psa_pipeline_args *args, int microbatch, bool skip,
                  cudaStream_t stream) {
  const int64_t first = args->load_first[microbatch];
  ss_blocks_args load = {};
  load.src = args->src + first;
  load.dst = args->dst + first;
  load.count = args->load_first[microbatch + 1] - first;
  load.block_bytes = args->block_bytes;
  if (skip && args->owner != nullptr) {
    load.owner = args->owner + first;
    load.skip = args->psa->done;
  }
  return ss_flash_h2d(&load, stream);
}

// Makes later work of `waits` wait for what `on` has so far.
static int join(cudaEvent_t event, cudaStream_t on, cudaStream_t waits) {
  SS_CUDA(cudaEventRecord(event, on));
  return check(cudaStreamWaitEvent(waits, event, 0), "cudaStreamWaitEvent");
}

static int run_pipeline(const ss_psa_pipeline_args *args, Pipeline *p, cudaStream_t stream) {
  const cudaStream_t loads = args->loads != nullptr ? stream_of(args->loads) : p->loads;
  const int32_t all = args->microbatches, reached = args->reached > 0 ? args->reached : all;
  const int64_t *first = args->load_first;
  volatile int32_t *flag = args->psa->flag;
  *flag = 0;
  // Gathers read `done` while the first launch runs: it must not hold an earlier call's answer.
  if (args->owner != nullptr) {
    const size_t units = size_t(args->psa->batch) * size_t(args->psa->heads_kv);
    SS_CUDA(cudaMemsetAsync(args->psa->done, 0, units * sizeof(int32_t), stream));
  }
  int32_t enqueued = 0;
  bool ahead = false;  // loads that no attention of this call waits for
  for (int launch = 0; enqueued < all; launch++) {
    const int32_t from = enqueued;
    int32_t to = from + 1;
    while (to < all && to != reached && first[to] == first[to + 1]) to++;
    const size_t slot = size_t(launch % args->depth);
    if (launch >= args->depth) SS_CUDA(cudaEventSynchronize(p->computed[slot]));
    if (*flag != 0) break;

    const bool attends = from < reached;
    if (first[from] < first[from + 1]) {
      SS_TRY(gather(args, from, launch > 0, launch > 0 ? loads : stream));
      if (launch > 0 && attends) SS_TRY(join(p->loaded[slot], loads, stream));
      ahead = ahead || !attends;
    }
    // Later loads follow the first ones over the link, and whatever the stream did with their slots
    // before.
    if (launch == 0 && first[to] < first[all]) SS_TRY(join(p->start, stream, loads));
    if (attends) {
      ss_psa_args step = *args->psa;
      step.first = from;
      step.steps = to - from;
      SS_TRY(ss_psa(&step, stream));
    }
    if (to < all) SS_CUDA(cudaEventRecord(p->computed[slot], stream));
    enqueued = to;
  }
  if (args->loaded != nullptr) *args->loaded = enqueued;
  return ahead && args->loads == nullptr ? join(p->start, loads, stream) : SS_OK;
}

}  // namespace ss

extern "C" int ss_psa_pipeline(const ss_psa_pipeline_args *args, ss_stream stream) {
  static thread_local ss::Pipeline pipeline;
  SS_NEED(args != nullptr && args->psa != nullptr && args->psa->flag != nullptr);
  SS_NEED(args->psa->done != nullptr && args->psa->batch > 0 && args->psa->heads_kv > 0);
  SS_NEED(args->load_first != nullptr);
  SS_NEED(args->microbatches > 0 && args->depth > 0 && args->depth <= 64);
  SS_NEED(args->reached >= 0 && args->reached <= args->microbatches);
  SS_TRY(ss::pipeline_ready(&pipeline, args->depth));
  return ss::run_pipeline(args, &pipeline, ss::stream_of(stream));
}
