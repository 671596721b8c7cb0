#pragma once
// The library that multiplies the tiles of a matrix product, by precision: libxsmm (kernels
// generated at run time) or, where it is missing or not wanted, loops of our own whose bits are the
// same on every processor; oneDNN or libxsmm for bfloat16.

#include <string>

#include "core/precision.h"

namespace difftape {

/// Returns why this machine or program does not support `precision`, in one sentence; empty if it
/// does.
std::string unsupported_reason(Precision precision);

/// Multiplies the tiles of `real`.
enum class Engine {
  fast,      ///< the fastest one here: libxsmm where it is built in
  portable,  ///< loops whose bits are the same on every processor with fused multiply-add
};
/// Returns why this program does not support `engine`, likewise.
std::string unsupported_reason(Engine engine);

/// Makes all threads multiply by Engine::portable while one with that engine lives; one with
/// Engine::fast changes nothing.
class EngineScope {
 public:
  explicit EngineScope(Engine engine);
  ~EngineScope();
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;

 private:
  bool portable_;
};

/// Returns the name of the backend in use, "libxsmm 1.17 (cpx)" or "portable". Throws UsageError if
/// DIFFTAPE_GEMM in the environment names one that is not available; programs call it before
/// anything else.
const char* gemm_backend();

/// Returns the name of the backend for bfloat16, "" if there is none.
std::string bf16_backend_name();

}  // namespace difftape
