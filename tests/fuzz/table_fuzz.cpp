// Does a file that was made up bring down the readers of tables? It may only be read, or refused with an error of leat's.
//
// The first byte of an input says what the rest is: a Parquet file, an Arrow file or stream, a block of Snappy or a packed buffer of Arrow, whose next
// bytes say what it becomes, an LMDB database, a TFRecord file, lines of JSON, rows of CSV, a message, a record of msgpack or pickle, or an index of MDS, after two bytes
// that say how long it is, and one of its shards; or a stream of gzip or zstd, as the next byte says.
// scripts/fuzz runs it.
#include "datasets/codecs/snappy.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/lines.hpp"
#include "datasets/formats/arrow/arrow_file.hpp"
#include "datasets/formats/lmdb/lmdb_tree.hpp"
#include "datasets/formats/parquet/parquet_footer.hpp"
#include "datasets/formats/parquet/parquet_pages.hpp"
#include "datasets/formats/parquet/parquet_values.hpp"
#include "datasets/formats/records/mds.hpp"
#include "datasets/formats/records/tfrecord.hpp"
#include "datasets/formats/tar/coded_shard.hpp"
#include "datasets/tables/hub_features.hpp"
#include "datasets/wire/json_value.hpp"
#include "datasets/wire/proto_value.hpp"
#include "datasets/wire/serialized_value.hpp"
#include "tests/fuzz/bytes_in_memory.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

struct tally {
  std::uint64_t files = 0;
  std::uint64_t values = 0;

  ~tally() {
    std::fprintf(stderr, "decoded: %llu inputs were read, with %llu values\n", static_cast<unsigned long long>(files),
                 static_cast<unsigned long long>(values));
  }
} seen;

// Larger tables would take seconds each, and are no other code.
constexpr std::uint64_t rows_max = 4096;

template <class Function>
void if_it_can(const Function& function) {
  try {
    function();
  } catch (const error&) {
  }
}

void check(std::span<const datasets::value_place> places, std::uint64_t file_bytes) {
  for (const datasets::value_place& each : places) {
    if (!each.is_there()) continue;
    if (each.offset > file_bytes || each.bytes > file_bytes - each.offset) std::abort();
    ++seen.values;
  }
}

