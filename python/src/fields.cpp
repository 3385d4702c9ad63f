// Fields: what a batch holds. Each is a value; its methods return a changed one, as in C++.
#include "module.hpp"

#include <leat/clip.hpp>
#include <leat/mosaic.hpp>
#include <leat/picture_geometry.hpp>
#include <leat/targets.hpp>
#include <leat/tokenizer.hpp>
#include <leat/transforms.hpp>

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pyleat {
namespace {

using range = std::array<double, 2>;

constexpr std::array<std::string_view, 3> filters = {"nearest", "bilinear", "bicubic"};
leat::filter to_filter(nb::handle given) { return to_enum<leat::filter>(given, "filter=", filters); }
leat::layout to_layout(nb::handle given) {
  return to_enum<leat::layout>(given, "the layout", std::array<std::string_view, 2>{"nchw", "nhwc"});
}

// "nchw" and "nhwc" are layouts, all else is a dtype.
leat::image image_as(const leat::image& of, nb::handle what) {
  std::string text;
  if (nb::try_cast(what, text) && (text == "nchw" || text == "nhwc")) return of.as(to_layout(what));
  return of.as(to_dtype(what));
}

std::array<double, 3> to_channels(const std::vector<double>& numbers) {
  if (numbers.size() == 1) return {numbers[0], numbers[0], numbers[0]};
  if (numbers.size() == 3) return {numbers[0], numbers[1], numbers[2]};
  throw nb::value_error(
      ("normalize() takes one or three numbers of mean and deviation each, and not " + std::to_string(numbers.size()))
          .c_str());
}

template <class Field>
nb::class_<Field> add(nb::module_& to, const char* name, const char* words) {
  return nb::class_<Field>(to, name, words).def(nb::init<const Field&>());
}

template <class Field>
bool take(nb::handle given, std::optional<leat::field>& to) {
  if (!nb::isinstance<Field>(given)) return false;
  to.emplace(static_cast<leat::field>(nb::cast<const Field&>(given)));
  return true;
}

// What a function of C is told of its sample: sample, draw, epoch, seed, label, whether there is a label; and of the picture that it follows,
// else 0: its width and height, the row's, turned, mirrored, and the bits of the matrix's nine doubles. All of one size, so that ctypes and
// Numba need no structure for it.
using sample_words = std::array<std::uint64_t, 21>;
using function_of_c = int (*)(const void* bytes, std::size_t size, void* row, std::size_t row_bytes,
                              const std::uint64_t* sample);

std::string call(function_of_c function, const leat::custom_sample& of, std::span<std::byte> row) {
  const auto word = [](auto number) { return static_cast<std::uint64_t>(number); };
  const leat::sample_context& context = of.context;
  sample_words words = {word(context.sample),
                        word(context.draw),
                        word(context.epoch),
                        word(context.seed),
                        word(context.label.value_or(0)),
                        word(context.label.has_value())};
  if (of.picture != nullptr) {
    const leat::picture_geometry& lies = *of.picture;
    const std::array about = {lies.picture_width, lies.picture_height, lies.row_width,
                              lies.row_height,    lies.turned,         lies.mirrored ? 1 : 0};
    std::ranges::transform(about, words.begin() + 6, word);
    std::ranges::transform(lies.matrix, words.begin() + 12,
                           [](double each) { return std::bit_cast<std::uint64_t>(each); });
  }
  const std::span<const std::byte> bytes = of.members.front();
  const int answer = function(bytes.data(), bytes.size(), row.data(), row.size(), words.data());
  return answer == 0 ? std::string() : "the function of the field answered " + std::to_string(answer);
}

}  // namespace

leat::dtype to_dtype(nb::handle given) {
  constexpr std::pair<std::string_view, leat::dtype> longer[] = {
      {"uint8", leat::dtype::u8},      {"int8", leat::dtype::i8},     {"uint16", leat::dtype::u16},
      {"int16", leat::dtype::i16},     {"uint32", leat::dtype::u32},  {"int32", leat::dtype::i32},
      {"uint64", leat::dtype::u64},    {"int64", leat::dtype::i64},   {"float16", leat::dtype::f16},
      {"bfloat16", leat::dtype::bf16}, {"float32", leat::dtype::f32}, {"float64", leat::dtype::f64},
      {"bool", leat::dtype::boolean}};
  // "f32"; "torch.float32" and the like of dtypes of other libraries; numpy.float32, which is a class.
  std::string text;
  if (!nb::try_cast(given, text)) text = nb::str(nb::getattr(given, "__name__", given)).c_str();
  if (const std::size_t dot = text.rfind('.'); dot != std::string::npos) text.erase(0, dot + 1);
  for (const auto& [name, type] : longer) {
    if (text == name || text == leat::name(type)) return type;
  }
  throw nb::value_error(("'" + text +
                         "' is no dtype that leat has; it has u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, "
                         "f64 and bool")
                            .c_str());
}

leat::field to_field(nb::handle given) {
  std::optional<leat::field> found;
  const bool is_field =
      take<leat::image>(given, found) || take<leat::label>(given, found) || take<leat::text>(given, found) ||
      take<leat::bytes>(given, found) || take<leat::sequence>(given, found) || take<leat::array>(given, found) ||
      take<leat::columns>(given, found) || take<leat::tokens>(given, found) || take<leat::stack>(given, found) ||
      take<leat::tokenize>(given, found) || take<leat::chat>(given, found) || take<leat::graph>(given, found) ||
      take<leat::custom>(given, found) || take<leat::mask>(given, found) || take<leat::boxes>(given, found) ||
      take<leat::points>(given, found) || take<leat::depth>(given, found) || take<leat::clip>(given, found) ||
      take<leat::field>(given, found);
  if (!is_field) {
    const bool is_several = nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given);
    const char* const how = is_several                        ? "; give its fields one by one: Loader(source, *fields)"
                            : nb::isinstance<nb::int_>(given) ? "; options are keywords: batch_size=64"
                                                              : "";
    throw nb::type_error(
        (std::string(
             "a field is Image, Label, Text, Bytes, Sequence, Array, Columns, Stack, Graph, Tokens, Tokenize, Chat, "
             "Custom, Mask, Depth, Boxes, Points, Clip or what views() makes, and not ") +
         nb::repr(given).c_str() + how)
            .c_str());
  }
  return *found;
}

