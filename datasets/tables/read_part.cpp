#include "datasets/tables/read_part.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

namespace leat::datasets {
namespace {

void append_made(const dataset_model& model, std::uint64_t sample, const part& wanted, std::vector<std::byte>& to) {
  std::vector<std::byte> made;
  std::span<const std::byte> bytes;
  if (wanted.form == part_form::awaited) {
    boost::asio::io_context here;
    auto fetched = boost::asio::co_spawn(here, model.fetch(sample, wanted.field), boost::asio::use_future);
    here.run();
    bytes = made = fetched.get();
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
  const extent& where = wanted.where;
  const auto read = [&](std::span<std::byte> into) {
    if (into.empty()) return;
    const blocking_source::request request{where.file, where.offset, into};
    from.of(*model.sources()[where.source]).read({&request, 1}, stop);
  };
  const std::size_t begin = to.size();
  if (!wanted.is_expanded()) {
    to.resize(begin + where.stored_bytes);
    return read(std::span(to).subspan(begin));
  }
  std::vector<std::byte> stored(where.stored_bytes);
  read(stored);
  to.resize(begin + where.decoded_bytes);
  std::span<std::byte> decoded = std::span(to).subspan(begin);
  if (const auto reason = model.expand(sample, wanted, stored, decoded)) fail_with(model, sample, wanted, *reason);
  to.resize(begin + decoded.size());
}

void append_field(const dataset_model& model, std::uint64_t sample, std::uint16_t field, std::span<const part> parts,
                  blocking_sources& from, std::vector<std::byte>& to, const std::stop_token& stop) {
  const field_info& info = model.fields()[field];
  const std::size_t begin = to.size();
  std::vector<std::byte> block;
  for (const part& each : parts) {
    if (each.field != field) continue;
    if (!each.is_in_block()) {
      append_part(model, sample, each, from, to, stop);
      continue;
    }
    block.clear();
    append_part(model, sample, each, from, block, stop);
    if (each.form == part_form::value) {
      take_value(model, sample, each, block, to);
      continue;
    }
    to.resize(begin + size_of_value(info, field, parts).bytes);
    model.copy_box(sample, each, nullptr, block, std::span(to).subspan(begin));
  }
}

}  // namespace leat::datasets
