// Which kernel computes MInference's sparse prefill (ss_mi_attend_args in sparseserve.h).
#include "mi.cuh"

namespace ss {

static bool aligned(const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Whether the kernel of sm_90a applies: on that GPU only, at addresses that its copies can read.
int mi_on_hopper(const ss_prefill_args &p, bool *yes) {
  Limits found;
  SS_TRY(limits(&found));
  *yes = found.capability == 90 && mi_hopper_built() && p.head_dim == 128 && aligned(p.q) &&
         aligned(p.out) && (p.table != nullptr ? aligned(p.pool) : aligned(p.k) && aligned(p.v));
  return SS_OK;
}

static int check_attend(const ss_mi_attend_args *a) {
  SS_NEED(a != nullptr);
  const ss_prefill_args &p = a->prefill;
  SS_NEED(p.q_tokens >= 0 && p.prefix >= 0 &&
          int64_t(p.q_tokens) + p.prefix <= kNoBlock - kMiQueries);
  SS_NEED(p.heads_kv > 0 && p.heads_q > 0 && p.heads_q % p.heads_kv == 0);
  SS_NEED(p.head_dim == 128 && p.table == nullptr);
  for (int64_t stride : {p.q_token_stride, p.q_head_stride, p.k_token_stride, p.k_head_stride,
                         p.v_token_stride, p.v_head_stride, p.out_token_stride, p.out_head_stride})
    SS_NEED(stride % 8 == 0);
  if (p.q_tokens == 0) return SS_OK;
  SS_NEED(p.q != nullptr && p.k != nullptr && p.v != nullptr && p.out != nullptr);
  SS_NEED((a->blocks == nullptr) == (a->counts == nullptr) &&
          (a->blocks == nullptr) == (a->columns == nullptr));
  SS_NEED(a->sink >= 0 && a->window >= 0 && a->block_stride >= 0 && a->column_stride >= 0);
  SS_NEED(aligned(a->counts));  // read as one
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_mi_attend(const ss_mi_attend_args *args, ss_stream stream) {
  SS_TRY(ss::check_attend(args));
  if (args->prefill.q_tokens == 0) return SS_OK;
  bool hopper = false;
  SS_TRY(ss::mi_on_hopper(args->prefill, &hopper));
  return hopper ? ss::mi_hopper(*args, ss::stream_of(stream))
                : ss::mi_ampere(*args, ss::stream_of(stream));
}

extern "C" int ss_mi_kernel(const ss_mi_attend_args *args, int32_t *hopper) {
  SS_TRY(ss::check_attend(args));
  SS_NEED(hopper != nullptr);
  bool yes = false;
  SS_TRY(ss::mi_on_hopper(args->prefill, &yes));
  *hopper = yes;
  return SS_OK;
}
