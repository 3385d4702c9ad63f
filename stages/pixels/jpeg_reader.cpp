#include "stages/pixels/jpeg_reader.hpp"

#include "stages/pixels/baseline_huffman.hpp"
#include "stages/pixels/jpeg_claims.hpp"
#include "stages/pixels/jpeg_memory.hpp"
#include "stages/pixels/photo_entropy.hpp"
#include "stages/pixels/photo_mcus.hpp"
#include "stages/pixels/photo_source.hpp"
#include "stages/pixels/resample_kernels.hpp"

#include <jerror.h>

#include <algorithm>
#include <cassert>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace leat::pixels {
namespace {

// Lines decoded at a time: an iMCU row of a 4:2:0 picture.
constexpr int strip_lines = 16;

// Fewer columns than this are not cut out: libjpeg-turbo chooses its upsampler by the width, and a narrow strip would be
// upsampled in another way than the whole picture is (jdsample.c: downsampled_width > 2, chroma at most 4 times coarser).
constexpr JDIMENSION columns_min = 16;

// Between two looks at `stop` while rows above the region are skipped: about 10 ms.
constexpr std::int64_t skip_pixels_max = 1'000'000;

// What libjpeg takes besides the arrays that we can name: modules, colour and Huffman tables. Measured 17 KiB at most
// (4 components, progressive); the test `takes_no_more_than_it_said` watches it.
constexpr std::size_t modules_bytes = std::size_t{32} << 10;

// Everything that libjpeg's error jumps may skip: plain data, no destructors.
struct frame {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  jpeg_memory memory;
  baseline_huffman huffman;
  photo_pack_view pack;
  photo_mcus photo;
  photo_entropy photo_stage;
  photo_source photo_jpeg;
  std::jmp_buf jump;

  // The reason for a jump.
  stages::outcome_kind failed;
  bool gave_up;  // our Huffman decoder did; libjpeg's may not
  char message[JMSG_LENGTH_MAX];

  // The parameters of the steps below.
  const unsigned char* encoded;
  std::size_t encoded_bytes;
  const std::atomic<bool>* stop;
  rectangle region;
  int decimation;
  bool is_pack;
  bool recoded;  // by `photo_jpeg`; else `photo_stage` is put into libjpeg
  bool own_huffman;
  bool accept_cut;
  bool plain;
  std::byte* kept;  // null: nothing is kept for another start
  std::size_t kept_bytes;
  int kept_line;
  bool again;

