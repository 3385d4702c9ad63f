// TensorBoard's event files: records of TFRecord, each a tensorflow.Event.
//   source   tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.cc
#include "base/crc32c.hpp"
#include "base/text.hpp"
#include "tools/report_page.hpp"

#include <bit>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat::tools {
namespace {

template <class Number>
void append_little_endian(std::string& to, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void append_varint(std::string& to, std::uint64_t value) {
  for (; value > 127; value >>= 7U) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

// Fields of a message: their number and kind are one byte up to number 15.
constexpr char varint_field(int number) { return static_cast<char>(number << 3); }
constexpr char fixed64_field(int number) { return static_cast<char>(number << 3 | 1); }
constexpr char bytes_field(int number) { return static_cast<char>(number << 3 | 2); }
constexpr char fixed32_field(int number) { return static_cast<char>(number << 3 | 5); }

void append_bytes(std::string& to, int number, std::string_view bytes) {
  to.push_back(bytes_field(number));
  append_varint(to, bytes.size());
  to += bytes;
}

std::uint32_t masked_sum(std::string_view bytes) { return masked_crc32c(std::as_bytes(std::span(bytes))); }

void append_record(std::string& to, std::string_view event) {
  std::string length;
  append_little_endian(length, std::uint64_t{event.size()});
  to += length;
  append_little_endian(to, masked_sum(length));
  to += event;
  append_little_endian(to, masked_sum(event));
}

std::string event_at(double wall_s, std::uint64_t step) {
  std::string event;
  event.push_back(fixed64_field(1));
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_s));
  event.push_back(varint_field(2));
  append_varint(event, step);
  return event;
}

void append_scalar(std::string& summary, std::string_view tag, double value) {
  std::string scalar;
  append_bytes(scalar, 1, tag);
  scalar.push_back(fixed32_field(2));
  append_little_endian(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  append_bytes(summary, 1, scalar);
}

// Of "2026-11-29T07:00:00Z"; 0 where nobody wrote it.
double started_s(const recorded_run& run) {
  if (!run.about.is_object()) return 0;
  const auto found = run.about.find("started");
  if (found == run.about.end() || !found->is_string()) return 0;
  std::tm parts{};
  const std::string text = found->get<std::string>();
  return ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr ? 0 : static_cast<double>(::timegm(&parts));
}

}  // namespace

std::string tensorboard_events(const recorded_run& run) {
  const double began_s = started_s(run);
  std::string file;
  std::string version = event_at(began_s, 0);
  append_bytes(version, 3, "brain.Event:2");
  append_record(file, version);
  for (const run_line& line : run.lines) {
    std::string summary;
    const auto scalar = [&](std::string_view tag, std::optional<double> value) {
      if (value) append_scalar(summary, tag, *value);
    };
    const auto rate = [&](std::optional<double> sum) {
      return sum && line.seconds > 0 ? std::optional(*sum / line.seconds) : std::nullopt;
    };
    scalar("leat/samples_per_s", rate(line.samples));
    scalar("leat/stall_share", rate(line.stalled_s));
    scalar("leat/reads_in_flight", line.reads_in_flight);
    scalar("leat/decode_queued", line.decode_queued);
    scalar("leat/batches_ready", line.batches_ready);
    scalar("leat/cores", rate(line.cpu_s));
    scalar("leat/rss_bytes", line.rss_bytes);
    if (line.gpu) {
      scalar("leat/gpu_sm", line.gpu->sm);
      scalar("leat/gpu_sm_occupancy", line.gpu->occupancy);
      scalar("leat/gpu_busy", line.gpu->busy);
    }
    if (line.waited) scalar("leat/next_wait_ms_p99", line.waited->p99_ms);
    std::string event = event_at(began_s + line.end_s, static_cast<std::uint64_t>(line.end_s));
    append_bytes(event, 5, summary);
    append_record(file, event);
  }
  return file;
}

}  // namespace leat::tools
