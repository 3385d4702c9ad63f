// A source of bytes of your own: an object store in memory, a database, a file system that is not mounted.
#pragma once

#include <leat/compiler.hpp>

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// What a store says of an object.
///   version   changes when the bytes do. 0 (default): nothing tells, and changes are not noticed
struct stored_object {
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
};

/// An object of a listing.
struct listed_object {
  std::string name;
  stored_object facts;
};

/// Objects that are read by ranges. Every opener takes their addresses once register_store() knows the scheme:
/// "mem://train/a.tar" is the object "train/a.tar" of the store "mem".
///
/// Thread: the coroutines run on a thread of the reader, many at a time, and several readers call the same store. They
/// must not block: work that does belongs on another executor, with co_spawn(pool, ..., use_awaitable). list() is called
/// by the opener, and may block. A coroutine that honours cancellation lets a loader end sooner.
class object_store {
 public:
  object_store() = default;
  object_store(const object_store&) = delete;
  object_store& operator=(const object_store&) = delete;
  virtual ~object_store() = default;

  ///   name     lives until the coroutine has ended
  ///   throws   any exception. error{errc::not_found} says that there is no such object
  [[nodiscard]] virtual boost::asio::awaitable<stored_object> look_at(const std::string& name) const = 0;
  /// Fills `into` with the object's bytes from `offset` on.
  ///   returns  how many bytes were written: all, or fewer where the object ends. Then it has changed since look_at()
  ///   throws   any exception. error{errc::format} makes the sample corrupt, error{errc::not_found} counts as an
  ///            unreadable file, all others end the run
  [[nodiscard]] virtual boost::asio::awaitable<std::size_t> read(const std::string& name, std::uint64_t offset,
                                                                 std::span<std::byte> into) const = 0;
  /// All objects whose names begin with `prefix`: for globs and folders.
  ///   returns   nothing if the store lists no objects (default). Their names are given by brace lists then
  [[nodiscard]] virtual std::optional<std::vector<listed_object>> list(const std::string& prefix) const;
};

/// Reads addresses that begin with "scheme://" from this store, in the whole process and to its end.
///   scheme   of lower-case letters, digits, '+' and '-'
///   throws   error{errc::usage} another name, one that leat reads itself, or one that is registered
void register_store(std::string_view scheme, std::shared_ptr<const object_store> store);

}  // namespace leat
#pragma GCC visibility pop
