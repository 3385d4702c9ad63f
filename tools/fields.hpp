// What a source has decides what a batch of it holds: the command's fields, where nobody wrote a program.
#pragma once

#include <leat/field.hpp>
#include <leat/index_options.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>
#include <leat/tokenizer.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

/// What becomes of pictures.
///   train      random_resized_crop(size), random_flip; else resize(size * 256 / 224), center_crop(size)
///   augment    what stands behind that
///   rounding   of all that
///   type       floats are normalised with ImageNet's mean and deviation; u8 is the pixel
///   decoder    of JPEG files
///   exif_orientation   turned upright before that
///   background   of pictures with alpha: three channels, or none
///   truncated   of JPEGs that lost their ends
///   views    so many of each in one output; 0: the picture itself
///   clip_frames, clip_stride   pictures are frames, of which a clip has so many; 0: they are not
///   images   a folder: the source is a file of COCO's annotations of its pictures
///   masks, boxes   members that follow the first picture; of boxes MEMBER[:KEY[:LABELS]]
///   array_crop   of arrays that have as many axes at least, elements along the last ones: random for train, else in the middle
struct picture_options {
  bool train = true;
  bool exif_orientation = false;
  truncated_jpeg truncated = truncated_jpeg::refuse;
  std::vector<int> background = {};
  jpeg_decoder decoder = jpeg_decoder::turbo;
  std::uint32_t size = 224;
  dtype type = dtype::f32;
  layout order = layout::nchw;
  std::string images = {};
  std::vector<std::string> masks = {};
  std::string boxes = {};
  std::vector<std::int64_t> array_crop = {};
  std::vector<transform> augment = {};
  pixel_rounding rounding = pixel_rounding::exact;
  std::uint32_t views = 0;
  std::uint32_t clip_frames = 0;
  std::uint32_t clip_stride = 1;
};

/// --clip N[,STRIDE].
void add_clip_option(CLI::App& app, picture_options& pictures);

/// How tokens become samples, and texts tokens.
///   length   of a window; 0: the sources are no tokens
///   stored   of files that do not say it, where it was given
///   tokenizer     a file; empty: texts stay texts
///   counts        where counts of their tokens are kept
///   text_tokens   texts are cut and filled up to so many tokens; 0: they keep their lengths
///   chat          chats become tokens, by this template, and other texts stay texts
struct window_options {
  std::uint64_t length = 0;
  std::optional<dtype> stored = std::nullopt;
  std::optional<dtype> type = dtype::i64;
  window_order order = window_order::shifted;
  document_rule documents = document_rule::ignore;
  std::string tokenizer = {};
  index_options counts = {};
  std::uint32_t text_tokens = 0;
  std::optional<chat_settings> chat = std::nullopt;

  /// How the sources are opened: none where they are no tokens.
  [[nodiscard]] std::optional<token_options> files() const {
    return length == 0 ? std::nullopt : std::optional(token_options{.type = stored});
  }
};

/// Which samples make up a batch.
///   shuffle, no_shuffle   as given; neither: on for train, off for eval
struct order_options {
  std::uint32_t batch_size = 64;
  std::uint64_t seed = 0;
  bool shuffle = false;
  bool no_shuffle = false;

  [[nodiscard]] bool shuffled(const picture_options& pictures) const {
    return shuffle || (pictures.train && !no_shuffle);
  }
};

void add_picture_options(CLI::App& app, picture_options& pictures);
void add_order_options(CLI::App& app, order_options& order);
/// All but `type`; returns --tokens, which what is said of tokens needs.
CLI::Option* add_window_options(CLI::App& app, window_options& windows);
void add_token_output_option(CLI::App& app, window_options& windows, CLI::Option* tokens);

/// A source's fields: what more than half of the samples have, or all but one, counted among those that have the commonest
/// field (a picture, where there are several such). A sample that lacks one of them is corrupt; one that has none of them is
/// no sample but a stray member (`info.txt`, `README.md`), unless there are many: more than ten, and than one in ten.
/// All of it follows from the table of extents alone.
///   samples    the source, without the stray ones: ids count what is left; of tokens the windows, of each part of a concat() for
///              itself
///   strays     how many were left out
///   warnings   what was left out, a line for a person each
///   pictures   one for all where hardly a sample has two of jpg, jpeg and png (a folder, a shard of mixed formats); else
///              one for each name
///   labels     outputs that hold numbers; "cls" first where there is one
struct chosen_fields {
  dataset samples;
  std::size_t strays = 0;
  std::vector<std::string> warnings = {};
  std::vector<field> all = {};
  std::vector<image> pictures = {};
  std::vector<std::string> labels = {};
  std::vector<std::string> texts = {};
  std::vector<std::string> arrays = {};
  std::vector<std::string> masks = {};
  std::vector<std::string> boxes = {};
  std::vector<std::string> windows = {};  ///< outputs of tokens: x, y, and what document_rule::mark adds
};

/// What a label's text holds (a class number, a float, a vector) is seen from the first sample's.
///   throws   error{errc::unsupported} for a source without any field; error{errc::usage} for tokens without a length of windows;
///            of windows as cut_windows()
[[nodiscard]] chosen_fields fields_of(const dataset& samples, const picture_options& pictures,
                                      const window_options& windows = {});

}  // namespace leat::tools
