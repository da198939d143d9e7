// SPDX-License-Identifier: Apache-2.0
#include "local/pod/probe.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"
#include "local/pod/environment.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kMostPort = 65535;

// A number, or the name of one of the container's ports.
int PortOf(Fields action, const Fields& container) {
  const Json* value = action.Find("port");
  if (value == nullptr) return action.Wrong("port", "it is missing"), 0;
  if (!value->is_string()) return action.Int("port", 1, kMostPort).value_or(0);
  const std::string name = value->get<std::string>();
  const Json* port = FindNamed(*container.Whole(), "ports", name);
  const int number = port == nullptr ? 0 : IntField(*port, "containerPort", 1).value_or(0);
  if (number == 0 || number > kMostPort) {
    action.Wrong("port", name,
                 fmt::format("is not a port of the container; it has: {}", NamesIn(*container.Whole(), "ports")));
  }
  return number;
}

// As in the kubelet, $(NAME) knows only variables with a literal value, which is not expanded.
std::vector<std::string> CommandOf(Fields exec, const Fields& container, const PodPaths& paths) {
  Variables variables;
  for (const Json& variable : ListField(*container.Whole(), "env")) {
    variables[TextField(variable, "name")] = paths.In(TextField(variable, "value"));
  }
  std::vector<std::string> command;
  for (const std::string& word : exec.Texts("command").value_or(std::vector<std::string>())) {
    command.push_back(Expand(paths.In(word), variables));
  }
  if (command.empty()) exec.Wrong("command", "it is missing");
  return command;
}

// The path as a URL writes it.
std::string PathIn(const std::string& text) {
  std::string path = text.starts_with('/') ? "" : "/";
  for (const char c : text) {
    const bool plain = c > ' ' && c < '\x7f';
    path += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return path;
}

std::vector<std::pair<std::string, std::string>> HeadersOf(Fields get) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (Fields header : get.Objects("httpHeaders")) {
    const std::string name = header.NeedText("name"), value = header.Text("value");
    const auto is_token = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    };
    if (!std::all_of(name.begin(), name.end(), is_token)) header.Wrong("name", name, "is not a name of a header");
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      header.Wrong("value", value, "has a line break");
    }
    headers.emplace_back(name, value);
  }
  return headers;
}

void ReadHttp(Fields get, const Fields& container, const PodInput& input, Probe* probe) {
  probe->kind = Probe::Kind::kHttp;
  probe->path = PathIn(get.Text("path"));
  probe->headers = HeadersOf(get);
  probe->port = PortOf(get, container);
  if (get.Find("host") != nullptr) input.ignored->Say(get.PathOf("host"), "the probe goes to the pod's address");
}

void ReadTimes(Fields fields, Probe* probe) {
  // 0 stands for the default, as in the API server.
  const auto number = [&](const char* name, int otherwise) {
    const int given = fields.Int(name, 0).value_or(0);
    return given == 0 ? otherwise : given;
  };
  probe->first = std::chrono::seconds(number("initialDelaySeconds", 0));
  probe->period = std::chrono::seconds(number("periodSeconds", 10));
  probe->limit = std::chrono::seconds(number("timeoutSeconds", 1));
  probe->successes = number("successThreshold", 1);
  probe->failures = number("failureThreshold", 3);
  if (const int grace = fields.Int("terminationGracePeriodSeconds", 0).value_or(0); grace > 0) {
    probe->grace = std::chrono::seconds(grace);
  }
}

}  // namespace

std::optional<Probe> ProbeOf(Fields container, const char* name, const PodPaths& paths, const PodInput& input) {
  Fields fields = container.Object(name);
  if (!fields) return std::nullopt;
  Probe probe;
  ReadTimes(fields, &probe);
  if (Fields exec = fields.Object("exec")) {
    probe.kind = Probe::Kind::kExec;
    probe.command = CommandOf(exec, container, paths);
  } else if (Fields get = fields.Object("httpGet")) {
    if (get.Word("scheme", {"HTTP", "HTTPS"}) == "HTTPS") {
      input.ignored->OfContainer(container, fmt::format("{}.httpGet.scheme", name), "HTTPS probes are not run");
      return std::nullopt;
    }
    ReadHttp(get, container, input, &probe);
  } else if (Fields socket = fields.Object("tcpSocket")) {
    probe.kind = Probe::Kind::kTcp;
    probe.port = PortOf(socket, container);
  } else if (fields.Find("grpc") != nullptr) {
    input.ignored->OfContainer(container, fmt::format("{}.grpc", name), "gRPC probes are not run");
    return std::nullopt;
  } else {
    input.complaints->Wrong(fields.path(), "it has none of exec, httpGet, tcpSocket, grpc");
  }
  return probe;
}

}  // namespace muster::local
