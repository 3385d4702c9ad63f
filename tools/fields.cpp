#include "tools/fields.hpp"

#include "base/hash_map.hpp"
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/files/sample_counts.hpp"
#include "datasets/model/model.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/tokenize/chat_template.hpp"
#include "tools/arguments.hpp"
#include "tools/augment_text.hpp"
#include "tools/human.hpp"

#include <leat/clip.hpp>
#include <leat/error.hpp>
#include <leat/targets.hpp>
#include <leat/tokenizer.hpp>

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

image picture(const std::string& name, const picture_options& options) {
  const int size = static_cast<int>(options.size);
  std::vector<transform> steps;
  if (options.train) {
    steps = {transforms::random_resized_crop{.height = size, .width = size}, transforms::random_flip{}};
  } else {
    // The customary 256 for 224, in proportion.
    steps = {transforms::resize{.shorter_side = (size * 256 + 112) / 224}, transforms::center_crop{size, size}};
  }
  if (!options.augment.empty()) {
    steps.insert(steps.end(), options.augment.begin(), options.augment.end());
    try {
      pixels::pipeline{steps, options.rounding};
    } catch (const error& failure) {
      throw error(failure.code(), str_cat("--augment: ", failure.what()));
    }
  }
  image field(name);
  for (const transform& each : steps) field = field.apply(each);
  if (options.rounding == pixel_rounding::fused) field = field.rounding(options.rounding);
  if (options.type != dtype::u8) field = field.normalize(imagenet);
  if (!options.background.empty()) {
    field = field.background(options.background[0], options.background[1], options.background[2]);
  }
  return field.as(options.type)
      .as(options.order)
      .exif_orientation(options.exif_orientation)
      .truncated(options.truncated)
      .decoder(options.decoder);
}

bool goes_as_jpg(std::string_view name) {
  const std::span<const std::string_view> any = datasets::picture_names();
  return std::find(any.begin(), any.end(), name) != any.end();
}

// What a batch may hold: a field, or several that are names for one thing.
struct candidate {
  std::string name;
  field_kind kind = field_kind::bytes;
  bool is_column = false;
  std::uint64_t samples = 0;           // that have it
  std::uint64_t samples_of_first = 0;  // of those that have the commonest candidate
  bool taken = true;
};

/// Finds what the samples really have. One stray member must not make its extension a field that every sample is expected to have.
class field_survey {
 public:
  explicit field_survey(const dataset& samples) : samples_(samples), fields_(samples.fields()) {
    const bool all_alike = std::all_of(fields_.begin(), fields_.end(),
                                       [&](const field_info& each) { return each.samples == samples.size(); });
    const auto pictures = std::count_if(fields_.begin(), fields_.end(), is_any_picture);
    if (pictures > 1 || !all_alike) count();
    name_candidates(pictures <= 1 || has_one_picture());
    if (!all_alike) choose();
  }

  [[nodiscard]] const std::vector<candidate>& candidates() const noexcept { return candidates_; }
  [[nodiscard]] const std::vector<std::uint64_t>& strays() const noexcept { return strays_; }

 private:
  using field_set = datasets::sample_counts::field_set;

  static bool is_any_picture(const field_info& field) { return !field.column && goes_as_jpg(field.name); }

  void count() {
    counts_ = samples_.model()->counts();
    if (counts_ != nullptr) return;
    for (std::uint64_t sample = 0; sample < samples_.size(); ++sample) counted_.add(present_in(sample));
    counts_ = &counted_;
  }

  // What a sample has, as places in fields_.
  [[nodiscard]] const std::vector<std::uint32_t>& present_in(std::uint64_t sample) {
    const datasets::dataset_model& model = *samples_.model();
    present_.clear();
    parts_.clear();
    model.parts(sample, parts_);
    for (const datasets::part& each : parts_) present_.push_back(each.field);
    const std::size_t stored = model.fields().size();
    for (std::size_t column = 0; column < model.columns().size(); ++column) {
      if (model.column(sample, column)) present_.push_back(static_cast<std::uint32_t>(stored + column));
    }
    return present_;
  }

