// bytes and text: a member's bytes as they are.
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/copy_row.hpp"

#include <leat/field.hpp>

#include <optional>

namespace leat {
namespace stages {
namespace {

class bytes_program final : public field_program {
 public:
  bytes_program(std::string name, std::vector<std::uint16_t> fields, bool must_be_text, std::size_t bytes_max)
      : field_program({{.name = std::move(name), .type = dtype::u8, .row_shape = {}, .ragged = true}},
                      std::move(fields), {.encoded_bytes_max = bytes_max}),
        must_be_text_(must_be_text),
        bytes_max_(bytes_max) {}

  std::size_t bytes_copied(std::size_t encoded_bytes) const override { return encoded_bytes; }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    row_target& row = rows.front();
    if (input.encoded.size() > bytes_max_) return corrupt(too_many_bytes(input.encoded.size(), bytes_max_));
    if (input.encoded.size() > row.bytes.size()) {
      return corrupt(
          str_cat("holds ", input.encoded.size(), " bytes where the dataset promised at most ", row.bytes.size()));
    }
    if (must_be_text_) {
      if (const auto wrong = first_invalid_utf8(input.encoded)) {
        return corrupt(str_cat("is not UTF-8 at byte ", *wrong));
      }
    }
    if (!copy_row(input.encoded, row.bytes.data(), input.stop)) return cancelled();
    row.used = input.encoded.size();
    return {};
  }

 private:
  bool must_be_text_;
  std::size_t bytes_max_;
};

class bytes_model final : public one_program_field {
 public:
  bytes_model(std::string name, std::string member, bool must_be_text, std::optional<std::size_t> bytes_max)
      : name_(std::move(name)), member_(std::move(member)), must_be_text_(must_be_text), bytes_max_(bytes_max) {}

  const std::string& name() const noexcept override { return name_; }
  void describe(description& out) const override {
    out.add("kind", must_be_text_ ? "text" : "bytes");
    out.add("member", member_);
    if (bytes_max_) out.add("bytes_max", std::uint64_t{*bytes_max_});
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    const std::string_view names[] = {member_};
    std::vector<std::uint16_t> fields = find_fields(dataset, names);
    if (fields.empty()) throw_no_field(dataset, member_, name_);
    const field_info& info = dataset.fields()[fields.front()];
    const bool is_of_numbers = info.kind == field_kind::tensor && info.type != dtype::u8;
    if (must_be_text_ && (is_of_numbers || info.kind == field_kind::tokens || info.kind == field_kind::picture)) {
      throw_wrong_kind(info, name_);
    }
    return std::make_unique<bytes_program>(name_, std::move(fields), must_be_text_,
                                           bytes_max_or_any(bytes_max_, name_));
  }

 private:
  std::string name_;
  std::string member_;
  bool must_be_text_;
  std::optional<std::size_t> bytes_max_;
};

}  // namespace
}  // namespace stages

bytes::bytes(std::string name) : name_(std::move(name)), member_(name_) {}
bytes bytes::from(std::string member) const {
  bytes changed = *this;
  changed.member_ = std::move(member);
  return changed;
}
bytes bytes::bytes_max(std::size_t most) const {
  bytes changed = *this;
  changed.bytes_max_ = most;
  return changed;
}
bytes::operator field() const {
  return field(std::make_shared<stages::bytes_model>(name_, member_, false, bytes_max_));
}

text::text(std::string name) : name_(std::move(name)), member_(name_) {}
text text::from(std::string member) const {
  text changed = *this;
  changed.member_ = std::move(member);
  return changed;
}
text text::bytes_max(std::size_t most) const {
  text changed = *this;
  changed.bytes_max_ = most;
  return changed;
}
text::operator field() const { return field(std::make_shared<stages::bytes_model>(name_, member_, true, bytes_max_)); }

}  // namespace leat
