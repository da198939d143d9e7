# The `muster` binary: fully static, so that it runs in any image. Only this target links the rooms together.
muster_room(muster_agent COLD
  SOURCES args_from_env.cc attempt.cc command_line.cc coordinator_command.cc error_file.cc hang_evidence.cc hang_guard.cc http_fetch.cc
          check_command.cc check_report.cc log_place.cc machine_check.cc node_check.cc old_logs.cc peer_round_trip.cc this_node.cc
          install_command.cc installation.cc termination_report.cc local_nodes.cc mpi_host_files.cc
          mpi_launcher.cc node_agent.cc nodes_file.cc preempt_notice.cc preempt_url.cc process_stacks.cc port_relay.cc
          rendezvous_place.cc report_command.cc rsh_command.cc rsh_here.cc run_command.cc serve_rsh.cc stacks_command.cc
          start_check.cc status_command.cc status_inquiry.cc store_command.cc version_command.cc wait_command.cc
          wait_targets.cc watch.cc wire_plain.cc wire_torch.cc
  LINK muster_watch muster_report muster_torch muster_rsh muster_launcher muster_control muster_net muster_http_server muster_store muster_membership muster_base
       CLI11::CLI11 nlohmann_json::nlohmann_json)

add_executable(muster main.cc)
target_link_libraries(muster PRIVATE muster_agent)
if(NOT MUSTER_SANITIZE)
  target_link_options(muster PRIVATE -static)
endif()
