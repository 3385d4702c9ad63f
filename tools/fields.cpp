#include "tools/fields.hpp"

#include "io/text.hpp"
#include "tools/arguments.hpp"

#include <leat/error.hpp>

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

image picture(const std::string& name, const picture_options& options) {
  const int size = static_cast<int>(options.size);
  image field(name);
  if (options.train) {
    field = field.random_resized_crop(size).random_flip();
  } else {
    // The customary 256 for 224, in proportion.
    field = field.resize((size * 256 + 112) / 224).center_crop(size);
  }
  if (options.type != dtype::u8) field = field.normalize(imagenet);
  return field.as(options.type).as(options.order);
}

bool goes_as_jpg(std::string_view name) { return name == "jpg" || name == "jpeg" || name == "png"; }

// One field serves them all where they are names for the same thing.
bool are_one(const dataset& samples, const std::vector<field_info>& fields) {
  std::uint64_t with_one = 0;
  for (const field_info& each : fields) {
    if (goes_as_jpg(each.name)) with_one += each.samples;
  }
  return with_one <= samples.size();
}

label label_like(const dataset& samples, const field_info& info) {
  label field(info.name);
  if (info.column || samples.size() == 0) return field;
  std::string text;
  try {
    const std::vector<std::byte> bytes = samples.read(0, info.name);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const error&) {
    return field;  // The first sample is not what it should be: the corrupt policy has its say later.
  }
  std::int64_t numbers = 0;
  bool whole = true;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\r\n,;[]"), absl::SkipEmpty())) {
    std::int64_t integer = 0;
    double real = 0;
    if (!absl::SimpleAtoi(word, &integer)) whole = false;
    if (!absl::SimpleAtod(word, &real)) return field;
    ++numbers;
  }
  if (!whole) field = field.as(dtype::f32);
  return numbers > 1 ? field.vector(numbers) : field;
}

}  // namespace

void add_picture_options(CLI::App& app, picture_options& pictures) {
  add_choice(app, "--transform", pictures.train, {{"train", true}, {"eval", false}},
             "train: random crop and flip; eval: resize and centre crop (train)");
  add_number(app, "--size", pictures.size, 1, "pixels of a picture's side (224)", 16384);
  add_choice(app, "--dtype", pictures.type,
             {{"u8", dtype::u8}, {"f16", dtype::f16}, {"bf16", dtype::bf16}, {"f32", dtype::f32}},
             "of pictures; floats are normalised as for ImageNet (f32)");
  add_choice(app, "--layout", pictures.order, {{"nchw", layout::nchw}, {"nhwc", layout::nhwc}}, "of pictures (nchw)");
}

void add_order_options(CLI::App& app, order_options& order) {
  add_number(app, "--batch-size", order.batch_size, 1, "samples in a batch (64)", 1U << 24);
  add_number(app, "--seed", order.seed, 0, "of order, crops and flips (0)");
  CLI::Option* const shuffle =
      app.add_flag("--shuffle", order.shuffle, "every sample once, in an order drawn from the seed (with train)");
  app.add_flag("--no-shuffle", order.no_shuffle, "in the source's order (with eval)")->excludes(shuffle);
}

chosen_fields fields_of(const dataset& samples, const picture_options& pictures) {
  const std::vector<field_info> fields = samples.fields();
  const bool one_picture = are_one(samples, fields);
  bool has_picture = false;
  chosen_fields chosen;
  for (const field_info& each : fields) {
    switch (each.kind) {
      case field_kind::picture: {
        const bool shared = one_picture && goes_as_jpg(each.name);
        if (shared && std::exchange(has_picture, true)) break;
        chosen.pictures.push_back(picture(shared ? "jpg" : each.name, pictures));
        chosen.all.emplace_back(chosen.pictures.back());
        break;
      }
      case field_kind::label:
        // A field and a column of one name are the halves of a concatenation, and one label.
        if (std::find(chosen.labels.begin(), chosen.labels.end(), each.name) != chosen.labels.end()) break;
        chosen.labels.push_back(each.name);
        chosen.all.emplace_back(label_like(samples, each));
        break;
      case field_kind::text:
        chosen.texts.push_back(each.name);
        chosen.all.emplace_back(text(each.name));
        break;
      case field_kind::bytes:
      case field_kind::tensor:
        chosen.all.emplace_back(bytes(each.name));
        break;
    }
  }
  const auto cls = std::find(chosen.labels.begin(), chosen.labels.end(), "cls");
  if (cls != chosen.labels.end()) std::rotate(chosen.labels.begin(), cls, cls + 1);
  if (chosen.all.empty()) throw error(errc::unsupported, "the source has no field: no sample in it has any bytes");
  return chosen;
}

}  // namespace leat::tools
