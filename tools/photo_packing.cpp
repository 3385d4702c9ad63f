#include "tools/photo_packing.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/pixels/picture_format.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <algorithm>

namespace leat::tools {
namespace {

std::string in_lower_case(std::string_view extension) {
  std::string lower(extension);
  for (char& each : lower) each = each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
  return lower;
}

bool is_jpeg_extension(std::string_view extension) {
  const std::string lower = in_lower_case(extension);
  return lower == "jpg" || lower == "jpeg" || lower == "jpe";
}

// Where the extension begins, behind its dot; nothing where there is none.
std::optional<std::size_t> extension_of(std::string_view member) {
  const std::size_t dot = member.rfind('.');
  if (dot == std::string_view::npos || member.find('/', dot) != std::string_view::npos) return std::nullopt;
  return dot + 1;
}

bool is_jpeg(std::span<const std::byte> content) {
  return content.size() >= 2 && content[0] == std::byte{0xFF} && content[1] == std::byte{0xD8};
}

// Why a picture, which it is by its name, stays as it is though nothing is wrong with it as a JPEG: it is none. Nothing of packs, and of
// members that are no pictures.
std::optional<std::string> why_no_jpeg(std::string_view member, std::span<const std::byte> content) {
  const std::optional<std::size_t> at = extension_of(member);
  const std::span<const std::string_view> pictures = datasets::picture_names();
  if (!at || std::find(pictures.begin(), pictures.end(), in_lower_case(member.substr(*at))) == pictures.end()) {
    return std::nullopt;
  }
  if (content.empty()) return "empty: zero bytes";
  const pixels::format what = pixels::format_of(content);
  if (what == pixels::format::photo_pack) return std::nullopt;
  return str_cat(what == pixels::format::unknown ? "of no known format" : pixels::name(what), ", which is not packed");
}

}  // namespace

std::optional<std::string> pack_name_of(std::string_view member) {
  const std::optional<std::size_t> at = extension_of(member);
  if (!at || !is_jpeg_extension(member.substr(*at))) return std::nullopt;
  return str_cat(member.substr(0, *at), "f", member.substr(*at));
}

std::optional<std::string> jpeg_name_of(std::string_view member) {
  const std::optional<std::size_t> at = extension_of(member);
  if (!at || member.size() == *at || member[*at] != 'f' || !is_jpeg_extension(member.substr(*at + 1)))
    return std::nullopt;
  return str_cat(member.substr(0, *at), member.substr(*at + 1));
}

std::optional<datasets::rewritten_member> photo_packing::rewrite(std::string_view member,
                                                                 std::span<const std::byte> content) {
  if (to_ == photo_form::fast && !is_jpeg(content)) {
    if (const std::optional<std::string> why = why_no_jpeg(member, content)) leave(member, *why);
    return std::nullopt;
  }
  if (to_ == photo_form::jpeg && !is_photo_pack(content)) return std::nullopt;
  const std::optional<std::string> name = to_ == photo_form::fast ? pack_name_of(member) : jpeg_name_of(member);
  if (!name) {
    leave(member,
          to_ == photo_form::fast ? "a JPEG that is not named as one" : "a photo pack that is not named as one");
    return std::nullopt;
  }
  try {
    datasets::rewritten_member made{*name,
                                    to_ == photo_form::fast ? pack_photo(content, verify_) : unpack_photo(content)};
    add_rewritten(content.size(), made.content.size());
    return made;
  } catch (const error& failure) {
    leave(member, failure.what());
    return std::nullopt;
  }
}

}  // namespace leat::tools