  // Whether jpg, jpeg, png and the others are names for the same thing: hardly a sample has two of them.
  [[nodiscard]] bool has_one_picture() const {
    std::uint64_t with_one = 0;
    std::uint64_t with_two = 0;
    for (const field_set& set : counts_->sets()) {
      const auto pictures = std::count_if(set.fields.begin(), set.fields.end(),
                                          [&](std::uint32_t field) { return is_any_picture(fields_[field]); });
      with_one += pictures > 0 ? set.samples : 0;
      with_two += pictures > 1 ? set.samples : 0;
    }
    return is_few(with_two, with_one) && with_two < with_one;
  }

  void name_candidates(bool one_picture) {
    hash_map<std::string, std::size_t> places;
    for (const field_info& each : fields_) {
      const std::string name = one_picture && is_any_picture(each) ? "jpg" : each.name;
      // A field and a column of one name are the halves of a concatenation, and one label.
      const auto [known, is_new] = places.try_emplace(name, candidates_.size());
      candidate_of_.push_back(known->second);
      if (is_new) {
        candidates_.push_back({.name = name, .kind = each.kind, .is_column = each.column});
      } else {
        candidate& before = candidates_[known->second];
        before.is_column = before.is_column && each.column;
      }
    }
  }

  // Places in candidates_, each once.
  [[nodiscard]] std::vector<std::size_t> candidates_of(const field_set& set) const {
    std::vector<std::size_t> found;
    for (const std::uint32_t field : set.fields) found.push_back(candidate_of_[field]);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void choose() {
    for (const field_set& set : counts_->sets()) {
      for (const std::size_t each : candidates_of(set)) candidates_[each].samples += set.samples;
    }
    const auto before = [](const candidate& a, const candidate& b) {
      if (a.samples != b.samples) return a.samples < b.samples;
      return a.kind != field_kind::picture && b.kind == field_kind::picture;
    };
    const auto first = std::max_element(candidates_.begin(), candidates_.end(), before);
    if (first == candidates_.end() || first->samples == 0) return;
    const auto first_index = static_cast<std::size_t>(first - candidates_.begin());
    for (const field_set& set : counts_->sets()) {
      const std::vector<std::size_t> found = candidates_of(set);
      if (!std::binary_search(found.begin(), found.end(), first_index)) continue;
      for (const std::size_t each : found) candidates_[each].samples_of_first += set.samples;
    }
    for (candidate& each : candidates_) {
      const std::uint64_t without = first->samples - each.samples_of_first;
      each.taken = each.samples_of_first > 0 && (without <= 1 || without < each.samples_of_first);
    }
    find_strays(std::max<std::uint64_t>(strays_max, first->samples / 10));
  }

  // Samples that have nothing of what is taken.
  void find_strays(std::uint64_t most) {
    const auto is_stray = [&](const std::vector<std::uint32_t>& fields) {
      return std::none_of(fields.begin(), fields.end(),
                          [&](std::uint32_t field) { return candidates_[candidate_of_[field]].taken; });
    };
    std::uint64_t strays = 0;
    bool all_known = true;
    for (const field_set& set : counts_->sets()) {
      if (!is_stray(set.fields)) continue;
      strays += set.samples;
      all_known = all_known && set.first.size() == set.samples;
      strays_.insert(strays_.end(), set.first.begin(), set.first.end());
    }
    std::sort(strays_.begin(), strays_.end());
    // So many are no accident but samples that lack something: members of a sample that do not lie together, say.
    if (strays > most) strays_.clear();
    if (strays > most || all_known) return;
    strays_.clear();
    for (std::uint64_t sample = 0; sample < samples_.size(); ++sample) {
      if (is_stray(present_in(sample))) strays_.push_back(sample);
    }
  }

  static constexpr std::uint64_t strays_max = 10;

  // One, or one in ten.
  static bool is_few(std::uint64_t some, std::uint64_t all) { return some <= std::max<std::uint64_t>(1, all / 10); }

  const dataset& samples_;
  const std::vector<field_info> fields_;
  std::vector<candidate> candidates_;
  std::vector<std::size_t> candidate_of_;  // By place in fields_.
  std::vector<std::uint64_t> strays_;
  const datasets::sample_counts* counts_ = nullptr;
  datasets::sample_counts counted_;
  datasets::part_list parts_;
  std::vector<std::uint32_t> present_;
};

dataset without(const dataset& samples, const std::vector<std::uint64_t>& strays) {
  if (strays.empty()) return samples;
  std::vector<std::uint64_t> rest;
  rest.reserve(samples.size() - strays.size());
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    const std::uint64_t strays_before = sample - rest.size();
    if (strays_before == strays.size() || strays[strays_before] != sample) rest.push_back(sample);
  }
  return samples.subset(rest);
}

