#pragma once
// Time spent by a program: named, nested events in nanoseconds. Without a living Recording an event
// costs one branch. Main thread only; an event includes the work it hands to other threads.

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
  pass,      ///< a part of a step that consists of ops
  phase,     ///< a part of a step that counts as a whole
  forward,   ///< the value of an op
  backward,  ///< the pullback of an op
};

constexpr auto names_of(Category) {
  return std::to_array<Named<Category>>({{"step", Category::step},
                                         {"pass", Category::pass},
                                         {"phase", Category::phase},
                                         {"forward", Category::forward},
                                         {"backward", Category::backward}});
}

struct Event {
  Category category;
  const char* name;           ///< of static lifetime: the op, or "data"
  std::string scope;          ///< the layer of an op, the number of a step; may be empty
  std::int64_t begin, end{};  ///< nanoseconds since the recorder was created
};

class Recorder {
 public:
  Recorder();

  /// Opens an event and returns the argument of `close`. Events close in reverse order.
  std::size_t open(Category category, const char* name, std::string_view scope);
  void close(std::size_t event);
  /// Adds an event that ends now and began when the last event began or ended. It serves code that
  /// computes first and reports afterwards.
  void since_last(Category category, const char* name, std::string_view scope);

  /// Events by start time, an outer one before those it contains. Overlapping events are nested.
  const std::vector<Event>& events() const { return events_; }

 private:
  std::int64_t now() const;

  std::int64_t start_;
  std::int64_t last_ = 0;  ///< when an event last began or ended
  std::vector<Event> events_;
};

namespace detail {
inline Recorder* current = nullptr;
}
/// The recorder in use; null: none.
inline Recorder* current() { return detail::current; }

/// Sends events to `recorder`, which must outlive it, while it lives.
class Recording {
 public:
  explicit Recording(Recorder& recorder) : before_(std::exchange(detail::current, &recorder)) {}
  ~Recording() { detail::current = before_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* before_;
};

/// An event that lasts as long as this object.
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

/// One op, or one phase, whose calls and time are in `forward`.
struct Row {
  std::string name;
  Cost forward, backward;
  double ms() const { return forward.ms + backward.ms; }
};

/// The time of all steps by op and phase. The rows and the rest add up to the steps.
struct Table {
  Index steps = 0;
  double ms = 0;            ///< of all steps
  double rest_ms = 0;       ///< within steps, but in no op or phase
  std::vector<Row> ops;     ///< longest first
  std::vector<Row> phases;  ///< in the order of their first events
};

/// Adds up the events within steps. An op counts without the events it contains, such as ops that
/// it runs again; a phase counts with them.
Table table_of(std::span<const Event> events);

}  // namespace difftape::profile
