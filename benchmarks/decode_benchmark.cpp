// How many training samples does a CPU-second make, from JPEG bytes in memory to a 224 x 224 row, beside the plain way
// with the same libjpeg-turbo: decode the whole picture, then resample the crop?
//
//     decode_benchmark [--photos=DIR] [--toy] [any --benchmark_... flag]
//
// And what do several views of a picture cost, by one decode and each by itself? (`views/`; per_cpu_s counts pictures.)
//
// Without --photos it makes 48 photographs as `leat make-photos` does. Runs are interleaved and repeated; look at the
// medians of `per_cpu_s`, images per second of the CPU time of all threads. Before anything is measured, undecimated rows
// are compared with the plain way's, byte by byte, and the error of decimated ones is printed.
//
// DIR may hold photo packs (.fjpg, as in a tar of `leat pack --photos fast`), too, which the plain way unpacks first. Of
// these `..._libjpeg_huffman` is what they take where our stage has no door into libjpeg-turbo.
#include "base/text.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/resample.hpp"
#include "stages/pixels/row_writer.hpp"
#include "stages/pixels/vectors/instruction_sets.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/make_photos.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// clang-format off: jpeglib.h uses FILE and size_t and includes neither.
#include <jpeglib.h>
// clang-format on

namespace leat::benchmarks {
namespace {

constexpr int side = 224;
constexpr std::uint64_t seed = 7;

using bytes = std::vector<std::byte>;

// Parts of ours that can be left out; no byte changes.
struct parts {
  bool own_huffman = true;
  bool wide_vectors = true;  // else those of 16 bytes that every processor in use has
};

// What is measured.
struct job {
  const char* name;
  std::vector<transform> steps;
  dtype type;
  layout order;
  bool normalised;
  bool decimate;
  parts with = {};
};

const job jobs[] = {
    {"train_f32_nchw",
     {transforms::random_resized_crop{}, transforms::random_flip{}},
     dtype::f32,
     layout::nchw,
     true,
     true},
    {"train_f32_nchw_undecimated",
     {transforms::random_resized_crop{}, transforms::random_flip{}},
     dtype::f32,
     layout::nchw,
     true,
     false},
    {"train_u8_nhwc",
     {transforms::random_resized_crop{}, transforms::random_flip{}},
     dtype::u8,
     layout::nhwc,
     false,
     true},
    {"eval_f32_nchw",
     {transforms::resize{.shorter_side = 256}, transforms::center_crop{}},
     dtype::f32,
     layout::nchw,
     true,
     false},
    // Ours without one of its parts: what that part is worth.
    {"train_f32_nchw_libjpeg_huffman",
     {transforms::random_resized_crop{}, transforms::random_flip{}},
     dtype::f32,
     layout::nchw,
     true,
     true,
     {.own_huffman = false}},
    {"train_f32_nchw_narrow_vectors",
     {transforms::random_resized_crop{}, transforms::random_flip{}},
     dtype::f32,
     layout::nchw,
     true,
     true,
     {.wide_vectors = false}},
};

std::vector<bytes> photos;

// A job made ready: everything that a field holds once.
struct prepared {
  explicit prepared(const job& what)
      : steps(what.steps),
        how(pixels::store::from(what.type, what.order, what.normalised ? std::optional(imagenet) : std::nullopt)),
        options{.decimate = what.decimate, .own_huffman = what.with.own_huffman} {}

  pixels::pipeline steps;
  pixels::store how;
  pixels::decode_options options;
};

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The kernel as the loader calls it.
class ours {
 public:
  explicit ours(const job& what) : job_(what) {}

  pixels::decoded operator()(std::size_t photo, std::uint64_t sample, std::byte* row) {
    const auto result =
        decoder_.decode(photos[photo], job_.steps, {seed, 0, sample}, job_.how, job_.options, row, nullptr);
    if (!result) {
      std::fprintf(stderr, "photograph %zu: %s\n", photo, result.reason().c_str());
      std::exit(1);
    }
    return *result;
  }

 private:
  prepared job_;
  pixels::scratch_budget budget_{std::size_t{256} << 20};
  pixels::picture_decoder decoder_{budget_};
};

// The plain way: a decompressor and a buffer per picture, the whole of it decoded, then the same resampling and store.
class plain {
 public:
  explicit plain(const job& what) : job_(what) { arena_.begin(); }
  ~plain() { arena_.end(); }
  plain(const plain&) = delete;
  plain& operator=(const plain&) = delete;