dataset cut_each(const dataset& samples, const tokens& how) {
  std::vector<dataset> parts;
  for (const auto& part : samples.model()->joined()) parts.push_back(cut_windows(dataset(part), how));
  return parts.empty() ? cut_windows(samples, how) : concat(parts);
}

constexpr std::size_t names_max = 3;

std::string and_more(std::size_t all) {
  return all > names_max ? str_cat(" and ", count_text(all - names_max), " more") : std::string();
}

//   has_clips   frames are read whatever their number is
std::vector<std::string> warnings_of(const dataset& samples, const field_survey& found, bool has_clips) {
  std::vector<std::string> warnings;
  std::string names;
  std::string taken;
  std::size_t left_out = 0;
  for (const candidate& each : found.candidates()) {
    if (each.taken) {
      str_append(taken, taken.empty() ? "" : ", ", each.name);
    } else if (has_clips && each.kind == field_kind::picture) {
      continue;
    } else if (++left_out <= names_max) {
      str_append(names, left_out > 1 ? ", " : "", each.name, " (", count_text(each.samples), ")");
    }
  }
  if (left_out > 0) {
    warnings.push_back(str_cat("warning: left out, since too few of ",
                               counted(samples.size(), "sample has it: ", "samples have it: "), names,
                               and_more(left_out)));
  }
  if (const std::vector<std::uint64_t>& strays = found.strays(); !strays.empty()) {
    std::string which;
    for (std::size_t i = 0; i < std::min(strays.size(), names_max); ++i) {
      str_append(which, i > 0 ? ", " : "", samples.name(strays[i]));
    }
    warnings.push_back(str_cat("warning: left out, as no part of a sample (they have no ", taken, "): ", which,
                               and_more(strays.size())));
  }
  return warnings;
}

// A source of which no sample has anything of what a batch takes: that is no damage of its samples.
void refuse_other_sources(const dataset& samples, const field_survey& found) {
  std::string taken;
  for (const candidate& each : found.candidates()) {
    if (each.taken) str_append(taken, taken.empty() ? "" : ", ", each.name);
  }
  std::uint64_t first = 0;
  for (const auto& model : samples.model()->joined()) {
    const dataset part(model);
    const std::uint64_t begin = std::exchange(first, first + part.size());
    const std::vector<std::uint64_t>& strays = found.strays();
    if (part.size() == 0 || std::binary_search(strays.begin(), strays.end(), begin)) continue;
    std::string names;
    bool has_any = false;
    for (const field_info& field : part.fields()) {
      str_append(names, names.empty() ? "" : ", ", field.name);
      has_any =
          has_any || std::any_of(found.candidates().begin(), found.candidates().end(), [&](const candidate& each) {
            const bool is_it = each.name == field.name || (each.name == "jpg" && goes_as_jpg(field.name));
            return each.taken && is_it;
          });
    }
    if (has_any) continue;
    throw error(errc::usage, str_cat("the sources do not match: ", part.name(0), " has ", names, ", and nothing of ",
                                     taken, ", which others have; load them apart"));
  }
}

constexpr const char* clip_name = "clip";

