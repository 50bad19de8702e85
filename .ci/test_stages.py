"""The closing line counts what cargo and pytest really reported."""

import stages

CARGO = """\
   Compiling weir v0.1.0
     Running unittests src/lib.rs (target/debug/deps/a)

running 3 tests
test one ... ok
test two ... ok
test three ... FAILED

successes:

---- two stdout ----
skipped: needs root
skipped: and ip

successes:
    one
    two

failures:

---- three stdout ----
skipped: is what it wanted to print
thread 'three' panicked

failures:
    three

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/own_main.rs (target/debug/deps/b)
a report
     Running tests/own_main_skipping.rs (target/debug/deps/c)
skipped: needs root
     Running tests/own_main_failing.rs (target/debug/deps/d)
error: test failed, to rerun pass `-p weir --test own_main_failing`
   Doc-tests weir

running 1 test
test src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


def test_cargo():
    # Passed: one, the program with its own main, the doc test. Failed: three, the program that fails.
    # Skipped: two, the ignored one, the program that says so.
    assert stages.count(CARGO) == (3, 2, 3)


def test_pytest():
    assert stages.count(".s\n1 passed, 2 skipped in 0.12s\n") == (1, 0, 2)
    assert stages.count("==== 1 failed, 3 passed, 1 error, 1 xfailed in 60.12s (0:01:00) ====\n") == (4, 2, 0)
    assert stages.count("1 skipped in 0.01s\n") == (0, 0, 1)


def test_ctest():
    output = "50% tests passed, 1 tests failed out of 4\n\nThe following tests did not run:\n\t  4 - corpus (Skipped)\n"
    assert stages.count(output) == (2, 1, 1)
    assert stages.count("100% tests passed, 0 tests failed out of 14\n") == (14, 0, 0)


def test_neither():
    assert stages.count("All checks passed!\n") == (0, 0, 0)


def test_cmocka():
    output = "[  PASSED  ] 11 test(s).\n[==========] 12 test(s) run.\n[  PASSED  ] 10 test(s).\n"
    assert stages.count(output) == (21, 0, 0)
    assert stages.count(output + "[  FAILED  ] 2 test(s), listed below:\n[  FAILED  ] one\n") == (21, 2, 0)


def test_vitest():
    assert stages.count("      Tests  46 passed (46)\n") == (46, 0, 0)
    assert stages.count("      Tests  8 failed | 7 passed | 2 skipped (17)\n") == (7, 8, 2)