  // Where we are.
  int scans;  // as check_jpeg_claims() counted them
  bool several_scans;
  // An end marker stands behind the scan; or nobody asks, as with several scans, which are read to their end in any case.
  bool has_end;
  bool in_headers;
  bool is_cut;  // accept_cut: the data have ended, and libjpeg fills in
  bool skipping;
  JDIMENSION needed_mcu_row;  // the first iMCU row that has a part in the region
  int lines_left;
  JSAMPROW rows[strip_lines];
  int row_count;
  JSAMPROW below;             // a line of those behind the region, where they are looked at
  std::size_t column_offset;  // bytes before the region in a decoded line
};
static_assert(std::is_trivially_destructible_v<frame> && std::is_standard_layout_v<frame>);

frame& frame_of(j_common_ptr cinfo) noexcept { return *static_cast<frame*>(cinfo->client_data); }

[[noreturn]] void leave(frame& f, stages::outcome_kind kind) {
  f.failed = kind;
  f.cinfo.err->format_message(reinterpret_cast<j_common_ptr>(&f.cinfo), f.message);
  std::longjmp(f.jump, 1);
}

bool means_unsupported(int code) noexcept {
  switch (code) {
#if JPEG_LIB_VERSION < 70  // else no message
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_IMAGE_TOO_BIG:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_OUT_OF_MEMORY:
    case JERR_SOF_UNSUPPORTED:
    case JERR_WIDTH_OVERFLOW:
      return true;
    default:
      return false;
  }
}

void on_error(j_common_ptr cinfo) {
  leave(frame_of(cinfo),
        means_unsupported(cinfo->err->msg_code) ? stages::outcome_kind::unsupported : stages::outcome_kind::corrupt);
}

// Damage in the rows above the region is healed by a restart marker between the two.
bool heals_before_region(const frame& f) noexcept {
  const jpeg_decompress_struct& c = f.cinfo;
  if (!f.skipping || c.restart_interval == 0) return false;
  const std::uint64_t mcus_per_row =
      std::uint64_t{c.MCUs_per_row} *
      static_cast<unsigned>(c.comps_in_scan == 1 ? c.cur_comp_info[0]->v_samp_factor : 1);
  return (std::uint64_t{c.input_iMCU_row} + 1) * mcus_per_row + c.restart_interval <=
         std::uint64_t{f.needed_mcu_row} * mcus_per_row;
}

// libjpeg repairs damage and goes on. If it had to guess in the part that was asked for, we call the picture corrupt.
void on_message(j_common_ptr cinfo, int level) {
  if (level >= 0) return;
  frame& f = frame_of(cinfo);
  if (f.is_cut) return;
  switch (cinfo->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
      if (!heals_before_region(f)) leave(f, stages::outcome_kind::corrupt);
      return;
    case JWRN_MUST_RESYNC:  // What follows may have been put in the wrong place.
      leave(f, stages::outcome_kind::corrupt);
    case JWRN_JPEG_EOF:
      f.is_cut = f.accept_cut && !f.in_headers;
      if (f.is_cut) return;
      // One Huffman scan: reading bits ahead already warns, and JWRN_HIT_MARKER follows if a bit was missing.
      // Several scans: nothing else reports missing ones. Arithmetic coding: it reads zeros without a warning.
      if (f.in_headers || f.cinfo.arith_code != FALSE || jpeg_has_multiple_scans(&f.cinfo) != FALSE) {
        leave(f, stages::outcome_kind::corrupt);
      }
      return;
    default:  // extraneous bytes, an unknown JFIF version, odd progression parameters
      return;
  }
}

void on_output(j_common_ptr /*cinfo*/) {}

void check_stop(frame& f) {
  if (f.stop != nullptr && f.stop->load(std::memory_order_relaxed)) {
    f.failed = stages::outcome_kind::cancelled;
    std::longjmp(f.jump, 1);
  }
}

// Called once per row of blocks while a progressive picture is absorbed.
void on_progress(j_common_ptr cinfo) {
  frame& f = frame_of(cinfo);
  check_stop(f);
  if (f.cinfo.input_scan_number > f.scans) {
    f.failed = stages::outcome_kind::corrupt;
    std::strcpy(f.message, "scans that were hidden from a search for them");
    std::longjmp(f.jump, 1);
  }
}

// The only setjmp: `step` and what it calls hold plain data only, as the jump skips them.
bool run(frame& f, void (*step)(frame&)) {
  if (setjmp(f.jump) != 0) return false;
  step(f);
  return true;
}

void open_step(frame& f) {
  if (f.recoded) {
    f.photo_jpeg.begin(&f.cinfo, f.pack);
  } else {
    jpeg_mem_src(&f.cinfo, f.encoded, static_cast<unsigned long>(f.encoded_bytes));
  }
  f.in_headers = true;
  jpeg_read_header(&f.cinfo, TRUE);
  f.in_headers = false;
}

void set_parameters(frame& f) {
  jpeg_decompress_struct& c = f.cinfo;
  c.scale_num = 1;
  c.scale_denom = static_cast<unsigned>(f.decimation);
  c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
  c.dct_method = JDCT_ISLOW;
  c.do_fancy_upsampling = TRUE;
  // It guesses what an incomplete progressive picture lacks, from neighbours that a crop does not have.
  c.do_block_smoothing = FALSE;
}

void size_step(frame& f) {
  set_parameters(f);
  jpeg_calc_output_dimensions(&f.cinfo);
}

int dct_size(const jpeg_component_info& component) noexcept {
#if JPEG_LIB_VERSION >= 70
  return component.DCT_h_scaled_size;
#else
  return component.DCT_scaled_size;
#endif
}

int dct_size_min(const jpeg_decompress_struct& cinfo) noexcept {
#if JPEG_LIB_VERSION >= 70
  return cinfo.min_DCT_h_scaled_size;
#else
  return cinfo.min_DCT_scaled_size;
#endif
}

// jpeg_crop_scanline() narrows a component by its sampling factor alone and forgets that a decimated chroma may have kept
// more of its resolution: where it is upsampled after that, across or down, half the line would be missing.
bool columns_can_be_cut(const jpeg_decompress_struct& c) noexcept {
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& component = c.comp_info[i];
    const bool upsampled = component.h_samp_factor * dct_size(component) != c.max_h_samp_factor * dct_size_min(c) ||
                           component.v_samp_factor * dct_size(component) != c.max_v_samp_factor * dct_size_min(c);
    if (upsampled && dct_size(component) != dct_size_min(c)) return false;
  }
  return true;
}

