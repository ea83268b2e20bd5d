// What a message may allocate is bounded by its bytes before it is parsed: every field of every
// request that can multiply memory has a bound, and what clients send is within all of them.
#include "proto/codec/message_bounds.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sap/v1/admin_service.pb.h"
#include "sap/v1/solver_service.pb.h"
#include "sap/v1/world_service.pb.h"

namespace sap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using testing::HasSubstr;

// Small, so that requests beyond them are short.
EngineLimits Limits() {
  EngineLimits limits;
  limits.max_batch_problems = 20;
  limits.max_derivatives = 10;
  limits.problem = {.max_trees = 3,
                    .max_tree_dofs = 7,
                    .max_contacts = 5,
                    .max_rows = 11,
                    .max_row_entries = 13,
                    .max_row_pairs = 4};
  return limits;
}

EngineStatus Check(const Descriptor* type, const std::string& bytes, int block = -1) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()),
                                                block);
  return MessageBounds(type, Limits()).Check(&stream);
}

std::string Repeat(const std::string& bytes, int64_t times) {
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += bytes;
  return all;
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// A field of bytes, in whatever number.
std::string Field(int number, const std::string& content = "") {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(content.size()) + content;
}

// A field that can be reached from a request: each but the last is a message in the one before.
using Path = std::vector<const FieldDescriptor*>;

void Collect(const Descriptor* type, const Path& before, std::vector<Path>* paths) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    Path path = before;
    path.push_back(field);
    paths->push_back(path);
    if (field->message_type() != nullptr) Collect(field->message_type(), path, paths);
  }
}

std::vector<const Descriptor*> Requests() {
  std::vector<const Descriptor*> requests;
  for (const auto* file :
       {v1::SolveRequest::descriptor()->file(), v1::AdvanceRequest::descriptor()->file(),
        v1::DrainRequest::descriptor()->file()}) {
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      requests.push_back(service->method(i)->input_type());
    }
  }
  return requests;
}

bool Multiplies(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ||
         (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && field.is_repeated());
}

// Arrays of worlds take as much in memory as on the wire, and their lengths are checked once the
// model is known.
bool IsArray(const FieldDescriptor& field) {
  const bool is_of_worlds = field.full_name() == "sap.v1.AdvanceRequest.states" ||
                            field.full_name() == "sap.v1.AdvanceRequest.controls";
  return field.is_packable() && !is_of_worlds;
}

// A value of an array on the wire: zero.
std::string ZeroOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
      return std::string(8, '\0');
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return std::string(4, '\0');
    default:
      EXPECT_EQ(field.type(), FieldDescriptor::TYPE_ENUM) << field.full_name();
      return std::string(1, '\0');
  }
}

// The field alone in a request.
std::string Wrap(const Path& path, std::string bytes) {
  for (size_t i = path.size() - 1; i > 0; --i) bytes = Field(path[i - 1]->number(), bytes);
  return bytes;
}

TEST(MessageBoundsTest, EveryFieldThatMultipliesMemoryHasABound) {
  std::set<std::string> seen;
  for (const Descriptor* request : Requests()) {
    std::vector<Path> paths;
    Collect(request, {}, &paths);
    for (const Path& path : paths) {
      const FieldDescriptor& field = *path.back();
      if (!Multiplies(field)) continue;
      ASSERT_TRUE(MessageBounds::MostElements(field, Limits()).has_value())
          << field.full_name() << " has no bound: add it to MessageBounds::MostElements";
      const int64_t most = *MessageBounds::MostElements(field, Limits());
      seen.insert(field.full_name());
      for (const int64_t more : {0, 1}) {
        const std::string bytes = Wrap(path, Repeat(Field(field.number()), most + more));
        const EngineStatus checked = Check(request, bytes);
        ASSERT_EQ(checked.has_value(), more == 0) << request->name() << " " << field.full_name();
        if (checked) continue;
        EXPECT_EQ(checked.error().code, EngineErrorCode::kInvalidArgument);
        EXPECT_THAT(checked.error().field, testing::EndsWith(field.name()));
      }
    }
  }
  EXPECT_THAT(seen,
              testing::IsSupersetOf(
                  {"sap.v1.SolveBatchRequest.problems", "sap.v1.StreamBatchRequest.problems",
                   "sap.v1.DifferentiateBatchRequest.requests",
                   "sap.v1.DifferentiateRequest.cotangents", "sap.v1.DifferentiateRequest.tangents",
                   "google.protobuf.FieldMask.paths", "sap.v1.PutModelRequest.files"}));
}

