# Reads what `cargo test --no-fail-fast` prints; prints each failed test: how cargo names its target, a tab, its name.
# The name is missing where a program of tests ended without a list of failures.

# The list follows what the tests printed, which is under the same heading and may contain anything.
/^failures:$/ { count = 0 }
/^    [^ ]/ { listed[++count] = substr($0, 5) }
/^test result: FAILED\. [0-9]+ passed; [0-9]+ failed; / {
    if ($6 == count)
        for (at = 1; at <= count; at++) failed[++all] = listed[at]
}
/^error: (test|doctest) failed, to rerun pass `/ {
    split($0, quoted, "`")
    if (!all) print quoted[2] "\t"
    for (at = 1; at <= all; at++) print quoted[2] "\t" failed[at]
    all = 0
}
