// leat unpack: the members of shards as files, photo packs as the JPEGs that they were made from.
#include "base/confined_folder.hpp"
#include "base/cores_quota.hpp"
#include "base/descriptor.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/member_key.hpp"
#include "datasets/model/model.hpp"
#include "datasets/write/sample_members.hpp"
#include "tools/arguments.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/photo_packing.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/photo_pack.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t window_bytes = std::uint64_t{64} << 20;
constexpr std::size_t not_written_shown = 8;

struct unpack_arguments {
  std::vector<std::string> paths;  // SOURCE... DIR
  bool overwrite = false;
  open_options opening;
  bool json = false;
  asked_for asked;
};

// Where a member's extension begins.
std::size_t key_bytes(std::string_view member) {
  const std::size_t slash = member.rfind('/');
  return std::min(member.size(), member.find('.', slash == std::string_view::npos ? 0 : slash));
}

// What a shard's member is called as a file: escapes of its key undone. Refuses what would lie outside of DIR.
//   number   0, or what tells its sample from others of this key
std::string file_of(std::string_view member, std::uint64_t number) {
  const std::size_t dot = key_bytes(member);
  std::string path =
      str_cat(datasets::number_key(datasets::decode_key(member.substr(0, dot)), number), member.substr(dot));
  bool leads_out = path.empty() || path.front() == '/' || path.find('\0') != std::string::npos;
  for (const fs::path& part : fs::path(path)) leads_out = leads_out || part == "..";
  if (leads_out) {
    throw error(errc::format,
                str_cat("the member '", one_line(member), "' leads out of the folder; nothing was written of it"));
  }
  return path;
}

bool is_jpeg(std::span<const std::byte> content) {
  return content.size() >= 2 && content[0] == std::byte{0xFF} && content[1] == std::byte{0xD8};
}

class unpacking {
 public:
  unpacking(const dataset& from, std::string directory, bool overwrite, std::stop_token stop)
      : from_(from), directory_(std::move(directory)), overwrite_(overwrite), stop_(std::move(stop)) {}

  // Before anything is written: finds a name for each member, and whether none of these is taken.
  void find_names() {
    datasets::sample_reader reader(*from_.model(), stop_);
    for (std::uint64_t sample = 0; sample < from_.size(); ++sample) {
      check_stop();
      if (from_.model()->defect_of(sample)) continue;
      const std::vector<datasets::member> members = reader.describe(sample).members;
      if (take_names(sample, members, 0)) continue;
      const std::string_view first = members.front().name;
      std::uint64_t& number = numbers_of_keys_[datasets::decode_key(first.substr(0, key_bytes(first)))];
      while (!take_names(sample, members, ++number)) check_stop();
      numbers_.emplace(sample, number);
    }
  }

  void run() {
    if (const int failed = inside_.open(directory_.string()); failed != 0)
      throw explain_write(directory_.string(), failed);
    datasets::sample_reader reader(*from_.model(), stop_);
    std::vector<datasets::sample_members> pending;
    std::vector<std::uint64_t> pending_samples;
    std::uint64_t pending_bytes = 0;
    for (std::uint64_t sample = 0; sample < from_.size(); ++sample) {
      check_stop();
      if (const std::optional<datasets::defect> found = from_.model()->defect_of(sample)) {
        add_not_written(str_cat(from_.name(sample), ": ", found->reason), errc::corrupt);
      } else {
        pending.push_back(reader.describe(sample));
        pending_samples.push_back(sample);
        pending_bytes += pending.back().content_bytes;
      }
      if (pending_bytes < window_bytes && sample + 1 < from_.size()) continue;
      reader.read(pending);
      datasets::for_each_parallel(pending.size(), working_cores(),
                                  [&](std::size_t i) { write(pending_samples[i], pending[i]); });
      check_stop();
      pending.clear();
      pending_samples.clear();
      pending_bytes = 0;
    }
  }

  [[nodiscard]] std::uint64_t numbered() const noexcept { return numbers_.size(); }

  std::uint64_t files = 0;
  std::uint64_t photos = 0;
  std::uint64_t repeated = 0;  // members that are another one again, by name and content
  std::uint64_t damaged = 0;
  std::uint64_t unsupported = 0;         // packs of another version
  std::vector<std::string> not_written;  // the first of both

