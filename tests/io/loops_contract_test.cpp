// The source contract on every fallback.
#include "io/ring/make_ring_loop.hpp"
#include "io/ring/preadv_loop.hpp"
#include "io/ring/uring.hpp"
#include "tests/io/loop_subject.hpp"
#include "tests/io/source_contract.hpp"

#include <filesystem>

namespace leat::testing {
namespace {

using std::filesystem::path;

path on_disk() { return std::filesystem::temp_directory_path(); }
path in_memory() { return "/dev/shm"; }

source_maker ring(std::string name, reader_options options, io::ring_limits limits = {}, path where = on_disk()) {
  return {std::move(name), [=](std::shared_ptr<io::arena> memory) {
            return std::make_unique<loop_subject>(
                options, std::move(memory),
                [limits](io::io_context& context) { return io::make_ring_loop(context, limits); }, where);
          }};
}

source_maker threads(std::string name, reader_options options, path where = on_disk()) {
  return {std::move(name), [=](std::shared_ptr<io::arena> memory) {
            return std::make_unique<loop_subject>(
                options, std::move(memory),
                [](io::io_context& context) { return io::make_preadv_loop(context, "asked for"); }, where);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    ring, source_contract,
    ::testing::Values(ring("as_it_comes", {}), ring("direct", {.direct = choice::on}),
                      ring("buffered", {.direct = choice::off}),
                      ring("unregistered", {.registered_buffers = choice::off}), ring("at_depth_1", {.queue_depth = 1}),
                      ring("at_depth_128", {.queue_depth = 128}), ring("with_four_open_files", {}, {.files_max = 4}),
                      ring("with_one_open_file", {}, {.files_max = 1}),
                      ring("with_ordinary_descriptors", {}, {.direct_descriptors = false}),
                      ring("with_three_ordinary_descriptors", {}, {.files_max = 3, .direct_descriptors = false}),
                      ring("in_memory", {}, {}, in_memory()),
                      ring("in_memory_buffered", {.direct = choice::off}, {}, in_memory())),
    name_of_maker);

INSTANTIATE_TEST_SUITE_P(preadv, source_contract,
                         ::testing::Values(threads("as_it_comes", {}), threads("direct", {.direct = choice::on}),
                                           threads("buffered", {.direct = choice::off}),
                                           threads("with_one_thread", {.preadv_threads = 1}),
                                           threads("in_memory", {}, in_memory())),
                         name_of_maker);

}  // namespace
}  // namespace leat::testing
