#include "core/gemm.h"

#include <rapidcheck/gtest.h>

#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/random.h"
#include "core/tile.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

constexpr double kEps = sizeof(real) == 4 ? 1.2e-7 : 2.3e-16;

/// A matrix inside a larger allocation, possibly stored transposed.
struct Stored {
  Tensor memory;
  Operand view;
  real at(Index i, Index j) const {
    return view.transposed ? view.data[j * view.stride + i] : view.data[i * view.stride + j];
  }
};

Stored make_matrix(Index rows, Index cols, bool transposed, Index padding, const char* name) {
  const Index stored_rows = transposed ? cols : rows, width = (transposed ? rows : cols) + padding;
  Stored m{Tensor::empty({stored_rows, width}), {}};
  fill_normal(m.memory, RandomStream(1, name), 1);
  m.view = {m.memory.data(), rows, cols, width, transposed};
  return m;
}

/// Product against sums in double, element by element, with padding that must stay untouched.
void expect_product(Index m, Index n, Index k, bool a_t, bool b_t, Into into, Index padding) {
  const Stored a = make_matrix(m, k, a_t, padding, "a"), b = make_matrix(k, n, b_t, padding, "b");
  Tensor c = Tensor::full({m, n + padding}, real(0.5));
  gemm(a.view, b.view, c.data(), n + padding, into);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = into == Into::add ? 0.5 : 0, size = std::abs(sum);
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(a.at(i, l)) * static_cast<double>(b.at(l, j));
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(c.row(i)[j]), sum, 4 * kEps * size + 1e-300)
          << m << " " << n << " " << k << " at " << i << "," << j;
    }
    for (Index j = n; j < n + padding; ++j) ASSERT_EQ(c.row(i)[j], real(0.5));
  }
}

class GemmEngine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    before_ = std::string(gemm_engine()).starts_with("libxsmm") ? "libxsmm" : "eigen";
    if (std::string(GetParam()) == "libxsmm" && tile::libxsmm_engine() == nullptr) {
      GTEST_SKIP() << "libxsmm is not available here";
    }
    set_gemm_engine(GetParam());
  }
  void TearDown() override { set_gemm_engine(before_.c_str()); }

 private:
  std::string before_;
};

TEST_P(GemmEngine, multiplies_every_kind_of_operand_at_awkward_sizes) {
  using Size = std::tuple<Index, Index, Index>;
  for (const auto& [m, n, k] : {Size{1, 1, 1}, Size{64, 64, 64}, Size{33, 70, 45}, Size{129, 65, 7},
                                Size{5, 3, 1030}, Size{40, 130, 513}, Size{2, 1, 600}}) {
    for (const bool a_t : {false, true}) {
      for (const bool b_t : {false, true}) {
        expect_product(m, n, k, a_t, b_t, Into::overwrite, 0);
        expect_product(m, n, k, a_t, b_t, Into::add, 3);
      }
    }
  }
}

TEST_P(GemmEngine, overwrites_garbage_and_gives_zeros_for_an_empty_inner_size) {
  Tensor c = Tensor::full({3, 5}, std::nan(""));
  const real nothing = 0;
  gemm({&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, Into::overwrite);
  for (real x : c.values()) EXPECT_EQ(x, 0);
  gemm({&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, Into::add);
  for (real x : c.values()) EXPECT_EQ(x, 0);
}

TEST_P(GemmEngine, results_are_bitwise_equal_for_any_number_of_threads) {
  const Stored a = make_matrix(300, 700, false, 0, "a"), b = make_matrix(700, 200, true, 0, "b");
  const auto product = [&] {
    Tensor c = Tensor::empty({300, 200});
    gemm(a.view, b.view, c.data(), 200, Into::overwrite);
    return c;
  };
  const test::Threads one(1);
  const Tensor expected = product();
  for (int threads : {2, 4, 16}) {
    const test::Threads scope(threads);
    const Tensor c = product();
    EXPECT_TRUE(std::equal(c.values().begin(), c.values().end(), expected.values().begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, GemmEngine, testing::Values("libxsmm", "eigen"),
                         [](const auto& engine) { return std::string(engine.param); });

RC_GTEST_PROP(Gemm, tile_products_of_any_size_match_sums_in_double, ()) {
  const Index m = *rc::gen::inRange<Index>(1, 70), n = *rc::gen::inRange<Index>(1, 150),
              k = *rc::gen::inRange<Index>(1, 90);
  const bool transposed = *rc::gen::arbitrary<bool>();
  const Stored a = make_matrix(m, k, transposed, 2, "a"), b = make_matrix(k, n, false, 5, "b");
  Tensor c = Tensor::full({m, n}, 1);
  tile_gemm(a.view, b.view.data, b.view.stride, n, c.data(), n, Into::add);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = 1, size = 1;
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(a.at(i, l)) * static_cast<double>(b.at(l, j));
        sum += term;
        size += std::abs(term);
      }
      RC_ASSERT(std::abs(static_cast<double>(c.row(i)[j]) - sum) <= 4 * kEps * size);
    }
  }
}

TEST(Gemm, an_unknown_engine_is_a_usage_error_that_names_the_others) {
  try {
    set_gemm_engine("cublas");
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("matrix engine 'cublas' is not available here; use"));
  }
}

}  // namespace
}  // namespace difftape
