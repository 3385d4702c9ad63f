#include "datasets/tables/describe.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"

#include <string>

namespace leat::datasets {
namespace {

std::string_view name(field_kind kind) noexcept {
  constexpr std::string_view names[] = {"picture", "label", "text", "bytes", "tensor", "tokens"};
  return names[static_cast<std::size_t>(kind)];
}

// "picture, 500 samples of 57671680 bytes, 310222 at most", "tensor of f32 [3, 224, 224], 50000 samples of ...".
std::string text_of(const field_info& field) {
  std::string text(name(field.kind));
  if (field.kind == field_kind::tensor || field.kind == field_kind::tokens) {
    str_append(text, " of ", leat::name(field.type));
    std::string_view separator = " [";
    for (const std::int64_t extent : field.shape) {
      str_append(text, separator, extent);
      separator = ", ";
    }
    if (field.shape.size() > 0) text += "]";
  }
  str_append(text, ", ", field.samples, " samples of ", field.bytes_total, " bytes, ", field.bytes_max, " at most");
  return text;
}

digest digest_of(std::span<const std::string> texts) {
  hasher hash;
  hash.add(static_cast<std::uint64_t>(texts.size()));
  for (const std::string& each : texts) hash.add(std::string_view(each));
  return hash.finish();
}

}  // namespace

void describe_model(description& out, std::string_view format, const dataset_model& model) {
  constexpr std::size_t fields_named_max = 64;
  out.add("format", format);
  out.add("samples", model.size());
  if (model.fields().size() <= fields_named_max) {
    for (const field_info& field : model.fields()) out.add(str_cat("field ", field.name), text_of(field));
  } else {
    hasher hash;
    for (const field_info& field : model.fields()) {
      hash.add(std::string_view(field.name));
      hash.add(std::string_view(text_of(field)));
    }
    out.add("fields", str_cat(model.fields().size(), ", digest ", hash.finish().hex()));
  }
  if (!model.columns().empty()) {
    std::string names;
    for (const std::string& column : model.columns()) str_append(names, names.empty() ? "" : ", ", column);
    out.add("columns", names);
  }
  if (!model.classes().empty()) {
    out.add("classes", str_cat(model.classes().size(), ", digest ", digest_of(model.classes()).hex()));
  }
}

void describe_files(description& out, const io::file_table& files) {
  out.add("files", str_cat(files.files(), ", names and sizes ", files.digest().hex()));
}

}  // namespace leat::datasets
