// SPDX-License-Identifier: Apache-2.0
#include "http/plain_stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace muster::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class PlainStream final : public ServerStream {
 public:
  explicit PlainStream(tcp::socket socket) : socket_(std::move(socket)) {}

  void Begin(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }
  void Read(asio::mutable_buffer into, Moved moved) override { socket_.async_read_some(into, std::move(moved)); }
  void Write(std::string_view bytes, Done done) override {
    asio::async_write(socket_, asio::buffer(bytes),
                      [done = std::move(done)](error_code error, size_t) { done(error); });
  }
  void Finish(Done done) override {
    error_code error;
    socket_.shutdown(tcp::socket::shutdown_send, error);
    asio::post(socket_.get_executor(), [done = std::move(done), error] { done(error); });
  }
  void Close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  tcp::socket socket_;
};

}  // namespace

std::unique_ptr<ServerStream> MakePlainStream(tcp::socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace muster::http
