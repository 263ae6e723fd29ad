// Which message goes first, over a link that sends one after the other.
#include "weft/comm/message_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "weft/comm/schedules/schedules.h"
#include "weft/comm/tags.h"

namespace weft::comm {
namespace {

/// One of two ranks. What is to be received is there at once; of what is sent one message gets through at a time, once
/// the link is open.
class OneByOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  const std::vector<Member>& members() const override { return members_; }
  Ticket send(int, int tag, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    under_way_ += static_cast<int64_t>(bytes.size());
    most_under_way_ = std::max(most_under_way_, under_way_);
    messages_.push_back({tag, static_cast<int64_t>(bytes.size()), false});
    waiting_.push_back(messages_.size() - 1);
    return {static_cast<int64_t>(messages_.size()) - 1};
  }
  Ticket receive(int, int, std::span<std::byte>) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back({-1, 0, true});
    ++receives_;
    return {static_cast<int64_t>(messages_.size()) - 1};
  }
  int64_t progress() override {
    const std::lock_guard lock(mutex_);
    ++looks_;
    if (!is_open_ || waiting_.empty()) return through();
    Message& message = messages_[waiting_.front()];
    waiting_.erase(waiting_.begin());
    message.is_through = true;
    under_way_ -= message.bytes;
    sent_.push_back(message.tag - kFirstCollectiveTag);
    return through();
  }
  bool is_done(Ticket ticket) override {
    const std::lock_guard lock(mutex_);
    ++asked_;
    return messages_[static_cast<size_t>(ticket.id)].is_through;
  }
  std::shared_ptr<SharedMemory> share(int64_t, const std::vector<int>&) override { return nullptr; }
  double seconds_silent(int) const override { return 0; }
  void give_up() override {}

  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
  }
  std::vector<int> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  int64_t asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  int64_t looks() const {
    const std::lock_guard lock(mutex_);
    return looks_;
  }
  int64_t most_under_way() const { return most_under_way_; }
  int receives() const {
    const std::lock_guard lock(mutex_);
    return receives_;
  }

 private:
  int64_t through() const { return receives_ + static_cast<int64_t>(sent_.size()); }

  struct Message {
    int tag;
    int64_t bytes;
    bool is_through;
  };
  std::vector<Member> members_{{"a", 0, 0, 1}, {"b", 1, 0, 2}};
  mutable std::mutex mutex_;
  std::vector<Message> messages_;
  std::vector<size_t> waiting_;
  std::vector<int> sent_;
  int64_t under_way_ = 0, most_under_way_ = 0;
  int64_t asked_ = 0, looks_ = 0;
  int receives_ = 0;
  bool is_open_ = false;
};

constexpr int64_t kElements = 4096;  // in four chunks each way: the tags 0 to 3 and 4 to 7

struct Jobs {
  OneByOne link;
  std::atomic<int> delivered = 0;
  std::vector<std::vector<float>> buffers;
  std::vector<std::unique_ptr<MessageThread::Job>> jobs;

  MessageThread::Job& add(int64_t priority, int first_tag) {
    buffers.emplace_back(kElements);
    jobs.push_back(std::make_unique<MessageThread::Job>());
    MessageThread::Job& job = *jobs.back();
    job.runner = std::make_unique<ScheduleRunner>(link, make_schedule(Algorithm::ring, 0, 2, kElements, kElements / 8),
                                                  std::vector<int>{0, 1}, DType::f32, first_tag);
    job.buffer = buffers.back().data();
    job.priority = priority;
    job.deliver = [this] { ++delivered; };
    return job;
  }
  /// In the order in which their messages got through.
  std::vector<int> run(int64_t most_bytes, const std::vector<MessageThread::Job*>& order) {
    MessageThread thread(link, most_bytes, [] {});
    thread.reserve(order.size());
    for (MessageThread::Job* const job : order) {
      const int before = link.receives();
      thread.submit(*job);
      thread.wake();
      while (link.receives() < before + 4) std::this_thread::yield();  // it has begun
    }
    link.open();
    while (delivered < static_cast<int>(order.size())) thread.help();
    return link.sent();
  }
};