class counting_sink final : public datasets::parquet_sink {
 public:
  void add(std::uint32_t, std::uint32_t, std::span<const std::byte> value) override {
    for (const std::byte each : value) sum_ += std::to_integer<std::uint64_t>(each);
    if (++count_ > 64 * rows_max) throw error(errc::limit, "enough");
    ++seen.values;
  }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

void read_parquet(std::span<const std::byte> bytes) {
  const testing::bytes_in_memory file(bytes);
  const datasets::parquet_footer footer = datasets::read_parquet_footer(file);
  static_cast<void>(datasets::read_hub_features(footer.hub_features));
  if (footer.rows > rows_max || footer.groups.size() * footer.leaves.size() > 256) return;
  for (const datasets::parquet_group& group : footer.groups) {
    for (std::size_t i = 0; i < footer.leaves.size(); ++i) {
      const datasets::parquet_leaf& leaf = footer.leaves[i];
      const datasets::parquet_chunk& chunk = group.chunks[i];
      const auto type = datasets::number_type(leaf);
      if (leaf.repeated == 0 && type) {
        if_it_can([&] {
          datasets::record_numbers numbers{.name = leaf.path, .type = *type};
          numbers.whole.resize(footer.rows);
          numbers.bytes.resize(footer.rows * 8);
          static_cast<void>(datasets::read_numbers(file, leaf, group, chunk, numbers));
        });
      } else if (leaf.repeated == 0 && datasets::why_not_bare(leaf, chunk).empty()) {
        if_it_can([&] {
          std::vector<datasets::value_place> places(group.rows);
          static_cast<void>(datasets::find_bare_values(file, leaf, chunk, places));
          check(places, bytes.size());
        });
      } else {
        if_it_can([&] {
          counting_sink sink;
          const std::vector<std::byte> stored = file.read(chunk.offset, chunk.bytes);
          datasets::decode_chunk(file.path(), leaf, chunk, stored, sink);
        });
        if (leaf.repeated == 0)
          if_it_can([&] { static_cast<void>(datasets::read_few_texts(file, leaf, group, chunk)); });
      }
    }
  }
}

void expand_snappy(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  std::vector<std::byte> decoded(datasets::number_at<std::uint16_t>(bytes, 0));
  if (!datasets::expand_snappy(bytes.subspan(2), decoded)) ++seen.values;
}

// A picker may write no more than it said.
void pick(const datasets::value_picker& picker, std::span<const std::byte> record) {
  std::vector<std::byte> room(picker.room(record.size()));
  std::span<std::byte> into(room);
  if (!picker.pick(record, into)) ++seen.values;
}

void read_database(std::span<const std::byte> bytes) {
  const datasets::lmdb_contents found =
      datasets::read_lmdb([&] { return std::make_unique<testing::bytes_in_memory>(bytes); }, "", 1);
  check(found.values, bytes.size());
  std::uint64_t key_bytes = 0;
  for (const auto key : found.keys) key_bytes += datasets::lmdb_contents::length_of(key);
  if (key_bytes != found.key_bytes.size() || found.keys.size() != found.values.size()) std::abort();
}

void expand_buffer(std::span<const std::byte> bytes) {
  for (const auto codec : {datasets::arrow_codec::none, datasets::arrow_codec::lz4, datasets::arrow_codec::zstd}) {
    const std::optional<std::uint64_t> becomes = datasets::expanded_bytes(codec, bytes, bytes.size());
    if (!becomes || *becomes > (std::uint64_t{1} << 20)) continue;
    std::vector<std::byte> decoded(*becomes);
    if (!datasets::expand_arrow_buffer(codec, bytes, decoded)) ++seen.values;
  }
}

void read_arrow(std::span<const std::byte> bytes) {
  static_cast<void>(datasets::is_arrow(bytes));
  const datasets::arrow_contents found = datasets::read_arrow(testing::bytes_in_memory(bytes));
  for (const datasets::arrow_batch& batch : found.batches) {
    for (const datasets::arrow_buffer& buffer : batch.buffers) {
      if (buffer.offset > bytes.size() || buffer.bytes > bytes.size() - buffer.offset) std::abort();
      ++seen.values;
    }
    for (const datasets::arrow_column& column : found.columns) {
      if (column.what != datasets::arrow_column::kind::other && column.buffer + 1 >= batch.buffers.size()) std::abort();
    }
  }
}

void read_message(std::span<const std::byte> bytes) {
  pick(*datasets::pick_datum_data(), bytes);
  pick(*datasets::pick_datum_label(), bytes);
  const auto features = datasets::read_example(bytes);
  if (!features) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(features->size(), 8); ++i) {
    pick(*datasets::pick_feature(std::string((*features)[i].name)), bytes);
  }
}

void read_json(std::span<const std::byte> bytes) {
  const auto places = datasets::find_lines([&] { return std::make_unique<testing::bytes_in_memory>(bytes); }, 1);
  check(places, bytes.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(places.size(), 8); ++i) {
    const std::span<const std::byte> line = bytes.subspan(places[i].offset, places[i].bytes);
    std::vector<datasets::json_member> members;
    const bool is_whole = !datasets::read_members({reinterpret_cast<const char*>(line.data()), line.size()}, members);
    if (is_whole && !members.empty()) pick(*datasets::pick_json(members.back().key), line);
    pick(*datasets::pick_json("text"), line);
  }
}

