// Runs all tests, or those whose names contain the first argument; exits 1 if one fails.
#include <exception>
#include <iostream>
#include <string>

#include "check.hpp"

int main(int argc, char** argv) {
    using namespace simfa::test;
    const std::string wanted = argc > 1 ? argv[1] : "";
    int passed = 0;
    int failed = 0;
    for (const Case& test : cases()) {
        if (std::string(test.name).find(wanted) == std::string::npos) continue;
        failures().clear();
        try {
            test.body();
        } catch (const std::exception& error) {
            failures().push_back(std::string("unexpected exception: ") + error.what());
        }
        ++(failures().empty() ? passed : failed);
        if (failures().empty()) continue;
        std::cout << "FAILED " << test.name << "\n";
        for (const std::string& failure : failures()) std::cout << "    " << failure << "\n";
    }
    std::cout << passed << " passed, " << failed << " failed\n";
    return failed == 0 && passed > 0 ? 0 : 1;
}
