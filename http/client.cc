// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <curl/curl.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <unordered_map>

#include "base/text.h"
#include "http/ca_places.h"
#include "http/curl_on_loop.h"
#include "http/dead_peer.h"

namespace muster::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kMostHeaders = 256;
constexpr size_t kLongestHeader = 16 << 10;  // bytes of one header line; an answer has at most kMostHeaders

constexpr size_t kRecord = (16 << 10) + 29;     // bytes of the longest TLS record that servers send (1.3: 7 less)
constexpr size_t kReadAhead = 4 * kRecord + 8;  // bytes per busy TLS connection; 8 for OpenSSL's alignment
// The order of browsers and Go. It costs both ends a quarter less work than OpenSSL's order, which puts 256 bits first.
constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

long Milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}
long Seconds(Duration duration) {
  return std::max(1L, static_cast<long>(std::chrono::ceil<std::chrono::seconds>(duration).count()));
}

std::string_view LibcurlsCaFolder() {
  const char* folder = curl_version_info(CURLVERSION_NOW)->capath;
  return folder == nullptr ? "" : folder;
}

// Makes OpenSSL read all available bytes from a socket, up to kReadAhead, which fit into a core's cache until they are
// decrypted. By default it reads a record's five header bytes and then its 16 KiB.
CURLcode ReadAhead(CURL*, void* context, void*) {
  auto* tls = static_cast<SSL_CTX*>(context);
  SSL_CTX_set_read_ahead(tls, 1);
  SSL_CTX_set_default_read_buffer_len(tls, kReadAhead);
  return CURLE_OK;
}

// Whether an error is OpenSSL's text for a TLS alert of a server that does not accept the client's certificate.
bool WantsOurCertificate(std::string_view error) {
  for (std::string_view alert : {"alert certificate required", "alert bad certificate", "alert unknown ca"}) {
    if (error.find(alert) != std::string_view::npos) return true;
  }
  return false;
}

curl_blob BlobOf(const std::string& text) { return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY}; }

TransferEnd::Kind KindOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return TransferEnd::Kind::kWhole;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
      return TransferEnd::Kind::kUnreachable;
    case CURLE_OPERATION_TIMEDOUT:
      return TransferEnd::Kind::kStalled;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
      return TransferEnd::Kind::kUntrusted;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return TransferEnd::Kind::kInvalid;
    default:  // a cut connection has many codes: partial file, receive and send errors, TLS, HTTP/2
      return TransferEnd::Kind::kCut;
  }
}

}  // namespace

std::optional<std::string_view> ResponseHead::Find(std::string_view name) const { return FindHeader(headers, name); }

std::optional<uint64_t> ResponseHead::ContentLength() const {
  auto text = Find("content-length");
  auto length = text ? ParseInt(*text) : std::nullopt;
  if (!length || *length < 0) return std::nullopt;
  return static_cast<uint64_t>(*length);
}

class Client::Impl {
 public:
  Impl(asio::io_context& loop, Options options);
  ~Impl();

  Id Start(const Request& request, const Limits& limits, Sink& sink);
  void Resume(Id id);
  void Cancel(Id id);
  const Options& options() const { return options_; }
  std::function<void(Id)> Canceller() {
    return [this, alive = std::weak_ptr<bool>(alive_)](Id id) {
      if (!alive.expired()) Cancel(id);
    };
  }

 private:
  struct Transfer {
    Impl* owner = nullptr;
    Id id = 0;
    Sink* sink = nullptr;
    std::shared_ptr<Intake> intake;  // set when the sink has got the head
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    std::string url;
    int mark = 0;
    ResponseHead head;
    std::unique_ptr<asio::steady_timer> head_limit;
    char error[CURL_ERROR_SIZE] = {};
    bool told_head = false;
    bool refused = false;
    bool invalid = false;
  };
  static int OnConnected(void* self, curl_socket_t socket, curlsocktype);
  static size_t OnHeader(char* bytes, size_t, size_t length, void* transfer);
  static size_t OnBody(char* bytes, size_t, size_t length, void* transfer);