// All pictures of a sample are frames of one clip. They end alike: "000.jpg", "001.jpg".
clip clip_of(const field_survey& found, const picture_options& how) {
  if (how.views != 0) throw error(errc::usage, "--clip and --views are two kinds of pictures; leave one of them out");
  std::string first;
  for (const candidate& each : found.candidates()) {
    if (each.kind != field_kind::picture) continue;
    if (each.name.find('.') == std::string::npos) {
      throw error(errc::usage, str_cat("--clip: the samples have one picture, '", each.name,
                                       "'; frames are several members of a sample, as 000.jpg, 001.jpg"));
    }
    if (first.empty()) first = each.name;
    if (each.name.substr(each.name.rfind('.')) == first.substr(first.rfind('.'))) continue;
    throw error(errc::usage, str_cat("--clip: pictures end differently, '", first, "' and '", each.name,
                                     "'; which are frames is said in a program: leat::clip"));
  }
  if (first.empty()) throw error(errc::usage, "--clip without pictures among the fields; leave it out");
  return clip(picture(clip_name, how).from(str_cat("*", first.substr(first.rfind('.')))),
              {.frames = static_cast<int>(how.clip_frames),
               .stride = static_cast<int>(how.clip_stride),
               .random_start = how.train});
}

// Members that follow a picture, as the options ask for them.
class targets_of {
 public:
  targets_of(const field_survey& found, const picture_options& how) : masks_(how.masks) {
    if (!how.boxes.empty()) {
      boxes_ = absl::StrSplit(how.boxes, absl::MaxSplits(':', 2));
      if (std::find(boxes_.begin(), boxes_.end(), "") != boxes_.end()) {
        throw error(errc::usage, str_cat("--boxes '", how.boxes, "': it is NAME, NAME:KEY or NAME:KEY:LABELS"));
      }
    }
    for (const candidate& each : found.candidates()) {
      if (!each.taken || is_mask(each.name)) continue;
      if (each.kind == field_kind::picture && picture_.empty()) picture_ = each.name;
    }
    if (how.clip_frames != 0) picture_ = clip_name;
    for (const std::string& each : masks_) check("--mask", each, found);
    if (!boxes_.empty()) check("--boxes", boxes_.front(), found);
  }

  [[nodiscard]] bool is_mask(std::string_view member) const {
    return std::find(masks_.begin(), masks_.end(), member) != masks_.end();
  }
  [[nodiscard]] bool is_boxes(std::string_view member) const { return !boxes_.empty() && boxes_.front() == member; }
  [[nodiscard]] field mask_of(const std::string& member) const { return mask(member).follows(picture_); }
  [[nodiscard]] field boxes_of() const {
    boxes made = boxes(boxes_.front()).follows(picture_);
    if (boxes_.size() > 1) made = made.key(boxes_[1]);
    return boxes_.size() > 2 ? made.labels(boxes_[2]) : made;
  }

 private:
  void check(std::string_view option, const std::string& member, const field_survey& found) const {
    if (picture_.empty())
      throw error(errc::usage, str_cat(option, " without a picture that it belongs to; leave it out"));
    std::vector<std::string> names;
    for (const candidate& each : found.candidates()) {
      if (each.taken && each.name == member) return;
      if (each.taken) names.push_back(each.name);
    }
    throw error(errc::usage, str_cat(option, " '", member, "': no such field; there is ", joined(names, ", "),
                                     did_you_mean(member, names)));
  }

  std::vector<std::string> masks_;
  std::vector<std::string> boxes_;
  std::string picture_;
};

array array_of(const dataset& samples, const std::string& name, const picture_options& how) {
  array field(name);
  const std::vector<field_info> fields = samples.fields();
  const auto info =
      std::find_if(fields.begin(), fields.end(), [&](const field_info& each) { return each.name == name; });
  if (how.array_crop.empty() || info == fields.end() || info->shape.size() < how.array_crop.size()) return field;
  return how.train ? field.random_crop(how.array_crop) : field.center_crop(how.array_crop);
}

// Whether the format tells what its numbers are.
bool is_type_known(const dataset& samples, std::string_view name) {
  const std::optional<std::uint16_t> field = samples.model()->find_field(name);
  return field && samples.model()->fields()[*field].type != dtype::u8;
}

label label_like(const dataset& samples, const candidate& info) {
  label field(info.name);
  if (info.is_column || samples.size() == 0) return field;
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
  if (!whole && !is_type_known(samples, info.name)) field = field.as(dtype::f32);
  return numbers > 1 ? field.vector(numbers) : field;
}

// The tokens of texts, or of chats, as far as the options ask for them.
class text_tokens {
 public:
  text_tokens(const field_survey& found, const window_options& how) : how_(how) {
    if (how.tokenizer.empty()) return;
    words_.emplace(tokenizer::open(how.tokenizer));
    if (how.chat) chats_ = find_chats(found);
  }

