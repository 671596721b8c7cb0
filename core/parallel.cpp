#include "core/parallel.h"

#include <omp.h>

namespace difftape {

int num_threads() { return omp_get_max_threads(); }
void set_num_threads(int count) { omp_set_num_threads(count); }
int thread_index() { return omp_get_thread_num(); }

SerialScope::SerialScope() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
SerialScope::~SerialScope() { omp_set_num_threads(before_); }

namespace detail {

void parallel_blocks(Index n, void (*body)(void* context, Index i), void* context) {
  if (omp_in_parallel() || omp_get_max_threads() == 1) {
    for (Index i = 0; i < n; ++i) body(context, i);
    return;
  }
  // Blocks are handed out as threads become free: a core that other programs use gets fewer.
#pragma omp parallel for schedule(dynamic, 1)
  for (Index i = 0; i < n; ++i) body(context, i);
}

}  // namespace detail
}  // namespace difftape
