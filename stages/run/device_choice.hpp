// Whether batches go to a device, and what of their pictures is made there.
#pragma once

#include "stages/batch/field_model.hpp"

#include <leat/loading.hpp>

#include <memory>
#include <span>
#include <string>

namespace leat::stages {

class transfer;
struct loader_parts;

/// How batches get to where loader_options::device says; a device that is not there is the host, with the reason in its report.
///   throws   error{errc::unsupported} under device_required
[[nodiscard]] std::shared_ptr<transfer> make_transfer(const loader_options& options, const loader_parts& parts);

/// "0000:17:00.0": the device that batches go to. Empty where they go to none, or it does not say.
[[nodiscard]] std::string pci_address_of(const transfer& to);

/// Who makes the last of pictures.
///   throws   error{errc::usage}, error{errc::unsupported}: what loader_options::decode_on or a picture's decoder() insists on cannot be
[[nodiscard]] finished_by finished_where(const loader_options& options, std::span<const field> fields, transfer& to);

/// Adds where pictures are decoded, and where their steps of colour are done.
///   to.device   as the transfer reports it
void add_pictures(loader_stats& to, const loader_options& options, const transfer& by,
                  std::span<const std::unique_ptr<field_program>> programs);

}  // namespace leat::stages
