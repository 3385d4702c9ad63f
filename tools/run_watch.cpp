#include "tools/run_watch.hpp"

#include "base/descriptor.hpp"
#include "base/replaced_place.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "stages/device/gpu_activity.hpp"
#include "stages/device/open_device.hpp"
#include "tools/epoch_report.hpp"
#include "tools/output.hpp"
#include "tools/process.hpp"

#include <leat/error.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using clock = std::chrono::steady_clock;
using json = nlohmann::ordered_json;

constexpr std::chrono::seconds between_lines{1};
constexpr int lines_between_metrics = 5;

std::string metrics_of(const loader& train, const std::vector<metric_label>& labels) {
  std::ostringstream text;
  write_metrics(text, train.stats(), labels);
  return text.str();
}

tcp::endpoint endpoint_of(const std::string& address, std::uint16_t port) {
  boost::system::error_code refused;
  const asio::ip::address parsed = asio::ip::make_address(address, refused);
  if (refused) {
    throw error(errc::usage,
                str_cat("--metrics-address '", address,
                        "' is no address in numbers; give one of this machine's, or 0.0.0.0 for all of them"));
  }
  return {parsed, port};
}

[[noreturn]] void refuse(std::string_view option, const std::string& path, int failure) {
  throw error(errc::io, str_cat("cannot write ", path, ": ", std::strerror(failure), "; give ", option,
                                " a file in a folder that is there, and that you may write"));
}

// No reason to end a run, now or later.
bool is_full_disk(int failure) { return failure == ENOSPC || failure == EDQUOT; }

// "127.0.0.1:9464", "[::1]:9464"
std::string text_of(const tcp::endpoint& at) {
  std::ostringstream text;
  text << at;
  return text.str();
}

void listen_on(tcp::acceptor& acceptor, const tcp::endpoint& at) {
  try {
    acceptor.open(at.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(at);
    acceptor.listen();
  } catch (const boost::system::system_error& refused) {
    throw error(errc::io, str_cat("cannot listen on ", text_of(at), ": ", refused.code().message(),
                                  refused.code() == asio::error::address_in_use
                                      ? "; give --metrics-port another one, or 0 for any"
                                      : "; give --metrics-address one of this machine's, or 0.0.0.0 for all of them"));
  }
}

/// What the trainer waited in the time of a line.
struct waits {
  std::vector<float> seconds;  // of each batch
  float slowest = 0;
  std::uint32_t slowest_epoch = 0;
  std::uint64_t slowest_batch = 0;
};

// The wait that so many of all are at most as long as.
double at_share(std::vector<float>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return static_cast<double>(sorted[static_cast<std::size_t>(std::ceil(share * last))]);
}

json waits_json(waits of) {
  if (of.seconds.empty()) return nullptr;
  std::sort(of.seconds.begin(), of.seconds.end());
  return {{"p50", at_share(of.seconds, 0.5) * 1e3},
          {"p99", at_share(of.seconds, 0.99) * 1e3},
          {"max", at_share(of.seconds, 1) * 1e3},
          {"epoch", of.slowest_epoch},
          {"batch", of.slowest_batch}};
}

// Cores that each thread was busy with, by name.
json threads_json(const loader_stats& now, const loader_stats& before, double seconds) {
  json cores = json::object();
  for (std::size_t i = 0; i < now.threads.size(); ++i) {
    const thread_stats& each = now.threads[i];
    const bool is_known = i < before.threads.size() && before.threads[i].name == each.name;
    const double cpu_s = each.cpu_s - (is_known ? before.threads[i].cpu_s : 0);
    cores[each.name] = seconds > 0 ? std::max(cpu_s, 0.0) / seconds : 0;
  }
  return cores;
}

/// What came since the line before.
json line_of(const loader_stats& now, const loader_stats& before) {
  const double seconds = now.elapsed_s - before.elapsed_s;
  const std::uint64_t samples = now.samples - before.samples;
  return {{"t_s", now.elapsed_s},
          {"seconds", seconds},
          {"batches", now.batches - before.batches},
          {"planned", now.planned - before.planned},
          {"samples", samples},
          {"quarantined", now.quarantined - before.quarantined},
          {"samples_per_s", seconds > 0 ? static_cast<double>(samples) / seconds : 0},
          {"bytes_read", now.bytes_read - before.bytes_read},
          {"stalled_s", now.stalled_s - before.stalled_s},
          {"step_s", now.next.busy_s - before.next.busy_s},
          {"bytes_from_files", now.bytes_from_files - before.bytes_from_files},
          {"bytes_from_network", now.remote.bytes - before.remote.bytes},
          {"bytes_from_cache", now.remote.bytes_from_cache - before.remote.bytes_from_cache},
          {"threads", threads_json(now, before, seconds)},
          {"arena_bytes", now.arena_bytes + now.scratch_bytes_peak},
          {"next_wait_ms",
           {{"p50", now.next.p50_s * 1e3},
            {"p90", now.next.p90_s * 1e3},
            {"p99", now.next.p99_s * 1e3},
            {"max", now.next.max_s * 1e3}}},
          {"reads_in_flight", now.reads_in_flight},
          {"decode_queued", now.decode_queued},
          {"batches_ready", now.batches_ready},
          {"batches_out", now.batches_out},
          {"verdict", verdict_json(now.verdict)}};
}

// Those that were made since.
json steps_json(const tuning_stats& now, const tuning_stats& before) {
  const auto made = static_cast<std::size_t>(now.steps_in_all - before.steps_in_all);
  json steps = json::array();
  for (std::size_t i = now.steps.size() - std::min(made, now.steps.size()); i < now.steps.size(); ++i) {
    steps.push_back(step_json(now.steps[i]));
  }
  return steps;
}

// What was not measured is not there, and `why` says so: of the others, where they have a reason of their own.
json gpu_json(const stages::gpu_reading& of) {
  json found = json::object();
  if (of.sm) found["sm"] = *of.sm;
  if (of.occupancy) found["sm_occupancy"] = *of.occupancy;
  if (of.busy) found["busy"] = *of.busy;
  if (!of.why_sm.empty()) found["why"] = of.why_sm;
  if (of.why_occupancy != of.why_sm && !of.why_occupancy.empty()) found["why_sm_occupancy"] = of.why_occupancy;
  if (of.why_busy != of.why_sm && !of.why_busy.empty()) found["why_busy"] = of.why_busy;
  return found;
}

json settings_json(const loader& train, const loader_stats& now) {
  const loader_plan& plan = train.plan();
  return {{"decode threads", plan.decode_threads},
          {"I/O threads", now.verdict.io_threads},
          {"reads at a time", now.verdict.reads_at_a_time},
          {"batches", plan.batches},
          {"bytes of a batch", plan.batch_bytes},
          {"memory of the loader", plan.bytes_total},
          {"reader", now.reader.backend.use},
          {"O_DIRECT", now.reader.direct.use},
          {"device", now.device.use.use}};
}

}  // namespace