  void Collect();
  void CollectSoon();
  void Finish(Transfer& transfer, CURLcode code);
  void Remove(Transfer& transfer);
  bool DeliverHead(Transfer& transfer);
  void LimitHead(Transfer& transfer, Duration limit);
  void SetUp(CURL* easy, const Request& request, const Limits& limits, Transfer& transfer);
  TransferEnd EndOf(const Transfer& transfer, CURLcode code) const;

  asio::io_context& loop_;
  const Options options_;
  const CaPlaces ca_;
  CurlOnLoop curl_;
  std::unordered_map<Id, std::unique_ptr<Transfer>> transfers_;
  std::vector<CURL*> idle_;  // easy handles for reuse
  uint64_t last_ = 0;
  bool collecting_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

Client::Impl::Impl(asio::io_context& loop, Options options)
    : loop_(loop),
      options_(std::move(options)),
      ca_(FindCaPlaces(options_.ca_bundle, options_.ca_folders, FindSystemCa(LibcurlsCaFolder()))),
      curl_(loop, [this] { Collect(); }) {
  curl_multi_setopt(curl_.multi(), CURLMOPT_PIPELINING, long{CURLPIPE_NOTHING});
  curl_multi_setopt(curl_.multi(), CURLMOPT_MAXCONNECTS, static_cast<long>(options_.connections));
  curl_multi_setopt(curl_.multi(), CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(options_.connections));
}

Client::Impl::~Impl() {
  while (!transfers_.empty()) Cancel(transfers_.begin()->first);
  for (CURL* easy : idle_) curl_easy_cleanup(easy);
}

Client::Id Client::Impl::Start(const Request& request, const Limits& limits, Sink& sink) {
  auto transfer = std::make_unique<Transfer>();
  transfer->owner = this;
  transfer->id = ++last_;
  transfer->sink = &sink;
  transfer->url = request.url;
  transfer->mark = request.mark;
  if (idle_.empty()) {
    transfer->easy = curl_easy_init();
  } else {
    transfer->easy = idle_.back();
    idle_.pop_back();
  }
  SetUp(transfer->easy, request, limits, *transfer);
  Id id = transfer->id;
  CURL* easy = transfer->easy;
  if (limits.head) LimitHead(*transfer, *limits.head);
  transfers_.emplace(id, std::move(transfer));
  curl_multi_add_handle(curl_.multi(), easy);  // sets the timer to now, so nothing happens before the loop's next turn
  return id;
}

void Client::Impl::SetUp(CURL* easy, const Request& request, const Limits& limits, Transfer& transfer) {
  auto set = [easy](auto option, auto value) { curl_easy_setopt(easy, option, value); };
  set(CURLOPT_PRIVATE, &transfer);
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);  // keys with ".." or "//" are signed unchanged
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HEADERFUNCTION, &Impl::OnHeader);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &Impl::OnBody);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_ERRORBUFFER, transfer.error);
  set(CURLOPT_USERAGENT, options_.user_agent.c_str());
  set(CURLOPT_BUFFERSIZE, static_cast<long>(options_.buffer));
  set(CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(limits.connect));
  if (limits.silence) {
    set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(limits.slowest));
    set(CURLOPT_LOW_SPEED_TIME, Seconds(*limits.silence));
  }
  if (limits.total) set(CURLOPT_TIMEOUT_MS, Milliseconds(*limits.total));
  set(CURLOPT_HTTP_VERSION, options_.http2 ? long{CURL_HTTP_VERSION_2TLS} : long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_FRESH_CONNECT, request.fresh ? 1L : 0L);
  set(CURLOPT_SOCKOPTFUNCTION, &Impl::OnConnected);
  set(CURLOPT_SOCKOPTDATA, this);
  if (!options_.proxies.by_tls()) {
    set(CURLOPT_SSL_CTX_FUNCTION, &ReadAhead);
  }
  set(CURLOPT_TLS13_CIPHERS, kCiphers);
  // Set both even if empty ("no proxy", "no exceptions"), so that libcurl does not read the environment.
  const std::string proxy = request.direct ? "" : options_.proxies.For(request.url);
  set(CURLOPT_PROXY, proxy.c_str());
  set(CURLOPT_NOPROXY, "");
  for (auto option : {CURLOPT_CAINFO, CURLOPT_PROXY_CAINFO}) {
    if (!ca_.file.empty()) set(option, ca_.file.c_str());
  }
  for (auto option : {CURLOPT_CAPATH, CURLOPT_PROXY_CAPATH}) {
    if (!ca_.folders.empty()) set(option, ca_.folders.c_str());
  }
  if (!options_.ca_pem.empty()) {
    curl_blob blob = BlobOf(options_.ca_pem);
    set(CURLOPT_CAINFO_BLOB, &blob);
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (!options_.client_certificate.empty()) {
    curl_blob certificate = BlobOf(options_.client_certificate), key = BlobOf(options_.client_key);
    set(CURLOPT_SSLCERT_BLOB, &certificate);
    set(CURLOPT_SSLKEY_BLOB, &key);
  }
  if (!options_.verify_tls) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_COPYPOSTFIELDS, request.body.data());
    if (request.method != "POST") set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  for (const auto& [name, value] : request.headers) {
    // "Name;" makes libcurl send a header without a value.
    transfer.headers = curl_slist_append(
        transfer.headers, (value.empty() ? fmt::format("{};", name) : fmt::format("{}: {}", name, value)).c_str());
  }
  transfer.headers = curl_slist_append(transfer.headers, "Expect:");
  set(CURLOPT_HTTPHEADER, transfer.headers);
}

