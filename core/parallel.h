#pragma once
// The only user of OpenMP. Work is cut into blocks whose size never depends on the number of
// threads, each block has one owner, and one thread adds sums over blocks in block order. So
// results are bitwise equal for every number of threads. Every loop over the elements of tensors
// runs through here: a dry run (core/pool.h) calls nothing.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/pool.h"
#include "core/real.h"

namespace difftape {

/// Returns the threads of a parallel call that begins here: OMP_NUM_THREADS, or one per core; 1
/// inside a parallel call, and inside an OpenMP region of the user.
int num_threads();
void set_num_threads(int count);
/// Returns the position of the calling thread within the innermost running parallel call, from 0
/// and below what num_threads() was before the call.
int thread_index();

/// Limits parallel calls of this thread, and libraries with threads, to one thread while it lives.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  int before_;
};

/// Treats subnormals as 0, in arithmetic of this thread and of all parallel calls, while it lives
/// and is on. Subnormals occur in runs at large learning rates; processors that are slow at them
/// are then up to twice as fast. Only x86 supports it.
class FlushSubnormals {
 public:
  explicit FlushSubnormals(bool on);
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  bool before_;
};
/// Returns true if this thread treats subnormals as 0.
bool flushes_subnormals();

/// Elements in one block of a cheap element-wise loop.
inline constexpr Index kElementGrain = 16384;
/// Rows in one block, for rows of `width` elements.
constexpr Index row_grain(Index width) {
  return width >= kElementGrain ? 1 : kElementGrain / std::max<Index>(width, 1);
}

namespace detail {
/// Calls body(context, i) once for each i in [0, n).
void parallel_blocks(Index n, void (*body)(void* context, Index i), void* context);
}  // namespace detail

/// Calls f(i) for each i in [0, n), each on one thread, in no particular order. f must write only
/// what belongs to its i. Nested calls run serially. Throws the first exception of any f, after all
/// threads have stopped; some calls may then be missing.
template <class F>
void parallel_for(Index n, F&& f) {
  if (pool::dry()) return;
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

/// Calls f() on the calling thread, for loops over tensors that have one order and no blocks.
template <class F>
void serial(F&& f) {
  if (!pool::dry()) f();
}

/// Returns the sum of f(begin, count) -> double over ranges of `grain`, added in order; 0 in a dry
/// run.
template <class F>
double parallel_sum(Index n, Index grain, F&& f) {
  if (pool::dry()) return 0;
  std::vector<double> partial(ceil_div(n, grain));
  parallel_ranges(n, grain,
                  [&](Index begin, Index count) { partial[begin / grain] = f(begin, count); });
  double total = 0;
  for (double part : partial) total += part;
  return total;
}

}  // namespace difftape
