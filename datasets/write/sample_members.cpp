#include "datasets/write/sample_members.hpp"

#include "base/text.hpp"
#include "datasets/formats/tar/tar_header.hpp"
#include "datasets/model/member_key.hpp"
#include "datasets/tables/read_part.hpp"
#include "datasets/write/tar_writer.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <optional>

namespace leat::datasets {
namespace {

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// In the order of their parts.
std::vector<std::uint16_t> fields_of(const part_list& parts) {
  std::vector<std::uint16_t> fields;
  for (const part& each : parts) {
    if (std::find(fields.begin(), fields.end(), each.field) == fields.end()) fields.push_back(each.field);
  }
  return fields;
}

}  // namespace

sample_members sample_reader::describe(std::uint64_t sample) {
  part_list parts;
  model_.parts(sample, parts);
  const std::vector<std::uint16_t> fields = fields_of(parts);
  sample_members result;
  result.members.resize(fields.size());
  for (const part& each : parts) {
    const auto at = static_cast<std::size_t>(std::find(fields.begin(), fields.end(), each.field) - fields.begin());
    member& added = result.members[at];
    if (each.form == part_form::stored) {
      added.size_bytes += each.where.decoded_bytes;
      added.extents.push_back(each.where);
    } else if (added.content.empty()) {
      append_field(model_, sample, each.field, {parts.data(), parts.size()}, sources_, added.content, stop_);
      added.size_bytes = added.content.size();
    }
  }
  name_members(sample, fields, result);
  add_columns(sample, result);
  if (result.members.empty()) {
    throw error(errc::corrupt, str_cat(model_.name(sample), " has neither fields nor columns"));
  }
  for (const member& each : result.members) {
    result.content_bytes += each.size_bytes;
    result.archive_bytes += tar_member_bytes(each.name, each.size_bytes);
  }
  return result;
}

std::string sample_reader::key(std::uint64_t sample) {
  part_list parts;
  model_.parts(sample, parts);
  return key_of(sample, model_.members(sample, fields_of(parts), sources_));
}

void sample_reader::read(std::vector<sample_members>& samples) {
  struct wish {
    std::uint32_t source;
    blocking_source::request request;
  };
  std::vector<wish> wishes;
  for (sample_members& sample : samples) {
    for (member& each : sample.members) {
      if (each.extents.empty()) continue;
      each.content.resize(each.size_bytes);
      std::span<std::byte> rest(each.content);
      for (const extent& where : each.extents) {
        wishes.push_back({where.source, {where.file, where.offset, rest.first(where.stored_bytes)}});
        rest = rest.subspan(where.stored_bytes);
      }
    }
  }
  std::vector<blocking_source::request> requests;
  for (std::uint32_t number = 0; number < model_.sources().size(); ++number) {
    requests.clear();
    for (const wish& each : wishes) {
      if (each.source == number) requests.push_back(each.request);
    }
    if (!requests.empty()) source(number).read(requests, stop_);
  }
}

void sample_reader::read(const extent& where, std::uint64_t offset, std::span<std::byte> into) {
  const blocking_source::request request{where.file, where.offset + offset, into};
  source(where.source).read({&request, 1}, stop_);
}

// One key for all: the members of a shard's sample have it already.
std::string sample_reader::key_of(std::uint64_t sample, const std::vector<member_path>& paths) const {
  if (paths.empty()) return encode_key(model_.name(sample));
  return paths.front().is_key ? paths.front().stem : encode_key(paths.front().stem);
}

void sample_reader::name_members(std::uint64_t sample, const std::vector<std::uint16_t>& fields,
                                 sample_members& result) {
  const std::vector<member_path> paths = model_.members(sample, fields, sources_);
  key_ = next_key(key_of(sample, paths));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    result.members[i].name = str_cat(key_, ".", paths[i].extension);
  }
}

// Neighbours of one key would become one sample.
std::string sample_reader::next_key(std::string key) {
  repeated_ = key == last_key_ ? repeated_ + 1 : 0;
  last_key_ = key;
  return number_key(key, repeated_);
}

void sample_reader::add_columns(std::uint64_t sample, sample_members& result) const {
  for (std::size_t number = 0; number < model_.columns().size(); ++number) {
    const std::optional<column_value> value = model_.column(sample, number);
    if (!value) continue;
    member added;
    added.name = str_cat(key_, ".", encode_field_name(model_.columns()[number]));
    const bool is_field_too = std::any_of(result.members.begin(), result.members.end(),
                                          [&](const member& each) { return each.name == added.name; });
    if (is_field_too) continue;
    added.content = to_bytes(text_of(*value));
    added.size_bytes = added.content.size();
    result.members.push_back(std::move(added));
  }
}

}  // namespace leat::datasets
