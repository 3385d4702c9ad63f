// What leat asks of nvJPEG, of a library that is made up: which files go to the engine, when the host waits, and which file is named that is
// refused. The real one is asked in cuda_test.cpp.
#include "stages/device/nvjpeg.hpp"

#include "tests/device/watched_calls.hpp"
#include "tests/support/simulated_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace leat {
namespace {

using stages::device_ok;
using stages::failed_call;
using stages::jpeg_on_device;
using stages::nvjpeg_decoder;
using stages::nvjpeg_failures;
using stages::nvjpeg_functions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace nvjpeg = stages::nvjpeg;

/// A file is one letter: e, which the engine takes; k, which kernels take; x, which parses and then is refused.
struct made_up_library {
  bool has_engine = true;
  bool knows_flags = true;
  int decode_status = nvjpeg::success;  ///< of every batch
  int handles = 0;
  int states = 0;
  int parsed = 0;
  std::vector<std::string> log;
};
made_up_library* now = nullptr;

// Handles say which backend they are, states of which.
int create(int backend, void* device_allocator, void* pinned_allocator, unsigned flags, nvjpeg::handle** made) {
  EXPECT_EQ(device_allocator, nullptr);
  EXPECT_EQ(pinned_allocator, nullptr);
  if (flags != 0 && !now->knows_flags) return nvjpeg::invalid_parameter;
  if (backend == nvjpeg::backend_hardware && !now->has_engine) return 7;
  ++now->handles;
  *made = reinterpret_cast<nvjpeg::handle*>(static_cast<std::uintptr_t>(backend));
  return nvjpeg::success;
}
std::string name_of(const nvjpeg::handle* of) {
  return reinterpret_cast<std::uintptr_t>(of) == nvjpeg::backend_hardware ? "engine" : "kernels";
}

const nvjpeg_functions functions = {
    .get_property = [](int, int* value) { return *value = 13, nvjpeg::success; },
    .create = &create,
    .destroy = [](nvjpeg::handle*) { return --now->handles, nvjpeg::success; },
    .create_state =
        [](nvjpeg::handle*, nvjpeg::state** made) {
          *made = reinterpret_cast<nvjpeg::state*>(static_cast<std::uintptr_t>(++now->states));
          return nvjpeg::success;
        },
    .destroy_state = [](nvjpeg::state*) { return --now->states, nvjpeg::success; },
    .create_parsed =
        [](nvjpeg::handle*, nvjpeg::parsed** made) {
          *made = reinterpret_cast<nvjpeg::parsed*>(new char('?'));
          return ++now->parsed, nvjpeg::success;
        },
    .destroy_parsed =
        [](nvjpeg::parsed* which) {
          delete reinterpret_cast<char*>(which);
          return --now->parsed, nvjpeg::success;
        },
    .parse_header =
        [](nvjpeg::handle*, const unsigned char* file, std::size_t bytes, nvjpeg::parsed* to) {
          EXPECT_EQ(bytes, 1U);
          *reinterpret_cast<char*>(to) = static_cast<char>(*file);
          return nvjpeg::success;
        },
    .is_supported =
        [](nvjpeg::handle*, nvjpeg::parsed* file, int* refused) {
          *refused = *reinterpret_cast<char*>(file) == 'k' ? 1 : 0;
          return nvjpeg::success;
        },
    .begin_batches =
        [](nvjpeg::handle*, nvjpeg::state* in, int files, int, int output_format) {
          EXPECT_EQ(output_format, nvjpeg::output_rgb);
          now->log.push_back("state " + std::to_string(reinterpret_cast<std::uintptr_t>(in)) + " for " +
                             std::to_string(files));
          return nvjpeg::success;
        },
    .decode_batch =
        [](nvjpeg::handle* of, nvjpeg::state*, const unsigned char* const* files, const std::size_t*, nvjpeg::image* to,
           CUstream_st*) {
          std::string what = name_of(of) + ":";
          // Each has been given its planes: the first tells which file it is.
          for (std::size_t i = 0; to[i].pitch[0] != 0; ++i) {
            what += " " + std::string(1, static_cast<char>(*files[i])) +
                    std::to_string(reinterpret_cast<std::uintptr_t>(to[i].channel[2]));
            if (*files[i] == 'x') {
              now->log.push_back(what + " refused");
              return nvjpeg::bad_jpeg;
            }
            if (to[i].pitch[0] == 2) break;  // the last one
          }
          now->log.push_back(what);
          return now->decode_status;
        }};

class nvjpegs : public ::testing::Test {
 protected:
  nvjpegs() { now = &library; }
  ~nvjpegs() override {
    decoder.reset();
    EXPECT_EQ(library.handles, 0);
    EXPECT_EQ(library.states, 0);
    EXPECT_EQ(library.parsed, 0);
    EXPECT_EQ(device->count().events, 0U);
  }

