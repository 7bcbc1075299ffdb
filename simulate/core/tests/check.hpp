// Tests of the engine: `TEST(name) { CHECK(...); CHECK_EQ(a, b); CHECK_THROWS(f(), std::error, "words"); }`.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace simfa::test {

struct Case {
    const char* name;
    void (*body)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

struct Registration {
    Registration(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

// Failed checks of the test that runs.
inline std::vector<std::string>& failures() {
    static std::vector<std::string> all;
    return all;
}

inline void fail(const char* file, int line, const std::string& text) {
    failures().push_back(std::string(file) + ":" + std::to_string(line) + ": " + text);
}

template <typename Left, typename Right>
void check_equal(const Left& left, const Right& right, const char* text, const char* file, int line) {
    if (left == right) return;
    std::ostringstream out;
    out << text << ": " << left << " is not " << right;
    fail(file, line, out.str());
}

template <typename Error, typename Body>
void check_throws(const Body& body, const std::string& words, const char* text, const char* file, int line) {
    try {
        body();
    } catch (const Error& error) {
        if (std::string(error.what()).find(words) == std::string::npos)
            fail(file, line, std::string(text) + ": the message lacks \"" + words + "\": " + error.what());
        return;
    }
    fail(file, line, std::string(text) + ": nothing was thrown");
}

}  // namespace simfa::test

#define TEST(name)                                                                  \
    static void test_##name();                                                      \
    static const simfa::test::Registration registration_##name(#name, test_##name); \
    static void test_##name()

#define CHECK(condition) ((condition) ? void() : simfa::test::fail(__FILE__, __LINE__, #condition))
#define CHECK_EQ(left, right) simfa::test::check_equal(left, right, #left, __FILE__, __LINE__)
#define CHECK_THROWS(expression, error, words) \
    simfa::test::check_throws<error>([&] { (void)(expression); }, words, #expression, __FILE__, __LINE__)