 private:
  void check_stop() const {
    if (stop_.stop_requested()) throw error(errc::cancelled, "stopped");
  }

  struct place {
    std::uint64_t sample;
    std::size_t member;
    friend bool operator==(const place&, const place&) = default;
  };

  // Whether the members of a sample have names of their own, or those of others that are the same; takes them if so.
  bool take_names(std::uint64_t sample, const std::vector<datasets::member>& members, std::uint64_t number) {
    std::unordered_map<std::string, place> fresh;
    for (std::size_t i = 0; i < members.size(); ++i) {
      std::vector<std::string> names{file_of(members[i].name, number)};
      // What a photo pack becomes is known when its content is.
      if (const std::optional<std::string> jpeg = jpeg_name_of(names.front())) names.push_back(*jpeg);
      for (const std::string& name : names) {
        const place here{sample, i};
        if (const auto found = names_.find(name); found != names_.end()) {
          if (!are_same(found->second, here)) return false;
        } else if (!fresh.emplace(name, here).second) {
          throw error(errc::usage, str_cat("two members of the sample ", from_.name(sample), " become the file ",
                                           (directory_ / name).string(), "; pack it without one of them"));
        }
      }
    }
    for (const auto& [name, where] : fresh) check_free(name);
    names_.merge(fresh);
    return true;
  }

  void check_free(const std::string& name) const {
    const std::string path = (directory_ / name).string();
    std::error_code failed;
    if (overwrite_ || !fs::exists(fs::symlink_status(path, failed))) return;
    throw error(errc::usage, str_cat(path, " is there already; remove it, give another folder, or --overwrite"));
  }

  bool are_same(place a, place b) {
    std::vector<datasets::sample_members> both(2);
    for (std::size_t i = 0; i < 2; ++i) {
      const place each = i == 0 ? a : b;
      both[i].members.push_back(std::move(comparing_.describe(each.sample).members[each.member]));
    }
    if (both[0].members[0].size_bytes != both[1].members[0].size_bytes) return false;
    comparing_.read(both);
    return both[0].members[0].content == both[1].members[0].content;
  }

  void add_not_written(std::string what, errc why) {
    const std::lock_guard lock(mutex_);
    ++(why == errc::unsupported ? unsupported : damaged);
    if (not_written.size() < not_written_shown) not_written.push_back(std::move(what));
  }

  void write(std::uint64_t number, const datasets::sample_members& sample) {
    if (stop_.stop_requested()) return;
    for (std::size_t i = 0; i < sample.members.size(); ++i) {
      const datasets::member& each = sample.members[i];
      try {
        write({number, i}, each);
      } catch (const error& failure) {
        if (failure.code() != errc::format && failure.code() != errc::unsupported) throw;
        add_not_written(str_cat(each.name, ": ", failure.what()), failure.code());
      }
    }
  }

  void write(place where, const datasets::member& each) {
    const auto number = numbers_.find(where.sample);
    const std::string name = file_of(each.name, number == numbers_.end() ? 0 : number->second);
    if (names_.at(name) != where) {  // the other one is written
      const std::lock_guard lock(mutex_);
      ++repeated;
      return;
    }
    const std::optional<std::string> jpeg = jpeg_name_of(name);
    const bool is_pack = jpeg && is_photo_pack(each.content);
    if (jpeg && !is_pack && !is_jpeg(each.content)) {
      throw error(errc::format, "it is neither a photo pack nor a JPEG; its first bytes are damaged");
    }
    if (is_pack) {
      put(*jpeg, unpack_photo(each.content));
    } else {
      put(name, each.content);
    }
    const std::lock_guard lock(mutex_);
    ++files;
    photos += is_pack ? 1 : 0;
  }

