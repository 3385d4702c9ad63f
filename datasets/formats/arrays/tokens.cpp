// Files of tokens: nanoGPT's, llm.c's, Megatron's and NumPy's. All become extents of runs of integers.
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/content.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/describe.hpp"
#include "datasets/tables/extent_table.hpp"
#include "io/files/file_table.hpp"

#include <leat/error.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

/// Tokens of a file, before they are in the table.
struct token_run {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
struct token_file {
  std::string path;
  std::uint64_t size = 0;
  dtype type = dtype::u16;
  std::vector<token_run> runs;
  bool documents = false;
};

class tokens_model final : public dataset_model {
 public:
  tokens_model(const std::vector<token_file>& files, const input_files& from) {
    field_info field;
    field.name = "tokens";
    field.kind = field_kind::tokens;
    field.type = files.front().type;
    std::vector<sized_file> sized;
    for (const token_file& file : files) sized.push_back({file.path, file.size});
    placed_files placed = from.place(sized);
    files_ = std::move(placed.table);
    sources_.push_back(std::move(placed.source));
    std::uint64_t samples = 0;
    for (const token_file& file : files) samples += file.runs.size();
    table_.reserve(samples, samples);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const token_file& file = files[i];
      if (file.type != field.type) {
        throw error(errc::usage, str_cat(file.path, " holds tokens of ", name(file.type), ", ", files.front().path,
                                         " of ", name(field.type), "; open them apart"));
      }
      const std::uint32_t number = placed.numbers[i];
      documents_ = documents_ || file.documents;
      for (const token_run& run : file.runs) {
        if (run.bytes == 0) continue;  // A file without a token has no sample.
        if (!extent_table::fits(run.offset, run.bytes, number)) {
          throw error(errc::limit, str_cat(file.path,
                                           ": beyond what leat indexes: 1 TiB of tokens in one piece, "
                                           "16,777,216 files"));
        }
        table_.add({run.offset, run.bytes, number, 0});
        table_.end_sample();
        ++field.samples;
        field.bytes_max = std::max(field.bytes_max, run.bytes);
        field.bytes_total += run.bytes;
      }
    }
    fields_.push_back(std::move(field));
  }

  std::uint64_t size() const noexcept override { return table_.size(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    append_parts(table_.of(sample), needs, out);
  }

  std::string name(std::uint64_t sample) const override {
    const extent_table::record& run = table_.of(sample).front();
    if (!documents_) return files_->path(run.file());
    return str_cat(files_->path(run.file()), "@", run.offset());
  }

  void describe(description& out) const override {
    describe_model(out, "tokens", *this);
    describe_files(out, *files_);
    out.add("runs", table_.digest());
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.extents = table_.memory_bytes();
    held.files = files_->memory_bytes();
    return held;
  }

 private:
  static std::string_view name(dtype type) noexcept { return leat::name(type); }

  std::shared_ptr<const io::file_table> files_;
  extent_table table_;
  bool documents_ = false;
};

token_file npy_tokens(const file_bytes& file) {
  const npy_header header = read_npy_header(
      file.path(), file.size(), [&](std::uint64_t offset, std::uint64_t bytes) { return file.read(offset, bytes); });
  if (header.shape.size() != 1 || !is_integer(header.type) || header.type == dtype::boolean) {
    throw error(errc::usage, str_cat(file.path(), ": tokens are a one-dimensional array of integers; this is one of ",
                                     name(header.type), " with ", header.shape.size(), " axes"));
  }
  return {file.path(), file.size(), header.type, {{header.data_offset, header.data_bytes}}, false};
}

token_file llmc_tokens(const file_bytes& file, std::uint32_t magic) {
  const std::vector<std::byte> header = file.read(0, llmc_header_bytes);
  if (magic == llmc_magic_eval) {
    throw error(errc::unsupported, str_cat(file.path(), ": llm.c's file of multiple-choice questions (magic ", magic,
                                           "), which holds no run of tokens; give the .bin files of tokens"));
  }
  if (header.size() < llmc_header_bytes) {
    throw error(errc::format, str_cat(file.path(), ": ends after ", header.size(), " bytes, within llm.c's header of ",
                                      llmc_header_bytes, "; is the copy complete?"));
  }
  const std::uint32_t expected = magic == llmc_magic_u16 ? 1 : 7;
  const auto version = number_at<std::uint32_t>(header, 4);
  if (version != expected) {
    throw error(errc::unsupported, str_cat(file.path(), ": version ", version, " of llm.c's format ", magic,
                                           "; leat reads version ", expected));
  }
  const dtype type = magic == llmc_magic_u16 ? dtype::u16 : dtype::u32;
  const std::uint64_t tokens = number_at<std::uint32_t>(header, 8);
  const std::uint64_t bytes = tokens * size_bytes(type);
  if (file.size() - llmc_header_bytes != bytes) {
    throw error(errc::format, str_cat(file.path(), ": has ", file.size() - llmc_header_bytes,
                                      " bytes after llm.c's header, which says ", tokens, " tokens, ", bytes,
                                      " bytes; is the copy complete?"));
  }
  return {file.path(), file.size(), type, {{llmc_header_bytes, bytes}}, false};
}

token_file plain_tokens(const file_bytes& file, dtype type) {
  const std::uint64_t width = size_bytes(type);
  if (file.size() % width != 0) {
    throw error(errc::format,
                str_cat(file.path(), ": ", file.size(), " bytes are no whole number of tokens of ", name(type),
                        "; is the copy complete, or the type another one (", spelled(option_id::token_type), ")?"),
                option_id::token_type);
  }
  return {file.path(), file.size(), type, {{0, file.size()}}, false};
}

/// Megatron's index: where the sequences lie, and which of them make up a document.
class megatron_index {
 public:
  explicit megatron_index(const file_bytes& file) : file_(file) {}