// jdsample.c, jinit_upsampler(). False where a sample is no whole number of pixels.
bool choose_upsampling(const jpeg_decompress_struct& c, const jpeg_component_info& from, int max_h, int max_v,
                       photo_layout::component& to) {
  const int in_h = to.across * to.side / dct_size_min(c);
  const int in_v = to.down * to.side / dct_size_min(c);
  const bool fancy = dct_size_min(c) > 1;
  const bool fancy_across = fancy && from.downsampled_width > 2;
  if (in_h * 2 == max_h && in_v == max_v && fancy_across) {
    to.how = upsampling_kind::h2v1_fancy;
  } else if (in_h * 2 == max_h && in_v * 2 == max_v && fancy_across) {
    to.how = upsampling_kind::h2v2_fancy;
  } else if (in_h == max_h && in_v * 2 == max_v && fancy) {
    to.how = upsampling_kind::h1v2_fancy;
  } else {
    to.how = upsampling_kind::replicated;
    if (in_h == 0 || in_v == 0 || max_h % in_h != 0 || max_v % in_v != 0) return false;
    to.expand_x = max_h / in_h;
    to.expand_y = max_v / in_v;
  }
  return true;
}

// Whether upsampling looks at the lines above and below: then libjpeg decodes the one above the region, too.
bool lines_have_context(const jpeg_decompress_struct& c) {
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& from = c.comp_info[i];
    photo_layout::component each{};
    each.across = from.h_samp_factor;
    each.down = from.v_samp_factor;
    each.side = dct_size(from);
    if (!choose_upsampling(c, from, c.max_h_samp_factor, c.max_v_samp_factor, each)) continue;
    if (each.how == upsampling_kind::h2v2_fancy || each.how == upsampling_kind::h1v2_fancy) return true;
  }
  return false;
}

[[noreturn]] void on_give_up(j_decompress_ptr cinfo) {
  frame& f = frame_of(reinterpret_cast<j_common_ptr>(cinfo));
  f.gave_up = true;
  f.failed = stages::outcome_kind::corrupt;
  std::strcpy(f.message, "damaged");
  std::longjmp(f.jump, 1);
}

void on_damaged_row(j_decompress_ptr cinfo, std::uint32_t row) {
  frame& f = frame_of(reinterpret_cast<j_common_ptr>(cinfo));
  f.failed = stages::outcome_kind::corrupt;
  std::snprintf(f.message, sizeof(f.message), "photo pack: row %u of %u is damaged", static_cast<unsigned>(row),
                static_cast<unsigned>(f.pack.head.mcu_rows));
  std::longjmp(f.jump, 1);
}

