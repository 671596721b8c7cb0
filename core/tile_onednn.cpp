#include "core/tile.h"

#ifdef DIFFTAPE_WITH_ONEDNN

#include <algorithm>
#include <dnnl.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/gemm.h"
#include "core/parallel.h"

namespace difftape::tile {

namespace {

using dnnl::memory;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// One shape of product with its operands, for one thread. The AMX kernels of oneDNN write dense
/// results only, so a tile goes through a buffer.
class Primitive {
 public:
  explicit Primitive(const Product& p)
      : description_(describe(p)),
        matmul_(description_),
        stream_(cpu()),
        a_(description_.src_desc(), cpu(), nullptr),
        b_(description_.weights_desc(), cpu(), nullptr),
        c_(description_.dst_desc(), cpu()),
        arguments_{{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}} {}

  void run(const Product& p, const void* a, const void* b, real* c) {
    a_.set_data_handle(const_cast<void*>(a));
    b_.set_data_handle(const_cast<void*>(b));
    matmul_.execute(stream_, arguments_);
    stream_.wait();
    const auto* tile = static_cast<const real*>(c_.get_data_handle());
    for (Index i = 0; i < p.m; ++i) {
      real* to = c + i * p.c_stride;
      const real* from = tile + i * p.n;
      if (p.add) {
        for (Index j = 0; j < p.n; ++j) to[j] += from[j];
      } else {
        std::copy_n(from, p.n, to);
      }
    }
  }

 private:
  static dnnl::matmul::primitive_desc describe(const Product& p) {
    using Type = memory::data_type;
    const memory::desc a({p.m, p.k}, Type::bf16, memory::dims{p.a_stride, 1});
    // The layout of core/pack: panels of 64 columns, 32 rows in pairs.
    const memory::desc b({p.k, p.n}, Type::bf16, memory::format_tag::BA16a64b2a);
    const memory::desc c({p.m, p.n}, Type::f32, memory::format_tag::ab);
    return {dnnl::matmul::desc(a, b, c), cpu()};
  }

  dnnl::matmul::primitive_desc description_;
  dnnl::matmul matmul_;
  dnnl::stream stream_;
  memory a_, b_, c_;
  std::unordered_map<int, memory> arguments_;
};

struct HashProduct {
  size_t operator()(const Product& p) const { return p.hash(); }
};

void multiply(const Kernel& kernel, const void* a, const void* b, real* c) {
  const SerialScope serial;
  static_cast<Primitive*>(kernel.generated)->run(kernel.shape, a, b, c);
}

Kernel kernel(const Product& p) {
  thread_local std::unordered_map<Product, Primitive, HashProduct> primitives;
  // With more threads oneDNN would cut the product differently.
  const SerialScope serial;
  try {
    return {p, multiply, &primitives.try_emplace(p, p).first->second};
  } catch (const dnnl::error&) {
    return bf16_loop(p);
  }
}

}  // namespace

const Backend* onednn_bf16_backend() {
  static const std::string name = [] {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("oneDNN {}.{}.{} (AMX)", version->major, version->minor, version->patch);
  }();
  static const Backend backend{name.c_str(), kernel, true};
  // Instruction sets are bit masks that include the sets they extend.
  constexpr auto kAmx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
  static const bool usable =
      sizeof(real) == 4 && (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & kAmx) == kAmx;
  return usable ? &backend : nullptr;
}

}  // namespace difftape::tile

#else

namespace difftape::tile {
const Backend* onednn_bf16_backend() { return nullptr; }
}  // namespace difftape::tile

#endif
