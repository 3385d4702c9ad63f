#include "stages/observe/timeline.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace leat::stages {
namespace {

// torch.profiler's: the files of a run's ranks, and those of the profiler, count from the same moment, unless one of these lies between.
constexpr std::uint64_t base_every_ns = std::uint64_t{7'889'238} * 1'000'000'000;

// An eighth of a microsecond is the same number as text, as a double and in whole nanoseconds. Perfetto cuts doubles off to these, and
// leaves out a span that then reaches a nanosecond into the next one.
std::uint64_t exact_in_double(std::uint64_t ns) { return ns - ns % 125; }

// Microseconds with three digits behind the point, as Chrome's trace events have them.
void append_us(std::string& to, std::uint64_t ns) {
  const std::string thousandths = str_cat(1000 + ns % 1000);
  str_append(to, ns / 1000, ".", std::string_view(thousandths).substr(1));
}

bool has_row(const timeline_span& span) { return span.row != timeline_span::no_row; }
bool has_batch(const timeline_span& span) { return span.batch != timeline_span::no_batch; }

// Of names that programs give: in quotes, and valid whatever is in them.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A line of the picture.
///   takes, gives   arrows end, or begin, at its spans
struct shown_track {
  std::string name;
  std::vector<timeline_span> spans;
  bool takes = false;
  bool gives = false;
};

/// From the end of a request or a sample to the rows of its batch.
struct arrow {
  std::string_view name;
  std::size_t from = 0;  ///< the line
  std::uint64_t at_ns = 0;
  std::size_t to = 0;
  std::uint64_t to_ns = 0;
};

// Viewers want the spans of a line to lie beside or within one another: each of those that overlap gets the first line where it has room, with
// its parts.
void add_lanes(std::vector<shown_track>& to, const std::string& name, const std::vector<timeline_span>& spans) {
  struct whole {
    timeline_span of;
    std::size_t first = 0;  // of its parts
    std::size_t parts = 0;
  };
  std::vector<whole> wholes;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!is_part(spans[i].of)) {
      wholes.push_back({.of = spans[i], .first = i + 1});
    } else if (!wholes.empty()) {  // else the ring has lost what it is a part of
      ++wholes.back().parts;
    }
  }
  std::sort(wholes.begin(), wholes.end(), [](const whole& a, const whole& b) {
    return std::pair(a.of.begin_ns, a.first) < std::pair(b.of.begin_ns, b.first);
  });
  struct lane {
    std::size_t track;
    std::uint64_t end_ns;
  };
  std::vector<lane> lanes;
  for (const whole& each : wholes) {
    auto found =
        std::find_if(lanes.begin(), lanes.end(), [&](const lane& one) { return one.end_ns <= each.of.begin_ns; });
    if (found == lanes.end()) {
      lanes.push_back({.track = to.size(), .end_ns = 0});
      to.push_back({.name = lanes.size() == 1 ? name : str_cat(name, ", ", lanes.size()), .spans = {}});
      found = std::prev(lanes.end());
    }
    found->end_ns = each.of.end_ns;
    std::vector<timeline_span>& into = to[found->track].spans;
    into.push_back(each.of);
    into.insert(into.end(), spans.begin() + static_cast<std::ptrdiff_t>(each.first),
                spans.begin() + static_cast<std::ptrdiff_t>(each.first + each.parts));
  }
}

// Those of a ring that are `first` and what follows one up to the next that is no part, or the others.
std::vector<timeline_span> taken_of(const std::vector<timeline_span>& all, activity first, bool others) {
  std::vector<timeline_span> taken;
  bool is_first = false;
  for (const timeline_span& each : all) {
    if (!is_part(each.of)) is_first = each.of == first;
    const bool belongs = is_first || is_part(each.of);
    if (belongs != others) taken.push_back(each);
  }
  return taken;
}