void read_csv(std::span<const std::byte> bytes) {
  const auto places = datasets::find_csv_rows(testing::bytes_in_memory(bytes), ',');
  check(places, bytes.size());
  for (const datasets::value_place& place : places) {
    const std::string_view row(reinterpret_cast<const char*>(bytes.data()) + place.offset, place.bytes);
    std::size_t written = 0;
    for (const std::string_view value : datasets::split_csv(row, ',')) {
      written += value.size() + 1;
      static_cast<void>(datasets::unquoted_csv(value));
    }
    if (written != row.size() + 1) std::abort();
  }
}

void read_serialized_record(std::span<const std::byte> bytes) {
  static_cast<void>(datasets::serialization_of(bytes));
  for (const auto how : {datasets::serialization::msgpack, datasets::serialization::pickle}) {
    if_it_can([&] {
      const std::vector<datasets::serialized_member> found = datasets::read_serialized(how, bytes);
      for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 8); ++i) {
        pick(*datasets::pick_member(how, found[i].path, found[i].holds), bytes);
      }
    });
  }
}

void read_shards(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  const std::size_t index_bytes = std::min<std::size_t>(datasets::number_at<std::uint16_t>(bytes, 0), bytes.size() - 2);
  const std::span<const std::byte> file = bytes.subspan(2 + index_bytes);
  for (const datasets::mds_shard& shard :
       datasets::read_mds_index("made-up", testing::bytes_in_memory(bytes.subspan(2, index_bytes)))) {
    if (shard.columns.size() * shard.samples > 64 * rows_max) continue;
    if_it_can([&] {
      const datasets::record_table table = datasets::read_mds_shard(testing::bytes_in_memory(file), shard);
      for (const datasets::record_field& field : table.fields) {
        check(field.places, file.size());
        if (field.picker && !field.places.empty()) {
          pick(*field.picker, file.subspan(field.places.front().offset, field.places.front().bytes));
        }
      }
    });
  }
}

// What was read through once is read again from each point.
void read_coded(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto coding =
      (bytes[0] & std::byte{1}) == std::byte{0} ? datasets::stream_coding::gzip : datasets::stream_coding::zstd;
  bytes = bytes.subspan(1);
  const testing::bytes_in_memory file(bytes);
  if_it_can([&] {
    static_cast<void>(datasets::index_coded_shard(file, 0, coding, 0, datasets::at_end_marker::go_on));
    ++seen.values;
  });
  std::uint64_t becomes = 0;
  const auto index = std::make_shared<const datasets::coded_file>(
      file, coding, 0, [&](std::span<const std::byte> piece) { becomes += piece.size(); });
  if (index->bytes() != becomes) std::abort();
  datasets::coded_blocks blocks(index);
  for (const datasets::entry_point& each : index->points()) {
    if (each.out < becomes) blocks.add(each.out, each.out + 1);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    datasets::part place;
    blocks.place(i, place);
    std::vector<std::byte> decoded(place.where.decoded_bytes);
    if (blocks.expand(i, bytes.subspan(place.where.offset, place.where.stored_bytes), decoded)) std::abort();
  }
  const datasets::decoded_file again(std::make_unique<testing::bytes_in_memory>(bytes), index);
  if (again.read(becomes / 2, becomes).size() != becomes - becomes / 2) std::abort();
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    switch (data[0] % 11) {
      case 0:
        leat::read_parquet(bytes);
        break;
      case 1:
        leat::expand_snappy(bytes);
        leat::expand_buffer(bytes);
        break;
      case 2:
        leat::read_database(bytes);
        break;
      case 3:
        leat::check(leat::datasets::find_records(leat::testing::bytes_in_memory(bytes)), bytes.size());
        break;
      case 4:
        leat::read_json(bytes);
        break;
      case 5:
        leat::read_csv(bytes);
        break;
      case 6:
        leat::read_arrow(bytes);
        break;
      case 7:
        leat::read_message(bytes);
        break;
      case 8:
        leat::read_serialized_record(bytes);
        break;
      case 10:
        leat::read_coded(bytes);
        break;
      default:
        leat::read_shards(bytes);
    }
    ++leat::seen.files;
  } catch (const leat::error&) {
  }
  return 0;
}