  /// Nothing where it is to stay what it is.
  [[nodiscard]] std::optional<field> of(const candidate& member) {
    if (!words_) return std::nullopt;
    if (how_.chat) return member.name == chats_ ? std::optional(made(chat_of(member.name))) : std::nullopt;
    if (member.kind != field_kind::text) return std::nullopt;
    has_made_ = true;
    return made(tokenize(member.name, *words_));
  }
  /// Throws error{errc::usage} where nothing became tokens.
  void check() const {
    if (!words_ || how_.chat || has_made_) return;
    throw error(errc::usage, "--tokenizer without a text among the fields; leave it out");
  }

 private:
  template <class Field>
  [[nodiscard]] field made(const Field& of_text) const {
    const Field ids = of_text.keep_counts(how_.counts);
    const std::int64_t row = how_.text_tokens;
    return row == 0 ? ids : ids.truncate(row).pad(row);
  }
  [[nodiscard]] chat chat_of(const std::string& member) const {
    const chat plain = chat(member, *words_).with_template(how_.chat->template_name);
    return how_.chat->mask_prompt ? plain.mask_prompt() : plain;
  }
  // "messages", as all publish them, or the only one that may be.
  static std::string find_chats(const field_survey& found) {
    std::vector<std::string> all;
    for (const candidate& each : found.candidates()) {
      if (!each.taken || (each.kind != field_kind::text && each.kind != field_kind::bytes)) continue;
      if (each.name == "messages") return each.name;
      all.push_back(each.name);
    }
    if (all.size() == 1) return all.front();
    std::string names;
    for (const std::string& each : all) str_append(names, names.empty() ? "" : ", ", each);
    throw error(errc::usage, all.empty() ? "--chat without lists of messages among the fields; leave it out"
                                         : str_cat("--chat: none of the fields is 'messages'; there is ", names));
  }

  const window_options& how_;
  std::optional<tokenizer> words_;
  std::string chats_;
  bool has_made_ = false;
};

void add_chat_options(CLI::App& app, window_options& windows, CLI::Option* tokenizer) {
  // The one that the tokenizer's special tokens name.
  constexpr std::string_view by_tokens = "auto";
  std::string names(by_tokens);
  for (const std::string_view each : stages::chat_template::names()) str_append(names, "|", each);
  CLI::Option* const chats =
      app.add_option_function<std::string>(
             "--chat",
             [&windows, names, by_tokens](const std::string& given) {
               const std::vector<std::string_view> known = stages::chat_template::names();
               if (given != by_tokens && std::find(known.begin(), known.end(), given) == known.end()) {
                 refuse("--chat", given, names);
               }
               if (!windows.chat) windows.chat.emplace();
               windows.chat->template_name = given == by_tokens ? std::string() : given;
             },
             "chats (messages) become input_ids and labels, as that model writes them; auto: as its tokens tell")
          ->type_name(names)
          ->needs(tokenizer);
  app.add_flag_callback(
         "--mask-prompt",
         [&windows] {
           if (!windows.chat) windows.chat.emplace();
           windows.chat->mask_prompt = true;
         },
         "of --chat: labels are -100 outside of answers")
      ->needs(chats);
}

}  // namespace

