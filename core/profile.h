#pragma once
// The time that a program spends: named events, nested, in nanoseconds. Off unless a Recording
// lives; then an event that is off costs one branch. Main thread only: work that an event hands to
// other threads counts as its own until it has ended.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/names.h"
#include "core/real.h"

namespace difftape::profile {

enum class Category {
  step,      ///< one whole step, the unit of `table_of`
  pass,      ///< a part of a step that its ops make up
  phase,     ///< a part of a step that counts as one, whatever it holds
  forward,   ///< the value of an op
  backward,  ///< the pullback of an op
};

}  // namespace difftape::profile

namespace difftape {

template <>
inline constexpr auto kNames<profile::Category> =
    std::to_array<Named<profile::Category>>({{"step", profile::Category::step},
                                             {"pass", profile::Category::pass},
                                             {"phase", profile::Category::phase},
                                             {"forward", profile::Category::forward},
                                             {"backward", profile::Category::backward}});

}  // namespace difftape

namespace difftape::profile {

struct Event {
  Category category;
  const char* name;           ///< of static lifetime: the op, or "data"
  std::string scope;          ///< the layer of an op, the number of a step; may be empty
  std::int64_t begin, end{};  ///< nanoseconds since the recorder was made
};

class Recorder {
 public:
  Recorder();

  /// Begins an event; gives what `close` takes. Events close in the reverse order.
  std::size_t open(Category category, const char* name, std::string_view scope);
  void close(std::size_t event);
  /// An event that ends now and began when the last event began or ended: for what computes first
  /// and reports after.
  void since_last(Category category, const char* name, std::string_view scope);

  /// In the order of their beginnings, one that holds others before them. Any two that overlap
  /// are one within the other.
  const std::vector<Event>& events() const { return events_; }

 private:
  std::int64_t now() const;

  std::int64_t start_;
  std::int64_t last_ = 0;  ///< when an event began or ended last
  std::vector<Event> events_;
};

namespace detail {
inline Recorder* current = nullptr;
}
/// The recorder in use; null: none.
inline Recorder* current() { return detail::current; }

/// Sends events to a recorder, which must outlive it, for as long as it lives.
class Recording {
 public:
  explicit Recording(Recorder& recorder) : before_(std::exchange(detail::current, &recorder)) {}
  ~Recording() { detail::current = before_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* before_;
};

/// An event as long as its own life.
class Span {
 public:
  Span(Category category, const char* name, std::string_view scope = {}) : recorder_(current()) {
    if (recorder_) event_ = recorder_->open(category, name, scope);
  }
  ~Span() {
    if (recorder_) recorder_->close(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Recorder* recorder_;
  std::size_t event_ = 0;
};

inline void since_last(Category category, const char* name, std::string_view scope) {
  if (current()) current()->since_last(category, name, scope);
}

/// Calls and milliseconds in all steps together.
struct Cost {
  Index calls = 0;
  double ms = 0;
};

/// An op, or a phase, whose calls and time then stand in `forward`.
struct Row {
  std::string name;
  Cost forward, backward;
  double ms() const { return forward.ms + backward.ms; }
};

/// The time of all steps by op and phase. The rows and the rest add up to the steps.
struct Table {
  Index steps = 0;
  double ms = 0;            ///< of all steps
  double rest_ms = 0;       ///< within steps, but in no op and no phase
  std::vector<Row> ops;     ///< the longest first
  std::vector<Row> phases;  ///< in the order of their first events
};

/// Adds up the events within steps; others are left out. An op counts without the events it holds,
/// such as those of ops that it computes again; a phase counts with them.
Table table_of(std::span<const Event> events);

}  // namespace difftape::profile
