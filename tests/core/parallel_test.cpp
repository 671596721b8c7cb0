#include "core/parallel.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "core/error.h"
#include "tests/support/test.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

TEST(Parallel, every_index_runs_exactly_once_for_any_number_of_threads) {
  for (int threads : {1, 2, 4, 7, 70}) {
    const test::Threads scope(threads);
    std::vector<std::atomic<int>> runs(1000);
    parallel_for(1000, [&](Index i) { ++runs[static_cast<size_t>(i)]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST(Parallel, a_thread_takes_over_what_a_busy_one_has_left) {
  const test::Threads scope(2);
  std::atomic<int> runs = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for(100, [&](Index i) {
    while (i == 0 && runs < 99 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    if (i == 0) {
      EXPECT_EQ(runs, 99) << "all other blocks";
    }
    ++runs;
  });
}

TEST(Parallel, ranges_cover_everything_with_blocks_of_one_size) {
  std::vector<Index> counts(5);
  parallel_ranges(1000, 232, [&](Index begin, Index count) {
    counts[static_cast<size_t>(begin / 232)] = count;
  });
  EXPECT_THAT(counts, ElementsAre(232, 232, 232, 232, 72));
}

TEST(Parallel, sums_are_bitwise_equal_for_any_number_of_threads) {
  const auto sum = [] {
    return parallel_sum(100000, 1000, [](Index begin, Index count) {
      double part = 0;
      for (Index i = begin; i < begin + count; ++i) part += 1.0 / static_cast<double>(i + 1);
      return part;
    });
  };
  const test::Threads one(1);
  const double expected = sum();
  EXPECT_NEAR(expected, 12.0901461298634279, 1e-12);
  for (int threads : {2, 3, 16}) {
    const test::Threads scope(threads);
    EXPECT_EQ(sum(), expected);
  }
}

/// Calls f() on `threads` threads of an OpenMP region that is not ours.
template <class F>
void in_foreign_region(int threads, F&& f) {
#pragma omp parallel num_threads(threads)
  f();
}

TEST(Parallel, the_position_is_below_the_number_of_threads_in_nested_calls_on_threads) {
  for (const int threads : {1, 2, 4}) {
    const test::Threads scope(threads);
    std::atomic<int> outside = 0, nested = 0;
    const auto call = [&] {
      const int count = num_threads();
      for (const Index n : {1, 3}) {
        parallel_for(n, [&](Index) {
          if (thread_index() >= count) ++outside;
          ++nested;
        });
      }
    };
    in_foreign_region(3, call);
    parallel_for(8, [&](Index) { call(); });
    parallel_for(8, [&](Index) {
      const SerialScope serial;
      call();
    });
    EXPECT_EQ(nested, 19 * 4);
    EXPECT_EQ(outside, 0);
    EXPECT_EQ(num_threads(), threads);
    EXPECT_EQ(thread_index(), 0);
  }
}

TEST(Parallel, an_outer_call_has_its_position_again_after_a_nested_one_on_threads) {
  const test::Threads scope(3);
  std::atomic<int> changed = 0;
  parallel_for(30, [&](Index) {
    const int before = thread_index();
    parallel_for(2, [](Index) {});
    if (thread_index() != before) ++changed;
  });
  EXPECT_EQ(changed, 0);
}

TEST(Parallel, an_exception_leaves_the_call_on_threads_and_the_next_one_runs) {
  for (const int threads : {1, 2, 3}) {
    const test::Threads scope(threads);
    const auto failing = [](Index i) {
      if (i % 7 == 3) throw std::bad_alloc();
    };
    EXPECT_THROW(parallel_for(100, failing), std::bad_alloc);
    EXPECT_THROW(parallel_for(1, [](Index) { throw UsageError("once"); }), UsageError);
    std::atomic<int> runs = 0;
    parallel_for(100, [&](Index) { ++runs; });
    EXPECT_EQ(runs, 100);
    EXPECT_EQ(thread_index(), 0);
  }
}

TEST(Parallel, nothing_runs_for_an_empty_range) {
  parallel_for(0, [](Index) { FAIL(); });
  EXPECT_EQ(parallel_sum(0, 10, [](Index, Index) { return 1.0; }), 0);
}

TEST(Parallel, nothing_runs_in_a_dry_run) {
  const test::Threads threads(2);
  int runs = 0;
  {
    const pool::DryRun dry;
    for (const Index n : {1, 2, 1000}) parallel_for(n, [](Index) { FAIL(); });
    parallel_ranges(1000, 10, [](Index, Index) { FAIL(); });
    serial([] { FAIL(); });
    EXPECT_EQ(parallel_sum(1000, 10, [](Index, Index) { return 1.0; }), 0);
  }
  serial([&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(parallel_sum(1000, 10, [](Index, Index) { return 1.0; }), 100);
}

#ifdef __SSE2__
/// Returns the number of sums of two normal numbers with a subnormal result that are 0, over all
/// threads.
Index flushed_sums() {
  constexpr Index kSums = 1000;
  const volatile real tiny = std::numeric_limits<real>::min();
  return static_cast<Index>(parallel_sum(kSums, 1, [&](Index, Index) {
    return tiny * real{0.5} == 0 ? 1.0 : 0.0;  // exact comparison: rounds to 0 or not
  }));
}

TEST(FlushSubnormals, holds_on_every_thread_while_it_lives_and_no_longer) {
  for (const int threads : {4, 1, 2, 4}) {
    const test::Threads scope(threads);
    EXPECT_EQ(flushed_sums(), 0);
    {
      const FlushSubnormals flush(true);
      EXPECT_TRUE(flushes_subnormals());
      EXPECT_EQ(flushed_sums(), 1000);
      {
        const FlushSubnormals keep(false);
        EXPECT_EQ(flushed_sums(), 0);
      }
      EXPECT_EQ(flushed_sums(), 1000);
    }
    EXPECT_FALSE(flushes_subnormals());
    EXPECT_EQ(flushed_sums(), 0);
  }
}
#endif

}  // namespace
}  // namespace difftape
