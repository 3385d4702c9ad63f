// The real command as a child process: what it prints, how it ends, what a terminal sees of it.
#pragma once

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include <string>
#include <vector>

namespace leat::testing {

/// How a process ended.
///   exit_code   as a shell counts: 128 + n for one that was killed by signal n
struct ended {
  int exit_code = -1;
  bool killed = false;  ///< by a signal that it had not taken over
  std::string out;
  std::string err;

  /// Standard output as the one JSON object it shall be; a test failure and null where it is not.
  [[nodiscard]] nlohmann::json json() const;
};

/// A running command. Ended, with SIGKILL if need be, when this is.
///   arguments   what follows `leat`, the path of which is in the environment as LEAT_COMMAND
class command {
 public:
  ///   terminal   all three are one terminal of 100 columns; `out` has it all
  ///   unread     pipes, and who was to read standard output has gone
  enum class streams { pipes, terminal, unread };
  /// A signal that is there before the program's first instruction (SIGINT, SIGHUP), or is ignored from there on, as under nohup.
  enum class start { plain, interrupted, hung_up, hang_up_ignored };
  explicit command(const std::vector<std::string>& arguments, streams how = streams::pipes,
                   const std::vector<std::string>& environment = {}, start begin = start::plain);
  command(const command&) = delete;
  command& operator=(const command&) = delete;
  ~command();

  void signal(int number) const;
  /// Reads its output until this text has come, or fails the test after a minute.
  void read_until(const std::string& text);
  /// Reads to the end of its output and reaps it.
  ended wait();
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::string read_;  // of its output, before wait()
};

/// command(...).wait().
ended run(const std::vector<std::string>& arguments);

/// As run(), with standard output being this file.
ended run_into(const std::string& out_path, const std::vector<std::string>& arguments);

/// The lines of a text.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

/// A whole file.
[[nodiscard]] std::string text_of(const std::string& path);

/// The first `prefix` line of standard error and nothing besides, or a test failure.
void expect_one_line(const ended& process, const std::string& prefix);

}  // namespace leat::testing
