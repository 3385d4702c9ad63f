#include "stages/batch/batch_layout.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/arena/budget_refusal.hpp"
#include "io/files/source.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace leat::stages {

namespace {

// What a process can address. Sizes come from the user: beyond 64 bits they would come out small, and fit.
constexpr std::size_t bytes_max = std::size_t{1} << 47;

// The largest last: a batch of fewer rows is copied to a device as far as its last tensor reaches.
std::vector<std::size_t> in_memory_order(const std::vector<batch_layout::output_place>& outputs) {
  std::vector<std::size_t> order(outputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(outputs[a].row_bytes, a) < std::pair(outputs[b].row_bytes, b);
  });
  return order;
}

}  // namespace

std::size_t bytes_of_rows(std::uint32_t rows, std::size_t row_bytes, const std::string& output) {
  if (row_bytes == 0 || rows <= bytes_max / row_bytes) return align_tensor(rows * row_bytes);
  throw io::budget_refusal(str_cat("'", output, "' takes ", row_bytes, " bytes a row, of which a batch has ", rows,
                                   ": more than a process can address; lower ", spelled(option_id::batch_size)),
                           option_id::batch_size);
}

batch_layout::batch_layout(std::vector<output_spec> outputs, std::uint32_t rows_max,
                           std::span<const std::size_t> staging_row_bytes)
    : rows_max_(rows_max) {
  const auto add_name = [&](std::string name) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
      throw error(errc::usage, str_cat("two outputs of a batch are called '", name,
                                       "'; give one of the fields a name of its own, and by .from(member) what it "
                                       "reads: leat::image{\"view2\"}.from(\"jpg\")"));
    }
    names_.push_back(std::move(name));
  };
  for (output_spec& spec : outputs) {
    add_name(spec.name);
    if (spec.has_offsets()) add_name(spec.offsets());
    output_place& added = outputs_.emplace_back();
    if (spec.picture) added.picture_index = picture_count_++;
    if (spec.ragged) {
      added.ragged_index = ragged_count_++;
    } else if (spec.is_slot()) {
      added.whole = find(spec.slot.of).value();
    } else {
      added.row_bytes = spec.decoded_row_bytes();
    }
    added.spec = std::move(spec);
  }
  for (output_place& each : outputs_) {
    if (!each.spec.hidden && !each.spec.is_slot()) continue;
    each.hidden = true;
    std::erase(names_, each.spec.name);
    std::erase(names_, each.spec.offsets());
  }
  for (const std::size_t i : in_memory_order(outputs_)) place(outputs_[i]);
  add_steps();
  for (const std::size_t row_bytes : staging_row_bytes) {
    staging_.push_back({.offset = staging_bytes_, .row_bytes = row_bytes});
    staging_bytes_ += bytes_of_rows(rows_max_, row_bytes, "staging");
  }
}

void batch_layout::place(output_place& placed) {
  const output_spec& spec = placed.spec;
  // Each row of it is a multiple of that, too.
  if (spec.read_into) fixed_bytes_ = io::aligned_bytes(0, fixed_bytes_);
  placed.offset = fixed_bytes_;
  fixed_bytes_ += spec.has_offsets() ? align_tensor((std::size_t{rows_max_} + 1) * sizeof(std::int64_t))
                                     : bytes_of_rows(rows_max_, placed.row_bytes, spec.name);
}

void batch_layout::add_steps() {
  for (output_place& made : outputs_) {
    const output_spec& spec = made.spec;
    if (spec.made_by == nullptr) continue;
    made.made_offset = made_bytes_;
    made_bytes_ += bytes_of_rows(rows_max_, spec.row_bytes(), spec.name);
    made_row_bytes_ += scratch_behind(spec.row_bytes()) + spec.made_by->make_row_bytes();
    scratch_bytes_ = std::max(scratch_bytes_, spec.made_by->scratch_bytes(rows_max_));
    device_step& step =
        steps_.emplace_back(device_step{.operation = spec.made_by.get(), .from = {}, .to = made.made_offset});
    const auto add = [&](std::size_t i) {
      made.made_from.push_back(i);
      step.from.push_back(outputs_[i].offset);
    };
    add(static_cast<std::size_t>(&made - outputs_.data()));
    for (const std::string& name : spec.made_from) {
      const std::size_t other = find(name).value();
      assert(!outputs_[other].spec.ragged);
      outputs_[other].hidden = true;
      std::erase(names_, name);
      add(other);
    }
  }
}

std::optional<std::size_t> batch_layout::find(std::string_view name) const noexcept {
  const auto found =
      std::find_if(outputs_.begin(), outputs_.end(), [&](const output_place& each) { return each.spec.name == name; });
  if (found == outputs_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - outputs_.begin());
}

std::size_t batch_layout::bytes(std::span<const std::size_t> ragged_bytes) const noexcept {
  std::size_t total = fixed_bytes_ + staging_bytes_;
  for (const std::size_t size : ragged_bytes) total += align_tensor(size);
  return total;
}

}  // namespace leat::stages
