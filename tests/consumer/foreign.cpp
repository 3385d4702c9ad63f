// What a program has that is compiled with another version of Boost: functions of the same names, which here end the program.
#include <cstdio>
#include <cstdlib>

namespace boost {
namespace system {
class error_code;
}
namespace asio::detail {

class scheduler {
 public:
  std::size_t run(system::error_code& failure);
  void stop();
};

std::size_t scheduler::run(system::error_code& /*failure*/) {
  std::puts("leat has run the scheduler of another Asio");
  std::abort();
}
void scheduler::stop() { std::abort(); }

}  // namespace asio::detail
}  // namespace boost
