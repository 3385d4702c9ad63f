// loader_options from keywords: one line each.
#include "module.hpp"

#include <leat/world.hpp>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace pyleat {
namespace {

using options = leat::loader_options;

// What fits the option: negative and huge numbers do not.
constexpr const char* whole = "a whole number from 0 on that fits";
constexpr std::array<std::string_view, 3> choices = {"automatic", "on", "off"};

leat::device to_device(nb::handle value) {
  std::string text;
  if (!nb::try_cast(value, text)) text = nb::str(value).c_str();  // a torch.device
  if (text == "cpu" || text == "host") return leat::host;
  if (text == "cuda") return leat::cuda(0);
  if (text.starts_with("cuda:") && text.size() > 5 && text.size() < 9 &&
      text.find_first_not_of("0123456789", 5) == std::string::npos) {
    return leat::cuda(std::stoi(text.substr(5)));
  }
  throw nb::value_error(("device= is 'cpu', 'cuda' or 'cuda:0', and not '" + text + "'").c_str());
}

leat::numa to_numa(nb::handle value) {
  std::string text;
  if (!nb::try_cast(value, text)) {
    const int node = nb::cast<int>(value);
    if (node < 0) throw nb::cast_error();
    return leat::numa_node(node);
  }
  constexpr std::array<std::string_view, 2> words = {"automatic", "off"};
  constexpr std::array<leat::numa, 2> meant = {leat::numa::automatic, leat::numa::off};
  return meant[to_enum<std::size_t>(value, "numa= is the number of a node, or", words)];
}

constexpr keyword<options> keywords[] = {
    {"batch_size", whole, [](options& to, nb::handle value) { to.batch_size = nb::cast<std::uint32_t>(value); }},
    {"global_batch_size", whole,
     [](options& to, nb::handle value) { to.global_batch_size = nb::cast<std::uint32_t>(value); }},
    {"seed", whole, [](options& to, nb::handle value) { to.seed = nb::cast<std::uint64_t>(value); }},
    {"shuffle", "a bool", [](options& to, nb::handle value) { to.shuffle = nb::cast<bool>(value); }},
    {"drop_last", "a bool", [](options& to, nb::handle value) { to.drop_last = nb::cast<bool>(value); }},
    {"last", "'keep', 'drop' or 'pad'",
     [](options& to, nb::handle value) {
       to.last = to_enum<leat::last_batch>(value, "last=", std::array<std::string_view, 3>{"keep", "drop", "pad"});
     }},
    {"epochs", whole, [](options& to, nb::handle value) { to.epochs = nb::cast<std::uint32_t>(value); }},
    {"batches_max", whole, [](options& to, nb::handle value) { to.batches_max = nb::cast<std::uint64_t>(value); }},
    {"order", "an Order", [](options& to, nb::handle value) { to.order = nb::cast<leat::order>(value); }},
    {"shuffle_blocks", whole,
     [](options& to, nb::handle value) { to.shuffle_blocks = nb::cast<std::uint32_t>(value); }},
    {"world", "(rank, size)",
     [](options& to, nb::handle value) {
       const auto [rank, size] = nb::cast<std::pair<std::uint32_t, std::uint32_t>>(value);
       to.world = {.rank = rank, .size = size};
     }},
    {"decode_threads", whole,
     [](options& to, nb::handle value) { to.decode_threads = nb::cast<std::uint32_t>(value); }},
    {"cores_max", whole, [](options& to, nb::handle value) { to.cores_max = nb::cast<std::uint32_t>(value); }},
    {"tune", "'off' or 'on'",
     [](options& to, nb::handle value) {
       to.tune = to_enum<leat::tuning>(value, "tune=", std::array<std::string_view, 2>{"off", "on"});
     }},
    {"host_bytes_max", "bytes",
     [](options& to, nb::handle value) { to.host_bytes_max = nb::cast<std::size_t>(value); }},
    {"prefetch_batches", whole,
     [](options& to, nb::handle value) { to.prefetch_batches = nb::cast<std::uint32_t>(value); }},
    {"numa", "'automatic', 'off' or the number of a node",
     [](options& to, nb::handle value) { to.numa = to_numa(value); }},
    {"held_patience", "seconds", [](options& to, nb::handle value) { to.held_patience = to_duration(value); }},
    {"timeline_bytes", "bytes",
     [](options& to, nb::handle value) { to.timeline.bytes = nb::cast<std::size_t>(value); }},
    {"timeline_on_stall", "seconds", [](options& to, nb::handle value) { to.timeline.on_stall = to_duration(value); }},
    {"timeline_directory", "a path", [](options& to, nb::handle value) { to.timeline.directory = to_path(value); }},
    {"backend", "'automatic', 'io_uring' or 'preadv'",
     [](options& to, nb::handle value) {
       to.reader.backend = to_enum<leat::read_backend>(
           value, "backend=", std::array<std::string_view, 3>{"automatic", "io_uring", "preadv"});
     }},
    {"direct", "'automatic', 'on' or 'off'",
     [](options& to, nb::handle value) { to.reader.direct = to_enum<leat::choice>(value, "direct=", choices); }},
    {"queue_depth", whole,
     [](options& to, nb::handle value) { to.reader.queue_depth = nb::cast<std::uint32_t>(value); }},
    {"io_threads", whole, [](options& to, nb::handle value) { to.reader.io_threads = nb::cast<std::uint32_t>(value); }},
    {"read_timeout", "seconds", [](options& to, nb::handle value) { to.reader.read_timeout = to_duration(value); }},
    {"on_corrupt", "'raise', 'skip' or 'substitute'",
     [](options& to, nb::handle value) {
       to.on_corrupt = to_enum<leat::corrupt_policy>(
           value, "on_corrupt=", std::array<std::string_view, 3>{"raise", "skip", "substitute"});
     }},
    {"corrupt_max", "a count (int) or a share (float)",
     [](options& to, nb::handle value) {
       if (nb::isinstance<nb::float_>(value)) {
         to.corrupt_max = {.share = nb::cast<double>(value)};
       } else {
         to.corrupt_max = {.count = nb::cast<std::uint64_t>(value)};
       }
     }},
    {"unreadable_max", whole,
     [](options& to, nb::handle value) { to.unreadable_max = nb::cast<std::uint64_t>(value); }},
    {"journal", "a path", [](options& to, nb::handle value) { to.journal = to_path(value); }},
    {"receipts", "a path", [](options& to, nb::handle value) { to.receipts = to_path(value); }},
    {"record", "a path", [](options& to, nb::handle value) { to.record = to_path(value); }},
    {"mix", "mixup(), cutmix() or mosaic()",
     [](options& to, nb::handle value) { to.mix = nb::cast<leat::batch_mix>(value); }},
    {"digests", "a bool", [](options& to, nb::handle value) { to.digests = nb::cast<bool>(value); }},
    {"names", "a bool", [](options& to, nb::handle value) { to.names = nb::cast<bool>(value); }},
    {"device", "'cpu' or 'cuda:0'", [](options& to, nb::handle value) { to.device = to_device(value); }},
    {"device_required", "a bool", [](options& to, nb::handle value) { to.device_required = nb::cast<bool>(value); }},
    {"device_batches", whole,
     [](options& to, nb::handle value) { to.device_batches = nb::cast<std::uint32_t>(value); }},
    {"device_bytes_max", "bytes",
     [](options& to, nb::handle value) { to.device_bytes_max = nb::cast<std::size_t>(value); }},
    {"device_cache", "bytes", [](options& to, nb::handle value) { to.device_cache = nb::cast<std::size_t>(value); }},
    {"finish_on_device", "a bool", [](options& to, nb::handle value) { to.finish_on_device = nb::cast<bool>(value); }},
    {"pinned", "a bool", [](options& to, nb::handle value) { to.pinned = nb::cast<bool>(value); }},
    {"decode_on", "'host', 'device' or 'automatic'",
     [](options& to, nb::handle value) {
       to.decode_on = to_enum<leat::decode_on>(
           value, "decode_on=", std::array<std::string_view, 3>{"host", "device", "automatic"});
     }},
};

// What PyTorch's DataLoader calls it, and others; and what is no option here.
constexpr std::pair<std::string_view, std::string_view> other_words[] = {
    {"num_workers", "decode_threads"},
    {"prefetch_factor", "prefetch_batches"},
    {"sampler", "order"},
    {"pin_memory", "pinned"},
    {"persistent_workers", "nothing: threads live as long as the loader"},
    {"generator", "seed"},
    {"timeout", "read_timeout"},
    {"collate_fn", "nothing: fields collate"},
    {"worker_init_fn", "nothing: there are no processes"},
    {"transform", "nothing: the steps of a field are its methods, Image().random_flip()"},
    {"rank", "world=(rank, size)"},
    {"world_size", "world=(rank, size)"},
    {"resume", "load_state_dict()"}};

}  // namespace

void set_options(options& to, const nb::kwargs& given) {
  set_keywords<options>("Loader()", to, given, keywords, [](const std::string& name) {
    for (const auto& [theirs, ours] : other_words) {
      const bool is_option = ours.find_first_of(" (") == std::string_view::npos;
      if (theirs == name) return "; here it is " + std::string(ours) + (is_option ? "=" : "");
    }
    return std::string();
  });
}

}  // namespace pyleat
