// The schema keeps its style and its promises, and the two checks see what breaks them.

#include <gmock/gmock.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/proto/schema_changes.h"
#include "tests/proto/schema_rules.h"

namespace sap {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FileDescriptorSet ReadSchema(const char* path) {
  FileDescriptorSet schema;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file && schema.ParseFromIstream(&file)) << path;
  return schema;
}

// A small schema in words, as tests/proto's own examples have it.
FileDescriptorProto Parse(const std::string& text) {
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  google::protobuf::io::Tokenizer tokenizer(&input, nullptr);
  google::protobuf::compiler::Parser parser;
  FileDescriptorProto file;
  EXPECT_TRUE(parser.Parse(&tokenizer, &file)) << text;
  file.set_name("sap/v1/example.proto");
  return file;
}

std::vector<std::string> RulesBrokenBy(const std::string& text) {
  DescriptorPool pool;
  const auto* file = pool.BuildFile(Parse("syntax = \"proto3\"; package sap.v1;\n" + text));
  if (file == nullptr) return {"does not build"};
  return BrokenSchemaRules(*file);
}

std::vector<std::string> Changes(const std::string& before, const std::string& now) {
  FileDescriptorSet old_schema;
  FileDescriptorSet new_schema;
  *old_schema.add_file() = Parse("syntax = \"proto3\"; package sap.v1; " + before);
  *new_schema.add_file() = Parse("syntax = \"proto3\"; package sap.v1; " + now);
  return BreakingSchemaChanges(old_schema, new_schema);
}

TEST(SchemaTest, KeepsItsStyle) {
  const FileDescriptorSet schema = ReadSchema(SAP_COMPILED_SCHEMA);
  DescriptorPool pool;
  int files = 0;
  for (const auto& proto : schema.file()) {
    const auto* file = pool.BuildFile(proto);
    ASSERT_NE(file, nullptr) << proto.name();
    if (!proto.name().starts_with("sap/")) continue;
    ++files;
    EXPECT_THAT(BrokenSchemaRules(*file), IsEmpty());
  }
  EXPECT_GE(files, 3);
}

TEST(SchemaTest, TakesNothingAwayFromClients) {
  const FileDescriptorSet stored = ReadSchema(SAP_STORED_SCHEMA);
  EXPECT_GE(stored.file_size(), 3);
  EXPECT_THAT(BreakingSchemaChanges(stored, ReadSchema(SAP_COMPILED_SCHEMA)), IsEmpty())
      << "The schema changes by addition only.";
}

// Names of the fields that hold doubles.
std::vector<std::string> Doubles(const google::protobuf::Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) {
    const auto* field = message.field(i);
    if (field->type() == google::protobuf::FieldDescriptor::TYPE_DOUBLE) {
      names.push_back(field->name());
    }
  }
  return names;
}

// A client fills a cotangent as it reads a solution, and a tangent is dotted with a cotangent.
TEST(SchemaTest, DerivativesHaveTheNumbersOfASolution) {
  const FileDescriptorSet schema = ReadSchema(SAP_COMPILED_SCHEMA);
  DescriptorPool pool;
  for (const auto& proto : schema.file()) ASSERT_NE(pool.BuildFile(proto), nullptr);
  const auto* cotangent = pool.FindMessageTypeByName("sap.v1.Cotangent");
  const auto* tangent = pool.FindMessageTypeByName("sap.v1.Tangent");
  const auto* solution = pool.FindMessageTypeByName("sap.v1.ContactSolution");
  ASSERT_TRUE(cotangent != nullptr && tangent != nullptr && solution != nullptr);
  // The Delassus estimates are what the solver made of the inputs, not what it solved for.
  std::vector<std::string> numbers = Doubles(*solution);
  EXPECT_EQ(std::erase(numbers, "delassus_estimate"), 1u);
  EXPECT_THAT(Doubles(*cotangent), testing::UnorderedElementsAreArray(numbers));
  ASSERT_EQ(tangent->field_count(), cotangent->field_count());
  for (int i = 0; i < tangent->field_count(); ++i) {
    EXPECT_EQ(tangent->field(i)->name(), cotangent->field(i)->name());
    EXPECT_EQ(tangent->field(i)->number(), cotangent->field(i)->number());
  }
}

TEST(SchemaRulesTest, AcceptWhatKeepsThem) {
  EXPECT_THAT(RulesBrokenBy(R"(
      // A thing.
      message Thing {
        // Which.
        Kind kind = 1;
        // Trees.
        repeated fixed32 tree = 2;
      }
      // A kind.
      enum Kind {
        // None.
        KIND_UNSPECIFIED = 0;
        // One.
        KIND_ONE = 1;
      }
      // A request.
      message DoRequest {}
      // A response.
      message DoResponse {}
      // A service.
      service ThingService {
        // Does.
        rpc Do(DoRequest) returns (DoResponse);
      })"),
              IsEmpty());
}

TEST(SchemaRulesTest, SeeAMissingComment) {
  EXPECT_THAT(RulesBrokenBy("message Thing { double mass = 1; }"),
              ElementsAre("sap.v1.Thing has no comment", "sap.v1.Thing.mass has no comment"));
}

