#include "base/text.hpp"
#include "base/utf8.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/page_parts.hpp"
#include "tools/png_encode.hpp"
#include "tools/sheet.hpp"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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
.frame { position: relative; width: min(100%, calc(170px * var(--w) / var(--h))); aspect-ratio: var(--w) / var(--h) }
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
.drawing { font-size: 12px }
.drawing b { font-weight: 600; color: var(--faint) }
.drawing img { display: block; max-width: 100%; height: auto; image-rendering: pixelated; border-radius: 3px }
.text b { font-weight: 600; color: var(--faint); margin-right: .5em }
footer { margin-top: 26px; color: var(--faint); font-size: 12px }
)";

std::string number(double value) { return absl::StrFormat("%.6g", value); }

std::string rectangle_path(double x, double y, double width, double height) {
  return str_cat("M", number(x), " ", number(y), "h", number(width), "v", number(height), "h", number(-width), "z");
}

std::string outline_path(const std::vector<std::array<double, 2>>& corners) {
  std::string path;
  for (const auto& [x, y] : corners) str_append(path, path.empty() ? "M" : "L", number(x), " ", number(y));
  return path + "z";
}

// Base64 in a page.
std::size_t bytes_on_page(std::size_t bytes) { return (bytes + 2) / 3 * 4; }

/// How the pictures of a page are written.
struct picture_form {
  int jpeg_quality = 0;    // 0: PNG, exact
  std::uint32_t part = 1;  // 2: half as wide and high
  bool small_originals = false;
};

// From the best to the smallest.
constexpr picture_form forms[] = {{},
                                  {.small_originals = true},
                                  {.jpeg_quality = 95, .small_originals = true},
                                  {.jpeg_quality = 90, .small_originals = true},
                                  {.jpeg_quality = 80, .small_originals = true},
                                  {.jpeg_quality = 80, .part = 2, .small_originals = true},
                                  {.jpeg_quality = 75, .part = 4, .small_originals = true},
                                  {.jpeg_quality = 75, .part = 8, .small_originals = true}};

// Each pixel the mean of part x part; what is left over at the right and lower edge is left out.
rgb_picture smaller(const rgb_picture& from, std::uint32_t part) {
  rgb_picture to{std::max(from.width / part, 1U), std::max(from.height / part, 1U), {}};
  to.rgb.resize(std::size_t{to.width} * to.height * 3);
  const std::uint32_t across = std::min(part, from.width);
  const std::uint32_t down = std::min(part, from.height);
  for (std::uint32_t y = 0; y < to.height; ++y) {
    for (std::uint32_t x = 0; x < to.width; ++x) {
      for (std::uint32_t channel = 0; channel < 3; ++channel) {
        std::uint32_t sum = 0;
        for (std::uint32_t k = 0; k < across * down; ++k) {
          const std::size_t line = y * part + k / across;
          sum += from.rgb[(line * from.width + x * part + k % across) * 3 + channel];
        }
        to.rgb[(std::size_t{y} * to.width + x) * 3 + channel] = static_cast<std::uint8_t>(sum / (across * down));
      }
    }
  }
  return to;
}

std::vector<std::byte> encoded(const rgb_picture& seen, const picture_form& form) {
  if (form.jpeg_quality == 0) return encode_png(seen.rgb, seen.width, seen.height);
  const rgb_picture* picture = &seen;
  rgb_picture part;
  if (form.part > 1) {
    part = smaller(seen, form.part);
    picture = &part;
  }
  std::vector<std::uint8_t> file;
  encode_jpeg(picture->rgb, picture->width, picture->height, {.quality = form.jpeg_quality}, file);
  const auto bytes = std::as_bytes(std::span(file));
  return {bytes.begin(), bytes.end()};
}

// Of a page of so many cells.
std::size_t bytes_of_page(std::size_t cells) {
  constexpr std::size_t cells_usual = 64;
  return std::min(page_bytes_max / cells_usual * std::max(cells, cells_usual), page_bytes_most);
}

/// The pictures of a page as files, in a form in which the page is not too large.
class page_pictures {
 public:
  ///   words_bytes   what the page has beside them
  page_pictures(const sheet& shown, std::size_t words_bytes) {
    const std::size_t all = bytes_of_page(shown.cells.size());
    const std::size_t room = all - std::min(all, words_bytes);
    for (const picture_form& form : forms) {
      form_ = form;
      if (encode(shown, room)) return;
    }
  }

  [[nodiscard]] const std::vector<std::byte>& seen(std::size_t cell) const { return seen_[cell]; }
  [[nodiscard]] const std::vector<std::byte>& drawing(std::size_t cell, std::size_t k) const { return drawn_[cell][k]; }
  [[nodiscard]] std::string_view seen_type() const { return form_.jpeg_quality == 0 ? "image/png" : "image/jpeg"; }

