// The stores that a program has registered, by the scheme of their addresses.
#pragma once

#include <leat/object_store.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

/// The store of an address and the object's name in it.
struct name_in_store {
  std::shared_ptr<const object_store> store;  ///< null: the address is of no registered store
  std::string scheme;                         ///< with "://"
  std::string name;
};
/// Thread: any.
[[nodiscard]] name_in_store find_in_store(std::string_view address);
[[nodiscard]] bool is_registered(std::string_view address) noexcept;
/// Whether this may stand before "://": lower-case letters, digits, '+' and '-'.
[[nodiscard]] bool is_scheme(std::string_view text) noexcept;

/// What names that a pattern with * ? [ stands for begin with.
[[nodiscard]] std::string listed_prefix(std::string_view pattern);
/// Whether an object is meant by it: * and ? do not cross a slash, and a name that ends with one stands for a folder.
[[nodiscard]] bool is_matched(const std::string& pattern, const std::string& name) noexcept;

/// The objects below a folder, or that a pattern with * ? [ stands for, by their whole addresses and sorted.
///   throws   error{errc::not_found} there is none, or the store lists no objects; what the store throws
[[nodiscard]] std::vector<listed_object> list_store(const std::string& folder);
[[nodiscard]] std::vector<listed_object> match_in_store(const std::string& pattern);

}  // namespace leat::io
