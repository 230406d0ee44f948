// Reads an op's schema at compile time, and explains what the engine does not support.
//
// A schema is a torch.library schema: `name.overload(Tensor x, float y, int n) -> Tensor`.
#pragma once

namespace opwright {

enum class Kind { tensor, integer, real, boolean };

enum class SchemaProblem {
  none,
  form,
  space,
  argument_name,
  optional,
  type,
  order,
  too_many,
  result,
};

constexpr int max_arguments = 16;

struct Schema {
  SchemaProblem problem = SchemaProblem::none;
  int count = 0;
  Kind kinds[max_arguments] = {};
  int results = 0;

  constexpr int of(Kind kind) const {
    int found = 0;
    for (int i = 0; i < count; ++i) found += kinds[i] == kind;
    return found;
  }
};

namespace schema_text {

constexpr bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
constexpr bool starts_with(const char* text, const char* start) {
  while (*start) {
    if (*text++ != *start++) return false;
  }
  return true;
}
constexpr int length_of_name(const char* text) {
  int length = 0;
  while (is_name(text[length])) ++length;
  return length;
}

}  // namespace schema_text

constexpr Schema failed(SchemaProblem problem) {
  Schema schema;
  schema.problem = problem;
  return schema;
}

// Reads the kind of the argument that begins at `at`, and moves `at` to the space before its name.
constexpr SchemaProblem read_type(const char*& at, Kind& kind) {
  using namespace schema_text;
  const char* names[] = {"Tensor", "int", "float", "bool", "SymInt"};
  const int length = length_of_name(at);
  for (int i = 0; i < 5; ++i) {
    if (!starts_with(at, names[i]) || length_of_name(names[i]) != length) continue;
    at += length;
    if (*at == '?') return SchemaProblem::optional;
    kind = i == 4 ? Kind::integer : static_cast<Kind>(i);  // kernels see the number
    return *at == ' ' ? SchemaProblem::none : SchemaProblem::type;
  }
  return SchemaProblem::type;
}

constexpr Schema read_schema(const char* text) {
  using namespace schema_text;
  Schema schema;
  const char* at = text + length_of_name(text);
  if (at == text) return failed(SchemaProblem::form);
  if (*at == '.') at += 1 + length_of_name(at + 1);
  if (*at != '(') return failed(SchemaProblem::form);
  ++at;
  while (*at && *at != ')') {
    if (schema.count == max_arguments) return failed(SchemaProblem::too_many);
    Kind& kind = schema.kinds[schema.count++];
    if (const SchemaProblem problem = read_type(at, kind); problem != SchemaProblem::none)
      return failed(problem);
    ++at;
    const int length = length_of_name(at);
    if (length == 0) return failed(SchemaProblem::argument_name);
    at += length;
    while (*at && *at != ',' && *at != ')') ++at;  // a default value
    if (*at != ',') continue;
    if (at[1] != ' ') return failed(SchemaProblem::space);
    at += 2;
  }
  if (!starts_with(at, ") -> ")) return failed(SchemaProblem::form);
  at += 5;
  const bool many = *at == '(';
  at += many;
  while (true) {
    if (!starts_with(at, "Tensor")) return failed(SchemaProblem::result);
    at += 6;
    ++schema.results;
    if (!many || !starts_with(at, ", ")) break;
    at += 2;
  }
  if (many && *at++ != ')') return failed(SchemaProblem::result);
  return *at ? failed(SchemaProblem::result) : schema;
}

// Whether a schema's name matches the struct's: `cust_add.int` matches cust_add_int.
constexpr bool is_schema_of(const char* schema, const char* name) {
  while (*name && (*schema == *name || (*schema == '.' && *name == '_'))) ++schema, ++name;
  return !*name && *schema == '(';
}

template <typename... Op>
struct OpList {};

// The compiler shows the message of the problem that applies.
template <typename Text>
constexpr bool check_schema() {
  constexpr SchemaProblem problem = read_schema(Text::schema).problem;
  static_assert(problem != SchemaProblem::form,
                "the schema does not read like `name(Tensor x, float y) -> Tensor`");
  static_assert(problem != SchemaProblem::space, "a comma in the schema needs one space after it");
  static_assert(problem != SchemaProblem::argument_name,
                "each argument in the schema needs a type, one space and a name");
  static_assert(problem != SchemaProblem::optional,
                "the engine has no optional arguments (`Tensor?`); write an overload without the "
                "argument");
  static_assert(problem != SchemaProblem::type,
                "the schema's argument types are Tensor, int, SymInt, float and bool");
  static_assert(problem != SchemaProblem::too_many, "a schema has at most 16 arguments");
  static_assert(problem != SchemaProblem::result,
                "the schema must return one `Tensor`, or several: `(Tensor, Tensor)`");
  return problem == SchemaProblem::none;
}

// Checks the rules for elementwise ops: tensors first, then ints and floats; one or two results.
template <typename Op>
constexpr bool check_elementwise_schema() {
  if constexpr (check_schema<Op>()) {
    constexpr Schema schema = read_schema(Op::schema);
    constexpr int tensors = schema.of(Kind::tensor);
    static_assert(schema.of(Kind::boolean) == 0,
                  "an elementwise op takes no bool; write `int`, which is 0 or 1 for one");
    static_assert(tensors >= 1 && tensors <= 3, "an elementwise op takes one to three tensors");
    static_assert(schema.results <= 2, "an elementwise op returns one Tensor or two");
    constexpr bool ordered = [](const Schema& read) {
      for (int i = 1; i < read.count; ++i)
        if (read.kinds[i] == Kind::tensor && read.kinds[i - 1] != Kind::tensor) return false;
      return true;
    }(schema);
    static_assert(ordered, "the schema's tensors come before its numbers");
  }
  return true;
}

}  // namespace opwright
