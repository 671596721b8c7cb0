// Products against sums in double: operands of every kind, ways through the packing, and promises
// that hold in every precision.
#include "core/gemm.h"

#include <rapidcheck/gtest.h>

#include <tuple>

#include "core/bf16.h"
#include "core/gemm_backend.h"
#include "core/pool.h"
#include "core/simd.h"
#include "core/tile.h"
#include "tests/core/arithmetics.h"
#include "tests/support/tensors.h"
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
  Stored m{test::random({stored_rows, width}, name), {}};
  m.view = {m.memory.data(), rows, cols, width, transposed};
  return m;
}

/// The options of one product.
struct Request {
  Accumulate accumulate = Accumulate::no;
  Precision precision = Precision::full;
  bool onto = false;  ///< a residual is added, whatever C held
};

/// Rounds one operand.
real rounded(Precision precision, real x) {
  return precision == Precision::full ? x : round_bf16(x);
}

void multiply(const Operand& a, const Operand& b, Tensor& c, const Tensor& residual,
              const Request& request) {
  if (request.onto) {
    gemm_with_residual(residual.data(), a, b, c.data(), c.shape().last(), request.precision);
  } else {
    gemm(a, b, c.data(), c.shape().last(), request.accumulate, request.precision);
  }
}

/// Product against sums in double, element by element, with padding that must stay untouched.
void expect_product(Index m, Index n, Index k, bool a_t, bool b_t, Index padding,
                    const Request& request) {
  const Stored a = make_matrix(m, k, a_t, padding, "a"), b = make_matrix(k, n, b_t, padding, "b");
  Tensor c = Tensor::full({m, n + padding}, real(0.5));
  const Tensor residual = Tensor::full({m, n + padding}, real(0.25));
  multiply(a.view, b.view, c, residual, request);
  const double start = request.onto ? 0.25 : request.accumulate == Accumulate::yes ? 0.5 : 0;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = start, size = std::abs(sum);
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(rounded(request.precision, a.at(i, l))) *
                            static_cast<double>(rounded(request.precision, b.at(l, j)));
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(c.row(i)[j]), sum, 4 * kEps * size + 1e-300)
          << m << " " << n << " " << k << " at " << i << "," << j;
    }
    for (Index j = n; j < n + padding; ++j) ASSERT_EQ(c.row(i)[j], real(0.5));
  }
}

using Size = std::tuple<Index, Index, Index>;
const Size kAwkward[] = {{1, 1, 1},      {64, 64, 64}, {33, 70, 45},   {129, 65, 7}, {5, 3, 1030},
                         {40, 130, 513}, {2, 1, 600},  {140, 500, 90}, {3, 70, 100}, {4, 9, 257},
                         {6, 66, 40},    {7, 5, 33},   {8, 40, 129},   {9, 40, 129}};

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
    {300, 200, 700, false, true, 0, false, true},    // B transposed: forward of a layer
    {300, 200, 700, false, false, 0, false, false},  // few rows
    {600, 200, 90, false, false, 0, false, true},    // many rows
    {500, 130, 700, true, false, 0, true, false},    // long rows of A: a gradient of weights
    {200, 130, 700, true, false, 300, true, true},   // long rows of both
    {3, 700, 300, false, true, 0, false, false},     // token by token: dot products
};

/// Checks that more threads give the same bits as one.
void expect_threads_do_not_matter(const Way& way, const Request& request) {
  const Stored a = way.a(), b = way.b();
  const Tensor residual = test::random({way.m, way.n}, "addend");
  const auto product = [&](int threads) {
    const test::Threads scope(threads);
    Tensor c = Tensor::full({way.m, way.n}, real(0.5));
    multiply(a.view, b.view, c, residual, request);
    return c;
  };
  const Tensor expected = product(1);
  ASSERT_TRUE(expected.all_finite());
  for (int threads : {2, 4, 16}) {
    EXPECT_TRUE(test::same(product(threads), expected))
        << way.m << " " << way.n << " " << way.k << " on " << threads << " threads";
  }
}

