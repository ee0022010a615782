// Times what of a layer is neither matrices nor attention (two norms with their residual sums, rope
// with K and V written to blocks, the activation) in a CUDA graph, as engines with graphs launch
// it, and in a stream. The kernels are this project's.
//
//     nvcc -std=c++17 -O3 -arch=sm_90 -Icuda cuda/measured/pointwise_graph.cu cuda/rmsnorm.cu \
//         cuda/rope.cu cuda/silu_mul.cu cuda/error.cu cuda/device.cu -o pointwise_graph
//     ./pointwise_graph
//
// Each time is the median over 15 runs of 32 layers, divided by 32; layers have buffers of their
// own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sparseserve.h"
#include "common.cuh"

#define MUST(call)                                                     \
    do {                                                               \
        int e = int(call);                                             \
        if (e != 0) {                                                  \
            fprintf(stderr, "%s:%d: error %d\n", __FILE__, __LINE__, e); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

constexpr int kLayers = 32, kSamples = 15, kDim = 128, kBlock = 16;

struct Shape {
    const char *name;
    int hidden, q, kv, ffn;  // of one GPU
};

template <class T>
T *zeros(size_t n) {
    T *p;
    MUST(cudaMalloc(&p, n * sizeof(T)));
    MUST(cudaMemset(p, 0, n * sizeof(T)));
    return p;
}

struct Layer {
    ss_rmsnorm_args first, second;
    ss_rope_args rope;
    ss_silu_mul_args silu;
};

Layer layer(const Shape &s, int tokens) {
    Layer l{};
    l.first = {zeros<__half>(size_t(tokens) * s.hidden), zeros<__half>(size_t(tokens) * s.hidden),
               zeros<__half>(s.hidden), zeros<__half>(size_t(tokens) * s.hidden), nullptr, tokens,
               s.hidden, 1e-5f};
    l.second = l.first;
    l.rope.qkv = zeros<__half>(size_t(tokens) * (s.q + 2 * s.kv) * kDim);
    l.rope.position = zeros<int32_t>(tokens);
    l.rope.inv_freq = zeros<float>(kDim / 2);
    l.rope.q_out = zeros<__half>(size_t(tokens) * s.q * kDim);
    const int blocks = (tokens + kBlock - 1) / kBlock;
    std::vector<int32_t> position(tokens), table(size_t(blocks) * s.kv);
    for (int i = 0; i < tokens; i++) position[i] = i;
    for (size_t i = 0; i < table.size(); i++) table[i] = int32_t(i);
    MUST(cudaMemcpy((void *)l.rope.position, position.data(), 4 * position.size(),
                    cudaMemcpyDefault));
    l.rope.pool = zeros<__half>(table.size() * 2 * kBlock * kDim);
    int32_t *slots = zeros<int32_t>(table.size());
    MUST(cudaMemcpy(slots, table.data(), 4 * table.size(), cudaMemcpyDefault));
    l.rope.table = slots;
    l.rope.head_stride = blocks;
    l.rope.tokens = tokens, l.rope.heads_q = s.q, l.rope.heads_kv = s.kv, l.rope.head_dim = kDim;
    l.rope.block_tokens = kBlock;
    l.silu = {zeros<__half>(size_t(tokens) * 2 * s.ffn), zeros<__half>(size_t(tokens) * s.ffn),
              tokens, s.ffn};
    return l;
}

void launch(const std::vector<Layer> &layers, cudaStream_t stream) {
    for (const Layer &l : layers) {
        MUST(ss_rmsnorm(&l.first, (ss_stream)stream));
        MUST(ss_rope(&l.rope, (ss_stream)stream));
        MUST(ss_rmsnorm(&l.second, (ss_stream)stream));
        MUST(ss_silu_mul(&l.silu, (ss_stream)stream));
    }
}

template <class F>
double median_us(cudaStream_t stream, F run) {
    cudaEvent_t a, b;
    MUST(cudaEventCreate(&a));
    MUST(cudaEventCreate(&b));
    std::vector<float> times;
    for (int i = 0; i < kSamples + 3; i++) {
        MUST(cudaEventRecord(a, stream));
        run();
        MUST(cudaEventRecord(b, stream));
        MUST(cudaEventSynchronize(b));
        float ms;
        MUST(cudaEventElapsedTime(&ms, a, b));
        if (i >= 3) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    return 1e3 * times[times.size() / 2] / kLayers;
}

int main() {
    cudaDeviceProp card;
    MUST(cudaGetDeviceProperties(&card, 0));
    printf("%s\nshape tokens us in a graph, us in a stream\n", card.name);
    const Shape shapes[] = {{"llama2-7b", 4096, 32, 32, 11008},
                            {"codellama-34b/2", 8192, 32, 4, 11008}};
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    for (const Shape &s : shapes)
        for (int tokens : {1, 8, 16, 32, 64, 128, 256, 512, 2048}) {
            std::vector<Layer> layers;
            for (int i = 0; i < kLayers; i++) layers.push_back(layer(s, tokens));
            cudaGraph_t graph;
            cudaGraphExec_t exec;
            MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
            launch(layers, stream);
            MUST(cudaStreamEndCapture(stream, &graph));
            MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
            const double replayed = median_us(stream, [&] { MUST(cudaGraphLaunch(exec, stream)); });
            const double launched = median_us(stream, [&] { launch(layers, stream); });
            printf("%s %d %.2f %.2f\n", s.name, tokens, replayed, launched);
            fflush(stdout);
        }
}
