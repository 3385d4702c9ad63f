// The file of a state. All numbers little-endian:
//
//     0    magic "leat.run"                  160  counters, 9 x u64
//     8    u32 format version, 1             232  journal bytes, u64
//     12   u32 content version               240  lines bytes, u64
//     16   u32 bytes of the core, 256        248  u32 batch size, u32 zero
//     20   u32 bytes of the JSON behind it   256  JSON
//     24   checksum, 16 bytes
//     40   u32 epoch, u32 flags (1: the run's digest is known)
//     48   u64 batch
//     56   u64 seed
//     64   u32 rank, u32 world
//     72   u64 global batch size
//     80   digest of the run
//     96   digests of the options, the dataset, the fields and the order
//
// The checksum is XXH3-128 over all bytes but its own. Magic, versions, sizes and checksum keep their places in all versions.
#include "base/descriptor.hpp"
#include "base/file_at.hpp"
#include "base/hasher.hpp"
#include "base/option_words.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "io/files/read_error.hpp"
#include "stages/state/state_file.hpp"

#include <leat/error.hpp>
#include <leat/loader_state.hpp>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <type_traits>
#include <utility>

namespace leat {
namespace {

using part = state_descriptions::part;

constexpr std::string_view magic = "leat.run";
constexpr std::uint32_t format_version = 1;
constexpr std::size_t core_bytes = loader_state::core_bytes;
constexpr std::size_t json_bytes_max = std::size_t{64} << 10;
constexpr std::size_t checksum_at = 24;
constexpr std::size_t checksum_end = 40;
constexpr std::size_t file_bytes_max = core_bytes + json_bytes_max;
constexpr std::uint32_t digest_known = 1;
constexpr std::string_view part_names[] = {"options", "dataset", "fields", "order"};

using core_block = std::array<std::byte, core_bytes>;

template <class T>
void put(core_block& block, std::size_t at, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(block.data() + at, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

digest checksum_of(std::span<const std::byte> file) {
  hasher hash;
  hash.add(file.first(checksum_at));
  hash.add(file.subspan(checksum_end));
  return hash.finish();
}

template <class Counters, class Function>
void for_each_counter(Counters& counted, Function&& function) {
  std::size_t at = 160;
  for (auto* const each :
       {&counted.planned, &counted.samples, &counted.quarantined, &counted.substituted, &counted.bytes,
        &counted.batches, &counted.epochs_finished, &counted.epoch_corrupt, &counted.epoch_unreadable}) {
    function(*each, at);
    at += sizeof *each;
  }
}

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw error(errc::format,
              str_cat(name, ": ", why, "; give a state that was saved whole, or remove it and begin the run anew"));
}

const state_descriptions& of(const loader_state& state) {
  static const state_descriptions none;
  return state.descriptions != nullptr ? *state.descriptions : none;
}

std::string joined(std::span<const std::string> texts) {
  std::string document = "{";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    str_append(document, i == 0 ? "\"" : ",\"", part_names[i], "\":", texts[i]);
  }
  return document + "}";
}

// Beside the descriptions, and no part of them: another budget is no other run. An older leat does not look at it.
std::string with_limits(std::string document, const sample_limits& limits) {
  nlohmann::ordered_json own = {{"scratch_bytes", nullptr}, {"value_bytes", nullptr}};
  if (limits.scratch_bytes != sample_limits::none) own["scratch_bytes"] = limits.scratch_bytes;
  if (limits.value_bytes != sample_limits::none) own["value_bytes"] = limits.value_bytes;
  document.pop_back();
  return document + ",\"limits\":" + own.dump() + "}";
}

std::optional<sample_limits> limits_of(const nlohmann::ordered_json& document, std::string_view name) {
  const auto found = document.find("limits");
  if (found == document.end()) return std::nullopt;
  const auto number = [&](const char* key) {
    const nlohmann::ordered_json& value = found->at(key);
    if (value.is_null()) return sample_limits::none;
    if (!value.is_number_unsigned()) refuse(name, "its limits are no numbers");
    return value.get<std::uint64_t>();
  };
  return sample_limits{.scratch_bytes = number("scratch_bytes"), .value_bytes = number("value_bytes")};
}

std::string option_as_seen(std::string_view key) {
  for (const option_id each : {option_id::global_batch_size, option_id::batches_max, option_id::on_corrupt}) {
    if (name(each) == str_cat("loader_options::", key)) return spelled(each);
  }
  return std::string(key);
}

std::string as_seen(part where, std::string_view key) {
  switch (where) {
    case part::options:
      return option_as_seen(key);
    case part::dataset:
      return str_cat("the dataset's ", key);
    case part::fields:
      return str_cat("field ", key);
    case part::order:
      return str_cat("the order's ", key);
  }
  return std::string(key);
}

}  // namespace

state_descriptions::state_descriptions(description options, description dataset, description fields,
                                       description order) {
  description all[] = {std::move(options), std::move(dataset), std::move(fields), std::move(order)};
  std::array<std::string, part_count> texts;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < part_count; ++i) {
    parts_[i] = {.what = std::move(all[i]), .sum = {}, .digest_only = false};
    parts_[i].sum = parts_[i].what.digest();
    texts[i] = parts_[i].what.to_json();
    bytes += texts[i].size() + part_names[i].size() + 8;
  }
  // The largest goes first.
  while (bytes > json_bytes_max) {
    std::string& largest = *std::max_element(
        texts.begin(), texts.end(), [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    bytes -= largest.size();
    largest = nlohmann::json(parts_[static_cast<std::size_t>(&largest - texts.data())].sum.hex()).dump();
    bytes += largest.size();
  }
  json_ = joined(texts);
}

void state_descriptions::check_named() const {
  for (std::size_t i = 0; i < part_count; ++i) {
    const std::span<const description::unnamed_part> unnamed = parts_[i].what.unnamed();
    if (unnamed.empty()) continue;
    throw error(errc::usage, str_cat("this run can neither be saved nor resumed: ",
                                     as_seen(static_cast<part>(i), unnamed.front().key),
                                     " decides what batches hold and has no name; ", unnamed.front().remedy));
  }
}

loader_state loader_state::at(std::uint32_t other_epoch, std::uint64_t other_batch) const {
  loader_state moved = *this;
  moved.epoch = other_epoch;
  moved.batch = other_batch;
  moved.run_digest.reset();
  // What was counted of an epoch is of the one that had begun.
  if (other_epoch != epoch || other_batch == 0) moved.counted.epoch_corrupt = moved.counted.epoch_unreadable = 0;
  return moved;
}

std::vector<std::byte> loader_state::bytes() const {
  of(*this).check_named();
  const std::string document = limits ? with_limits(of(*this).json(), *limits) : of(*this).json();
  core_block core{};
  std::memcpy(core.data(), magic.data(), magic.size());
  put(core, 8, format_version);
  put(core, 12, content_version);
  put(core, 16, static_cast<std::uint32_t>(core_bytes));
  put(core, 20, static_cast<std::uint32_t>(document.size()));
  put(core, 40, epoch);
  put(core, 44, run_digest ? digest_known : std::uint32_t{0});
  put(core, 48, batch);
  put(core, 56, seed);
  put(core, 64, rank);
  put(core, 68, world);
  put(core, 72, global_batch_size);
  if (run_digest) put(core, 80, run_digest->bytes);
  for (std::size_t i = 0; i < state_descriptions::part_count; ++i) {
    put(core, 96 + 16 * i, of(*this).digest_of(static_cast<part>(i)).bytes);
  }
  for_each_counter(counted, [&](std::uint64_t value, std::size_t at) { put(core, at, value); });
  put(core, 232, journal_bytes);
  put(core, 240, lines_bytes);
  put(core, 248, batch_size);

  std::vector<std::byte> all;
  all.reserve(core_bytes + document.size());
  all.insert(all.end(), core.begin(), core.end());
  const std::span<const std::byte> text = std::as_bytes(std::span(document));
  all.insert(all.end(), text.begin(), text.end());
  const digest sum = checksum_of(all);
  std::memcpy(all.data() + checksum_at, sum.bytes.data(), sum.bytes.size());
  return all;
}

loader_state loader_state::from_bytes(std::span<const std::byte> bytes, std::string_view name) {
  const bool has_magic = bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  if (!has_magic) refuse(name, bytes.empty() ? "is empty" : "is no state of a run");
  if (bytes.size() < checksum_end) refuse(name, str_cat("ends after ", bytes.size(), " bytes: it was cut"));
  digest sum;
  std::memcpy(sum.bytes.data(), bytes.data() + checksum_at, sum.bytes.size());
  if (!(sum == checksum_of(bytes))) refuse(name, "its checksum does not match: it is damaged, or was cut");
  if (const auto version = get<std::uint32_t>(bytes, 8); version != format_version) {
    throw error(errc::unsupported, str_cat(name, ": version ", version, " of a state; this leat reads ", format_version,
                                           ": resume with the leat that saved it, or a newer one"));
  }
  if (const auto content = get<std::uint32_t>(bytes, 12); content != content_version) {
    throw error(errc::unsupported, str_cat(name, ": its batches have content version ", content,
                                           ", and those of this leat ", content_version,
                                           ", which holds other bytes for the same options: resume with the leat that "
                                           "saved it, or begin the run anew"));
  }
  const auto document_bytes = get<std::uint32_t>(bytes, 20);
  if (get<std::uint32_t>(bytes, 16) != core_bytes || bytes.size() < core_bytes || document_bytes > json_bytes_max ||
      bytes.size() - core_bytes != document_bytes) {
    refuse(name, "its sizes do not fit together");
  }

  loader_state state;
  state.epoch = get<std::uint32_t>(bytes, 40);
  state.batch = get<std::uint64_t>(bytes, 48);
  state.seed = get<std::uint64_t>(bytes, 56);
  state.rank = get<std::uint32_t>(bytes, 64);
  state.world = get<std::uint32_t>(bytes, 68);
  state.global_batch_size = get<std::uint64_t>(bytes, 72);
  if ((get<std::uint32_t>(bytes, 44) & digest_known) != 0) {
    state.run_digest.emplace();
    state.run_digest->bytes = get<std::array<std::uint8_t, 16>>(bytes, 80);
  }
  for_each_counter(state.counted, [&](std::uint64_t& value, std::size_t at) { value = get<std::uint64_t>(bytes, at); });
  state.journal_bytes = get<std::uint64_t>(bytes, 232);
  state.lines_bytes = get<std::uint64_t>(bytes, 240);
  state.batch_size = get<std::uint32_t>(bytes, 248);
  state.file = std::string(name);

  // The checksum is right: whoever wrote it wrote this. It is parsed with care all the same, since anybody can make one.
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + core_bytes, document_bytes);
  auto read = std::make_shared<state_descriptions>();
  try {
    std::array<std::string, state_descriptions::part_count> texts;
    const nlohmann::ordered_json document = parse_json_or_discard<nlohmann::ordered_json>(text);
    for (std::size_t i = 0; i < state_descriptions::part_count; ++i) {
      state_descriptions::described& into = read->parts_[i];
      into.sum.bytes = get<std::array<std::uint8_t, 16>>(bytes, 96 + 16 * i);
      const nlohmann::ordered_json& from = document.at(std::string(part_names[i]));
      texts[i] = from.dump();
      into.digest_only = from.is_string();
      if (into.digest_only) continue;
      for (const auto& [key, value] : from.items())
        into.what.add(key, std::string_view(value.get_ref<const std::string&>()));
      if (!(into.what.digest() == into.sum)) refuse(name, "its descriptions do not match their digests");
    }
    read->json_ = joined(texts);
    state.limits = limits_of(document, name);
  } catch (const nlohmann::json::exception&) {
    refuse(name, "its descriptions are no JSON of a state");
  }
  state.descriptions = std::move(read);
  return state;
}

void loader_state::save(const std::string& path) const {
  const std::vector<std::byte> content = bytes();
  unfinished_file begun(path);
  const auto check = [&](int failure) {
    if (failure != 0) stages::fail_to_save(begun.path(), failure);
  };
  check(begun.open());
  check(begun.write(content));
  check(begun.sync());
  check(begun.take_name(true));
  check(sync_folder_of(begun.path()));
}

loader_state loader_state::load(const std::string& name) {
  const descriptor file(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) throw io::explain_open(errno, name);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) throw io::explain_open(errno, name);
  if (!S_ISREG(status.st_mode)) refuse(name, "is no regular file");
  // One more than there may be: a file that is too long is no state.
  std::vector<std::byte> bytes(file_bytes_max + 1);
  const auto [have, failure] = read_at(file.get(), 0, bytes);
  if (failure != 0) {
    throw io::explain_read({.failure = failure, .path = name, .offset = have, .bytes = bytes.size() - have});
  }
  if (have > file_bytes_max)
    refuse(name, str_cat("has more than ", file_bytes_max, " bytes, and is no state of a run"));
  bytes.resize(have);
  return from_bytes(bytes, name);
}