/// Checks the product of a and b if element l of row 37 of A or of column 66 of B is `poison`.
void expect_poison_stays(const Stored& a, const Stored& b, Index l, bool in_a, real poison,
                         Precision precision) {
  Tensor c = Tensor::empty({a.view.rows, b.view.cols});
  gemm(a.view, b.view, c.data(), b.view.cols, Accumulate::no, precision);
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

class EveryGemm : public test::EveryArithmetic {};

TEST_P(EveryGemm, multiplies_every_kind_of_operand_at_awkward_sizes) {
  for (const auto& [m, n, k] : kAwkward) {
    for (const bool a_t : {false, true}) {
      for (const bool b_t : {false, true}) {
        expect_product(m, n, k, a_t, b_t, 0, {Accumulate::no, precision});
        expect_product(m, n, k, a_t, b_t, 3, {Accumulate::yes, precision});
        expect_product(m, n, k, a_t, b_t, 5, {Accumulate::no, precision, true});
      }
    }
  }
}

TEST_P(EveryGemm, reads_operands_with_long_rows) {  // which are packed
  for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
    const Request request{accumulate, precision};
    expect_product(70, 66, 40, true, false, 500, request);
    expect_product(600, 66, 40, false, false, 500, request);
    expect_product(70, 66, 1031, true, false, 500, request);  // several chunks, one odd
    expect_product(70, 66, 1031, true, true, 0, request);
    expect_product(710, 1030, 40, true, false, 0, request);  // more panels than a task
  }
}

