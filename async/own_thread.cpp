#include "async/own_thread.hpp"

#include "base/start_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <pthread.h>

#include <utility>

namespace leat::async {

namespace asio = boost::asio;

struct own_thread::work {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> more{context.get_executor()};
};

own_thread::own_thread(std::string name) : work_(std::make_shared<work>()) {
  thread_ = start_thread({.what = name}, [work = work_, name] {
    ::pthread_setname_np(::pthread_self(), name.c_str());
    work->context.run();
  });
}

own_thread::~own_thread() {
  work_->more.reset();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // It shares `work_`.
  } else {
    thread_.join();
  }
}

asio::any_io_executor own_thread::executor() const { return work_->context.get_executor(); }

}  // namespace leat::async