void add_picture_options(CLI::App& app, picture_options& pictures) {
  add_choice(app, "--transform", pictures.train, {{"train", true}, {"eval", false}},
             "train: random crop and flip; eval: resize and centre crop (train)");
  add_augment_option(app, pictures.augment);
  add_choice(app, "--rounding", pictures.rounding, {{"exact", pixel_rounding::exact}, {"fused", pixel_rounding::fused}},
             "fused: crop, flip and warps look pixels up once; exact: each step gives the next whole values (exact)");
  add_number(app, "--size", pictures.size, 1, "pixels of a picture's side (224)", 16384);
  add_choice(app, "--dtype", pictures.type,
             {{"u8", dtype::u8}, {"f16", dtype::f16}, {"bf16", dtype::bf16}, {"f32", dtype::f32}},
             "of pictures; floats are normalised as for ImageNet (f32)");
  add_choice(app, "--layout", pictures.order, {{"nchw", layout::nchw}, {"nhwc", layout::nhwc}}, "of pictures (nchw)");
  app.add_option(
         "--array-crop", pictures.array_crop,
         "of arrays, as 128,128,128: elements along the last axes; train: a random box, eval: the one in the middle")
      ->delimiter(',')
      ->type_name("N,N,...");
  add_text(app, "--images", pictures.images, "DIR",
           "the source is a file of COCO's annotations of the pictures in this folder: --mask segmentation, --boxes "
           "json:boxes:classes");
  app.add_option("--mask", pictures.masks, "a member with a number for each pixel of the picture, which follows it")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_text(app, "--boxes", pictures.boxes, "NAME[:KEY[:LABELS]]",
           "a member of JSON with boxes in the picture, xyxy, and the keys of their list and of their classes");
  app.add_flag("--exif-orientation", pictures.exif_orientation,
               "turn pictures upright first, as EXIF or XMP says (as they are stored)");
  add_choice(app, "--truncated", pictures.truncated,
             {{"refuse", truncated_jpeg::refuse}, {"accept", truncated_jpeg::accept}},
             "JPEGs that lost their ends: corrupt, or grey from there on (refuse)");
  app.add_option("--background", pictures.background,
                 "the colour that pictures with alpha are laid over, as 255,255,255 (their alpha is dropped)")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(0, 255).description(""))
      ->type_name("R,G,B");
}

void add_clip_option(CLI::App& app, picture_options& pictures) {
  app.add_option_function<std::string>(
         "--clip",
         [&pictures](const std::string& given) {
           constexpr std::uint32_t frames_max = 1024;
           const std::size_t comma = std::min(given.find(','), given.size());
           if (comma == 0 || comma + 1 == given.size()) {
             refuse("--clip", given, "how many frames, and behind a comma their stride, as 16,2");
           }
           pictures.clip_frames =
               static_cast<std::uint32_t>(parse_number("--clip", given.substr(0, comma), 1, frames_max));
           if (comma == given.size()) return;
           pictures.clip_stride =
               static_cast<std::uint32_t>(parse_number("--clip", given.substr(comma + 1), 1, 1U << 20));
         },
         "pictures of a sample (000.jpg, 001.jpg, ...) are frames: so many of them, each STRIDE behind the one before "
         "(1); train: from a random one on")
      ->type_name("N[,STRIDE]");
}

void add_order_options(CLI::App& app, order_options& order) {
  add_number(app, "--batch-size", order.batch_size, 1, "samples in a batch (64)", 1U << 24);
  add_number(app, "--seed", order.seed, 0, "of all that is drawn: order, crops, flips, colour (0)");
  CLI::Option* const shuffle =
      app.add_flag("--shuffle", order.shuffle, "every sample once, in an order drawn from the seed (with train)");
  app.add_flag("--no-shuffle", order.no_shuffle, "in the source's order (with eval)")->excludes(shuffle);
}

CLI::Option* add_window_options(CLI::App& app, window_options& windows) {
  CLI::Option* const tokens =
      add_number(app, "--tokens", windows.length, 1,
                 "the sources are files of tokens: windows of so many are the samples", std::uint64_t{1} << 30);
  add_choice(
      app, "--token-type", windows.stored,
      {{"u16", std::optional(dtype::u16)}, {"u32", std::optional(dtype::u32)}, {"i32", std::optional(dtype::i32)}},
      "of token files that have no header to say it (u16)")
      ->needs(tokens);
  add_choice(app, "--windows", windows.order,
             {{"shifted", window_order::shifted}, {"tiled", window_order::tiled}, {"random", window_order::random}},
             "side by side from an offset drawn for each epoch, from the first token on, or each anywhere (shifted)")
      ->needs(tokens);
  add_choice(app, "--documents", windows.documents,
             {{"ignore", document_rule::ignore}, {"mark", document_rule::mark}, {"within", document_rule::within}},
             "windows cross their borders, with outputs that say where, or never (ignore)")
      ->needs(tokens);
  CLI::Option* const tokenizer =
      add_text(app, "--tokenizer", windows.tokenizer, "FILE",
               "texts become tokens: tokenizer.json, tokenizer.model, or cl100k_base.tiktoken and the like");
  add_number(app, "--text-tokens", windows.text_tokens, 1,
             "texts are cut and filled up to so many tokens (their own number)", 1U << 30)
      ->needs(tokenizer);
  add_chat_options(app, windows, tokenizer);
  return tokens;
}

