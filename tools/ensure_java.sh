#!/usr/bin/env bash
# Makes sure that Spark will find Java 17 or newer.
#
# Java that is already there is used as it is, JAVA_HOME first. Otherwise it is installed where that
# needs no questions (Debian or Ubuntu, as root or with passwordless sudo); elsewhere this says what
# to type.
set -euo pipefail

wanted=17
packages=(openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless)

# The major version of the java program $1, or 0 if it does not run.
major() {
    local text
    text=$("$1" -version 2>&1) || text=
    # 'version "17.0.15"' is 17, 'version "1.8.0_402"' is 8.
    text=$(sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' <<<"$text" | head -n 1)
    echo "${text:-0}"
}

# True if plain `java` will do.
on_path() {
    hash -r
    [ "$(major java)" -ge "$wanted" ]
}

if [ -n "${JAVA_HOME:-}" ]; then
    if [ "$(major "$JAVA_HOME/bin/java")" -ge "$wanted" ]; then
        exit 0
    fi
    echo "JAVA_HOME is $JAVA_HOME, which is not Java $wanted or newer: correct or unset it." >&2
    exit 1
fi

if on_path; then
    exit 0
fi

if command -v apt-get >/dev/null; then
    by_hand="sudo apt-get update && sudo apt-get install -y ${packages[0]}"
    if [ "$(id -u)" -eq 0 ]; then
        as_root=(env DEBIAN_FRONTEND=noninteractive)
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
    else
        as_root=()
    fi
    if [ "${#as_root[@]}" -gt 0 ]; then
        echo "Java $wanted or newer is missing: installing it with apt-get." >&2
        # An unreachable source need not be the one with Java in it.
        "${as_root[@]}" apt-get -q update || true
        for package in "${packages[@]}"; do
            if "${as_root[@]}" apt-get -q install -y --no-install-recommends "$package" && on_path; then
                exit 0
            fi
        done
    fi
elif command -v dnf >/dev/null; then
    by_hand="sudo dnf install -y java-21-openjdk-headless"
elif command -v brew >/dev/null; then
    by_hand='brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"'
else
    by_hand=
fi

if [ -n "$by_hand" ]; then
    echo "Spark needs Java $wanted or newer. Type: $by_hand" >&2
else
    echo "Spark needs Java $wanted or newer: install it, and set JAVA_HOME if it is not on the PATH." >&2
fi
exit 1