  void operator()(std::size_t photo, std::uint64_t sample, std::byte* row) {
    const bytes unpacked = is_photo_pack(photos[photo]) ? unpack_photo(photos[photo]) : bytes();
    const bytes& encoded = unpacked.empty() ? photos[photo] : unpacked;
    jpeg_decompress_struct c{};
    jpeg_error_mgr errors{};
    c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(encoded.data()),
                 static_cast<unsigned long>(encoded.size()));
    jpeg_read_header(&c, TRUE);
    c.out_color_space = JCS_RGB;
    jpeg_start_decompress(&c);
    const std::size_t stride = std::size_t{c.output_width} * 3;
    std::vector<std::uint8_t> picture(stride * c.output_height + pixels::line_slack_bytes);
    while (c.output_scanline < c.output_height) {
      JSAMPROW line = picture.data() + c.output_scanline * stride;
      jpeg_read_scanlines(&c, &line, 1);
    }
    const auto width = static_cast<int>(c.output_width);
    const auto height = static_cast<int>(c.output_height);
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);

    arena_.end();
    arena_.begin();
    pixels::resampler to(job_.steps.compile(width, height, {seed, 0, sample}), {});
    pixels::row_writer writer(job_.how, nullptr, job_.steps.out_height(), job_.steps.out_width(), row);
    if (!arena_.reserve(to.scratch_bytes()) || !to.start(arena_, writer.line_order(), writer)) std::exit(1);
    const pixels::rectangle& region = to.region();
    for (int y = region.y; y < region.y + region.height; ++y) {
      to.push(picture.data() + static_cast<std::size_t>(y) * stride + static_cast<std::size_t>(region.x) * 3);
    }
    to.finish();
  }

 private:
  prepared job_;
  pixels::scratch_budget budget_{std::size_t{64} << 20};
  pixels::scratch_arena arena_{budget_};
};

// Views of one picture: SimCLR's two; DINO's two large ones and eight small, beside one large one; ten crops, beside the middle.
struct views_job {
  const char* name;
  std::vector<pixels::pipeline> (*steps)();
};
std::vector<pixels::pipeline> random_crops(int count, int size, std::array<double, 2> scale) {
  const pixels::pipeline steps(
      {transforms::random_resized_crop{.height = size, .width = size, .scale = scale}, transforms::random_flip{}});
  std::vector<pixels::pipeline> all;
  for (int i = 0; i < count; ++i) all.push_back(steps.as_view(str_cat(size, "/", i)));
  return all;
}
std::vector<pixels::pipeline> dinos_views() {
  std::vector<pixels::pipeline> all = random_crops(2, side, {0.4, 1});
  for (pixels::pipeline& each : random_crops(8, 96, {0.05, 0.4})) all.push_back(std::move(each));
  return all;
}
std::vector<pixels::pipeline> ten_crops() {
  using enum placement;
  std::vector<pixels::pipeline> all;
  for (const double mirrored : {0, 1}) {
    for (const placement position : {top_left, top_right, bottom_left, bottom_right, center}) {
      all.emplace_back(
          std::vector<transform>{transforms::resize{.shorter_side = 256}, transforms::random_flip{mirrored},
                                 transforms::center_crop{.height = side, .width = side, .position = position}});
    }
  }
  return all;
}
constexpr views_job views_jobs[] = {{"two_of_224", [] { return random_crops(2, side, {0.08, 1}); }},
                                    {"dinos_one_of_224", [] { return random_crops(1, side, {0.4, 1}); }},
                                    {"two_of_224_and_eight_of_96", dinos_views},
                                    {"centre_crop", [] { return std::vector<pixels::pipeline>{ten_crops()[4]}; }},
                                    {"ten_crop", ten_crops}};

// Rows of u8, all by decode_rows(), or each by decode().
template <bool Together>
class views {
 public:
  explicit views(const views_job& what) : steps_(what.steps()) {
    for (const pixels::pipeline& each : steps_)
      memory_.emplace_back(how_.row_bytes(each.out_height(), each.out_width()));
  }