void install_pack(frame& f) {
  jpeg_decompress_struct& c = f.cinfo;
  const auto take = [&c](std::size_t bytes) {
    return c.mem->alloc_large(reinterpret_cast<j_common_ptr>(&c), JPOOL_IMAGE, bytes);
  };
  auto* const scratch = static_cast<std::uint8_t*>(take(photo_row::scratch_bytes(f.pack.row_blocks())));
  if (!f.photo.begin(c, f.pack, scratch, on_damaged_row, f.plain)) {
    f.failed = stages::outcome_kind::corrupt;
    std::strcpy(f.message, "photo pack: its head and its JPEG's head tell of two pictures");
    std::longjmp(f.jump, 1);
  }
  if (f.recoded) {
    f.photo_jpeg.install(f.photo, static_cast<std::byte*>(take(photo_source::buffer_bytes)));
  } else {
    f.photo_stage.install(&c, f.photo);
  }
}

std::size_t line_bytes(const jpeg_decompress_struct& c) noexcept {
  return static_cast<std::size_t>(c.output_width) * static_cast<std::size_t>(c.output_components) + line_slack_bytes;
}

// The first row of MCUs that a line may need: with a row more for what upsampling looks at, and one for what libjpeg reads and drops.
JDIMENSION first_kept_row(const jpeg_decompress_struct& c, int line) noexcept {
  const int row = std::max(line / (c.max_v_samp_factor * DCTSIZE) - 2, 0);
  return static_cast<JDIMENSION>(c.num_components == 1 ? row * c.max_v_samp_factor : row);
}

bool install_huffman(frame& f) {
  if (f.again && f.huffman.install_again(&f.cinfo)) return true;
  if (!f.huffman.install(&f.cinfo, on_give_up, f.plain)) return false;
  if (f.kept != nullptr) f.huffman.keep(f.kept, f.kept_bytes, first_kept_row(f.cinfo, f.kept_line));
  return true;
}

void start_step(frame& f) {
  jpeg_decompress_struct& c = f.cinfo;
  set_parameters(f);
  jpeg_start_decompress(&c);
  if (f.is_pack) install_pack(f);
  const bool own_huffman = f.own_huffman && !f.is_pack && install_huffman(f);

  // One more column on either side: fancy upsampling looks at the neighbour, and at an edge it would find none.
  JDIMENSION left = static_cast<JDIMENSION>(std::max(f.region.x - 1, 0));
  JDIMENSION right = std::min(static_cast<JDIMENSION>(f.region.x + f.region.width + 1), c.output_width);
  if (right - left < columns_min) {
    right = std::min(left + columns_min, c.output_width);
    left = right - std::min(right, columns_min);
  }
  if (!columns_can_be_cut(c)) left = 0, right = c.output_width;
  JDIMENSION width = right - left;
  if (width < c.output_width) jpeg_crop_scanline(&c, &left, &width);
  f.column_offset = static_cast<std::size_t>(f.region.x) - left;  // in pixels until start() knows their size

  for (int i = 0; i < strip_lines; ++i) {
    f.rows[i] =
        static_cast<JSAMPROW>(c.mem->alloc_large(reinterpret_cast<j_common_ptr>(&c), JPOOL_IMAGE, line_bytes(c)));
  }
  if (!f.has_end) {
    f.below = static_cast<JSAMPROW>(c.mem->alloc_large(reinterpret_cast<j_common_ptr>(&c), JPOOL_IMAGE, line_bytes(c)));
  }

  const auto above = static_cast<JDIMENSION>(f.region.y);
  const auto rows_per_mcu = static_cast<JDIMENSION>(c.max_v_samp_factor * dct_size_min(c));
  f.needed_mcu_row = (above > 0 && lines_have_context(c) ? above - 1 : above) / rows_per_mcu;
  // columns as in jpeg_crop_scanline()
  const auto mcu_width = static_cast<JDIMENSION>(dct_size_min(c) * (c.num_components == 1 ? 1 : c.max_h_samp_factor));
  const JDIMENSION first_column = left / mcu_width;
  const JDIMENSION last_column = (left + c.output_width + mcu_width - 1) / mcu_width - 1;
  if (own_huffman) f.huffman.want(f.needed_mcu_row, first_column, last_column);
  if (f.is_pack) {
    const JDIMENSION rows_per_imcu =
        c.comps_in_scan == 1 ? static_cast<JDIMENSION>(c.cur_comp_info[0]->v_samp_factor) : 1;
    f.photo.want(f.needed_mcu_row * rows_per_imcu, first_column, last_column);
  }
  f.skipping = true;
  JDIMENSION at_a_time = rows_per_mcu * (1 + static_cast<JDIMENSION>(skip_pixels_max / c.output_width) / rows_per_mcu);
  for (JDIMENSION done = 0; done < above; done += at_a_time) {
    check_stop(f);
    at_a_time = std::min(at_a_time, above - done);
    jpeg_skip_scanlines(&c, at_a_time);
  }
  f.skipping = false;
  f.lines_left = f.region.height;
}