TEST(SchemaRulesTest, SeeBadNames) {
  EXPECT_THAT(RulesBrokenBy(R"(
      // A thing.
      message the_thing {
        // Mass.
        double massKg = 1;
      }
      // A service.
      service Things {})"),
              ElementsAre(HasSubstr("sap.v1.the_thing does not match"),
                          HasSubstr("sap.v1.the_thing.massKg does not match"),
                          HasSubstr("sap.v1.Things does not match")));
}

TEST(SchemaRulesTest, SeeAnEnumWithoutItsZeroAndPrefix) {
  EXPECT_THAT(RulesBrokenBy(R"(
      // A kind.
      enum BodyKind {
        // None.
        NONE = 0;
      })"),
              ElementsAre(HasSubstr("does not begin with BODY_KIND_UNSPECIFIED = 0"),
                          HasSubstr("sap.v1.NONE does not match")));
}

TEST(SchemaRulesTest, SeeASharedRequestAndResponse) {
  EXPECT_THAT(RulesBrokenBy(R"(
      // A thing.
      message Thing {}
      // A service.
      service ThingService {
        // Does.
        rpc Do(Thing) returns (Thing);
      })"),
              ElementsAre("sap.v1.ThingService.Do takes sap.v1.Thing",
                          "sap.v1.ThingService.Do returns sap.v1.Thing"));
}

TEST(SchemaRulesTest, SeeIntegersOfVaryingWidthInAnArray) {
  EXPECT_THAT(RulesBrokenBy(R"(
      // A thing.
      message Thing {
        // Trees.
        repeated int32 tree = 1;
      })"),
              ElementsAre("sap.v1.Thing.tree is repeated with integers of varying width"));
}

TEST(SchemaRulesTest, SeeAPackageThatIsNotTheDirectory) {
  DescriptorPool pool;
  const auto* file = pool.BuildFile(Parse("syntax = \"proto3\"; package sap;"));
  ASSERT_NE(file, nullptr);
  EXPECT_THAT(BrokenSchemaRules(*file),
              ElementsAre("sap/v1/example.proto has package sap",
                          "sap/v1/example.proto has a package without a major version"));
}

TEST(SchemaChangesTest, AdditionsBreakNothing) {
  EXPECT_THAT(Changes("message A { double x = 1; } enum E { E_UNSPECIFIED = 0; }",
                      "message A { double x = 1; double y = 2; message B {} }"
                      "enum E { E_UNSPECIFIED = 0; E_ONE = 1; } service S {} message C {}"),
              IsEmpty());
}

TEST(SchemaChangesTest, ARemovalIsSeen) {
  for (const std::string now :
       {"message A {}", "message A { reserved 1; }", "message A { reserved \"x\"; }",
        "message A { reserved 2; reserved \"x\"; }"}) {
    EXPECT_THAT(Changes("message A { double x = 1; }", now),
                ElementsAre("sap.v1.A field 1 (OPTIONAL DOUBLE x) is gone"));
  }
  EXPECT_THAT(Changes("message A { message B {} }", "message A {}"),
              ElementsAre("message sap.v1.A.B is gone"));
  EXPECT_THAT(Changes("enum E { E_UNSPECIFIED = 0; E_ONE = 1; }", "enum E { E_UNSPECIFIED = 0; }"),
              ElementsAre("sap.v1.E value 1 (E_ONE) is gone"));
  EXPECT_THAT(
      Changes("message A {} service S { rpc Do(A) returns (A); }", "message A {} service S {}"),
      ElementsAre(HasSubstr("call sap.v1.S.Do")));
}

// A removal is listed in the changelog; neither its number nor its name is used again.
TEST(SchemaChangesTest, AFieldMayGoIfItsNumberAndItsNameStayReserved) {
  const std::string removed = "message A { reserved 1; reserved \"x\"; }";
  EXPECT_THAT(Changes("message A { double x = 1; }", removed), IsEmpty());
  EXPECT_THAT(Changes(removed, removed), IsEmpty());
  EXPECT_THAT(Changes(removed, "message A { reserved 1; }"),
              ElementsAre("sap.v1.A reserves x is gone"));
}

TEST(SchemaChangesTest, AChangeOfAFieldIsSeen) {
  const std::string before = "message A { repeated double x = 1; }";
  for (const std::string now :
       {"message A { repeated double y = 1; }", "message A { repeated double x = 2; }",
        "message A { repeated float x = 1; }", "message A { double x = 1; }",
        "message A { optional double x = 1; }", "message A { oneof o { double x = 1; } }"}) {
    EXPECT_EQ(Changes(before, now).size(), 1u) << now;
  }
  EXPECT_EQ(Changes("message A { double x = 1; }", "message A { optional double x = 1; }").size(),
            1u);
}

TEST(SchemaChangesTest, AChangeOfACallIsSeen) {
  const std::string messages = "message A {} message B {} ";
  EXPECT_EQ(Changes(messages + "service S { rpc Do(A) returns (A); }",
                    messages + "service S { rpc Do(B) returns (A); }")
                .size(),
            1u);
  EXPECT_EQ(Changes(messages + "service S { rpc Do(A) returns (A); }",
                    messages + "service S { rpc Do(A) returns (stream A); }")
                .size(),
            1u);
}

}  // namespace
}  // namespace sap
