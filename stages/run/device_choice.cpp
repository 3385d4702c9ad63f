#include "stages/run/device_choice.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_transfer.hpp"
#include "stages/device/open_device.hpp"
#include "stages/device/pinned_transfer.hpp"
#include "stages/run/loader_parts.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

// Throws error{errc::usage} or error{errc::unsupported} where nvJPEG was asked for and cannot decode: nothing takes its place.
void check_nvjpeg(const loader_options& options, std::span<const field> fields, transfer& to) {
  const auto wanted =
      std::find_if(fields.begin(), fields.end(), [](const field& each) { return each.model().needs_nvjpeg(); });
  if (wanted == fields.end()) return;
  const std::string& name = wanted->model().name();
  if (!to.runs_operations()) {
    const bool asked_for = options.device.type == device::kind::host;
    throw error(
        errc::unsupported,
        str_cat("image '", name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"), " decodes on a GPU: ",
                asked_for ? str_cat(spelled(option_id::device), " is the host; give it a GPU") : to.report().use.why,
                "; ", spelled(option_id::jpeg_decoder, "turbo"),
                " decodes on the host, to pixels that differ slightly"),
        option_id::jpeg_decoder);
  }
  if (!options.finish_on_device) {
    throw error(errc::usage,
                str_cat("image '", name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"), " needs ",
                        spelled(option_id::finish_on_device)),
                option_id::finish_on_device);
  }
  if (options.digests) {
    const std::string remedy = options.receipts.empty() ? str_cat("give ", spelled(option_id::digests, "false"))
                                                        : "leave out the receipts, which are made of digests";
    throw error(errc::usage,
                str_cat("image '", name, "': digests are made on the host, which has no pixels of ",
                        spelled(option_id::jpeg_decoder, "nvjpeg"), "; ", remedy),
                option_id::digests);
  }
  if (const std::string why_not = to.prepare_jpegs(); !why_not.empty()) {
    throw error(errc::unsupported,
                str_cat("image '", name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"),
                        " cannot decode here: ", why_not, "; ", spelled(option_id::jpeg_decoder, "turbo"),
                        " decodes on the host, to pixels that differ slightly"),
                option_id::jpeg_decoder);
  }
}

// Adds where photo packs are decoded.
void add_photos(device_report& to, const loader_options& options, const transfer& by,
                std::span<const std::unique_ptr<field_program>> programs) {
  to.photos = {"host", ""};
  if (options.decode_on == decode_on::host) {
    to.photos.why = "asked for";
  } else if (!by.runs_operations()) {
    to.photos.why = "batches stay on the host";
  } else if (!options.finish_on_device) {
    to.photos.why = "pictures are finished on the host";
  } else {
    to.photos.why = "no picture that a device can decode is asked for";
  }
  for (const auto& program : programs) {
    const std::optional<decodes_left> left = program->decodes_left_to_device();
    if (!left) continue;
    if (left->packs) to.photos = {to.use.use, ""};
    to.jpegs_decoded += left->jpegs_to_device;
    to.jpegs_on_host += left->jpegs_to_host;
    to.photos_decoded += left->packs_to_device;
    to.photos_on_host += left->packs_to_host;
  }
}

// Adds where steps of colour are done.
void add_passes(device_report& to, std::span<const std::unique_ptr<field_program>> programs) {
  to.passes = {"host", "no steps of colour are asked for"};
  bool any = false;
  for (const auto& program : programs) {
    const std::optional<passes_left> left = program->passes_left_to_device();
    if (!left) continue;
    if (!std::exchange(any, true)) to.passes.why.clear();
    to.passes_on_device += left->to_device;
    to.passes_on_host += left->to_host;
    if (left->to_host != 0) to.passes.why = left->why_host;
  }
  if (to.passes_on_device != 0) to.passes.use = to.use.use;
}

}  // namespace

std::shared_ptr<transfer> make_transfer(const loader_options& options, const loader_parts& parts) {
  const bool pins_host = options.pinned && options.device.type == device::kind::host;
  const auto on_device = [&](std::shared_ptr<device_calls> calls) -> std::shared_ptr<transfer> {
    if (pins_host) return std::make_shared<pinned_transfer>(std::move(calls));
    return std::make_shared<device_transfer>(
        std::move(calls),
        device_transfer_options{.batches = options.device_batches, .bytes_max = options.device_bytes_max});
  };
  if (parts.transfer != nullptr) return parts.transfer;
  if (parts.device_calls != nullptr) return on_device(parts.device_calls);
  if (options.device.type == device::kind::host && !pins_host) return std::make_shared<host_transfer>();
  opened_device opened = pins_host ? open_for_pinning() : open_device(options.device);
  if (opened.calls == nullptr && pins_host) {
    return std::make_shared<host_transfer>(std::string(), std::move(opened.why_not));
  }
  if (opened.calls == nullptr && options.device_required) {
    throw error(errc::unsupported,
                str_cat("batches cannot go to cuda:", options.device.index, ": ", opened.why_not, "; with ",
                        spelled(option_id::device_required, "false"), " they stay on the host"),
                option_id::device_required);
  }
  if (opened.calls == nullptr) return std::make_shared<host_transfer>(std::move(opened.why_not));
  return on_device(std::move(opened.calls));
}

std::string pci_address_of(const transfer& to) {
  const auto* const device = dynamic_cast<const device_transfer*>(&to);
  return device == nullptr ? std::string() : device->pci_address();
}

finished_by finished_where(const loader_options& options, std::span<const field> fields, transfer& to) {
  check_nvjpeg(options, fields, to);
  const bool has_device = to.runs_operations();
  if (options.decode_on == decode_on::device && !has_device) {
    const bool asked_for = options.device.type == device::kind::host;
    throw error(errc::unsupported,
                str_cat("photo packs cannot be decoded on a device: ",
                        asked_for ? str_cat(spelled(option_id::device), " is the host") : to.report().use.why,
                        "; with ", spelled(option_id::decode_on, "automatic"), " they are decoded on the host then"),
                option_id::decode_on);
  }
  if (options.decode_on == decode_on::device && !options.finish_on_device) {
    throw error(errc::usage,
                str_cat("photo packs that are decoded on a device are finished there: ",
                        spelled(option_id::decode_on, "device"), " needs ", spelled(option_id::finish_on_device)),
                option_id::finish_on_device);
  }
  if (!has_device || !options.finish_on_device) return finished_by::host;
  return options.decode_on == decode_on::host ? finished_by::device : finished_by::device_decoding;
}

void add_pictures(loader_stats& to, const loader_options& options, const transfer& by,
                  std::span<const std::unique_ptr<field_program>> programs) {
  to.photo_packs_recoded =
      std::any_of(programs.begin(), programs.end(), [](const auto& program) { return program->facts().recodes_packs; });
  add_photos(to.device, options, by, programs);
  if (to.device.cache.use.empty()) {
    to.device.cache = {"off", options.device_cache == 0 ? "not asked for" : "batches stay on the host"};
  }
  add_passes(to.device, programs);
}

}  // namespace leat::stages