  void operator()(std::size_t photo, std::uint64_t sample) {
    rows_.clear();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      rows_.push_back({.steps = &steps_[i],
                       .key = {seed, 0, sample},
                       .how = &how_,
                       .options = {.decimate = steps_[i].geometry_is_random()},
                       .row = memory_[i].data()});
    }
    if constexpr (Together) {
      if (!decoder_.decode_rows(photos[photo], rows_, nullptr)) std::exit(1);
    } else {
      for (const pixels::picture_row& row : rows_) {
        if (!decoder_.decode(photos[photo], *row.steps, row.key, *row.how, row.options, row.row, nullptr)) std::exit(1);
      }
    }
  }

  [[nodiscard]] const std::vector<bytes>& memory() const noexcept { return memory_; }

 private:
  pixels::store how_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<pixels::pipeline> steps_;
  std::vector<bytes> memory_;
  std::vector<pixels::picture_row> rows_;
  pixels::scratch_budget budget_{std::size_t{256} << 20};
  pixels::picture_decoder decoder_{budget_};
};

template <class Kernel>
void run_views(benchmark::State& state, const views_job& what) {
  Kernel kernel(what);
  std::uint64_t sample = 0;
  const auto count = photos.size();
  kernel(0, 0);
  const double begin_s = thread_cpu_s();
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i, ++sample) kernel(sample % count, sample);
  }
  const double images = static_cast<double>(state.iterations()) * static_cast<double>(count);
  state.counters["per_cpu_s"] = benchmark::Counter(images / (thread_cpu_s() - begin_s));
}

// One decode makes the rows that each by itself is.
void check_views() {
  for (const views_job& what : views_jobs) {
    views<true> together(what);
    views<false> alone(what);
    for (std::size_t photo = 0; photo < photos.size(); ++photo) {
      together(photo, photo);
      alone(photo, photo);
      if (together.memory() == alone.memory()) continue;
      std::fprintf(stderr, "%s: rows of photograph %zu differ when they are decoded together\n", what.name, photo);
      std::exit(1);
    }
  }
}

template <class Kernel>
void run(benchmark::State& state, const job& what) {
  Kernel kernel(what);
  const prepared details(what);
  bytes row(details.how.row_bytes(side, side));
  // Threads begin at different photographs and walk through all of them.
  const auto count = photos.size();
  std::uint64_t sample = static_cast<std::uint64_t>(state.thread_index()) * count / 2;
  kernel(sample % count, sample, row.data());
  const double begin_s = thread_cpu_s();
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i, ++sample) kernel(sample % count, sample, row.data());
    benchmark::DoNotOptimize(row.data());
  }
  const double images = static_cast<double>(state.iterations()) * static_cast<double>(count);
  state.counters["per_cpu_s"] =
      benchmark::Counter(images / (thread_cpu_s() - begin_s), benchmark::Counter::kAvgThreads);
  state.counters["per_s"] = benchmark::Counter(images, benchmark::Counter::kIsRate);
}

// Undecimated rows are the plain way's, bit for bit; otherwise there is nothing to compare the speed of.
void check_rows() {
  std::size_t differing = 0;
  for (const job& what : jobs) {
    job undecimated = what;
    undecimated.decimate = false;
    ours a(undecimated);
    plain b(undecimated);
    bytes row_a(prepared(what).how.row_bytes(side, side));
    bytes row_b(row_a.size());
    for (std::size_t photo = 0; photo < photos.size(); ++photo) {
      a(photo, photo, row_a.data());
      b(photo, photo, row_b.data());
      if (row_a != row_b) ++differing;
    }
  }
  std::printf("rows that differ from the plain way's, undecimated: %zu of %zu\n", differing,
              std::size(jobs) * photos.size());
  if (differing != 0) std::exit(1);
}

// What decimation costs: u8 levels between decimated and undecimated rows of the same crop.
void measure_decimation() {
  job what = jobs[2];
  ours decimated(what);
  what.decimate = false;
  ours full(what);
  bytes a(std::size_t{side} * side * 3);
  bytes b(a.size());
  double absolute = 0;
  double squared = 0;
  double worst_psnr = 1e9;
  int crops = 0;
  int touched = 0;
  for (std::uint64_t sample = 0; sample < std::max<std::size_t>(photos.size(), 500); ++sample) {
    ++crops;
    if (decimated(sample % photos.size(), sample, a.data()).decimation == 1) continue;
    full(sample % photos.size(), sample, b.data());
    ++touched;
    double own = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double difference = std::to_integer<int>(a[i]) - std::to_integer<int>(b[i]);
      absolute += std::abs(difference);
      own += difference * difference;
    }
    squared += own;
    worst_psnr =
        std::min(worst_psnr, 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.size()) / std::max(own, 1e-9)));
  }
  if (touched == 0) {
    std::printf("decimation: none of %d training crops is large enough\n", crops);
    return;
  }
  const double values = static_cast<double>(touched) * static_cast<double>(a.size());
  std::printf(
      "decimation: %d of %d training crops; against undecimated mean error %.2f levels, PSNR %.1f dB, worst crop %.1f "
      "dB\n",
      touched, crops, absolute / values, 10 * std::log10(255.0 * 255.0 * values / squared), worst_psnr);
}

