#include "tools/output_kind.hpp"

#include "base/file_start.hpp"
#include "base/text.hpp"
#include "datasets/files/content.hpp"
#include "tools/human.hpp"
#include "tools/joined_traces.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>

namespace leat::tools {
namespace {

using namespace std::string_view_literals;

// The title of a page comes before its style, and may be the path of its source.
constexpr std::size_t start_bytes = 16384;

// As text, with # for any number.
bool begins_like(std::string_view text, std::string_view pattern) {
  constexpr std::string_view of_numbers = "0123456789.eE+-";
  for (const char each : pattern) {
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
  constexpr std::size_t behind_header = 33;  // signature, and IHDR with its 13 bytes
  return start.starts_with("\x89PNG\r\n\x1a\n"sv) && start.size() > behind_header &&
         start.substr(behind_header).starts_with(png_software_chunk());
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
     [](std::string_view start) { return start.starts_with("<?xml ") && has(start, "Produced by GNUPLOT"); }},
    {output_kind::findings, "result of leat check --json",
     [](std::string_view start) {
       return start.starts_with("{\n \"version\": \"") && has(start, "\",\n \"sources\": [");
     }},
    {output_kind::ids, "list of leat check --ids",
     [](std::string_view start) { return start.starts_with("# Samples to leave out, by number: leat epoch"); }},
    {output_kind::events, "event file of TensorBoard",
     [](std::string_view start) { return has(start.substr(0, 64), "brain.Event:"); }},
    {output_kind::progress, "file of leat epoch --progress",
     [](std::string_view start) { return begins_like(start, "{\"t_s\":#,\"seconds\":#,"); }},
    {output_kind::batches, "file of leat epoch --batches",
     [](std::string_view start) { return begins_like(start, "{\"epoch\":#,\"batch\":#,\"ids\":["); }},
    {output_kind::metrics, "file of leat epoch --metrics",
     [](std::string_view start) { return start.starts_with("# HELP leat_"); }},
    {output_kind::array, ".npy array", [](std::string_view start) { return start.starts_with("\x93NUMPY"); }},
    {output_kind::proof, "proof of leat receipt",
     [](std::string_view start) { return start.starts_with("{\n \"leat_receipt_proof\":"); }},
    {output_kind::references, "file of references",
     [](std::string_view start) { return start.starts_with("{\"version\": 1, \"refs\": {"); }},
    {output_kind::token_index, "index of tokens",
     [](std::string_view start) { return start.starts_with("MMIDIDX\0\0"sv); }},
};

}  // namespace

std::string_view png_software_chunk() noexcept {
  // Length, type, keyword, text and CRC-32 (PNG 11.3.3.2).
  return "\0\0\0\x0dtEXtSoftware\0leat"
         "\x2E\xCD\x09\x38"sv;
}

void check_replaces_own_kind(const std::string& path, output_kind kind, std::string_view option) {
  // Any file begins with no bytes.
  if (kind == output_kind::packed || look_at_start(path, "") != file_start::same) return;
  const std::string named = str_cat(option, option.empty() ? "" : " ", one_line(path));
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

}  // namespace leat::tools
