#include "core/gemm.h"

#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
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
  Index place(Index i, Index j) const {
    return view.transposed ? j * view.stride + i : i * view.stride + j;
  }
  real at(Index i, Index j) const { return view.data[place(i, j)]; }
  void set(Index i, Index j, real x) { memory.data()[place(i, j)] = x; }
};

Stored make_matrix(Index rows, Index cols, bool transposed, Index padding, const char* name) {
  const Index stored_rows = transposed ? cols : rows, width = (transposed ? rows : cols) + padding;
  Stored m{Tensor::empty({stored_rows, width}), {}};
  fill_normal(m.memory, RandomStream(1, name), 1);
  m.view = {m.memory.data(), rows, cols, width, transposed};
  return m;
}

Tensor random_addend(Index rows, Index cols) {
  Tensor x = Tensor::empty({rows, cols});
  fill_normal(x, RandomStream(1, "addend"), 1);
  return x;
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

void expect_long_rows_are_read(Precision precision) {  // which are packed
  for (const Into into : {Into::overwrite, Into::add}) {
    expect_product(70, 66, 40, true, false, 500, {into, precision});
    expect_product(600, 66, 40, false, false, 500, {into, precision});
    expect_product(70, 66, 1031, true, false, 500, {into, precision});  // three chunks, one odd
    expect_product(70, 66, 1031, true, true, 0, {into, precision});
  }
}

/// Operands and which of them are packed if nothing is rounded.
struct Way {
  Index m, n, k;
  bool a_t, b_t;
  Index padding;
  bool packs_a, packs_b;
  Stored a() const { return make_matrix(m, k, a_t, padding, "a"); }
  Stored b() const { return make_matrix(k, n, b_t, padding, "b"); }
};
const Way kWays[] = {
    {300, 200, 700, false, true, 0, false, true},    // B transposed: a layer forward
    {300, 200, 700, false, false, 0, false, false},  // few rows
    {600, 200, 90, false, false, 0, false, true},    // many rows
    {500, 130, 700, true, false, 0, true, false},    // long rows of A: a gradient of weights
    {200, 130, 700, true, false, 300, true, true},   // long rows of both
};

/// Whether more threads give the same bits as one.
void expect_threads_do_not_matter(const Way& way, const Request& request) {
  const Stored a = way.a(), b = way.b();
  const Tensor addend = random_addend(way.m, way.n);
  const auto product = [&](int threads) {
    const test::Threads scope(threads);
    Tensor c = Tensor::full({way.m, way.n}, real(0.5));
    multiply(a.view, b.view, c, addend, request);
    return c;
  };
  const Tensor expected = product(1);
  ASSERT_TRUE(expected.all_finite());
  for (int threads : {2, 4, 16}) {
    const Tensor c = product(threads);
    EXPECT_TRUE(std::equal(c.values().begin(), c.values().end(), expected.values().begin()))
        << way.m << " " << way.n << " " << way.k << " on " << threads << " threads";
  }
}

void expect_threads_do_not_matter(Precision precision) {
  for (const Way& way : kWays) {
    expect_threads_do_not_matter(way, {Into::overwrite, precision});
    expect_threads_do_not_matter(way, {Into::add, precision});
    expect_threads_do_not_matter(way, {Into::overwrite, precision, true});
  }
}

void expect_an_empty_inner_size_gives_the_addend(Precision precision) {
  const Tensor addend = random_addend(3, 5);
  Tensor c = Tensor::full({3, 5}, std::nan(""));
  const real nothing = 0;
  gemm_onto(addend.data(), {&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, precision);
  EXPECT_THAT(c.values(), testing::ElementsAreArray(addend.values()));
}

/// The product of a and b if element l of row 37 of A or of column 66 of B is `poison`.
void expect_poison_stays(const Stored& a, const Stored& b, Index l, bool in_a, real poison,
                         Precision precision) {
  Tensor c = Tensor::empty({a.view.rows, b.view.cols});
  gemm(a.view, b.view, c.data(), b.view.cols, Into::overwrite, precision);
  for (Index i = 0; i < a.view.rows; ++i) {
    for (Index j = 0; j < b.view.cols; ++j) {
      const real x = c.row(i)[j];
      if (in_a ? i != 37 : j != 66) {
        ASSERT_TRUE(std::isfinite(x)) << i << "," << j;
      } else if (std::isnan(poison)) {
        ASSERT_TRUE(std::isnan(x)) << i << "," << j;
      } else {
        const real other = in_a ? b.at(l, j) : a.at(i, l);
        ASSERT_EQ(x, std::copysign(std::numeric_limits<real>::infinity(), other)) << i << "," << j;
      }
    }
  }
}

void expect_what_is_not_finite_stays_in_its_row_or_column(Precision precision) {
  constexpr Index kInner = 101;  // the last is followed by padding
  constexpr real kBeyond = 3.4e38, kInfinity = std::numeric_limits<real>::infinity(),
                 kNan = std::numeric_limits<real>::quiet_NaN();  // kBeyond rounds to infinity
  for (const real poison : {kNan, kInfinity, kBeyond}) {
    for (const Index l : {Index{0}, kInner - 1}) {
      for (const bool in_a : {true, false}) {
        for (const bool transposed : {true, false}) {
          SCOPED_TRACE(testing::Message() << poison << " at " << l << ", A: " << in_a
                                          << ", transposed: " << transposed);
          Stored a = make_matrix(70, kInner, transposed, 0, "a"),
                 b = make_matrix(kInner, 90, transposed, 0, "b");
          in_a ? a.set(37, l, poison) : b.set(l, 66, poison);
          expect_poison_stays(a, b, l, in_a, poison, precision);
        }
      }
    }
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

TEST_P(GemmEngine, reads_operands_with_long_rows) {
  expect_long_rows_are_read(Precision::full);
  expect_long_rows_are_read(Precision::bf16_emulated);
}

TEST_P(GemmEngine, rounded_products_keep_what_is_not_finite_in_its_row_or_column) {
  expect_what_is_not_finite_stays_in_its_row_or_column(Precision::bf16_emulated);
}

TEST_P(GemmEngine, overwrites_garbage_and_gives_zeros_for_an_empty_inner_size) {
  Tensor c = Tensor::full({3, 5}, std::nan(""));
  const real nothing = 0;
  gemm({&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, Into::overwrite);
  for (real x : c.values()) EXPECT_EQ(x, 0);
  gemm({&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, Into::add);
  for (real x : c.values()) EXPECT_EQ(x, 0);
}

TEST_P(GemmEngine, an_empty_inner_size_gives_the_addend) {
  expect_an_empty_inner_size_gives_the_addend(Precision::full);
  expect_an_empty_inner_size_gives_the_addend(Precision::bf16_emulated);
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

TEST_F(Bf16Engine, reads_operands_with_long_rows) { expect_long_rows_are_read(Precision::bf16); }

TEST_F(Bf16Engine, keeps_what_is_not_finite_in_its_row_or_column) {
  expect_what_is_not_finite_stays_in_its_row_or_column(Precision::bf16);
}

TEST_F(Bf16Engine, an_empty_inner_size_gives_the_addend) {
  expect_an_empty_inner_size_gives_the_addend(Precision::bf16);
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

TEST(Gemm, packs_what_lies_badly_and_nothing_else) {
  const test::Threads threads(2);
  for (const Way& way : kWays) {
    const Stored a = way.a(), b = way.b();
    Index expected = way.packs_b ? packed_size(way.k, way.n) : 0;
    // Each thread has 64 rows of the 350 columns of a chunk.
    if (way.packs_a) expected += 2 * 64 * 350;
    EXPECT_EQ(gemm_scratch_bytes(a.view, b.view), expected * static_cast<Index>(sizeof(real)))
        << way.m << " " << way.n << " " << way.k;
  }
}

/// Also those that the configuration refuses, as gemm itself does not.
std::vector<Precision> precisions_that_multiply() {
  std::vector<Precision> all{Precision::full, Precision::bf16_emulated};
  if (obstacle_to(Precision::bf16).empty()) all.push_back(Precision::bf16);
  return all;
}

TEST(Gemm, takes_from_the_pool_what_it_says) {
  const test::Threads threads(2);
  for (const auto& [m, n, k] : kAwkward) {
    for (const bool transposed : {false, true}) {
      const Stored a = make_matrix(m, k, transposed, 600, "a"),
                   b = make_matrix(k, n, transposed, 600, "b");
      Tensor c = Tensor::empty({m, n});
      for (const Precision precision : precisions_that_multiply()) {
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
