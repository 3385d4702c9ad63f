#include "datasets/tables/row_reader.hpp"

#include "base/text.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace leat::datasets {
namespace {

// Reads of neighbouring bytes into neighbouring places become one, up to this size.
constexpr std::size_t read_bytes_max = std::size_t{4} << 20;

void push(std::vector<blocking_source::request>& reads, const blocking_source::request& one) {
  if (!reads.empty()) {
    blocking_source::request& last = reads.back();
    if (last.file == one.file && last.offset + last.into.size() == one.offset &&
        last.into.data() + last.into.size() == one.into.data() &&
        last.into.size() + one.into.size() <= read_bytes_max) {
      last.into = {last.into.data(), last.into.size() + one.into.size()};
      return;
    }
  }
  reads.push_back(one);
}

}  // namespace

row_reader::row_reader(const dataset_model& model, std::span<const row_place> places, std::uint64_t record_bytes)
    : model_(model), places_(places), record_bytes_(record_bytes) {}

void row_reader::read(std::span<const std::uint64_t> samples, std::span<std::byte> records,
                      const std::stop_token& stop) {
  requests reads(model_.sources().size());
  for (std::size_t row = 0; row < samples.size(); ++row) {
    if (stop.stop_requested()) throw error(errc::cancelled, "stopped while rows were read");
    add(samples[row], records.subspan(row * record_bytes_, record_bytes_), reads, stop);
  }
  for (std::size_t source = 0; source < reads.size(); ++source) {
    if (!reads[source].empty()) sources_.of(*model_.sources()[source]).read(reads[source], stop);
  }
}

void row_reader::add(std::uint64_t sample, std::span<std::byte> record, requests& reads, const std::stop_token& stop) {
  std::swap(blocks_, blocks_before_);
  blocks_.clear();
  const std::size_t stored = model_.fields().size();
  for (const row_place& place : places_) {
    const std::span<std::byte> row = record.subspan(place.offset, place.bytes);
    if (place.field >= stored) {
      const std::size_t column = place.field - stored;
      store(model_.column(sample, column).value(), model_.column_type(column), row.data());
      continue;
    }
    add_parts(sample, place, row, reads, stop);
  }
}

void row_reader::add_parts(std::uint64_t sample, const row_place& place, std::span<std::byte> row, requests& reads,
                           const std::stop_token& stop) {
  parts_.clear();
  const need wanted{.field = place.field};
  model_.parts(sample, {&wanted, 1}, parts_);
  std::uint64_t filled = 0;  // parts without a box follow one another
  for (const part& each : parts_) {
    if (each.form == part_form::box) {
      model_.copy_box(sample, each, nullptr, expanded(sample, each, stop).decoded, row);
      filled = row.size();
      continue;
    }
    if (each.form == part_form::stored) {
      const std::uint64_t bytes = each.where.stored_bytes;
      if (bytes > row.size() - filled) refuse_size(sample, place, filled + bytes);
      push(reads[each.where.source], {each.where.file, each.where.offset, row.subspan(filled, bytes)});
      filled += bytes;
      continue;
    }
    const std::span<const std::byte> bytes = value_of(sample, each, stop);
    if (bytes.size() > row.size() - filled) refuse_size(sample, place, filled + bytes.size());
    if (!bytes.empty()) std::memcpy(row.data() + filled, bytes.data(), bytes.size());
    filled += bytes.size();
  }
  if (filled != row.size()) refuse_size(sample, place, filled);
}

// Of what is no part of a block's row: until the next call.
std::span<const std::byte> row_reader::value_of(std::uint64_t sample, const part& of, const std::stop_token& stop) {
  switch (of.form) {
    case part_form::produced:
      return model_.produce(sample, of.field, scratch_);
    case part_form::awaited:
      throw error(errc::unsupported, str_cat("the field '", model_.fields()[of.field].name,
                                             "' comes from a coroutine, which only a loader awaits"));
    case part_form::value:
      scratch_.clear();
      take_value(model_, sample, of, expanded(sample, of, stop).decoded, scratch_);
      return scratch_;
    default:
      scratch_.clear();
      append_part(model_, sample, of, sources_, scratch_, stop);
      return scratch_;
  }
}

const row_reader::block& row_reader::expanded(std::uint64_t sample, const part& wanted, const std::stop_token& stop) {
  const auto same = [&](const block& each) {
    return each.of.field == wanted.field && each.of.where == wanted.where && each.of.codec == wanted.codec &&
           each.of.block == wanted.block;
  };
  const auto known = std::find_if(blocks_before_.begin(), blocks_before_.end(), same);
  if (known != blocks_before_.end()) {
    block& moved = blocks_.emplace_back(std::move(*known));
    blocks_before_.erase(known);
    return moved;
  }
  block& made = blocks_.emplace_back(block{.of = wanted, .decoded = {}});
  append_part(model_, sample, wanted, sources_, made.decoded, stop);
  return made;
}

void row_reader::refuse_size(std::uint64_t sample, const row_place& place, std::uint64_t bytes) const {
  throw error(errc::corrupt, str_cat(model_.name(sample), ": field '", model_.fields()[place.field].name, "' has ",
                                     bytes, " bytes where each sample has ", place.bytes));
}

}  // namespace leat::datasets
