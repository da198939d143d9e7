// SPDX-License-Identifier: Apache-2.0
#include "http/server_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/text.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Status Wrong(std::string_view part, const error_code& error) {
  ERR_clear_error();  // OpenSSL keeps it for the next caller of this thread
  return absl::InvalidArgumentError(fmt::format("{}: {}", part, error.message()));
}

}  // namespace

class ServerTls::Context {
 public:
  Context() : context_(ssl::context::tls_server) {}

  Status Load(const ServerCertificate& certificate) {
    error_code error;
    context_.set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, error);
    context_.use_certificate_chain(asio::buffer(certificate.chain), error);
    if (error) return Wrong("the server's certificate is not a PEM certificate", error);
    context_.use_private_key(asio::buffer(certificate.key), ssl::context::pem, error);
    if (error) return Wrong("the server's key is not a PEM private key, or not the certificate's", error);
    if (SSL_CTX_check_private_key(context_.native_handle()) != 1) {
      ERR_clear_error();
      return absl::InvalidArgumentError("the server's key is not the key of its certificate");
    }
    // No session is resumed, so each connection's certificate is checked by the authority of the time.
    context_.set_options(SSL_OP_NO_TICKET, error);
    SSL_CTX_set_session_cache_mode(context_.native_handle(), SSL_SESS_CACHE_OFF);
    if (certificate.client_ca.empty()) return absl::OkStatus();
    context_.add_certificate_authority(asio::buffer(certificate.client_ca), error);
    if (error) return Wrong("the clients' authority is not a PEM certificate", error);
    context_.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    return absl::OkStatus();
  }

  ssl::context& get() { return context_; }

 private:
  ssl::context context_;
};

namespace {

class TlsStream final : public ServerStream {
 public:
  // `keep` owns `context` and is kept as long as the stream exists.
  TlsStream(asio::ip::tcp::socket socket, std::shared_ptr<void> keep, ssl::context& context)
      : stream_(std::make_shared<Stream>(std::move(keep), std::move(socket), context)) {}
  ~TlsStream() override { Close(); }

  void Begin(Done done) override {
    stream_->tls.async_handshake(ssl::stream_base::server,
                                 [stream = stream_, done = std::move(done)](error_code error) { done(error); });
  }
  void Read(asio::mutable_buffer into, Moved moved) override {
    auto done = [stream = stream_, moved = std::move(moved)](error_code error, size_t bytes) { moved(error, bytes); };
    if (finished_) return stream_->tls.next_layer().async_read_some(into, std::move(done));
    stream_->tls.async_read_some(into, std::move(done));
  }
  void Write(std::string_view bytes, Done done) override {
    asio::async_write(stream_->tls, asio::buffer(bytes),
                      [stream = stream_, done = std::move(done)](error_code error, size_t) { done(error); });
  }
  // OpenSSL fails if the peer sends data instead of its close_notify. No error here: this side's is sent by then.
  void Finish(Done done) override {
    finished_ = true;
    stream_->tls.async_shutdown([stream = stream_, done = std::move(done)](error_code error) {
      if (error.category() == asio::error::get_ssl_category()) error = {};
      error_code ignored;
      stream->tls.next_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      done(error);
    });
  }
  void Close() override {
    error_code ignored;
    stream_->tls.lowest_layer().close(ignored);
  }

 private:
  // Handlers share it, since Asio's TLS operations use the stream until they report that it is closed.
  struct Stream {
    Stream(std::shared_ptr<void> keep, asio::ip::tcp::socket socket, ssl::context& context)
        : context(std::move(keep)), tls(std::move(socket), context) {}
    const std::shared_ptr<void> context;
    ssl::stream<asio::ip::tcp::socket> tls;
  };
  std::shared_ptr<Stream> stream_;
  bool finished_ = false;  // after Finish: input is read undecrypted, since it is dropped
};

}  // namespace

StatusOr<std::unique_ptr<ServerTls>> ServerTls::Make(const ServerCertificate& certificate) {
  auto context = std::make_shared<Context>();
  MUSTER_RETURN_IF_ERROR(context->Load(certificate));
  return std::unique_ptr<ServerTls>(new ServerTls(std::move(context)));
}

ServerTls::ServerTls(std::shared_ptr<Context> context) : context_(std::move(context)) {}
ServerTls::~ServerTls() = default;

Status ServerTls::Replace(const ServerCertificate& certificate) {
  auto context = std::make_shared<Context>();
  MUSTER_RETURN_IF_ERROR(context->Load(certificate));
  context_ = std::move(context);
  return absl::OkStatus();
}

std::unique_ptr<ServerStream> ServerTls::Make(asio::ip::tcp::socket socket) {
  return std::make_unique<TlsStream>(std::move(socket), context_, context_->get());
}

}  // namespace muster::http
