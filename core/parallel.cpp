#include "core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>
#ifdef __SSE2__
#include <immintrin.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace difftape {

namespace {

#ifdef __SSE2__
constexpr unsigned kFlush = _MM_FLUSH_ZERO_ON | 0x40;  // results, and operands (DAZ)
#endif

void set_flush(bool on) {
#ifdef __SSE2__
  const unsigned state = _mm_getcsr();
  if (((state & kFlush) == kFlush) != on) _mm_setcsr(on ? state | kFlush : state & ~kFlush);
#else
  static_cast<void>(on);
#endif
}

// Makes writes before release visible after acquire of the same address. OpenMP does so already;
// ThreadSanitizer, which cannot see how GCC's OpenMP does it, has to be told.
#ifdef __SANITIZE_THREAD__
void release(char* address) { __tsan_release(address); }
void acquire(char* address) { __tsan_acquire(address); }
#else
void release(char*) {}
void acquire(char*) {}
#endif

/// Neighboring blocks, which one thread works on first. The same thread then tends to touch the
/// same rows in successive calls, and finds them in its cache.
struct alignas(64) Share {
  Index next, end;
};
constexpr int kMostShares = 64;  ///< bounds the stack; more threads have shares in common

/// The position of this thread within the innermost parallel call.
thread_local int position = 0;

/// Sets the position for one call.
class Position {
 public:
  explicit Position(int i) : before_(std::exchange(position, i)) {}
  ~Position() { position = before_; }
  Position(const Position&) = delete;
  Position& operator=(const Position&) = delete;

 private:
  int before_;
};

/// Keeps the first exception of several threads: one that leaves a parallel region ends the
/// program.
class FirstException {
 public:
  /// Keeps the exception that is being handled.
  void keep() {
    if (!taken_.test_and_set()) exception_ = std::current_exception();
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic_flag taken_;
  std::exception_ptr exception_;
};

/// Calls body(context, i) for the blocks of the calling thread's share, then for those that other
/// threads have left: a core that other programs use gets fewer.
void take_blocks(Share* shares, int count, void (*body)(void* context, Index i), void* context) {
  for (int k = 0; k < count; ++k) {
    Share& share = shares[(position + k) % count];
    std::atomic_ref<Index> next(share.next);
    for (Index i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
      body(context, i);
  }
}

}  // namespace

bool flushes_subnormals() {
#ifdef __SSE2__
  return (_mm_getcsr() & kFlush) == kFlush;
#else
  return false;
#endif
}

FlushSubnormals::FlushSubnormals(bool on) : before_(flushes_subnormals()) { set_flush(on); }
FlushSubnormals::~FlushSubnormals() { set_flush(before_); }

int num_threads() {
  return omp_in_parallel() ? 1 : std::min(omp_get_max_threads(), omp_get_thread_limit());
}
void set_num_threads(int count) { omp_set_num_threads(count); }
int thread_index() { return position; }

SerialScope::SerialScope() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
SerialScope::~SerialScope() { omp_set_num_threads(before_); }

namespace detail {

[[gnu::no_sanitize_thread]]  // it does not see how OpenMP passes `body` either
void parallel_blocks(Index n, void (*body)(void* context, Index i), void* context) {
  if (n <= 1 || num_threads() == 1) {
    const Position first(0);
    for (Index i = 0; i < n; ++i) body(context, i);
    return;
  }
  const bool flush = flushes_subnormals();
  const int count = std::min(omp_get_max_threads(), kMostShares);
  Share shares[kMostShares];
  for (int i = 0; i < count; ++i) shares[i] = {n * i / count, n * (i + 1) / count};
  FirstException failure;
  char begin, end;
  release(&begin);
#pragma omp parallel
  {
    acquire(&begin);
    set_flush(flush);  // threads that live on have the state of the call before
    const Position mine(omp_get_thread_num());
    try {
      take_blocks(shares, count, body, context);
    } catch (...) {
      failure.keep();
    }
    release(&end);
  }
  acquire(&end);
  failure.rethrow();
}

}  // namespace detail
}  // namespace difftape