TEST_P(EveryGemm, confines_non_finite_elements_to_their_row_or_column) {
  constexpr Index kInner = 101;  // the last is followed by padding
  constexpr real kBeyond = 3.4e38, kBeyondAll = std::numeric_limits<real>::infinity(),
                 kNan = std::numeric_limits<real>::quiet_NaN();  // kBeyond rounds to infinity
  for (const real poison : {kNan, kBeyondAll, kBeyond}) {
    if (precision == Precision::full && poison == kBeyond) continue;
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

TEST_P(EveryGemm, of_an_empty_inner_size_gives_zeros_or_the_addend) {
  const Tensor residual = test::random({3, 5}, "addend");
  Tensor c = Tensor::full({3, 5}, std::nan(""));
  const real nothing = 0;
  const Operand a{&nothing, 3, 0, 1}, b{&nothing, 0, 5, 5};
  for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
    gemm(a, b, c.data(), 5, accumulate, precision);
    EXPECT_THAT(c.values(), testing::Each(real{0}));
  }
  gemm_with_residual(residual.data(), a, b, c.data(), 5, precision);
  EXPECT_THAT(c.values(), testing::ElementsAreArray(residual.values()));
}

TEST_P(EveryGemm, is_bitwise_equal_for_any_number_of_threads) {
  for (const Way& way : kWays) {
    expect_threads_do_not_matter(way, {Accumulate::no, precision});
    expect_threads_do_not_matter(way, {Accumulate::yes, precision});
    expect_threads_do_not_matter(way, {Accumulate::no, precision, true});
  }
}

TEST_P(EveryGemm, takes_equal_memory_in_a_dry_run) {
  const test::Threads threads(2);
  for (const auto& [m, n, k] : kAwkward) {
    for (const bool transposed : {false, true}) {
      const Stored a = make_matrix(m, k, transposed, 600, "a"),
                   b = make_matrix(k, n, transposed, 600, "b");
      Tensor c = Tensor::empty({m, n});
      pool::reset_peak();
      const auto before = pool::stats().bytes_in_use;
      gemm(a.view, b.view, c.data(), n, Accumulate::no, precision);
      const auto taken = pool::stats().peak_bytes_in_use - before;
      const pool::DryRun dry;
      gemm(a.view, b.view, nullptr, n, Accumulate::no, precision);
      EXPECT_EQ(pool::stats().peak_bytes_in_use, taken);
      EXPECT_EQ(pool::stats().bytes_in_use, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Arithmetics, EveryGemm, testing::ValuesIn(test::arithmetics()),
                         test::name_of);

RC_GTEST_PROP(Gemm, tile_products_of_any_size_match_sums_in_double, ()) {
  const Index m = *rc::gen::inRange<Index>(1, 70), n = *rc::gen::inRange<Index>(1, 150),
              k = *rc::gen::inRange<Index>(1, 90);
  const bool transposed = *rc::gen::arbitrary<bool>();
  const Stored a = make_matrix(m, k, transposed, 2, "a"), b = make_matrix(k, n, false, 5, "b");
  Tensor c = Tensor::full({m, n}, 1);
  tile_gemm(a.view, b.view.data, b.view.stride, n, c.data(), n, Accumulate::yes);
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

TEST(Gemm, of_bfloat16_has_a_backend_with_a_name_or_a_reason) {
  EXPECT_TRUE(!bf16_backend_name().empty() || !unsupported_reason(Precision::bf16).empty());
}

TEST(Gemm, of_bfloat16_by_units_of_the_processor_has_the_bits_of_emulation) {
  const std::string unsupported = unsupported_reason(Precision::bf16);
  if (!unsupported.empty()) GTEST_SKIP() << test::kOtherHardware << unsupported;
  for (const auto& [m, n, k] : {std::array<Index, 3>{1, 1, 1}, {7, 70, 1300}, {150, 65, 33}}) {
    const Tensor a = test::random({m, k}, "a"), b = test::random({n, k}, "b");
    std::vector<Tensor> found;
    for (const Precision precision : {Precision::bf16, Precision::bf16_emulated}) {
      Tensor c = Tensor::full({m, n}, 1);
      gemm(matrix(a), transpose(matrix(b)), c.data(), n, Accumulate::yes, precision);
      found.push_back(c);
    }
    EXPECT_TRUE(test::same(found[0], found[1])) << m << " x " << n << " x " << k;
  }
}

TEST(Gemm, doubles_are_not_rounded_to_bfloat16) {
  EXPECT_EQ(unsupported_reason(Precision::full), "");
  if (sizeof(real) == 4) {
    EXPECT_EQ(unsupported_reason(Precision::bf16_emulated), "");
  } else {
    EXPECT_THAT(unsupported_reason(Precision::bf16_emulated), HasSubstr("f32"));
    EXPECT_THAT(unsupported_reason(Precision::bf16), HasSubstr("f32"));
  }
}

TEST(Gemm, computes_inside_an_openmp_region_that_is_not_ours) {
  const Tensor a = test::random({200, 700}, "a"), b = test::random({700, 130}, "b");
  const auto product = [&](Tensor& c) {
    gemm(transpose(transpose(matrix(a))), matrix(b), c.data(), 130, Accumulate::no);
    gemm(transpose(matrix(a)), matrix(c.data(), 200, 130), c.row(200), 130, Accumulate::yes);
  };
  const auto zeros = [] { return Tensor::zeros({900, 130}); };
  const test::Threads scope(2);
  Tensor expected = zeros();
  product(expected);
  std::vector<Tensor> found{zeros(), zeros(), zeros(), zeros()};
#pragma omp parallel for num_threads(4)
  for (size_t i = 0; i < found.size(); ++i) product(found[i]);
  for (const Tensor& c : found) EXPECT_TRUE(test::same(c, expected));
  parallel_for(4, [&](Index i) {
    const SerialScope serial;
    found[i].fill(0);
    product(found[i]);
  });
  for (const Tensor& c : found) EXPECT_TRUE(test::same(c, expected));
}

TEST(Gemm, packs_only_operands_with_an_unsuitable_layout) {
  const test::Threads threads(2);
  for (const Way& way : kWays) {
    const Stored a = way.a(), b = way.b();
    Index expected = way.packs_b ? round_up(way.n, kPanel) * way.k : 0;
    // Each thread has 64 rows of a chunk of the 700 columns: of a half or, with narrow registers,
    // of an eighth.
    const Index chunks = detail::kRegisterBytes == 64 ? 2 : 8;
    if (way.packs_a) expected += 2 * 64 * ceil_div(700, chunks);
    const pool::DryRun dry;
    gemm(a.view, b.view, nullptr, way.n, Accumulate::no);
    // Both begin on whole cache lines.
    EXPECT_EQ(static_cast<Index>(pool::stats().peak_bytes_in_use),
              expected * static_cast<Index>(sizeof(real)))
        << way.m << " " << way.n << " " << way.k;
  }
}

TEST(Gemm, an_element_of_a_portable_tile_is_one_chain_of_multiply_adds) {
  for (const Index m : {1, 6, 7, 32}) {
    for (const Index n : {1, 2, 5, 8, 9, 16, 19, 24, 28, 40, 64}) {
      for (const auto& [transposed, add] : {std::pair{false, true}, {true, true}, {true, false}}) {
        const Stored a = make_matrix(m, 45, transposed, 2, "a"),
                     b = make_matrix(45, n, false, 5, "b");
        Tensor c = Tensor::full({m, n + 1}, real(0.3));
        const tile::Product shape{m, n, 45, a.view.stride, b.view.stride, n + 1, transposed, add};
        tile::portable_backend()->kernel(shape)(a.view.data, b.view.data, c.data());
        for (Index i = 0; i < m; ++i) {
          for (Index j = 0; j < n; ++j) {
            real sum = add ? real(0.3) : 0;
            for (Index k = 0; k < 45; ++k) {
              const real x = a.at(i, k), y = b.at(k, j);
              sum = kFma ? std::fma(x, y, sum) : x * y + sum;
            }
            ASSERT_EQ(c.row(i)[j], sum) << m << " x " << n << " at " << i << ", " << j;
          }
          ASSERT_EQ(c.row(i)[n], real(0.3)) << "beyond the columns";
        }
      }
    }
  }
}

TEST(Gemm, an_unknown_gemm_backend_is_a_usage_error_that_names_the_others) {
  EXPECT_THAT(message_of<UsageError>([] { tile::backend_by_name("cublas"); }),
              HasSubstr("GEMM backend 'cublas' is not available here; use"));
}

}  // namespace
}  // namespace difftape
