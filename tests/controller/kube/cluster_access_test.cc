// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/cluster_access.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace muster::controller {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A temporary folder with files. The destructor removes it.
class Folder {
 public:
  Folder() : path_(testing::TempDir() + "/cluster-access-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A kubeconfig with one context, whose cluster and user have the given fields.
std::string Config(std::string_view cluster, std::string_view user, std::string_view context = "") {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{{name: here, context: {{cluster: c, user: "
      "u{}}}}}]\nclusters: [{{name: c, cluster: {{{}}}}}]\nusers: [{{name: u, user: {{{}}}}}]\n",
      context, cluster, user);
}
constexpr char kServer[] = "server: 'https://api.example:6443'";

TEST(Kubeconfig, SaysWhereAndWho) {
  const Folder folder;
  folder.Write("pki/ca.crt", "CA");
  folder.Write("c.crt", "CERTIFICATE");
  folder.Write("c.key", "KEY");
  const auto access = ReadKubeconfig(
      Config("server: 'https://[fd00::1]:6443/', certificate-authority: pki/ca.crt",
             "client-certificate: " + folder.path() + "/c.crt, client-key-data: 'S0VZ'", ", namespace: team"),
      folder.path(), "");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "https://[fd00::1]:6443");
  EXPECT_EQ(access->ca_pem, "CA");
  EXPECT_EQ(access->client_certificate, "CERTIFICATE");
  EXPECT_EQ(access->client_key, "KEY");
  EXPECT_EQ(access->ns, "team");
  EXPECT_TRUE(access->verify_tls);
  EXPECT_TRUE(access->token.empty() && access->token_file.empty() && !access->exec);
}

TEST(Kubeconfig, KnowsEachWayToBeSomebody) {
  const struct {
    std::string_view user, shown;  // token, token file, user:password, plugin
  } rows[] = {
      {"token: abc", "abc||:|"},
      {"tokenFile: t", "|/folder/t|:|"},
      {"tokenFile: /t", "|/t|:|"},
      {"username: me, password: 'p w'", "||me:p w|"},
      {"", "||:|"},
      {"exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [eks], interactiveMode: IfAvailable}",
       "||:|aws"},
      {"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/p}", "||:|/folder/./bin/p"},
      {"token: abc, exec: {apiVersion: other, command: x}", "abc||:|"},
  };
  for (const auto& row : rows) {
    const auto access = ReadKubeconfig(Config(kServer, row.user), "/folder", "here");
    ASSERT_TRUE(access.ok()) << row.user << access.status();
    EXPECT_EQ(fmt::format("{}|{}|{}:{}|{}", access->token, access->token_file, access->user, access->password,
                          access->exec ? access->exec->command : ""),
              row.shown)
        << row.user;
  }
}

TEST(Kubeconfig, TellsThePluginWhatItWants) {
  const auto access = ReadKubeconfig(
      Config("server: 'https://h', insecure-skip-tls-verify: true, extensions: [{name: "
             "client.authentication.k8s.io/exec, extension: {audience: x}}, {name: other, extension: 1}]",
             "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, args: [a, b], env: [{name: K, value: v}, "
             "{name: L, value: ''}], installHint: get it, provideClusterInfo: true}"),
      "", "");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_THAT(access->exec->arguments, ElementsAre("a", "b"));
  EXPECT_THAT(access->exec->environment, ElementsAre(Pair("K", "v"), Pair("L", "")));
  EXPECT_EQ(access->exec->install_hint, "get it");
  EXPECT_EQ(access->exec->cluster_info,
            R"({"config":{"audience":"x"},"insecure-skip-tls-verify":true,"server":"https://h"})");
}

TEST(Kubeconfig, MayNameAProxy) {
  const auto access = ReadKubeconfig(Config("server: 'https://127.0.0.1', proxy-url: 'http://p:3128'", ""), "", "");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->proxies.For("https://127.0.0.1/api"), "http://p:3128");
}

TEST(Kubeconfig, MayBeJson) {
  const auto access = ReadKubeconfig(
      R"({"current-context":"a","contexts":[{"name":"b","context":{"cluster":"d"}},{"name":"a","context":{"cluster":"c"}}],
          "clusters":[{"name":"c","cluster":{"server":"http://localhost:8001"}},{"name":"d","cluster":{"server":"https://d"}}]})",
      "", "");
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->server, "http://localhost:8001");
  EXPECT_EQ(access->ns, "default");
}

TEST(Kubeconfig, SaysWhatIsWrongAndWhere) {
  const struct {
    std::string text;
    StatusCode code;
    std::string_view told;
  } rows[] = {
      {"", StatusCode::kInvalidArgument, "the kubeconfig is empty"},
      {"a: 1\n---\nb: 1\n", StatusCode::kInvalidArgument, "several YAML documents"},
      {"clusters: []", StatusCode::kNotFound, "'current-context' is not set"},
      {"current-context: x", StatusCode::kNotFound,
       "contexts 'x', which 'current-context' names, is not there; the list"},
      {"current-context: x\ncontexts: 7", StatusCode::kInvalidArgument, "contexts: it is not a list"},
      {"current-context: x\ncontexts: [{name: z}]", StatusCode::kNotFound, "is not there; there are 'z'"},
      {"current-context: x\ncontexts: [{name: x}]", StatusCode::kInvalidArgument, "contexts 'x': 'cluster' is missing"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: [1]}}]", StatusCode::kInvalidArgument,
       "contexts 'x': 'cluster' is not a text"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", StatusCode::kNotFound,
       "clusters 'c', which contexts 'x' names, is not there"},
      {Config("", ""), StatusCode::kInvalidArgument, "clusters 'c': 'server' is missing"},
      {Config("server: api:6443", ""), StatusCode::kInvalidArgument, "clusters 'c': 'server' 'api:6443'"},
      {Config("server: 'https://h', tls-server-name: x", ""), StatusCode::kUnimplemented, "'tls-server-name'"},
      {Config("server: 'https://h', proxy-url: 'ftp://p'", ""), StatusCode::kInvalidArgument,
       "clusters 'c': 'proxy-url'"},
      {Config("server: 'https://h', certificate-authority-data: '!'", ""), StatusCode::kInvalidArgument,
       "clusters 'c': 'certificate-authority-data' is not base64"},
      {Config("server: 'https://h', certificate-authority: nowhere", ""), StatusCode::kNotFound,
       "clusters 'c': 'certificate-authority': ./nowhere"},
      {Config("server: 'https://h', insecure-skip-tls-verify: true, certificate-authority-data: 'Q0E='", ""),
       StatusCode::kInvalidArgument, "contradict"},
      {Config("server: 'https://h', insecure-skip-tls-verify: 'yes'", ""), StatusCode::kInvalidArgument,
       "'insecure-skip-tls-verify' is not true or false"},
      {Config(kServer, "client-key-data: 'S0VZ'"), StatusCode::kInvalidArgument,
       "users 'u': 'client-certificate' is missing"},
      {Config(kServer, "token: a, username: b"), StatusCode::kInvalidArgument,
       "users 'u': it has a token and a 'username'"},
      {Config(kServer, "token: \"a\\nb\""), StatusCode::kInvalidArgument, "users 'u': 'token' has white space"},
      {Config(kServer, "as: root"), StatusCode::kUnimplemented, "users 'u': 'as' (impersonation)"},
      {Config(kServer, "auth-provider: {name: gcp}"), StatusCode::kUnimplemented, "users 'u': auth-provider 'gcp'"},
      {Config(kServer, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"),
       StatusCode::kUnimplemented, "users 'u': exec: 'apiVersion'"},
      {Config(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1}"), StatusCode::kInvalidArgument,
       "users 'u': exec: 'command' is missing"},
      {Config(kServer, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}"),
       StatusCode::kUnimplemented, "needs a terminal"},
      {Config(kServer, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, env: [{value: a}]}"),
       StatusCode::kInvalidArgument, "an entry of 'env' has no 'name'"},
      {Config(kServer, "exec: 7"), StatusCode::kInvalidArgument, "users 'u': exec: it is not a map"},
  };
  for (const auto& row : rows) {
    const auto access = ReadKubeconfig(row.text, ".", "");
    ASSERT_FALSE(access.ok()) << row.text;
    EXPECT_EQ(access.status().code(), row.code) << row.text << access.status();
    EXPECT_THAT(std::string(Message(access.status())), HasSubstr(std::string(row.told))) << row.text;
  }
  EXPECT_THAT(std::string(Message(ReadKubeconfig(Config(kServer, ""), "", "other").status())),
              HasSubstr("contexts 'other', which --context names, is not there; there are 'here'"));
}

