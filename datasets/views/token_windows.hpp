// Windows of tokens as samples, a view of a dataset: where a window begins in an epoch is computed, with one random draw.
#pragma once

#include "datasets/model/model.hpp"
#include "datasets/model/value_runs.hpp"

#include <leat/field.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// Which windows there are.
struct window_rule {
  std::uint64_t length = 1024;
  window_order order = window_order::shifted;
  document_rule documents = document_rule::ignore;

  friend bool operator==(const window_rule&, const window_rule&) = default;
};

/// Where a window lies in an epoch.
///   offset   of its first token in the file, in bytes
///   first    of that token, counted over all runs
///   tokens   length + 1; fewer at the end of a document that no window crosses
struct token_window {
  std::uint32_t source = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t first = 0;
  std::uint64_t tokens = 0;
};

/// A dataset of windows over the field of tokens of another one. Samples of that which lie side by side in a file are one
/// run; with document_rule::within each is a run of its own.
///   memory   of runs 48 bytes each; with `mark` 8 bytes more for each document; with `within` 8 bytes for each document
class token_windows final : public dataset_model, public windows_facet, public value_runs {
 public:
  ///   throws   error{errc::usage}: no run is as long as a window; error{errc::format}: a run of half a token
  token_windows(std::shared_ptr<const dataset_model> whole, std::uint16_t field, const window_rule& rule);

  /// A function of its arguments.
  ///   drawn   only its seed, draw and epoch
  [[nodiscard]] token_window window(std::uint64_t sample, const need& drawn) const;
  /// Where documents begin, counted as token_window::first: those that begin behind `first` and before `end`. Only with
  /// document_rule::mark.
  [[nodiscard]] std::span<const std::uint64_t> borders(std::uint64_t first, std::uint64_t end) const;

  [[nodiscard]] const window_rule& rule() const noexcept { return rule_; }

  std::uint64_t size() const noexcept override { return fields_.front().samples; }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override;
  value_run run_from(std::uint64_t sample, const need& wanted) const override;
  std::string name(std::uint64_t sample) const override;
  window_number window_of(std::uint64_t sample) const override { return {this, sample}; }
  void describe(description& out) const override;
  dataset_memory memory() const override;

 private:
  struct run {
    std::uint32_t source = 0;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;       // of its first token, in bytes
    std::uint64_t first = 0;        // of that token, counted over all runs
    std::uint64_t tokens = 0;       //
    std::uint64_t windows_end = 0;  // windows of this run and of those before it
    std::uint64_t starts_end = 0;   // places where a window could begin, likewise
  };

  void add(const run& piece);
  void count_windows();
  void count_documents();
  [[nodiscard]] std::uint64_t windows_of(std::uint64_t tokens) const noexcept;
  [[nodiscard]] const run& run_of(std::uint64_t sample) const noexcept;
  [[nodiscard]] token_window at(const run& in, std::uint64_t token, std::uint64_t tokens) const noexcept;
  [[nodiscard]] token_window in_document(std::uint64_t sample) const;

  std::shared_ptr<const dataset_model> whole_;
  std::uint16_t field_;
  window_rule rule_;
  std::uint64_t width_;  // bytes of a token
  std::vector<run> runs_;
  std::vector<std::uint64_t> borders_;        // with `mark`: where documents begin
  std::vector<std::uint64_t> document_ends_;  // with `within`: windows up to the end of each of the whole's samples
};

}  // namespace leat::datasets