  void open() {
    ASSERT_EQ(calls.make_stream(side), device_ok);
    decoder = std::make_unique<nvjpeg_decoder>(calls, functions);
    const failed_call failed = decoder->open();
    ASSERT_EQ(failed.status, device_ok) << failed.name;
    library.log.clear();
    static_cast<void>(calls.take_log());
  }

  // Planes lie nowhere: their numbers are what is written down. The made-up library finds the end of a batch by a pitch of 2, which is the
  // last one's of those that go together.
  failed_call decode(const std::string& files) {
    std::vector<jpeg_on_device> pictures(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      jpeg_on_device& each = pictures[i];
      each.encoded = std::as_bytes(std::span(&files[i], 1));
      for (std::size_t plane = 0; plane < 3; ++plane) each.planes[plane] = reinterpret_cast<std::uint8_t*>(i);
      const bool by_kernels = files[i] == 'k' || !decoder->has_engine();
      const bool is_last =
          std::none_of(files.begin() + static_cast<std::ptrdiff_t>(i) + 1, files.end(),
                       [&](char other) { return (other == 'k' || !decoder->has_engine()) == by_kernels; });
      each.stride = is_last ? 2 : 1;
    }
    return decoder->decode(pictures, side);
  }

  made_up_library library;
  std::shared_ptr<testing::simulated_device> device = std::make_shared<testing::simulated_device>();
  testing::watched_calls calls{device};
  stream side;
  std::unique_ptr<nvjpeg_decoder> decoder;
};

TEST_F(nvjpegs, go_to_the_engine_or_to_kernels_each_with_its_own_planes) {
  open();
  EXPECT_EQ(decode("ekeke").status, device_ok);
  EXPECT_THAT(library.log, ElementsAre("state 3 for 3", "engine: e0 e2 e4", "state 1 for 2", "kernels: k1 k3"));
  library.log.clear();
  EXPECT_EQ(decode("kk").status, device_ok);
  EXPECT_THAT(library.log, ElementsAre("state 2 for 2", "kernels: k0 k1"));
  library.log.clear();
  EXPECT_EQ(decode("").status, device_ok);
  EXPECT_THAT(library.log, ElementsAre());
}

TEST_F(nvjpegs, all_go_to_kernels_where_the_gpu_has_no_engine_and_the_library_no_flag) {
  library.has_engine = library.knows_flags = false;
  open();
  EXPECT_FALSE(decoder->has_engine());
  EXPECT_EQ(decode("eke").status, device_ok);
  EXPECT_THAT(library.log, ElementsAre("state 1 for 3", "kernels: e0 k1 e2"));
}

// What a state keeps belongs to its last call until that has passed; another state takes turns with it.
TEST_F(nvjpegs, have_the_host_wait_for_the_last_call_but_one) {
  library.has_engine = false;
  open();
  const auto waits = [&] {
    const std::vector<std::string> log = calls.take_log();
    return std::count_if(log.begin(), log.end(),
                         [](const std::string& each) { return each.starts_with("synchronize"); });
  };
  for (int turn = 0; turn < 6; ++turn) {
    EXPECT_EQ(decode("kk").status, device_ok);
    EXPECT_EQ(waits(), turn < 2 ? 0 : 1) << turn;
  }
  EXPECT_EQ(std::count(library.log.begin(), library.log.end(), "kernels: k0 k1"), 6);
  EXPECT_EQ(library.log.size(), 8U) << "each state is prepared for two files once";
}

TEST_F(nvjpegs, name_the_file_that_is_refused) {
  library.has_engine = false;
  open();
  const failed_call failed = decode("kkxk");
  EXPECT_EQ(failed.status, nvjpeg_failures + nvjpeg::bad_jpeg);
  ASSERT_TRUE(failed.picture);
  EXPECT_EQ(*failed.picture, 2U);
  EXPECT_THAT(stages::describe_nvjpeg(failed.status), HasSubstr("BAD_JPEG"));
  // Others are decoded as ever, and the state that has refused one begins anew.
  library.log.clear();
  EXPECT_EQ(decode("k").status, device_ok);
  EXPECT_EQ(decode("k").status, device_ok);
  EXPECT_THAT(library.log, ElementsAre("state 2 for 1", "kernels: k0", "state 1 for 1", "kernels: k0"));
}

TEST_F(nvjpegs, name_no_file_where_it_is_the_gpu_that_fails) {
  library.has_engine = false;
  open();
  library.decode_status = 6;
  const failed_call failed = decode("kk");
  EXPECT_EQ(failed.status, nvjpeg_failures + 6);
  EXPECT_FALSE(failed.picture);
  EXPECT_EQ(library.log.size(), 2U) << "nothing is tried again";
  EXPECT_EQ(stages::describe_nvjpeg(2), "") << "CUDA's own";
}

}  // namespace
}  // namespace leat
