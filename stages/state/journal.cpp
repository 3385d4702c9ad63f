#include "stages/state/journal.hpp"

#include "base/continued_file.hpp"
#include "base/errno_words.hpp"
#include "base/file_start.hpp"
#include "base/replaced_place.hpp"
#include "base/text.hpp"
#include "stages/state/replaceable_files.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace leat::stages {
namespace {

constexpr std::size_t journal_start_bytes = 128;

// A line begins as append() has it.
void check_journal_kind(const std::string& path) {
  constexpr std::string_view begins = "{\"epoch\":";
  const file_start there = look_at_start(path, begins);
  const bool is_journal =
      there == file_start::same && first_bytes(path, journal_start_bytes).find(",\"sample\":") != std::string::npos;
  if (is_journal || there == file_start::nothing || there == file_start::not_a_file) return;
  throw error(errc::usage, str_cat("the journal ", path,
                                   " would replace a file that is none; move that away, or give another name"));
}

}  // namespace

void check_journal_replaceable(const std::string& path) {
  check_journal_kind(path);
  if (const int failure = can_write_in_place(path); failure != 0) {
    throw explain_write(str_cat("cannot write the journal ", path), failure);
  }
}

std::string place_text(std::string_view source, std::optional<std::uint64_t> offset) {
  if (source.empty() && offset.value_or(0) == 0) return {};
  std::string text = str_cat(" (", source);
  if (offset.value_or(0) != 0) str_append(text, " at offset ", *offset);
  return text + ")";
}

std::string sample_text(const journal_entry& entry) {
  const std::string place = entry.read_failure == 0 ? place_text(entry.source, entry.offset) : std::string();
  return str_cat(entry.name, place, ": ", entry.reason);
}

journal::journal(const std::filesystem::path& path, std::uint64_t bytes) : path_(path.string()), bytes_(bytes) {
  if (bytes == 0) check_journal_kind(path_);
  const std::string what = str_cat("the journal ", path_);
  const int fd = bytes > 0 ? continue_lines(path_, bytes, what)
                           : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd >= 0) file_.reset(::fdopen(fd, "a"));
  if (file_ != nullptr) return;
  const int failure = errno;
  if (fd >= 0) ::close(fd);
  throw explain_write(str_cat("cannot write ", what), failure);
}

void journal::append(const journal_entry& entry) {
  if (file_ == nullptr) return;
  nlohmann::ordered_json line;
  line["epoch"] = entry.epoch;
  line["batch"] = entry.batch;
  line["sample"] = entry.sample;
  line["name"] = entry.name;
  line["source"] = entry.source;
  line["offset"] = entry.offset ? nlohmann::ordered_json(*entry.offset) : nlohmann::ordered_json(nullptr);
  line["kind"] = std::string(entry.kind.name);
  line["reason"] = entry.reason;
  if (entry.bytes_needed != 0) line["bytes_needed"] = entry.bytes_needed;
  line["action"] = std::string(entry.action);
  if (entry.substitute) line["substitute"] = *entry.substitute;
  // Names are bytes, not always UTF-8: what is not is replaced, so that every line is valid JSON.
  const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) {
    throw error(errc::io, str_cat("cannot write the journal ", path_, ": ", std::strerror(errno),
                                  "; make room there, or name another file"));
  }
  bytes_ += text.size();
}

}  // namespace leat::stages
