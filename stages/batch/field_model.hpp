// What a field becomes inside the loader.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_program.hpp"
#include "stages/batch/row_counts.hpp"

#include <leat/description.hpp>
#include <leat/field.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leat::stages {

/// Whether the host makes a row to its end, or leaves what it can to an operation on the device; decoding, too, or not.
enum class finished_by : std::uint8_t { host, device, device_decoding };

/// A field as the user wrote it.
class field_model {
 public:
  field_model() = default;
  field_model(const field_model&) = delete;
  field_model& operator=(const field_model&) = delete;
  virtual ~field_model() = default;

  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  /// Whether the device has to decode JPEG files for it: image::decoder(). A program that is bound to be finished_by::host makes no rows.
  [[nodiscard]] virtual bool needs_nvjpeg() const noexcept { return false; }
  /// Appends its programs: one, or several that stand one behind the other, since it reads several members of a sample.
  /// Throws error{errc::usage} naming the dataset's fields where it has none that fits.
  ///   finished   a device may be left to finish what it can; the bytes are the same
  virtual void bind(const datasets::dataset_model& dataset, finished_by finished,
                    std::vector<std::unique_ptr<field_program>>& out) const = 0;
  /// Names what decides the bytes of its rows, but for the dataset's.
  ///   default   nothing has a name: a run with it can neither be saved nor resumed
  virtual void describe(description& out) const { out.add_unnamed(name(), "override field_model::describe()"); }
  /// How many elements the row of each sample has, where only this field can tell. May read all samples, once for each dataset. Blocks.
  ///   samples   as bind() has it; shared, since what was counted is kept as long as they are there
  ///   throws    error{errc::io}
  ///   default   null: it cannot
  [[nodiscard]] virtual std::shared_ptr<const row_counts> counts(
      const std::shared_ptr<const datasets::dataset_model>& /*samples*/, const counting& /*how*/) const {
    return nullptr;
  }
};

/// A field that is one program.
class one_program_field : public field_model {
 public:
  void bind(const datasets::dataset_model& dataset, finished_by finished,
            std::vector<std::unique_ptr<field_program>>& out) const final {
    out.push_back(program(dataset, finished));
  }

 protected:
  /// As bind().
  [[nodiscard]] virtual std::unique_ptr<field_program> program(const datasets::dataset_model& dataset,
                                                               finished_by finished) const = 0;
};

}  // namespace leat::stages
