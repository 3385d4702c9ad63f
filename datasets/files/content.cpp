#include "datasets/files/content.hpp"

#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"

#include <leat/error.hpp>

#include <algorithm>

namespace leat::datasets {
namespace {

using std::string_view_literals::operator""sv;

struct known_start {
  std::size_t offset;
  std::string_view bytes;
  content_group group;
  std::string_view name;
};

// The order matters: a start with which another format's start begins comes after it.
constexpr known_start known_starts[] = {
    {0, "\xff\xd8\xff"sv, content_group::picture, "a JPEG"},
    {0, "\x89PNG\r\n\x1a\n"sv, content_group::picture, "a PNG"},
    {0, "GIF8"sv, content_group::picture, "a GIF"},
    {8, "WEBP"sv, content_group::picture, "a WebP picture"},
    {0, "II*\0"sv, content_group::picture, "a TIFF"},
    {0, "MM\0*"sv, content_group::picture, "a TIFF"},
    {4, "ftypavif"sv, content_group::picture, "an AVIF picture"},
    {4, "ftyphei"sv, content_group::picture, "a HEIC picture"},
    {4, "ftyp"sv, content_group::foreign, "an MP4 film"},
    {0, "\x1f\x8b"sv, content_group::compressed, "gzip"},
    {0, "\x28\xb5\x2f\xfd"sv, content_group::compressed, "zstd"},
    {0, "BZh"sv, content_group::compressed, "bzip2"},
    {0, "\xfd\x37zXZ\0"sv, content_group::compressed, "xz"},
    {0, "\x04\x22\x4d\x18"sv, content_group::compressed, "lz4"},
    {0, "PK\x03\x04"sv, content_group::container, "a zip archive"},
    {0, "7z\xbc\xaf\x27\x1c"sv, content_group::container, "a 7z archive"},
    {0, "Rar!\x1a\x07"sv, content_group::container, "a RAR archive"},
    {0, "\x93NUMPY"sv, content_group::container, "a .npy array"},
    {0, "\x89HDF\r\n\x1a\n"sv, content_group::container, "HDF5"},
    {0, "PAR1"sv, content_group::container, "Parquet"},
    {0, "ARROW1"sv, content_group::container, "an Arrow file"},
    {16, "\xde\xc0\xef\xbe"sv, content_group::container, "an LMDB database"},
    // Riegeli's records: the header of the first block, and that of the chunk that every file begins with.
    {0, "\x83\xaf\x70\xd1\x0d\x88\x4a\x3f\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"sv, content_group::container,
     "an ArrayRecord (Riegeli)"},
    {0, "SQLite format 3\0"sv, content_group::container, "an SQLite database"},
    {0, "%PDF-"sv, content_group::foreign, "a PDF"},
    {0,
     "\x7f"
     "ELF"sv,
     content_group::foreign, "a program (ELF)"},
};

bool begins(std::string_view text, const known_start& known) {
  return text.size() >= known.offset && text.substr(known.offset).starts_with(known.bytes);
}

// Text has no control characters but white space; bytes above 127 may be UTF-8. Fewer bytes than `least_bytes` tell nothing.
bool is_text(std::string_view text) {
  constexpr std::size_t least_bytes = 8;
  return text.size() >= least_bytes && std::all_of(text.begin(), text.end(), [](char letter) {
           const auto code = static_cast<unsigned char>(letter);
           return (code >= 0x20 && code != 0x7F) || code == '\n' || code == '\r' || code == '\t';
         });
}

constexpr std::string_view git_lfs = "version https://git-lfs";

// The beginning of its first line.
std::string shown(std::string_view text) {
  constexpr std::size_t shown_bytes = 32;
  std::string line(text.substr(0, std::min(text.find_first_of("\r\n"), shown_bytes)));
  for (char& letter : line) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return line.size() < text.size() ? line + "..." : line;
}

}  // namespace

content_kind content_of(std::span<const std::byte> start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  for (const known_start& known : known_starts) {
    if (begins(text, known)) return {known.group, std::string(known.name)};
  }
  if (!is_text(text)) return {};
  if (text.starts_with(git_lfs)) return {content_group::text, "a pointer of Git LFS"};
  if (text.starts_with("<!DOCTYPE") || text.starts_with("<!doctype") || text.starts_with("<html")) {
    return {content_group::text, "an HTML page"};
  }
  return {content_group::text, str_cat("text, '", shown(text), "'")};
}

std::string advice_about(const content_kind& found) {
  if (found.name == "a pointer of Git LFS") return "; `git lfs pull` fetches the file itself";
  if (found.name == "an HTML page") return "; what was to be downloaded? Look at it in an editor";
  if (found.name == "a zip archive") return "; unpack it, or write its pictures as tar shards";
  if (found.name == "an ArrayRecord (Riegeli)") {
    return "; its records are packed in chunks; write them as TFRecord: python3 -c \"import tensorflow as t; "
           "from array_record.python import array_record_module as a; w = t.io.TFRecordWriter('OUT.tfrecord'); "
           "[w.write(r) for r in a.ArrayRecordReader('IN').read_all()]; w.close()\"";
  }
  if (found.name == "a .npy array") return "; give it a name that ends in .npy";
  switch (found.group) {
    case content_group::picture:
      return "; pictures are loaded from folders: give the folder that it lies in";
    case content_group::compressed:
      // The names are those of the programs, each of which knows -dc.
      return str_cat(
          found.name == "gzip" || found.name == "zstd"
              ? "; leat reads compressed tar shards, JSONL, CSV and text by their names (.tar.gz, .jsonl.zst, "
                ".txt.gz): rename it if it is one, else decompress it first ("
              : "; decompress it first (",
          found.name, " -dc FILE > ...)");
    case content_group::container:
      return "; convert it to tar shards, .npy or fixed-size records";
    case content_group::text:
    case content_group::foreign:
    case content_group::unknown:
      break;
  }
  return {};
}

std::vector<std::byte> start_of_file(const std::string& path, std::size_t bytes) {
  try {
    return local_file(path).read(0, bytes);
  } catch (const error&) {
    return {};
  }
}

}  // namespace leat::datasets