void Client::Impl::LimitHead(Transfer& transfer, Duration limit) {
  transfer.head_limit = std::make_unique<asio::steady_timer>(loop_, limit);
  transfer.head_limit->async_wait([this, id = transfer.id, alive = std::weak_ptr<bool>(alive_)](error_code error) {
    if (error || alive.expired()) return;
    auto found = transfers_.find(id);
    if (found == transfers_.end() || found->second->told_head) return;
    const auto text = fmt::format_to_n(found->second->error, CURL_ERROR_SIZE - 1, "no answer in time");
    *text.out = '\0';
    Finish(*found->second, CURLE_OPERATION_TIMEDOUT);
  });
}

int Client::Impl::OnConnected(void* self, curl_socket_t socket, curlsocktype) {
  const auto& limit = static_cast<Impl*>(self)->options_.dead_peer;
  if (limit) NoticeDeadPeer(socket, *limit);
  return CURL_SOCKOPT_OK;
}

size_t Client::Impl::OnHeader(char* bytes, size_t, size_t length, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  std::string_view line(bytes, length);
  line = Strip(line);
  if (line.starts_with("HTTP/")) {  // a new head: also after a 100 Continue or a proxy's CONNECT, or before trailers
    transfer.head = {};
    return length;
  }
  if (line.size() > kLongestHeader || transfer.head.headers.size() >= kMostHeaders) {
    transfer.invalid = true;
    return 0;
  }
  size_t colon = line.find(':');
  if (line.empty()) {  // end of a head; the sink gets it when the body begins, which may be much later
    long status = 0;   // stays 0 after a proxy's CONNECT
    curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && transfer.head_limit) transfer.head_limit->cancel();
  }
  if (colon == std::string_view::npos) return length;
  if (!transfer.told_head) {
    transfer.head.headers.emplace_back(Lower(line.substr(0, colon)), Strip(line.substr(colon + 1)));
  }
  return length;
}

bool Client::Impl::DeliverHead(Transfer& transfer) {
  if (transfer.told_head) return true;
  transfer.told_head = true;
  long status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  transfer.head.status = static_cast<int>(status);
  transfer.head.url = std::move(transfer.url);
  transfer.head.mark = transfer.mark;
  transfer.intake = transfer.sink->Head(transfer.head);
  transfer.refused = !transfer.intake;
  return !transfer.refused;
}

size_t Client::Impl::OnBody(char* bytes, size_t, size_t length, void* data) {
  auto& transfer = *static_cast<Transfer*>(data);
  if (!transfer.owner->DeliverHead(transfer)) return 0;
  switch (transfer.intake->Take({bytes, length})) {
    case Intake::Taken::kAll:
      return length;
    case Intake::Taken::kNotNow:
      return CURL_WRITEFUNC_PAUSE;
    case Intake::Taken::kEnough:
      break;
  }
  transfer.refused = true;
  return 0;
}

