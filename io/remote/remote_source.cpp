#include "io/remote/remote_source.hpp"

#include "async/posted_functions.hpp"
#include "base/clock.hpp"
#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "io/remote/cached_reads.hpp"
#include "io/remote/networked.hpp"
#include "io/remote/ran_clock.hpp"
#include "io/ring/file_set.hpp"

#include <leat/error.hpp>
#include <leat/stats.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <string_view>
#include <utility>

namespace leat::io {
namespace {

std::unique_ptr<const source_failure> say(fault whose, errc code, const std::string& what) {
  return std::make_unique<const source_failure>(source_failure{whose, error(code, what)});
}

// Blocks that are fetched into a cache at a time, by each connected source.
constexpr std::uint32_t fills_max = 16;
// Reads in flight where the network serves them: a rate of 1 GB/s for 60 ms.
constexpr std::uint64_t bytes_in_flight = std::uint64_t{64} << 20;
// Where a budget has no memory for more.
constexpr std::uint32_t connections_least = 32;

std::unique_ptr<object_cache> cache_of(const remote_options& options, std::size_t objects) {
  const block_cache_options wanted = cache_options_of(options);
  return wanted.directory.empty() ? nullptr : std::make_unique<object_cache>(wanted, objects);
}

}  // namespace

// Of one loop. Fetches go to the client's thread in bunches, and come home in bunches: one posted function for all that ended before it
// runs.
class connected_objects final : public source, public networked {
 public:
  connected_objects(const remote_description& of, const remote_options& options, connector& loop,
                    std::size_t blocks_bytes, std::uint64_t passing_bytes)
      : of_(of),
        loop_(loop),
        connections_(options.connections_max),
        client_(options, of.retries_, of.store_ ? &*of.store_ : nullptr, of.counts_.get()) {
    if (of.cache_ != nullptr) make_cached(blocks_bytes, passing_bytes);
  }

  void start(std::span<read_operation* const> operations) override {
    std::vector<std::shared_ptr<fetch>> wanted;
    wanted.reserve(operations.size());
    for (read_operation* const each : operations) {
      each->started_ns = now_ns();
      each->failure = 0;
      each->data = {};
      const object_facts* const known = of_.facts_of(each->file);
      if (cached_ && known != nullptr && cached_->start(*each, *known)) continue;
      std::shared_ptr<object_fetch> made = make(*each);
      if (each->bytes == 0) {
        made->end = fetch_end::whole;
        come_home(std::move(made));
      } else {
        wanted.push_back(std::move(made));
      }
    }
    if (!wanted.empty()) client_.start(std::move(wanted));
  }
  // By a range of one byte: a signed address is good for GET alone, and it shows whether the server has ranges at all.
  void start(open_operation& operation) override {
    operation.failure = 0;
    const remote_object& object = of_.objects_[operation.file];
    if (!object.listed_etag.empty()) {
      using listing = remote_description::listing;
      const listing told = of_.listing_->load(std::memory_order_acquire);
      if (told == listing::right) return open_as_listed(operation);
      if (told == listing::untried && is_trying_listing_) return wait_for_listing_.push_back(&operation);
      if (told == listing::untried) is_trying_listing_ = true;
    }
    open_by_asking(operation);
  }
  void open_by_asking(open_operation& operation) {
    std::shared_ptr<object_fetch> made = make(operation.file);
    made->open = &operation;
    made->into = {&made->first, 1};
    std::vector<std::shared_ptr<fetch>> wanted;
    wanted.push_back(std::move(made));
    client_.start(std::move(wanted));
  }
  void hint(std::span<const extent> ahead) override {
    if (!cached_) return;
    for (const extent& each : ahead) {
      const object_facts* const known = of_.facts_of(each.file);
      if (known != nullptr) cached_->hint(each.file, *known, each.offset, each.stored_bytes);
    }
  }
  [[nodiscard]] std::uint32_t connections_max() const noexcept override { return connections_; }
  void set_connections(std::uint32_t connections) override {
    client_.set_connections(std::clamp(connections, std::uint32_t{1}, connections_));
  }
  [[nodiscard]] const request_times* request_of_read() const noexcept override { return request_; }
  [[nodiscard]] bool is_read_from_cache() const noexcept override { return cached_ && cached_->is_read_from_cache(); }
  void observe_blocks(cached_block_observer& told) override {
    if (cached_) cached_->observe_blocks(told);
  }

