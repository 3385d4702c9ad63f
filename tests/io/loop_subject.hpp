// The ring and its preadv twin as subjects of the source contract: real files, a loop on a thread of its own.
#pragma once

#include "io/files/file_table.hpp"
#include "io/ring/io_loop.hpp"
#include "tests/io/source_contract.hpp"
#include "tests/support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {

/// A loop of io/ running on its own thread.
class running_loop {
 public:
  using maker = std::function<std::unique_ptr<io::io_loop>(io::io_context&)>;

  /// Throws what `make` throws.
  running_loop(const reader_options& options, std::shared_ptr<io::arena> memory, const maker& make)
      : context_(options, std::move(memory)) {
    std::promise<std::unique_ptr<io::io_loop>> made;
    auto there = made.get_future();
    thread_ = std::thread([this, &make, &made] {
      io::io_loop* own = nullptr;
      try {
        std::unique_ptr<io::io_loop> loop = make(context_);
        own = loop.get();
        made.set_value(std::move(loop));
      } catch (...) {
        made.set_exception(std::current_exception());
        return;
      }
      own->run();
    });
    try {
      loop_ = there.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~running_loop() {
    if (loop_ != nullptr) loop_->stop();
    thread_.join();
  }
  running_loop(const running_loop&) = delete;
  running_loop& operator=(const running_loop&) = delete;

  [[nodiscard]] io::io_loop& loop() noexcept { return *loop_; }
  [[nodiscard]] io::io_context& context() noexcept { return context_; }

  void call(const std::function<void()>& function) {
    struct bound {
      const std::function<void()>& function;
      std::promise<void> ran;
    } given{function, {}};
    std::future<void> ran = given.ran.get_future();
    loop_->post(
        [](void* argument) noexcept {
          auto& what = *static_cast<bound*>(argument);
          what.function();
          what.ran.set_value();
        },
        &given);
    ran.wait();
  }

 private:
  io::io_context context_;
  std::unique_ptr<io::io_loop> loop_;
  std::thread thread_;
};

class loop_subject final : public source_subject {
 public:
  loop_subject(const reader_options& options, std::shared_ptr<io::arena> memory, const running_loop::maker& make,
               const std::filesystem::path& where = std::filesystem::temp_directory_path())
      : directory_(where), running_(options, std::move(memory), make) {}
  ~loop_subject() override { source_.reset(); }

  std::uint32_t add_file(const std::vector<std::byte>& contents) override {
    // A few directories: what is learned of one must not be taken for another.
    const auto directory = directory_.path() / std::to_string(files_.files() % 3);
    std::filesystem::create_directories(directory);
    const std::string path = (directory / ("file" + std::to_string(files_.files()))).string();
    write(path, contents);
    return files_.add(path, contents.size());
  }
  std::uint32_t add_missing_file() override { return files_.add((directory_.path() / "missing").string()); }
  void replace_file(std::uint32_t file, const std::vector<std::byte>& contents) override {
    write(files_.path(file), contents);
  }
  // The table is as if it lay in an index, so that its sizes are an earlier run's.
  void connect() override {
    const auto whole = std::make_shared<const io::file_table>(files_);
    std::vector<std::string> directories;
    for (std::uint32_t i = 0; i < whole->directories(); ++i) directories.push_back(whole->directory_path(i));
    connected_ = io::file_table(whole, whole->parts(), std::move(directories));
    source_ = running_.loop().connect_files(connected_);
  }

  [[nodiscard]] io::source& source() override { return *source_; }
  void call(const std::function<void()>& function) override { running_.call(function); }
  void run_until_zero(std::atomic<std::size_t>& left) override {
    for (std::size_t now = left.load(); now != 0; now = left.load()) left.wait(now);
  }

  [[nodiscard]] io::file_table& files() noexcept { return files_; }
  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_.path(); }
  [[nodiscard]] running_loop& running() noexcept { return running_; }

 private:
  static void write(const std::string& path, const std::vector<std::byte>& contents) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }

  temporary_directory directory_;
  io::file_table files_;
  io::file_table connected_;
  running_loop running_;
  std::unique_ptr<io::source> source_;
};

}  // namespace leat::testing
