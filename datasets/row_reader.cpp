#include "datasets/row_reader.hpp"

#include "base/text.hpp"
#include "datasets/read_part.hpp"

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
    switch (model_.origin(place.field)) {
      case field_origin::extents:
        add_parts(sample, place, row, reads, stop);
        break;
      case field_origin::call: {
        const std::span<const std::byte> bytes = model_.produce(sample, place.field, scratch_);
        if (bytes.size() != row.size()) refuse_size(sample, place, bytes.size());
        std::memcpy(row.data(), bytes.data(), bytes.size());
        break;
      }
      case field_origin::awaited:
        throw error(errc::unsupported, str_cat("the field '", model_.fields()[place.field].name,
                                               "' comes from a coroutine, which only a loader awaits"));
    }
  }
}

void row_reader::add_parts(std::uint64_t sample, const row_place& place, std::span<std::byte> row, requests& reads,
                           const std::stop_token& stop) {
  const bool chunked = model_.fields()[place.field].chunked;
  parts_.clear();
  const need wanted{.field = place.field};
  model_.parts(sample, {&wanted, 1}, parts_);
  std::uint64_t filled = 0;  // parts without a box follow one another
  for (const part& each : parts_) {
    if (chunked && each.decode != 0) {
      model_.copy_box(sample, each, nullptr, expanded(sample, each, stop).decoded, row);
      filled = row.size();
      continue;
    }
    const std::uint64_t bytes = each.decode == 0 ? each.where.stored_bytes : each.where.decoded_bytes;
    if (bytes > row.size() - filled) refuse_size(sample, place, filled + bytes);
    const std::span<std::byte> into = row.subspan(filled, bytes);
    filled += bytes;
    if (each.decode == 0) {
      push(reads[each.where.source], {each.where.file, each.where.offset, into});
    } else {
      scratch_.clear();
      append_part(model_, sample, each, sources_, scratch_, stop);
      if (scratch_.size() != into.size()) refuse_size(sample, place, filled - into.size() + scratch_.size());
      std::memcpy(into.data(), scratch_.data(), into.size());
    }
  }
  if (filled != row.size()) refuse_size(sample, place, filled);
}

const row_reader::block& row_reader::expanded(std::uint64_t sample, const part& wanted, const std::stop_token& stop) {
  const auto same = [&](const block& each) {
    return each.of.field == wanted.field && each.of.where == wanted.where && each.of.decode == wanted.decode &&
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