std::vector<description_difference> differences(const state_descriptions& now, const state_descriptions& before) {
  std::vector<description_difference> found;
  for (std::size_t i = 0; i < state_descriptions::part_count; ++i) {
    const auto which = static_cast<part>(i);
    if (now.digest_of(which) == before.digest_of(which)) continue;
    if (!now.has_entries(which) || !before.has_entries(which)) {
      found.push_back({which, "description", now.digest_of(which).hex(), before.digest_of(which).hex()});
      continue;
    }
    const auto value_in = [](std::span<const description::entry> entries, const std::string& key) {
      const auto at =
          std::find_if(entries.begin(), entries.end(), [&](const description::entry& each) { return each.key == key; });
      return at == entries.end() ? std::nullopt : std::optional(at->value);
    };
    const std::span<const description::entry> here = now.of(which).entries();
    const std::span<const description::entry> there = before.of(which).entries();
    const std::size_t known = found.size();
    for (const description::entry& each : here) {
      std::optional<std::string> old = value_in(there, each.key);
      if (old != each.value) found.push_back({which, each.key, each.value, std::move(old)});
    }
    for (const description::entry& each : there) {
      if (!value_in(here, each.key)) found.push_back({which, each.key, std::nullopt, each.value});
    }
    if (found.size() == known) {
      found.push_back({which, "sequence of keys", now.digest_of(which).hex(), before.digest_of(which).hex()});
    }
  }
  return found;
}