void Client::Impl::Resume(Id id) {
  auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const CURLcode code = curl_easy_pause(found->second->easy, CURLPAUSE_CONT);  // may deliver, and so end, at once
  if (code == CURLE_OK) return CollectSoon();
  // libcurl reports this error nowhere else. Finish later, since the caller of Resume is on the stack.
  asio::post(loop_, [this, id, code, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    auto failed = transfers_.find(id);
    if (failed != transfers_.end()) Finish(*failed->second, code);
  });
}

void Client::Impl::Cancel(Id id) {
  auto found = transfers_.find(id);
  if (found != transfers_.end()) Remove(*found->second);
}

void Client::Impl::Remove(Transfer& transfer) {
  curl_multi_remove_handle(curl_.multi(), transfer.easy);
  curl_easy_reset(transfer.easy);
  idle_.push_back(transfer.easy);
  curl_slist_free_all(transfer.headers);
  transfers_.erase(transfer.id);
}

void Client::Impl::CollectSoon() {
  if (std::exchange(collecting_, true)) return;
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    collecting_ = false;
    Collect();
  });
}

void Client::Impl::Collect() {
  std::weak_ptr<bool> alive = alive_;
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(curl_.multi(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    Finish(*transfer, message->data.result);
    if (alive.expired()) return;  // the sink destroyed the client
  }
}

void Client::Impl::Finish(Transfer& transfer, CURLcode code) {
  if (code == CURLE_OK) DeliverHead(transfer);  // an answer without a body
  const TransferEnd end = EndOf(transfer, code);
  Sink* sink = transfer.sink;
  Remove(transfer);
  sink->End(end);
}

TransferEnd Client::Impl::EndOf(const Transfer& transfer, CURLcode code) const {
  if (transfer.refused) return {TransferEnd::Kind::kRefused, "not wanted"};
  if (transfer.invalid)
    return {
        TransferEnd::Kind::kInvalid,
        fmt::format("the answer has more than {} headers, or one of more than {} bytes", kMostHeaders, kLongestHeader)};
  if (code == CURLE_OK) return {};
  long tunnel = 0;  // status of the proxy's answer to CONNECT
  curl_easy_getinfo(transfer.easy, CURLINFO_HTTP_CONNECTCODE, &tunnel);
  if (tunnel >= 400 && tunnel < 500 && tunnel != 408 && tunnel != 429) {
    return {
        TransferEnd::Kind::kInvalid,
        fmt::format("the proxy refused the connection (it answered {}): check HTTPS_PROXY and the user and password "
                    "in it, or name the host in NO_PROXY",
                    tunnel)};
  }
  TransferEnd end{KindOf(code), transfer.error[0] ? transfer.error : curl_easy_strerror(code)};
  if (code == CURLE_SSL_CERTPROBLEM) {
    end.what = fmt::format("the client's certificate or key cannot be used: {}", end.what);
    return end;
  }
  if (code == CURLE_SSL_CONNECT_ERROR && end.what.find("wrong version number") != std::string::npos) {
    return {
        TransferEnd::Kind::kInvalid,
        fmt::format("the server speaks no TLS at this port ({}); if it serves http alone, write http:// in place of "
                    "https://",
                    end.what)};
  }
  if (WantsOurCertificate(end.what)) {
    const bool shown = !options_.client_certificate.empty();
    return {TransferEnd::Kind::kUntrusted,
            fmt::format("the server {} ({})",
                        shown ? "does not trust the client's certificate" : "wants a client's certificate", end.what)};
  }
  if (end.kind == TransferEnd::Kind::kUntrusted && !ca_.problem.empty()) {
    end.what = ca_.problem;
  } else if (end.kind == TransferEnd::Kind::kUntrusted && !options_.ca_remedy.empty()) {
    end.what += fmt::format("; {}", options_.ca_remedy);
  }
  return end;
}

Client::Client(asio::io_context& loop, Options options) : impl_(std::make_unique<Impl>(loop, std::move(options))) {}
Client::~Client() = default;
Client::Id Client::Start(const Request& request, const Limits& limits, Sink& sink) {
  return impl_->Start(request, limits, sink);
}
void Client::Resume(Id id) { impl_->Resume(id); }
void Client::Cancel(Id id) { impl_->Cancel(id); }
std::function<void(Client::Id)> Client::Canceller() const { return impl_->Canceller(); }
const Options& Client::options() const { return impl_->options(); }

}  // namespace muster::http