void load(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() &&
        (extension == ".jpg" || extension == ".jpeg" || extension == ".JPEG" || extension == ".fjpg")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    const auto* const begin = reinterpret_cast<const std::byte*>(content.data());
    photos.emplace_back(begin, begin + content.size());
  }
}

void make_photographs(std::uint32_t count) {
  const testing::temporary_directory made;
  const std::filesystem::path directory = made.path() / "photos";
  tools::make_photos_options options;
  options.count = count;
  options.classes = 4;
  tools::make_photos(directory, options);
  load(directory);
}

// Vectors, and not the loops that stand in for them.
std::int64_t narrowest_vectors() {
  std::int64_t narrowest = 0;
  for (std::int64_t left = pixels::instruction_sets() & HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    if (target != HWY_EMU128 && target != HWY_SCALAR) narrowest = target;
  }
  return narrowest;
}

int main_program(int argc, char** argv) {
  std::string directory;
  bool toy = false;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view photos_flag = "--photos=";
    if (argument == "--toy") {
      toy = true;
    } else if (argument.starts_with(photos_flag)) {
      directory = argument.substr(photos_flag.size());
    } else {
      rest.push_back(argv[i]);
    }
  }
  if (directory.empty()) {
    make_photographs(toy ? 4 : 48);
  } else {
    load(directory);
  }
  if (photos.empty()) {
    std::fprintf(stderr, "decode_benchmark: no .jpg or .fjpg below %s\n", directory.c_str());
    return 1;
  }
  std::size_t total = 0;
  for (const bytes& photo : photos) total += photo.size();
  std::printf("%zu photographs, %zu KiB on average, in memory\n", photos.size(), total / photos.size() / 1024);
  check_rows();
  check_views();
  measure_decimation();

  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::string repeat = toy ? "--benchmark_repetitions=1" : "--benchmark_repetitions=5";
  std::string time = toy ? "--benchmark_min_time=0.001" : "--benchmark_min_time=0.2";
  std::string aggregates = toy ? "--benchmark_report_aggregates_only=false" : "--benchmark_report_aggregates_only=true";
  // Ours first: what was typed has the last word.
  rest.insert(rest.begin() + 1, {interleave.data(), repeat.data(), time.data(), aggregates.data()});
  int rest_count = static_cast<int>(rest.size());
  benchmark::Initialize(&rest_count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(rest_count, rest.data())) return 1;
  for (const job& what : jobs) {
    for (const int threads : {1, 2}) {
      const std::string name = std::string("/") + what.name;
      auto* const measured = benchmark::RegisterBenchmark(("leat" + name).c_str(), run<ours>, what);
      measured->Threads(threads)->UseRealTime();
      if (!what.with.wide_vectors) {
        measured->Setup([](const benchmark::State&) { pixels::use_instruction_sets(narrowest_vectors()); });
        measured->Teardown([](const benchmark::State&) { pixels::use_instruction_sets(0); });
      }
      // The plain way never decimates, and has none of our parts but the vectors.
      if (&what == &jobs[1] || !what.with.own_huffman || !what.with.wide_vectors) continue;
      benchmark::RegisterBenchmark(("plain" + name).c_str(), run<plain>, what)->Threads(threads)->UseRealTime();
    }
  }
  for (const views_job& what : views_jobs) {
    const std::string name = std::string("views/") + what.name;
    benchmark::RegisterBenchmark((name + "/one_decode").c_str(), run_views<views<true>>, what)->UseRealTime();
    benchmark::RegisterBenchmark((name + "/each_by_itself").c_str(), run_views<views<false>>, what)->UseRealTime();
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace leat::benchmarks

int main(int argc, char** argv) {
  try {
    return leat::benchmarks::main_program(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "decode_benchmark: %s\n", e.what());
    return 1;
  }
}