void check_resumes(const loader_state& state, const state_descriptions& now) {
  now.check_named();
  std::vector<description_difference> found = differences(now, of(state));
  // A run that a corrupt sample would have ended has met none: with another policy, too, its batches would be these.
  std::erase_if(found, [](const description_difference& each) {
    return each.where == part::options && each.key == "on_corrupt" && each.before == "raise";
  });
  if (found.empty()) return;
  // What the loader's options and its order both name is told once.
  const std::vector<description_difference> all = found;
  std::erase_if(found, [&](const description_difference& each) {
    return each.where == part::order && std::any_of(all.begin(), all.end(), [&](const description_difference& other) {
             return other.where == part::options &&
                    (other.key == each.key || (other.key == "global_batch_size" && each.key == "batch_size")) &&
                    other.now == each.now && other.before == each.before;
           });
  });
  constexpr std::size_t named_max = 3;
  const std::string file = state.file.empty() ? "the state" : state.file;
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), named_max); ++i) {
    const description_difference& each = found[i];
    const std::string key = as_seen(each.where, each.key);
    if (i > 0) text += "; ";
    if (!each.before) {
      str_append(text, key, " is ", *each.now, ", and ", file, " has none");
    } else if (!each.now) {
      str_append(text, key, " was ", *each.before, " in ", file, ", and is not there now");
    } else {
      str_append(text, key, " is ", *each.now, ", and was ", *each.before, " in ", file);
    }
  }
  if (found.size() > named_max) str_append(text, "; and ", found.size() - named_max, " more");
  throw error(errc::usage,
              str_cat(text, ": a run goes on with what it was begun with; give that, or begin another run"));
}

}  // namespace leat
