#include "io/text.hpp"
#include "tools/png_encode.hpp"
#include "tools/sheet.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_format.h>

#include <cmath>
#include <span>
#include <string_view>

namespace leat::tools {
namespace {

// image-orientation: the browser would turn a picture as its EXIF says; leat does not, and the box is in its pixels.
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --paper: #f6f5f2; --card: #fff; --ink: #1f2328; --faint: #6e7378; --line: #e3e1dc;
        --accent: #d9480f; --chip: #f0eee9 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181b; --card: #1f2226; --ink: #e6e7e8; --faint: #969ca3; --line: #2d3136; --accent: #ff8a4c;
          --chip: #2a2e33 } }
* { box-sizing: border-box }
body { margin: 0; padding: 28px clamp(16px, 3vw, 44px) 60px; background: var(--paper); color: var(--ink);
       font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif }
h1 { font-size: 21px; font-weight: 650; margin: 0 0 4px; overflow-wrap: anywhere }
.facts { color: var(--faint); margin: 0 0 22px }
.facts span { display: inline-block }
.facts span + span::before { content: "·"; margin: 0 .55em }
.sheet { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr)); gap: 16px }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden;
         display: flex; flex-direction: column }
.pair { display: grid; grid-template-columns: 190px 1fr; height: 190px; background: var(--chip) }
.seen { width: 190px; height: 190px; object-fit: contain; display: block; background: #000;
        image-rendering: auto }
.original { position: relative; height: 190px; display: flex; align-items: center; justify-content: center;
            padding: 10px; min-width: 0 }
.frame { position: relative; max-width: 100%; max-height: 100%; aspect-ratio: var(--w) / var(--h) }
.frame.wide { width: 100% }
.frame.tall { height: 100% }
.frame img, .frame svg { position: absolute; inset: 0; width: 100%; height: 100%; display: block }
.frame img { image-orientation: none; border-radius: 3px }
.frame svg { overflow: visible }
.shade { fill: #000; fill-opacity: .45; fill-rule: evenodd }
.box { fill: none; stroke: var(--accent); stroke-width: 2; vector-effect: non-scaling-stroke }
.problem { grid-column: 1 / -1; display: flex; align-items: center; justify-content: center; text-align: center;
           padding: 16px; color: var(--accent); overflow-wrap: anywhere }
.problem.half { grid-column: auto; font-size: 12px; overflow: auto }
figcaption { padding: 9px 12px 11px; display: flex; flex-direction: column; gap: 6px }
.name { font: 12px/1.35 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere }
.chips { display: flex; flex-wrap: wrap; gap: 5px; font-size: 12px; color: var(--faint) }
.chips span { background: var(--chip); border-radius: 20px; padding: 1px 9px }
.chips .label { color: var(--ink); font-weight: 600 }
.text { font-size: 13px; overflow-wrap: anywhere; max-height: 9em; overflow: auto; white-space: pre-wrap }
.text b { font-weight: 600; color: var(--faint); margin-right: .5em }
footer { margin-top: 26px; color: var(--faint); font-size: 12px }
)";

std::string data_address(std::string_view media_type, std::span<const std::byte> bytes) {
  const absl::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return io::str_cat("data:", media_type, ";base64,", absl::Base64Escape(content));
}

std::string number(double value) { return absl::StrFormat("%.6g", value); }

std::string rectangle_path(double x, double y, double width, double height) {
  return io::str_cat("M", number(x), " ", number(y), "h", number(width), "v", number(height), "h", number(-width), "z");
}

// The original, dimmed but for the box.
std::string original_html(const sheet_cell& cell) {
  const original_picture& original = cell.original;
  const int width = original.width;
  const int height = original.height;
  // Whether the place beside the picture or its height is the limit; the place is about 220 x 170.
  const bool wide = width * 170 >= height * 220;
  std::string html = io::str_cat("<div class=\"original\"><div class=\"frame ", wide ? "wide" : "tall",
                                 "\" style=\"--w:", width, ";--h:", height, "\"><img alt=\"the original\" src=\"",
                                 data_address(original.media_type, original.file), "\">");
  if (cell.box) {
    const crop_box& box = *cell.box;
    const std::string inner = rectangle_path(box.x, box.y, box.width, box.height);
    io::str_append(html, "<svg viewBox=\"0 0 ", width, " ", height,
                   "\" preserveAspectRatio=\"none\"><path class=\"shade\" d=\"", rectangle_path(0, 0, width, height),
                   inner, "\"/><path class=\"box\" d=\"", inner, "\"/></svg>");
  }
  return html + "</div></div>";
}

