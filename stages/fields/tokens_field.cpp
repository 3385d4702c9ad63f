// tokens: windows of tokens, as inputs and targets.
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/token_windows.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/widen.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/open_tokens.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace leat {
namespace stages {
namespace {

class tokens_program final : public field_program {
 public:
  tokens_program(const tokens& settings, dtype stored, std::uint16_t field)
      : field_program({}, {field}),
        settings_(settings),
        stored_(stored),
        type_(settings.type.value_or(stored_)),
        width_(size_bytes(stored_)),
        widen_(widening(stored_, type_)) {
    outputs_.push_back({.name = "x", .type = type_, .row_shape = {settings.length}});
    outputs_.push_back({.name = "y", .type = type_, .row_shape = {settings.length}});
    if (settings.documents == document_rule::mark) {
      outputs_.push_back({.name = "document", .type = dtype::i32, .row_shape = {settings.length}});
      outputs_.push_back({.name = "position", .type = dtype::i32, .row_shape = {settings.length}});
    }
    for (output_spec& output : outputs_) output.copied = true;
  }

  // Both x and y, each a token less than the window.
  std::size_t bytes_copied(std::size_t encoded_bytes) const override {
    return type_ == stored_ && encoded_bytes > width_ ? 2 * (encoded_bytes - width_) : 0;
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const auto length = static_cast<std::size_t>(settings_.length);
    const std::size_t there = input.encoded.size() / width_;
    if (there < 2 || there > length + 1 || (there <= length && settings_.documents != document_rule::within)) {
      return corrupt(str_cat("holds ", input.encoded.size(), " bytes where a window has ", (length + 1) * width_));
    }
    const std::size_t pairs = there - 1;
    // x and y overlap: what the second pass reads, the first has brought into the core's cache.
    if (!widen_(input.encoded.data(), rows[0].bytes.data(), pairs) ||
        !widen_(input.encoded.data() + width_, rows[1].bytes.data(), pairs)) {
      return corrupt(str_cat("a token does not fit ", leat::name(type_)));
    }
    if (pairs < length) {
      fill(rows[0].bytes.subspan(pairs * size_bytes(type_)), settings_.pad);
      fill(rows[1].bytes.subspan(pairs * size_bytes(type_)), settings_.ignored);
    }
    if (settings_.documents == document_rule::mark) mark(input, rows);
    return {};
  }

 private:
  void fill(std::span<std::byte> rest, std::int64_t value) const {
    if (type_ == dtype::i64) {
      for (std::size_t at = 0; at < rest.size(); at += sizeof value)
        std::memcpy(rest.data() + at, &value, sizeof value);
      return;
    }
    if (rest.empty()) return;
    assert(type_ == dtype::i32 && "bind() has checked that the values fit");
    const auto narrow = static_cast<std::int32_t>(value);
    for (std::size_t at = 0; at < rest.size(); at += sizeof narrow) {
      std::memcpy(rest.data() + at, &narrow, sizeof narrow);
    }
  }

  // The window again: it is a function of the same three numbers that the plan asked with.
  void mark(const decode_input& input, std::span<row_target> rows) const {
    const datasets::window_number at = input.dataset->window_of(input.sample);
    const datasets::token_window window =
        at.of->window(at.number, {.seed = input.seed, .draw = input.draw, .epoch = input.epoch});
    auto* const document = reinterpret_cast<std::int32_t*>(rows[2].bytes.data());
    auto* const position = reinterpret_cast<std::int32_t*>(rows[3].bytes.data());
    const std::uint64_t end = window.first + static_cast<std::uint64_t>(settings_.length);
    const std::span<const std::uint64_t> borders = at.of->borders(window.first, end);
    std::uint64_t from = window.first;
    for (std::size_t number = 0; number <= borders.size(); ++number) {
      const std::uint64_t to = number < borders.size() ? borders[number] : end;
      for (std::uint64_t token = from; token < to; ++token) {
        document[token - window.first] = static_cast<std::int32_t>(number);
        position[token - window.first] = static_cast<std::int32_t>(token - from);
      }
      from = to;
    }
  }

  const tokens settings_;
  const dtype stored_;
  const dtype type_;
  const std::size_t width_;  // of a stored token
  const widen_function widen_;
};

class tokens_model final : public one_program_field {
 public:
  explicit tokens_model(tokens settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.field; }

  void describe(description& out) const override {
    constexpr std::string_view orders[] = {"shifted", "tiled", "random"};
    constexpr std::string_view rules[] = {"ignore", "mark", "within"};
    out.add("kind", "tokens");
    out.add("length", settings_.length);
    out.add("type", settings_.type ? leat::name(*settings_.type) : "the file's");
    out.add("windows", orders[static_cast<std::size_t>(settings_.windows)]);
    out.add("documents", rules[static_cast<std::size_t>(settings_.documents)]);
    if (settings_.documents != document_rule::within) return;
    out.add("pad", settings_.pad);
    out.add("ignored", settings_.ignored);
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    const std::uint16_t field = find(dataset);
    if (dataset.size() != 0 && !are_cut(dataset)) {
      throw error(errc::usage,
                  str_cat("tokens: the dataset holds files or documents, which are not cut into windows; write "
                          "`leat::tokens how{.length = ",
                          settings_.length, "}; leat::loader train{leat::cut_windows(dataset, how), options, how};`"));
    }
    return std::make_unique<tokens_program>(settings_, dataset.fields()[field].type, field);
  }

  [[nodiscard]] std::shared_ptr<const datasets::dataset_model> cut(
      std::shared_ptr<const datasets::dataset_model> dataset) const {
    const std::uint16_t field = find(*dataset);
    if (dataset->size() != 0 && are_cut(*dataset)) return dataset;
    return std::make_shared<datasets::token_windows>(std::move(dataset), field, rule());
  }

 private:
  /// Whether the samples are windows.
  ///   throws   error{errc::usage} where they are those of another rule
  [[nodiscard]] bool are_cut(const datasets::dataset_model& dataset) const {
    const datasets::token_windows* const windows = dataset.window_of(0).of;
    if (windows != nullptr && windows->rule() != rule()) {
      throw error(errc::usage,
                  "tokens: the dataset's windows were cut by another rule; give cut_windows() and the field the same "
                  "length, windows and documents; a loader takes one such field, since two would both have an output "
                  "called 'x'");
    }
    return windows != nullptr;
  }

  [[nodiscard]] std::uint16_t find(const datasets::dataset_model& dataset) const {
    const std::optional<std::uint16_t> field = dataset.find_field(settings_.field);
    if (!field) throw_no_field(dataset, settings_.field);
    check(dataset.fields()[*field]);
    return *field;
  }

  [[nodiscard]] datasets::window_rule rule() const {
    return {.length = static_cast<std::uint64_t>(settings_.length),
            .order = settings_.windows,
            .documents = settings_.documents};
  }
  void check(const field_info& field) const {
    const auto refuse = [](const std::string& why) { throw error(errc::usage, str_cat("tokens: ", why)); };
    if (field.kind != field_kind::tokens) {
      refuse(str_cat("the field '", field.name, "' is no run of tokens; leat::open_tokens() opens those"));
    }
    if (settings_.length < 1 || settings_.length > (std::int64_t{1} << 30)) {
      refuse(str_cat("a length of ", settings_.length, "; give 1 to 2^30"));
    }
    const dtype type = settings_.type.value_or(field.type);
    if (widening(field.type, type) == nullptr) {
      refuse(str_cat("tokens of ", leat::name(field.type), " as ", leat::name(type),
                     "; give i64, i32, or nothing for the file's own"));
    }
    if (settings_.documents != document_rule::within) return;
    if (settings_.windows == window_order::random) {
      refuse("random windows have no place in documents that none may cross; leave one of the two out");
    }
    const auto fits = [](std::int64_t value) {
      return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
    };
    if (type == dtype::i64 || (type == dtype::i32 && fits(settings_.pad) && fits(settings_.ignored))) return;
    refuse(str_cat("rows of ", leat::name(type), " are filled up with ", settings_.pad, " and ", settings_.ignored,
                   "; give a type of i32 or i64 that holds them (", spelled(option_id::tokens_type), ")"));
  }

  tokens settings_;
};

}  // namespace
}  // namespace stages

dataset cut_windows(const dataset& samples, const tokens& how) {
  return dataset(stages::tokens_model(how).cut(samples.model()));
}

tokens::operator leat::field() const { return leat::field(std::make_shared<stages::tokens_model>(*this)); }

}  // namespace leat
