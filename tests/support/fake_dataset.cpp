#include "tests/support/fake_dataset.hpp"

#include "datasets/tables/describe.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/own_samples.hpp>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace leat::testing {

fake_sample::member* fake_sample::find(std::string_view field) {
  for (member& each : members) {
    if (each.field == field) return &each;
  }
  return nullptr;
}

void fake_sample::remove(std::string_view field) {
  std::erase_if(members, [&](const member& each) { return each.field == field; });
}

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<fake_sample> make_samples(std::uint64_t seed, std::size_t count) {
  std::vector<fake_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    seeded_random random(mix_bits(seed, i));
    const int width = 16 + static_cast<int>(random.below(40));
    const int height = 16 + static_cast<int>(random.below(40));
    const rgb_picture picture = make_texture(random.next(), width, height);
    rgb_picture seen;
    const bool png = i % 7 == 3;
    jpeg_options jpeg;
    jpeg.progressive = i % 5 == 4;
    jpeg.colours = i % 11 == 10 ? jpeg_colours::grey : jpeg_colours::ycbcr;
    std::vector<std::byte> encoded = png ? make_png(picture, {}, seen) : make_jpeg(picture, jpeg);

    std::string text;
    const std::size_t letters = i % 6 == 5 ? 0 : random.below(100);
    constexpr std::string_view alphabet[] = {"a", "b", " ", "\xC3\xA4", "\xC3\x9F", "x", "\n"};
    for (std::size_t k = 0; k < letters; ++k) text += alphabet[random.below(std::size(alphabet))];

    fake_sample& sample = samples[i];
    sample.members.push_back({i % 14 == 3 ? "png" : "jpg", std::move(encoded)});
    sample.members.push_back({"cls", to_bytes(std::to_string(1000 + i) + "\n")});
    sample.members.push_back({"txt", to_bytes(text)});
    sample.members.push_back(
        {"json", to_bytes("{\"id\": " + std::to_string(i) + ", \"box\": [0, 0.5, " + std::to_string(width) + "]}")});
  }
  return samples;
}

namespace {

struct placed_file {
  std::string name;
  std::vector<std::byte> bytes;
};

struct placement {
  std::vector<placed_file> files;
  std::vector<std::string> fields;
  std::vector<std::vector<std::optional<extent>>> extents;  // [field][sample]; extent::file counts through all disks
};

std::uint32_t number_of(placement& placed, std::string_view field, std::size_t samples) {
  const auto found = std::find(placed.fields.begin(), placed.fields.end(), field);
  if (found != placed.fields.end()) return static_cast<std::uint32_t>(found - placed.fields.begin());
  placed.fields.emplace_back(field);
  placed.extents.emplace_back(samples);
  return static_cast<std::uint32_t>(placed.fields.size() - 1);
}

placement place(const std::vector<fake_sample>& samples, const fake_dataset_options& options) {
  placement placed;
  for (const fake_sample& sample : samples) {
    for (const auto& member : sample.members) number_of(placed, member.field, samples.size());
  }
  if (options.layout == fake_layout::columns) {
    for (const std::string& field : placed.fields) placed.files.push_back({field + ".column", {}});
  }
  if (options.layout == fake_layout::shards) {
    for (std::uint32_t s = 0; s < options.shards; ++s) {
      placed.files.push_back({"shard-" + std::to_string(s) + ".tar", {}});
    }
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const auto& member : samples[i].members) {
      const std::uint32_t field = number_of(placed, member.field, samples.size());
      std::size_t file = 0;
      switch (options.layout) {
        case fake_layout::file_per_member:
          file = placed.files.size();
          placed.files.push_back({std::to_string(i) + "." + member.field, {}});
          break;
        case fake_layout::shards:
          file = i * options.shards / samples.size();
          break;
        case fake_layout::columns:
          file = field;
          break;
      }
      std::vector<std::byte>& bytes = placed.files[file].bytes;
      if (options.layout == fake_layout::shards) bytes.resize(bytes.size() + 512, std::byte{0x5A});
      extent where;
      where.file = static_cast<std::uint32_t>(file);
      where.offset = bytes.size();
      where.stored_bytes = where.decoded_bytes = member.bytes.size();
      bytes.insert(bytes.end(), member.bytes.begin(), member.bytes.end());
      if (options.layout == fake_layout::shards) bytes.resize((bytes.size() + 511) / 512 * 512, std::byte{0});
      placed.extents[field][i] = where;
    }
  }
  return placed;
}

class fake_model final : public datasets::dataset_model, datasets::columns_facet, datasets::defects_facet {
 public:
  fake_model(const std::vector<fake_sample>& samples, placement placed,
             std::vector<std::shared_ptr<const io::source_description>> sources)
      : size_(samples.size()), extents_(std::move(placed.extents)) {
    sources_ = std::move(sources);
    for (std::size_t f = 0; f < placed.fields.size(); ++f) {
      field_info info;
      info.name = placed.fields[f];
      info.kind = datasets::kind_of(info.name);
      std::uint64_t places = 0;
      for (const auto& where : extents_[f]) {
        if (!where) continue;
        places |= where->offset | where->stored_bytes;
        ++info.samples;
        info.bytes_total += where->stored_bytes;
        info.bytes_max = std::max(info.bytes_max, where->stored_bytes);
      }
      info.alignment = io::alignment_of(places);
      fields_.push_back(std::move(info));
    }
    for (const fake_sample& sample : samples) {
      defects_.push_back(sample.defect);
      if (!sample.defect.empty()) ++defect_count_;
      cls_.push_back(sample.cls_column);
      if (sample.cls_column) facets_.columns = this;
    }
    if (defect_count_ > 0) facets_.defects = this;
  }

