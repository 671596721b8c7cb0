#pragma once
// Products against sums in double: operands of every kind, ways through the packing, what must hold
// in every precision.

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "core/bf16.h"
#include "core/gemm.h"
#include "core/random.h"
#include "tests/support/threads.h"

namespace difftape::test {

inline constexpr double kEps = sizeof(real) == 4 ? 1.2e-7 : 2.3e-16;

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

inline Stored make_matrix(Index rows, Index cols, bool transposed, Index padding,
                          const char* name) {
  const Index stored_rows = transposed ? cols : rows, width = (transposed ? rows : cols) + padding;
  Stored m{Tensor::empty({stored_rows, width}), {}};
  fill_normal(m.memory, RandomStream(1, name), 1);
  m.view = {m.memory.data(), rows, cols, width, transposed};
  return m;
}

inline Tensor random_addend(Index rows, Index cols) {
  Tensor x = Tensor::empty({rows, cols});
  fill_normal(x, RandomStream(1, "addend"), 1);
  return x;
}

/// How a product is asked for, and what its operands become.
struct Request {
  Accumulate accumulate = Accumulate::no;
  Precision precision = Precision::full;
  bool onto = false;  ///< a residual is added, whatever C held
};

/// What one operand is rounded to; the sum of several bfloat16s stands for the number itself.
inline real rounded(Precision precision, real x) {
  return parts_of(precision) == 1 ? round_bf16(x) : x;
}

/// How far products may be from those of the numbers that several bfloat16s stand for, of their
/// sizes (autograd/DERIVATIONS.md, "Products of bfloat16s").
inline double left_out(Precision precision) {
  return parts_of(precision) == 2 ? 0x1p-15 : parts_of(precision) == 3 ? 0x1.01p-24 : 0;
}

/// Those that the configuration refuses too, as gemm itself does not.
inline std::vector<Precision> precisions_that_multiply() {
  std::vector<Precision> all;
  for (const Precision precision :
       {Precision::full, Precision::bf16_emulated, Precision::bf16x3_emulated,
        Precision::bf16x6_emulated, Precision::bf16, Precision::bf16x3, Precision::bf16x6}) {
    const bool several = parts_of(precision) > 1;
    const bool here = is_emulated(precision) || unsupported_reason(precision).empty();
    if (here && !(several && sizeof(real) == 8)) all.push_back(precision);
  }
  return all;
}

inline void multiply(const Operand& a, const Operand& b, Tensor& c, const Tensor& residual,
                     const Request& request) {
  if (request.onto) {
    gemm_with_residual(residual.data(), a, b, c.data(), c.shape().last(), request.precision);
  } else {
    gemm(a, b, c.data(), c.shape().last(), request.accumulate, request.precision);
  }
}

/// Product against sums in double, element by element, with padding that must stay untouched.
inline void expect_product(Index m, Index n, Index k, bool a_t, bool b_t, Index padding,
                           const Request& request) {
  const Stored a = make_matrix(m, k, a_t, padding, "a"), b = make_matrix(k, n, b_t, padding, "b");
  Tensor c = Tensor::full({m, n + padding}, real(0.5));
  const Tensor residual = Tensor::full({m, n + padding}, real(0.25));
  multiply(a.view, b.view, c, residual, request);
  const double start = request.onto ? 0.25 : request.accumulate == Accumulate::yes ? 0.5 : 0;
  const double eps = request.precision == Precision::bf16 ? 1.2e-7 : kEps,
               share = 4 * eps + left_out(request.precision);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = start, size = std::abs(sum);
      for (Index l = 0; l < k; ++l) {
        const double term = static_cast<double>(rounded(request.precision, a.at(i, l))) *
                            static_cast<double>(rounded(request.precision, b.at(l, j)));
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(c.row(i)[j]), sum, share * size + 1e-300)
          << m << " " << n << " " << k << " at " << i << "," << j;
    }
    for (Index j = n; j < n + padding; ++j) ASSERT_EQ(c.row(i)[j], real(0.5));
  }
}