void add_fields(nb::module_& to) {
  using leat::image;
  add<image>(to, "Image",
             "A picture, with transforms as torchvision's and resampling as Pillow's: [rows, 3, height, width], f32.")
      .def(nb::init<std::string>(), nb::arg("name") = "jpg")
      .def("from_", &image::from, nb::arg("member"))
      .def(
          "random_resized_crop",
          [](const image& of, int size, range scale, range ratio, nb::handle filter) {
            return of.random_resized_crop(size, scale, ratio, to_filter(filter));
          },
          nb::arg("size"), nb::arg("scale") = range{0.08, 1.0}, nb::arg("ratio") = range{3.0 / 4.0, 4.0 / 3.0},
          nb::arg("filter") = "bilinear")
      .def(
          "resize",
          [](const image& of, int size, std::optional<int> width, nb::handle filter) {
            return width ? of.resize(size, *width, to_filter(filter)) : of.resize(size, to_filter(filter));
          },
          nb::arg("size"), nb::arg("width") = nb::none(), nb::arg("filter") = "bilinear",
          "resize(shorter side), or resize(height, width).")
      .def("letterbox", &image::letterbox, nb::arg("size"), nb::arg("fill") = 114)
      .def(
          "longest_side",
          [](const image& of, int size, nb::handle filter) { return of.longest_side(size, to_filter(filter)); },
          nb::arg("size"), nb::arg("filter") = "bilinear")
      .def(
          "smallest_side",
          [](const image& of, int size, nb::handle filter) { return of.smallest_side(size, to_filter(filter)); },
          nb::arg("size"), nb::arg("filter") = "bilinear")
      .def("random_scale", &image::random_scale, nb::arg("factor"))
      .def("center_crop", &image::center_crop, nb::arg("size"))
      .def("random_crop", &image::random_crop, nb::arg("size"), nb::arg("padding") = 0)
      .def("random_flip", &image::random_flip, nb::arg("probability") = 0.5)
      .def(
          "random_zoom_out",
          [](const image& of, range side, double probability, std::array<int, 3> fill) {
            return of.random_zoom_out({.side = side, .probability = probability, .fill = fill});
          },
          nb::arg("side") = range{1, 4}, nb::arg("probability") = 0.5, nb::arg("fill") = std::array<int, 3>{0, 0, 0},
          "The picture at a random place of a canvas `side` times as wide and high, with this probability.")
      .def(
          "random_iou_crop",
          [](const image& of, range scale, range ratio, std::vector<double> options, int trials, std::string boxes) {
            return of.random_iou_crop({.scale = scale,
                                       .ratio = ratio,
                                       .options = std::move(options),
                                       .trials = trials,
                                       .boxes = std::move(boxes)});
          },
          nb::arg("scale") = range{0.3, 1}, nb::arg("ratio") = range{0.5, 2},
          nb::arg("options") = leat::transforms::random_iou_crop{}.options, nb::arg("trials") = 40,
          nb::arg("boxes") = "",
          "SSD's crop, by the boxes that follow the picture: it has the middle of one in it, and overlaps it by what "
          "is "
          "drawn from `options`.")
      .def("vertical_flip", &image::vertical_flip)
      .def(
          "augment", [](const image& of, const std::string& steps) { return of.augment(steps); }, nb::arg("steps"),
          "All steps of a text, as the command's --augment: 'hue(-0.1,0.1);gaussian_blur(5)', or timm's "
          "'rand-m9-mstd0.5-inc1'.")
      .def("brightness", &image::brightness, nb::arg("factor"))
      .def("contrast", &image::contrast, nb::arg("factor"))
      .def("saturation", &image::saturation, nb::arg("factor"))
      .def("hue", &image::hue, nb::arg("shift"))
      .def("gamma", &image::gamma, nb::arg("exponent"))
      .def("color_jitter", &image::color_jitter, nb::arg("brightness"), nb::arg("contrast") = 0,
           nb::arg("saturation") = 0, nb::arg("hue") = 0)
      .def("grayscale", &image::grayscale)
      .def("invert", &image::invert)
      .def("posterize", &image::posterize, nb::arg("bits"))
      .def("solarize", &image::solarize, nb::arg("threshold"))
      .def("autocontrast", &image::autocontrast)
      .def("equalize", &image::equalize)
      .def("sharpness", &image::sharpness, nb::arg("factor"))
      .def("gaussian_blur", &image::gaussian_blur, nb::arg("kernel"), nb::arg("sigma") = range{0.1, 2.0})
      .def("channel_permutation", &image::channel_permutation)
      .def(
          "rotate",
          [](const image& of, double from, std::optional<double> until) {
            return until ? of.rotate(from, *until) : of.rotate(from);
          },
          nb::arg("degrees"), nb::arg("until") = nb::none(), "rotate(30) is always 30; rotate(-30, 30) is drawn.")
      .def(
          "affine",
          [](const image& of, range degrees, range translate, range scale, range shear_x, range shear_y,
             nb::handle filter, std::array<int, 3> fill) {
            return of.affine({.degrees = degrees,
                              .translate = translate,
                              .scale = scale,
                              .shear_x = shear_x,
                              .shear_y = shear_y,
                              .how = to_filter(filter),
                              .fill = fill});
          },
          nb::kw_only(), nb::arg("degrees") = range{0, 0}, nb::arg("translate") = range{0, 0},
          nb::arg("scale") = range{1, 1}, nb::arg("shear_x") = range{0, 0}, nb::arg("shear_y") = range{0, 0},
          nb::arg("filter") = "nearest", nb::arg("fill") = std::array<int, 3>{0, 0, 0},
          "Turned clockwise, moved by up to shares of width and height, scaled, sheared: torchvision's RandomAffine.")
      .def("perspective", &image::perspective, nb::arg("distortion") = 0.5)
      .def(
          "rand_augment",
          [](const image& of, int ops, int magnitude) { return of.rand_augment({.ops = ops, .magnitude = magnitude}); },
          nb::arg("ops") = 2, nb::arg("magnitude") = 9)
      .def("trivial_augment", [](const image& of) { return of.trivial_augment(); })
      .def(
          "auto_augment",
          [](const image& of, nb::handle policy) {
            return of.auto_augment(to_enum<leat::learned_policy>(
                policy, "policy=", std::array<std::string_view, 3>{"imagenet", "cifar10", "svhn"}));
          },
          nb::arg("policy") = "imagenet")
      .def("random_erasing", &image::random_erasing, nb::arg("probability") = 0.5, nb::arg("scale") = range{0.02, 0.33},
           nb::arg("ratio") = range{0.3, 3.3}, nb::arg("value") = 0)
      .def(
          "normalize",
          [](const image& of, const std::array<std::vector<double>, 2>& statistics) {
            return of.normalize({.mean = to_channels(statistics[0]), .deviation = to_channels(statistics[1])});
          },
          nb::arg("statistics"),
          "(mean, deviation), three numbers each: pyleat.IMAGENET. Or one, of grey or of all channels: ((0.5,), "
          "(0.25,)).")
      .def("as_", &image_as, nb::arg("what"), "A dtype ('f16', 'u8'), or a layout ('nhwc').")
      .def("exif_orientation", &image::exif_orientation, nb::arg("on") = true)
      .def(
          "truncated",
          [](const image& of, nb::handle how) {
            return of.truncated(
                to_enum<leat::truncated_jpeg>(how, "truncated()", std::array<std::string_view, 2>{"refuse", "accept"}));
          },
          nb::arg("how"))
      .def("background", &image::background, nb::arg("red"), nb::arg("green"), nb::arg("blue"))
      .def(
          "stored", [](const image& of, nb::handle order) { return of.stored(to_layout(order)); }, nb::arg("order"))
      .def("white", &image::white, nb::arg("number"))
      .def("decimate", &image::decimate, nb::arg("on"))
      .def(
          "rounding",
          [](const image& of, nb::handle how) {
            return of.rounding(
                to_enum<leat::pixel_rounding>(how, "rounding()", std::array<std::string_view, 2>{"exact", "fused"}));
          },
          nb::arg("how"))
      .def(
          "decoder",
          [](const image& of, nb::handle which) {
            return of.decoder(
                to_enum<leat::jpeg_decoder>(which, "decoder()", std::array<std::string_view, 2>{"turbo", "nvjpeg"}));
          },
          nb::arg("which"))
      .def("pixels_max", &image::pixels_max, nb::arg("pixels"))
      .def("channels", &image::channels, nb::arg("count"), "1: grey, [rows, 1, height, width]. Default: 3.")
      .def("bits", &image::bits, nb::arg("per_sample"),
           "16 or 32: numbers of PNG and TIFF as stored, u16 or f32, of as many channels().")
      .def("together", &image::together, nb::arg("group"),
           "Pictures of one group are cropped, flipped and warped alike, whichever members they read.");

  using leat::label;
  add<label>(to, "Label", "A number, or a few: i64 [rows].")
      .def(nb::init<std::string>(), nb::arg("name") = "cls")
      .def("from_", &label::from, nb::arg("member"))
      .def(
          "as_", [](const label& of, nb::handle type) { return of.as(to_dtype(type)); }, nb::arg("dtype"))
      .def("vector", &label::vector, nb::arg("length"))
      .def("key", &label::key, nb::arg("json_key"));

  using leat::bytes;
  add<bytes>(to, "Bytes", "The bytes of a member: u8, and `name`.offsets.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &bytes::from, nb::arg("member"))
      .def("bytes_max", &bytes::bytes_max, nb::arg("most"));

  using leat::text;
  add<text>(to, "Text", "Text: as Bytes, and corrupt if it is no UTF-8.")
      .def(nb::init<std::string>(), nb::arg("name") = "txt")
      .def("from_", &text::from, nb::arg("member"))
      .def("bytes_max", &text::bytes_max, nb::arg("most"));

  using leat::sequence;
  add<sequence>(to, "Sequence", "A list of numbers of any length in each row.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &sequence::from, nb::arg("member"))
      .def(
          "as_", [](const sequence& of, nb::handle type) { return of.as(to_dtype(type)); }, nb::arg("dtype"))
      .def(
          "stored", [](const sequence& of, nb::handle type) { return of.stored(to_dtype(type)); }, nb::arg("dtype"))
      .def("bytes_max", &sequence::bytes_max, nb::arg("most"))
      .def(
          "pad",
          [](const sequence& of, std::int64_t multiple, std::int64_t max, double value) {
            return of.pad({.multiple = multiple, .max = max, .value = value});
          },
          nb::arg("multiple") = 1, nb::arg("max") = 0, nb::arg("value") = 0)
      .def("truncate", &sequence::truncate)
      .def("mask", &sequence::mask)
      .def("packed", &sequence::packed, "Tokens that were made before: rows of a packed() order.");

  using leat::array;
  using axes = std::vector<std::int64_t>;
  add<array>(to, "Array", "Rows of a fixed dtype and shape.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("from_", &array::from, nb::arg("member"))
      .def(
          "random_crop", [](const array& of, axes shape) { return of.random_crop(std::move(shape)); }, nb::arg("shape"))
      .def(
          "center_crop", [](const array& of, axes shape) { return of.center_crop(std::move(shape)); }, nb::arg("shape"))
      .def("slice", &array::slice, nb::arg("axis"), nb::arg("first"), nb::arg("count"))
      .def("flip", &array::flip, nb::arg("axis"))
      .def("random_flip", &array::random_flip, nb::arg("axis"), nb::arg("probability") = 0.5)
      .def(
          "normalize", [](const array& of, double mean, double deviation) { return of.normalize(mean, deviation); },
          nb::arg("mean"), nb::arg("deviation"))
      .def(
          "normalize",
          [](const array& of, std::vector<double> mean, std::vector<double> deviation, std::int64_t axis) {
            return of.normalize(std::move(mean), std::move(deviation), axis);
          },
          nb::arg("mean"), nb::arg("deviation"), nb::arg("axis"))
      .def(
          "as_", [](const array& of, nb::handle type) { return of.as(to_dtype(type)); }, nb::arg("dtype"))
      .def("transpose", [](const array& of, axes order) { return of.transpose(std::move(order)); }, nb::arg("order"));

  add<leat::columns>(to, "Columns", "Number columns of a table as one matrix.")
      .def(
          "__init__",
          [](leat::columns* self, std::string name, std::vector<std::string> members, nb::handle type) {
            new (self) leat::columns(std::move(name), std::move(members), to_dtype(type));
          },
          nb::arg("name"), nb::arg("members"), nb::arg("dtype") = "f32");

  add<leat::stack>(to, "Stack", "The rows of several fields beside one another.")
      .def(
          "__init__",
          [](leat::stack* self, std::string name, const nb::list& fields) {
            std::vector<leat::field> all;
            for (const nb::handle each : fields) all.push_back(to_field(each));
            new (self) leat::stack(std::move(name), std::move(all));
          },
          nb::arg("name"), nb::arg("fields"));

  using leat::graph;
  const auto features = [](std::string member, std::int64_t width, nb::handle type, nb::handle stored) {
    return graph::features{.member = std::move(member),
                           .width = width,
                           .type = to_dtype(type),
                           .stored = stored.is_none() ? std::nullopt : std::optional(to_dtype(stored))};
  };
  add<graph>(to, "Graph",
             "Graphs, as PyTorch Geometric has them: `x`, `edge_index`, `batch`, `ptr`, after edge_attr() that.")
      .def(nb::init<>())
      .def(
          "x",
          [features](const graph& of, std::string member, std::int64_t width, nb::handle type, nb::handle stored) {
            return of.x(features(std::move(member), width, type, stored));
          },
          nb::arg("member"), nb::arg("width") = 1, nb::arg("dtype") = "f32", nb::arg("stored") = nb::none())
      .def(
          "edge_index",
          [](const graph& of, std::string member, nb::handle stored) {
            return of.edge_index(std::move(member), stored.is_none() ? std::nullopt : std::optional(to_dtype(stored)));
          },
          nb::arg("member"), nb::arg("stored") = nb::none())
      .def(
          "edge_attr",
          [features](const graph& of, std::string member, std::int64_t width, nb::handle type, nb::handle stored) {
            return of.edge_attr(features(std::move(member), width, type, stored));
          },
          nb::arg("member"), nb::arg("width") = 1, nb::arg("dtype") = "f32", nb::arg("stored") = nb::none());

  using leat::tokens;
  add<tokens>(to, "Tokens", "Windows of tokens, of a dataset that cut_windows() made: `x` and `y`.")
      .def(
          "__init__",
          [](tokens* self, std::int64_t length, nb::handle type, nb::handle windows, nb::handle documents,
             std::int64_t pad, std::int64_t ignored, std::string field) {
            new (self) tokens{.length = length,
                              .type = type.is_none() ? std::nullopt : std::optional(to_dtype(type)),
                              .windows = to_enum<leat::window_order>(
                                  windows, "windows=", std::array<std::string_view, 3>{"shifted", "tiled", "random"}),
                              .documents = to_enum<leat::document_rule>(
                                  documents, "documents=", std::array<std::string_view, 3>{"ignore", "mark", "within"}),
                              .pad = pad,
                              .ignored = ignored,
                              .field = std::move(field)};
          },
          nb::arg("length") = 1024, nb::kw_only(), nb::arg("dtype") = "i64", nb::arg("windows") = "shifted",
          nb::arg("documents") = "ignore", nb::arg("pad") = 0, nb::arg("ignored") = -100, nb::arg("field") = "tokens");
  to.def("cut_windows", &leat::cut_windows, nb::arg("samples"), nb::arg("how"));

  using leat::tokenizer;
  add<tokenizer>(to, "Tokenizer", "A tokenizer.json, tokenizer.model or *.tiktoken: its ids are the reference's.")
      .def(
          "__init__",
          [](tokenizer* self, nb::handle path) {
            const std::string name = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
            new (self) tokenizer(tokenizer::open(name));
          },
          nb::arg("path"))
      .def(
          "encode", [](const tokenizer& of, const std::string& text) { return of.encode(text); }, nb::arg("text"))
      .def_prop_ro("vocabulary", &tokenizer::vocabulary);
  using leat::tokenize;
  add<tokenize>(to, "Tokenize", "Tokens of a text, made in the loader.")
      .def(nb::init<std::string, tokenizer>(), nb::arg("member"), nb::arg("words"))
      .def("named", &tokenize::named, nb::arg("name"))
      .def(
          "as_", [](const tokenize& of, nb::handle type) { return of.as(to_dtype(type)); }, nb::arg("dtype"))
      .def("eos", [](const tokenize& of) { return of.eos(); })
      .def(
          "eos", [](const tokenize& of, const std::string& token) { return of.eos(token); }, nb::arg("token"))
      .def("special_in_text", &tokenize::special_in_text)
      .def("without_special", &tokenize::without_special)
      .def("truncate", &tokenize::truncate, nb::arg("n"))
      .def("pad", &tokenize::pad, nb::arg("n"), nb::arg("value") = 0)
      .def("mask", &tokenize::mask);

  using leat::chat;
  add<chat>(to, "Chat", "The tokens of a list of messages, `input_ids`, and `labels`: the same, or -100.")
      .def(nb::init<std::string, tokenizer>(), nb::arg("member"), nb::arg("words"))
      .def("with_template", &chat::with_template, nb::arg("name"),
           "chatml, qwen2, qwen2.5, llama2, llama3, llama3.1, mistral or gemma.")
      .def("mask_prompt", &chat::mask_prompt, "Labels are those of answers alone.")
      .def(
          "as_", [](const chat& of, nb::handle type) { return of.as(to_dtype(type)); }, nb::arg("dtype"))
      .def("truncate", &chat::truncate, nb::arg("n"))
      .def("pad", &chat::pad, nb::arg("n"), nb::arg("value") = 0)
      .def("mask", &chat::mask);

  using leat::custom;
  add<custom>(to, "Custom",
              "Decoding of your own, by a function of C on the decode threads: [rows, *shape] of a dtype.\n\n"
              "int f(const void* bytes, size_t size, void* row, size_t row_bytes, const uint64_t sample[6])\n\n"
              "It writes every byte of the row and returns 0; any other number makes the sample corrupt. `sample` is "
              "(sample, draw, epoch, seed, label, whether there is a label), and after follows() sample[21]. Several "
              "threads call "
              "it at once. address is numba.cfunc(...).address, or ctypes.cast(function, ctypes.c_void_p).value.")
      .def(
          "__init__",
          [](custom* self, const std::string& name, nb::handle type, const std::vector<std::int64_t>& shape,
             nb::handle address) {
            if (PyLong_Check(address.ptr()) == 0 || PyBool_Check(address.ptr()) != 0) {
              throw nb::type_error(
                  "Custom(address=) is the address of a function of C, as a number: numba.cfunc(...).address, or "
                  "ctypes.cast(function, ctypes.c_void_p).value. A function of Python would take Python's lock on each "
                  "decode thread; Loader(map_batch=) calls one once a batch");
            }
            const auto at = nb::cast<std::uintptr_t>(address);
            if (at == 0) throw nb::value_error("Custom(address=0): there is no function at 0");
            if (shape.size() > leat::dimensions::rank_max) throw nb::value_error("Custom(shape=) has more than 8 axes");
            // The function that is told where a picture lies: follows() may be called on it.
            new (self) custom({{.name = name, .type = to_dtype(type), .row_shape = leat::dimensions(std::span(shape))}},
                              [function = reinterpret_cast<function_of_c>(at)](leat::custom_sample& of,
                                                                               std::span<leat::custom_row> rows) {
                                return call(function, of, rows.front().bytes);
                              });
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("address"))
      .def(
          "from_", [](const custom& of, std::string member) { return of.from(std::move(member)); }, nb::arg("member"))
      .def("follows", &custom::follows, nb::arg("picture"),
           "The name of an Image field: sample[6] and on tell the function where that picture's row lies, as integers "
           "(picture width and height, row width and height, turned, mirrored) and nine doubles, the matrix of "
           "Batch.placement().")
      .def("described_as", &custom::described_as, nb::arg("name"),
           "A name of what the function makes, to be changed with it. Without one there is no state_dict().");

  nb::class_<leat::batch_mix>(to, "BatchMix", "What mix= takes: mixup(), cutmix() or mosaic().")
      .def(nb::init<const leat::batch_mix&>());
  to.def("mixup", [](double alpha) { return leat::mixup(alpha); }, nb::arg("alpha") = 0.2);
  to.def("cutmix", [](double alpha) { return leat::cutmix(alpha); }, nb::arg("alpha") = 1.0);
  to.def(
      "mosaic", [](double probability) { return leat::mosaic(probability); }, nb::arg("probability") = 1.0,
      "Rows of four pictures of the batch around a drawn centre, with their Mask, Depth and Boxes. batch['mix.tiles'] "
      "says whose they are.");
}

}  // namespace pyleat
