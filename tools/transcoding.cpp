#include "tools/transcoding.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/pixels/jpeg_transcoder.hpp"
#include "stages/pixels/picture_decoder.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>
#include <leat/transforms.hpp>

#include <algorithm>
#include <ctime>

namespace leat::tools {
namespace {

constexpr std::uint64_t measured_max = 6;

double thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The thread's seconds of what `decode` does, the shortest of some tries; 0 where it fails.
template <class Decode>
double least_s(int tries, const Decode& decode) {
  double least = 0;
  for (int round = 0; round < tries; ++round) {
    const double began = thread_cpu_s();
    if (!decode()) return 0;
    const double took = thread_cpu_s() - began;
    least = round == 0 ? took : std::min(least, took);
  }
  return least;
}

double decoding_s(pixels::picture_decoder& decoder, std::span<const std::byte> encoded) {
  return least_s(2, [&] { return static_cast<bool>(decoder.decode_whole(encoded, {})); });
}

/// Training crops of photographs, as JPEGs and as packs.
class pack_measurement {
 public:
  [[nodiscard]] bool is_enough() const noexcept { return measured_ == packs_measured_max; }

  void add(pixels::picture_decoder& decoder, std::span<const std::byte> jpeg) {
    std::vector<std::byte> pack;
    try {
      pack = pack_photo(jpeg);
    } catch (const error&) {
      return;  // It would stay as it is.
    }
    const double jpeg_s = cropping_s(decoder, jpeg);
    const double pack_s = cropping_s(decoder, pack);
    if (jpeg_s <= 0 || pack_s <= 0) return;
    jpeg_bytes_ += static_cast<double>(jpeg.size());
    pack_bytes_ += static_cast<double>(pack.size());
    jpeg_s_ += jpeg_s;
    pack_s_ += pack_s;
    ++measured_;
  }

  [[nodiscard]] jpeg_survey::pack_gain result() const {
    if (measured_ == 0) return {};
    return {measured_, pack_bytes_ / jpeg_bytes_, jpeg_s_ / pack_s_};
  }

 private:
  static constexpr std::uint64_t packs_measured_max = 8;
  static constexpr std::uint32_t crops = 2;

  // The same crops of both.
  double cropping_s(pixels::picture_decoder& decoder, std::span<const std::byte> encoded) {
    return least_s(2, [&] {
      for (std::uint32_t crop = 0; crop < crops; ++crop) {
        if (!decoder.decode(encoded, steps_, {0, crop, measured_}, store_, {.decimate = true}, row_.data(), nullptr))
          return false;
      }
      return true;
    });
  }

  const pixels::pipeline steps_{std::vector<transform>{transforms::random_resized_crop{}}};
  const pixels::store store_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row_{store_.row_bytes(steps_.out_height(), steps_.out_width())};
  std::uint64_t measured_ = 0;
  double jpeg_bytes_ = 0;
  double pack_bytes_ = 0;
  double jpeg_s_ = 0;
  double pack_s_ = 0;
};

/// The field of a sample that holds a picture, if it has one.
std::optional<std::uint16_t> picture_of(const datasets::dataset_model& model, std::uint64_t sample,
                                        datasets::part_list& parts) {
  parts.clear();
  model.parts(sample, parts);
  for (const datasets::part& each : parts) {
    if (model.fields()[each.field].kind == field_kind::picture && each.where.stored_bytes > 0) return each.field;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::byte>> transcoding::rewrite(std::string_view member,
                                                           std::span<const std::byte> content) {
  const bool is_jpeg = content.size() >= 2 && content[0] == std::byte{0xFF} && content[1] == std::byte{0xD8};
  if (!is_jpeg) return std::nullopt;
  std::vector<std::byte> file;
  const auto result = pixels::transcode_to_baseline(content, file);
  if (!result) {
    leave(member, result.reason());
    return std::nullopt;
  }
  if (*result == pixels::transcode_result::as_it_is) {
    add_as_it_was();
    return std::nullopt;
  }
  add_rewritten(content.size(), file.size());
  return file;
}

double jpeg_survey::saving() const noexcept {
  if (looked_at == 0 || speed_up <= 1) return 0;
  const double share = static_cast<double>(not_baseline) / static_cast<double>(looked_at);
  const double before = share * speed_up + (1 - share);
  return (before - 1) / before;
}

jpeg_survey survey_jpegs(const dataset& samples, std::uint64_t looks_max) {
  const datasets::dataset_model& model = *samples.model();
  jpeg_survey found;
  pixels::scratch_budget budget(std::size_t{1} << 30);
  pixels::picture_decoder decoder(budget);
  datasets::part_list parts;
  std::vector<std::byte> file;
  double before_s = 0;
  double after_s = 0;
  pack_measurement packs;
  const std::uint64_t looks = std::min(looks_max, samples.size());
  for (std::uint64_t k = 0; k < looks; ++k) {
    const std::uint64_t sample = samples.size() * k / looks;
    const std::optional<std::uint16_t> field = picture_of(model, sample, parts);
    if (!field) continue;
    try {
      const std::vector<std::byte> encoded = samples.read(sample, model.fields()[*field].name);
      if (encoded.size() < 2 || encoded[0] != std::byte{0xFF} || encoded[1] != std::byte{0xD8}) continue;
      const auto result = pixels::transcode_to_baseline(encoded, file);
      if (!result) continue;
      ++found.looked_at;
      if (*result == pixels::transcode_result::as_it_is) {
        if (!packs.is_enough()) packs.add(decoder, encoded);
        continue;
      }
      ++found.not_baseline;
      if (found.measured == measured_max) continue;
      const double one_before_s = decoding_s(decoder, encoded);
      const double one_after_s = decoding_s(decoder, file);
      if (one_before_s <= 0 || one_after_s <= 0) continue;
      before_s += one_before_s;
      after_s += one_after_s;
      ++found.measured;
    } catch (const error&) {
      // A sample that cannot be read is reported by who loads it.
    }
  }
  if (after_s > 0) found.speed_up = before_s / after_s;
  found.packs = packs.result();
  return found;
}

}  // namespace leat::tools
