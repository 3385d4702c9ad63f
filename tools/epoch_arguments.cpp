#include "tools/epoch_arguments.hpp"

#include "base/text.hpp"
#include "tools/arguments.hpp"
#include "tools/sample_list.hpp"
#include "tools/where_option.hpp"

#include <leat/error.hpp>
#include <leat/mosaic.hpp>
#include <leat/open_arrays.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace leat::tools {
namespace {

batch_mix mix_of(const epoch_arguments& arguments) {
  if (arguments.mixup) return mixup(*arguments.mixup);
  if (arguments.cutmix) return cutmix(*arguments.cutmix);
  if (arguments.mosaic) return mosaic(*arguments.mosaic);
  return {};
}

// "100" is a count, "1%" and "0.5%" a share.
corrupt_bound parse_corrupt_max(const std::string& option, const std::string& given) {
  constexpr std::string_view wanted = "a number of samples, or a share of an epoch's, as 1%";
  if (!given.ends_with('%')) {
    std::uint64_t count = 0;
    const auto [end, failure] = std::from_chars(given.data(), given.data() + given.size(), count);
    if (failure != std::errc{} || end != given.data() + given.size()) refuse(option, given, wanted);
    return {.count = count};
  }
  double percent = -1;
  const char* const sign = given.data() + given.size() - 1;
  const auto [end, failure] = std::from_chars(given.data(), sign, percent, std::chars_format::fixed);
  if (failure != std::errc{} || end != sign || !(percent >= 0 && percent <= 100)) refuse(option, given, wanted);
  return {.share = percent / 100};
}

// "auto", "off", or the number of a node.
numa parse_numa(const std::string& option, const std::string& given) {
  if (given == "auto") return numa::automatic;
  if (given == "off") return numa::off;
  int node = -1;
  const auto [end, failure] = std::from_chars(given.data(), given.data() + given.size(), node);
  if (failure != std::errc{} || end != given.data() + given.size() || node < 0) {
    refuse(option, given, "auto, off or the number of a node");
  }
  return numa_node(node);
}

}  // namespace

device device_of(const std::string& text) {
  if (text == "host") return host;
  if (text == "auto") return cuda(0);
  int index = -1;
  const std::string_view number = std::string_view(text).substr(std::min<std::size_t>(text.size(), 5));
  const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (!text.starts_with("cuda:") || failure != std::errc{} || end != number.data() + number.size() || index < 0) {
    throw error(errc::usage, str_cat("--device '", text, "': give auto, host or cuda:N, as cuda:0"));
  }
  return cuda(index);
}

source_kind kind_of_sources(const epoch_arguments& arguments) {
  return {.tokens = arguments.windows.files(),
          .arrays = arguments.arrays,
          .opening = arguments.opening,
          .one_by_one = !arguments.choice.mixture.empty(),
          .images = arguments.pictures.images};
}

dataset samples_of_run(const chosen_fields& fields, const epoch_arguments& arguments) {
  const dataset all = with_columns_for(samples_for_order(arguments.choice, fields), arguments.where);
  if (arguments.exclude.empty()) return samples_where(all, arguments.where, arguments.opening.index);
  if (arguments.on_corrupt == corrupt_policy::raise) {
    throw error(errc::usage,
                "--exclude has samples treated as corrupt ones, and --on-corrupt raise ends the run at the first; give "
                "--on-corrupt substitute, or skip");
  }
  // The parts of a mixture are opened one by one.
  const named_by how = arguments.choice.mixture.empty() ? named_by::digest : named_by::count;
  const auto listed = [&](const dataset& of) { return read_sample_list("--exclude", arguments.exclude, of, how); };
  if (!arguments.where.empty() && !is_list_of(arguments.exclude, fields.samples)) {
    const dataset checked = samples_where(fields.samples, arguments.where, arguments.opening.index);
    if (is_list_of(arguments.exclude, checked))
      return samples_where(all, arguments.where, arguments.opening.index).exclude(listed(checked));
  }
  return samples_where(all.exclude(listed(fields.samples)), arguments.where, arguments.opening.index);
}

// The latest 262,144 spans: minutes of photographs.
constexpr std::size_t trace_bytes = std::size_t{8} << 20;

loader_options loader_options_of(const epoch_arguments& arguments) {
  loader_options options{.global_batch_size = arguments.global_batch_size,
                         .epochs = arguments.epochs,
                         .batches_max = arguments.limit,
                         .world = arguments.here.world,
                         .decode_threads = arguments.threads,
                         .cores_max = arguments.cores_max,
                         .tune = arguments.tune,
                         .host_bytes_max = arguments.host_bytes_max,
                         .prefetch_batches = arguments.prefetch_batches,
                         .numa = arguments.numa,
                         .timeline = {.bytes = arguments.trace.empty() ? 0 : trace_bytes},
                         .reader = arguments.reader,
                         .on_corrupt = arguments.on_corrupt,
                         .corrupt_max = arguments.corrupt_max,
                         .unreadable_max = arguments.unreadable_max,
                         .journal = arguments.journal,
                         .receipts = arguments.receipts,
                         .record = arguments.record,
                         .mix = mix_of(arguments),
                         .digests = arguments.digests,
                         .names = false,
                         .device = device_of(arguments.device),
                         .device_required = arguments.device != "auto",
                         .device_cache = arguments.device_cache,
                         .decode_on = arguments.decode_on};
  set_order(options, arguments.order, arguments.pictures, arguments.choice, arguments.sources.size());
  return options;
}

