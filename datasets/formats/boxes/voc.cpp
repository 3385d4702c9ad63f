// An annotation of Pascal VOC: a small XML file.
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/formats/boxes/box_table.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t depth_max = 64;

/// Elements and their text, in the order of the file. Attributes are passed over. No DTD, no CDATA: annotations have none.
class xml_scanner {
 public:
  enum class what : std::uint8_t { begin, end, text, nothing };

  xml_scanner(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  /// The next of it. name() or text() then say which.
  what next() {
    if (closes_) {
      closes_ = false;
      open_.pop_back();
      return what::end;
    }
    for (;;) {
      if (at_ == text_.size()) {
        if (!open_.empty()) fail(str_cat("the file ends within <", open_.back(), ">"));
        if (!seen_root_) fail("no element");
        return what::nothing;
      }
      if (text_[at_] != '<') {
        if (read_text()) return what::text;
        continue;
      }
      if (skip("<!--", "-->") || skip("<?", "?>")) continue;
      if (text_.substr(at_, 2) == "<!") fail("a DOCTYPE or CDATA, which annotations do not have");
      return text_.substr(at_, 2) == "</" ? read_end() : read_begin();
    }
  }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] const std::string& text() const noexcept { return value_; }

  [[noreturn]] void fail(std::string_view why) const {
    throw error(errc::format, str_cat(path_, ": byte ", at_, ": ", why));
  }

 private:
  bool skip(std::string_view begin, std::string_view end) {
    if (text_.substr(at_, begin.size()) != begin) return false;
    const std::size_t found = text_.find(end, at_ + begin.size());
    if (found == std::string_view::npos) fail(str_cat("'", begin, "' without its end"));
    at_ = found + end.size();
    return true;
  }
  // False for white space between elements.
  bool read_text() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    const std::string_view written = trimmed(text_.substr(at_, end - at_));
    if (open_.empty() && !written.empty() && written != byte_order_mark) fail("text outside of an element");
    value_.clear();
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (written[i] != '&') {
        value_ += written[i];
        continue;
      }
      constexpr std::pair<std::string_view, char> entities[] = {
          {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
      const auto* const known = std::find_if(std::begin(entities), std::end(entities), [&](const auto& each) {
        return written.substr(i, each.first.size()) == each.first;
      });
      if (known == std::end(entities)) fail("an entity other than &amp; &lt; &gt; &quot; &apos;");
      value_ += known->second;
      i += known->first.size() - 1;
    }
    at_ = end;
    return !open_.empty() && !written.empty();
  }
  std::string_view read_name(std::size_t from) {
    std::size_t end = from;
    const auto is_of_name = [](char each) {
      return is_letter(each) || is_digit(each) || each == '_' || each == '-' || each == '.' || each == ':' ||
             static_cast<unsigned char>(each) >= 0x80;
    };
    while (end < text_.size() && is_of_name(text_[end])) ++end;
    if (end == from) fail("'<' without the name of an element");
    return text_.substr(from, end - from);
  }
  what read_begin() {
    name_ = read_name(at_ + 1);
    if (open_.empty() && seen_root_) fail("a second element behind the first");
    if (open_.size() == depth_max) fail(str_cat("elements within elements, more than ", depth_max));
    std::size_t end = at_ + 1 + name_.size();
    char quote = 0;
    while (end < text_.size() && (quote != 0 || text_[end] != '>')) {
      if (quote == 0 && text_[end] == '<') fail(str_cat("<", name_, " without '>'"));
      if (text_[end] == quote) {
        quote = 0;
      } else if (quote == 0 && (text_[end] == '"' || text_[end] == '\'')) {
        quote = text_[end];
      }
      ++end;
    }
    if (end == text_.size()) fail(str_cat("<", name_, " without '>'"));
    closes_ = text_[end - 1] == '/';
    at_ = end + 1;
    seen_root_ = true;
    open_.push_back(name_);
    return what::begin;
  }
  what read_end() {
    name_ = read_name(at_ + 2);
    const std::size_t end = text_.find_first_not_of(" \t\r\n", at_ + 2 + name_.size());
    if (open_.empty() || open_.back() != name_) {
      fail(str_cat("</", name_, "> where ", open_.empty() ? "nothing" : open_.back(), " is to be closed"));
    }
    if (end == std::string_view::npos || text_[end] != '>') fail(str_cat("</", name_, " without '>'"));
    at_ = end + 1;
    open_.pop_back();
    return what::end;
  }

