#include "core/gemm.h"

#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "core/pool.h"
#include "core/simd.h"
#include "core/tile.h"
#include "tests/core/products.h"

namespace difftape {
namespace {

using namespace test;

/// What tiles of `real` multiply.
std::vector<Precision> emulated() {
  std::vector<Precision> all = precisions_that_multiply();
  std::erase_if(all, [](Precision p) { return p != Precision::full && !is_emulated(p); });
  return all;
}
/// What tiles of bfloat16 multiply.
constexpr Precision kOfUnits[] = {Precision::bf16, Precision::bf16x3, Precision::bf16x6};

class GemmBackend : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    before_ = std::string(gemm_backend()).starts_with("libxsmm") ? "libxsmm" : "portable";
    if (std::string(GetParam()) == "libxsmm" && tile::libxsmm_backend() == nullptr) {
      GTEST_SKIP() << "libxsmm is not available here";
    }
    set_gemm_backend(GetParam());
  }
  void TearDown() override { set_gemm_backend(before_.c_str()); }

 private:
  std::string before_;
};

TEST_P(GemmBackend, multiplies_every_kind_of_operand_at_awkward_sizes) {
  for (const Precision precision : emulated()) expect_products(precision);
}

TEST_P(GemmBackend, reads_operands_with_long_rows) {
  for (const Precision precision : emulated()) expect_long_rows_are_read(precision);
}

TEST_P(GemmBackend, rounded_products_keep_what_is_not_finite_in_its_row_or_column) {
  for (const Precision precision : emulated()) {
    if (precision == Precision::full) continue;
    expect_what_is_not_finite_stays_in_its_row_or_column(precision);
  }
}

