#include "controller/local/pod_probe.h"

#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/local/pod_environment.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
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
                 fmt::format("is no port of the container; it has: {}", NamesIn(*container.Whole(), "ports")));
  }
  return number;
}

// As the kubelet does it: only variables with a value count, as they are written.
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

void ReadHttp(Fields get, const Fields& container, const PodInput& input, Probe* probe) {
  probe->kind = Probe::Kind::kHttp;
  probe->path = get.Text("path");
  if (!probe->path.starts_with('/')) probe->path.insert(0, 1, '/');
  probe->port = PortOf(get, container);
  for (const char* field : {"host", "httpHeaders"}) {
    if (get.Find(field) == nullptr) continue;
    input.ignored->Say(get.PathOf(field), "the pod's address is asked, without further headers");
  }
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
      input.ignored->OfContainer(container, fmt::format("{}.httpGet.scheme", name), "HTTPS is not asked");
      return std::nullopt;
    }
    ReadHttp(get, container, input, &probe);
  } else if (Fields socket = fields.Object("tcpSocket")) {
    probe.kind = Probe::Kind::kTcp;
    probe.port = PortOf(socket, container);
  } else if (fields.Find("grpc") != nullptr) {
    input.ignored->OfContainer(container, fmt::format("{}.grpc", name), "gRPC is not asked");
    return std::nullopt;
  } else {
    input.complaints->Wrong(fields.path(), "it has none of exec, httpGet, tcpSocket, grpc");
  }
  return probe;
}

}  // namespace muster::controller