  std::uint64_t size() const noexcept override { return size_; }

  void parts(std::uint64_t sample, std::span<const datasets::need> needs, datasets::part_list& out) const override {
    for (const datasets::need& each : needs) add(sample, each.field, out);
  }

  std::span<const std::string> column_names() const noexcept override { return {&column_, 1}; }
  std::optional<datasets::column_value> column(std::uint64_t sample, std::size_t) const override {
    return cls_[sample];
  }
  dtype column_type(std::size_t) const override { return dtype::i64; }
  std::uint64_t column_gaps(std::size_t) const override { return 0; }
  std::string name(std::uint64_t sample) const override { return "sample/" + std::to_string(sample); }

  std::uint64_t defects() const noexcept override { return defect_count_; }
  std::optional<datasets::defect> defect_of(std::uint64_t sample) const override {
    if (defects_[sample].empty()) return std::nullopt;
    datasets::defect found;
    for (const auto& of_field : extents_) {
      if (!of_field[sample]) continue;
      found.source = of_field[sample]->source;
      found.file = of_field[sample]->file;
      found.offset = of_field[sample]->offset;
      break;
    }
    found.reason = defects_[sample];
    return found;
  }

  dataset_memory memory() const override { return {}; }
  void describe(description& out) const override { datasets::describe_model(out, "fake", *this); }

 private:
  void add(std::uint64_t sample, std::uint16_t field, datasets::part_list& out) const {
    if (extents_[field][sample]) out.push_back({.field = field, .where = *extents_[field][sample]});
  }

  std::uint64_t size_;
  std::vector<std::vector<std::optional<extent>>> extents_;
  const std::string column_ = "cls";
  std::vector<std::optional<std::int64_t>> cls_;
  std::vector<std::string> defects_;
  std::uint64_t defect_count_ = 0;
};

leat::dataset put_on_disks(const std::vector<fake_sample>& samples, const fake_dataset_options& options,
                           std::vector<std::shared_ptr<fake_disk>>& disks) {
  placement placed = place(samples, options);
  for (std::uint32_t d = 0; d < options.disks; ++d) {
    fake_disk_options disk = options.disk;
    disk.seed += d;
    disks.push_back(std::make_shared<fake_disk>(disk));
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> address;  // disk and number there
  for (std::size_t f = 0; f < placed.files.size(); ++f) {
    const auto disk = static_cast<std::uint32_t>(f % options.disks);
    address.emplace_back(disk, disks[disk]->add_file(placed.files[f].name, std::move(placed.files[f].bytes)));
  }
  for (auto& of_field : placed.extents) {
    for (auto& where : of_field) {
      if (where) std::tie(where->source, where->file) = address[where->file];
    }
  }
  std::vector<std::shared_ptr<const io::source_description>> sources(disks.begin(), disks.end());
  return leat::dataset(std::make_shared<const fake_model>(samples, std::move(placed), std::move(sources)));
}

}  // namespace

fake_dataset::fake_dataset(const std::vector<fake_sample>& samples, const fake_dataset_options& options)
    : dataset_(put_on_disks(samples, options, disks_)) {}

extent fake_dataset::where(std::uint64_t sample, std::string_view field) const {
  const datasets::dataset_model& model = *dataset_.model();
  datasets::part_list parts;
  model.parts(sample, parts);
  for (const datasets::part& part : parts) {
    if (model.fields()[part.field].name == field) return part.where;
  }
  throw std::out_of_range("sample " + std::to_string(sample) + " has no field " + std::string(field));
}

void fake_dataset::damage(std::uint64_t sample, std::string_view field, int failure, std::uint32_t times,
                          std::shared_ptr<const io::source_failure> said) {
  const extent at = where(sample, field);
  read_fault fault;
  fault.file = at.file;
  fault.offset = at.offset;
  fault.bytes = std::max<std::uint64_t>(at.stored_bytes, 1);
  fault.failure = failure;
  fault.times = times;
  fault.said = std::move(said);
  disks_[at.source]->add_fault(fault);
}

fake_disk_counters fake_dataset::count() const {
  fake_disk_counters all;
  for (const auto& disk : disks_) {
    const fake_disk_counters one = disk->count();
    all.reads += one.reads;
    all.cancels += one.cancels;
    all.cancelled += one.cancelled;
    all.failed += one.failed;
    all.reads_in_flight += one.reads_in_flight;
    all.bytes_in_flight += one.bytes_in_flight;
  }
  return all;
}

leat::dataset write_samples(const std::vector<fake_sample>& samples, const fake_dataset_options& options,
                            const std::filesystem::path& directory) {
  placement placed = place(samples, options);
  extent_list table;
  for (const placed_file& file : placed.files) {
    const std::filesystem::path path = directory / file.name;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.bytes.data()), static_cast<std::streamsize>(file.bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
    table.files.push_back(path.string());
  }
  for (std::size_t f = 0; f < placed.fields.size(); ++f) {
    extent_list::field field;
    field.name = placed.fields[f];
    for (const auto& where : placed.extents[f]) {
      extent absent;
      absent.offset = extent_list::missing;
      field.extents.push_back(where.value_or(absent));
    }
    table.fields.push_back(std::move(field));
  }
  for (std::size_t i = 0; i < samples.size(); ++i) table.names.push_back("sample/" + std::to_string(i));
  return from_extents(std::move(table));
}

}  // namespace leat::testing
