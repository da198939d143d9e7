// SPDX-License-Identifier: Apache-2.0
// Tests the server and the client of this room with each other, and with a bare socket if a peer has to misbehave.
#include "http/server.h"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "http/ask.h"
#include "http/server_tls.h"
#include "tests/net/ipv6_port.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Kind = TransferEnd::Kind;

constexpr auto kGenerous = std::chrono::seconds(60);

struct Pem {
  std::string certificate, key;
};

// Two authorities. Each has a certificate for a server called localhost and one for a client.
struct Authority {
  std::string ca;
  Pem server, client;
};

class Certificates {
 public:
  static const Certificates& Get() {
    static const Certificates all;
    return all;
  }
  Authority ours, theirs;

 private:
  Certificates() : ours(Make("ours")), theirs(Make("theirs")) {}

  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static Authority Make(const std::string& name) {
    std::string folder = testing::TempDir() + "/http-server-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << folder;
    const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    const std::string script = fmt::format(
        "cd {0} && openssl req -x509 {1} -days 2 -subj /CN={2} -keyout ca.key -out ca.pem && for who in server client; "
        "do "
        "openssl req {1} -subj /CN=$who -keyout $who.key -out $who.csr && "
        "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > ext && openssl x509 -req -in $who.csr -CA ca.pem -CAkey "
        "ca.key -CAcreateserial -days 2 -extfile ext -out $who.pem || exit 1; done",
        folder, key, name);
    EXPECT_EQ(std::system(fmt::format("({}) >/dev/null 2>&1", script).c_str()), 0) << script;
    Authority authority{Read(folder + "/ca.pem"),
                        {Read(folder + "/server.pem"), Read(folder + "/server.key")},
                        {Read(folder + "/client.pem"), Read(folder + "/client.key")}};
    std::filesystem::remove_all(folder);
    return authority;
  }
};