void add_token_output_option(CLI::App& app, window_options& windows, CLI::Option* tokens) {
  add_choice(app, "--tokens-as", windows.type,
             {{"i32", std::optional(dtype::i32)}, {"i64", std::optional(dtype::i64)}, {"stored", std::nullopt}},
             "the dtype of x and y; stored: the file's own (i64)")
      ->needs(tokens);
}

chosen_fields fields_of(const dataset& samples, const picture_options& pictures, const window_options& windows) {
  const field_survey found(samples);
  refuse_other_sources(samples, found);
  chosen_fields chosen{.samples = without(samples, found.strays()),
                       .strays = found.strays().size(),
                       .warnings = warnings_of(samples, found, pictures.clip_frames != 0)};
  text_tokens tokenized(found, windows);
  const targets_of targets(found, pictures);
  if (pictures.clip_frames != 0) {
    chosen.pictures.push_back(picture(clip_name, pictures));
    chosen.all.emplace_back(clip_of(found, pictures));
  }
  for (const candidate& each : found.candidates()) {
    if (!each.taken) continue;
    if (pictures.clip_frames != 0 && each.kind == field_kind::picture && !targets.is_mask(each.name)) continue;
    if (targets.is_mask(each.name)) {
      chosen.masks.push_back(each.name);
      chosen.all.push_back(targets.mask_of(each.name));
      continue;
    }
    if (targets.is_boxes(each.name)) {
      chosen.boxes.push_back(each.name);
      chosen.all.push_back(targets.boxes_of());
      continue;
    }
    if (std::optional<field> ids = tokenized.of(each)) {
      chosen.all.push_back(std::move(*ids));
      continue;
    }
    switch (each.kind) {
      case field_kind::picture:
        chosen.pictures.push_back(picture(each.name, pictures));
        chosen.all.push_back(pictures.views == 0
                                 ? field(chosen.pictures.back())
                                 : views(chosen.pictures.back(), static_cast<int>(pictures.views), each.name));
        break;
      case field_kind::label:
        chosen.labels.push_back(each.name);
        chosen.all.emplace_back(label_like(chosen.samples, each));
        break;
      case field_kind::text:
        chosen.texts.push_back(each.name);
        chosen.all.emplace_back(text(each.name));
        break;
      case field_kind::bytes:
        chosen.all.emplace_back(bytes(each.name));
        break;
      case field_kind::tensor:
        chosen.arrays.push_back(each.name);
        chosen.all.emplace_back(array_of(samples, each.name, pictures));
        break;
      case field_kind::tokens: {
        if (windows.length == 0) {
          throw error(errc::usage,
                      "the source holds tokens, and no samples yet; give --tokens LENGTH, as --tokens 1024");
        }
        chosen.windows = {"x", "y"};
        if (windows.documents == document_rule::mark) {
          chosen.windows.insert(chosen.windows.end(), {"document", "position"});
        }
        const tokens how{.length = static_cast<std::int64_t>(windows.length),
                         .type = windows.type,
                         .windows = windows.order,
                         .documents = windows.documents,
                         .field = each.name};
        chosen.samples = cut_each(chosen.samples, how);
        chosen.all.emplace_back(how);
        break;
      }
    }
  }
  const auto cls = std::find(chosen.labels.begin(), chosen.labels.end(), "cls");
  if (cls != chosen.labels.end()) std::rotate(chosen.labels.begin(), cls, cls + 1);
  if (!pictures.augment.empty() && chosen.pictures.empty()) {
    throw error(errc::usage, "--augment without a picture among the fields; leave it out");
  }
  tokenized.check();
  if (chosen.all.empty()) throw error(errc::unsupported, "the source has no field: no sample in it has any bytes");
  return chosen;
}

}  // namespace leat::tools