using Size = std::tuple<Index, Index, Index>;
inline const Size kAwkward[] = {{1, 1, 1},    {64, 64, 64},   {33, 70, 45}, {129, 65, 7},
                                {5, 3, 1030}, {40, 130, 513}, {2, 1, 600},  {140, 500, 90},
                                {3, 70, 100}, {4, 9, 257},    {6, 66, 40},  {7, 5, 33},
                                {8, 40, 129}, {9, 40, 129}};

inline void expect_products(Precision precision) {
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

inline void expect_long_rows_are_read(Precision precision) {  // which are packed
  for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
    expect_product(70, 66, 40, true, false, 500, {accumulate, precision});
    expect_product(600, 66, 40, false, false, 500, {accumulate, precision});
    expect_product(70, 66, 1031, true, false, 500,
                   {accumulate, precision});  // three chunks, one odd
    expect_product(70, 66, 1031, true, true, 0, {accumulate, precision});
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
inline const Way kWays[] = {
    {300, 200, 700, false, true, 0, false, true},    // B transposed: a layer forward
    {300, 200, 700, false, false, 0, false, false},  // few rows
    {600, 200, 90, false, false, 0, false, true},    // many rows
    {500, 130, 700, true, false, 0, true, false},    // long rows of A: a gradient of weights
    {200, 130, 700, true, false, 300, true, true},   // long rows of both
    {3, 700, 300, false, true, 0, false, false},     // a token at a time: dot products
};

/// Whether more threads give the same bits as one.
inline void expect_threads_do_not_matter(const Way& way, const Request& request) {
  const Stored a = way.a(), b = way.b();
  const Tensor residual = random_addend(way.m, way.n);
  const auto product = [&](int threads) {
    const test::Threads scope(threads);
    Tensor c = Tensor::full({way.m, way.n}, real(0.5));
    multiply(a.view, b.view, c, residual, request);
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

inline void expect_threads_do_not_matter(Precision precision) {
  for (const Way& way : kWays) {
    expect_threads_do_not_matter(way, {Accumulate::no, precision});
    expect_threads_do_not_matter(way, {Accumulate::yes, precision});
    expect_threads_do_not_matter(way, {Accumulate::no, precision, true});
  }
}

inline void expect_an_empty_inner_size_gives_the_addend(Precision precision) {
  const Tensor residual = random_addend(3, 5);
  Tensor c = Tensor::full({3, 5}, std::nan(""));
  const real nothing = 0;
  gemm_with_residual(residual.data(), {&nothing, 3, 0, 1}, {&nothing, 0, 5, 5}, c.data(), 5,
                     precision);
  EXPECT_THAT(c.values(), testing::ElementsAreArray(residual.values()));
}

/// The product of a and b if element l of row 37 of A or of column 66 of B is `poison`.
inline void expect_poison_stays(const Stored& a, const Stored& b, Index l, bool in_a, real poison,
                                Precision precision) {
  Tensor c = Tensor::empty({a.view.rows, b.view.cols});
  gemm(a.view, b.view, c.data(), b.view.cols, Accumulate::no, precision);
  for (Index i = 0; i < a.view.rows; ++i) {
    for (Index j = 0; j < b.view.cols; ++j) {
      const real x = c.row(i)[j];
      if (in_a ? i != 37 : j != 66) {
        ASSERT_TRUE(std::isfinite(x)) << i << "," << j;
      } else if (parts_of(precision) > 1) {  // infinity times a part that is 0
        ASSERT_FALSE(std::isfinite(x)) << i << "," << j;
      } else if (std::isnan(poison)) {
        ASSERT_TRUE(std::isnan(x)) << i << "," << j;
      } else {
        const real other = in_a ? b.at(l, j) : a.at(i, l);
        ASSERT_EQ(x, std::copysign(std::numeric_limits<real>::infinity(), other)) << i << "," << j;
      }
    }
  }
}

inline void expect_what_is_not_finite_stays_in_its_row_or_column(Precision precision) {
  constexpr Index kInner = 101;  // the last is followed by padding
  constexpr real kBeyond = 3.4e38, kBeyondAll = std::numeric_limits<real>::infinity(),
                 kNan = std::numeric_limits<real>::quiet_NaN();  // kBeyond rounds to infinity
  for (const real poison : {kNan, kBeyondAll, kBeyond}) {
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

}  // namespace difftape::test
