#include "io/store/store_source.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "io/store/registered_stores.hpp"

#include <leat/error.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <exception>
#include <utility>

namespace leat::io {
namespace {

namespace asio = boost::asio;

fault fault_of_code(errc code) noexcept {
  switch (code) {
    case errc::format:
    case errc::corrupt:
      return fault::sample;
    case errc::not_found:
      return fault::unreadable;
    default:
      return fault::environment;
  }
}

// What the store threw, with the object's address before it.
std::unique_ptr<const source_failure> said_of(const std::exception_ptr& thrown, const std::string& address) {
  const auto about = [&](errc code, const char* what) {
    return std::make_unique<const source_failure>(
        source_failure{fault_of_code(code), error(code, str_cat(address, ": ", what))});
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const error& failed) {
    return about(failed.code(), failed.what());
  } catch (const std::exception& failed) {
    return about(errc::io, failed.what());
  } catch (...) {
    return about(errc::io, "its store threw what is no std::exception");
  }
}

// A read that is under way.
struct store_read {
  asio::cancellation_signal stop;
  bool is_cancelled = false;
};

class connected_store final : public source {
 public:
  connected_store(const store_description& of, connector& loop) : of_(of), executor_(loop.executor()) {}

  void start(std::span<read_operation* const> operations) override {
    for (read_operation* const each : operations) start(*each);
  }

  void start(open_operation& operation) override {
    asio::co_spawn(executor_, look(of_, operation), [this, &operation](const std::exception_ptr& thrown) {
      operation.failure = 0;
      if (thrown) {
        failed(operation, thrown);
      }
      operation.done(operation);
    });
  }

  void cancel(read_operation& operation) override {
    auto* const running = static_cast<store_read*>(operation.state);
    running->is_cancelled = true;
    running->stop.emit(asio::cancellation_type::terminal);
  }

  [[nodiscard]] error explain(const read_operation& operation) const override {
    return explain_read({.failure = operation.failure,
                         .path = of_.file_name(operation.file),
                         .offset = operation.offset,
                         .bytes = operation.bytes,
                         .data_bytes = operation.data.size()});
  }
  [[nodiscard]] error explain(const open_operation& operation) const override {
    return explain_open(operation.failure, of_.file_name(operation.file));
  }

 private:
  void start(read_operation& operation) {
    operation.started_ns = now_ns();
    operation.failure = 0;
    operation.data = {};
    auto running = std::make_unique<store_read>();
    const asio::cancellation_slot slot = running->stop.slot();
    operation.state = running.get();
    asio::co_spawn(executor_, fetch(of_, operation),
                   asio::bind_cancellation_slot(slot, [this, &operation, running = std::move(running)](
                                                          const std::exception_ptr& thrown, std::size_t bytes) {
                     end(operation, thrown, bytes, running->is_cancelled);
                   }));
  }

  template <class Operation>
  void failed(Operation& operation, const std::exception_ptr& thrown) const {
    operation.said = said_of(thrown, of_.file_name(operation.file));
    operation.failure = operation.said->why.code() == errc::not_found ? ENOENT : EIO;
  }

  void end(read_operation& operation, const std::exception_ptr& thrown, std::size_t bytes, bool is_cancelled) {
    operation.state = nullptr;
    if (thrown) {
      operation.failure = ECANCELED;
      if (!is_cancelled) failed(operation, thrown);
    } else if (bytes > operation.bytes) {
      operation.failure = EFBIG;
    } else {
      operation.data = operation.into.bytes.first(bytes);
      if (bytes < operation.bytes) operation.failure = ENODATA;
    }
    operation.done(operation);
  }

  // Both begin after start() has returned, whatever co_spawn() does.
  static asio::awaitable<void> look(const store_description& of, open_operation& operation) {
    co_await asio::post(asio::use_awaitable);
    const stored_object found = co_await of.store().look_at(of.name_in_store(operation.file));
    operation.size_bytes = found.size_bytes;
    of.saw_size(operation.file, found.size_bytes);
    operation.version = found.version;
  }
  static asio::awaitable<std::size_t> fetch(const store_description& of, const read_operation& operation) {
    co_await asio::post(asio::use_awaitable);
    // Of the whole of an object one byte more, where there is room: it tells that the object has grown.
    const bool is_whole = operation.offset == 0 && operation.bytes == of.size_bytes(operation.file);
    const std::uint64_t asked = operation.bytes + (is_whole && operation.into.bytes.size() > operation.bytes ? 1 : 0);
    co_return co_await of.store().read(of.name_in_store(operation.file), operation.offset,
                                       operation.into.bytes.first(asked));
  }

  const store_description& of_;
  async::loop::executor_type executor_;
};

}  // namespace

store_description::store_description(std::span<const std::string> addresses) {
  for (const std::string& each : addresses) {
    io::name_in_store found = find_in_store(each);
    if (scheme_.empty()) scheme_ = found.scheme;
    if (!found.store || found.scheme != scheme_) {
      throw error(errc::usage,
                  str_cat(each, " is not of the store of ", scheme_, "; open the two apart, and leat::concat() them"));
    }
    store_ = std::move(found.store);
    names_.push_back(std::move(found.name));
  }
  sizes_ = std::make_unique<seen_size[]>(names_.size());
}

std::unique_ptr<source> store_description::connect(connector& loop) const {
  return std::make_unique<connected_store>(*this, loop);
}

}  // namespace leat::io