  /// Empty where there is none that can be shown.
  [[nodiscard]] const std::vector<std::byte>& original(const original_picture& of) const {
    return is_small(of) || is_left_out(of) ? of.small : of.file;
  }
  [[nodiscard]] std::string_view original_type(const original_picture& of) const {
    return is_small(of) ? std::string_view("image/jpeg") : std::string_view(of.media_type);
  }

  /// What was done to them, for the reader of the page.
  [[nodiscard]] std::string words(const sheet& shown) const {
    std::string text = "Left: what the trainer gets, taken back from the tensor";
    if (form_.jpeg_quality == 0) {
      text += ", pixel by pixel.";
    } else {
      str_append(text, ", as a JPEG of quality ", form_.jpeg_quality,
                 form_.part > 1 ? str_cat(" at 1/", form_.part, " of its size") : "",
                 " to keep the page small; a smaller --batch-size, or -o sheet.png, shows each pixel as it is.");
    }
    text += " Right: the file, with the part that was used";
    const bool any_small = std::any_of(shown.cells.begin(), shown.cells.end(),
                                       [&](const sheet_cell& cell) { return is_small(cell.original); });
    if (any_small) str_append(text, ", scaled to at most ", original_side_max, " pixels a side where it is large");
    return text + ".";
  }

 private:
  [[nodiscard]] bool is_small(const original_picture& of) const {
    return !of.small.empty() && (form_.small_originals || of.file.empty());
  }

  // A damaged file has no smaller form: where many of them make the page too large it goes without.
  [[nodiscard]] bool is_left_out(const original_picture& of) const {
    constexpr std::size_t alone_bytes_max = std::size_t{24} << 10;
    return form_.part > 1 && of.small.empty() && of.file.size() > alone_bytes_max;
  }

  // Whether all of it fits.
  bool encode(const sheet& shown, std::size_t room) {
    std::size_t bytes = 0;
    for (const sheet_cell& cell : shown.cells) bytes += bytes_on_page(original(cell.original).size());
    if (bytes > room && !form_.small_originals) return false;
    // A picture does not change from one form to the next.
    const bool same = !seen_.empty() && form_.jpeg_quality == encoded_.jpeg_quality && form_.part == encoded_.part;
    if (!same) {
      seen_.clear();
      drawn_.clear();
      for (const sheet_cell& cell : shown.cells) {
        seen_.push_back(cell.seen ? encoded(*cell.seen, form_) : std::vector<std::byte>());
        std::vector<std::vector<std::byte>>& drawn = drawn_.emplace_back();
        for (const auto& [name, picture] : cell.drawings) drawn.push_back(encoded(picture, form_));
      }
      encoded_ = form_;
    }
    for (const std::vector<std::byte>& file : seen_) bytes += bytes_on_page(file.size());
    for (const auto& drawn : drawn_) {
      for (const std::vector<std::byte>& file : drawn) bytes += bytes_on_page(file.size());
    }
    return bytes <= room;
  }

  picture_form form_;
  picture_form encoded_;
  std::vector<std::vector<std::byte>> seen_;
  std::vector<std::vector<std::vector<std::byte>>> drawn_;
};

// The original, dimmed but for the box.
std::string original_html(const sheet_cell& cell, const page_pictures& pictures) {
  const original_picture& original = cell.original;
  const int width = original.width;
  const int height = original.height;
  std::string html = str_cat("<div class=\"original\"><div class=\"frame\" style=\"--w:", width, ";--h:", height,
                             "\"><img alt=\"the original\" src=\"",
                             data_address(pictures.original_type(original), pictures.original(original)), "\">");
  if (cell.box) {
    const crop_box& box = *cell.box;
    const std::string inner =
        cell.outline.empty() ? rectangle_path(box.x, box.y, box.width, box.height) : outline_path(cell.outline);
    str_append(html, "<svg viewBox=\"0 0 ", width, " ", height,
               "\" preserveAspectRatio=\"none\"><path class=\"shade\" d=\"", rectangle_path(0, 0, width, height), inner,
               "\"/><path class=\"box\" d=\"", inner, "\"/></svg>");
  }
  return html + "</div></div>";
}

std::string pair_html(const sheet_cell& cell, std::size_t number, const page_pictures& pictures) {
  const bool has_original = !pictures.original(cell.original).empty();
  std::string html = "<div class=\"pair\">";
  if (cell.seen) {
    str_append(html, "<img class=\"seen\" alt=\"as the trainer sees it\" width=\"", cell.seen->width, "\" height=\"",
               cell.seen->height, "\" src=\"", data_address(pictures.seen_type(), pictures.seen(number)), "\">");
  } else {
    str_append(html, "<div class=\"problem", has_original ? " half" : "", "\">", html_text(cell.problem), "</div>");
  }
  if (has_original) html += original_html(cell, pictures);
  return html + "</div>";
}