void add_loading_options(CLI::App& app, epoch_arguments& arguments) {
  add_sources(app, arguments.sources,
              "; loaded are the fields that more than half of the samples have; a few members that belong to no such "
              "sample are "
              "left out, with a warning")
      ->group("What to load");
  app.option_defaults()->group("What to load");
  add_opening_options(app, arguments.opening);
  add_where(app, arguments.where);

  app.option_defaults()->group("What a batch holds");
  add_order_options(app, arguments.order);
  add_number(app, "--epochs", arguments.epochs, 1, "how often all samples are loaded (1)");
  add_number(app, "--limit", arguments.limit, 1, "at most so many batches of each epoch");
  add_order_choice(app, arguments.choice);
  add_number(app, "--global-batch-size", arguments.global_batch_size, 1,
             "of all ranks together (--batch-size times them)");
  add_picture_options(app, arguments.pictures);
  add_number(app, "--views", arguments.pictures.views, 1,
             "so many views of each picture in one output, each drawn by itself (the picture alone)", 256);
  add_clip_option(app, arguments.pictures);
  add_choice(app, "--jpeg-decoder", arguments.pictures.decoder,
             {{"turbo", jpeg_decoder::turbo}, {"nvjpeg", jpeg_decoder::nvjpeg}},
             "nvjpeg: NVIDIA's, on --device; other pixels, and no digests (turbo)");
  CLI::Option* const mixup =
      app.add_option("--mixup", arguments.mixup, "mix each picture with the next one, by Beta(ALPHA, ALPHA)")
          ->type_name("ALPHA");
  CLI::Option* const cutmix =
      app.add_option("--cutmix", arguments.cutmix, "a box of the next picture in each, by Beta(ALPHA, ALPHA)")
          ->type_name("ALPHA")
          ->excludes(mixup);
  app.add_option("--mosaic", arguments.mosaic, "this share of the rows: four pictures around a drawn centre")
      ->type_name("SHARE")
      ->excludes(mixup)
      ->excludes(cutmix);

  app.option_defaults()->group("Tokens and arrays");
  add_token_output_option(app, arguments.windows, add_window_options(app, arguments.windows));
  add_choice(
      app, "--arrays", arguments.arrays,
      {{"rows", std::optional(npy_options{.samples = npy_options::sample::row})},
       {"files", std::optional(npy_options{.samples = npy_options::sample::file})}},
      "the sources are .npy files: their rows are the samples, or each file is one (rows of one file, else files)");

  app.option_defaults()->group("How it is loaded");
  add_number(app, "--threads", arguments.threads, 1, "that decode (one per core, as far as the budget goes)", 1024);
  add_number(app, "--cores-max", arguments.cores_max, 1, "threads that read and decode, at most (as --threads says)");
  add_choice(app, "--tune", arguments.tune, {{"on", tuning::on}, {"off", tuning::off}},
             "on: find out while it runs how many threads, reads and batches it takes (off)");
  add_bytes(app, "--host-bytes-max", arguments.host_bytes_max,
            "memory for reads, decoding and batches (512MiB, or half of what there is)");
  add_number(app, "--prefetch-batches", arguments.prefetch_batches, 1,
             "under way or ready beside the trainer's (8, or what the memory allows)");
  add_number(app, "--io-threads", arguments.reader.io_threads, 1,
             "that read, each with a ring (1; up to 4 where a GPU decodes photo packs)", 64);
  add_number(app, "--queue-depth", arguments.reader.queue_depth, 1, "reads in flight per I/O thread (by size)", 4096);
  add_choice(
      app, "--reader", arguments.reader.backend,
      {{"auto", read_backend::automatic}, {"io_uring", read_backend::io_uring}, {"preadv", read_backend::preadv}},
      "auto: io_uring where the kernel allows it");
  add_choice(app, "--direct", arguments.reader.direct,
             {{"auto", choice::automatic}, {"on", choice::on}, {"off", choice::off}},
             "O_DIRECT; auto: unless an epoch fits in half of the memory available");
  app.add_option_function<std::string>(
         "--numa", [&arguments](const std::string& given) { arguments.numa = parse_numa("--numa", given); },
         "the NUMA node of threads and memory; auto: that of the GPU, else of the drive, where there are several "
         "(auto)")
      ->type_name("auto|off|N");
  add_text(app, "--device", arguments.device, "WHERE",
           "host, cuda:N or, that or the host, auto: where batches go (host)");
  add_bytes(
      app, "--device-cache", arguments.device_cache,
      "memory of --device for rows that are the same in every epoch, and for photo packs: they are loaded once (0)");
  add_choice(app, "--decode-on", arguments.decode_on,
             {{"host", decode_on::host}, {"device", decode_on::device}, {"auto", decode_on::automatic}},
             "photo packs; device: that of --device; auto: that, or the host where there is none (host)");

  app.option_defaults()->group("Many processes");
  add_rank_options(app, arguments.ranks);

  app.option_defaults()->group("Corrupt samples");
  add_choice(
      app, "--on-corrupt", arguments.on_corrupt,
      {{"raise", corrupt_policy::raise}, {"skip", corrupt_policy::skip}, {"substitute", corrupt_policy::substitute}},
      "end there, leave the row out, or put another sample into it (raise); a run that delivers no sample fails");
  app.add_option_function<std::string>(
         "--corrupt-max",
         [&arguments](const std::string& given) { arguments.corrupt_max = parse_corrupt_max("--corrupt-max", given); },
         "the most of an epoch that may be left out or replaced: 100, or 1% (all, as long as some are delivered)")
      ->type_name("N|P%");
  add_text(
      app, "--exclude", arguments.exclude, "FILE",
      "samples that are never delivered, a number a line, as leat check --ids writes them: treated as corrupt, all "
      "other rows stay as they are");
  add_number(app, "--unreadable-max", arguments.unreadable_max, 0,
             "the most of an epoch whose file is gone or cannot be read (16)");
}

}  // namespace leat::tools