// Adobe's CMYK is stored inverted, 255 for no ink, and like Pillow we take every CMYK JPEG to be Adobe's. In place: three
// bytes are written where four have been read.
void cmyk_to_rgb(JSAMPROW line, JDIMENSION pixels) noexcept {
  const JSAMPLE* in = line;
  JSAMPLE* out = line;
  for (JDIMENSION i = 0; i < pixels; ++i, in += 4, out += 3) {
    const int white = in[3];
    for (int channel = 0; channel < 3; ++channel) {
      // Pillow's cmyk2rgb: white - ink * white / 255, the quotient rounded by its own formula.
      const int product = (255 - in[channel]) * white + 128;
      out[channel] = static_cast<JSAMPLE>(std::max(white - ((product + (product >> 8)) >> 8), 0));
    }
  }
}

int read_some(frame& f, JSAMPROW* rows, int wanted) {
  jpeg_decompress_struct& c = f.cinfo;
  const JDIMENSION got = jpeg_read_scanlines(&c, rows, static_cast<JDIMENSION>(wanted));
  if (got == 0) {
    c.err->msg_code = JERR_INPUT_EOF;
    c.err->error_exit(reinterpret_cast<j_common_ptr>(&c));
  }
  return static_cast<int>(got);
}

// A file that was cut is corrupt whatever the region. Without an end marker only its last line tells whether it was.
// (jpeg_skip_scanlines() would not look at lines that it skips up to the end.)
void look_below_step(frame& f) {
  while (f.cinfo.output_scanline < f.cinfo.output_height) {
    check_stop(f);
    read_some(f, &f.below, 1);
  }
}

void read_step(frame& f) {
  const jpeg_decompress_struct& c = f.cinfo;
  check_stop(f);
  const int wanted = std::min(f.lines_left, strip_lines);
  f.row_count = 0;
  while (f.row_count < wanted) f.row_count += read_some(f, f.rows + f.row_count, wanted - f.row_count);
  f.lines_left -= f.row_count;
  if (c.output_components == 4) {
    for (int i = 0; i < f.row_count; ++i) cmyk_to_rgb(f.rows[i], c.output_width);
  }
}

// What start() and read() take, for the sizes that size_step() has computed.
std::size_t bytes_of(frame& f, bool packed) {
  jpeg_decompress_struct& c = f.cinfo;
  const auto dct_min = static_cast<std::size_t>(dct_size_min(c));
  const auto max_h = static_cast<std::size_t>(c.max_h_samp_factor);
  const auto max_v = static_cast<std::size_t>(c.max_v_samp_factor);
  const auto round_up = [](std::size_t value, std::size_t to) { return (value + to - 1) / to * to; };

  std::size_t bytes = modules_bytes;
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& component = c.comp_info[i];
    const auto h = static_cast<std::size_t>(component.h_samp_factor);
    const auto v = static_cast<std::size_t>(component.v_samp_factor);
    const auto dct = static_cast<std::size_t>(dct_size(component));
    // jdmainct.c: an iMCU row and two row groups of context, and the pointers to them; jdsample.c: one row group out.
    const std::size_t group = v * dct / dct_min;
    bytes += jpeg_samples_bytes(component.width_in_blocks * dct, group * (dct_min + 2));
    bytes += scratch_arena::rounded(2 * group * (dct_min + 4) * sizeof(JSAMPROW));
    bytes += jpeg_samples_bytes(round_up(c.output_width, max_h), max_v);
    if (jpeg_has_multiple_scans(&c) == FALSE) continue;
    // jdcoefct.c: all coefficients; it says that it may ask for 5 iMCU rows at a time.
    const std::size_t across = round_up(component.width_in_blocks, h);
    const std::size_t down = round_up(component.height_in_blocks, v);
    bytes += packed ? jpeg_packed_bytes(across, down, 5 * v) : jpeg_blocks_bytes(across, down);
  }
  if (f.is_pack) bytes += scratch_arena::rounded(photo_row::scratch_bytes(f.pack.row_blocks()));
  if (f.recoded) bytes += scratch_arena::rounded(photo_source::buffer_bytes);
  return bytes + (strip_lines + (f.has_end ? 0 : 1)) * scratch_arena::rounded(line_bytes(c));
}