// Requests and samples are tied to the rows of their batch, where both are still known.
std::vector<arrow> arrows_of(const std::vector<shown_track>& all) {
  struct rows_of_batch {
    std::size_t track;
    std::uint64_t begin_ns, end_ns;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, rows_of_batch> rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const timeline_span& each : all[i].spans) {
      if (each.of == activity::rows) rows[{each.epoch, each.batch}] = {i, each.begin_ns, each.end_ns};
    }
  }
  std::vector<arrow> arrows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const timeline_span& each : all[i].spans) {
      if (each.of != activity::request && each.of != activity::sample) continue;
      const auto found = rows.find({each.epoch, each.batch});
      if (found == rows.end() || found->second.end_ns < each.end_ns) continue;
      arrows.push_back({name(each.of), i, each.end_ns, found->second.track, found->second.end_ns});
    }
  }
  return arrows;
}

std::string_view name(line_queue which) {
  switch (which) {
    case line_queue::reads:
      return "reads in flight";
    case line_queue::decode:
      return "samples that wait for a decode thread";
    case line_queue::ready:
      return "batches ready";
    case line_queue::out:
      return "batches with the trainer";
  }
  return "";
}

class trace_text {
 public:
  explicit trace_text(std::uint32_t rank) : rank_(rank) {}

  void process() { append_name("process_name", 0, str_cat("leat, rank ", rank_, ", process ", ::getpid())); }

  /// The trainer's names of its spans, by their numbers.
  void name_marks(std::span<const std::string> names) {
    for (const std::string& each : names) marks_.push_back(json_string(each));
  }

  ///   shift_ns   added to the times
  void track(const shown_track& shown, std::uint64_t shift_ns) {
    ++track_;
    append_name("thread_name", track_, shown.name);
    begin_event();
    str_append(text_, R"("name":"thread_sort_index","ph":"M","tid":)", track_, R"(,"args":{"sort_index":)", track_,
               "}}");
    for (const timeline_span& span : shown.spans) {
      const std::uint64_t begin_ns = exact_in_double(span.begin_ns + shift_ns);
      const std::uint64_t end_ns = exact_in_double(span.end_ns + shift_ns);
      begin_event();
      str_append(text_, R"("name":)");
      if (span.of == activity::mark) {
        text_ += span.row < marks_.size() ? marks_[span.row] : "\"mark\"";
      } else {
        str_append(text_, "\"", name(span.of), "\"");
      }
      str_append(text_, R"(,"ph":"X","tid":)", track_, R"(,"ts":)");
      append_us(text_, begin_ns);
      text_ += R"(,"dur":)";
      append_us(text_, end_ns - begin_ns);
      if (span.of == activity::block) {
        str_append(text_, R"(,"args":{"bytes":)", span.batch);
        if (has_row(span)) str_append(text_, R"(,"block":)", span.row);
        text_ += "}}";
        continue;
      }
      if (has_batch(span)) {
        str_append(text_, R"(,"args":{"epoch":)", span.epoch, R"(,"batch":)", span.batch);
        const bool is_read = span.of == activity::read || span.of == activity::fetch || span.of == activity::hit;
        const std::string_view row = is_read                        ? R"(,"reads":)"
                                     : span.of == activity::request ? R"(,"requests":)"
                                                                    : R"(,"row":)";
        if (has_row(span)) str_append(text_, row, span.row);
        text_ += '}';
      }
      text_ += '}';
      if (!has_batch(span)) continue;
      if (shown.gives && span.of == activity::transfer) append_flow('s', span, end_ns);
      if (shown.takes && span.of == activity::wait) append_flow('f', span, end_ns);
    }
  }

