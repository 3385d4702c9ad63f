// The parts of a benchmark that may hang or be killed: each by itself, in rounds, and what is measured is written as it comes.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {

/// Thrown by a part that has nothing to measure, which is no failure: what() says why.
struct nothing_to_measure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where one part fails the others are still measured.
class rounds {
 public:
  /// Writes what is measured so far.
  ///   left_out   what is not, and why: what failed, and what is not done yet
  using writer = std::function<void(const std::vector<std::string>& left_out)>;
  ///   only    of the parts that are called once a round those whose name holds it; all where it is empty
  explicit rounds(writer write, std::string only = {}) : write_(std::move(write)), only_(std::move(only)) {}

  /// Has `work` be called once a round, behind what was added before it.
  void add(std::string name, std::function<void()> work) {
    if (name.find(only_) != std::string::npos) parts_.push_back({std::move(name), std::move(work)});
  }
  /// In the first round alone: what others need.
  void add_once(std::string name, std::function<void()> work) {
    parts_.push_back({.name = std::move(name), .work = std::move(work), .once = true});
  }

  /// All of the first round, and then for as long as `seconds` allow. Writes before the first part and after each: where one
  /// hangs and the process is killed, what was measured before stays, and names it.
  ///   throws   what the writer throws
  void run(unsigned count, double seconds);

  [[nodiscard]] bool any_failed() const noexcept { return any_failed_; }

 private:
  struct part {
    std::string name;
    std::function<void()> work;
    bool once = false;
    bool over = false;  ///< It failed, or is to be done no more.
    bool begun = false;
  };
  void attempt(part& each);
  void write(unsigned round, unsigned count, const part& next) const;

  const writer write_;
  const std::string only_;
  std::vector<part> parts_;
  std::vector<std::string> left_out_;
  bool any_failed_ = false;
};

}  // namespace leat::benchmarks