// In one piece, in two, and value by value.
TEST(MessageBoundsTest, EveryArrayHasAsManyValuesAsAnyProblemWithinTheLimits) {
  std::map<std::string, int64_t> bounds;
  for (const Descriptor* request : Requests()) {
    std::vector<Path> paths;
    Collect(request, {}, &paths);
    for (const Path& path : paths) {
      const FieldDescriptor& field = *path.back();
      if (!IsArray(field)) continue;
      const auto most = MessageBounds::MostElements(field, Limits());
      ASSERT_TRUE(most.has_value()) << field.full_name() << " has no bound";
      bounds[field.full_name()] = *most;
      const std::string zero = ZeroOf(field);
      const auto packed = [&](int64_t values) {
        return Field(field.number(), Repeat(zero, values));
      };
      const uint64_t wire = zero.size() == 8 ? 1 : (zero.size() == 4 ? 5 : 0);
      const std::string single = Varint(static_cast<uint64_t>(field.number()) << 3 | wire) + zero;
      for (const std::string& full : {packed(*most), packed(*most / 2) + packed((*most + 1) / 2)}) {
        EXPECT_TRUE(Check(request, Wrap(path, full)).has_value()) << field.full_name();
        for (const std::string& more : {packed(1), single}) {
          const EngineStatus checked = Check(request, Wrap(path, full + more));
          ASSERT_FALSE(checked.has_value()) << field.full_name();
          EXPECT_THAT(checked.error().field, testing::EndsWith(field.name()));
          EXPECT_THAT(checked.error().message,
                      HasSubstr("at most " + std::to_string(*most) + " are accepted"));
        }
      }
    }
  }
  EXPECT_EQ(bounds.at("sap.v1.Contacts.law"), 5);
  EXPECT_EQ(bounds.at("sap.v1.BodyContacts.normal"), 15);
  EXPECT_EQ(bounds.at("sap.v1.RigidBodies.inertia"), 18);
  EXPECT_EQ(bounds.at("sap.v1.Trees.dynamics_matrix"), 3 * 7 * 7);
  EXPECT_EQ(bounds.at("sap.v1.ConstraintRows.coefficient"), 13);
  // Two trees of each contact, and one more for each pair.
  EXPECT_EQ(bounds.at("sap.v1.Contacts.jacobian"), 3 * 7 * (2 * 5 + 4));
}

// A byte of an enum is eight in memory, so those of all problems together have a bound as well.
TEST(MessageBoundsTest, EnumsOfManyProblemsAreBoundedTogether) {
  EngineLimits limits;
  const std::string laws = Field(4, Field(19, std::string(1 << 20, '\1')));
  const auto check = [&](int problems) {
    const std::string bytes = Repeat(Field(1, laws), problems);
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    return MessageBounds(v1::SolveBatchRequest::descriptor(), limits).Check(&stream);
  };
  EXPECT_TRUE(check(7).has_value());
  const EngineStatus checked = check(8);
  ASSERT_FALSE(checked.has_value());
  EXPECT_THAT(checked.error().message, HasSubstr("problems[7].contacts.law and other messages"));
}

TEST(MessageBoundsTest, AnErrorNamesTheElementThatIsAtFault) {
  const std::string request = Repeat(Field(4), 11);
  const EngineStatus checked =
      Check(v1::DifferentiateBatchRequest::descriptor(), Field(1) + Field(1, request));
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().field, "requests[1].cotangents");
  EXPECT_EQ(checked.error().message,
            "requests[1].cotangents has more than 10 values; at most 10 are accepted");
}