TEST_P(GemmBackend, overwrites_garbage_and_gives_zeros_for_an_empty_inner_size) {
  Tensor c = Tensor::full({3, 5}, std::nan(""));
  const real nothing = 0;
  gemm({&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, Accumulate::no);
  for (real x : c.values()) EXPECT_EQ(x, 0);
  gemm({&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5, Accumulate::yes);
  for (real x : c.values()) EXPECT_EQ(x, 0);
}

TEST_P(GemmBackend, an_empty_inner_size_gives_the_addend) {
  for (const Precision precision : emulated())
    expect_an_empty_inner_size_gives_the_addend(precision);
}

TEST_P(GemmBackend, results_are_bitwise_equal_for_any_number_of_threads) {
  for (const Precision precision : emulated()) expect_threads_do_not_matter(precision);
}

INSTANTIATE_TEST_SUITE_P(Backends, GemmBackend, testing::Values("libxsmm", "portable"),
                         [](const auto& backend) { return std::string(backend.param); });

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

class Bf16Backend : public testing::Test {
 protected:
  void SetUp() override {
    const std::string unsupported = unsupported_reason(Precision::bf16);
    if (!unsupported.empty()) GTEST_SKIP() << unsupported;
  }
};

TEST_F(Bf16Backend, multiplies_every_kind_of_operand_at_awkward_sizes) {
  for (const Precision precision : kOfUnits) expect_products(precision);
}

TEST_F(Bf16Backend, reads_operands_with_long_rows) {
  for (const Precision precision : kOfUnits) expect_long_rows_are_read(precision);
}

TEST_F(Bf16Backend, keeps_what_is_not_finite_in_its_row_or_column) {
  for (const Precision precision : kOfUnits)
    expect_what_is_not_finite_stays_in_its_row_or_column(precision);
}

TEST_F(Bf16Backend, an_empty_inner_size_gives_the_addend) {
  for (const Precision precision : kOfUnits) expect_an_empty_inner_size_gives_the_addend(precision);
}

TEST_F(Bf16Backend, results_are_bitwise_equal_for_any_number_of_threads) {
  for (const Precision precision : kOfUnits) expect_threads_do_not_matter(precision);
}

TEST_F(Bf16Backend, has_a_name) { EXPECT_THAT(bf16_backend_name(), testing::Not("")); }

TEST(Gemm, doubles_are_not_rounded_to_bfloat16) {
  EXPECT_EQ(unsupported_reason(Precision::full), "");
  if (sizeof(real) == 4) {
    EXPECT_EQ(unsupported_reason(Precision::bf16_emulated), "");
  } else {
    EXPECT_THAT(unsupported_reason(Precision::bf16_emulated), testing::HasSubstr("f32"));
    EXPECT_THAT(unsupported_reason(Precision::bf16), testing::HasSubstr("f32"));
  }
}

TEST(Gemm, several_bfloat16s_are_as_exact_as_their_name_says) {
  if (sizeof(real) == 8) GTEST_SKIP() << "bfloat16 is of the f32 program";
  const Stored a = make_matrix(40, 300, false, 0, "a"), b = make_matrix(300, 70, true, 0, "b");
  const auto error = [&](Precision precision) {
    Tensor c = Tensor::empty({40, 70});
    gemm(a.view, b.view, c.data(), 70, Accumulate::no, precision);
    double squares = 0, sizes = 0;
    for (Index i = 0; i < 40; ++i) {
      for (Index j = 0; j < 70; ++j) {
        double sum = 0;
        for (Index l = 0; l < 300; ++l)
          sum += static_cast<double>(a.at(i, l)) * static_cast<double>(b.at(l, j));
        squares += std::pow(static_cast<double>(c.row(i)[j]) - sum, 2);
        sizes += sum * sum;
      }
    }
    return std::sqrt(squares / sizes);
  };
  const double full = error(Precision::full);
  for (const Precision precision : precisions_that_multiply()) {
    const double found = error(precision);
    RecordProperty(fmt::format("precision_{}", static_cast<int>(precision)),
                   fmt::format("{:.2e}", found));
    constexpr double kMost[] = {0, 4e-3, 6e-6, 0};
    const int parts = parts_of(precision);
    EXPECT_LT(found, parts == 0 || parts == 3 ? 1.5 * full : kMost[parts]) << parts;
  }
}

TEST(Gemm, packs_what_lies_badly_and_nothing_else) {
  const test::Threads threads(2);
  for (const Way& way : kWays) {
    const Stored a = way.a(), b = way.b();
    Index expected = way.packs_b ? packed_size(way.k, way.n) : 0;
    // Each thread has 64 rows of the 350 columns of a chunk.
    if (way.packs_a) expected += 2 * 64 * 350;
    const pool::DryRun dry;
    gemm(a.view, b.view, nullptr, way.n, Accumulate::no);
    // Both begin on whole cache lines.
    EXPECT_EQ(static_cast<Index>(pool::stats().peak_bytes_in_use),
              expected * static_cast<Index>(sizeof(real)))
        << way.m << " " << way.n << " " << way.k;
  }
}

TEST(Gemm, takes_in_a_dry_run_what_it_takes_from_the_pool) {
  const test::Threads threads(2);
  for (const auto& [m, n, k] : kAwkward) {
    for (const bool transposed : {false, true}) {
      const Stored a = make_matrix(m, k, transposed, 600, "a"),
                   b = make_matrix(k, n, transposed, 600, "b");
      Tensor c = Tensor::empty({m, n});
      for (const Precision precision : precisions_that_multiply()) {
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
}

TEST(Gemm, an_element_of_a_portable_tile_is_one_chain_of_fused_multiply_adds) {
  if (!kFma) GTEST_SKIP() << "none here";
  for (const Index m : {1, 6, 7, 32}) {
    for (const Index n : {Index{1}, Index{19}, kPanel}) {
      for (const bool transposed : {false, true}) {
        const Stored a = make_matrix(m, 45, transposed, 2, "a"),
                     b = make_matrix(45, n, false, 5, "b");
        Tensor c = Tensor::full({m, n}, real(0.3));
        const tile::Product shape{m, n, 45, a.view.stride, b.view.stride, n, transposed, true};
        tile::portable_backend()->kernel(shape)(a.view.data, b.view.data, c.data());
        for (Index i = 0; i < m; ++i) {
          for (Index j = 0; j < n; ++j) {
            real sum = real(0.3);
            for (Index k = 0; k < 45; ++k) sum = std::fma(a.at(i, k), b.at(k, j), sum);
            ASSERT_EQ(c.row(i)[j], sum) << m << " x " << n << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(Gemm, an_unknown_gemm_backend_is_a_usage_error_that_names_the_others) {
  try {
    set_gemm_backend("cublas");
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("GEMM backend 'cublas' is not available here; use"));
  }
}

}  // namespace
}  // namespace difftape