  static constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool closes_ = false;  // <a/> ends, too
  bool seen_root_ = false;
  std::vector<std::string_view> open_;
  std::string_view name_;
  std::string value_;
};

// An object while it is read.
struct read_object {
  std::string name;
  std::array<std::optional<double>, 4> box;
  std::array<std::uint8_t, 2> flags{};
};

constexpr std::array<std::string_view, 4> sides = {"xmin", "ymin", "xmax", "ymax"};
constexpr std::array<std::string_view, 2> flags = {"difficult", "truncated"};

template <std::size_t Count>
std::size_t place_in(const std::array<std::string_view, Count>& names, std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// What stands in <object>, or deeper: parts of a person have names and boxes of their own.
void take_text(const xml_scanner& xml, const std::vector<std::string>& path, read_object& object) {
  if (path.size() == 3 && path[2] == "name") object.name = xml.text();
  if (path.size() == 3 && place_in(flags, path[2]) < flags.size()) {
    if (xml.text() != "0" && xml.text() != "1") xml.fail(str_cat("<", path[2], "> is neither 0 nor 1"));
    object.flags[place_in(flags, path[2])] = xml.text() == "1" ? 1 : 0;
  }
  if (path.size() != 4 || path[2] != "bndbox" || place_in(sides, path[3]) == sides.size()) return;
  const std::optional<double> number = parse_real(xml.text());
  if (!number || !std::isfinite(*number)) xml.fail(str_cat("<", path[3], "> is no finite number"));
  object.box[place_in(sides, path[3])] = *number;
}

boxed_object checked(const xml_scanner& xml, const read_object& object, std::uint32_t sample,
                     std::vector<std::string>& classes) {
  if (object.name.empty()) xml.fail("an object without <name>");
  boxed_object made;
  made.sample = sample;
  made.flags = object.flags;
  for (std::size_t side = 0; side < sides.size(); ++side) {
    if (!object.box[side]) xml.fail(str_cat("an object without <", sides[side], "> in its <bndbox>"));
    made.box[side] = *object.box[side];
  }
  if (made.box[0] > made.box[2] || made.box[1] > made.box[3])
    xml.fail("a box whose xmax or ymax is below its xmin or ymin");
  const auto known = std::find(classes.begin(), classes.end(), object.name);
  made.class_number = static_cast<std::uint32_t>(known - classes.begin());
  if (known == classes.end()) classes.push_back(object.name);
  return made;
}

}  // namespace

void read_voc(const std::string& path, std::string_view text, std::uint32_t sample, std::vector<std::string>& classes,
              std::vector<boxed_object>& objects) {
  using what = xml_scanner::what;
  xml_scanner xml(path, text);
  std::vector<std::string> open;
  read_object object;
  for (what each = xml.next(); each != what::nothing; each = xml.next()) {
    const bool in_object = open.size() > 1 && open[1] == "object";
    if (each == what::begin) {
      open.emplace_back(xml.name());
      if (open.size() == 1 && open[0] != "annotation") xml.fail("the first element is not <annotation>");
      if (open.size() == 2 && open[1] == "object") object = {};
    } else if (each == what::text) {
      if (in_object) take_text(xml, open, object);
    } else {
      if (open.size() == 2 && in_object) objects.push_back(checked(xml, object, sample, classes));
      open.pop_back();
    }
  }
}

}  // namespace leat::datasets