// Where each message is within its bounds, all of them together still are.
TEST(MessageBoundsTest, MessagesOfManyMessagesAreBoundedTogether) {
  EngineLimits limits;
  const auto check = [&](int requests, int tangents) {
    const std::string tangent = Field(5, Field(2) + Field(4));
    const std::string bytes = Repeat(Field(1, Repeat(tangent, tangents)), requests);
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    return MessageBounds(v1::DifferentiateBatchRequest::descriptor(), limits).Check(&stream);
  };
  EXPECT_TRUE(check(limits.max_batch_problems, 4).has_value());
  const EngineStatus checked = check(limits.max_batch_problems, limits.max_derivatives);
  ASSERT_FALSE(checked.has_value());
  EXPECT_THAT(checked.error().message, HasSubstr("more than 64 MiB"));
}

TEST(MessageBoundsTest, SomeUnknownFieldsAreReadOverAndManyAreRefused) {
  // Fields of all wire types, and a known number with a type that is not its own.
  const std::string few = Field(31) + Varint(30 << 3) + Varint(7) + Varint(29 << 3 | 1) +
                          std::string(8, 'x') + Varint(28 << 3 | 5) + "1234" + Varint(1 << 3) +
                          Varint(3);
  EXPECT_TRUE(Check(v1::SolveRequest::descriptor(), few).has_value());
  EXPECT_TRUE(Check(v1::SolveRequest::descriptor(), Repeat(few, 200)).has_value());
  EXPECT_FALSE(Check(v1::SolveRequest::descriptor(), Repeat(few, 201)).has_value());
  // Wherever they stand.
  const std::string problem = Field(1, Repeat(Field(100), 600));
  EXPECT_TRUE(Check(v1::SolveBatchRequest::descriptor(), problem).has_value());
  EXPECT_FALSE(Check(v1::SolveBatchRequest::descriptor(), problem + problem).has_value());
}

TEST(MessageBoundsTest, BytesThatAreNoMessageAreRefused) {
  const std::string group = Varint(31 << 3 | 3) + Varint(31 << 3 | 4);
  const std::string longer_than_its_part = Field(1, Varint(2 << 3 | 2) + Varint(5) + "123");
  for (const std::string& bytes :
       {std::string("\xff"), std::string("\xff\xff\xff"), std::string("\x02"), group,
        Field(1, group), Field(1).substr(0, 1), Field(1, "ab").substr(0, 3), longer_than_its_part,
        Varint(1 << 3 | 2) + Varint(0xffffffffU), Varint(1 << 3 | 2) + Varint(1ULL << 40)}) {
    const EngineStatus checked = Check(v1::SolveRequest::descriptor(), bytes);
    ASSERT_FALSE(checked.has_value()) << testing::PrintToString(bytes);
    EXPECT_EQ(checked.error().message, NotAMessage().message);
  }
}

// In one piece or in many, as they arrive.
TEST(MessageBoundsTest, RequestsOfClientsAreWithinTheBounds) {
  v1::DifferentiateBatchRequest request;
  request.mutable_time_budget()->set_seconds(1);
  for (int i = 0; i < 20; ++i) {
    v1::DifferentiateRequest* problem = request.add_requests();
    v1::ContactProblem* contacts = problem->mutable_problem();
    contacts->mutable_regularization()->set_beta(1);
    for (int j = 0; j < 3; ++j) {
      contacts->mutable_trees()->add_dofs(6);
      contacts->mutable_trees()->add_dynamics_matrix(j);
      contacts->mutable_contacts()->add_law(v1::CONTACT_LAW_UNSPECIFIED);
      contacts->mutable_rows()->add_entries(j);
    }
    problem->mutable_options()->mutable_response_mask()->add_paths("velocity");
    problem->add_velocity(1);
    for (int j = 0; j < 5; ++j) problem->add_cotangents()->add_velocity(1);
    for (int j = 0; j < 5; ++j) *problem->add_tangents() = *contacts;
    for (int j = 0; j < 256; ++j) problem->mutable_wanted()->add_paths("contacts.friction");
  }
  for (const int block : {-1, 1, 7}) {
    const EngineStatus checked = Check(request.descriptor(), request.SerializeAsString(), block);
    EXPECT_TRUE(checked.has_value()) << checked.error().message;
  }
}

}  // namespace
}  // namespace sap