  void arrows(std::span<const arrow> all, std::uint64_t shift_ns) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string identity = str_cat("a", i);
      append_end('s', all[i].name, identity, all[i].from + 1, exact_in_double(all[i].at_ns + shift_ns));
      append_end('f', all[i].name, identity, all[i].to + 1, exact_in_double(all[i].to_ns + shift_ns));
    }
  }

  /// Lengths of queues over time.
  void lengths(std::span<const timeline_span> all, std::uint64_t shift_ns) {
    for (const timeline_span& each : all) {
      begin_event();
      str_append(text_, R"("name":")", name(static_cast<line_queue>(each.row)), R"(","ph":"C","ts":)");
      append_us(text_, exact_in_double(each.begin_ns + shift_ns));
      str_append(text_, R"(,"args":{"length":)", each.batch, "}}");
    }
  }

  /// The tuner's line, behind all that track() has written.
  void begin_steps() {
    ++track_;
    append_name("thread_name", track_, "tuner");
  }
  void step(const tuning_step& of, std::uint64_t at_ns) {
    begin_event();
    str_append(text_, R"("name":)", json_string(str_cat(of.setting, " ", of.from, " to ", of.to)),
               R"(,"ph":"i","s":"t","tid":)", track_, R"(,"ts":)");
    append_us(text_, exact_in_double(at_ns));
    str_append(text_, R"(,"args":{"setting":)", json_string(of.setting), R"(,"from":)", of.from, R"(,"to":)", of.to,
               R"(,"why":)", json_string(of.why), R"(,"samples_per_s":)", nlohmann::json(of.samples_per_s).dump(),
               R"(,"stall_share":)", nlohmann::json(of.stall_share).dump(), "}}");
  }

  [[nodiscard]] std::string take(std::uint64_t base_ns) {
    return str_cat("{\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":", base_ns, ",\"traceEvents\":[\n", text_,
                   "\n]}\n");
  }

 private:
  void begin_event() { str_append(text_, text_.empty() ? "{" : ",\n{", R"("pid":)", rank_, ","); }
  void append_name(std::string_view what, std::uint64_t track, std::string_view is) {
    begin_event();
    str_append(text_, R"("name":")", what, R"(","ph":"M","tid":)", track, R"(,"args":{"name":")", is, R"("}})");
  }
  void append_flow(char end, const timeline_span& span, std::uint64_t at_ns) {
    append_end(end, "batch", str_cat("e", span.epoch, "b", span.batch), track_, at_ns);
  }
  // Perfetto takes up to 16 hexadecimal digits for an identity, and draws no arrow for others. The category is a part of it.
  void append_end(char end, std::string_view name, std::string_view identity, std::uint64_t track,
                  std::uint64_t at_ns) {
    begin_event();
    str_append(text_, R"("name":")", name, R"(","cat":"rank )", rank_, R"(","ph":")", std::string_view(&end, 1),
               R"(","bp":"e","id":")", identity, R"(","tid":)", track, R"(,"ts":)");
    append_us(text_, at_ns);
    text_ += '}';
  }

  const std::uint32_t rank_;
  std::vector<std::string> marks_;  // as JSON has them
  std::uint64_t track_ = 0;
  std::string text_;
};

}  // namespace

timeline::timeline(std::size_t bytes, std::uint32_t batches, std::uint32_t io_threads, std::uint32_t decode_threads) {
  const std::size_t spans = bytes / timeline_track::span_bytes;
  if (spans == 0) return;
  // A batch has four spans of its own, and one or two of the trainer; decode threads and reads have many.
  const auto add = [](tracks& to, std::string_view what, std::uint32_t count, std::size_t room) {
    for (std::uint32_t i = 0; i < count; ++i) {
      to.push_back(std::make_unique<timeline_track>(str_cat(what, " ", i), room / count));
    }
  };
  trainer_ = std::make_unique<timeline_track>("trainer", spans / 16);
  marks_ = std::make_unique<stages::marks>(spans / 16);
  add(batches_, "batch in flight", batches, spans / 8);
  add(io_threads_, "I/O thread", io_threads, spans / 8);
  for (std::uint32_t i = 0; i < io_threads; ++i) {
    reads_.push_back(std::make_unique<read_track>(str_cat("reads of I/O thread ", i), spans / 16 * 3 / io_threads));
  }
  add(decode_threads_, "decode thread", decode_threads, spans / 32 * 11);
  blocks_ = std::make_unique<block_track>(spans / 32);
  device_ = std::make_unique<timeline_track>("device", spans / 32);
  queues_ = std::make_unique<timeline_track>("queues", spans / 32);
}

