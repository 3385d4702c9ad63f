#include "datasets/formats/parquet/parquet_chats.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

constexpr std::string_view role_ending = ".role";
constexpr std::string_view content_ending = ".content";
constexpr std::string_view before_role = R"({"role":)";
constexpr std::string_view before_content = R"(,"content":)";

bool is_list_of_texts(const parquet_leaf& leaf) {
  return leaf.repeated == 1 && leaf.is_text && leaf.type == parquet_type::byte_array;
}

/// The elements of a list of texts and nulls, as find_packed_values() and its expander have it: JSON without a space.
class json_elements {
 public:
  explicit json_elements(std::string_view list) : rest_(list.substr(std::min<std::size_t>(1, list.size()))) {}

  /// Nothing behind the last.
  std::optional<std::string_view> next() {
    if (!rest_.empty() && rest_.front() == ',') rest_.remove_prefix(1);
    std::size_t end = 0;
    if (!rest_.empty() && rest_.front() == '"') {
      for (end = 1; end < rest_.size() && rest_[end] != '"'; ++end) end += rest_[end] == '\\' ? 1 : 0;
      ++end;
    } else {
      end = rest_.find_first_of(",]");
    }
    if (end == 0 || end > rest_.size()) return std::nullopt;
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }

 private:
  std::string_view rest_;
};

std::uint64_t count_elements(std::string_view list) {
  std::uint64_t count = 0;
  for (json_elements each(list); each.next();) ++count;
  return count;
}

/// Both lists have two brackets and a comma less than elements, and so has the one of both.
std::uint64_t joined_bytes(std::uint64_t roles, std::uint64_t contents, std::uint64_t messages) {
  constexpr std::uint64_t of_message = before_role.size() + before_content.size() + 1;
  return messages == 0 ? 2 : roles + contents - 1 + messages * (of_message - 1);
}

std::string_view value_in(std::span<const std::byte> decoded, const value_blocks::value& at) {
  return {reinterpret_cast<const char*>(decoded.data()) + at.begin, at.bytes};
}

value_blocks::block joined(const value_blocks::block& a, const value_blocks::block& b) {
  value_blocks::block both = a;
  both.offset = std::min(a.offset, b.offset);
  both.bytes = std::max(a.offset + a.bytes, b.offset + b.bytes) - both.offset;
  return both;
}

class chats_expander final : public block_expander {
 public:
  chats_expander(std::shared_ptr<const value_blocks> roles, std::shared_ptr<const value_blocks> contents)
      : roles_(std::move(roles)), contents_(std::move(contents)) {}

  std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                    std::span<const std::uint32_t> ends, std::span<std::byte> decoded) const override {
    const std::uint64_t offset = std::min(roles_->blocks[block].offset, contents_->blocks[block].offset);
    std::vector<std::byte> roles;
    std::vector<std::byte> contents;
    if (auto wrong = expand_one(*roles_, block, stored, offset, roles)) return wrong;
    if (auto wrong = expand_one(*contents_, block, stored, offset, contents)) return wrong;
    std::byte* at = decoded.data();
    const auto put = [&](std::string_view text) {
      if (text.empty()) return;
      std::memcpy(at, text.data(), text.size());
      at += text.size();
    };
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if ((ends[i] & value_blocks::missing) != 0) continue;
      const std::uint64_t row = roles_->blocks[block].first_row + i;
      const std::string_view role_list = value_in(roles, *roles_->value_of(row, block));
      const std::string_view content_list = value_in(contents, *contents_->value_of(row, block));
      const std::uint64_t messages = count_elements(role_list);
      const auto written = static_cast<std::uint64_t>(at - decoded.data());
      if (messages != count_elements(content_list) ||
          written + joined_bytes(role_list.size(), content_list.size(), messages) != ends[i]) {
        return "a row group whose messages have not as many roles as contents, or are no more those that it had when "
               "it "
               "was opened";
      }
      json_elements role(role_list);
      json_elements content(content_list);
      for (std::uint64_t message = 0; message < messages; ++message) {
        put(message == 0 ? "[" : ",");
        put(before_role);
        put(*role.next());
        put(before_content);
        put(*content.next());
        put("}");
      }
      put(messages == 0 ? "[]" : "]");
    }
    return std::nullopt;
  }

 private:
  static std::optional<std::string> expand_one(const value_blocks& of, std::size_t block,
                                               std::span<const std::byte> stored, std::uint64_t offset,
                                               std::vector<std::byte>& to) {
    const value_blocks::block& where = of.blocks[block];
    to.resize(of.decoded_bytes(block));
    return of.expander->expand(block, stored.subspan(where.offset - offset, where.bytes), of.ends_of(block), to);
  }

  std::shared_ptr<const value_blocks> roles_;
  std::shared_ptr<const value_blocks> contents_;
};