  void put(const std::string& name, std::span<const std::byte> content) const {
    const fs::path path = directory_ / name;
    const descriptor folder(inside_.open_below(fs::path(name).parent_path().string()));
    if (const int no_folder = -folder.get(); no_folder > 0) {
      const std::string where = path.parent_path().string();
      // Whoever can put a link there would have the command write where it leads.
      if (no_folder == EXDEV || no_folder == ELOOP) {
        throw error(errc::permission, str_cat(where, ": a symbolic link in ", directory_.string(),
                                              " leads out of it; remove the link, or give another folder"));
      }
      throw explain_write(where, no_folder);
    }
    unfinished_file file(path.filename().string(), folder.get());
    int failed = file.open();
    if (failed == 0) failed = file.write(content);
    if (failed == 0) failed = file.take_name(overwrite_);
    if (failed != 0) throw explain_write(path.string(), failed, {.taken = "give another folder, or --overwrite"});
  }

  const dataset& from_;
  fs::path directory_;
  confined_folder inside_;
  bool overwrite_;
  std::stop_token stop_;
  datasets::sample_reader comparing_{*from_.model(), stop_};
  std::unordered_map<std::string, place> names_;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers_;        // of samples whose names are taken
  std::unordered_map<std::string, std::uint64_t> numbers_of_keys_;  // the last ones
  std::mutex mutex_;
};

// What became of members whose names were taken.
std::string text_of_names(const unpacking& done) {
  std::string text;
  if (done.numbered() > 0) {
    str_append(text, "  ", counted(done.numbered(), "sample has", "samples have"),
               " a number in the names, as 'a%~1.jpg': others have these names, and other content\n");
  }
  if (done.repeated > 0) {
    str_append(text, "  ", counted(done.repeated, "member is", "members are"),
               " there once: another one has the same name and content\n");
  }
  return text;
}

int unpack_sources(const unpack_arguments& arguments, interruption& stop) {
  if (arguments.paths.size() < 2) {
    throw error(errc::usage, "SOURCE and DIR are both needed; as in `leat unpack 'photos-*.tar' photos`");
  }
  const std::vector<std::string> sources(arguments.paths.begin(), arguments.paths.end() - 1);
  const auto leave = [&] {
    complain("unpack", str_cat("stopped by ", stop.name(), " while opening the source; nothing was written"));
  };
  const dataset from =
      open_sources(sources, stop, leave, [](dtype) { return std::string("files of tokens are no shards: copy them"); },
                   {.opening = arguments.opening});
  tell_notes("unpack", from);
  unpacking work(from, arguments.paths.back(), arguments.overwrite, stop.token());
  try {
    work.find_names();
    work.run();
  } catch (const error& failure) {
    if (failure.code() != errc::cancelled || !stop.requested()) throw;
    complain("unpack", str_cat("stopped by ", stop.name(), "; the files that are there are whole"));
    return stop.exit_code();
  }
  std::sort(work.not_written.begin(), work.not_written.end());
  if (arguments.json) {
    print(report_text({{"files", work.files},
                       {"photos", work.photos},
                       {"repeated", work.repeated},
                       {"numbered", work.numbered()},
                       {"damaged", work.damaged},
                       {"unsupported", work.unsupported},
                       {"not_written", work.not_written}},
                      arguments.asked));
  } else {
    print(str_cat(counted(work.files, "file", "files"), ", ", counted(work.photos, "photo pack", "photo packs"),
                  " among them\n", text_of_names(work)));
  }
  for (const std::string& each : work.not_written) complain("unpack", one_line(each));
  const std::uint64_t left = work.damaged + work.unsupported;
  if (left > work.not_written.size()) {
    complain("unpack", str_cat(left - work.not_written.size(), " more were not written"));
  }
  return left == 0 ? exit_done : exit_failed;
}

}  // namespace

void add_unpack(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<unpack_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("unpack", "write shards as files, photo packs as JPEGs again");
  app.add_option(
         "SOURCE", arguments->paths,
         "DIR is made; each member of a sample becomes the file that it was, byte for byte; samples of one name, "
         "with other content, get a number")
      ->required()
      ->option_text("SOURCE... DIR")
      ->type_name("");
  app.add_flag("--overwrite", arguments->overwrite, "replace files that are there; else they are an error");
  add_opening_options(app, arguments->opening);
  app.add_flag("--json", arguments->json, "what was written, as one JSON object");
  app.footer("  leat unpack 'photos-*.tar' photos");
  app.callback([=, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return unpack_sources(*arguments, stop); };
  });
}

}  // namespace leat::tools
