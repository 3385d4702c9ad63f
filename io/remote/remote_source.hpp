// Objects at addresses as a source that datasets hold.
#pragma once

#include "io/files/file_table.hpp"
#include "io/files/source.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/object_cache.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/shared_store.hpp"
#include "io/remote/transfer_counts.hpp"

#include <leat/remote.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::io {

///   size_bytes   as an earlier run, or a listing, has seen it
///   is_in_store  asked for with the store's keys
///   listed_etag  as a listing has told, with the size: what is told is taken, once the first object that is opened was as told
struct remote_object {
  address where;
  std::uint64_t size_bytes = file_table::unknown_size;
  bool is_in_store = false;
  std::string listed_etag = {};
};

/// What the first opening of an object sees of it (its size, its tag) holds for all reads that follow, of every source that is
/// connected: an object that is another one by then ends the run.
///   throws   of the constructor, as cache_options_of()
class remote_description final : public source_description {
 public:
  explicit remote_description(std::vector<remote_object> objects, const remote_options& options,
                              const retry_options& retries = {}, std::optional<s3_access> store = std::nullopt,
                              caching how = caching::as_asked);
  ~remote_description() override;

  /// Starts a thread for the network.
  [[nodiscard]] std::unique_ptr<source> connect(connector& loop) const override;
  [[nodiscard]] source_memory memory() const override;
  [[nodiscard]] source_depth in_flight() const override;
  [[nodiscard]] std::optional<cache_room> cached() const override;
  [[nodiscard]] std::unique_ptr<source> connect_within(connector& loop, const source_terms& terms) const override;
  [[nodiscard]] std::uint32_t files() const override { return static_cast<std::uint32_t>(objects_.size()); }
  /// Without the query; of several that differ in nothing else, with a number behind it.
  [[nodiscard]] std::string file_name(std::uint32_t file) const override { return name_of(file); }
  void add_counts(remote_stats& into) const override;
  /// What `from` has seen of its object `theirs` holds for this one.
  void take_facts(std::uint32_t file, const remote_description& from, std::uint32_t theirs) const;

 private:
  friend class connected_objects;
  /// What is asked for, as far as descriptors go: files of the cache and other sources want theirs.
  [[nodiscard]] std::uint32_t connections_max() const;
  [[nodiscard]] std::size_t connection_bytes(std::uint32_t connections) const;
  [[nodiscard]] std::uint32_t blocks_at_a_time() const;
  /// What its first opening has seen; of one that nobody opened what a listing has told, once that was found right. Null: nothing is known.
  [[nodiscard]] const object_facts* facts_of(std::uint32_t file) const;
  /// The first look holds.
  const object_facts* keep(std::uint32_t file, object_facts seen) const;

  [[nodiscard]] const std::string& name_of(std::uint32_t file) const;

  const std::vector<remote_object> objects_;
  // By object, of those alone whose address is another one's too: of a million objects names are not held twice.
  std::vector<std::pair<std::uint32_t, std::string>> numbered_names_;
  const remote_options options_;
  const retry_options retries_;
  const std::optional<s3_access> store_;
  // Of the first object. What is known of it is so kept from the opening on.
  const std::shared_ptr<shared_store> first_store_;
  const std::unique_ptr<object_cache> cache_;  // null: none was asked for
  const std::unique_ptr<transfer_counts> counts_ = std::make_unique<transfer_counts>();
  // Whether objects are as a listing has told.
  enum class listing : std::uint8_t { untried, right, wrong };
  const std::unique_ptr<std::atomic<listing>> listing_ = std::make_unique<std::atomic<listing>>(listing::untried);
  // By object; set once, by whoever opens it first.
  const std::unique_ptr<std::atomic<const object_facts*>[]> opened_;
};

}  // namespace leat::io