std::string pair_html(const sheet_cell& cell) {
  std::string html = "<div class=\"pair\">";
  if (cell.seen) {
    io::str_append(html, "<img class=\"seen\" alt=\"as the trainer sees it\" width=\"", cell.seen->width,
                   "\" height=\"", cell.seen->height, "\" src=\"",
                   data_address("image/png", encode_png(cell.seen->rgb, cell.seen->width, cell.seen->height)), "\">");
  } else {
    const bool alone = cell.original.file.empty();
    io::str_append(html, "<div class=\"problem", alone ? "" : " half", "\">", html_text(cell.problem), "</div>");
  }
  if (!cell.original.file.empty()) html += original_html(cell);
  return html + "</div>";
}

std::string chip(std::string_view text) { return io::str_cat("<span>", html_text(text), "</span>"); }

std::string caption_html(const sheet_cell& cell) {
  std::string html =
      io::str_cat("<figcaption><div class=\"name\">", html_text(cell.name), "</div><div class=\"chips\">");
  if (!cell.label.empty()) io::str_append(html, "<span class=\"label\">", html_text(cell.label), "</span>");
  html += chip(io::str_cat("sample ", cell.sample));
  const std::string size = io::str_cat(cell.original.width, " × ", cell.original.height);
  if (cell.box) {
    const auto whole = [](double value) { return static_cast<std::int64_t>(std::llround(value)); };
    html += chip(io::str_cat("crop ", whole(cell.box->width), " × ", whole(cell.box->height), " at ",
                             whole(cell.box->x), ", ", whole(cell.box->y), " of ", size));
  } else if (cell.original.width > 0) {
    html += chip(size);
  }
  if (cell.box) html += chip(cell.flipped ? "flipped" : "not flipped");
  if (cell.decimation > 1) html += chip(io::str_cat("decoded at 1/", cell.decimation));
  html += "</div>";
  for (const auto& [name, text] : cell.texts) {
    io::str_append(html, "<div class=\"text\"><b>", html_text(name), "</b>", html_text(text), "</div>");
  }
  return html + "</figcaption>";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      switch (text[at]) {
        case '&':
          escaped += "&amp;";
          break;
        case '<':
          escaped += "&lt;";
          break;
        case '>':
          escaped += "&gt;";
          break;
        case '"':
          escaped += "&quot;";
          break;
        case '\'':
          escaped += "&#39;";
          break;
        default:
          if (lead >= 0x20 || lead == '\n' || lead == '\t') escaped += text[at];
      }
      ++at;
      continue;
    }
    // A whole character, or the replacement for the one byte that begins none.
    const std::size_t length = lead >= 0xF0 && lead < 0xF5   ? 4
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                                                             : 0;
    bool whole = length != 0 && at + length <= text.size();
    for (std::size_t i = 1; whole && i < length; ++i) whole = (static_cast<unsigned char>(text[at + i]) & 0xC0) == 0x80;
    if (whole) {
      escaped += text.substr(at, length);
      at += length;
    } else {
      escaped += "\xEF\xBF\xBD";
      ++at;
    }
  }
  return escaped;
}

std::string sheet_html(const sheet& shown) {
  std::string html = io::str_cat(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      html_text(shown.title), "</title>\n<style>", style, "</style>\n<h1>", html_text(shown.title),
      "</h1>\n<p class=\"facts\">");
  for (const std::string& fact : shown.facts) html += chip(fact);
  html += "</p>\n<div class=\"sheet\">\n";
  for (const sheet_cell& cell : shown.cells) {
    html += "<figure>";
    // A sample of texts alone has no place for pictures.
    if (cell.seen || !cell.problem.empty() || !cell.original.file.empty()) html += pair_html(cell);
    io::str_append(html, caption_html(cell), "</figure>\n");
  }
  return html +
         "</div>\n<footer>Left: what the trainer gets, taken back from the tensor. Right: the file, with the part that "
         "was "
         "used. Made by leat show.</footer>\n</html>\n";
}

}  // namespace leat::tools
