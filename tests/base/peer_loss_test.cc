// SPDX-License-Identifier: Apache-2.0
#include "base/peer_loss.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(PeerLoss, IsRecognizedInTheTextsOfEachFramework) {
  const std::string losses[] = {
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.1.1]:21005",
      "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection reset by peer [10.0.0.1]:3",
      "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, remote process exited or there "
      "was a "
      "network error, NCCL version 2.21.5",
      "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
      "[rank1]: torch.distributed.DistStoreError: Socket Timeout",
      "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote "
      "server shutdown or crash?",
      "[W] [c10d] sendBytes failed on SocketImpl(fd=3): Broken pipe",
      "[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)",
      "wait timeout after 300000ms, keys: /default_pg/0//cpu//0/1",
      "F1123 02:19:50.862656 32697 client.h:80] Terminating process because the JAX distributed service detected fatal "
      "errors. This most likely indicates that another task died; see the other task logs for more details.",
      "ValueError: UNKNOWN: Gloo AllGather failed: [external/gloo/gloo/transport/tcp/pair.cc:538] Read error "
      "[127.0.0.1]:3978: Connection reset by peer",
      "- [loop.cc:101|02:21:17]: Encountered EOF. The other end is likely closed.",
      "- [socket.h:79|02:21:17]: Failed to send. system error:Broken pipe",
      "[n1][[21,1],0][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] peer: n2 error: Connection reset by peer (104)",
      "MPIDI_CH3U_Recvq_FDU_or_AEP(629): Communication error with rank 3",
      "UnavailableError: Collective ops is aborted by: failed to connect to all addresses",
      "torch.distributed.DistStoreError: Timed out after 4 seconds waiting for clients. 1/2 clients joined.",
      "NCCL WARN Socket closed by remote peer 10.0.0.1<3>",
      "n1:5:5 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.2.0.5<1> with error 12, "
      "opcode 0",
  };
  for (const std::string& text : losses) {
    EXPECT_TRUE(ReportsLostPeer(text)) << text;
    EXPECT_TRUE(LooksLikePeerLoss({.message = text})) << text;
    EXPECT_TRUE(LooksLikePeerLoss({.stderr_tail = {"before", text, "after"}})) << text;
  }
  const std::string causes[] = {
      "", "ValueError: boom", "the server is waiting for clients.", "websocket closed by remote peer",
      "InternalError: Collective ops is aborted by: Error invoking NCCL: unhandled cuda error",
      "ConnectionResetError: [Errno 104] Connection reset by peer",  // a data loader's download
      "BrokenPipeError: [Errno 32] Broken pipe", "requests.exceptions.ConnectionError: Connection refused",
      "RuntimeError: NCCL error: unhandled cuda error",
      "n1:5:5 [7] NCCL WARN NET/IB: Got completion from peer 10.2.0.5<1> with status=4 opcode=0 len=0",  // its own
                                                                                                         // memory
      "torch.cuda.OutOfMemoryError: CUDA out of memory", "using gloo\nConnection refused by the license server",
      "- [socket.h:348|02:21:19]: Socket error. Connection refused",  // XGBoost, before its next attempt
  };
  for (const std::string& text : causes) EXPECT_FALSE(LooksLikePeerLoss({.message = text})) << text;
}

// A program whose own error ends its collective operations often loses its peers in its teardown, and its libraries
// write warnings about that.
TEST(PeerLoss, TheLineThatExplainsTheEndDecides) {
  const std::string gloo = "RuntimeError: [pair.cc:534] gloo: Connection closed by peer [127.0.1.1]:21005";
  const std::string nccl = "NCCL WARN socketProgress: Connection closed by remote peer host<1>";
  struct Row {
    const char* what;
    WorkerFailure failure;
    bool lost_peer;
  };
  const Row rows[] = {
      {"an own error, then a library's warning",
       {.stderr_tail = {"KeyError: 'x'", nccl}, .stderr_reason = "KeyError: 'x'"},
       false},
      {"a lost peer, then warnings", {.stderr_tail = {gloo, "warning: x"}, .stderr_reason = gloo}, true},
      {"an own error in the error file",
       {.message = "Traceback (most recent call last):\n  File \"t.py\"\nKeyError: 'x'\n", .stderr_tail = {nccl}},
       false},
      {"a lost peer in the error file, under a name of a frame",
       {.message = "Traceback (most recent call last):\n  File \"t.py\"\n" + gloo},
       true},
      {"a library's error, whose cause stands below it",
       {.stderr_tail = {"torch.distributed.DistBackendError: NCCL error in: a.cpp:1, unhandled system error", nccl},
        .stderr_reason = "torch.distributed.DistBackendError: NCCL error in: a.cpp:1, unhandled system error"},
       true},
      {"a log line is not an error by itself",
       {.stderr_tail = {gloo, "ERROR: the training failed"}, .stderr_reason = "ERROR: the training failed"},
       true},
      {"a signal's name is not an error by itself",
       {.stderr_tail = {gloo, "Fatal Python error: Aborted"}, .stderr_reason = "Fatal Python error: Aborted"},
       true},
      {"no line explains the end", {.stderr_tail = {nccl, "step 3"}}, true},
      {"nothing was written", {}, false},
  };
  for (const Row& row : rows) EXPECT_EQ(LooksLikePeerLoss(row.failure), row.lost_peer) << row.what;
}

}  // namespace
}  // namespace muster