// After size_step().
std::optional<photo_layout> layout_of(const frame& f) {
  const jpeg_decompress_struct& c = f.cinfo;
  const bool is_rgb = c.jpeg_color_space == JCS_RGB;
  const bool is_ycbcr = c.jpeg_color_space == JCS_YCbCr;
  const bool is_known = c.num_components == 1
                            ? c.jpeg_color_space == JCS_GRAYSCALE
                            : c.num_components == 3 && (is_rgb || is_ycbcr) && c.max_h_samp_factor <= 4;
  // The blocks in an MCU are counted below.
  if (!is_known || !is_one_plain_scan(c) || c.num_components != f.pack.head.components) return std::nullopt;
  photo_layout to;
  to.pack = f.pack;
  to.width = static_cast<int>(c.output_width);
  to.height = static_cast<int>(c.output_height);
  to.component_count = c.num_components;
  to.is_ycbcr = is_ycbcr;
  // One component alone is not interleaved: an MCU is a block, whatever its sampling (ITU-T T.81, A.2).
  const int max_h = c.num_components == 1 ? 1 : c.max_h_samp_factor;
  const int max_v = c.num_components == 1 ? 1 : c.max_v_samp_factor;
  to.mcu_width = max_h * dct_size_min(c);
  to.mcu_height = max_v * dct_size_min(c);
  to.group_lines = c.max_v_samp_factor;
  to.rows_together = c.num_components == 1 ? c.comp_info[0].v_samp_factor : 1;
  int blocks = 0;
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& from = c.comp_info[i];
    const JQUANT_TBL* const table =
        from.quant_tbl_no >= 0 && from.quant_tbl_no < NUM_QUANT_TBLS ? c.quant_tbl_ptrs[from.quant_tbl_no] : nullptr;
    if (table == nullptr || c.cur_comp_info[i] != &from) return std::nullopt;
    photo_layout::component& each = to.components[static_cast<std::size_t>(i)];
    each.across = c.num_components == 1 ? 1 : from.h_samp_factor;
    each.down = c.num_components == 1 ? 1 : from.v_samp_factor;
    each.side = dct_size(from);
    each.width = static_cast<int>(from.downsampled_width);
    each.height = static_cast<int>(from.downsampled_height);
    if (!choose_upsampling(c, from, max_h, max_v, each)) return std::nullopt;
    std::copy_n(table->quantval, DCTSIZE2, each.quantisation.begin());
    blocks += each.across * each.down;
  }
  const auto mcus = [](JDIMENSION pixels, int of) {
    const auto mcu = static_cast<JDIMENSION>(of * DCTSIZE);
    return (pixels + mcu - 1) / mcu;
  };
  if (blocks != f.pack.head.mcu_blocks || mcus(c.image_width, max_h) != f.pack.head.mcu_columns ||
      mcus(c.image_height, max_v) != f.pack.head.mcu_rows) {
    return std::nullopt;
  }
  return to;
}