  void cancel(read_operation& operation) override { static_cast<read_path*>(operation.state)->cancel(); }
  [[nodiscard]] error explain(const read_operation& failed) const override {
    if (failed.said != nullptr) return failed.said->why;
    return explain_read({.failure = failed.failure,
                         .path = of_.name_of(failed.file),
                         .offset = failed.offset,
                         .bytes = failed.bytes,
                         .data_bytes = failed.data.size()});
  }
  [[nodiscard]] error explain(const open_operation& failed) const override {
    return failed.said != nullptr ? failed.said->why : explain_open(failed.failure, of_.name_of(failed.file));
  }

 private:
  // Where there is no thread to be had for it, reads go over the network.
  void make_cached(std::size_t memory_bytes, std::uint64_t passing_bytes) try {
    cached_ = std::make_unique<cached_reads>(
        cached_reads::surroundings{.loop = &loop_,
                                   .client = &client_,
                                   .cache = of_.cache_.get(),
                                   .objects = &of_.objects_,
                                   .counts = of_.counts_.get(),
                                   .others_patience = of_.retries_.others_patience,
                                   .remotely =
                                       [](void* self, read_operation& read, bool is_cancelled) noexcept {
                                         static_cast<connected_objects*>(self)->read_remotely(read, is_cancelled);
                                       },
                                   .failed =
                                       [](void* self, read_operation& read, const fetch& block) noexcept {
                                         static_cast<connected_objects*>(self)->explain_in(read, block);
                                         read.done(read);
                                       },
                                   .owner = this},
        cached_reads::room{
            .fills_max = of_.blocks_at_a_time(), .memory_bytes = memory_bytes, .passing_bytes = passing_bytes});
  } catch (const error& refused) {
    of_.cache_->turn_off(refused.what());
  }

  struct object_fetch final : fetch, read_path {
    void cancel() override { static_cast<connected_objects*>(owner)->client_.cancel(shared_from_this()); }
    std::uint32_t file = 0;
    read_operation* read = nullptr;
    open_operation* open = nullptr;
    std::byte first{};
  };

  std::shared_ptr<object_fetch> make(std::uint32_t file) {
    auto made = std::make_shared<object_fetch>();
    made->file = file;
    made->where = &of_.objects_[file].where;
    made->is_signed = of_.objects_[file].is_in_store;
    made->owner = this;
    made->ended = [](fetch& ended) noexcept {
      static_cast<connected_objects*>(ended.owner)
          ->come_home(std::static_pointer_cast<object_fetch>(ended.shared_from_this()));
    };
    return made;
  }

  std::shared_ptr<object_fetch> make(read_operation& read) {
    std::shared_ptr<object_fetch> made = make(read.file);
    made->read = &read;
    made->offset = read.offset;
    made->into = read.into.bytes.first(read.bytes);
    made->expected = of_.facts_of(read.file);
    read.state = static_cast<read_path*>(made.get());
    return made;
  }
  // What the cache does not serve.
  void read_remotely(read_operation& read, bool is_cancelled) noexcept {
    std::shared_ptr<object_fetch> made = make(read);
    if (is_cancelled) {
      made->end = fetch_end::cancelled;
      return come_home(std::move(made));
    }
    std::vector<std::shared_ptr<fetch>> wanted;
    wanted.push_back(std::move(made));
    client_.start(std::move(wanted));
  }

  // Thread: any. The operation is not done before the posted function has run, so this is there until then.
  void come_home(std::shared_ptr<object_fetch> ended) {
    {
      const mutex_lock lock(mutex_);
      ended_.push_back(std::move(ended));
      if (ended_.size() > 1) return;
    }
    posted_.post(loop_.executor(), [this] { settle_all(); });
  }
  void settle_all() noexcept {
    std::vector<std::shared_ptr<object_fetch>> all;
    {
      const mutex_lock lock(mutex_);
      all.swap(ended_);
    }
    for (const std::shared_ptr<object_fetch>& each : all) {
      if (each->read != nullptr) {
        settle(*each, *each->read);
      } else {
        settle(*each, *each->open);
      }
    }
  }

