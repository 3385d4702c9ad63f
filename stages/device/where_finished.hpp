// Which part of a picture's way the host goes, and which the device.
#pragma once

#include "stages/field_model.hpp"
#include "stages/transfer.hpp"

#include <leat/field.hpp>
#include <leat/loader.hpp>
#include <leat/stats.hpp>

#include <memory>
#include <span>

namespace leat::stages {

/// Who makes the last of pictures.
///   throws   error{errc::usage}, error{errc::unsupported}: what loader_options::decode_on or a picture's decoder() insists on cannot be
[[nodiscard]] finished_by finished_where(const loader_options& options, std::span<const field> fields, transfer& to);

/// Adds where pictures are decoded, and where their steps of colour are done.
///   to.device   as the transfer reports it
void add_where_finished(loader_stats& to, const loader_options& options, const transfer& by,
                        std::span<const std::unique_ptr<field_program>> programs);

}  // namespace leat::stages