  token_file read(const file_bytes& data) {
    const std::vector<std::byte> header = file_.read(0, header_bytes);
    if (header.size() < header_bytes) fail_cut(header_bytes);
    if (std::memcmp(header.data(), megatron_magic.data(), megatron_magic.size()) != 0) {
      throw error(errc::format, str_cat(file_.path(), ": does not start as Megatron's index does (MMIDIDX)"));
    }
    if (const auto version = number_at<std::uint64_t>(header, 9); version != 1) {
      throw error(errc::unsupported,
                  str_cat(file_.path(), ": version ", version, " of Megatron's index; leat reads 1"));
    }
    const dtype type = type_of(std::to_integer<unsigned>(header[17]));
    sequences_ = number_at<std::uint64_t>(header, 18);
    const auto borders = number_at<std::uint64_t>(header, 26);
    // Compared with the file's size, so that nothing behind its end is asked for.
    const std::uint64_t room = file_.size() - header_bytes;
    if (sequences_ > room / 12 || borders > (room - sequences_ * 12) / 8) {
      throw error(errc::format,
                  str_cat(file_.path(), ": has ", file_.size(), " bytes, too few for the ", sequences_,
                          " sequences and ", borders, " documents that its header says; is the copy complete?"));
    }
    const std::vector<std::int64_t> documents = numbers(header_bytes + sequences_ * 12, dtype::i64, borders);
    token_file found{data.path(), data.size(), type, {}, true};
    add_documents(documents, data, found);
    return found;
  }

 private:
  static constexpr std::size_t header_bytes = 34;

  [[noreturn]] void fail_cut(std::uint64_t wanted) const {
    throw error(errc::format, str_cat(file_.path(), ": ends after ", file_.size(), " bytes, before ", wanted,
                                      "; is the copy complete?"));
  }

  dtype type_of(unsigned code) const {
    switch (code) {
      case 1:
        return dtype::u8;
      case 2:
        return dtype::i8;
      case 3:
        return dtype::i16;
      case 4:
        return dtype::i32;
      case 5:
        return dtype::i64;
      case 8:
        return dtype::u16;
      default:
        throw error(errc::unsupported, str_cat(file_.path(), ": the dtype code ", code,
                                               (code == 6 || code == 7) ? " is of floats, which are no tokens"
                                                                        : " is none of Megatron's"));
    }
  }

  std::vector<std::int64_t> numbers(std::uint64_t offset, dtype type, std::uint64_t count) const {
    std::vector<std::int64_t> read;
    append_integers(file_, offset, type, count, read);
    return read;
  }

  // A document is the sequences from one border to the next. They lie side by side, as Megatron writes them; where they do
  // not, each is a document of its own.
  void add_documents(const std::vector<std::int64_t>& borders, const file_bytes& data, token_file& found) const {
    const std::uint64_t width = size_bytes(found.type);
    const std::vector<std::int64_t> lengths = numbers(header_bytes, dtype::i32, sequences_);
    const std::vector<std::int64_t> pointers = numbers(header_bytes + sequences_ * 4, dtype::i64, sequences_);
    std::int64_t before = 0;
    for (const std::int64_t each : borders) {
      if (each < before || static_cast<std::uint64_t>(each) > sequences_) {
        throw error(errc::format, str_cat(file_.path(), ": a document ends at sequence ", each, " of ", sequences_,
                                          ", after one that ends at ", before, "; write the index again"));
      }
      before = each;
    }
    std::size_t border = 0;
    bool begins = true;  // Also after documents of which nothing is left.
    for (std::uint64_t i = 0; i < sequences_; ++i) {
      const auto offset = static_cast<std::uint64_t>(pointers[i]);
      const std::uint64_t bytes = static_cast<std::uint64_t>(lengths[i]) * width;
      if (lengths[i] < 0 || pointers[i] < 0 || offset > data.size() || bytes > data.size() - offset) {
        throw error(errc::format, str_cat(data.path(), ": ends at ", data.size(), ", before sequence ", i, " of ",
                                          lengths[i], " tokens at offset ", pointers[i], ", as ", file_.path(),
                                          " has it, does; do the two belong together?"));
      }
      for (; border < borders.size() && static_cast<std::uint64_t>(borders[border]) <= i; ++border) begins = true;
      if (bytes == 0) continue;
      const bool adjoins = !found.runs.empty() && found.runs.back().offset + found.runs.back().bytes == offset;
      if (begins || !adjoins) {
        found.runs.push_back({offset, bytes});
      } else {
        found.runs.back().bytes += bytes;
      }
      begins = false;
    }
  }

