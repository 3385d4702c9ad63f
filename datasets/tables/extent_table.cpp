#include "datasets/tables/extent_table.hpp"

#include "base/hasher.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>

namespace leat::datasets {
namespace {

part to_part(const extent_table::record& record) noexcept {
  return {.field = record.field(), .where = {0, record.file(), record.offset(), record.bytes(), record.bytes()}};
}

}  // namespace

extent_table::extent_table(std::shared_ptr<const void> owner, std::span<const record> records,
                           std::span<const std::uint32_t> firsts)
    : owner_(std::move(owner)), mapped_records_(records), mapped_first_(firsts) {
  const bool is_whole = !firsts.empty() && firsts.front() == 0 && firsts.back() == records.size() &&
                        std::is_sorted(firsts.begin(), firsts.end());
  if (!is_whole) throw error(errc::format, "its samples and their parts do not belong together");
}

void extent_table::reserve(std::uint64_t samples, std::uint64_t parts) {
  first_.reserve(samples + 1);
  records_.reserve(parts);
}

void extent_table::end_sample() {
  if (records_.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw error(errc::limit, "more than 4,294,967,295 members in one data set; open it in parts");
  }
  first_.push_back(static_cast<std::uint32_t>(records_.size()));
}

leat::digest extent_table::digest() const noexcept {
  hasher hash;
  hash.add(std::as_bytes(records()));
  hash.add(std::as_bytes(firsts()));
  return hash.finish();
}

void extent_table::shrink_to_fit() {
  records_.shrink_to_fit();
  first_.shrink_to_fit();
}

void append_parts(std::span<const extent_table::record> records, std::span<const need> needs, part_list& out) {
  for (const extent_table::record& record : records) {
    // Where all fields are wanted, each stands at its number.
    const std::size_t number = record.field();
    if (number < needs.size() && needs[number].field == number) {
      out.push_back(to_part(record));
      continue;
    }
    for (const need& wanted : needs) {
      if (wanted.field == record.field()) out.push_back(to_part(record));
    }
  }
}

}  // namespace leat::datasets