  void settle(object_fetch& ended, read_operation& read) {
    read.state = nullptr;
    const remote_object& object = of_.objects_[ended.file];
    if (ended.end == fetch_end::whole) {
      const bool goes_on = ended.expected == nullptr && read.offset == 0 && read.bytes == object.size_bytes &&
                           ended.seen && ended.seen->size_bytes > read.bytes;
      read.failure = goes_on ? EFBIG : 0;
      if (!goes_on) read.data = ended.into;
    } else if (ended.end == fetch_end::short_of) {
      read.failure = ENODATA;
      read.data = ended.into.first(ended.bytes_received);
    } else {
      explain_in(read, ended);
    }
    request_ = ended.times.ended_ns != 0 ? &ended.times : nullptr;
    read.done(read);
    request_ = nullptr;
  }
  void open_as_listed(open_operation& operation) {
    std::shared_ptr<object_fetch> made = make(operation.file);
    const remote_object& object = of_.objects_[operation.file];
    made->open = &operation;
    made->end = fetch_end::whole;
    made->seen = object_facts{.size_bytes = object.size_bytes, .etag = object.listed_etag, .last_modified = {}};
    come_home(std::move(made));
  }
  // The first object that a listing has told of was asked for.
  void try_listing(const object_fetch& ended) {
    const remote_object& object = of_.objects_[ended.file];
    is_trying_listing_ = false;
    if (ended.seen) {
      using listing = remote_description::listing;
      const bool is_as_told = ended.seen->size_bytes == object.size_bytes && ended.seen->etag == object.listed_etag;
      // Another loop may have found it wrong.
      listing untried = listing::untried;
      if (is_as_told) {
        of_.listing_->compare_exchange_strong(untried, listing::right, std::memory_order_acq_rel);
      } else {
        of_.listing_->store(listing::wrong, std::memory_order_release);
      }
    }
    std::vector<open_operation*> waiting;
    waiting.swap(wait_for_listing_);
    for (open_operation* const each : waiting) start(*each);
  }
  void settle(object_fetch& ended, open_operation& open) {
    if (is_trying_listing_ && !of_.objects_[ended.file].listed_etag.empty()) try_listing(ended);
    const std::string& name = of_.name_of(ended.file);
    if (ended.end != fetch_end::whole && ended.end != fetch_end::short_of) {
      explain_in(open, ended, name);
    } else if (!ended.seen) {
      open.failure = EPROTO;
      open.said = say(fault::environment, errc::io, str_cat(name, ": the server does not say how large it is"));
    } else {
      open.size_bytes = ended.seen->size_bytes;
      open.version = ended.seen->version(of_.objects_[ended.file].where);
      of_.keep(ended.file, *std::move(ended.seen));
    }
    open.done(open);
  }

  void explain_in(read_operation& failed, const fetch& ended) const {
    explain_in(failed, ended,
               str_cat(of_.name_of(failed.file), " at offset ", failed.offset, ", ", failed.bytes, " bytes"));
  }
  template <class Operation>
  static void explain_in(Operation& failed, const fetch& ended, const std::string& where) {
    switch (ended.end) {
      case fetch_end::missing:
        failed.failure = ENOENT;
        failed.said = say(fault::unreadable, errc::not_found, str_cat(where, ": ", ended.why));
        return;
      case fetch_end::changed:
        failed.failure = ESTALE;
        failed.said = say(fault::environment, errc::changed,
                          str_cat(where, ": the object has changed since the dataset was opened (", ended.why,
                                  "); open it again when nobody writes to it"));
        return;
      case fetch_end::refused:
        failed.failure = EACCES;
        failed.said = say(fault::environment, errc::permission, str_cat(where, ": ", ended.why));
        return;
      case fetch_end::damaged:
        failed.failure = EBADMSG;
        failed.said = say(fault::sample, errc::corrupt, str_cat(where, ": ", ended.why));
        return;
      case fetch_end::cancelled:
        failed.failure = ECANCELED;
        return;
      default:
        failed.failure = ECOMM;
        failed.said = say(fault::environment, errc::io, str_cat(where, ": ", ended.why));
        return;
    }
  }