// Whether an end marker stands behind the scan; after it there may be anything.
bool has_end_marker(std::span<const JOCTET> scan) noexcept {
  const std::size_t size = scan.size();
  if (size >= 2 && scan[size - 2] == 0xFF && scan[size - 1] == JPEG_EOI) return true;  // nearly always
  const JOCTET* at = scan.data();
  const JOCTET* const end = at + size;
  while ((at = static_cast<const JOCTET*>(std::memchr(at, 0xFF, static_cast<std::size_t>(end - at)))) != nullptr) {
    while (at != end && *at == 0xFF) ++at;
    if (at == end) return false;
    if (*at++ == JPEG_EOI) return true;
  }
  return false;
}

stages::failure failure_of(const frame& f) {
  if (f.failed == stages::outcome_kind::cancelled) return stages::cancelled();
  const bool is_of_pack = std::string_view(f.message).starts_with("photo pack");
  return {f.failed, (is_of_pack ? "" : "JPEG: ") + std::string(f.message)};
}

}  // namespace

struct jpeg_reader::state {
  explicit state(scratch_arena& from) : arena(from) {}

  scratch_arena& arena;
  frame f{};
  // The struct as jpeg_create_decompress() left it, which every picture starts from: libjpeg itself would keep one
  // picture's tables for the next, and a file that lacks its own would depend on what this thread decoded before.
  jpeg_decompress_struct fresh{};
  stages::failure too_little;  // the failure if packed coefficients lack room

  [[nodiscard]] stages::failure why() const { return f.memory.has_room ? failure_of(f) : too_little; }
};

jpeg_reader::jpeg_reader(scratch_arena& arena) : state_(std::make_unique<state>(arena)) {
  frame& f = state_->f;
  f.cinfo.err = jpeg_std_error(&f.errors);
  f.cinfo.client_data = &f;
  f.errors.error_exit = on_error;
  f.errors.emit_message = on_message;
  f.errors.output_message = on_output;
  f.progress.progress_monitor = on_progress;
  // By libjpeg's own manager, a few KiB that last as long as we do.
  if (!run(f, [](frame& g) { jpeg_create_decompress(&g.cinfo); })) {
    throw error(errc::unsupported, std::string("libjpeg-turbo: ") + f.message);
  }
  state_->fresh = f.cinfo;
}

jpeg_reader::~jpeg_reader() {
  state_->f.cinfo = state_->fresh;
  jpeg_destroy_decompress(&state_->f.cinfo);
}

stages::outcome<void> jpeg_reader::open(std::span<const std::byte> encoded, const picture_info& info,
                                        const reading& how) {
  frame& f = state_->f;
  f.cinfo = state_->fresh;
  f.memory.begin(state_->arena);
  f.cinfo.mem = &f.memory.methods;
  f.cinfo.progress = &f.progress;
  f.is_pack = begins_as_photo_pack(encoded);
  f.recoded = f.is_pack && (how.library_only || photo_packs_are_recoded());
  if (f.is_pack) {
    const stages::outcome<photo_pack_view> seen = view_photo_pack(encoded);
    if (!seen) return seen.error();
    f.pack = *seen;
    encoded = f.pack.jpeg_head;  // after it libjpeg gets what lies in the rows
  }
  f.encoded = reinterpret_cast<const unsigned char*>(encoded.data());
  f.encoded_bytes = encoded.size();
  f.stop = how.stop;
  f.is_cut = false;
  f.skipping = false;
  f.decimation = 1;
  f.own_huffman = !how.library_only;
  f.accept_cut = how.accept_cut;
  f.plain = how.plain;
  f.kept = how.kept.data();
  f.kept_bytes = how.kept.size();
  f.kept_line = how.kept_line;
  f.again = how.again;
  if (!f.again) f.huffman.forget();
  f.gave_up = false;
  if (!run(f, open_step)) return failure_of(f);
  if (f.cinfo.image_width != static_cast<JDIMENSION>(info.width) ||
      f.cinfo.image_height != static_cast<JDIMENSION>(info.height)) {
    return stages::corrupt("JPEG: two frame headers that differ");
  }
  f.several_scans = jpeg_has_multiple_scans(&f.cinfo) != FALSE;
  f.has_end = f.is_pack || f.accept_cut || f.several_scans ||
              has_end_marker({f.cinfo.src->next_input_byte, f.cinfo.src->bytes_in_buffer});
  if (f.is_pack) {  // The layout has been checked: each row has bytes for its blocks.
    f.scans = 1;
    if (f.several_scans) return stages::corrupt("photo pack: its JPEG has more than one scan");
    return {};
  }
  return check_jpeg_claims(f.cinfo, f.accept_cut, f.scans);
}

