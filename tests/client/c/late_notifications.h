// Calls in the background that notify an eventfd, which is closed as soon as they have ended.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "tests/client/c/c_objects.h"

namespace sap::test {

// Returns how many of `calls` calls wrote to the descriptor that was opened next, in place of
// theirs.
inline int LateNotifications(const Client& client, const sap_problem& problem, int calls) {
  const Answer answer;
  int late = 0;
  int next = -1;
  for (int i = 0; i < calls; ++i) {
    const int fd = next >= 0 ? next : eventfd(0, EFD_NONBLOCK);
    eventfd_t count = 0;
    if (eventfd_read(fd, &count) == 0) ++late;
    sap_call call{};
    call.struct_size = sizeof call;
    call.background = 1;
    call.done = sap_notify_eventfd;
    call.context = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
    EXPECT_EQ(sap_solve(client.get(), &problem, nullptr, &call, answer.get()), SAP_OK);
    EXPECT_EQ(sap_answer_await(answer.get(), nullptr), 1);
    close(fd);
    next = eventfd(0, EFD_NONBLOCK);
  }
  close(next);
  return late;
}

}  // namespace sap::test