class ServerTest : public testing::Test {
 protected:
  void Listen(Server::Options options = {}) {
    Server::Routes routes;
    routes["/get"].handler = [](const Server::Request& request, const Server::Answer& answer) {
      answer({200, "text/plain", fmt::format("{} {}", request.method, request.query)});
    };
    routes["/review"] = {
        [](const Server::Request& request, const Server::Answer& answer) {
          answer({200, "application/json",
                  fmt::format("{} {} {}", request.body.size(), request.Find("content-type").value_or("none"),
                              request.body.substr(0, 5))});
        },
        true, 8 << 20};
    routes["/under/"].handler =
        routes["/under/more/"].handler = [](const Server::Request& request, const Server::Answer& answer) {
          answer({200, "text/plain", request.path});
        };
    routes["/never"].handler = [](const Server::Request&, const Server::Answer&) {};
    options.memory = 16 << 20;
    auto server = Server::Listen(loop_, "localhost", 0, std::move(routes), std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void ListenByTls(const std::string& client_ca = "") {
    const Authority& ours = Certificates::Get().ours;
    auto tls = ServerTls::Make({ours.server.certificate, ours.server.key, client_ca});
    ASSERT_TRUE(tls.ok()) << tls.status();
    tls_ = *std::move(tls);
    Listen({.tls = tls_});
  }

  std::string Url(const std::string& path) const {
    return fmt::format("{}://localhost:{}{}", tls_ ? "https" : "http", server_->port(), path);
  }

  Answer AskFor(const Request& request, Options options = {}, const Limits& limits = {}) {
    Client client(loop_, std::move(options));
    Answer got;
    bool answered = false;
    const auto asking = Ask(client, request, limits, 16 << 20, [&](Answer its) {
      got = std::move(its);
      answered = true;
      loop_.stop();
    });
    loop_.restart();
    loop_.run_for(kGenerous);
    EXPECT_TRUE(answered);
    return got;
  }
  Answer Get(const std::string& path, Options options = {}) { return AskFor({.url = Url(path)}, std::move(options)); }

  // Sends `text` on a new connection and returns all bytes until the server closes it.
  std::string Say(const std::string& text) {
    asio::ip::tcp::socket socket(loop_);
    socket.connect({asio::ip::address_v4::loopback(), server_->port()});
    asio::write(socket, asio::buffer(text));
    std::string got;
    bool closed = false;
    asio::async_read(socket, asio::dynamic_buffer(got), [&](const boost::system::error_code&, size_t) {
      closed = true;
      loop_.stop();
    });
    loop_.restart();
    loop_.run_for(kGenerous);
    EXPECT_TRUE(closed) << text;
    return got;
  }

  asio::io_context loop_;
  std::shared_ptr<ServerTls> tls_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersEachMethodThatAPathHas) {
  Listen();
  struct Row {
    std::string method, path, body;
    int status;
    std::string answer;
  };
  for (const Row& row : {
           Row{"GET", "/get?a=b", "", 200, "GET a=b"},
           Row{"HEAD", "/get", "", 200, ""},
           Row{"POST", "/get", "x", 405, "only GET, HEAD is answered here\n"},
           Row{"POST", "/review", "hello world", 200, "11 application/json hello"},
           Row{"POST", "/review", "", 200, "0 application/json "},
           Row{"GET", "/review", "", 405, "only POST is answered here\n"},
           Row{"PATCH", "/review", "x", 405, "only POST is answered here\n"},
           Row{"DELETE", "/get", "", 405, "only GET, HEAD is answered here\n"},
           Row{"GET", "/none", "", 404, "there is nothing here; try\n/get\n/never\n/review\n/under/\n/under/more/\n"},
           Row{"GET", "/under/a/b?c", "", 200, "/under/a/b"},
           Row{"GET", "/under/more/a", "", 200, "/under/more/a"},
           Row{"POST", "/under/a", "x", 405, "only GET, HEAD is answered here\n"},
           Row{"GET", "/under", "", 404, "there is nothing here; try\n/get\n/never\n/review\n/under/\n/under/more/\n"},
       }) {
    const Answer got = AskFor({.method = row.method,
                               .url = Url(row.path),
                               .headers = {{"Content-Type", "application/json"}},
                               .body = row.body});
    EXPECT_EQ(got.end.what, "") << row.method << row.path;
    EXPECT_EQ(got.head.status, row.status) << row.method << row.path;
    EXPECT_EQ(got.body, row.answer) << row.method << row.path;
    if (row.status == 405) {
      EXPECT_EQ(got.head.Find("allow"), row.path == "/review" ? "POST" : "GET, HEAD");
    }
  }
}

TEST_F(ServerTest, TakesBodiesUpToThePathsLimit) {
  Listen();
  const std::string most(8 << 20, 'x');
  EXPECT_EQ(AskFor({.method = "POST", .url = Url("/review"), .body = most}).body,
            "8388608 application/x-www-form-urlencoded xxxxx");
  // Refused by its Content-Length, before a byte of it is read ...
  const std::string refused = "HTTP/1.1 413 Payload Too Large\r\n";
  EXPECT_THAT(Say("POST /review HTTP/1.1\r\nContent-Length: 8388609\r\n\r\n"), StartsWith(refused));
  EXPECT_THAT(Say("POST /review HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n"), StartsWith(refused));
  EXPECT_THAT(Say("POST /get HTTP/1.1\r\nContent-Length: 16385\r\n\r\n"), StartsWith(refused));
  EXPECT_THAT(Say("POST /none HTTP/1.1\r\nContent-Length: 16385\r\n\r\n"), StartsWith(refused));
  // ... and in chunks.
  std::string chunks = "POST /get HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 5; ++i) chunks += "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  EXPECT_THAT(Say(chunks + "0\r\n\r\n"), StartsWith(refused));
  EXPECT_THAT(Say("GET / HTTP/1.1\r\nA: " + std::string(9000, 'x')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Say("POST /review HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;" + std::string(20000, 'x')),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerTest, ReadsBodiesInPiecesAndOneAfterTheOther) {
  Listen();
  const std::string chunked =
      "POST /review HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
  const std::string sized = "POST /review HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nworld";
  const std::string got = Say(chunked + sized);
  EXPECT_THAT(got, HasSubstr("5 none hello"));
  EXPECT_THAT(got, HasSubstr("5 none world"));

  const std::string waits =
      "POST /review HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nx";
  EXPECT_THAT(Say(waits), StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
}

TEST_F(ServerTest, EndsARequestThatIsNotAnsweredInTime) {
  Listen({.request = std::chrono::milliseconds(50)});
  EXPECT_EQ(Get("/never").end.kind, Kind::kCut);
  EXPECT_EQ(Say("POST /review HTTP/1.1\r\nContent-Length: 5\r\n\r\nwor"), "");
}

TEST_F(ServerTest, SpeaksTls) {
  ListenByTls();
  const Authority& ours = Certificates::Get().ours;
  const Answer got = Get("/get?x", {.ca_pem = ours.ca});
  EXPECT_EQ(got.end.what, "");
  EXPECT_EQ(got.body, "GET x");
  const std::string most(8 << 20, 'x');
  EXPECT_THAT(AskFor({.method = "POST", .url = Url("/review"), .body = most}, {.ca_pem = ours.ca}).body,
              StartsWith("8388608 "));
  EXPECT_EQ(AskFor({.method = "POST", .url = Url("/review"), .body = most + "x"}, {.ca_pem = ours.ca}).head.status,
            413);
  // A client without TLS gets no answer; others are served.
  EXPECT_THAT(Say("GET /get HTTP/1.1\r\n\r\n"), Not(HasSubstr("HTTP")));
  EXPECT_EQ(Get("/get?y", {.ca_pem = ours.ca}).body, "GET y");
}

// A reset could overtake the answer to a client that still sends.
TEST_F(ServerTest, TakesWhatARefusedClientStillSends) {
  ListenByTls();
  asio::ssl::context context(asio::ssl::context::tls_client);
  asio::ssl::stream<asio::ip::tcp::socket> client(loop_, context);
  client.next_layer().connect({asio::ip::address_v4::loopback(), server_->port()});
  const auto run = [this](auto&& begin) {  // one operation, to its end
    boost::system::error_code end = asio::error::would_block;
    begin([&](boost::system::error_code error, size_t = 0) {
      end = error;
      loop_.stop();
    });
    loop_.restart();
    loop_.run_for(kGenerous);
    return end;
  };
  EXPECT_FALSE(run([&](auto done) { client.async_handshake(asio::ssl::stream_base::client, done); }));
  const std::string head = "POST /get HTTP/1.1\r\nContent-Length: 65536\r\n\r\n";
  EXPECT_FALSE(run([&](auto done) { asio::async_write(client, asio::buffer(head), done); }));
  std::string got;
  EXPECT_FALSE(run([&](auto done) { asio::async_read_until(client, asio::dynamic_buffer(got), "\r\n\r\n", done); }));
  EXPECT_THAT(got, StartsWith("HTTP/1.1 413 "));
  const std::string part(4096, 'x');
  for (int i = 0; i < 16; ++i) {
    EXPECT_FALSE(run([&](auto done) { asio::async_write(client, asio::buffer(part), done); }));
  }
  auto& socket = client.next_layer();
  socket.shutdown(asio::ip::tcp::socket::shutdown_send);
  EXPECT_EQ(run([&](auto done) { asio::async_read(socket, asio::dynamic_buffer(got), done); }), asio::error::eof);
}

TEST_F(ServerTest, ServesByTheNewCertificateOnceItIsReplaced) {
  ListenByTls();
  const Authority& ours = Certificates::Get().ours;
  const Authority& theirs = Certificates::Get().theirs;
  EXPECT_EQ(Get("/get", {.ca_pem = theirs.ca}).end.kind, Kind::kUntrusted);
  ASSERT_TRUE(tls_->Replace({theirs.server.certificate, theirs.server.key, ""}).ok());
  EXPECT_EQ(Get("/get?new", {.ca_pem = theirs.ca}).body, "GET new");
  EXPECT_EQ(Get("/get", {.ca_pem = ours.ca}).end.kind, Kind::kUntrusted);

  const struct {
    ServerCertificate certificate;
    std::string why;
  } rows[] = {
      {{"", ours.server.key, ""}, "the server's certificate is not a PEM certificate"},
      {{"nonsense", ours.server.key, ""}, "the server's certificate is not a PEM certificate"},
      {{ours.server.certificate, "nonsense", ""}, "the server's key is not a PEM private key"},
      {{ours.server.certificate, theirs.server.key, ""},
       "the server's key is not a PEM private key, or not the certificate's"},
      {{ours.server.certificate, ours.server.key, "nonsense"}, "the clients' authority is not a PEM certificate"},
  };
  for (const auto& row : rows) {
    const Status status = tls_->Replace(row.certificate);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), StartsWith(row.why));
  }
  EXPECT_EQ(Get("/get?old", {.ca_pem = theirs.ca}).body, "GET old");
}

TEST_F(ServerTest, AsksForAClientsCertificate) {
  const Authority& ours = Certificates::Get().ours;
  const Authority& theirs = Certificates::Get().theirs;
  ListenByTls(ours.ca);
  const Options with{.ca_pem = ours.ca, .client_certificate = ours.client.certificate, .client_key = ours.client.key};
  EXPECT_EQ(Get("/get?mine", with).body, "GET mine");

  const Answer without = Get("/get", {.ca_pem = ours.ca});
  EXPECT_EQ(without.end.kind, Kind::kUntrusted);
  EXPECT_THAT(without.end.what, StartsWith("the server wants a client's certificate"));

  Options foreign = with;
  foreign.client_certificate = theirs.client.certificate;
  foreign.client_key = theirs.client.key;
  const Answer refused = Get("/get", foreign);
  EXPECT_EQ(refused.end.kind, Kind::kUntrusted);
  EXPECT_THAT(refused.end.what, StartsWith("the server does not trust the client's certificate"));

  Options broken = with;
  broken.client_key = theirs.client.key;
  const Answer unusable = Get("/get", broken);
  EXPECT_EQ(unusable.end.kind, Kind::kUntrusted);
  EXPECT_THAT(unusable.end.what, StartsWith("the client's certificate or key cannot be used"));
}

TEST(ServerListen, DoesNotFallBackToIpv4WhereIpv6IsTaken) {
  asio::io_context loop;
  const auto taken = TakeIpv6Port(loop);
  if (!taken) GTEST_SKIP() << "no IPv6 on this machine";
  EXPECT_TRUE(absl::IsAlreadyExists(Server::Listen(loop, "", taken->local_endpoint().port(), {}, {}).status()));
}

TEST_F(ServerTest, AnAuthorityGivenAsTextIsTheOnlyOne) {
  ListenByTls();
  // ca_pem replaces the system's authorities. The system trusts no certificate of this test.
  const Answer untrusted = Get("/get", {.ca_remedy = "give the authority", .ca_pem = Certificates::Get().theirs.ca});
  EXPECT_EQ(untrusted.end.kind, Kind::kUntrusted);
  EXPECT_THAT(untrusted.end.what, HasSubstr("; give the authority"));
}

// A server for one connection, which sends what a test says.
class WatchTest : public ServerTest {
 protected:
  WatchTest() : acceptor_(loop_, {asio::ip::address_v4::loopback(), 0}), socket_(loop_) {}

  Request Watch() const { return {.url = fmt::format("http://127.0.0.1:{}/watch", acceptor_.local_endpoint().port())}; }
  // Collects one answer; its end stops the loop.
  struct Watched final : Sink, Intake, std::enable_shared_from_this<Watched> {
    std::shared_ptr<Intake> Head(const ResponseHead& head) override {
      status = head.status;
      return shared_from_this();
    }
    Taken Take(std::string_view bytes) override {
      body += bytes;
      if (took) took();
      return Taken::kAll;
    }
    void End(const TransferEnd& its) override {
      end = its;
      loop->stop();
    }
    asio::io_context* loop = nullptr;
    int status = 0;
    std::string body;
    std::function<void()> took;
    std::optional<TransferEnd> end;
  };

  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket socket_;
};

TEST_F(WatchTest, MayBeSilentForLongerThanAnswersMay) {
  Client client(loop_, {.dead_peer = std::chrono::seconds(30)});
  auto watched = std::make_shared<Watched>();
  watched->loop = &loop_;
  Limits limits = WatchLimits(kGenerous);
  EXPECT_FALSE(limits.silence);
  limits.head = std::chrono::seconds(2);  // the event comes later, the head does not
  asio::steady_timer pause(loop_);
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string event = "5\r\nevent\r\n";
  acceptor_.async_accept(socket_, [&](const boost::system::error_code& error) {
    ASSERT_FALSE(error);
    asio::write(socket_, asio::buffer(head));
    // Longer than libcurl needs to notice a silence of one second, the shortest that it knows.
    pause.expires_after(std::chrono::milliseconds(2500));
    pause.async_wait([&](const boost::system::error_code&) { asio::write(socket_, asio::buffer(event)); });
  });
  watched->took = [&] { asio::write(socket_, asio::buffer(std::string("0\r\n\r\n"))); };
  client.Start(Watch(), limits, *watched);
  loop_.run_for(kGenerous);
  ASSERT_TRUE(watched->end);
  EXPECT_EQ(watched->end->what, "");
  EXPECT_EQ(watched->body, "event");
}

TEST_F(WatchTest, HasAHeadInTimeAndAnEnd) {
  Client client(loop_, {});
  asio::ip::tcp::socket silent(loop_);
  acceptor_.async_accept(silent, [](const boost::system::error_code&) {});
  auto watched = std::make_shared<Watched>();
  watched->loop = &loop_;
  Limits limits = WatchLimits(kGenerous);
  limits.head = std::chrono::milliseconds(20);
  client.Start(Watch(), limits, *watched);
  loop_.run_for(kGenerous);
  ASSERT_TRUE(watched->end);
  EXPECT_EQ(watched->end->kind, Kind::kStalled);
  EXPECT_EQ(watched->end->what, "no answer in time");

  acceptor_.async_accept(socket_, [&](const boost::system::error_code&) {
    asio::write(socket_, asio::buffer(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")));
  });
  auto ended = std::make_shared<Watched>();
  ended->loop = &loop_;
  client.Start(Watch(), WatchLimits(std::chrono::milliseconds(200)), *ended);
  loop_.restart();
  loop_.run_for(kGenerous);
  ASSERT_TRUE(ended->end);
  EXPECT_EQ(ended->end->kind, Kind::kStalled);
}

TEST_F(WatchTest, LooksForADeadPeer) {
  Client client(loop_, {.dead_peer = std::chrono::seconds(30)});
  auto watched = std::make_shared<Watched>();
  watched->loop = &loop_;
  acceptor_.async_accept(socket_, [&](const boost::system::error_code&) { loop_.stop(); });
  client.Start(Watch(), WatchLimits(kGenerous), *watched);
  loop_.run_for(kGenerous);
  // The kernel lists the timer of the client's socket.
  const std::string command =
      fmt::format("ss -Htno 'dport = :{}' | grep -c 'timer:(keepalive,1[0-9]'", acceptor_.local_endpoint().port());
  EXPECT_EQ(std::system((command + " >/dev/null").c_str()), 0) << command;
}

}  // namespace
}  // namespace muster::http