  const remote_description& of_;
  connector& loop_;
  const std::uint32_t connections_;
  async::posted_functions posted_;
  mutex mutex_;
  std::vector<std::shared_ptr<object_fetch>> ended_ ABSL_GUARDED_BY(mutex_);
  // The loop's thread.
  bool is_trying_listing_ = false;
  const request_times* request_ = nullptr;  // of the read that is done now
  std::vector<open_operation*> wait_for_listing_;
  http_client client_;                    // Its thread ends before what it refers to.
  std::unique_ptr<cached_reads> cached_;  // Likewise. Null: without a cache
};

remote_description::remote_description(std::vector<remote_object> objects, const remote_options& options,
                                       const retry_options& retries, std::optional<s3_access> store, caching how)
    : objects_(std::move(objects)),
      options_(options),
      retries_(retries),
      store_(std::move(store)),
      first_store_(objects_.empty() ? nullptr : store_at(server_name(objects_.front().where))),
      cache_(how == caching::none ? nullptr : cache_of(options, objects_.size())),
      opened_(std::make_unique<std::atomic<const object_facts*>[]>(objects_.size())) {
  hash_map<std::string_view, std::uint32_t> times;
  times.reserve(objects_.size());
  for (std::uint32_t i = 0; i < files(); ++i) {
    const std::string& shown = objects_[i].where.shown;
    const std::uint32_t before = times[shown]++;
    if (before > 0) numbered_names_.emplace_back(i, str_cat(shown, " (", before + 1, ")"));
  }
}

const std::string& remote_description::name_of(std::uint32_t file) const {
  const auto found = std::lower_bound(numbered_names_.begin(), numbered_names_.end(), file,
                                      [](const auto& each, std::uint32_t wanted) { return each.first < wanted; });
  return found != numbered_names_.end() && found->first == file ? found->second : objects_[file].where.shown;
}

remote_description::~remote_description() {
  for (std::size_t i = 0; i < objects_.size(); ++i) delete opened_[i].load(std::memory_order_relaxed);
}

const object_facts* remote_description::keep(std::uint32_t file, object_facts seen) const {
  std::atomic<const object_facts*>& kept = opened_[file];
  const object_facts* first = kept.load(std::memory_order_acquire);
  if (first != nullptr) return first;
  auto made = std::make_unique<const object_facts>(std::move(seen));
  return kept.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel) ? made.release() : first;
}

const object_facts* remote_description::facts_of(std::uint32_t file) const {
  const object_facts* const known = opened_[file].load(std::memory_order_acquire);
  const remote_object& object = objects_[file];
  if (known != nullptr || object.listed_etag.empty()) return known;
  if (listing_->load(std::memory_order_acquire) != listing::right) return nullptr;
  return keep(file, {.size_bytes = object.size_bytes, .etag = object.listed_etag, .last_modified = {}});
}

void remote_description::take_facts(std::uint32_t file, const remote_description& from, std::uint32_t theirs) const {
  if (const object_facts* const seen = from.facts_of(theirs)) keep(file, *seen);
}

void remote_description::add_counts(remote_stats& into) const {
  const auto now = [](const transfer_counts::counter& each) { return each.load(std::memory_order_relaxed); };
  into.requests += now(counts_->requests);
  into.bytes += now(counts_->bytes);
  into.bytes_from_cache += now(counts_->bytes_from_cache);
  into.retries += now(counts_->retries);
  into.hedges += now(counts_->hedges);
  into.connections += now(counts_->connections);
  into.wait_s += static_cast<double>(now(counts_->wait_ns)) * 1e-9;
  into.cached_blocks += now(counts_->cached_blocks);
  into.damaged_reads += now(counts_->damaged_reads);
  into.refusals += now(counts_->refusals);
  into.reads_waiting += now(counts_->waiting);
  if (first_store_) {
    const shared_store::view store = first_store_->look(ran_ns());
    if (store.now == store_state::condition::away) {
      into.away_s = std::max(into.away_s, static_cast<double>(store.silent_ns) * 1e-9);
    }
    into.requests_per_s_max = std::max(into.requests_per_s_max, store.rate);
  }
  if (!cache_) return;
  const std::string why = cache_->why_off();
  if (!why.empty()) {
    into.cache = str_cat("off: ", why);
  } else if (const std::string some = cache_->why_left_out(); !some.empty()) {
    into.cache = str_cat("on; ", some);
  } else if (into.cache == "off") {
    into.cache = "on";
  }
}

