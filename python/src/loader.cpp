// The loader: epochs for `for`, and what an event loop needs for `async for`.
#include "module.hpp"

#include <leat/error.hpp>
#include <leat/loader_state.hpp>
#include <leat/metrics.hpp>
#include <leat/world.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/eventfd.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <sstream>

namespace pyleat {
namespace {

/// Rings from a thread of leat, which never takes the lock of Python. The thread may ring after the loader has gone.
class bell {
 public:
  bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) throw leat::error(leat::errc::limit, "eventfd: no descriptor is free (ulimit -n)");
  }
  bell(const bell&) = delete;
  bell& operator=(const bell&) = delete;
  ~bell() { ::close(descriptor_); }

  void ring() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
  }
  /// Whether it rang.
  [[nodiscard]] bool answer() noexcept {
    std::uint64_t count = 0;
    return ::read(descriptor_, &count, sizeof count) == sizeof count;
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

class python_loader {
 public:
  python_loader(const leat::dataset& samples, std::vector<leat::field> fields, leat::loader_options options)
      : samples_(samples), fields_(std::move(fields)), options_(std::move(options)) {
    const nb::gil_scoped_release released;
    loader_ = std::make_shared<leat::loader>(samples_, options_, fields_);
  }
  python_loader(const python_loader&) = delete;
  python_loader& operator=(const python_loader&) = delete;
  // Its threads are joined, and a read that hangs may take long.
  ~python_loader() {
    const nb::gil_scoped_release released;
    loader_.reset();
  }

  /// For what any thread may call: it keeps a loader that load_state_dict() replaces meanwhile. With the lock of Python.
  [[nodiscard]] std::shared_ptr<leat::loader> get() const { return loader_; }
  [[nodiscard]] const leat::loader_options& options() const noexcept { return options_; }

  /// A new epoch: what a `break` left of the last one is dropped, as with PyTorch.
  void begin_epoch() {
    const turn mine(*this);
    if (within_epoch_) loader_->skip_epoch();
    within_epoch_ = false;
  }

  /// Waits without the lock of Python, and looks at signals in between.
  std::shared_ptr<leat::batch> next() {
    const turn mine(*this);
    finish_waiting();
    for (;;) {
      std::optional<leat::next_result> got;
      {
        const nb::gil_scoped_release released;
        got.emplace(loader_->next_blocking(patience));
      }
      if (got->status() != leat::next_status::not_ready) return take(*got);
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  /// (whether something came, the batch or None), after a wait without the lock of Python: for a thread that looks whether it is to end.
  std::pair<bool, std::shared_ptr<leat::batch>> next_within_patience() {
    const turn mine(*this);
    finish_waiting();
    std::optional<leat::next_result> got;
    {
      const nb::gil_scoped_release released;
      got.emplace(loader_->next_blocking(patience));
    }
    if (got->status() == leat::next_status::not_ready) return {false, nullptr};
    return {true, take(*got)};
  }

  /// The same, without a wait.
  std::pair<bool, std::shared_ptr<leat::batch>> try_next() {
    const turn mine(*this);
    if (is_waiting_ && !bell_->answer()) return {false, nullptr};
    is_waiting_ = false;
    leat::next_result got = loader_->try_next();
    if (got.status() == leat::next_status::not_ready) return {false, nullptr};
    return {true, take(got)};
  }

  /// A descriptor that is readable once try_next() would give something.
  int descriptor() {
    const turn mine(*this);
    if (!bell_) bell_ = std::make_shared<bell>();
    if (!is_waiting_) {
      is_waiting_ = true;
      loader_->wait([rings = bell_](const std::exception_ptr&) { rings->ring(); });
    }
    return bell_->descriptor();
  }

  nb::dict state_dict(const leat::batch* after) {
    const turn mine(*this);
    const leat::loader_state at = after == nullptr ? loader_->state() : loader_->state_after(*after);
    const std::vector<std::byte> bytes = at.bytes();
    nb::dict made;
    made["epoch"] = at.epoch;
    made["batch"] = at.batch;
    made["seed"] = at.seed;
    made["rank"] = at.rank;
    made["world"] = at.world;
    made["state"] =
        nb::module_::import_("base64").attr("b64encode")(nb::bytes(bytes.data(), bytes.size())).attr("decode")();
    return made;
  }

  void load_state_dict(const nb::dict& given) {
    if (!given.contains("state")) throw nb::key_error("no state of a pyleat.Loader: it has no 'state'");
    std::string bytes;
    try {
      const auto decoded = nb::cast<nb::bytes>(nb::module_::import_("base64").attr("b64decode")(given["state"]));
      bytes.assign(static_cast<const char*>(decoded.data()), decoded.size());
    } catch (const nb::python_error&) {
      throw leat::error(leat::errc::format, "the state_dict: its 'state' is no text that state_dict() has written");
    }
    leat::loader_options options = options_;
    options.resume = leat::loader_state::from_bytes(std::as_bytes(std::span(bytes)), "the state_dict");
    const turn mine(*this);
    std::shared_ptr<leat::loader> resumed;
    {
      // The new one first: a state that is refused leaves this loader as it was.
      const nb::gil_scoped_release released;
      resumed = std::make_shared<leat::loader>(samples_, options, fields_);
    }
    loader_.swap(resumed);
    {
      const nb::gil_scoped_release released;
      resumed.reset();
    }
    options_.resume = options.resume;
    is_waiting_ = false;
    bell_.reset();
    within_epoch_ = false;
  }

 private:
  static constexpr std::chrono::milliseconds patience{50};

  /// Two threads in next() would each take batches of the other's epoch.
  class turn {
   public:
    explicit turn(python_loader& of) : of_(of) {
      if (of_.is_busy_.exchange(true)) {
        throw leat::error(leat::errc::usage,
                          "another thread is in next() of this loader; give each thread a loader of its own");
      }
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() { of_.is_busy_ = false; }

   private:
    python_loader& of_;
  };

  std::shared_ptr<leat::batch> take(leat::next_result& got) {
    within_epoch_ = got.status() == leat::next_status::batch;
    return within_epoch_ ? std::make_shared<leat::batch>(*std::move(got)) : nullptr;
  }

  // A task that was cancelled has left its wait behind, which ends with the next batch.
  void finish_waiting() {
    while (is_waiting_ && !bell_->answer()) {
      {
        const nb::gil_scoped_release released;
        ::usleep(1000);
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    is_waiting_ = false;
  }

  leat::dataset samples_;
  std::vector<leat::field> fields_;
  leat::loader_options options_;
  std::shared_ptr<leat::loader> loader_;
  std::shared_ptr<bell> bell_;
  std::atomic<bool> is_busy_ = false;
  bool is_waiting_ = false;
  bool within_epoch_ = false;
};

}  // namespace

void add_loader(nb::module_& to) {
  using marked = leat::loader::marked;
  nb::class_<marked>(to, "Mark", "A span of the timeline, until the end of its `with`: Loader.mark().")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](marked& of, const nb::args&) { of.end(); });

  nb::class_<python_loader>(to, "Loader", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](python_loader* self, nb::handle source, const nb::args& fields, const nb::kwargs& options) {
            const leat::dataset samples = to_dataset(source);
            if (fields.size() == 0) throw nb::type_error("Loader() needs a field: Loader(source, Image(), Label())");
            std::vector<leat::field> all;
            for (const nb::handle each : fields) all.push_back(to_field(each));
            leat::loader_options how;
            // What is said is not looked up: a launcher may set half of it.
            if (!options.contains("world")) how.world = leat::world::from_environment();
            set_options(how, options);
            new (self) python_loader(samples, std::move(all), std::move(how));
          },
          nb::arg("source").none(), nb::arg("fields"), nb::arg("options"))
      .def("begin_epoch", &python_loader::begin_epoch)
      .def("next", &python_loader::next, "The next batch; None at the end of an epoch.")
      .def("_try_next", &python_loader::try_next)
      .def("_next_within_patience", &python_loader::next_within_patience)
      .def("_descriptor", &python_loader::descriptor)
      .def("__len__", [](python_loader& of) { return of.get()->batches(); })
      .def_prop_ro("samples", [](python_loader& of) { return of.get()->samples(); })
      .def_prop_ro(
          "rows", [](python_loader& of) { return of.get()->rows(); }, "Rows of an epoch, of this rank.")
      .def_prop_ro("finished", [](python_loader& of) { return of.get()->finished(); })
      .def(
          "stop",
          [](python_loader& of) {
            const std::shared_ptr<leat::loader> held = of.get();
            const nb::gil_scoped_release released;
            held->stop();
          },
          "Ends the loader. Batches that are held stay valid.")
      .def(
          "batch_at",
          [](python_loader& of, std::uint32_t epoch, std::uint64_t index) {
            const std::shared_ptr<leat::loader> held = of.get();
            const nb::gil_scoped_release released;
            return std::make_shared<leat::batch>(held->batch_at(epoch, index));
          },
          nb::arg("epoch"), nb::arg("index"),
          "A batch of any epoch, at any time and from any thread: the rows and bytes that next() gives, on the host, "
          "with "
          "names and digests.")
      .def(
          "mark", [](python_loader& of, const std::string& name) { return of.get()->mark(name); }, nb::arg("name"),
          "A part of your own work in the timeline: with train.mark('forward'): ...")
      .def(
          "write_timeline",
          [](python_loader& of, nb::handle path) {
            const std::string to_file = to_path(path);
            const std::shared_ptr<leat::loader> held = of.get();
            const nb::gil_scoped_release released;
            held->write_timeline(to_file);
          },
          nb::arg("path"), "The latest spans, for ui.perfetto.dev. Needs timeline_bytes=.")
      .def(
          "reads_under_way",
          [](python_loader& of) {
            const std::shared_ptr<leat::loader> held = of.get();
            const nb::gil_scoped_release released;
            return held->reads_under_way();
          },
          "The reads that are under way now, the oldest first, each as 'file at offset n'.")
      .def("state_dict", &python_loader::state_dict, nb::arg("after").none() = nb::none(),
           "The place after the batch that was handed out last, or after this one, as numbers and strings.")
      .def("load_state_dict", &python_loader::load_state_dict, nb::arg("state"),
           "Goes on there. UsageError names what differs, if this loader makes other batches.")
      .def(
          "plan", [](python_loader& of) { return of.get()->plan().to_string(); }, "What the memory is for, as a table.")
      .def(
          "verdict", [](python_loader& of) { return of.get()->verdict_of_run().to_string(); }, "Who waited for whom.")
      .def(
          "metrics",
          [](python_loader& of) {
            std::ostringstream text;
            leat::write_metrics(text, of.get()->stats());
            return text.str();
          },
          "All counters, as Prometheus reads them.")
      .def("stats", [](python_loader& of) {
        const leat::loader_stats now = of.get()->stats();
        nb::dict made;
        made["planned"] = now.planned;
        made["samples"] = now.samples;
        made["quarantined"] = now.quarantined;
        made["substituted"] = now.substituted;
        made["batches"] = now.batches;
        made["epochs_finished"] = now.epochs_finished;
        made["bytes_read"] = now.bytes_read;
        made["bytes_delivered"] = now.bytes_delivered;
        made["batches_ready"] = now.batches_ready;
        made["batches_out"] = now.batches_out;
        made["next_wait_s"] = now.next.wait_s;
        made["placement"] = now.placement.use;
        made["placement_why"] = now.placement.why;
        made["pinned"] = now.device.pinned.use;
        made["pinned_why"] = now.device.pinned.why;
        made["device_cache"] = now.device.cache.use;
        made["device_cache_why"] = now.device.cache.why;
        made["rows_from_cache"] = now.device.rows_from_cache;
        made["bottleneck"] = std::string(leat::name(now.verdict.who));
        return made;
      });
}

}  // namespace pyleat
