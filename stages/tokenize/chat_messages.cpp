#include "stages/tokenize/chat_messages.hpp"

#include "base/json_depth.hpp"
#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <utility>

namespace leat::stages {

/// Of nlohmann's events: values of the members of objects in the list.
class chat_reader {
 public:
  using json = nlohmann::json;
  chat_reader(chat_messages& to, std::optional<std::string>& wrong) : to_(to), wrong_(wrong) {}

  bool null() { return other("null"); }
  bool boolean(bool) { return other("true or false"); }
  bool number_integer(json::number_integer_t) { return other("a number"); }
  bool number_unsigned(json::number_unsigned_t) { return other("a number"); }
  bool number_float(json::number_float_t, const json::string_t&) { return other("a number"); }
  bool binary(json::binary_t&) { return other("bytes"); }
  bool string(json::string_t& text) {
    if (depth_ < 2) return fail("is no list of messages, but a text");
    if (member_ == member::passed) return true;
    if (member_ == member::calls) return fail(str_cat(here(), " calls tools, which no template here has"));
    chat_messages::message& now = to_.messages_[to_.count_ - 1];
    (member_ == member::role ? now.role : now.content) = text;
    (member_ == member::role ? has_role_ : has_content_) = true;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ == 1) return fail("is no list of messages, but a list of lists");
    // A list of calls may be empty.
    if (depth_ == 2 && member_ != member::calls && !other("a list")) return false;
    if (depth_ > 2 && !other("a list")) return false;
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool start_object(std::size_t) {
    if (depth_ == 0) return fail("is no list of messages, but an object");
    if (depth_ >= 2 && !other("an object")) return false;
    if (depth_++ != 1) return true;
    if (to_.count_ == to_.messages_.size()) to_.messages_.emplace_back();
    ++to_.count_;
    has_role_ = has_content_ = false;
    return true;
  }
  bool end_object() {
    if (--depth_ != 1) return true;
    if (!has_role_) return fail(str_cat(here(), " has no 'role'"));
    return has_content_ || fail(str_cat(here(), " has no 'content'"));
  }
  bool key(json::string_t& name) {
    if (depth_ == 2) {
      member_ = name == "role"         ? member::role
                : name == "content"    ? member::content
                : name == "tool_calls" ? member::calls
                                       : member::passed;
    }
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const json::exception&) {
    return fail(str_cat("is no JSON, from byte ", at, " on"));
  }

 private:
  enum class member : std::uint8_t { passed, role, content, calls };

  [[nodiscard]] std::string here() const { return str_cat("message ", to_.count_ == 0 ? 0 : to_.count_ - 1); }
  bool fail(std::string why) {
    wrong_ = std::move(why);
    return false;
  }
  // A value that is no text.
  bool other(std::string_view what) {
    if (depth_ == 0) return fail(str_cat("is no list of messages, but ", what));
    if (depth_ == 1) return fail(str_cat("is no list of messages: it has ", what));
    if (member_ == member::passed) return true;
    if (member_ == member::calls) {
      return (depth_ == 2 && what == "null") || fail(str_cat(here(), " calls tools, which no template here has"));
    }
    return fail(
        str_cat("the ", member_ == member::role ? "role" : "content", " of ", here(), " is ", what, ", and no text"));
  }

  chat_messages& to_;
  std::optional<std::string>& wrong_;
  std::size_t depth_ = 0;
  member member_ = member::passed;
  bool has_role_ = false;
  bool has_content_ = false;
};

std::optional<std::string> chat_messages::read(std::string_view json) {
  count_ = 0;
  if (find_too_deep(json))
    return str_cat("has lists and objects within one another, more than ", json_depth_max, " deep");
  std::optional<std::string> wrong;
  chat_reader reader(*this, wrong);
  static_cast<void>(nlohmann::json::sax_parse(json.begin(), json.end(), &reader));
  if (!wrong && count_ == 0) return "has no messages";
  return wrong;
}

}  // namespace leat::stages