void timeline::note(line_queue which, std::uint64_t at_ns, std::uint64_t length) const noexcept {
  if (queues_ == nullptr) return;
  queues_->add({.of = activity::queue,
                .begin_ns = at_ns,
                .end_ns = at_ns,
                .batch = length,
                .row = static_cast<std::uint32_t>(which)});
}

void timeline::note(std::uint64_t at_ns, const tuning_step& step) {
  if (!on()) return;
  const mutex_lock lock(steps_mutex_);
  steps_.push_back({at_ns, step});
  if (steps_.size() > steps_kept) steps_.pop_front();
}

std::deque<timeline::step_at> timeline::steps() const {
  const mutex_lock lock(steps_mutex_);
  return steps_;
}

std::string timeline::to_json(std::uint32_t rank) const {
  std::vector<shown_track> all;
  if (on()) {
    all.push_back({.name = trainer_->name(), .spans = trainer_->spans(), .takes = true});
    all.push_back({.name = marks_->track().name(), .spans = marks_->track().spans()});
    for (const auto& each : batches_) all.push_back({.name = each->name(), .spans = each->spans(), .gives = true});
    for (const auto& each : io_threads_) all.push_back({.name = each->name(), .spans = each->spans()});
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      const std::vector<timeline_span> spans = reads_[i]->track().spans();
      add_lanes(all, reads_[i]->track().name(), taken_of(spans, activity::request, true));
      add_lanes(all, str_cat("requests of I/O thread ", i), taken_of(spans, activity::request, false));
    }
    add_lanes(all, blocks_->track().name(), blocks_->track().spans());
    for (const auto& each : decode_threads_) {
      const std::vector<timeline_span> spans = each->spans();
      all.push_back({.name = each->name(), .spans = taken_of(spans, activity::sample, true)});
      add_lanes(all, str_cat("samples of ", each->name()), taken_of(spans, activity::sample, false));
    }
    if (auto spans = device_->spans(); !spans.empty())
      all.push_back({.name = device_->name(), .spans = std::move(spans)});
  }
  const std::vector<timeline_span> lengths = on() ? queues_->spans() : std::vector<timeline_span>();
  // Once: a span that comes meanwhile may have begun before all of these.
  std::uint64_t first_ns = now_ns();
  for (const shown_track& each : all) {
    for (const timeline_span& span : each.spans) first_ns = std::min(first_ns, span.begin_ns);
  }
  for (const timeline_span& each : lengths) first_ns = std::min(first_ns, each.begin_ns);
  const std::deque<step_at> changed = steps();
  for (const step_at& each : changed) first_ns = std::min(first_ns, each.at_ns);
  const auto system = std::chrono::system_clock::now().time_since_epoch();
  const auto system_ns =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(system).count());
  const std::uint64_t to_system_ns = system_ns - now_ns();
  const std::uint64_t base_ns = (first_ns + to_system_ns) / base_every_ns * base_every_ns;
  trace_text text(rank);
  text.process();
  if (on()) text.name_marks(marks_->names());
  for (const shown_track& each : all) text.track(each, to_system_ns - base_ns);
  if (!changed.empty()) text.begin_steps();
  for (const step_at& each : changed) text.step(each.step, each.at_ns + to_system_ns - base_ns);
  text.arrows(arrows_of(all), to_system_ns - base_ns);
  text.lengths(lengths, to_system_ns - base_ns);
  return text.take(base_ns);
}

}  // namespace leat::stages
