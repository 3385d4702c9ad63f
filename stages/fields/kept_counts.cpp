#include "stages/fields/kept_counts.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/index_cache.hpp"
#include "io/files/file_status.hpp"
#include "io/files/source.hpp"
#include "io/remote/address.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>

#include <memory>
#include <optional>
#include <span>

namespace leat::stages {
namespace {

// To count takes longer than to open, so that fewer samples are worth an index.
constexpr std::uint64_t samples_least = 1'000;

struct known_dataset {
  digest key;
  std::int64_t newest_ns = 0;
};

// False where another object in the place of one could not be told from it. Each costs a request.
bool add_objects(const io::source_description& source, hasher& key) {
  try {
    datasets::blocking_sources connected(datasets::opening_loop::traffic::many);
    std::uint32_t file = 0;
    for (const auto& [size_bytes, version] : connected.of(source).look_at_all(source.files())) {
      if (version == 0) return false;
      key.add(source.file_name(file++));
      key.add(size_bytes);
      key.add(version);
    }
    return true;
  } catch (const error&) {
    return false;  // Whoever reads it says why.
  }
}

// Nothing where it cannot be told later whether the dataset is the same.
std::optional<known_dataset> identity_of(const datasets::dataset_model& dataset) {
  description named;
  dataset.describe(named);
  if (!named.unnamed().empty()) return std::nullopt;
  known_dataset known;
  hasher key;
  key.add(named.digest());
  for (const auto& source : dataset.sources()) {
    if (source->files() != 0 && io::is_address(source->file_name(0))) {
      if (!add_objects(*source, key)) return std::nullopt;
      continue;
    }
    for (std::uint32_t file = 0; file < source->files(); ++file) {
      const std::string name = source->file_name(file);
      io::file_status status;
      if (io::look_at(name.c_str(), status) != 0) return std::nullopt;
      const std::int64_t written = status.write_time.seconds * 1'000'000'000 + status.write_time.nanoseconds;
      key.add(name);
      key.add(status.size_bytes);
      key.add(static_cast<std::uint64_t>(written));
      known.newest_ns = std::max(known.newest_ns, written);
    }
  }
  known.key = key.finish();
  return known;
}

}  // namespace

kept_numbers keep_numbers(const datasets::dataset_model& dataset, const index_options& where, const std::string& what,
                          const digest& how, const kept_size& size, const std::function<kept_numbers()>& find) {
  if (where.use == index_use::off) return find();
  const std::optional<known_dataset> known = identity_of(dataset);
  if (!known) return find();
  hasher key;
  key.add("row counts, 1");
  key.add(known->key);
  key.add(how);
  datasets::index_cache index(where, what, key.finish(), samples_least);
  index.saw(known->newest_ns);
  const auto read = [&](const std::shared_ptr<const datasets::mapped_index>&, datasets::section_reader& from) {
    const std::span<const std::uint32_t> all = from.all<std::uint32_t>();
    if (all.size() != size.numbers || !from.at_end()) throw error(errc::format, "it is of another number of samples");
    return std::make_unique<kept_numbers>(kept_numbers{.numbers = {all.begin(), all.end()}});
  };
  if (const std::unique_ptr<kept_numbers> found = index.use(read)) return std::move(*found);
  kept_numbers made = find();
  if (!made.why_not_final.empty()) index.leave_out(made.why_not_final);
  datasets::section_writer content;
  if (index.is_written(size.samples)) content.add_all(std::span<const std::uint32_t>(made.numbers));
  index.write(size.samples, content.bytes());
  return made;
}

counted_rows kept_counts(const datasets::dataset_model& dataset, const index_options& where, const std::string& what,
                         const digest& how, const std::function<counted_rows()>& count) {
  bool is_final = true;
  kept_numbers found =
      keep_numbers(dataset, where, what, how, {.samples = dataset.size(), .numbers = dataset.size()}, [&] {
        counted_rows made = count();
        is_final = made.is_final;
        return kept_numbers{
            .numbers = std::move(made.counts),
            .why_not_final = is_final ? "" : "some samples could not be read, or are too large for host_bytes_max"};
      });
  return {.counts = std::move(found.numbers), .is_final = is_final};
}

}  // namespace leat::stages
