#include "datasets/tables/read_part.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <utility>

namespace leat::datasets {
namespace {

void append_made(const dataset_model& model, std::uint64_t sample, const part& wanted, std::vector<std::byte>& to) {
  std::vector<std::byte> made;
  std::span<const std::byte> bytes;
  if (wanted.form == part_form::awaited) {
    boost::asio::io_context here;
    auto fetched = boost::asio::co_spawn(here, model.fetch(sample, {wanted.field}), boost::asio::use_future);
    here.run();
    bytes = made = std::move(fetched.get().front());
  } else {
    bytes = model.produce(sample, wanted.field, made);
  }
  to.insert(to.end(), bytes.begin(), bytes.end());
}

[[noreturn]] void fail_with(const dataset_model& model, std::uint64_t sample, const part& wanted,
                            const value_fault& why) {
  throw error(
      errc::corrupt,
      str_cat(model.name(sample), ": field '", model.fields()[wanted.field].name, "' at offset ", wanted.where.offset,
              " of ", model.sources()[wanted.where.source]->file_name(wanted.where.file), ": ", why.reason));
}

void read_stored(const dataset_model& model, const part& wanted, blocking_sources& from, std::span<std::byte> into,
                 const std::stop_token& stop) {
  if (into.empty()) return;
  const blocking_source::request request{wanted.where.file, wanted.where.offset, into};
  from.of(*model.sources()[wanted.where.source]).read({&request, 1}, stop);
}

// Returns how many bytes it became.
std::size_t expand_into(const dataset_model& model, std::uint64_t sample, const part& wanted, blocking_sources& from,
                        std::span<std::byte> decoded, const std::stop_token& stop) {
  std::vector<std::byte> stored(wanted.where.stored_bytes);
  read_stored(model, wanted, from, stored, stop);
  if (const auto reason = model.expand(sample, wanted, stored, decoded)) fail_with(model, sample, wanted, *reason);
  return decoded.size();
}

std::span<const std::byte> block_of(const dataset_model& model, std::uint64_t sample, const part& wanted,
                                    blocking_sources& from, const std::stop_token& stop) {
  const block_key key{&model, wanted.where, wanted.codec, wanted.block};
  if (const auto kept = from.blocks().find(key)) return *kept;
  std::vector<std::byte> block = from.blocks().make_room(wanted.where.decoded_bytes);
  expand_into(model, sample, wanted, from, block, stop);
  return from.blocks().add(key, std::move(block));
}

}  // namespace

void take_value(const dataset_model& model, std::uint64_t sample, const part& wanted,
                std::span<const std::byte> decoded, std::vector<std::byte>& to) {
  const std::size_t begin = to.size();
  to.resize(begin + wanted.value_bytes);
  std::span<std::byte> value = std::span(to).subspan(begin);
  if (const auto none = model.take_value(sample, wanted, decoded, value)) fail_with(model, sample, wanted, *none);
  to.resize(begin + value.size());
}

void append_part(const dataset_model& model, std::uint64_t sample, const part& wanted, blocking_sources& from,
                 std::vector<std::byte>& to, const std::stop_token& stop) {
  if (wanted.is_made()) return append_made(model, sample, wanted, to);
  const std::size_t begin = to.size();
  if (!wanted.is_expanded()) {
    to.resize(begin + wanted.where.stored_bytes);
    return read_stored(model, wanted, from, std::span(to).subspan(begin), stop);
  }
  to.resize(begin + wanted.where.decoded_bytes);
  to.resize(begin + expand_into(model, sample, wanted, from, std::span(to).subspan(begin), stop));
}

void append_expanded(const dataset_model& model, std::uint64_t sample, const part& wanted,
                     std::span<const std::byte> stored, std::vector<std::byte>& to) {
  if (!wanted.is_expanded()) {
    to.insert(to.end(), stored.begin(), stored.end());
    return;
  }
  const std::size_t begin = to.size();
  to.resize(begin + wanted.where.decoded_bytes);
  std::span<std::byte> decoded = std::span(to).subspan(begin);
  if (const auto reason = model.expand(sample, wanted, stored, decoded)) fail_with(model, sample, wanted, *reason);
  to.resize(begin + decoded.size());
}

void append_field(const dataset_model& model, std::uint64_t sample, std::uint16_t field, std::span<const part> parts,
                  blocking_sources& from, std::vector<std::byte>& to, const std::stop_token& stop) {
  const field_info& info = model.fields()[field];
  const std::size_t begin = to.size();
  for (const part& each : parts) {
    if (each.field != field) continue;
    if (!each.is_in_block()) {
      append_part(model, sample, each, from, to, stop);
      continue;
    }
    const std::span<const std::byte> block = block_of(model, sample, each, from, stop);
    if (each.form == part_form::value) {
      take_value(model, sample, each, block, to);
      continue;
    }
    to.resize(begin + size_of_value(info, field, parts).bytes);
    model.copy_box(sample, each, nullptr, block, std::span(to).subspan(begin));
  }
}

}  // namespace leat::datasets