int write_beside_and_rename(const std::string& path, std::string_view bytes) {
  return write_whole(path, std::as_bytes(std::span(bytes)));
}

void check_watch(const run_watch_options& options) {
  if (options.metrics_port) {
    asio::io_context here(1);
    tcp::acceptor tried(here);
    listen_on(tried, endpoint_of(options.metrics_address, *options.metrics_port));
  }
  if (!options.metrics.empty()) {
    check_replaces_own_kind(options.metrics, output_kind::metrics, "--metrics");
    check_partial_is_own(options.metrics, output_kind::metrics);
    const int failure = can_write_whole(options.metrics);
    if (failure != 0 && !is_full_disk(failure)) refuse("--metrics", options.metrics, failure);
  }
  if (!options.windows.empty()) {
    check_replaces_own_kind(options.windows, output_kind::progress, "--progress");
    if (const int failure = can_write_in_place(options.windows); failure != 0) {
      refuse("--progress", options.windows, failure);
    }
  }
}

void watch_gpu_of(const loader& train, run_watch_options& options) {
  const device which = train.options().device;
  const fallback used = train.stats().device.use;
  if (which == host || used.use == "host") {
    if (which != host && !used.why.empty()) options.why_no_gpu = str_cat("batches stay on the host: ", used.why);
    return;
  }
  const stages::opened_device opened = stages::open_device(which);
  const std::string address = opened.calls != nullptr ? opened.calls->facts().pci_address : std::string();
  if (address.empty()) {
    options.why_no_gpu = "CUDA does not say which GPU it is";
  } else {
    options.gpu = std::make_shared<stages::gpu_activity>(address);
  }
}

