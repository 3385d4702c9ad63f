#include "stages/pixels/wide_decoder.hpp"

#include "base/text.hpp"
#include "stages/pixels/picture_format.hpp"
#include "stages/pixels/tiff.hpp"
#include "stages/pixels/wide_png_reader.hpp"
#include "stages/pixels/wide_resampler.hpp"

#include <cassert>
#include <optional>
#include <string_view>

namespace leat::pixels {
namespace {

std::string_view text_of(sample_kind kind) noexcept {
  constexpr std::string_view names[] = {"unsigned", "signed", "float"};
  return names[static_cast<std::size_t>(kind)];
}

// Why a picture is none that the field reads.
std::string wrong_samples(const wide_info& info, int bits, const wide_store& how) {
  if (info.bits != bits) {
    return str_cat("a ", name(info.what), " with ", text_of(info.kind), " samples of ", info.bits,
                   info.bits == 1 ? " bit" : " bits", ", and bits() says ", bits);
  }
  if (info.kind == sample_kind::real && how.is_whole()) {
    return str_cat("a ", name(info.what), " with float samples, and as() says ", leat::name(how.type));
  }
  const bool fills_three = info.channels == 1 && how.channels == 3;
  if (info.channels != how.channels && !fills_three) {
    return str_cat("a ", name(info.what), " with ", info.channels, info.channels == 1 ? " channel" : " channels",
                   info.alpha ? " beside its alpha" : "", ", and channels() says ", how.channels);
  }
  return {};
}

}  // namespace

struct wide_decoder::state {
  explicit state(scratch_budget& budget) : arena(budget), png(arena), tiff(make_wide_tiff_reader(arena)) {}

  scratch_arena arena;
  wide_png_reader png;
  std::unique_ptr<wide_reader> tiff;  // null where it is not read

  outcome<wide_reader*> reader_of(std::span<const std::byte> encoded) {
    if (encoded.empty()) return stages::corrupt("empty: zero bytes", corrupt_kinds::empty);
    const format what = format_of(encoded);
    if (what == format::png) return static_cast<wide_reader*>(&png);
    if (what == format::tiff && tiff != nullptr) return tiff.get();
    if (!is_read(what)) {
      return stages::failure{stages::outcome_kind::unsupported, why_not_read(encoded), kind_of_unread(what)};
    }
    return stages::unsupported(
        str_cat("a ", name(what), ": bits(), and channels() of other than 1 or 3, read PNG and TIFF"));
  }
};

wide_decoder::wide_decoder(scratch_budget& budget) : state_(std::make_unique<state>(budget)) {}
wide_decoder::~wide_decoder() = default;

outcome<wide_decoded> wide_decoder::decode(std::span<const std::byte> encoded, const pipeline& steps,
                                           const draw_key& key, int bits, const wide_store& how,
                                           std::int64_t pixels_max, std::byte* row, const std::atomic<bool>* stop) {
  const arena_use use(state_->arena);
  const outcome<wide_reader*> found = state_->reader_of(encoded);
  if (!found) return found.error();
  wide_reader& reader = **found;
  const outcome<wide_info> info = reader.open(encoded, stop);
  if (!info) return info.error();
  if (std::int64_t{info->width} * info->height > pixels_max) {
    return stages::unsupported(
        str_cat(info->width, " x ", info->height, " pixels are more than pixels_max = ", pixels_max));
  }
  if (std::string wrong = wrong_samples(*info, bits, how); !wrong.empty()) return stages::unsupported(std::move(wrong));

  const geometry drawn = steps.compile(info->width, info->height, key);
  wide_resampler resampling(drawn, info->channels);
  const bool shows = resampling.region().width != 0;
  const rectangle region = shows ? resampling.region() : rectangle{0, 0, 1, 1};  // Damage is found all the same.
  outcome<void> done = state_->arena.reserve(reader.scratch_bytes(region) + resampling.scratch_bytes());
  if (!done) return done.error();
  wide_row to(how, *info, steps.out_height(), steps.out_width(), resampling.part(), drawn.flip, row);
  if (shows && !resampling.start(state_->arena, to)) {
    assert(false && "more scratch was taken than was reserved");
    return stages::unsupported("more scratch memory was needed than had been reserved");
  }
  to.start();
  done = reader.start(region);
  if (!done) return done.error();
  for (int y = 0; y < region.height; ++y) {
    const outcome<const float*> line = reader.read();
    if (!line) return line.error();
    if (const std::optional<float> number = to.first_beyond(*line, static_cast<std::size_t>(region.width))) {
      reader.stop_reading();
      return stages::corrupt(str_cat("the number ", *number, " at line ", region.y + y, ", which ",
                                     leat::name(how.type), " cannot hold; as() says another type"));
    }
    if (shows) resampling.push(*line);
  }
  return wide_decoded{drawn, info->width, info->height};
}

}  // namespace leat::pixels