constexpr int64_t kMessage = kElements / 8 * 4;

TEST(MessageThread, WhatIsMoreUrgentOvertakesWhatWasNotHandedOver) {
  Jobs jobs;
  MessageThread::Job &patient = jobs.add(2, 0), &urgent = jobs.add(1, 100);
  const std::vector<int> sent = jobs.run(kMessage, {&patient, &urgent});
  ASSERT_EQ(sent.size(), 16u);
  EXPECT_EQ(sent[0], 0) << "what is on its way stays so";
  for (size_t at = 1; at <= 8; ++at) EXPECT_GE(sent[at], 100) << at;
  for (size_t at = 9; at < 16; ++at) EXPECT_LT(sent[at], 100) << at;
}

TEST(MessageThread, AmongEqualsTheFirstGoesFirst) {
  Jobs jobs;
  MessageThread::Job &first = jobs.add(0, 0), &second = jobs.add(0, 100);
  const std::vector<int> sent = jobs.run(kMessage, {&first, &second});
  for (size_t at = 0; at < 8; ++at) EXPECT_LT(sent[at], 100) << at;
}

TEST(MessageThread, AsksEachMessageOnlyWhenOneHasGotThrough) {
  Jobs jobs;
  MessageThread thread(jobs.link, 3 * kMessage, [] {});
  thread.reserve(1);
  thread.submit(jobs.add(0, 0));
  thread.wake();
  while (jobs.link.receives() < 4) thread.help();
  // Either thread may look. Where another look begins, those before it are over.
  const auto look = [&](int64_t times) {
    for (const int64_t last = jobs.link.looks() + times; jobs.link.looks() < last;) thread.help();
  };
  look(3);  // the receives have got through at once
  const int64_t before = jobs.link.asked();
  look(1000);
  EXPECT_EQ(jobs.link.asked(), before) << "nothing gets through a closed link";
  jobs.link.open();
  while (jobs.delivered < 1) thread.help();
  EXPECT_GT(jobs.link.asked(), before);
}

TEST(MessageThread, HandsOverNoMoreThanKeepsTheLinkBusy) {
  Jobs jobs;
  jobs.run(3 * kMessage, {&jobs.add(0, 0)});
  EXPECT_EQ(jobs.link.most_under_way(), 3 * kMessage);
}

TEST(MessageThread, WhatHasNoLimitIsNotHeldUp) {
  Jobs jobs;
  MessageThread::Job &limited = jobs.add(0, 0), &free = jobs.add(1, 100);
  free.is_limited = false;
  MessageThread thread(jobs.link, kMessage, [] {});
  thread.reserve(2);
  thread.submit(limited);
  thread.submit(free);
  while (jobs.link.most_under_way() < 5 * kMessage) thread.help();  // while the link is closed
  jobs.link.open();
  while (jobs.delivered < 2) thread.help();
  EXPECT_EQ(jobs.link.sent()[0], 0);
}

TEST(MessageThread, HandsOverALargeMessageInParts) {
  Jobs jobs;
  constexpr int64_t kMany = 5 * kLargestMessageBytes / 4;  // f32: twice two and a half messages
  Schedule large{.elements = kMany, .slots = 2, .actions = {}};
  add_action(large, ActionKind::send, /*peer=*/1, /*slot=*/0, 0, kMany / 2);
  add_action(large, ActionKind::send, /*peer=*/1, /*slot=*/1, kMany / 2, kMany);
  std::vector<float> buffer(kMany);
  MessageThread::Job& job = jobs.add(0, 0);
  job.runner = std::make_unique<ScheduleRunner>(jobs.link, large, std::vector<int>{0, 1}, DType::f32, 0);
  job.buffer = buffer.data();
  MessageThread thread(jobs.link, /*most_bytes=*/1, [] {});
  thread.reserve(1);
  thread.submit(job);
  jobs.link.open();
  while (jobs.delivered < 1) thread.help();
  EXPECT_EQ(jobs.link.sent(), (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(jobs.link.most_under_way(), kLargestMessageBytes) << "signs of life go behind what is under way";
}

}  // namespace
}  // namespace weft::comm
