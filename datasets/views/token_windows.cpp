#include "datasets/views/token_windows.hpp"

#include "base/option_words.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace leat::datasets {

token_windows::token_windows(std::shared_ptr<const dataset_model> whole, std::uint16_t field, const window_rule& rule)
    : whole_(std::move(whole)), field_(field), rule_(rule), width_(size_bytes(whole_->fields()[field].type)) {
  assert(rule_.length > 0);
  facets_.staleness = whole_->facets().staleness;
  facets_.windows = this;
  sources_.assign(whole_->sources().begin(), whole_->sources().end());
  field_info info = whole_->fields()[field_];
  fields_.push_back(std::move(info));
  if (rule_.documents == document_rule::within) {
    count_documents();
  } else {
    count_windows();
  }
  field_info& windows = fields_.front();
  windows.samples = rule_.documents == document_rule::within ? (document_ends_.empty() ? 0 : document_ends_.back())
                                                             : (runs_.empty() ? 0 : runs_.back().windows_end);
  if (windows.samples == 0) {
    throw error(
        errc::usage,
        str_cat("windows of ", rule_.length, " tokens and the one after need files or documents of ", rule_.length + 1,
                whole_->size() == 1 ? "; the only one has " : str_cat("; the longest of the ", whole_->size(), " has "),
                windows.bytes_max / width_, ": give a smaller length (", spelled(option_id::tokens_length), ")"),
        option_id::tokens_length);
  }
  windows.bytes_max = (rule_.length + 1) * width_;
  windows.bytes_total = windows.samples * windows.bytes_max;
}

// Pieces that lie side by side are one run.
void token_windows::add(const run& piece) {
  const std::uint64_t first = runs_.empty() ? 0 : runs_.back().first + runs_.back().tokens;
  if (rule_.documents == document_rule::mark) borders_.push_back(first);
  if (!runs_.empty()) {
    run& last = runs_.back();
    if (last.source == piece.source && last.file == piece.file && last.offset + last.tokens * width_ == piece.offset) {
      last.tokens += piece.tokens;
      return;
    }
  }
  runs_.push_back(piece);
  runs_.back().first = first;
}

void token_windows::count_windows() {
  part_list parts;
  const need wanted[] = {{.field = field_}};
  for (std::uint64_t sample = 0; sample < whole_->size(); ++sample) {
    parts.clear();
    whole_->parts(sample, wanted, parts);
    for (const part& part : parts) {
      if (part.where.stored_bytes % width_ != 0) {
        throw error(errc::format,
                    str_cat(whole_->name(sample), ": ", part.where.stored_bytes,
                            " bytes are no whole number of tokens of ", leat::name(fields_.front().type)));
      }
      if (part.where.stored_bytes == 0) continue;
      add({.source = part.where.source,
           .file = part.where.file,
           .offset = part.where.offset,
           .tokens = part.where.stored_bytes / width_});
    }
  }
  std::uint64_t windows = 0;
  std::uint64_t starts = 0;
  for (run& each : runs_) {
    fields_.front().bytes_max = std::max(fields_.front().bytes_max, each.tokens * width_);
    windows += windows_of(each.tokens);
    starts += each.tokens > rule_.length ? each.tokens - rule_.length : 0;
    each.windows_end = windows;
    each.starts_end = starts;
  }
  runs_.shrink_to_fit();
  borders_.shrink_to_fit();
}

// The token after the last input is a target only: a window of x and y has length + 1.
std::uint64_t token_windows::windows_of(std::uint64_t tokens) const noexcept {
  const std::uint64_t length = rule_.length;
  if (tokens <= length) return 0;
  if (rule_.order != window_order::shifted) return (tokens - 1) / length;
  // As many as fit at any offset, so that all epochs have equally many; at least one.
  return std::max<std::uint64_t>(1, (tokens - length) / length);
}

void token_windows::count_documents() {
  part_list parts;
  const need wanted[] = {{.field = field_}};
  std::uint64_t windows = 0;
  document_ends_.reserve(whole_->size());
  for (std::uint64_t sample = 0; sample < whole_->size(); ++sample) {
    parts.clear();
    whole_->parts(sample, wanted, parts);
    if (parts.size() > 1) {
      throw error(errc::unsupported,
                  str_cat(whole_->name(sample), ": a document in several pieces, which cannot be joined yet"));
    }
    const std::uint64_t tokens = parts.empty() ? 0 : parts.front().where.stored_bytes / width_;
    if (tokens > 1) windows += (tokens - 2) / rule_.length + 1;
    document_ends_.push_back(windows);
  }
}

