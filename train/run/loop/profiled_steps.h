#pragma once
// Which steps of a run are profiled, and what was recorded of them.

#include <algorithm>

#include "core/profile.h"

namespace difftape::run {

/// Ten steps after two that warm up, so that a profile stays small however long the run is: the
/// third to the twelfth that the process takes; of fewer steps those from the third on, else the
/// last one.
class ProfiledSteps {
 public:
  /// For a process that takes the steps `done` + 1 to `steps`. Not `wanted`: no step is profiled.
  ProfiledSteps(bool wanted, Index done, Index steps)
      : first_(wanted ? std::min(done + 3, steps) : steps + 1), last_(std::min(done + 12, steps)) {}

  /// Calls f, which takes step `number`, and records it if it is one of those.
  template <class F>
  auto run(Index number, F&& f) {
    if (!covers(number)) return f();
    const profile::Recording recording(recorder_);
    const profile::Span step(profile::Category::step, "step", std::to_string(number));
    return f();
  }
  /// Whether there is a profile and step `number` was its last, or the last before the run `ends`.
  bool done_at(Index number, bool ends) const {
    return covers(number) && (ends || number == last_);
  }

  const std::vector<profile::Event>& events() const { return recorder_.events(); }

 private:
  bool covers(Index number) const { return number >= first_ && number <= last_; }

  Index first_, last_;
  profile::Recorder recorder_;
};

}  // namespace difftape::run
