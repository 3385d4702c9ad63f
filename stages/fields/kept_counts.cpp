#include "stages/fields/kept_counts.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/index_cache.hpp"
#include "datasets/model/model.hpp"
#include "io/files/file_status.hpp"
#include "io/files/source.hpp"
#include "io/remote/address.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

namespace leat::stages {
namespace {

// To count takes longer than to open, so that fewer samples are worth an index.
constexpr std::uint64_t samples_least = 1'000;

std::int64_t wall_ns() { return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(); }
// When this process began. A dataset was opened later, and its formats do not all tell whether files have changed since.
const std::int64_t began_ns = wall_ns();

// A file of a source of the dataset, by their numbers.
struct dataset_file {
  std::uint32_t source = 0;
  std::uint32_t file = 0;

  friend auto operator<=>(const dataset_file&, const dataset_file&) = default;
};

/// What numbers were found in.
///   subject         the dataset's description, and the places of what was asked for
///   files           whose change would change the numbers, in order
///   objects         how many of them lie at addresses
struct known_subject {
  digest subject;
  std::vector<dataset_file> files;
  std::size_t objects = 0;
};

/// How the files are now.
///   why_not        not empty: it cannot be told later whether they are the same
///   why_not_kept   not empty: what is found now may be found by the places that an old file had
struct known_state {
  digest stamps;
  std::int64_t newest_ns = std::numeric_limits<std::int64_t>::min();
  std::string why_not = {};
  std::string why_not_kept = {};
};

bool is_of_objects(const io::source_description& source) {
  return source.files() != 0 && io::is_address(source.file_name(0));
}

// The file of kept numbers is named without these, so that it is replaced when files are written anew.
bool tells_of_content(std::string_view key) {
  while (true) {
    const std::size_t end = std::min(key.find('.'), key.size());
    const std::string_view part = key.substr(0, end);
    if (part == "files" || part == "samples" || part == "fields" || part.starts_with("field ")) return true;
    if (end == key.size()) return false;
    key.remove_prefix(end + 1);
  }
}

// Of what lies where, and is seen how: the same for the runs that follow, until files come or go.
digest name_of(const datasets::dataset_model& dataset, const description& named, const digest& how) {
  hasher key;
  key.add("row counts, 2");
  for (const description::entry& each : named.entries()) {
    if (tells_of_content(each.key)) continue;
    key.add(each.key);
    key.add(each.value);
  }
  std::vector<std::string> names;
  for (const auto& source : dataset.sources()) {
    for (std::uint32_t file = 0; file < source->files(); ++file) names.push_back(source->file_name(file));
  }
  datasets::add_paths(key, names);
  key.add(how);
  return key.finish();
}

// The files of the pictures that are asked for. False where some are not told by their places.
bool add_places(const datasets::dataset_model& dataset, std::span<const datasets::asked_picture> asked, hasher& key,
                std::vector<dataset_file>& files) {
  datasets::part_list parts;
  for (const datasets::asked_picture& each : asked) {
    const datasets::need wanted[] = {{.field = each.field}};
    parts.clear();
    dataset.parts(each.sample, wanted, parts);
    for (const datasets::part& part : parts) {
      if (part.form != datasets::part_form::stored) return false;
      const extent& where = part.where;
      for (const std::uint64_t number :
           {std::uint64_t{where.source}, std::uint64_t{where.file}, where.offset, where.stored_bytes}) {
        key.add(number);
      }
      files.push_back({where.source, where.file});
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return true;
}

known_subject subject_of(const datasets::dataset_model& dataset, const description& named, const kept_size& size) {
  known_subject found;
  hasher key;
  key.add(named.digest());
  if (!size.asked || !add_places(dataset, *size.asked, key, found.files)) {
    found.files.clear();
    for (std::uint32_t source = 0; source < dataset.sources().size(); ++source) {
      const std::uint32_t files = dataset.sources()[source]->files();
      for (std::uint32_t file = 0; file < files; ++file) found.files.push_back({source, file});
    }
  }
  found.subject = key.finish();
  for (std::uint32_t source = 0; source < dataset.sources().size(); ++source) {
    if (!is_of_objects(*dataset.sources()[source])) continue;
    found.objects += static_cast<std::size_t>(
        std::count_if(found.files.begin(), found.files.end(), [&](const auto& each) { return each.source == source; }));
  }
  return found;
}

// False where another object in the place of one could not be told from it. Each costs a request.
bool add_objects(const io::source_description& source, std::span<const std::uint32_t> files, hasher& key) {
  try {
    datasets::blocking_sources connected(datasets::opening_loop::traffic::many);
    for (const auto& seen : connected.of(source).try_to_look(files)) {
      const auto* const look = std::get_if<datasets::blocking_source::file_look>(&seen);
      if (look == nullptr || look->version == 0) return false;
      key.add(look->size_bytes);
      key.add(look->version);
    }
    return true;
  } catch (const error&) {
    return false;  // Whoever reads it says why.
  }
}

// With inode and time of change, which tell of a file that was put in the place of another of the same time: cp -p, mv.
bool add_file(const std::string& name, hasher& key, std::int64_t& newest_ns) {
  io::file_status status;
  if (io::look_at(name.c_str(), status) != 0) return false;
  const auto ns = [](const io::file_status::timestamp& time) {
    return time.seconds * 1'000'000'000 + time.nanoseconds;
  };
  key.add(status.size_bytes);
  key.add(static_cast<std::uint64_t>(ns(status.write_time)));
  key.add(static_cast<std::uint64_t>(ns(status.change_time)));
  key.add(status.inode);
  newest_ns = std::max(newest_ns, ns(status.write_time));
  return true;
}

known_state state_of(const datasets::dataset_model& dataset, const known_subject& subject, const kept_size& size) {
  known_state found;
  if (size.asked && subject.objects != 0 && subject.objects >= size.asked->size()) {
    found.why_not = "to ask for the objects' versions takes as many requests as to read them";
    return found;
  }
  hasher key;
  for (std::size_t begin = 0; begin < subject.files.size();) {
    const std::uint32_t number = subject.files[begin].source;
    const io::source_description& source = *dataset.sources()[number];
    std::vector<std::uint32_t> files;
    for (; begin < subject.files.size() && subject.files[begin].source == number; ++begin) {
      files.push_back(subject.files[begin].file);
    }
    if (is_of_objects(source)) {
      if (!add_objects(source, files, key)) found.why_not = "an object has no version, or cannot be reached";
    } else {
      for (const std::uint32_t file : files) {
        const std::string name = source.file_name(file);
        if (!add_file(name, key, found.newest_ns)) found.why_not = str_cat(name, " cannot be looked at");
        if (!found.why_not.empty()) break;
      }
    }
    if (!found.why_not.empty()) return found;
  }
  found.stamps = key.finish();
  if (found.newest_ns > began_ns) found.why_not_kept = "a file was written since this process began";
  return found;
}

}  // namespace

kept_numbers keep_numbers(const datasets::dataset_model& dataset, const index_options& where, const std::string& what,
                          const digest& how, const kept_size& size, const std::function<kept_numbers()>& find) {
  if (where.use == index_use::off) return find();
  description named;
  dataset.describe(named);
  if (!named.unnamed().empty()) return find();
  datasets::index_cache index(where, what, name_of(dataset, named, how), samples_least);
  if (!index.is_written(size.samples) && !index.is_there()) {  // No file need be looked at.
    kept_numbers made = find();
    index.write(size.samples, {});
    return made;
  }
  const known_subject subject = subject_of(dataset, named, size);
  std::optional<known_state> state;
  const auto look = [&]() -> const known_state& {
    if (!state) state = state_of(dataset, subject, size);
    return *state;
  };
  const auto read = [&](const std::shared_ptr<const datasets::mapped_index>&,
                        datasets::section_reader& from) -> std::unique_ptr<kept_numbers> {
    const std::span<const digest> of = from.all<digest>();
    const std::span<const std::uint32_t> all = from.all<std::uint32_t>();
    if (of.size() != 2 || !from.at_end()) throw error(errc::format, "it has other parts");
    if (of[0] != subject.subject || all.size() != size.numbers) {
      index.refuse("the dataset has changed since it was written");
      return nullptr;
    }
    const bool is_looked_at = !index.is_trusted() || subject.objects != 0;
    if (is_looked_at && (!look().why_not.empty() || of[1] != look().stamps)) {
      index.refuse("files have changed since it was written");
      return nullptr;
    }
    return std::make_unique<kept_numbers>(kept_numbers{.numbers = {all.begin(), all.end()}});
  };
  if (const std::unique_ptr<kept_numbers> found = index.use(read)) return std::move(*found);
  index.saw(look().newest_ns);
  for (const std::string& why : {look().why_not_kept, look().why_not}) {
    if (!why.empty()) index.leave_out(why);
  }
  kept_numbers made = find();
  if (!made.why_not_final.empty()) index.leave_out(made.why_not_final);
  datasets::section_writer content;
  if (index.is_written(size.samples)) {
    datasets::check_unchanged(dataset);
    const digest of[] = {subject.subject, look().stamps};
    content.add_all(std::span<const digest>(of));
    content.add_all(std::span<const std::uint32_t>(made.numbers));
  }
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
