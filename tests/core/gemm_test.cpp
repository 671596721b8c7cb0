#include "core/gemm.h"

#include <rapidcheck/gtest.h>

#include <cmath>
#include <tuple>

#include "core/bf16.h"
#include "core/error.h"
#include "core/pool.h"
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

/// How a product is asked for, and what its operands become.
struct Request {
  Into into = Into::overwrite;
  Precision precision = Precision::full;
  bool onto = false;  ///< an addend, whatever C held
};

real rounded(Precision precision, real x) {
  return precision == Precision::full ? x : round_bf16(x);
}

void multiply(const Operand& a, const Operand& b, Tensor& c, const Tensor& addend,
              const Request& request) {
  if (request.onto) {
    gemm_onto(addend.data(), a, b, c.data(), c.shape().last(), request.precision);
  } else {
    gemm(a, b, c.data(), c.shape().last(), request.into, request.precision);
  }
}

/// Product against sums in double, element by element, with padding that must stay untouched.
void expect_product(Index m, Index n, Index k, bool a_t, bool b_t, Index padding,
                    const Request& request) {
  const Stored a = make_matrix(m, k, a_t, padding, "a"), b = make_matrix(k, n, b_t, padding, "b");
  Tensor c = Tensor::full({m, n + padding}, real(0.5));
  const Tensor addend = Tensor::full({m, n + padding}, real(0.25));
  multiply(a.view, b.view, c, addend, request);
  const double start = request.onto ? 0.25 : request.into == Into::add ? 0.5 : 0;
  const double eps = request.precision == Precision::bf16 ? 1.2e-7 : kEps;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = start, size = std::abs(sum);
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(rounded(request.precision, a.at(i, l))) *
                            static_cast<double>(rounded(request.precision, b.at(l, j)));
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(c.row(i)[j]), sum, 4 * eps * size + 1e-300)
          << m << " " << n << " " << k << " at " << i << "," << j;
    }
    for (Index j = n; j < n + padding; ++j) ASSERT_EQ(c.row(i)[j], real(0.5));
  }
}

using Size = std::tuple<Index, Index, Index>;
const Size kAwkward[] = {{1, 1, 1},    {64, 64, 64},   {33, 70, 45}, {129, 65, 7},
                         {5, 3, 1030}, {40, 130, 513}, {2, 1, 600},  {140, 500, 90}};

void expect_products(Precision precision) {
  for (const auto& [m, n, k] : kAwkward) {
    for (const bool a_t : {false, true}) {
      for (const bool b_t : {false, true}) {
        expect_product(m, n, k, a_t, b_t, 0, {Into::overwrite, precision});
        expect_product(m, n, k, a_t, b_t, 3, {Into::add, precision});
        expect_product(m, n, k, a_t, b_t, 5, {Into::overwrite, precision, true});
      }
    }
  }
}

void expect_threads_do_not_matter(Precision precision) {
  const Stored a = make_matrix(300, 700, false, 0, "a"), b = make_matrix(700, 200, true, 0, "b");
  const auto product = [&] {
    Tensor c = Tensor::empty({300, 200});
    gemm(a.view, b.view, c.data(), 200, Into::overwrite, precision);
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
  expect_products(Precision::full);
  expect_products(Precision::bf16_emulated);
}

TEST_P(GemmEngine, reads_operands_with_long_rows) {  // which it packs
  expect_product(70, 66, 40, true, false, 500, {});
  expect_product(600, 66, 40, false, false, 500, {});
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
  expect_threads_do_not_matter(Precision::full);
  expect_threads_do_not_matter(Precision::bf16_emulated);
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

class Bf16Engine : public testing::Test {
 protected:
  void SetUp() override {
    const std::string obstacle = obstacle_to(Precision::bf16);
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

TEST_F(Bf16Engine, multiplies_every_kind_of_operand_at_awkward_sizes) {
  expect_products(Precision::bf16);
}

TEST_F(Bf16Engine, results_are_bitwise_equal_for_any_number_of_threads) {
  expect_threads_do_not_matter(Precision::bf16);
}

TEST_F(Bf16Engine, has_a_name) { EXPECT_THAT(bf16_engine_name(), testing::Not("")); }

TEST(Gemm, precisions_have_words_that_name_them) {
  const std::vector<std::string> words = precision_words();
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(precision_named(words[0]), Precision::full);
  EXPECT_EQ(precision_named(words[1]), Precision::bf16);
  EXPECT_EQ(precision_named(words[2]), Precision::bf16_emulated);
  EXPECT_THROW(precision_named("fp8"), std::out_of_range);
}

TEST(Gemm, doubles_are_not_rounded_to_bfloat16) {
  EXPECT_EQ(obstacle_to(Precision::full), "");
  if (sizeof(real) == 4) {
    EXPECT_EQ(obstacle_to(Precision::bf16_emulated), "");
  } else {
    EXPECT_THAT(obstacle_to(Precision::bf16_emulated), testing::HasSubstr("f32"));
    EXPECT_THAT(obstacle_to(Precision::bf16), testing::HasSubstr("f32"));
  }
}

TEST(Gemm, takes_from_the_pool_what_it_says) {
  const test::Threads threads(2);
  for (const auto& [m, n, k] : kAwkward) {
    for (const bool transposed : {false, true}) {
      const Stored a = make_matrix(m, k, transposed, 600, "a"),
                   b = make_matrix(k, n, transposed, 600, "b");
      Tensor c = Tensor::empty({m, n});
      for (const Precision precision : {Precision::full, Precision::bf16_emulated}) {
        pool::reset_peak();
        const auto before = static_cast<double>(pool::stats().bytes_in_use);
        gemm(a.view, b.view, c.data(), n, Into::overwrite, precision);
        const double taken = static_cast<double>(pool::stats().peak_bytes_in_use) - before;
        const auto said = static_cast<double>(gemm_scratch_bytes(a.view, b.view, precision));
        EXPECT_GE(taken, said);
        EXPECT_LT(taken, said + 2 * 64);  // of two blocks, each a multiple of 64 bytes
      }
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