std::uint32_t remote_description::connections_max() const {
  const std::uint32_t allowed = std::max(connections_least, descriptors_allowed() / 8);
  return std::clamp(options_.connections_max, std::uint32_t{1}, allowed);
}

// Of a connection with TLS OpenSSL keeps some 90 KiB while it is used: 64 of what has been received, a record to be sent, and itself.
std::size_t remote_description::connection_bytes(std::uint32_t connections) const {
  constexpr std::size_t plain = std::size_t{8} << 10;
  constexpr std::size_t with_tls = std::size_t{96} << 10;
  const bool has_tls =
      std::any_of(objects_.begin(), objects_.end(), [](const remote_object& each) { return each.where.tls; });
  return connections * (has_tls ? with_tls : plain);
}

std::uint32_t remote_description::blocks_at_a_time() const { return std::min(connections_max(), fills_max); }

source_memory remote_description::memory() const {
  source_memory all{.bytes_least = connection_bytes(std::min(connections_max(), connections_least)),
                    .bytes_wanted = connection_bytes(connections_max()),
                    .what = str_cat(connections_max(), " connections; patience with a store that is away: ",
                                    static_cast<double>(options_.patience.count()) / 1'000, " s")};
  if (cache_ == nullptr || cache_->is_off()) return all;
  const std::uint32_t fills = blocks_at_a_time();
  all.bytes_least += options_.cache_block_bytes;
  all.bytes_wanted += std::size_t{fills} * options_.cache_block_bytes;
  all.what = str_cat(fills, fills == 1 ? " block of " : " blocks of ", bytes_text(options_.cache_block_bytes),
                     " that are fetched into the cache, ", all.what);
  return all;
}

source_depth remote_description::in_flight() const {
  source_depth all{.reads = std::max(connections_max(), queue_depth::reads_min), .bytes = bytes_in_flight};
  if (cache_ != nullptr && !cache_->is_off()) {
    all.ahead_bytes = std::uint64_t{blocks_at_a_time()} * options_.cache_block_bytes;
  }
  return all;
}

std::optional<cache_room> remote_description::cached() const {
  if (cache_ == nullptr || cache_->is_off()) return std::nullopt;
  cache_room room{.bytes_max = cache_->bytes_max(), .block_bytes = options_.cache_block_bytes};
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    const object_facts* const known = opened_[i].load(std::memory_order_acquire);
    if (known != nullptr) {
      room.bytes_all += known->size_bytes;
    } else if (objects_[i].size_bytes != file_table::unknown_size) {
      room.bytes_all += objects_[i].size_bytes;
    }
  }
  return room;
}

std::unique_ptr<source> remote_description::connect(connector& loop) const {
  return connect_within(loop, {.memory_bytes = memory().bytes_wanted});
}
// Blocks first: they are fewer requests for more bytes.
std::unique_ptr<source> remote_description::connect_within(connector& loop, const source_terms& terms) const {
  const std::size_t blocks_wanted =
      cache_ == nullptr || cache_->is_off() ? 0 : std::size_t{blocks_at_a_time()} * options_.cache_block_bytes;
  const std::uint32_t connections_few = std::min(connections_max(), connections_least);
  const std::size_t beside = terms.memory_bytes - std::min(terms.memory_bytes, connection_bytes(connections_few));
  const std::size_t blocks = std::min(blocks_wanted, beside);
  const auto more = static_cast<std::uint32_t>((beside - blocks) / connection_bytes(1));
  remote_options options = options_;
  options.connections_max = connections_few + std::min(more, connections_max() - connections_few);
  return std::make_unique<connected_objects>(*this, options, loop, blocks, terms.passing_bytes);
}

}  // namespace leat::io
