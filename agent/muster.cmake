# SPDX-License-Identifier: Apache-2.0
# The `muster` binary: fully static, so that it runs in any image. Only this target links the rooms together.
muster_room(muster_agent COLD
  SOURCES args_from_env.cc attempt.cc endpoint_name.cc error_file.cc hang_evidence.cc hang_guard.cc http_fetch.cc inner_status.cc gpu_watch.cc live_source.cc page_access.cc telemetry_teller.cc viewers.cc installation.cc
          local_nodes.cc log_place.cc mpi_host_files.cc mpi_launcher.cc node_agent.cc node_check.cc nodes_file.cc
          old_logs.cc port_relay.cc preempt_notice.cc preempt_url.cc rendezvous_place.cc round_store.cc rsh_here.cc serve_rsh.cc
          start_check.cc termination_report.cc this_node.cc watch_port.cc wire_plain.cc wire_torch.cc
          commands/arguments.cc commands/check_command.cc commands/command_line.cc commands/coordinator_command.cc
          commands/install_command.cc commands/report_command.cc commands/rsh_command.cc commands/run_command.cc
          commands/stacks_command.cc commands/status_command.cc commands/store_command.cc commands/version_command.cc
          commands/top_command.cc commands/wait_command.cc
          live/terminal_session.cc live/top_argument.cc live/top_cluster.cc live/top_files.cc live/top_places.cc live/top_session.cc
          live/top_source.cc live/top_tool.cc
          probe/check_report.cc probe/machine_check.cc probe/peer_round_trip.cc probe/process_stacks.cc
          probe/status_inquiry.cc probe/status_waits.cc probe/wait_targets.cc
  LINK muster_standby muster_top muster_live muster_page muster_watch muster_progress muster_report muster_flags muster_rsh muster_launcher muster_control muster_net muster_http_server muster_store muster_membership muster_base
       CLI11::CLI11 nlohmann_json::nlohmann_json)

add_executable(muster commands/main.cc)
target_link_libraries(muster PRIVATE muster_agent)
target_compile_options(muster PRIVATE ${MUSTER_COLD})
if(NOT MUSTER_SANITIZE)
  target_link_options(muster PRIVATE -static)
endif()