  const file_bytes& file_;
  std::uint64_t sequences_ = 0;
};

// Throws for files of another format, which would be read as tokens of u16.
void check_content(const std::string& path, std::span<const std::byte> start) {
  const content_kind found = content_of(start);
  if (found.group == content_group::unknown) return;
  throw error(errc::usage,
              str_cat(path, ": this is ", found.name, ", and no file of tokens",
                      found.group == content_group::text
                          ? "; tokens are what a tokenizer makes of it, as nanoGPT's prepare.py does"
                          : "",
                      "; where it holds tokens all the same, give their type (", spelled(option_id::token_type), ")"),
              option_id::token_type);
}

[[noreturn]] void refuse_folder(const std::string& path) {
  std::string text = str_cat(path, ": tokens are files, and this is a folder");
  for (const std::string_view ending : {".bin", ".npy", ".idx"}) {
    const std::size_t files = files_in(path, ending).size();
    if (files == 0) continue;
    throw error(errc::usage, str_cat(text, "; it has ", files, files == 1 ? " file *" : " files *", ending, ": give '",
                                     path, path.ends_with('/') ? "*" : "/*", ending, "'"));
  }
  throw error(errc::usage, str_cat(text,
                                   " without a .bin or .npy in it; pictures and shards are loaded without "
                                   "asking for tokens"));
}

token_file megatron_tokens(const input_files& from, const std::string& index, const std::string& data) {
  const std::unique_ptr<file_bytes> opened = from.open(index);
  return megatron_index(*opened).read(*from.open(data));
}

token_file tokens_in(const input_files& from, const std::string& path, const token_options& options) {
  // name.bin, name.idx or the name alone, as Megatron's --data-path has it.
  if (path.ends_with(".idx")) return megatron_tokens(from, path, with_extension(path, ".bin"));
  if (!from.has(path)) {
    if (from.has(path + ".idx")) return megatron_tokens(from, path + ".idx", path + ".bin");
    if (is_folder(path)) refuse_folder(path);
  }
  const std::unique_ptr<file_bytes> opened = from.open(path);
  const file_bytes& file = *opened;
  const std::vector<std::byte> start = file.read(0, content_bytes);
  if (is_npy(start)) return npy_tokens(file);
  if (path.ends_with(".bin")) {
    const std::string index = with_extension(path, ".idx");
    if (from.has(index)) return megatron_tokens(from, index, path);
  }
  if (start.size() >= sizeof(std::uint32_t)) {
    const auto magic = number_at<std::uint32_t>(start, 0);
    if (magic == llmc_magic_u16 || magic == llmc_magic_u32 || magic == llmc_magic_eval) return llmc_tokens(file, magic);
  }
  if (!options.type) {
    if (const auto header = almost_llmc(file.read(0, llmc_header_bytes), file.size())) {
      throw error(errc::unsupported,
                  str_cat(path, ": begins as llm.c's files do, with ", *header, "; leat knows ", llmc_magic_u16,
                          ", version 1, and ", llmc_magic_u32,
                          ", version 7. If it has no header, give the type of "
                          "its tokens (",
                          spelled(option_id::token_type), ")"),
                  option_id::token_type);
    }
    check_content(path, start);
    constexpr std::uint64_t looked_at = std::uint64_t{4} << 10;
    if (look_like_u32(file.read(0, looked_at), file.size())) {
      throw error(errc::usage,
                  str_cat(path,
                          ": as tokens of u16 every other one would be 0, so that they are of u32, it "
                          "seems; give their type (",
                          spelled(option_id::token_type), ")"),
                  option_id::token_type);
    }
  }
  return plain_tokens(file, options.type.value_or(dtype::u16));
}

}  // namespace

std::vector<std::string> beside_tokens(const std::string& path) {
  if (path.ends_with(".npy")) return {};
  if (path.ends_with(".bin")) return {with_extension(path, ".idx")};
  if (path.ends_with(".idx")) return {with_extension(path, ".bin")};
  return {path, path + ".idx", path + ".bin"};
}

dataset open_token_files(const input_files& from, const token_options& options) {
  if (options.type && (!is_integer(*options.type) || *options.type == dtype::boolean)) {
    throw error(errc::usage, str_cat("open_tokens: tokens of ", name(*options.type), "; give a type of integers"));
  }
  std::vector<token_file> found;
  for (const std::string& path : from.names()) {
    token_file next = tokens_in(from, path, options);
    // name.bin and name.idx, as `name.*` gives them, are one.
    const bool known = next.documents && std::any_of(found.begin(), found.end(),
                                                     [&](const token_file& each) { return each.path == next.path; });
    if (!known) found.push_back(std::move(next));
  }
  return dataset(std::make_shared<tokens_model>(found, from));
}

}  // namespace leat::datasets