std::string chip(std::string_view text) { return str_cat("<span>", html_text(text), "</span>"); }

// How much of each text is shown: less where all together would take more than a third of the page.
std::size_t text_bytes_of(const sheet& shown) {
  constexpr std::size_t least = 32;
  const auto all = [&](std::size_t most) {
    std::size_t bytes = 0;
    for (const sheet_cell& cell : shown.cells) {
      for (const auto& [name, text] : cell.texts) bytes += std::min(text.size(), most);
    }
    return bytes;
  };
  std::size_t most = 4096;
  while (most > least && all(most) > bytes_of_page(shown.cells.size()) / 3) most /= 2;
  return most;
}

// Not in the middle of a character.
std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return str_cat(text.substr(0, most), " ...");
}

std::string drawings_html(const sheet_cell& cell, std::size_t number, const page_pictures& pictures) {
  std::string html;
  for (std::size_t k = 0; k < cell.drawings.size(); ++k) {
    const auto& [name, picture] = cell.drawings[k];
    str_append(html, "<div class=\"drawing\"><b>", html_text(name), "</b><img alt=\"drawn\" width=\"", picture.width,
               "\" height=\"", picture.height, "\" src=\"",
               data_address(pictures.seen_type(), pictures.drawing(number, k)), "\"></div>");
  }
  return html;
}

std::string caption_html(const sheet_cell& cell, std::size_t text_bytes_max) {
  std::string html = str_cat("<figcaption><div class=\"name\">", html_text(cell.name), "</div><div class=\"chips\">");
  if (!cell.label.empty()) str_append(html, "<span class=\"label\">", html_text(cell.label), "</span>");
  html += chip(str_cat("sample ", cell.sample));
  const std::string size = str_cat(cell.original.width, " × ", cell.original.height);
  if (cell.box) {
    const auto whole = [](double value) { return static_cast<std::int64_t>(std::llround(value)); };
    html += chip(str_cat("crop ", whole(cell.box->width), " × ", whole(cell.box->height), " at ", whole(cell.box->x),
                         ", ", whole(cell.box->y), " of ", size));
  } else if (cell.original.width > 0) {
    html += chip(size);
  }
  if (cell.box) html += chip(cell.flipped ? "flipped" : "not flipped");
  if (cell.decimation > 1) html += chip(str_cat("decoded at 1/", cell.decimation));
  html += "</div>";
  for (const auto& [name, text] : cell.texts) {
    str_append(html, "<div class=\"text\"><b>", html_text(name), "</b>", html_text(cut(text, text_bytes_max)),
               "</div>");
  }
  return html;
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
    const utf8_rest rest = utf8_rest::of(lead);
    const std::size_t length = 1 + rest.bytes;
    bool whole = rest.bytes != 0 && at + length <= text.size();
    for (std::size_t i = 1; whole && i < length; ++i) {
      whole = rest.takes(i - 1, static_cast<unsigned char>(text[at + i]));
    }
    const std::string_view character = text.substr(at, length);
    whole = whole && character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";  // XML has neither
    if (whole) {
      escaped += character;
      at += length;
    } else {
      escaped += "\xEF\xBF\xBD";
      ++at;
    }
  }
  return escaped;
}

std::string sheet_html(const sheet& shown) {
  std::string html = str_cat(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      html_text(shown.title), "</title>\n<style>", style, "</style>\n<h1>", html_text(shown.title),
      "</h1>\n<p class=\"facts\">");
  for (const std::string& fact : shown.facts) html += chip(fact);
  html += "</p>\n<div class=\"sheet\">\n";
  constexpr std::size_t frame_bytes = 1200;  // of a cell: its elements, and the box on the original
  const std::size_t text_bytes_max = text_bytes_of(shown);
  std::vector<std::string> captions;
  std::size_t words_bytes = html.size() + frame_bytes * (shown.cells.size() + 1);
  for (const sheet_cell& cell : shown.cells) {
    captions.push_back(caption_html(cell, text_bytes_max));
    words_bytes += captions.back().size() + html_text(cell.problem).size();
  }
  const page_pictures pictures(shown, words_bytes);
  bool has_pictures = false;
  for (std::size_t number = 0; number < shown.cells.size(); ++number) {
    const sheet_cell& cell = shown.cells[number];
    const bool has_picture = cell.seen || !pictures.original(cell.original).empty();
    has_pictures = has_pictures || has_picture;
    html += "<figure>";
    // A sample of texts alone has no place for pictures.
    if (has_picture || !cell.problem.empty()) html += pair_html(cell, number, pictures);
    str_append(html, captions[number], drawings_html(cell, number, pictures), "</figcaption></figure>\n");
  }
  return str_cat(html, "</div>\n<footer>", has_pictures ? pictures.words(shown) + " " : "",
                 "Made by leat show.</footer>\n</html>\n");
}

}  // namespace leat::tools
