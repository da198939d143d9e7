// SPDX-License-Identifier: Apache-2.0
#include "agent/live/top_session.h"

#include <boost/asio/steady_timer.hpp>
#include <optional>

#include "agent/installation.h"
#include "agent/live/terminal_session.h"
#include "agent/live/top_files.h"
#include "agent/live/top_frame.h"
#include "agent/live/top_tool.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr Duration kTick = std::chrono::seconds(1);  // the ages on the screen grow, and so does the log
constexpr Duration kStacksLimit = std::chrono::seconds(10);
constexpr size_t kMostStacks = 1 << 20;  // bytes
constexpr size_t kLogLines = 50;         // of each file

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : Split(text, '\n')) {
    if (lines.size() < kMostPageLines) lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

class TopSession::Impl {
 public:
  Impl(boost::asio::io_context& loop, TopFacts facts, std::string job_folder, std::function<void(int)> quit)
      : loop_(loop),
        job_folder_(std::move(job_folder)),
        quit_(std::move(quit)),
        screen_(ScreenOptionsFor(Environment::OfProcess())),
        tick_(loop),
        escape_(loop) {
    state_.facts = std::move(facts);
    state_.facts.trouble = fmt::format("waiting for {}", state_.facts.target.Text());
  }

  Status Begin() {
    TerminalSession::Events events;
    events.typed = [this](std::string_view bytes) { Type(keys_.Add(bytes)); };
    events.written = [this] { Written(); };
    events.lost_picture = [this] {
      screen_.Forget();
      Draw();
    };
    events.ends = [this](int signal) { Quit(128 + signal); };
    MUSTER_ASSIGN_OR_RETURN(terminal_, TerminalSession::Begin(loop_, std::move(events)));
    Draw();
    Tick();
    return absl::OkStatus();
  }

  void Show(LiveView view) {
    newest_ = std::make_shared<LiveView>(std::move(view));
    came_ = MonotonicClock::now();
    state_.facts.trouble.clear();
    TakeNewest();
    Draw();
  }

  void Say(const std::string& trouble) {
    state_.facts.trouble = trouble;
    Draw();
  }

  void SetPods(std::map<std::string, std::string> pods) { state_.facts.pods = std::move(pods); }
  const std::shared_ptr<const LiveView>& view() const { return newest_; }

 private:
  void TakeNewest() {
    if (state_.paused || !newest_) return;
    shown_ = newest_;
    state_.facts.came = came_;
  }

  void Tick() {
    tick_.expires_after(kTick);
    tick_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      if (state_.page == TopPage::kDetails && !state_.paused) ReadLog();
      Draw();
      Tick();
    });
  }

  void Draw() {
    if (terminal_ == nullptr || terminal_->away()) return;
    dirty_ = writing_;
    if (writing_) return;  // a slow terminal gets the newest picture next
    const TimePoint now = state_.paused ? state_.facts.came : MonotonicClock::now();
    const Size size = terminal_->size();
    state_ = Settled(std::move(state_), *shown_, size, now);
    std::string bytes = screen_.Draw(agent::Draw(*shown_, state_, size, now));
    if (bytes.empty()) return;
    writing_ = true;
    terminal_->Write(std::move(bytes));
  }

  void Written() {
    writing_ = false;
    if (dirty_) Draw();
  }

  void Type(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
      TopStep step = Apply(std::move(state_), key, *shown_, terminal_->size(), MonotonicClock::now());
      state_ = std::move(step.state);
      Obey(step.wish);
    }
    TakeNewest();
    Draw();
    escape_.cancel();
    if (!keys_.waits()) return;
    escape_.expires_after(KeyReader::kEscapePause);
    escape_.async_wait([this](boost::system::error_code error) {
      if (!error) Type(keys_.Flush());
    });
  }

  void Obey(TopWish wish) {
    switch (wish) {
      case TopWish::kNothing:
        return;
      case TopWish::kQuit:
        return Quit(0);
      case TopWish::kSuspend:
        return terminal_->Suspend();
      case TopWish::kRedraw:
        return screen_.Forget();
      case TopWish::kReadLog:
        return ReadLog();
      case TopWish::kReadStacks:
        return ReadStacks();
    }
  }

  void Quit(int code) {
    if (auto quit = std::exchange(quit_, nullptr)) quit(code);
  }

  void ReadLog() {
    const std::vector<TopRow> rows = RowsOf(*shown_, state_.choice);
    const TopRow* row = SelectedRow(rows, state_);
    state_.text_title.clear();
    state_.text.clear();
    if (row == nullptr) return;
    for (const std::string& path : LogFilesOf(*row, job_folder_)) {
      const std::vector<std::string> lines = LastLinesOf(path, kLogLines);
      if (lines.empty()) continue;
      if (state_.text_title.empty()) {
        state_.text_title = path;
      } else {
        state_.text.insert(state_.text.end(), {"", path});
      }
      state_.text.insert(state_.text.end(), lines.begin(), lines.end());
    }
  }

  void ReadStacks() {
    const std::vector<TopRow> rows = RowsOf(*shown_, state_.choice);
    const TopRow* row = SelectedRow(rows, state_);
    const pid_t process = row == nullptr ? 0 : LocalProcessOf(*row);
    if (process == 0) return;
    auto said = std::make_shared<std::string>();
    const std::string title = fmt::format("muster stacks {}", process);
    TopTool::Events events;
    events.out = [said](std::string_view piece) { *said += piece.substr(0, kMostStacks - said->size()); };
    events.ended = [this, said, title](int code, const std::string& complaints) {
      if (state_.page != TopPage::kStacks || state_.text_title != title) return;
      state_.text = LinesOf(*said);
      if (code != 0) state_.text.push_back(fmt::format("it ended with {} {}", code, complaints));
      Draw();
    };
    state_.text_title = title;
    tool_.reset();
    auto tool =
        TopTool::Start(loop_, {OwnPath(), "stacks", fmt::format("{}", process)}, kStacksLimit, std::move(events));
    if (tool.ok()) tool_ = *std::move(tool);
    state_.text = {tool.ok() ? std::string("...") : std::string(Message(tool.status()))};
  }

  boost::asio::io_context& loop_;
  const std::string job_folder_;
  std::function<void(int)> quit_;
  Screen screen_;
  KeyReader keys_;
  TopState state_;
  std::shared_ptr<const LiveView> newest_;
  TimePoint came_{};
  // The newest, or that of the moment of the pause.
  std::shared_ptr<const LiveView> shown_ = std::make_shared<LiveView>();
  boost::asio::steady_timer tick_, escape_;
  bool writing_ = false;
  bool dirty_ = false;
  std::unique_ptr<TopTool> tool_;  // the stacks that are being read
  std::unique_ptr<TerminalSession> terminal_;
};

StatusOr<std::unique_ptr<TopSession>> TopSession::Begin(boost::asio::io_context& loop, TopFacts facts,
                                                        std::string job_folder, std::function<void(int)> quit) {
  auto impl = std::make_unique<Impl>(loop, std::move(facts), std::move(job_folder), std::move(quit));
  MUSTER_RETURN_IF_ERROR(impl->Begin());
  return std::unique_ptr<TopSession>(new TopSession(std::move(impl)));
}

TopSession::TopSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TopSession::~TopSession() = default;

void TopSession::Show(LiveView view) { impl_->Show(std::move(view)); }
void TopSession::Say(const std::string& trouble) { impl_->Say(trouble); }
void TopSession::SetPods(std::map<std::string, std::string> pods) { impl_->SetPods(std::move(pods)); }
std::shared_ptr<const LiveView> TopSession::view() const { return impl_->view(); }

}  // namespace muster::agent
