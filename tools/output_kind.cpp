#include "tools/output_kind.hpp"

#include "base/file_start.hpp"
#include "base/hex.hpp"
#include "base/replaced_place.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "datasets/files/content.hpp"
#include "tools/human.hpp"
#include "tools/joined_traces.hpp"
#include "tools/whole_file.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <optional>
#include <span>

namespace leat::tools {
namespace {

using namespace std::string_view_literals;

// The title of a page comes before its style, and may be the path of its source.
constexpr std::size_t start_bytes = 16384;

// As text, with # for any number, or as far as a text goes that was torn: its disk was full, or its writer was killed.
bool begins_like(std::string_view text, std::string_view pattern) {
  constexpr std::string_view of_numbers = "0123456789.eE+-";
  for (const char each : pattern) {
    if (text.empty()) return true;
    if (each == '#') {
      const std::size_t digits = std::min(text.find_first_not_of(of_numbers), text.size());
      if (digits == 0) return false;
      text.remove_prefix(digits);
    } else {
      if (!text.starts_with(each)) return false;
      text.remove_prefix(1);
    }
  }
  return true;
}

constexpr std::string_view plot_mark = "<!-- leat bench read -->";
constexpr std::string_view list_begins = "# Samples to leave out, by number: leat epoch --exclude takes this file.\n";

// The last line: of all before it.
std::string seal_of(std::string_view text) {
  sha256_hasher sum;
  sum.add(text);
  return str_cat("# Written by leat check, which replaces it as long as it is not edited: ", to_hex(sum.finish()),
                 "\n");
}

// Who has chosen among the lines keeps the choice.
bool is_edited_list(const std::string& path) {
  int failure = 0;
  const std::string text = whole_file(path, failure);
  if (failure != 0 || text.size() < 2) return true;
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;  // npos + 1 is 0.
  return text.substr(last) != seal_of(std::string_view(text).substr(0, last));
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// tools/page_parts.cpp and tools/sheet_html.cpp.
bool is_page(std::string_view start) {
  constexpr std::string_view of_parts =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  constexpr std::string_view of_sheet =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>";
  return start.starts_with(of_parts) || (start.starts_with(of_sheet) && has(start, "</title>\n<style>\n:root {"));
}

bool is_grid(std::string_view start) {
  return start.starts_with("\x89PNG\r\n\x1a\n"sv) && start.size() > png_header_bytes &&
         start.substr(png_header_bytes).starts_with(png_software_chunk());
}

struct known_output {
  output_kind kind;
  std::string_view is;
  bool (*is_own)(std::string_view start);
};
constexpr known_output known_outputs[] = {
    {output_kind::page, "page of leat", is_page},
    {output_kind::grid, "grid of leat show", is_grid},
    {output_kind::plot, "plot of leat bench read",
     [](std::string_view start) { return start.starts_with("<?xml ") && has(start, plot_mark); }},
    {output_kind::findings, "result of leat check --json",
     [](std::string_view start) {
       return start.starts_with("{\n \"version\": \"") && has(start, "\",\n \"sources\": [");
     }},
    {output_kind::ids, "list of leat check --ids",
     [](std::string_view start) { return start.starts_with(list_begins); }},
    {output_kind::events, "event file of TensorBoard",
     [](std::string_view start) { return has(start.substr(0, 64), "brain.Event:"); }},
    {output_kind::progress, "file of leat epoch --progress",
     [](std::string_view start) {
       // Where the disk was full first, an older leat began with the ends of lines that were not written.
       start.remove_prefix(std::min(start.find_first_not_of('\n'), start.size()));
       return begins_like(start, "{\"t_s\":#,\"seconds\":#,");
     }},
    {output_kind::batches, "file of leat epoch --batches",
     [](std::string_view start) { return begins_like(start, "{\"epoch\":#,\"batch\":#,\"ids\":["); }},
    {output_kind::metrics, "file of leat epoch --metrics",
     [](std::string_view start) { return start.starts_with("# HELP leat_"); }},
    {output_kind::array, ".npy array", [](std::string_view start) { return start.starts_with("\x93NUMPY"); }},
    {output_kind::proof, "proof of leat receipt",
     [](std::string_view start) { return start.starts_with("{\n \"leat_receipt_proof\":"); }},
    {output_kind::references, "file of references",
     [](std::string_view start) { return start.starts_with("{\"version\": 1, \"refs\": {\n"); }},
    {output_kind::token_index, "index of tokens",
     [](std::string_view start) { return start.starts_with("MMIDIDX\0\0"sv); }},
};

}  // namespace

std::string marked_plot(std::string svg) {
  const std::size_t end = svg.find("?>\n");
  if (svg.starts_with("<?xml ") && end != std::string::npos) svg.insert(end + 3, str_cat(plot_mark, "\n"));
  return svg;
}

std::string sealed_list(std::string_view lines) {
  const std::string text = str_cat(list_begins, lines);
  return text + seal_of(text);
}

std::string_view png_software_chunk() noexcept {
  // Length, type, keyword, text and CRC-32 (PNG 11.3.3.2).
  return "\0\0\0\x0dtEXtSoftware\0leat"
         "\x2E\xCD\x09\x38"sv;
}

namespace {

void check_start(const std::string& path, output_kind kind, const std::string& named) {
  // Any file begins with no bytes.
  if (kind == output_kind::packed || look_at_start(path, "") != file_start::same) return;
  if (kind == output_kind::tokens) {
    throw error(errc::usage, str_cat(named,
                                     " is there, and tokens look like any other bytes; move it away, or give "
                                     "another name"));
  }
  const std::string start = first_bytes(path, start_bytes);
  std::string_view is = "trace";
  if (kind == output_kind::trace) {
    if (!is_file_but_no_trace(path)) return;
  } else {
    const known_output* const known = std::find_if(std::begin(known_outputs), std::end(known_outputs),
                                                   [&](const known_output& each) { return each.kind == kind; });
    assert(known != std::end(known_outputs));
    if (known->is_own(start)) return;
    is = known->is;
  }
  const std::string found =
      datasets::content_of(std::as_bytes(std::span(start)).first(std::min(start.size(), datasets::content_bytes))).name;
  throw error(errc::usage, str_cat(named, " would replace a file that is no ", is, found.empty() ? "" : " but ", found,
                                   "; move that away, or give another name"));
}

}  // namespace

void check_replaces_own_kind(const std::string& path, output_kind kind, std::string_view option) {
  const std::string named = str_cat(option, option.empty() ? "" : " ", one_line(path));
  check_start(path, kind, named);
  if (kind != output_kind::ids || look_at_start(path, "") != file_start::same || !is_edited_list(path)) return;
  throw error(errc::usage, str_cat(named,
                                   " would replace a list that is not as leat check has written it; move that away, or "
                                   "give another name"));
}

void check_partial_is_own(const std::string& path, output_kind kind) {
  const std::optional<std::string> place = replaced_place(path);
  if (!place || kind == output_kind::tokens || kind == output_kind::packed) return;
  const std::string partial = unfinished_file(*place).temporary();
  struct stat there{};
  // A link is refused when it is opened.
  if (::lstat(partial.c_str(), &there) == 0 && S_ISREG(there.st_mode)) check_start(partial, kind, one_line(partial));
}

}  // namespace leat::tools
