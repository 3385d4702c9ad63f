// A trainer that others can watch: its loader's metrics on http://127.0.0.1:PORT/metrics, by a few lines of Asio. Asks itself once, and
// prints what came.
#include <leat/loader.hpp>
#include <leat/metrics.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <exception>
#include <iostream>
#include <sstream>
#include <thread>

namespace asio = boost::asio;
using asio::ip::tcp;

// One connection after the other, on loopback: whoever asks from elsewhere comes through a proxy that asks who he is.
asio::awaitable<void> serve(tcp::acceptor& acceptor, const leat::loader& train) {
  for (;;) {
    tcp::socket connection = co_await acceptor.async_accept(asio::use_awaitable);
    try {
      std::string request;
      co_await asio::async_read_until(connection, asio::dynamic_buffer(request, 8192), "\r\n\r\n", asio::use_awaitable);
      std::ostringstream text;
      leat::write_metrics(text, train.stats(), {{"job", "example"}});
      const std::string body = text.str();
      const std::string reply = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body;
      co_await asio::async_write(connection, asio::buffer(reply), asio::use_awaitable);
    } catch (const boost::system::system_error&) {
      // Who asked has gone: the next one.
    }
  }
}

// What Prometheus does every 15 s.
std::string scrape(const tcp::endpoint& at) {
  asio::io_context context;
  tcp::socket connection(context);
  connection.connect(at);
  asio::write(connection, asio::buffer(std::string("GET /metrics HTTP/1.1\r\n\r\n")));
  std::string reply;
  boost::system::error_code ended;
  asio::read(connection, asio::dynamic_buffer(reply), ended);
  return reply;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: metrics_server FOLDER\n";
    return 2;
  }
  leat::loader train(leat::open_folder(argv[1]), {.batch_size = 16, .epochs = 1},
                     leat::image{"jpg"}.random_resized_crop(64), leat::label{"cls"});
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  asio::co_spawn(context, serve(acceptor, train), [](std::exception_ptr failed) {
    if (failed) std::cerr << "the metrics are not served any more\n";
  });
  std::thread server([&] { context.run(); });
  for (const leat::batch& step : train.blocking()) static_cast<void>(step);

  std::istringstream lines(scrape(acceptor.local_endpoint()));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("leat_samples_total") || line.starts_with("leat_bottleneck")) std::cout << line << '\n';
  }
  std::cout << train.stats().verdict.to_string() << '\n';
  context.stop();
  server.join();
}