std::size_t jpeg_reader::scratch_bytes(const rectangle& region, int decimation) {
  frame& f = state_->f;
  f.region = region;
  f.decimation = decimation;
  if (!run(f, size_step)) return modules_bytes;  // start() reports why.
  return bytes_of(f, false);
}

std::size_t jpeg_reader::kept_bytes(int line) {
  const frame& f = state_->f;
  const jpeg_decompress_struct& c = f.cinfo;
  if (f.is_pack || f.several_scans || !f.own_huffman) return 0;
  std::size_t blocks = 0;
  for (int i = 0; i < c.num_components; ++i) {
    blocks +=
        static_cast<std::size_t>(c.comp_info[i].h_samp_factor) * static_cast<std::size_t>(c.comp_info[i].v_samp_factor);
  }
  const bool is_alone = c.num_components == 1;  // its MCUs are blocks (ITU-T T.81, A.2)
  const auto mcus = [is_alone](JDIMENSION pixels, int of) {
    const auto mcu = static_cast<JDIMENSION>(is_alone ? DCTSIZE : of * DCTSIZE);
    return (pixels + mcu - 1) / mcu;
  };
  const JDIMENSION rows = mcus(c.image_height, c.max_v_samp_factor);
  const JDIMENSION kept = rows - std::min(rows, first_kept_row(c, line));
  return baseline_huffman::kept_bytes(std::size_t{kept} * mcus(c.image_width, c.max_h_samp_factor),
                                      is_alone ? 1 : blocks);
}

std::size_t jpeg_reader::scratch_bytes_packed(const rectangle& region, int decimation) {
  frame& f = state_->f;
  f.region = region;
  f.decimation = decimation;
  if (!run(f, size_step) || jpeg_has_multiple_scans(&f.cinfo) == FALSE) return 0;
  return bytes_of(f, true);
}

void jpeg_reader::pack(std::size_t bytes_max, stages::failure too_little) {
  state_->f.memory.pack(bytes_max);
  state_->too_little = std::move(too_little);
}

std::string_view jpeg_reader::remedy() const noexcept {
  return state_->f.several_scans ? "written anew as baseline it needs little: `leat pack --transcode`" : "";
}

stages::outcome<void> jpeg_reader::start(const rectangle& region, int decimation) {
  frame& f = state_->f;
  f.region = region;
  f.decimation = decimation;
  if (!run(f, start_step)) return state_->why();
  f.column_offset *= 3;  // CMYK lines have become RGB when they are handed on
  return {};
}

bool jpeg_reader::gave_up() const noexcept { return state_->f.gave_up; }

std::optional<photo_layout> jpeg_reader::layout(int decimation) {
  frame& f = state_->f;
  f.decimation = decimation;
  if (!f.is_pack || !run(f, size_step)) return std::nullopt;
  return layout_of(f);
}

stages::outcome<lines> jpeg_reader::read() {
  frame& f = state_->f;
  if (!run(f, read_step)) return state_->why();
  if (f.lines_left == 0 && !f.has_end && !run(f, look_below_step)) return state_->why();
  // Lines are taken from the arena one after the other, so they lie at the same distance.
  const auto stride = static_cast<std::size_t>(f.rows[1] - f.rows[0]);
  return lines{f.rows[0] + f.column_offset, stride, f.row_count};
}

}  // namespace leat::pixels
