// Hash tables for all of leat: Boost's flat ones, which are headers only. Elements move when one is added.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <type_traits>

namespace leat {

/// Texts of any type have one hash, so that a table of std::string is asked with a std::string_view.
struct hash_of {
  using is_transparent = void;

  template <class T>
  std::size_t operator()(const T& value) const {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      return std::hash<std::string_view>{}(value);
    } else {
      return boost::hash<T>{}(value);
    }
  }
};

template <class Key, class Value>
using hash_map = boost::unordered_flat_map<Key, Value, hash_of, std::equal_to<>>;
template <class Key>
using hash_set = boost::unordered_flat_set<Key, hash_of, std::equal_to<>>;

}  // namespace leat