/// Where each row of a block ends; false where they are too many bytes.
bool append_ends(const file_bytes& file, const value_blocks& roles, const value_blocks& contents, std::size_t block,
                 std::vector<std::uint32_t>& ends) {
  const value_blocks::block& where = roles.blocks[block];
  const std::vector<std::byte> stored = file.read(where.offset, where.bytes);
  std::vector<std::byte> decoded(roles.decoded_bytes(block));
  if (const auto wrong = roles.expander->expand(block, stored, roles.ends_of(block), decoded)) {
    throw error(errc::format, str_cat(file.path(), ": ", *wrong));
  }
  std::uint64_t end = 0;
  for (std::uint64_t row = where.first_row; row < where.first_row + where.rows; ++row) {
    const auto role = roles.value_of(row, block);
    const auto content = contents.value_of(row, block);
    if (!role || !content) {
      ends.push_back(static_cast<std::uint32_t>(end) | value_blocks::missing);
      continue;
    }
    end += joined_bytes(role->bytes, content->bytes, count_elements(value_in(decoded, *role)));
    if (end > value_blocks::decoded_bytes_max) return false;
    ends.push_back(static_cast<std::uint32_t>(end));
  }
  return true;
}

}  // namespace

std::string chats_of(std::span<const parquet_leaf> leaves, std::size_t leaf) {
  // Each column looks at all: of a footer with more, which nobody writes of chats, they stay as they are.
  constexpr std::size_t leaves_max = 4096;
  if (leaves.size() > leaves_max) return {};
  const std::string_view shown = leaves[leaf].shown;
  const bool is_role = shown.ends_with(role_ending);
  const std::string_view ending = is_role ? role_ending : content_ending;
  // Of a struct of two lists these may differ in length, and then are no messages.
  const std::string_view path = leaves[leaf].path;
  if (!is_list_of_texts(leaves[leaf]) || !path.ends_with(ending) || !shown.ends_with(ending)) return {};
  const std::string_view list = shown.substr(0, shown.size() - ending.size());
  const std::string other = str_cat(list, is_role ? content_ending : role_ending);
  const std::string calls = str_cat(list, ".tool_calls");
  bool has_other = false;
  for (const parquet_leaf& each : leaves) {
    if (each.shown.starts_with(calls)) return {};
    has_other =
        has_other || (each.shown == other && is_list_of_texts(each) && each.list_level == leaves[leaf].list_level);
  }
  return has_other ? std::string(list) : std::string();
}

std::shared_ptr<const value_blocks> join_chats(const file_bytes& file, std::shared_ptr<const value_blocks> roles,
                                               std::shared_ptr<const value_blocks> contents) {
  // What lies between the two is read with them.
  constexpr std::uint64_t gap_bytes_max = std::uint64_t{1} << 20;
  auto both = std::make_shared<value_blocks>();
  both->ends.reserve(roles->ends.size());
  std::uint64_t lists_bytes_max = 0;
  for (std::size_t block = 0; block < roles->blocks.size(); ++block) {
    const value_blocks::block& role = roles->blocks[block];
    const value_blocks::block& content = contents->blocks[block];
    both->blocks.push_back(joined(role, content));
    if (both->blocks.back().bytes > role.bytes + content.bytes + gap_bytes_max) return nullptr;
    if (!append_ends(file, *roles, *contents, block, both->ends)) return nullptr;
    lists_bytes_max = std::max(lists_bytes_max, roles->decoded_bytes(block) + contents->decoded_bytes(block));
  }
  both->packed_by = roles->packed_by.size() > contents->packed_by.size() ? roles->packed_by : contents->packed_by;
  both->expand_bytes_max = std::max(roles->expand_bytes_max, contents->expand_bytes_max) + lists_bytes_max;
  both->expander = std::make_shared<chats_expander>(std::move(roles), std::move(contents));
  return both;
}

}  // namespace leat::datasets
