#include "solver/split/shared_islands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

namespace sap {
namespace {

// Three values in every array that a problem can have.
OwnedContactProblem EveryArray() {
  OwnedContactProblem problem;
  problem.time_step = 0.01;
  ForEachArray(
      [](std::string_view, const auto&, auto& array) {
        array.assign({1, 2, 3});
      },
      problem);
  return problem;
}

SharedIslands::Key KeyOf(const OwnedContactProblem& problem) {
  SharedIslands::Key key{.bytes = "of another island"};
  SharedIslands::MakeKey(problem, &key);
  return key;
}

SharedIslands::Key KeyOf(std::string bytes) { return {.bytes = std::move(bytes), .hash = 0}; }

template <typename Value>
void FlipLastBit(Value* value) {
  if constexpr (std::is_floating_point_v<Value>) {
    *value = std::bit_cast<double>(std::bit_cast<uint64_t>(*value) ^ 1);
  } else {
    *value ^= 1;
  }
}

bool IsName(std::string_view array) { return array == "tree_id" || array == "body_id"; }

TEST(SharedIslandsTest, ABitOfAnyArrayChangesTheKeyExceptOfNames) {
  const SharedIslands::Key key = KeyOf(EveryArray());
  int arrays = 0;
  const OwnedContactProblem names;
  ForEachArray(
      [&](std::string_view prefix, const auto& field, const auto&) {
        for (size_t place = 0; place < 3; ++place) {
          OwnedContactProblem changed = EveryArray();
          ForEachArray(
              [&](std::string_view prefix_of, const auto& field_of, auto& array) {
                if (prefix_of == prefix && field_of.name == field.name) FlipLastBit(&array[place]);
              },
              changed);
          const SharedIslands::Key other = KeyOf(changed);
          EXPECT_EQ(other.bytes == key.bytes, IsName(field.name))
              << prefix << field.name << "[" << place << "]";
          EXPECT_EQ(other.hash == key.hash, IsName(field.name));
        }
        ++arrays;
      },
      names);
  EXPECT_GT(arrays, 70);
}

TEST(SharedIslandsTest, AnArrayThatIsAbsentChangesTheKey) {
  std::set<std::string> keys{KeyOf(EveryArray()).bytes};
  size_t arrays = 1;
  const OwnedContactProblem names;
  ForEachArray(
      [&](std::string_view prefix, const auto& field, const auto&) {
        if (IsName(field.name)) return;
        OwnedContactProblem changed = EveryArray();
        ForEachArray(
            [&](std::string_view prefix_of, const auto& field_of, auto& array) {
              if (prefix_of == prefix && field_of.name == field.name) array.clear();
            },
            changed);
        keys.insert(KeyOf(changed).bytes);
        ++arrays;
      },
      names);
  EXPECT_EQ(keys.size(), arrays);
}

TEST(SharedIslandsTest, ABitOfTimeStepOrRegularizationChangesTheKey) {
  std::set<std::string> keys{KeyOf(EveryArray()).bytes};
  const auto insert = [&keys](const auto& change) {
    OwnedContactProblem changed = EveryArray();
    change(&changed);
    keys.insert(KeyOf(changed).bytes);
  };
  insert([](OwnedContactProblem* problem) { FlipLastBit(&problem->time_step); });
  insert(
      [](OwnedContactProblem* problem) { problem->regularization.rule = DelassusRule::kDiagonal; });
  size_t changes = 3;
  Regularization defaults;
  Regularization::ForEach(
      [&](std::string_view name, bool, const double&) {
        insert([name](OwnedContactProblem* problem) {
          Regularization::ForEach(
              [name](std::string_view number_name, bool, double& number) {
                if (number_name == name) FlipLastBit(&number);
              },
              problem->regularization);
        });
        ++changes;
      },
      defaults);
  EXPECT_EQ(keys.size(), changes);
}

ContactSolution AnswerOf(double cost) {
  ContactSolution answer;
  answer.cost = cost;
  return answer;
}

// The hash of all these keys is 0, so that only their bytes tell them apart.
TEST(SharedIslandsTest, TheFirstAnswerOfAKeyStays) {
  SharedIslands islands;
  EXPECT_EQ(islands.Find(KeyOf("a")), nullptr);
  islands.Add(KeyOf("a"), AnswerOf(1));
  const ContactSolution* const first = islands.Find(KeyOf("a"));
  ASSERT_NE(first, nullptr);
  islands.Add(KeyOf("a"), AnswerOf(2));
  for (int i = 0; i < 1000; ++i) islands.Add(KeyOf(std::to_string(i)), AnswerOf(3));
  EXPECT_EQ(islands.Find(KeyOf("a")), first);
  EXPECT_EQ(first->cost, 1);
  EXPECT_EQ(islands.Find(KeyOf("b")), nullptr);
}

TEST(SharedIslandsTest, KeysAndAnswersTakeNoMoreThanTheBytesOfTheBatch) {
  constexpr int64_t kBytes = 100'000;
  SharedIslands islands(kBytes);
  EXPECT_FALSE(islands.HasRoom(kBytes + 1));
  for (char i = 0; i < 100; ++i) {
    ContactSolution answer;
    answer.velocity.resize(100);
    islands.Add(KeyOf(std::string(5000, i)), answer);
    EXPECT_LE(islands.bytes(), kBytes);
  }
  EXPECT_GT(islands.bytes(), kBytes / 2);
  EXPECT_NE(islands.Find(KeyOf(std::string(5000, '\0'))), nullptr);
  EXPECT_EQ(islands.Find(KeyOf(std::string(5000, 'c'))), nullptr);
}

TEST(SharedIslandsTest, ManyProblemsInARowWithoutAnIslandInCommonEndTheLooking) {
  SharedIslands islands;
  const auto end = [&islands](int problems, bool found_any) {
    for (int i = 0; i < problems; ++i) islands.ProblemEnded(found_any);
  };
  end(SharedIslands::kMostVainLooks - 1, false);
  EXPECT_TRUE(islands.IsOpen());
  end(1, true);
  end(SharedIslands::kMostVainLooks - 1, false);
  EXPECT_TRUE(islands.IsOpen());
  end(1, false);
  EXPECT_FALSE(islands.IsOpen());
}

TEST(SharedIslandsTest, ThreadsFindAnswersThatOthersAdd) {
  SharedIslands islands;
  const auto work = [&islands] {
    for (int i = 0; i < 2000; ++i) {
      const SharedIslands::Key key = KeyOf(std::to_string(i % 300));
      const ContactSolution* const answer = islands.Find(key);
      if (answer == nullptr) {
        islands.Add(key, AnswerOf(i % 300));
      } else {
        EXPECT_EQ(answer->cost, i % 300);
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace sap