/// The two files, and the thread that writes them.
class run_watch::files {
 public:
  files(const loader& train, const run_watch_options& options)
      : train_(train),
        metrics_(options.metrics),
        windows_(options.windows),
        about_(options.about),
        labels_(options.labels),
        gpu_(options.gpu),
        why_no_gpu_(options.why_no_gpu),
        write_(options.write) {
    if (!metrics_.empty()) {
      check_replaces_own_kind(metrics_, output_kind::metrics, "--metrics");
      const int failure = write_metrics_file();
      if (is_full_disk(failure)) {
        tell_once(told_of_metrics_, "--metrics", metrics_, failure);
      } else if (failure != 0) {
        refuse("--metrics", metrics_, failure);
      }
    }
    if (!windows_.empty()) {
      check_replaces_own_kind(windows_, output_kind::progress, "--progress");
      lines_.emplace(::open(windows_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (lines_->get() < 0) refuse("--progress", windows_, errno);
    }
    thread_ = std::thread([this] { run(); });
  }
  files(const files&) = delete;
  files& operator=(const files&) = delete;
  ~files() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    ended_changed_.notify_one();
    thread_.join();
    if (lines_ && ::close(lines_->release()) != 0) tell_once(told_of_lines_, "--progress", windows_, errno);
  }

  void waited(std::uint32_t epoch, std::uint64_t batch, double seconds) {
    if (!lines_) return;
    const std::lock_guard lock(waits_mutex_);
    const auto wait = static_cast<float>(seconds);
    if (waits_.seconds.empty() || wait > waits_.slowest) {
      waits_.slowest = wait;
      waits_.slowest_epoch = epoch;
      waits_.slowest_batch = batch;
    }
    waits_.seconds.push_back(wait);
  }

 private:
  // At least once, however short the run was.
  void run() {
    std::unique_lock lock(mutex_);
    for (int line = 1;; ++line) {
      ended_changed_.wait_for(lock, between_lines, [this] { return ended_; });
      const bool is_last = ended_;
      lock.unlock();
      write_line();
      if (is_last || line % lines_between_metrics == 0) {
        if (const int failure = metrics_.empty() ? 0 : write_metrics_file(); failure != 0) {
          tell_once(told_of_metrics_, "--metrics", metrics_, failure);
        }
      }
      if (is_last) return;
      lock.lock();
    }
  }

  waits take_waits() {
    const std::lock_guard lock(waits_mutex_);
    return std::exchange(waits_, {});
  }

  [[nodiscard]] int write_metrics_file() { return write_(metrics_, metrics_of(train_, labels_)); }

  void write_line() {
    if (!lines_) return;
    loader_stats now = train_.stats();
    json line = line_of(now, before_);
    const double cpu_s = cpu_seconds();
    line["cpu_s"] = cpu_s - std::exchange(cpu_s_before_, cpu_s);
    line["rss_bytes"] = rss_bytes_now();
    line["waits_ms"] = waits_json(take_waits());
    line["gpu"] = gpu_json(gpu_ != nullptr ? gpu_->read() : stages::gpu_reading{.why_sm = why_no_gpu_});
    if (json steps = steps_json(now.tuned, before_.tuned); !steps.empty()) line["tuning"] = std::move(steps);
    if (!about_.empty()) {
      line["run"] = std::exchange(about_, {});
      line["settings"] = settings_json(train_, now);
    }
    // What may be there of a line that was not written whole is a line of its own.
    const std::string text = str_cat(is_torn_ ? "\n" : "", json_text(line), "\n");
    before_ = std::move(now);
    if (const int failure = write_text(text); failure != 0) {
      tell_once(told_of_lines_, "--progress", windows_, failure);
    }
  }

  // 0 or the errno.
  int write_text(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(lines_->get(), text.data(), text.size());
      if (written > 0) {
        is_torn_ = text[static_cast<std::size_t>(written) - 1] != '\n';
        text.remove_prefix(static_cast<std::size_t>(written));
      } else if (written == 0 || errno != EINTR) {
        return written == 0 ? EIO : errno;
      }
    }
    return 0;
  }

  static void tell_once(bool& told, std::string_view option, const std::string& path, int failure) {
    if (std::exchange(told, true)) return;
    complain("epoch", str_cat("warning: ", option, ": cannot write ", path, ": ", std::strerror(failure),
                              "; the run goes on without"));
  }

  const loader& train_;
  const std::string metrics_;
  const std::string windows_;
  json about_;
  const std::vector<metric_label> labels_;
  const std::shared_ptr<stages::gpu_activity> gpu_;
  const std::string why_no_gpu_;
  const std::function<int(const std::string&, std::string_view)> write_;
  std::optional<descriptor> lines_;
  loader_stats before_;
  double cpu_s_before_ = cpu_seconds();
  std::mutex waits_mutex_;
  waits waits_;
  bool told_of_metrics_ = false;
  bool is_torn_ = false;  // the last line in the file has no end
  bool told_of_lines_ = false;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;
};

