// SPDX-License-Identifier: Apache-2.0
#include "local/container/probe_run.h"

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <optional>

namespace muster::local {

namespace asio = boost::asio;

class ProbeRun::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(ProbeContext context, const ContainerProgram& program, Found found)
      : context_(std::move(context)),
        found_(std::move(found)),
        begun_(MonotonicClock::now()),
        probes_{One(ProbeKind::kStartup, program.startup, context_.loop),
                One(ProbeKind::kLiveness, program.liveness, context_.loop),
                One(ProbeKind::kReadiness, program.readiness, context_.loop)} {}

  void Begin() {
    if (probes_[0].probe) return AskAt(&probes_[0], FirstQuestion(*probes_[0].probe, begun_, begun_));
    BeginOthers();
  }

  void End() {
    found_ = nullptr;
    for (One& one : probes_) {
      one.timer.cancel();
      one.question.reset();
    }
  }

 private:
  struct One {
    One(ProbeKind which, const std::optional<Probe>& how, asio::io_context& loop)
        : kind(which), probe(how), timer(loop) {}
    const ProbeKind kind;
    const std::optional<Probe>& probe;
    ProbeState state;
    ProbeStep::Verdict verdict = ProbeStep::Verdict::kNone;
    bool is_unknown = false;  // kUnknown has been reported
    asio::steady_timer timer;
    std::shared_ptr<void> question;  // the probe that is under way
  };

  void BeginOthers() {
    const TimePoint now = MonotonicClock::now();
    for (One& one : probes_) {
      if (one.kind != ProbeKind::kStartup && one.probe) AskAt(&one, FirstQuestion(*one.probe, begun_, now));
    }
  }

  void AskAt(One* one, TimePoint when) {
    one->timer.expires_at(when);
    one->timer.async_wait([weak = weak_from_this(), one](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!error && self && self->found_) self->Ask(one);
    });
  }

  void Ask(One* one) {
    const TimePoint asked = MonotonicClock::now();
    one->question =
        AskContainer(context_, *one->probe, [weak = weak_from_this(), one, asked](const ProbeAnswer& answer) {
          auto self = weak.lock();
          if (self && self->found_) self->Count(one, answer, asked);
        });
  }

  void Count(One* one, const ProbeAnswer& answer, TimePoint asked) {
    one->question.reset();
    const ProbeStep step = CountAnswer(*one->probe, one->kind, answer.kind, asked, MonotonicClock::now(), &one->state);
    if (step.next) AskAt(one, *step.next);
    const bool unknown = answer.kind == ProbeAnswer::Kind::kUnknown;
    if (unknown ? one->is_unknown : step.verdict == ProbeStep::Verdict::kNone || step.verdict == one->verdict) return;
    if (unknown) one->is_unknown = true;
    if (!unknown) one->verdict = step.verdict;
    if (one->kind == ProbeKind::kStartup && step.verdict == ProbeStep::Verdict::kSuccess) BeginOthers();
    const Found found = found_;  // it may destroy this object
    found(one->kind, answer);
  }

  const ProbeContext context_;
  Found found_;
  const TimePoint begun_;
  std::array<One, 3> probes_;
};

ProbeRun::ProbeRun(ProbeContext context, const ContainerProgram& program, Found found)
    : impl_(std::make_shared<Impl>(std::move(context), program, std::move(found))) {
  impl_->Begin();
}
ProbeRun::~ProbeRun() { impl_->End(); }

}  // namespace muster::local