// Error messages go to the log.
TEST(Kubeconfig, ShowsNoSecret) {
  for (std::string_view user : {"client-key-data: 's3cr3t!', client-certificate-data: 'Q0E='", "token: \"s3cr3t x\"",
                                "username: s3cr3t-user, token: s3cr3t"}) {
    const auto access = ReadKubeconfig(Config(kServer, user), "", "");
    ASSERT_FALSE(access.ok());
    EXPECT_EQ(access.status().message().find("s3cr3t"), absl::string_view::npos) << access.status();
  }
}

TEST(ServiceAccount, IsThePods) {
  const Folder folder;
  folder.Write("token", "abc\n");
  folder.Write("ca.crt", "CA");
  folder.Write("namespace", "team\n");
  const struct {
    Environment environment;
    std::string_view server;
  } rows[] = {
      {{{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "6443"}}, "https://10.0.0.1:6443"},
      {{{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}, "https://[fd00::1]:443"},
      {{{"KUBERNETES_SERVICE_HOST", "kubernetes.default.svc"}}, "https://kubernetes.default.svc:443"},
  };
  for (const auto& row : rows) {
    const auto access = ReadServiceAccount(row.environment, folder.path());
    ASSERT_TRUE(access.ok()) << access.status();
    EXPECT_EQ(access->server, row.server);
    EXPECT_EQ(access->token_file, folder.path() + "/token");
    EXPECT_EQ(access->ca_pem, "CA");
    EXPECT_EQ(access->ns, "team");
  }
  EXPECT_EQ(ReadServiceAccount({}, folder.path()).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(Message(
          ReadServiceAccount({{"KUBERNETES_SERVICE_HOST", "h"}, {"KUBERNETES_SERVICE_PORT", "x"}}, folder.path())
              .status())),
      HasSubstr("KUBERNETES_SERVICE_PORT is not a port: 'x'"));
  EXPECT_THAT(
      std::string(Message(ReadServiceAccount({{"KUBERNETES_SERVICE_HOST", "h"}}, folder.path() + "/x").status())),
      HasSubstr("automountServiceAccountToken"));
}

TEST(FindCluster, LooksInItsOrder) {
  const Folder folder;
  const std::string one = folder.Write("one", Config("server: 'https://one'", ""));
  const std::string two = folder.Write("two", Config("server: 'https://two'", ""));
  folder.Write(".kube/config", Config("server: 'https://home'", ""));
  const std::string& home = folder.path();
  const struct {
    std::string path;
    Environment environment;
    std::string_view server;
  } rows[] = {
      {one, {{"KUBECONFIG", two}, {"HOME", home}}, "https://one"},
      {"", {{"KUBECONFIG", fmt::format("{}/none::{}:{}", home, two, one)}, {"HOME", home}}, "https://two"},
      {"", {{"KUBECONFIG", " "}, {"HOME", home}}, "https://home"},
      {"", {{"HOME", home}}, "https://home"},
  };
  for (const auto& row : rows) {
    const auto access = FindCluster(row.path, "", row.environment);
    ASSERT_TRUE(access.ok()) << access.status();
    EXPECT_EQ(access->server, row.server);
  }
  const struct {
    std::string path;
    Environment environment;
    std::string_view told;
  } bad[] = {
      {home + "/none", {}, "/none: No such file"},
      {"", {{"KUBECONFIG", home + "/none"}, {"HOME", home}}, "KUBECONFIG names no file that is there"},
      {"", {}, "give --kubeconfig FILE"},
      {folder.Write("bad", "current-context: x"), {}, "/bad: contexts 'x'"},
  };
  for (const auto& row : bad) {
    EXPECT_THAT(std::string(Message(FindCluster(row.path, "", row.environment).status())),
                HasSubstr(std::string(row.told)));
  }
}

TEST(FindCluster, GoesThroughTheEnvironmentsProxy) {
  const Folder folder;
  const std::string far = folder.Write("far", Config("server: 'https://far'", ""));
  const std::string near = folder.Write("near", Config("server: 'https://127.0.0.1:6443'", ""));
  const std::string own = folder.Write("own", Config("server: 'https://far', proxy-url: 'http://own:1'", ""));
  const Environment environment{{"HTTPS_PROXY", "http://p:1"}};
  EXPECT_EQ(FindCluster(far, "", environment)->proxies.For("https://far/x"), "http://p:1");
  EXPECT_EQ(FindCluster(near, "", environment)->proxies.For("https://127.0.0.1:6443/x"), "");
  EXPECT_EQ(FindCluster(own, "", environment)->proxies.For("https://far/x"), "http://own:1");
}

}  // namespace
}  // namespace muster::controller