/// Answers GET /metrics at one address, one connection at a time, each within 2 s.
class run_watch::server {
 public:
  server(const loader& train, const tcp::endpoint& at, std::vector<metric_label> labels)
      : train_(train), labels_(std::move(labels)) {
    listen_on(acceptor_, at);
    asio::co_spawn(context_, serve(), asio::bind_cancellation_slot(end_.slot(), [this](std::exception_ptr failed) {
                     if (failed && !ended_) tell(failed);
                   }));
    thread_ = std::thread([this] { context_.run(); });
  }
  server(const server&) = delete;
  server& operator=(const server&) = delete;
  ~server() {
    asio::post(context_, [this] {
      ended_ = true;
      end_.emit(asio::cancellation_type::terminal);
    });
    thread_.join();
  }

  [[nodiscard]] tcp::endpoint at() const { return acceptor_.local_endpoint(); }

 private:
  static constexpr std::chrono::seconds patience{2};
  static constexpr std::size_t request_bytes_max = 8192;

  static void tell(const std::exception_ptr& failed) {
    try {
      std::rethrow_exception(failed);
    } catch (const std::exception& what) {
      complain("epoch",
               str_cat("warning: --metrics-port: nobody answers any more: ", what.what(), "; the run goes on without"));
    }
  }

  asio::awaitable<void> serve() {
    for (;;) {
      asio::steady_timer deadline(context_, patience);
      auto [failed, accepted] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
      if (failed) {
        // No descriptor is free, say: whoever asks waits in the queue until one is.
        co_await deadline.async_wait(asio::use_awaitable);
        continue;
      }
      // Shared with the timer, whose handler may be on its way when the connection has ended.
      const auto connection = std::make_shared<tcp::socket>(std::move(accepted));
      deadline.expires_after(patience);
      deadline.async_wait([connection](const boost::system::error_code& cancelled) {
        boost::system::error_code ignored;
        if (!cancelled) connection->close(ignored);
      });
      try {
        co_await answer(*connection);
      } catch (const std::exception&) {
        if (ended_) throw;
        // Who asked has gone, was too slow, or said too much; or there is no memory: the next one.
      }
      deadline.cancel();
    }
  }

  asio::awaitable<void> answer(tcp::socket& connection) {
    std::string request;
    co_await asio::async_read_until(connection, asio::dynamic_buffer(request, request_bytes_max), "\r\n\r\n",
                                    asio::use_awaitable);
    const std::string line = request.substr(0, request.find("\r\n"));
    const bool is_get = line.starts_with("GET ");
    const bool is_ours = line.starts_with("GET /metrics ") || line.starts_with("GET /metrics?");
    const std::string body = is_ours  ? metrics_of(train_, labels_)
                             : is_get ? std::string("the metrics are at /metrics\n")
                                      : std::string("GET /metrics is all there is\n");
    const std::string reply =
        str_cat("HTTP/1.1 ",
                is_ours  ? "200 OK"
                : is_get ? "404 Not Found"
                         : "405 Method Not Allowed",
                "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nConnection: close\r\nContent-Length: ",
                body.size(), "\r\n\r\n", body);
    co_await asio::async_write(connection, asio::buffer(reply), asio::use_awaitable);
    boost::system::error_code ignored;
    connection.shutdown(tcp::socket::shutdown_send, ignored);
  }

  const loader& train_;
  const std::vector<metric_label> labels_;
  asio::io_context context_{1};
  asio::cancellation_signal end_;  // and `ended_`: the thread of the server
  bool ended_ = false;
  tcp::acceptor acceptor_{context_};
  std::thread thread_;
};

run_watch::run_watch(const loader& train, const run_watch_options& options) {
  if (options.metrics_port) {
    server_ =
        std::make_unique<server>(train, endpoint_of(options.metrics_address, *options.metrics_port), options.labels);
  }
  if (!options.metrics.empty() || !options.windows.empty()) files_ = std::make_unique<files>(train, options);
}

run_watch::~run_watch() = default;

void run_watch::waited(std::uint32_t epoch, std::uint64_t batch, double seconds) {
  if (files_ != nullptr) files_->waited(epoch, batch, seconds);
}

std::uint16_t run_watch::port() const noexcept { return server_ != nullptr ? server_->at().port() : std::uint16_t{0}; }

std::string run_watch::url() const {
  return server_ != nullptr ? str_cat("http://", text_of(server_->at()), "/metrics") : std::string();
}

}  // namespace leat::tools
