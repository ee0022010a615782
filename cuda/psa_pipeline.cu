// Pipelined PSA (3.3): loads and compute in two streams, joined microbatch by microbatch with events.
//
//   load stream:     gather 0 | gather 1 | gather 2 | ...
//   compute stream:             PSA 0    | PSA 1    | ...        PSA j waits for gather j
//
// The host runs at most `depth` microbatches ahead of the GPU and looks at the pinned flag before each, so that it stops soon after the
// verifying step has seen every unit done. It never reads a score or a weight. Loads of units that are done already are left out on the GPU.
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
  if (p->device != device) *p = Pipeline{};  // events belong to a GPU; those of another stay with its context
  p->device = device;
  if (p->loads == nullptr) SS_CUDA(cudaStreamCreateWithFlags(&p->loads, cudaStreamNonBlocking));
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

static int run_pipeline(const ss_psa_pipeline_args *args, Pipeline *p, cudaStream_t stream) {
  volatile int32_t *flag = args->psa->flag;
  *flag = 0;
  // The gathers read `done` while the first microbatches still run: it must not hold an earlier call's answer.
  const size_t units = size_t(args->psa->batch) * size_t(args->psa->heads_kv);
  SS_CUDA(cudaMemsetAsync(args->psa->done, 0, units * sizeof(int32_t), stream));
  SS_CUDA(cudaEventRecord(p->start, stream));
  SS_CUDA(cudaStreamWaitEvent(p->loads, p->start, 0));
  int32_t enqueued = 0;
  for (; enqueued < args->microbatches; enqueued++) {
    const size_t turn = size_t(enqueued % args->depth);
    if (enqueued >= args->depth) SS_CUDA(cudaEventSynchronize(p->computed[turn]));
    if (*flag != 0) break;

    ss_blocks_args load = {};
    const int64_t first = args->load_first[enqueued];
    load.src = args->src + first;
    load.dst = args->dst + first;
    load.count = args->load_first[enqueued + 1] - first;
    load.block_bytes = args->block_bytes;
    if (args->owner != nullptr && enqueued > 0) {
      load.owner = args->owner + first;
      load.skip = args->psa->done;
    }
    SS_TRY(ss_flash_h2d(&load, p->loads));
    SS_CUDA(cudaEventRecord(p->loaded[turn], p->loads));
    SS_CUDA(cudaStreamWaitEvent(stream, p->loaded[turn], 0));

    ss_psa_args step = *args->psa;
    step.first = enqueued;
    step.steps = 1;
    SS_TRY(ss_psa(&step, stream));
    SS_CUDA(cudaEventRecord(p->computed[turn], stream));
  }
  if (args->loaded != nullptr) *args->loaded = enqueued;
  return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

}  // namespace ss

extern "C" int ss_psa_pipeline(const ss_psa_pipeline_args *args, ss_stream stream) {
  static thread_local ss::Pipeline pipeline;
  SS_NEED(args != nullptr && args->psa != nullptr && args->psa->flag != nullptr);
  SS_NEED(args->psa->done != nullptr && args->psa->batch > 0 && args->psa->heads_kv > 0);
  SS_NEED(args->load_first != nullptr);
  SS_NEED(args->microbatches > 0 && args->depth > 0 && args->depth <= 64);
  SS_TRY(ss::pipeline_ready(&pipeline, args->depth));
  return ss::run_pipeline(args, &pipeline, ss::stream_of(stream));
}
