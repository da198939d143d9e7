// SPDX-License-Identifier: Apache-2.0
#include "local/network/nf_tables.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <initializer_list>

#include "base/text.h"

namespace muster::local {
namespace {

constexpr char kChain[] = "outward";
constexpr uint32_t kSourceNatPriority = 100;  // nft calls it srcnat
constexpr uint32_t kIpv4Source = 12, kIpv4Size = 4;

Status Failed(const char* step, int error) {
  return absl::FailedPreconditionError(fmt::format("nftables: {}: {}", step, nl_geterror(error)));
}

int TypeOf(int what) { return (NFNL_SUBSYS_NFTABLES << 8) | what; }

// One netlink message. Attributes that do not fit are reported by `fits`.
class Message {
 public:
  Message(int type, int flags, uint8_t family, uint16_t resource) : message_(nlmsg_alloc()) {
    if (!message_) return;
    nfgenmsg header{.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource)};
    nlmsghdr* begin = nlmsg_put(message_.get(), NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, NLM_F_REQUEST | flags);
    Note(begin == nullptr ? -NLE_NOMEM : nlmsg_append(message_.get(), &header, sizeof header, NLMSG_ALIGNTO));
  }

  Message& Text(int name, const std::string& text) { return Note(nla_put_string(message_.get(), name, text.c_str())); }
  Message& Number(int name, uint32_t number) { return Note(nla_put_u32(message_.get(), name, htonl(number))); }
  Message& Bytes(int name, const void* bytes, size_t size) {
    return Note(nla_put(message_.get(), name, static_cast<int>(size), bytes));
  }
  Message& Nest(int name, const std::function<void(Message&)>& content) {
    nlattr* begin = nla_nest_start(message_.get(), name | NLA_F_NESTED);
    if (begin == nullptr) return Note(-NLE_NOMEM);
    content(*this);
    return Note(nla_nest_end(message_.get(), begin));
  }
  // A value of an expression, such as what a packet's bytes are compared with.
  Message& Value(int name, const void* bytes, size_t size) {
    return Nest(name, [&](Message& inner) { inner.Bytes(NFTA_DATA_VALUE, bytes, size); });
  }
  // An expression of a rule.
  Message& Expression(const std::string& name, const std::function<void(Message&)>& data) {
    return Nest(NFTA_LIST_ELEM, [&](Message& inner) { inner.Text(NFTA_EXPR_NAME, name).Nest(NFTA_EXPR_DATA, data); });
  }

  bool fits() const { return message_ && fits_; }
  nl_msg* get() const { return message_.get(); }

 private:
  Message& Note(int error) {
    fits_ = fits_ && error >= 0;
    return *this;
  }
  struct Free {
    void operator()(nl_msg* message) const { nlmsg_free(message); }
  };
  std::unique_ptr<nl_msg, Free> message_;
  bool fits_ = true;
};

// "ip filter FORWARD" if `message` describes a chain of forwarded IPv4 packets that drops by default.
std::string DroppingChainIn(nlmsghdr* message) {
  nlattr *chain[NFTA_CHAIN_MAX + 1] = {}, *hook[NFTA_HOOK_MAX + 1] = {};
  if (nlmsg_parse(message, sizeof(nfgenmsg), chain, NFTA_CHAIN_MAX, nullptr) < 0) return "";
  for (const int needed : {NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_HOOK, NFTA_CHAIN_POLICY}) {
    if (chain[needed] == nullptr) return "";
  }
  if (nla_parse_nested(hook, NFTA_HOOK_MAX, chain[NFTA_CHAIN_HOOK], nullptr) < 0) return "";
  const uint8_t family = static_cast<const nfgenmsg*>(nlmsg_data(message))->nfgen_family;
  const bool is_ipv4 = family == NFPROTO_IPV4 || family == NFPROTO_INET;
  if (!is_ipv4 || hook[NFTA_HOOK_HOOKNUM] == nullptr ||
      ntohl(nla_get_u32(hook[NFTA_HOOK_HOOKNUM])) != NF_INET_FORWARD ||
      ntohl(nla_get_u32(chain[NFTA_CHAIN_POLICY])) != NF_DROP) {
    return "";
  }
  return fmt::format("{} {} {}", family == NFPROTO_IPV4 ? "ip" : "inet", nla_get_string(chain[NFTA_CHAIN_TABLE]),
                     nla_get_string(chain[NFTA_CHAIN_NAME]));
}

int TakeDroppingChain(nl_msg* message, void* found) {
  std::string& chain = *static_cast<std::string*>(found);
  if (chain.empty()) chain = DroppingChainIn(nlmsg_hdr(message));
  return NL_OK;
}

}  // namespace

void NfTables::Free::operator()(nl_sock* socket) const { nl_socket_free(socket); }

StatusOr<NfTables> NfTables::Open() {
  NfTables tables(nl_socket_alloc());
  if (!tables.socket_) return absl::ResourceExhaustedError("no memory for a netlink socket");
  nl_socket_disable_seq_check(tables.socket_.get());  // a batch is answered by its last message's number
  if (const int error = nl_connect(tables.socket_.get(), NETLINK_NETFILTER); error < 0) return Failed("connect", error);
  return tables;
}

