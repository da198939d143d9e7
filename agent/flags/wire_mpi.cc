// SPDX-License-Identifier: Apache-2.0
// The wiring of MPI: each runtime has its own names for the same few facts.
#include "agent/flags/wire_mpi.h"

#include <span>

#include "agent/flags/flag_values.h"
#include "agent/flags/mpi_hosts.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr std::string_view kOpenMpiHosts[] = {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"};
constexpr std::string_view kHydraHosts[] = {"HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"};

// If any of these is set, the image has chosen the runtime's remote shell (synonyms of Open MPI 4.1.4 and of PRRTE 3).
constexpr std::string_view kOrteShell = "OMPI_MCA_plm_rsh_agent OMPI_MCA_orte_rsh_agent OMPI_MCA_pls_rsh_agent";
constexpr std::string_view kPrteShell = "PRTE_MCA_plm_ssh_agent PRTE_MCA_prte_ssh_agent PRTE_MCA_pls_ssh_agent";
constexpr std::string_view kHydraShell = "HYDRA_LAUNCHER HYDRA_LAUNCHER_EXEC HYDRA_BOOTSTRAP HYDRA_BOOTSTRAP_EXEC";
constexpr std::string_view kIntelShell = "I_MPI_HYDRA_BOOTSTRAP I_MPI_HYDRA_BOOTSTRAP_EXEC";

class VariableMaker {
 public:
  VariableMaker(const Environment& environment, const MpiPlace& place)
      : environment_(environment), place_(place), listed_(FirstOf(environment, "MUSTER_MPI_HOSTS").has_value()) {}

  Variables Make() {
    HostFiles();
    if (!place_.rsh.empty()) {
      const bool orte = !Chosen(kOrteShell, "OMPI_MCA_plm", "rsh");
      if (orte) Orte();
      if (orte && !Chosen(kPrteShell, "PRTE_MCA_plm", "ssh")) Prte();
      if (!Chosen(kHydraShell, "", "")) Hydra();
      if (!Chosen(kIntelShell, "", "")) Intel();
    }
    if (place_.root) {
      for (auto name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT",
                        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"}) {
        Set(name, "1");
      }
    }
    return std::move(variables_);
  }

 private:
  bool Chosen(std::string_view shell, std::string_view module, std::string_view usual) const {
    if (FirstOf(environment_, shell)) return true;
    auto chosen = module.empty() ? std::nullopt : FirstOf(environment_, module);
    return chosen && chosen->text != usual;
  }
  void Set(std::string_view name, std::string_view value) {
    if (!environment_.Get(name)) variables_[std::string(name)] = value;
  }
  void SetFile(std::string_view name, const std::string& path) {
    if (path.empty()) return;
    if (listed_ || !FirstOf(environment_, name)) variables_[std::string(name)] = path;
  }

  void HostFiles() {
    for (std::string_view name : kOpenMpiHosts) SetFile(name, place_.open_mpi_hosts);
    for (std::string_view name : kHydraHosts) SetFile(name, place_.hydra_hosts);
    if (!place_.open_mpi_hosts.empty() && place_.slots) {
      // For a host file of the user's own (mpirun --hostfile), in which hosts have no slots.
      Set("OMPI_MCA_orte_set_default_slots", std::to_string(*place_.slots));
      Set("PRTE_MCA_prte_set_default_slots", std::to_string(*place_.slots));
    }
    if (!place_.hydra_hosts.empty() && place_.per_host) Set("I_MPI_PERHOST", std::to_string(*place_.per_host));
    // By default names are cut at the first dot; such a name of a pod resolves nowhere.
    Set("OMPI_MCA_orte_keep_fqdn_hostnames", "true");
    Set("PRTE_MCA_prte_keep_fqdn_hostnames", "true");
  }

  void Orte() {
    Set("OMPI_MCA_plm_rsh_agent", place_.rsh);
    Set("OMPI_MCA_orte_leave_session_attached", "true");
  }
  void Prte() { Set("PRTE_MCA_plm_ssh_agent", place_.rsh); }
  void Hydra() {
    Set("HYDRA_LAUNCHER", "rsh");
    Set("HYDRA_LAUNCHER_EXEC", place_.rsh);
    if (!place_.interface.empty()) Set("HYDRA_IFACE", place_.interface);
  }
  void Intel() {
    Set("I_MPI_HYDRA_BOOTSTRAP", "ssh");
    Set("I_MPI_HYDRA_BOOTSTRAP_EXEC", place_.rsh);
    if (!place_.interface.empty()) Set("I_MPI_HYDRA_IFACE", place_.interface);
  }

  const Environment& environment_;
  const MpiPlace& place_;
  const bool listed_;
  Variables variables_;
};

}  // namespace

std::optional<MpiHostSource> FindMpiHosts(const Environment& environment) {
  if (auto given = FirstOf(environment, "MUSTER_MPI_HOSTS")) {
    if (given->text == "none") return std::nullopt;
    const bool file = given->text.find('/') != std::string::npos;
    return MpiHostSource{file ? "" : given->text, file ? given->text : "", given->origin};
  }
  for (const auto& names : {kOpenMpiHosts, kHydraHosts}) {
    for (std::string_view name : std::span(names, 2)) {
      auto told = FirstOf(environment, name);
      if (told && told->text != "none") return MpiHostSource{"", told->text, told->origin};
    }
  }
  return MpiHostSource{"", kMpiHostFile, ""};
}

StatusOr<std::optional<int>> MpiSlots(const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(auto slots, FirstNumberOf(environment, "MUSTER_MPI_SLOTS", 1, kMostMpiSlots));
  if (slots) return slots;
  for (auto name : {"OMPI_MCA_orte_set_default_slots", "TRAINER_NPROC_PER_NODE", "PET_NPROC_PER_NODE"}) {
    auto told = FirstOf(environment, name);
    auto number = told ? ParsePythonInt(told->text) : std::nullopt;
    if (number && *number >= 1 && *number <= kMostMpiSlots) return static_cast<int>(*number);
  }
  return std::nullopt;
}

Status CheckMpi(const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(MpiSlots(environment).status());
  auto source = FindMpiHosts(environment);
  if (!source || source->text.empty()) return absl::OkStatus();
  return Annotate(ParseMpiHosts(source->text).status(), source->origin);
}

StatusOr<Variables> MpiVariables(const Environment& environment, const MpiPlace& place) {
  if (place.rsh.find_first_of(" \t\n:") != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("--wire=mpi: {}: Open MPI cannot start a remote shell whose path has a blank or a colon; install "
                    "Muster into a folder without (muster install DIR)",
                    place.rsh));
  }
  return VariableMaker(environment, place).Make();
}

}  // namespace muster::agent
