#pragma once
// The only user of OpenMP. Work is cut into blocks whose size never depends on the number of
// threads, each block has one owner, and sums over blocks are added in block order by one thread:
// results are bitwise equal for every number of threads. Every loop over the elements of tensors
// runs through here: in a dry run (core/pool.h) nothing is called.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/pool.h"
#include "core/real.h"

namespace difftape {

/// Threads that a parallel call uses: OMP_NUM_THREADS, or one a core.
int num_threads();
void set_num_threads(int count);
/// Position of the calling thread within the running parallel call, from 0.
int thread_index();

/// While one lives, parallel calls from this thread and libraries with threads of their own use one
/// thread.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  int before_;
};

/// While one lives that is on, arithmetic takes subnormal numbers, those below 1.2e-38 in f32, for
/// 0: of this thread and of all parallel calls. Where processors are slow at them, which a run
/// meets at large learning rates, that is up to twice the speed. Those of x86 do it; others stay as
/// they are.
class FlushSubnormals {
 public:
  explicit FlushSubnormals(bool on);
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  bool before_;
};
/// Returns true if this thread does.
bool flushes_subnormals();

/// Elements in one block of a cheap element-wise loop.
inline constexpr Index kElementGrain = 16384;
/// Rows in one block, for rows of `width` elements.
constexpr Index row_grain(Index width) {
  return width >= kElementGrain ? 1 : kElementGrain / std::max<Index>(width, 1);
}

namespace detail {
/// Calls body(context, i) for each i in [0, n), each by one thread.
void parallel_blocks(Index n, void (*body)(void* context, Index i), void* context);
}  // namespace detail

/// Calls f(i) for each i in [0, n); each i runs on one thread, in no promised order.
/// f must not throw and must only write what belongs to its i. Nested calls run serially.
template <class F>
void parallel_for(Index n, F&& f) {
  if (pool::dry()) return;
  if (n == 1) {
    f(Index{0});
    return;
  }
  detail::parallel_blocks(
      n, [](void* context, Index i) { (*static_cast<std::remove_reference_t<F>*>(context))(i); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

/// Calls f(begin, count) for consecutive ranges of `grain` elements (the last may be shorter).
template <class F>
void parallel_ranges(Index n, Index grain, F&& f) {
  parallel_for(ceil_div(n, grain), [&](Index block) {
    const Index begin = block * grain;
    f(begin, std::min(grain, n - begin));
  });
}

/// Calls f() on the calling thread: for a loop over tensors that has one order and no blocks.
template <class F>
void serial(F&& f) {
  if (!pool::dry()) f();
}

/// Sum of f(begin, count) -> double over ranges of `grain`, added in the order of the ranges; 0 in
/// a dry run.
template <class F>
double parallel_sum(Index n, Index grain, F&& f) {
  if (pool::dry()) return 0;
  std::vector<double> partial(ceil_div(n, grain));
  parallel_ranges(
      n, grain, [&](Index begin, Index count) { partial[begin / grain] = f(begin, count); });
  double total = 0;
  for (double part : partial) total += part;
  return total;
}

}  // namespace difftape