const token_windows::run& token_windows::run_of(std::uint64_t sample) const noexcept {
  return *std::upper_bound(runs_.begin(), runs_.end(), sample,
                           [](std::uint64_t wanted, const run& each) { return wanted < each.windows_end; });
}

token_window token_windows::at(const run& in, std::uint64_t token, std::uint64_t tokens) const noexcept {
  assert(token + tokens <= in.tokens);
  return {.source = in.source,
          .file = in.file,
          .offset = in.offset + token * width_,
          .first = in.first + token,
          .tokens = tokens};
}

token_window token_windows::window(std::uint64_t sample, const need& drawn) const {
  assert(sample < size());
  const std::uint64_t length = rule_.length;
  if (rule_.documents == document_rule::within) return in_document(sample);
  if (rule_.order == window_order::random) {
    const std::uint64_t start =
        random_draws(drawn.seed, drawn.epoch, drawn.draw, "token window").below(runs_.back().starts_end);
    const auto in = std::upper_bound(runs_.begin(), runs_.end(), start,
                                     [](std::uint64_t wanted, const run& each) { return wanted < each.starts_end; });
    const std::uint64_t before = in == runs_.begin() ? 0 : std::prev(in)->starts_end;
    return at(*in, start - before, length + 1);
  }
  const run& in = run_of(sample);
  const auto number = static_cast<std::uint64_t>(&in - runs_.data());
  const std::uint64_t before = number == 0 ? 0 : runs_[number - 1].windows_end;
  std::uint64_t offset = 0;
  if (rule_.order == window_order::shifted) {
    const std::uint64_t left_out = in.tokens - 1 - (in.windows_end - before) * length;
    // The same for all windows of the run: they lie side by side.
    offset = random_draws(drawn.seed, drawn.epoch, number, "token offset").below(std::min(length, left_out + 1));
  }
  return at(in, offset + (sample - before) * length, length + 1);
}

token_window token_windows::in_document(std::uint64_t sample) const {
  const auto end = std::upper_bound(document_ends_.begin(), document_ends_.end(), sample);
  const std::uint64_t before = end == document_ends_.begin() ? 0 : *std::prev(end);
  part_list parts;
  const need wanted[] = {{.field = field_}};
  whole_->parts(static_cast<std::uint64_t>(end - document_ends_.begin()), wanted, parts);
  assert(parts.size() == 1);
  const extent& document = parts.front().where;
  const std::uint64_t begin = (sample - before) * rule_.length;
  return {.source = document.source,
          .file = document.file,
          .offset = document.offset + begin * width_,
          .first = 0,
          .tokens = std::min(rule_.length + 1, document.stored_bytes / width_ - begin)};
}

std::span<const std::uint64_t> token_windows::borders(std::uint64_t first, std::uint64_t end) const {
  const auto from = std::upper_bound(borders_.begin(), borders_.end(), first);
  const auto to = std::lower_bound(from, borders_.end(), end);
  return {from, to};
}

void token_windows::parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const {
  for (const need& wanted : needs) {
    const token_window found = window(sample, wanted);
    const std::uint64_t bytes = found.tokens * width_;
    out.push_back({.field = 0,
                   .where = {.source = found.source,
                             .file = found.file,
                             .offset = found.offset,
                             .stored_bytes = bytes,
                             .decoded_bytes = bytes}});
  }
}

value_run token_windows::run_from(std::uint64_t sample, const need& wanted) const {
  if (rule_.documents == document_rule::within || rule_.order == window_order::random) return {};
  const token_window first = window(sample, wanted);
  const std::uint64_t bytes = first.tokens * width_;
  return {.first = {.source = first.source,
                    .file = first.file,
                    .offset = first.offset,
                    .stored_bytes = bytes,
                    .decoded_bytes = bytes},
          .step_bytes = rule_.length * width_,
          .samples = run_of(sample).windows_end - sample};
}

std::string token_windows::name(std::uint64_t sample) const { return str_cat("window ", sample); }

void token_windows::describe(description& out) const {
  constexpr std::string_view orders[] = {"shifted", "tiled", "random"};
  constexpr std::string_view rules[] = {"ignore", "mark", "within"};
  whole_->describe(out);
  out.add("windows", size());
  out.add("windows.length", rule_.length);
  out.add("windows.order", orders[static_cast<std::size_t>(rule_.order)]);
  out.add("windows.documents", rules[static_cast<std::size_t>(rule_.documents)]);
  out.add("windows.field", whole_->fields()[field_].name);
}

dataset_memory token_windows::memory() const {
  dataset_memory held = whole_->memory();
  held.extents +=
      runs_.capacity() * sizeof(run) + (borders_.capacity() + document_ends_.capacity()) * sizeof(std::uint64_t);
  return held;
}

}  // namespace leat::datasets