StatusOr<std::string> NfTables::DroppingChain() {
  constexpr char kStep[] = "list chains";
  std::string found;
  nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_CUSTOM, &TakeDroppingChain, &found);
  const Message question(TypeOf(NFT_MSG_GETCHAIN), NLM_F_DUMP, NFPROTO_UNSPEC, 0);
  if (!question.fits()) return Failed(kStep, -NLE_NOMEM);
  int error = nl_send_auto(socket_.get(), question.get());
  if (error >= 0) error = nl_recvmsgs_default(socket_.get());
  nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_DEFAULT, nullptr, nullptr);
  if (error < 0) return Failed(kStep, error);
  return found;
}

Status NfTables::AddMasquerade(const std::string& name, uint32_t subnet, int bits, const std::string& link) {
  constexpr char kStep[] = "add a table that masquerades";
  const uint32_t mask = htonl(~uint32_t{0} << (32 - bits)), none = 0, address = htonl(subnet);
  std::array<char, IFNAMSIZ> interface {};  // the kernel compares all bytes
  if (link.size() >= interface.size()) return absl::InvalidArgumentError(fmt::format("interface {}: too long", link));
  std::memcpy(interface.data(), link.data(), link.size());

  const Message begin(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
  Message table(TypeOf(NFT_MSG_NEWTABLE), NLM_F_CREATE, NFPROTO_IPV4, 0);
  table.Text(NFTA_TABLE_NAME, name).Number(NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
  Message chain(TypeOf(NFT_MSG_NEWCHAIN), NLM_F_CREATE, NFPROTO_IPV4, 0);
  chain.Text(NFTA_CHAIN_TABLE, name).Text(NFTA_CHAIN_NAME, kChain).Text(NFTA_CHAIN_TYPE, "nat");
  chain.Nest(NFTA_CHAIN_HOOK, [](Message& hook) {
    hook.Number(NFTA_HOOK_HOOKNUM, NF_INET_POST_ROUTING).Number(NFTA_HOOK_PRIORITY, kSourceNatPriority);
  });
  // ip saddr SUBNET oifname != LINK masquerade
  Message rule(TypeOf(NFT_MSG_NEWRULE), NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK, NFPROTO_IPV4, 0);
  rule.Text(NFTA_RULE_TABLE, name).Text(NFTA_RULE_CHAIN, kChain).Nest(NFTA_RULE_EXPRESSIONS, [&](Message& all) {
    all.Expression("payload", [](Message& data) {
      data.Number(NFTA_PAYLOAD_DREG, NFT_REG_1).Number(NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
      data.Number(NFTA_PAYLOAD_OFFSET, kIpv4Source).Number(NFTA_PAYLOAD_LEN, kIpv4Size);
    });
    all.Expression("bitwise", [&](Message& data) {
      data.Number(NFTA_BITWISE_SREG, NFT_REG_1).Number(NFTA_BITWISE_DREG, NFT_REG_1);
      data.Number(NFTA_BITWISE_LEN, kIpv4Size).Value(NFTA_BITWISE_MASK, &mask, sizeof mask);
      data.Value(NFTA_BITWISE_XOR, &none, sizeof none);
    });
    all.Expression("cmp", [&](Message& data) {
      data.Number(NFTA_CMP_SREG, NFT_REG_1).Number(NFTA_CMP_OP, NFT_CMP_EQ);
      data.Value(NFTA_CMP_DATA, &address, sizeof address);
    });
    all.Expression(
        "meta", [](Message& data) { data.Number(NFTA_META_DREG, NFT_REG_1).Number(NFTA_META_KEY, NFT_META_OIFNAME); });
    all.Expression("cmp", [&](Message& data) {
      data.Number(NFTA_CMP_SREG, NFT_REG_1).Number(NFTA_CMP_OP, NFT_CMP_NEQ);
      data.Value(NFTA_CMP_DATA, interface.data(), interface.size());
    });
    all.Expression("masq", [](Message&) {});
  });
  const Message end(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);

  // One datagram: the kernel does all of it, or nothing. Only the rule asks for an answer. If an earlier message fails,
  // its error comes before that.
  std::string batch;
  for (const Message* message : std::initializer_list<const Message*>{&begin, &table, &chain, &rule, &end}) {
    if (!message->fits()) return Failed(kStep, -NLE_NOMEM);
    nl_complete_msg(socket_.get(), message->get());
    const nlmsghdr* header = nlmsg_hdr(message->get());
    batch.append(reinterpret_cast<const char*>(header), header->nlmsg_len);
    batch.resize(NLMSG_ALIGN(batch.size()));
  }
  int error = nl_sendto(socket_.get(), batch.data(), batch.size());
  if (error >= 0) error = nl_wait_for_ack(socket_.get());
  return error < 0 ? Failed(kStep, error) : absl::OkStatus();
}

}  // namespace muster::local
